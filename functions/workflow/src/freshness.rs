//! When a secret that is kept in memory is read again.
//!
//! It is fresh for five minutes. When the store does not answer, what was read serves for an hour
//! more, and the store is asked again every ten seconds. A refused signature or key may have it
//! read at once, since what was rotated looks like what is wrong, but once a minute at most.

use ledger::Millis;

const FRESH_MS: u64 = 300_000;
const STALE_MS: u64 = 3_600_000;
const REFRESH_EVERY_MS: u64 = 60_000;
const RETRY_EVERY_MS: u64 = 10_000;

/// When something was read, and when that was last tried.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Freshness {
    read_at: Option<Millis>,
    tried_at: Option<Millis>,
}

impl Freshness {
    /// Whether it is time to read again.
    pub(crate) fn is_due(&self, now: Millis) -> bool {
        let age = self.read_at.map_or(u64::MAX, |at| now.since(at));
        // With nothing usable in hand there is nothing to serve meanwhile: every request asks.
        let rested =
            age >= STALE_MS || self.tried_at.is_none_or(|at| now.since(at) >= RETRY_EVERY_MS);
        age >= FRESH_MS && rested
    }

    /// Whether what was read may still be used.
    pub(crate) fn is_usable(&self, now: Millis) -> bool {
        self.read_at.is_some_and(|at| now.since(at) < STALE_MS)
    }

    /// Whether a refusal may have it read at once.
    pub(crate) fn may_refresh(&self, now: Millis) -> bool {
        self.tried_at.is_none_or(|at| now.since(at) >= REFRESH_EVERY_MS)
    }

    pub(crate) const fn tried(&mut self, now: Millis) {
        self.tried_at = Some(now);
    }

    pub(crate) const fn read(&mut self, now: Millis) {
        self.read_at = Some(now);
    }
}
