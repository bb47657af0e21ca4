//! The scheduled functions: reads its settings once, builds the adapter, and runs the steward; or the
//! reconciler, where `ONCEHOOK_RECONCILE` says which sources. What the schedule sends along is not
//! looked at, so a person may invoke either with anything.

use aws::{Aws, Resource, Settings, Timeouts};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use ledger::Millis;
use serde_json::Value;
use std::{process::ExitCode, sync::Arc};
use workflow::{
    CertificateCache, Keyring, Receiver, Reconciler, Steward,
    reconcile::{self, Scope},
};

const NEEDED: &[Resource] = &[Resource::LedgerTable, Resource::Queue, Resource::DeadLetterQueue];
const NEEDED_TO_RECONCILE: &[Resource] =
    &[Resource::LedgerTable, Resource::Queue, Resource::OutboundSecret];
/// Whether the stack has a reconciler: `on` or `off`. Set for the steward alone.
const RECONCILER: &str = "ONCEHOOK_RECONCILER";
/// Which sources are compared with their provider's list. Set for the reconciler alone.
const RECONCILE: &str = "ONCEHOOK_RECONCILE";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    aws::diagnostics::run("the scheduled function", serve()).await
}

async fn serve() -> Result<(), Error> {
    let settings = Settings::from_env()?;
    if let Ok(word) = std::env::var(RECONCILE) {
        let scope = Scope::parse(&word)
            .ok_or_else(|| format!("{RECONCILE} is {word:?}, allowed: never-retried, all"))?;
        return reconciler(settings, scope).await;
    }
    settings.require(NEEDED)?;
    let steward = Steward {
        policy: settings.policy.clone(),
        release: settings.release.clone(),
        has_reconciler: std::env::var(RECONCILER).is_ok_and(|word| word == "on"),
        ports: Arc::new(Aws::connect(settings, Timeouts::worker()).await),
    };
    let steward = &steward;
    run(service_fn(move |event: LambdaEvent<Value>| async move {
        steward.run(Millis(event.context.deadline)).await;
        Ok::<_, Error>(())
    }))
    .await
}

async fn reconciler(settings: Settings, scope: Scope) -> Result<(), Error> {
    settings.require(NEEDED_TO_RECONCILE)?;
    let reconciler = Reconciler {
        scope,
        allow_local: settings.is_local(),
        pace: reconcile::PACE,
        receiver: Receiver {
            config: aws::config(&settings)?,
            policy: settings.policy.clone(),
            keyring: Keyring::new(settings.is_local()),
            certificates: CertificateCache::default(),
            replay: None,
            public_url: None,
            ports: Arc::new(Aws::connect(settings, Timeouts::worker()).await),
        },
    };
    let reconciler = &reconciler;
    run(service_fn(move |event: LambdaEvent<Value>| async move {
        let settings = reconciler.receiver.ports.settings();
        let elsewhere = |source: &str| settings.list_address(source);
        Box::pin(reconciler.run(Millis(event.context.deadline), elsewhere)).await;
        Ok::<_, Error>(())
    }))
    .await
}
