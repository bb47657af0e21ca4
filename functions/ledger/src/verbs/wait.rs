//! Wait: give the row back without fault, and the attempt with it. A throttled store is nobody's
//! failure, and neither is an event whose predecessor has not come yet.

use super::{FenceRefusal, fence_refusal, is_held};
use crate::{Bucket, Life, Millis, Open, Status};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The holder's fence.
    pub epoch: u64,
    /// The holder's clock.
    pub now: Millis,
    /// When to look again.
    pub retry_at: Millis,
    /// When the sweeper sends it, should nobody else.
    pub due_at: Millis,
    /// The row's partition.
    pub shard: u8,
}

/// What a lease holder does about a refusal.
pub type WaitRefusal = FenceRefusal;

/// Gives a row back without fault.
pub fn wait(found: Option<&Life>, ask: &Wait) -> Result<Life, WaitRefusal> {
    match found {
        Some(life) if is_held(life, ask.epoch) => Ok(Life {
            status: Status::Waiting,
            attempts: life.attempts.saturating_sub(1),
            waiting_since: life.waiting_since.or(Some(ask.now)),
            retry_at: Some(ask.retry_at),
            open: Some(Open {
                bucket: Bucket::Pending(ask.shard),
                due_at: ask.due_at,
            }),
            lease: None,
            ..life.clone()
        }),
        Some(_) | None => Err(refusal(found, ask)),
    }
}

/// Reads a refused wait. Only the holder of an epoch can wait under it, and it waits once.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Wait) -> WaitRefusal {
    fence_refusal(found, |life| {
        life.status == Status::Waiting
            && life.epoch == ask.epoch
            && life.retry_at == Some(ask.retry_at)
    })
}
