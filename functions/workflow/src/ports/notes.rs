//! What a scheduled function leaves to its next run. Notes are hints: every act is conditional.

use super::{OpenEntry, PortError};
use ledger::{Bucket, Millis};
use std::future::Future;

/// What one steward run leaves to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StewardNotes {
    /// When dead rows were last redriven.
    pub redriven_at: Millis,
    /// When the dead-letter queue was last cleared of settled rows.
    pub cleared_at: Millis,
    /// The build whose walk through the parked rows is finished.
    pub walked_release: String,
    /// The build whose walk is unfinished.
    pub walk_release: String,
    /// The bucket it stands in.
    pub walk_bucket: Option<Bucket>,
    /// The entry behind which it goes on.
    pub walk_after: Option<OpenEntry>,
}

/// Notes that a scheduled function leaves to its next run, by name.
pub trait Notes: Send + Sync {
    /// Reads one.
    fn note(&self, name: &str) -> impl Future<Output = Result<Option<String>, PortError>> + Send;
    /// Writes one. The last writer wins: notes are hints, every act is conditional.
    fn write_note(
        &self,
        name: &str,
        text: &str,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
}
