//! Sweep: push an overdue row's next look into the future, *then* send its message. A crash in
//! between costs one distance, never the event.

use super::{Found, look};
use crate::{Bucket, Life, Millis, Open, Policy, next_sweep_due};

/// What the steward asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// The `due_at` it saw.
    pub seen_due_at: Millis,
    /// The steward's clock.
    pub now: Millis,
    /// The row's partition.
    pub shard: u8,
    /// The row's `sweeps` as the steward read it; decides the next distance.
    pub sweeps: u32,
}

/// What the steward does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SweepRefusal {
    /// My own sweep, whose answer was lost: send.
    Mine,
    /// Somebody moved it: leave it.
    MovedOn,
    /// No such row.
    Missing,
    /// Written by a newer build: touch nothing.
    UnknownFormat,
}

impl Sweep {
    /// When the row is looked at again.
    #[must_use]
    pub fn next_due_at(&self, policy: &Policy) -> Millis {
        next_sweep_due(self.sweeps, self.now, policy)
    }
}

/// Pushes a pending row's due time forward.
pub fn sweep(found: Option<&Life>, ask: &Sweep, policy: &Policy) -> Result<Life, SweepRefusal> {
    let seen = Open {
        bucket: Bucket::Pending(ask.shard),
        due_at: ask.seen_due_at,
    };
    match look(found) {
        Found::Known(life) if life.open == Some(seen) => Ok(Life {
            open: Some(Open {
                bucket: seen.bucket,
                due_at: ask.next_due_at(policy),
            }),
            sweeps: life.sweeps.saturating_add(1),
            ..life.clone()
        }),
        Found::Known(_) | Found::Missing | Found::UnknownFormat => Err(refusal(found, ask, policy)),
    }
}

/// Reads a refused sweep.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Sweep, policy: &Policy) -> SweepRefusal {
    let next = Open {
        bucket: Bucket::Pending(ask.shard),
        due_at: ask.next_due_at(policy),
    };
    match look(found) {
        Found::Missing => SweepRefusal::Missing,
        Found::UnknownFormat => SweepRefusal::UnknownFormat,
        Found::Known(life) if life.open == Some(next) => SweepRefusal::Mine,
        Found::Known(_) => SweepRefusal::MovedOn,
    }
}
