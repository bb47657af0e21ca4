//! Why a leased row was not settled. Each cause carries its class from where it arose.

use crate::{
    body::BodyError,
    ports::{PortError, Trouble},
    projection::ProjectionError,
};
use ledger::{FailureClass, Millis, verbs::FenceRefusal};

/// Why a leased row was not settled.
pub(super) enum Trip {
    /// Its own fault or its destination's: counts against the budget.
    Failed { error: String, class: FailureClass, retry_after_ms: Option<u64> },
    /// The store's fault: gives the attempt back. Of the time the row has waited, so much was for
    /// something else.
    Throttled { error: String, excused_ms: u64 },
    /// It is not the event's turn to be asked about: gives the attempt back, however often.
    NotYet { at: Millis },
    /// The lease is lost: another worker has the row, or it is finished.
    Fenced(FenceRefusal),
}

impl From<PortError> for Trip {
    fn from(error: PortError) -> Self {
        match error.trouble {
            Trouble::Throttled | Trouble::Conflict => Self::throttled(error.to_string()),
            Trouble::Unavailable => Self::failed(error.to_string(), FailureClass::Transient),
            Trouble::Invalid => Self::failed(error.to_string(), FailureClass::Permanent),
        }
    }
}

impl From<ProjectionError> for Trip {
    fn from(error: ProjectionError) -> Self {
        let retry_after_ms = error.retry_after_ms();
        Self::Failed { class: error.class(), retry_after_ms, error: error.to_string() }
    }
}

impl From<BodyError> for Trip {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Port(error) => error.into(),
            BodyError::ChunkMissing { .. } | BodyError::Garbled(_) | BodyError::Altered => {
                Self::failed(error.to_string(), FailureClass::Permanent)
            }
        }
    }
}

impl Trip {
    pub(super) const fn throttled(error: String) -> Self {
        Self::Throttled { error, excused_ms: 0 }
    }

    /// The same for an event whose wait for its predecessor, of `timeout_ms`, is over. A failed run
    /// forgets how long the row has waited, and it would wait all of it again; so what may pass is
    /// waited for instead.
    pub(super) fn after_a_gap(self, timeout_ms: u64) -> Self {
        match self {
            Self::Throttled { error, .. }
            | Self::Failed {
                error,
                class: FailureClass::Transient | FailureClass::RateLimited,
                ..
            } => Self::Throttled { error, excused_ms: timeout_ms },
            Self::Failed { .. } | Self::NotYet { .. } | Self::Fenced(_) => self,
        }
    }

    pub(super) const fn failed(error: String, class: FailureClass) -> Self {
        Self::Failed { error, class, retry_after_ms: None }
    }
}
