//! The function behind the queue: reads its settings once, builds the adapter, and hands every
//! batch to the use case. [`batch`] only translates.

mod batch;

use aws::{Aws, Resource, Settings, Timeouts};
use aws_lambda_events::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use ledger::Millis;
use std::{process::ExitCode, sync::Arc};
use workflow::{Consumer, Fetcher, projection::Declarative};

const NEEDED: &[Resource] =
    &[Resource::LedgerTable, Resource::StateTable, Resource::Queue, Resource::OutboundSecret];

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::diagnostics::run("the consumer", serve()).await
}

async fn serve() -> Result<(), Error> {
    let settings = Settings::from_env()?;
    settings.require(NEEDED)?;
    let consumer = Consumer {
        config: aws::config(&settings)?,
        policy: settings.policy.clone(),
        release: settings.release.clone(),
        projection: Box::new(Declarative),
        fetcher: Fetcher::new(settings.consumers_max)
            .at(settings.local_provider.clone())
            .allowing_local(settings.is_local()),
        ports: Arc::new(Aws::connect(settings, Timeouts::worker()).await),
    };
    let consumer = &consumer;
    run(service_fn(move |event: LambdaEvent<SqsEvent>| async move {
        let records = batch::records(event.payload)?;
        let deadline = Millis(event.context.deadline);
        let unfinished = Box::pin(consumer.consume(records, deadline)).await;
        Ok::<_, Error>(batch::answer(unfinished))
    }))
    .await
}
