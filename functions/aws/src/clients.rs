//! The SDK's clients: one HTTP stack, and an end to every call.
//!
//! The SDK has no attempt or operation timeout of its own, and its first back-off may take a
//! second; a provider's deadline allows neither. Standard retry mode, not adaptive: the adaptive
//! one delays calls on its own judgement.

use aws_config::{SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use ledger::Policy;
use std::time::Duration;

/// Attempts of one call, the first included. The limits end a call before its attempts do where an
/// attempt is slow; where answers come quickly, as with throttling, this many fit.
const ATTEMPTS_MAX: u32 = 6;

/// How long one call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One attempt.
    pub attempt: Duration,
    /// All attempts and the pauses between them.
    pub operation: Duration,
}

impl Limits {
    const fn of_ms(attempt: u64, operation: u64) -> Self {
        Self {
            attempt: Duration::from_millis(attempt),
            operation: Duration::from_millis(operation),
        }
    }

    pub(crate) fn config(self, connect: Duration) -> TimeoutConfig {
        TimeoutConfig::builder()
            .connect_timeout(connect.min(self.attempt))
            .operation_attempt_timeout(self.attempt)
            .operation_timeout(self.operation)
            .build()
    }
}

/// How long calls may take, by service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Opening a connection.
    pub connect: Duration,
    /// A call to DynamoDB.
    pub dynamodb: Limits,
    /// Writing or reading one body chunk.
    pub chunk: Limits,
    /// A call to SQS.
    pub sqs: Limits,
    /// Reading a secret.
    pub secrets: Limits,
    /// The first pause before another attempt; doubles.
    pub first_pause: Duration,
}

impl Timeouts {
    /// For the receiver, which has a provider waiting: what the policy grants.
    #[must_use]
    pub const fn receiver(policy: &Policy) -> Self {
        Self {
            connect: Duration::from_millis(policy.store_attempt_ms),
            dynamodb: Limits::of_ms(policy.store_attempt_ms, policy.store_total_ms),
            chunk: Limits::of_ms(3_000, 6_000),
            sqs: Limits::of_ms(policy.send_attempt_ms, policy.send_total_ms),
            secrets: Limits::of_ms(policy.secret_attempt_ms, policy.secret_total_ms),
            first_pause: Duration::from_millis(30),
        }
    }

    /// For the consumer, the steward and the command line, where nobody waits for an answer.
    #[must_use]
    pub const fn worker() -> Self {
        Self {
            connect: Duration::from_secs(2),
            dynamodb: Limits::of_ms(2_000, 6_000),
            chunk: Limits::of_ms(3_000, 9_000),
            sqs: Limits::of_ms(3_000, 8_000),
            secrets: Limits::of_ms(2_000, 5_000),
            first_pause: Duration::from_millis(30),
        }
    }

    fn retries(&self) -> RetryConfig {
        RetryConfig::standard()
            .with_max_attempts(ATTEMPTS_MAX)
            .with_initial_backoff(self.first_pause)
            .with_max_backoff(Duration::from_secs(1))
    }
}

/// One client a service.
#[derive(Debug, Clone)]
pub(crate) struct Clients {
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) secrets: aws_sdk_secretsmanager::Client,
}

impl Clients {
    pub(crate) fn new(sdk: &SdkConfig, timeouts: &Timeouts) -> Self {
        let connect = timeouts.connect;
        let dynamodb = aws_sdk_dynamodb::config::Builder::from(sdk)
            .timeout_config(timeouts.dynamodb.config(connect))
            .retry_config(timeouts.retries());
        let sqs = aws_sdk_sqs::config::Builder::from(sdk)
            .timeout_config(timeouts.sqs.config(connect))
            .retry_config(timeouts.retries());
        let secrets = aws_sdk_secretsmanager::config::Builder::from(sdk)
            .timeout_config(timeouts.secrets.config(connect))
            .retry_config(timeouts.retries());
        Self {
            dynamodb: aws_sdk_dynamodb::Client::from_conf(dynamodb.build()),
            sqs: aws_sdk_sqs::Client::from_conf(sqs.build()),
            secrets: aws_sdk_secretsmanager::Client::from_conf(secrets.build()),
        }
    }
}
