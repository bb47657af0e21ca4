//! The adapter: every port on one type, so that a use case is handed one value.

use crate::{
    Resource, Settings, Timeouts,
    clients::Clients,
    http::Connector,
    trouble::{Failed, missing},
};
use aws_config::SdkConfig;
use std::{future::Future, time::Duration};
use workflow::ports::{PortError, Trouble};

/// Tries of a write that meets a transaction, the first included. The SDK retries throttles and
/// lost connections, but not conflicts.
const CONFLICT_TRIES: u32 = 3;
/// The first pause after a conflict, in ms; doubles, spread by a half either way.
const CONFLICT_PAUSE_MS: u64 = 30;
/// What warming up may take at most.
const WARM_UP: Duration = Duration::from_secs(2);

/// The ports on AWS.
#[derive(Debug, Clone)]
pub struct Aws {
    pub(crate) clients: Clients,
    pub(crate) timeouts: Timeouts,
    /// Keeps connections to providers' servers.
    pub(crate) http: Connector,
    settings: Settings,
}

impl Aws {
    /// Reads credentials, region and endpoints from the environment, as every AWS tool does.
    pub async fn connect(settings: Settings, timeouts: Timeouts) -> Self {
        let sdk = aws_config::load_from_env().await;
        Self::new(&sdk, settings, timeouts)
    }

    /// Uses credentials, region and endpoints of `sdk`; its timeouts and retries are replaced.
    #[must_use]
    pub fn new(sdk: &SdkConfig, settings: Settings, timeouts: Timeouts) -> Self {
        let clients = Clients::new(sdk, &timeouts);
        Self { clients, timeouts, http: Connector::default(), settings }
    }

    /// What the environment said.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The DynamoDB client, for what no port offers.
    #[must_use]
    pub const fn dynamodb(&self) -> &aws_sdk_dynamodb::Client {
        &self.clients.dynamodb
    }

    /// The SQS client, for what no port offers.
    #[must_use]
    pub const fn sqs(&self) -> &aws_sdk_sqs::Client {
        &self.clients.sqs
    }

    /// Opens the connections that the first delivery needs, while a function starts: a TLS
    /// handshake costs more then than a provider's patience allows later. The answers, refusals
    /// too, do not matter, so nothing here can fail.
    pub async fn warm_up(&self) {
        let calls = async { tokio::join!(self.touch_ledger(), self.touch_queue()) };
        if tokio::time::timeout(WARM_UP, calls).await.is_err() {
            tracing::warn!("connections not opened within {} s", WARM_UP.as_secs());
        }
    }

    pub(crate) fn resource(
        &self,
        step: &'static str,
        resource: Resource,
    ) -> Result<&str, PortError> {
        let named = self.settings.get(resource);
        named.map_err(|error| missing(step, error))
    }

    /// Calls a few times while the trouble is one that passes, within the operation's limit.
    pub(crate) async fn patiently<T, F, Fut>(
        &self,
        passes: fn(Trouble) -> bool,
        call: F,
    ) -> Result<T, Failed>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<T, Failed>>,
    {
        let limit = self.timeouts.dynamodb.operation;
        let tries = async {
            let mut pause_ms = CONFLICT_PAUSE_MS;
            for _ in 1..CONFLICT_TRIES {
                match call().await {
                    Err(failed) if passes(failed.trouble) => {}
                    done => return done,
                }
                let spread = pause_ms.saturating_mul(crate::clock::jitter().spread.into()) >> 16;
                let pause = Duration::from_millis(pause_ms / 2 + spread);
                tokio::time::sleep(pause).await;
                pause_ms = pause_ms.saturating_mul(2);
            }
            call().await
        };
        match tokio::time::timeout(limit, tries).await {
            Ok(done) => done,
            Err(_) => Err(Failed::new(Trouble::Unavailable, "no answer in time")),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use aws_config::BehaviorVersion;
    use std::cell::Cell;

    fn aws() -> Aws {
        let sdk = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).build();
        Aws::new(
            &sdk,
            Settings::from_variables([]).unwrap(),
            Timeouts::receiver(&ledger::Policy::default()),
        )
    }

    fn passes(trouble: Trouble) -> bool {
        trouble == Trouble::Conflict
    }

    /// What comes of a call that meets `troubles` one after another, and how often it was made.
    async fn meet(troubles: &[Trouble]) -> (Result<(), Trouble>, usize) {
        let calls = Cell::new(0);
        let call = || {
            let met = troubles.get(calls.replace(calls.get() + 1));
            let answer = met.map_or(Ok(()), |trouble| Err(Failed::new(*trouble, "")));
            std::future::ready(answer)
        };
        let done = aws().patiently(passes, call).await;
        (done.map_err(|failed| failed.trouble), calls.get())
    }

    #[tokio::test]
    async fn a_conflict_is_waited_out_twice_and_then_named() {
        use Trouble::Conflict;
        assert_eq!(meet(&[]).await, (Ok(()), 1));
        assert_eq!(meet(&[Conflict, Conflict]).await, (Ok(()), 3));
        assert_eq!(meet(&[Conflict; 9]).await, (Err(Conflict), 3));
    }

    #[tokio::test]
    async fn trouble_that_does_not_pass_is_named_at_once() {
        assert_eq!(meet(&[Trouble::Throttled]).await, (Err(Trouble::Throttled), 1));
        let worse = [Trouble::Conflict, Trouble::Invalid];
        assert_eq!(meet(&worse).await, (Err(Trouble::Invalid), 2));
    }

    #[tokio::test]
    async fn a_call_that_never_answers_ends_with_the_operations_limit() {
        let mut aws = aws();
        aws.timeouts.dynamodb.operation = Duration::from_millis(10);
        let never = || std::future::pending::<Result<(), Failed>>();
        let failed = aws.patiently(passes, never).await.unwrap_err();
        assert_eq!(failed.trouble, Trouble::Unavailable);
    }

    #[tokio::test]
    async fn what_was_not_named_in_the_environment_is_missed_by_name() {
        use workflow::ports::{Queues, Secret, SecretStore};
        let aws = aws();
        let missed = aws.backlog().await.unwrap_err().to_string();
        assert_eq!(missed, "read backlog failed: ONCEHOOK_QUEUE_URL is not set");
        let missed = aws.fetch(Secret::Signing).await.unwrap_err().to_string();
        assert_eq!(missed, "read secret failed: ONCEHOOK_SECRET_ID is not set");
    }
}
