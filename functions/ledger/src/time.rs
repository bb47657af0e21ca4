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
    /// The UTC date as `yyyy-mm-dd`. Years beyond 9999 read `9999-12-31`.
    #[must_use]
    pub fn date(self) -> String {
        let whole_ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(whole_ms)
            .unwrap_or(jiff::Timestamp::MAX)
            .strftime("%Y-%m-%d")
            .to_string()
    }
}
