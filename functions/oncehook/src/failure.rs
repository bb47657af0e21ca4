//! Why a command could not do its work, and what the person does next.
//!
//! A result that needs attention, such as a dead row or a refused signature, is no failure: it is
//! what the command was asked for, and ends with exit code 1. A failure ends with 2 where the
//! call was wrong and with 3 where AWS, or the receiver, could not be reached; work that the operator
//! interrupts ends with 130. The text is written for the person at the terminal: what was found, and
//! the next step.

use crate::{operator::INTERRUPTED, paste};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use std::{error::Error, process::ExitCode};
use workflow::ports::{PortError, Trouble};

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The call is wrong: exit code 2.
    Usage,
    /// The other side does not answer, or refuses: exit code 3.
    Unreachable,
    /// The operator has had enough: exit code 130.
    Interrupted,
}

/// A command that could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}")]
pub(crate) struct Failure {
    kind: Kind,
    found: String,
    next: Option<String>,
}

impl Failure {
    /// The call is wrong.
    pub(crate) fn usage(found: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, found: found.into(), next: None }
    }

    /// The other side could not be reached.
    pub(crate) fn unreachable(found: impl Into<String>) -> Self {
        Self { kind: Kind::Unreachable, found: found.into(), next: None }
    }

    /// The operator interrupted it, there: `found` goes on behind the word.
    pub(crate) fn interrupted(found: &str) -> Self {
        Self { kind: Kind::Interrupted, found: format!("interrupted {found}"), next: None }
    }

    /// Whether the operator wanted it so.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    /// Adds the next step.
    pub(crate) fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The same with its next step on a named stack.
    pub(crate) fn on(self, stack: Option<&str>) -> Self {
        Self { next: self.next.map(|next| paste::text(&next, stack)), ..self }
    }

    /// What the person does next.
    pub(crate) fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// The number a script sees.
    pub(crate) const fn code(&self) -> u8 {
        match self.kind {
            Kind::Usage => 2,
            Kind::Unreachable => 3,
            Kind::Interrupted => INTERRUPTED,
        }
    }
}

/// As a program reads it, on standard error or within the report of what was done before.
impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Failure", 3)?;
        fields.serialize_field("error", &self.found)?;
        fields.serialize_field("next", &self.next)?;
        fields.serialize_field("exit", &self.code())?;
        fields.end()
    }
}

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> Self {
        Self::from(failure.code())
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        let next = match error.trouble {
            Trouble::Throttled | Trouble::Conflict => "AWS is throttling; try again in a moment",
            Trouble::Invalid => "AWS refuses the request as it stands; is this the right stack?",
            Trouble::Unavailable => advice(&error.to_string()),
        };
        Self::unreachable(error.to_string()).with_next(next)
    }
}

/// The next step for a call that got no answer, or a refusal.
pub(crate) fn advice(said: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if says(&["AccessDenied", "UnauthorizedOperation"]) {
        "this identity lacks the permission; `aws sts get-caller-identity` says who it is"
    } else if says(&["ResourceNotFound", "NonExistentQueue"]) {
        "it does not exist in this account and region; check AWS_PROFILE and AWS_REGION, or load \
         `.local/env` again if the local stack was started anew"
    } else if says(&["credentials", "ExpiredToken", "UnrecognizedClient", "InvalidSignature"]) {
        "no usable AWS credentials: set AWS_PROFILE or sign in again; for the local stack run \
         `. .local/env`"
    } else if says(&["Missing Region", "region must be set"]) {
        "set AWS_REGION to the region of the stack"
    } else {
        "check the network, the region (AWS_REGION) and, for the local stack, that it is up: `make up`"
    }
}

/// Longest text of an error that a person is shown.
const CHAIN_CHARS_MAX: usize = 300;

/// An error and its causes in one line, each said once.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        next = cause.source();
    }
    said.chars().take(CHAIN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(trouble: Trouble, said: &str) -> Failure {
        Failure::from(PortError { step: "read row", trouble, source: said.into() })
    }

    #[test]
    fn a_call_that_fails_ends_with_3_and_says_what_to_check() {
        let failure = failed(Trouble::Unavailable, "AccessDeniedException: not yours");
        assert_eq!(failure.code(), 3);
        assert_eq!(failure.to_string(), "read row failed: AccessDeniedException: not yours");
        assert!(failure.next().is_some_and(|next| next.contains("permission")));
        let failure = failed(Trouble::Unavailable, "dispatch failure: connection refused");
        assert!(failure.next().is_some_and(|next| next.contains("make up")));
    }

    #[test]
    fn its_next_step_goes_to_the_stack_that_was_named_and_a_program_reads_the_same() {
        let failure = Failure::unreachable("gone").with_next("`oncehook stuck` says why");
        let failure = failure.on(Some("prod"));
        let said = r#"{"error":"gone","exit":3,"next":"`oncehook stuck --stack prod` says why"}"#;
        assert_eq!(serde_json::json!(failure).to_string(), said);
    }

    #[test]
    fn a_wrong_call_ends_with_2() {
        assert_eq!(Failure::usage("no such source").code(), 2);
    }
}
