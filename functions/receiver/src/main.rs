//! The function behind the HTTP API: reads its settings once, builds the adapter, and hands every
//! request to the use case. Rules live in `workflow` and below; [`edge`] only translates.

mod edge;

use aws::{Aws, Resource, Settings, Timeouts};
use lambda_http::{
    Error, LambdaEvent,
    lambda_runtime::{run, service_fn},
};
use ledger::Millis;
use serde_json::value::RawValue;
use std::{process::ExitCode, sync::Arc, time::Duration};
use workflow::{CertificateCache, Keyring, Receiver};

const NEEDED: &[Resource] = &[Resource::LedgerTable, Resource::Queue, Resource::SigningSecret];
/// What opening connections and reading keys may take of the start.
const WARM_UP: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::diagnostics::run("the receiver", serve()).await
}

async fn serve() -> Result<(), Error> {
    let settings = Settings::from_env()?;
    settings.require(NEEDED)?;
    let timeouts = Timeouts::receiver(&settings.policy);
    let receiver = Receiver {
        config: aws::config(&settings)?,
        policy: settings.policy.clone(),
        keyring: Keyring::new(settings.is_local()),
        replay: settings.replay_route.then(|| workflow::receive::tokens(settings.is_local())),
        certificates: CertificateCache::default(),
        public_url: settings.public_url.clone(),
        ports: Arc::new(Aws::connect(settings, timeouts).await),
    };
    // Whatever is not ready in time is tried again by the first delivery.
    let keys = receiver.keyring.load(&*receiver.ports, &receiver.config);
    let ready = Box::pin(async { tokio::join!(receiver.ports.warm_up(), keys) });
    let _in_time = tokio::time::timeout(WARM_UP, ready).await;
    let receiver = &receiver;
    run(service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
        let deadline = Millis(event.context.deadline);
        let answer = match edge::read(&event.payload, deadline) {
            Ok(delivery) => Box::pin(receiver.receive(delivery)).await,
            Err(unreadable) => edge::refuse(unreadable, &*receiver.ports),
        };
        Ok::<_, Error>(edge::write(answer))
    }))
    .await
}
