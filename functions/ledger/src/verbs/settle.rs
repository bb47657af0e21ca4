//! Settle: finish a row that changes no entity, because nothing is configured for its type or
//! every change was superseded. Rows with changes settle inside [`super::apply`].

use super::{FenceRefusal, claim::expiry, fence_refusal, is_held};
use crate::{Life, Millis, Outcome, Policy, Status};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settle {
    /// The holder's fence.
    pub epoch: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Fixed once per attempt.
    pub settled_at: Millis,
}

/// Settles a row.
pub fn settle(found: Option<&Life>, ask: &Settle, policy: &Policy) -> Result<Life, FenceRefusal> {
    match found {
        Some(life) if is_held(life, ask.epoch) => {
            Ok(settled(life, ask.outcome, ask.settled_at, policy))
        }
        Some(_) | None => Err(refusal(found, ask)),
    }
}

/// The life after settling.
pub(super) fn settled(life: &Life, outcome: Outcome, settled_at: Millis, policy: &Policy) -> Life {
    Life {
        status: Status::Settled,
        outcome: Some(outcome),
        settled_at: Some(settled_at),
        expires_at: Some(expiry(settled_at, policy)),
        open: None,
        lease: None,
        waiting_since: None,
        ..life.clone()
    }
}

/// Reads a refused settle.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Settle) -> FenceRefusal {
    fence_refusal(found, |life| is_my_settle(life, ask.epoch, ask.settled_at))
}

/// Whether the row stands as the settle of `epoch` at `settled_at` leaves it.
pub(super) fn is_my_settle(life: &Life, epoch: u64, settled_at: Millis) -> bool {
    life.status == Status::Settled && life.epoch == epoch && life.settled_at == Some(settled_at)
}
