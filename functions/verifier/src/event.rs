//! What a verified delivery contains: one event or many, or the reason why it cannot be used.
//!
//! An unusable delivery is authentic, so nobody may drop it: the reason travels with the event type
//! where one is known, and the caller keeps the bytes.

use std::borrow::Cow;

/// One thing with an id that a delivery carries.
#[derive(Clone, PartialEq, Eq)]
pub struct Event<'b> {
    /// The provider's own event id, or the one the preset composes. Never empty, no control
    /// characters, compared as bytes.
    pub id: String,
    /// The provider's event type; empty where the provider has none.
    pub event_type: String,
    /// `Some(true)` for a live-mode event, `Some(false)` for a test-mode one.
    pub live: Option<bool>,
    /// SHA-256 of what the preset says identifies a resend. `None`: nothing to compare.
    pub identity: Option<[u8; 32]>,
    /// What proves this event and no other, such as the id of a signed transmission, where the
    /// preset says that the proof itself does not cover the body. Another event under the same
    /// value is not to be worked.
    pub proof: Option<String>,
    /// When it happened, by the provider's word, in milliseconds since the Unix epoch.
    pub occurred_at_ms: Option<u64>,
    /// This event's bytes: the whole body, or its slice of a batch.
    pub body: Cow<'b, [u8]>,
    /// Why this element of a batch cannot be used, while its neighbours can. Its `id` is then
    /// `sha256:` and the hash of its bytes. Always `None` outside a batch.
    pub unusable: Option<UnusableReason>,
}

impl Event<'_> {
    /// The same event, owning its bytes.
    pub(crate) fn into_owned(self) -> Event<'static> {
        Event {
            id: self.id,
            event_type: self.event_type,
            live: self.live,
            identity: self.identity,
            proof: self.proof,
            occurred_at_ms: self.occurred_at_ms,
            body: Cow::Owned(self.body.into_owned()),
            unusable: self.unusable,
        }
    }
}

impl std::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event")
            .field("id", &self.id)
            .field("event_type", &self.event_type)
            .field("live", &self.live)
            .field("occurred_at_ms", &self.occurred_at_ms)
            .field("body_bytes", &self.body.len())
            .field("unusable", &self.unusable)
            .finish_non_exhaustive()
    }
}

/// A verified delivery that cannot become rows of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[must_use]
pub struct Unusable {
    /// What is wrong with it.
    pub reason: UnusableReason,
    /// The event type, where it could still be read.
    pub event_type: Option<String>,
}

/// What makes a verified delivery unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableReason {
    /// The body is not UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// The body is not JSON, or not the JSON this provider sends.
    #[error("the body is not usable JSON at line {line}, column {column}")]
    NotJson {
        /// Line of the first error, counted from 1; 0 when the shape is wrong as a whole.
        line: usize,
        /// Column of the first error.
        column: usize,
    },
    /// The body is not the form the provider sends.
    #[error("the body is not the form this provider sends: expected {expected}")]
    NotForm {
        /// What it should be.
        expected: String,
    },
    /// No usable event id where the preset says it is.
    #[error("no usable event id at {at}")]
    NoEventId {
        /// Where it should be.
        at: String,
    },
    /// More events in one delivery than is allowed.
    #[error("{found} events in one delivery, at most {max} are taken")]
    TooManyEvents {
        /// How many there are.
        found: usize,
        /// The limit.
        max: usize,
    },
    /// A key that decides identity appears twice in one object.
    #[error("the key at {at} appears twice in one object")]
    DuplicateKey {
        /// Its pointer.
        at: String,
    },
    /// The batch is not where the preset says it is.
    #[error("no list of events at {at}")]
    NoBatch {
        /// Where it should be.
        at: String,
    },
    /// A value that this source requires of every event is missing.
    #[error("this source requires {at} and the event has none")]
    RequiredMissing {
        /// Where it should be.
        at: String,
    },
}

impl UnusableReason {
    /// A stable `snake_case` name for metrics and logs.
    #[must_use]
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::NotUtf8 => "not_utf8",
            Self::NotJson { .. } => "not_json",
            Self::NotForm { .. } => "not_form",
            Self::NoEventId { .. } => "no_event_id",
            Self::TooManyEvents { .. } => "too_many_events",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::NoBatch { .. } => "no_batch",
            Self::RequiredMissing { .. } => "required_missing",
        }
    }
}
