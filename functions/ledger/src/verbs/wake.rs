//! Wake: the part of a transaction that makes a waiting row due at once, so that the sweeper
//! sends it even if nobody else does. Never written alone.

use super::{Found, look};
use crate::{Bucket, EventKey, Life, Millis, Open, Status};

/// Whose turn it has become.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wake {
    /// The row that waits.
    pub key: EventKey,
}

/// The waiting row made due at `now`; `None` if it does not wait.
pub(super) fn wake(found: Option<&Life>, ask: &Wake, now: Millis) -> Option<Life> {
    match look(found) {
        Found::Known(life) if life.status == Status::Waiting => Some(Life {
            open: Some(Open { bucket: Bucket::Pending(ask.key.shard()), due_at: now }),
            ..life.clone()
        }),
        Found::Known(_) | Found::Missing | Found::UnknownFormat => None,
    }
}
