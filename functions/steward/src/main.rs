//! The scheduled function: reads its settings once, builds the adapter, and runs the steward. What
//! the schedule sends along is not looked at, so a person may invoke it with anything.

use aws::{Aws, Resource, Settings, Timeouts};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use ledger::Millis;
use serde_json::Value;
use std::{process::ExitCode, sync::Arc};
use workflow::Steward;

const NEEDED: &[Resource] = &[Resource::LedgerTable, Resource::Queue, Resource::DeadLetterQueue];

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::diagnostics::start();
    match Box::pin(serve()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("the steward cannot start: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Error> {
    let settings = Settings::from_env()?;
    settings.require(NEEDED)?;
    let steward = Steward {
        policy: settings.policy.clone(),
        release: settings.release.clone(),
        ports: Arc::new(Aws::connect(settings, Timeouts::worker()).await),
    };
    let steward = &steward;
    run(service_fn(move |event: LambdaEvent<Value>| async move {
        steward.run(Millis(event.context.deadline)).await;
        Ok::<_, Error>(())
    }))
    .await
}
