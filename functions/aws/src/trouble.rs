//! Errors: what a failed call to AWS means, decided where it arises and by its code.
//!
//! The texts name the code and the service's message, never the request: an SDK error's debug
//! form would print the row that a condition refused, body included.

use crate::SettingsError;
use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};
use std::error::Error;
use workflow::ports::{PortError, Trouble};

/// Longest text kept of a service's message.
const MESSAGE_CHARS_MAX: usize = 300;

/// A call that failed: what it means, and what to tell the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{said}")]
pub(crate) struct Failed {
    pub(crate) trouble: Trouble,
    pub(crate) said: String,
}

impl Failed {
    pub(crate) fn new(trouble: Trouble, said: impl Into<String>) -> Self {
        Self { trouble, said: said.into() }
    }

    /// Reads an SDK error.
    pub(crate) fn from_sdk<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        match error {
            SdkError::ServiceError(_) => {
                let code = error.code().unwrap_or("unnamed error");
                let message: String = error
                    .message()
                    .unwrap_or("without a message")
                    .chars()
                    .take(MESSAGE_CHARS_MAX)
                    .collect();
                Self::new(trouble_of(code), format!("{code}: {message}"))
            }
            SdkError::TimeoutError(_) => Self::new(Trouble::Unavailable, "no answer in time"),
            // Connection failures and requests that were never sent; credentials are among them.
            other => Self::new(Trouble::Unavailable, chain(other)),
        }
    }

    /// The same, as the port's error.
    pub(crate) fn at(self, step: &'static str) -> PortError {
        PortError { step, trouble: self.trouble, source: Box::new(self) }
    }
}

/// A setting that is needed now and was not given.
pub(crate) fn missing(step: &'static str, error: SettingsError) -> PortError {
    PortError { step, trouble: Trouble::Unavailable, source: Box::new(error) }
}

/// What an error code of DynamoDB, SQS or Secrets Manager means. An unknown code is not the
/// request's fault: it is tried again until the budget ends.
pub(crate) fn trouble_of(code: &str) -> Trouble {
    match code {
        "ThrottlingException"
        | "ThrottlingError"
        | "Throttling"
        | "ThrottledException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "RequestLimitExceeded"
        | "ProvisionedThroughputExceededException"
        | "ProvisionedThroughputExceeded"
        | "TooManyRequestsException"
        | "LimitExceededException"
        | "OverLimit"
        | "KmsThrottled" => Trouble::Throttled,
        "TransactionConflictException"
        | "TransactionConflict"
        | "TransactionInProgressException"
        | "ReplicatedWriteConflictException" => Trouble::Conflict,
        "ValidationException"
        | "ValidationError"
        | "ItemCollectionSizeLimitExceededException"
        | "ItemCollectionSizeLimitExceeded"
        | "IdempotentParameterMismatchException"
        | "InvalidMessageContents"
        | "BatchRequestTooLong" => Trouble::Invalid,
        _ => Trouble::Unavailable,
    }
}

/// The causes of an error that never reached the service, outermost first.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        next = cause.source();
    }
    texts.join(": ").chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_impossible_request_is_invalid_and_an_unknown_code_is_tried_again() {
        let read = [
            ("ProvisionedThroughputExceededException", Trouble::Throttled),
            ("TransactionConflictException", Trouble::Conflict),
            ("ValidationException", Trouble::Invalid),
            ("AccessDeniedException", Trouble::Unavailable),
            ("ResourceNotFoundException", Trouble::Unavailable),
            ("InternalServerError", Trouble::Unavailable),
            ("SomethingNew", Trouble::Unavailable),
        ];
        for (code, trouble) in read {
            assert_eq!(trouble_of(code), trouble, "{code}");
        }
    }
}
