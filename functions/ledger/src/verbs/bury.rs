//! Bury: the row is dead, with its reason. A permanent failure is buried at once, a spent budget
//! by its last holder, and a row whose workers all died without a word by force.

use super::{FenceRefusal, Found, fence_refusal, is_held, look};
use crate::{Bucket, Failure, FailureClass, Life, Millis, Open, Policy, Status};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bury {
    /// The holder's fence.
    pub epoch: u64,
    /// What went wrong; a permanent class needs no spent budget.
    pub failure: Failure,
    /// Where the dead row lies; see [`resting_place`].
    pub open: Open,
}

/// What a lease holder does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BuryRefusal {
    /// The fence.
    Fence(FenceRefusal),
    /// Still mine, and not out of budget: fail it instead.
    BudgetLeft,
}

/// What the steward, or a consumer that was refused, asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForcedBury {
    /// "the worker died N times".
    pub failure: Failure,
    /// The asker's clock.
    pub now: Millis,
    /// Where the dead row lies; see [`resting_place`].
    pub open: Open,
}

/// What the asker does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForcedBuryRefusal {
    /// My own burial, whose answer was lost.
    Mine,
    /// The row has moved on: leave it.
    MovedOn,
    /// No such row.
    Missing,
    /// Written by a newer build: touch nothing.
    UnknownFormat,
}

/// The bucket of a row that dies: parked when only a person can help, else dead with the time of
/// its next automatic redrive.
#[must_use]
pub fn resting_place(
    shard: u8,
    class: FailureClass,
    redrives: u32,
    failed_at: Millis,
    next_redrive: Millis,
    policy: &Policy,
) -> Open {
    if class == FailureClass::Permanent || redrives >= policy.redrives_max {
        Open {
            bucket: Bucket::Parked(shard),
            due_at: failed_at,
        }
    } else {
        Open {
            bucket: Bucket::Dead(shard),
            due_at: next_redrive,
        }
    }
}

/// Buries a row that the caller holds.
pub fn bury(found: Option<&Life>, ask: &Bury, policy: &Policy) -> Result<Life, BuryRefusal> {
    match found {
        Some(life) if is_held(life, ask.epoch) && may_bury(life, &ask.failure, policy) => {
            Ok(buried(life, &ask.failure, ask.open))
        }
        Some(_) | None => Err(refusal(found, ask, policy)),
    }
}

fn may_bury(life: &Life, failure: &Failure, policy: &Policy) -> bool {
    failure.class == FailureClass::Permanent || life.attempts >= policy.attempts_max
}

fn buried(life: &Life, failure: &Failure, open: Open) -> Life {
    Life {
        status: Status::Dead,
        failure: Some(failure.clone()),
        open: Some(open),
        lease: None,
        waiting_since: None,
        ..life.clone()
    }
}

fn is_my_burial(life: &Life, failure: &Failure) -> bool {
    life.status == Status::Dead && life.failure.as_ref().map(|f| f.at) == Some(failure.at)
}

/// Reads a refused burial.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Bury, policy: &Policy) -> BuryRefusal {
    if found.is_some_and(|life| is_held(life, ask.epoch) && !may_bury(life, &ask.failure, policy)) {
        return BuryRefusal::BudgetLeft;
    }
    BuryRefusal::Fence(fence_refusal(found, |life| {
        life.epoch == ask.epoch && is_my_burial(life, &ask.failure)
    }))
}

/// Buries a row whose budget was spent by workers that died.
pub fn forced_bury(
    found: Option<&Life>,
    ask: &ForcedBury,
    policy: &Policy,
) -> Result<Life, ForcedBuryRefusal> {
    match look(found) {
        Found::Known(life) if is_abandoned(life, ask.now, policy) => {
            Ok(buried(life, &ask.failure, ask.open))
        }
        Found::Known(_) | Found::Missing | Found::UnknownFormat => Err(forced_refusal(found, ask)),
    }
}

/// Whether a row's budget is spent and nobody can be working on it.
#[must_use]
pub fn is_abandoned(life: &Life, now: Millis, policy: &Policy) -> bool {
    life.attempts >= policy.attempts_max
        && match life.status {
            Status::Claimed | Status::Failed | Status::Waiting => true,
            Status::Processing => life.lease.is_some_and(|lease| lease.until < now),
            Status::Dead | Status::Settled => false,
        }
}

/// Reads a refused forced burial.
#[must_use]
pub fn forced_refusal(found: Option<&Life>, ask: &ForcedBury) -> ForcedBuryRefusal {
    match look(found) {
        Found::Missing => ForcedBuryRefusal::Missing,
        Found::UnknownFormat => ForcedBuryRefusal::UnknownFormat,
        Found::Known(life) if is_my_burial(life, &ask.failure) => ForcedBuryRefusal::Mine,
        Found::Known(_) => ForcedBuryRefusal::MovedOn,
    }
}
