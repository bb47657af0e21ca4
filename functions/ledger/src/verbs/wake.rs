//! Wake: the part of a transaction that makes the next row of a sequence due at once, so that the
//! sweeper sends it even if nobody else does. Never written alone.
//!
//! Condition: known format, and `waiting` or `processing`. A row that was leased out of its wait
//! keeps the wait's far `due_at`; if its worker died meanwhile, a wake that asked for `waiting`
//! alone would leave it asleep until the sequence's timeout. Rows of every other status have
//! their own, near, time or are at rest.

use super::{Found, look};
use crate::{Bucket, EventKey, Life, Millis, Open, Status};

/// Whose turn it has become.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wake {
    /// The row that waits.
    pub key: EventKey,
}

/// The row made due at `now`; `None` if there is nobody to wake.
pub(super) fn wake(found: Option<&Life>, ask: &Wake, now: Millis) -> Option<Life> {
    match look(found) {
        Found::Known(life) if matches!(life.status, Status::Waiting | Status::Processing) => {
            Some(Life {
                open: Some(Open { bucket: Bucket::Pending(ask.key.shard()), due_at: now }),
                ..life.clone()
            })
        }
        Found::Known(_) | Found::Missing | Found::UnknownFormat => None,
    }
}
