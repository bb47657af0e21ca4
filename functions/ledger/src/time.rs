//! Points in time as plain numbers.
//!
//! Rows store milliseconds, the time-to-live attribute stores seconds; one type each keeps the
//! two from meeting. Arithmetic saturates: a row from a clock gone mad must not panic a worker.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// Seconds since the Unix epoch, UTC, as DynamoDB's time to live wants them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seconds(pub u64);

impl Millis {
    /// Later than anything that is due: what is open before this is all that is open. Half of the
    /// range, so that a store that keeps signed numbers holds it too.
    pub const END_OF_TIME: Self = Self(u64::MAX >> 1);

    /// This time, `ms` later.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This time, `ms` earlier.
    #[must_use]
    pub const fn minus(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Milliseconds from `earlier` to this time; zero where `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The whole second this time lies in, plus `seconds`.
    #[must_use]
    pub const fn seconds_after(self, seconds: u64) -> Seconds {
        Seconds((self.0 / 1_000).saturating_add(seconds))
    }
}

impl Millis {
    /// The UTC date as `yyyy-mm-dd`. Years beyond 9999 read `9999-12-30`.
    #[must_use]
    pub fn date(self) -> String {
        let whole_ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(whole_ms)
            .unwrap_or(jiff::Timestamp::MAX)
            .strftime("%Y-%m-%d")
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_date_of_utc_and_no_clock_is_too_mad_for_one() {
        assert_eq!(Millis(0).date(), "1970-01-01");
        assert_eq!(Millis(1_767_225_599_999).date(), "2025-12-31");
        assert_eq!(Millis(1_767_225_600_000).date(), "2026-01-01");
        assert_eq!(Millis(u64::MAX).date(), "9999-12-30");
    }

    #[test]
    fn arithmetic_ends_at_the_edges_of_time() {
        assert_eq!(Millis(u64::MAX).plus(1), Millis(u64::MAX));
        assert_eq!(Millis(1).minus(2), Millis(0));
        assert_eq!((Millis(5).since(Millis(3)), Millis(3).since(Millis(5))), (2, 0));
        assert_eq!(Millis(1_999).seconds_after(10), Seconds(11));
    }
}
