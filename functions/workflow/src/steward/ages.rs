//! How old the oldest unfinished event is, which an alarm watches, and the oldest that waits by design.
//!
//! The index knows when an event came and not what its row is doing, so rows are read, the oldest first,
//! until none that is left can be older than what was found: one or two, unless many wait. An event that
//! came a moment ago is not read at all.

use super::{AT_ONCE, Run};
use crate::ports::{OpenEntry, StewardPorts};
use futures::{StreamExt, stream};
use ledger::Age;

/// What is no older than this is taken for what the index says, unread. The alarm is for five minutes.
const YOUNG_MS: u64 = 120_000;
/// Rows read at most. Should as many wait, the next one counts as unfinished: an alarm too many, not
/// one too few.
const READS_MAX: usize = 2_000;

impl<P: StewardPorts> Run<'_, P> {
    /// Finds the ages among the pending rows.
    pub(super) async fn measure(&mut self, mut entries: Vec<OpenEntry>) {
        entries.sort_by_key(|entry| entry.received_at);
        let (ports, now) = (&*self.steward.ports, self.now);
        for (n, chunk) in entries.chunks(AT_ONCE).enumerate() {
            let most_ms = chunk.first().map_or(0, |entry| now.since(entry.received_at));
            if most_ms <= self.tally.oldest_pending_ms {
                return;
            }
            let is_young = most_ms <= YOUNG_MS;
            if is_young || n * AT_ONCE >= READS_MAX || self.out_of_time() {
                self.tally.oldest_pending_ms = most_ms;
                return;
            }
            let reads = stream::iter(chunk).map(|entry| async move {
                ports.row(&entry.key).await.map_err(|error| (entry, error))
            });
            let rows: Vec<_> = reads.buffer_unordered(AT_ONCE).collect().await;
            for row in rows {
                let found = match row {
                    Ok(row) => row.and_then(|row| {
                        ledger::age(&row.life, row.evidence.received_at, now, &self.steward.policy)
                    }),
                    Err((entry, error)) => {
                        self.trouble("the age of a row could not be read", &error);
                        Some(Age::Unfinished { ms: now.since(entry.received_at) })
                    }
                };
                match found {
                    Some(Age::Unfinished { ms }) => {
                        self.tally.oldest_pending_ms = self.tally.oldest_pending_ms.max(ms);
                    }
                    Some(Age::Waits { ms }) => {
                        self.tally.oldest_waiting_ms = self.tally.oldest_waiting_ms.max(ms);
                    }
                    None => {}
                }
            }
        }
    }
}
