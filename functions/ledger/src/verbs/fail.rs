//! Fail: give the row back for another run.

use super::{FenceRefusal, fence_refusal, is_held};
use crate::{Failure, Life, Millis, Open, Policy, Status};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fail {
    /// The holder's fence.
    pub epoch: u64,
    /// What went wrong; its time is fixed once per attempt.
    pub failure: Failure,
    /// Not to be leased before.
    pub retry_at: Millis,
    /// The row's partition.
    pub shard: u8,
}

/// What a lease holder does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailRefusal {
    /// The fence.
    Fence(FenceRefusal),
    /// Still mine, but that was the last run: bury it.
    OutOfBudget,
}

/// Gives a row back.
pub fn fail(found: Option<&Life>, ask: &Fail, policy: &Policy) -> Result<Life, FailRefusal> {
    match found {
        Some(life) if is_held(life, ask.epoch) && life.attempts < policy.attempts_max => Ok(Life {
            status: Status::Failed,
            failure: Some(ask.failure.clone()),
            retry_at: Some(ask.retry_at),
            open: Some(Open {
                bucket: crate::Bucket::Pending(ask.shard),
                due_at: ask.retry_at.plus(policy.retry_grace_ms),
            }),
            lease: None,
            waiting_since: None,
            ..life.clone()
        }),
        Some(_) | None => Err(refusal(found, ask, policy)),
    }
}

/// Reads a refused fail.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Fail, policy: &Policy) -> FailRefusal {
    if found.is_some_and(|life| is_held(life, ask.epoch) && life.attempts >= policy.attempts_max) {
        return FailRefusal::OutOfBudget;
    }
    FailRefusal::Fence(fence_refusal(found, |life| {
        life.status == Status::Failed
            && life.epoch == ask.epoch
            && life.failure.as_ref().map(|failure| failure.at) == Some(ask.failure.at)
            && life.retry_at == Some(ask.retry_at)
    }))
}
