//! Times that providers write, and the window in which a signed time is accepted.
//!
//! A number must have its full length (ten digits of seconds or thirteen of milliseconds, which
//! holds from 2001 to 2286): schemes that join time and body without a separator would otherwise
//! let a digit wander from one to the other under the same signature.

use crate::Rejection;

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    /// Ten digits: seconds since the Unix epoch.
    S,
    /// Thirteen digits: milliseconds since the Unix epoch.
    Ms,
    /// RFC 3339 with `Z` or an offset.
    Iso,
}

impl TimeUnit {
    pub(crate) const CHOICES: &'static [(&'static str, Self)] =
        &[("s", Self::S), ("ms", Self::Ms), ("iso", Self::Iso)];

    /// Milliseconds since the Unix epoch, if `text` is a full-length time of this unit.
    pub(crate) fn parse_ms(self, text: &str) -> Option<u64> {
        match self {
            Self::S => digits(text, 10)?.checked_mul(1_000),
            Self::Ms => digits(text, 13),
            Self::Iso => {
                let time: jiff::Timestamp = text.parse().ok()?;
                u64::try_from(time.as_millisecond()).ok()
            }
        }
    }

    /// `ms` written in this unit.
    pub(crate) fn write(self, ms: u64) -> Option<String> {
        let text = match self {
            Self::S => ms.checked_div(1_000)?.to_string(),
            Self::Ms => ms.to_string(),
            Self::Iso => jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?)
                .ok()?
                .to_string(),
        };
        self.parse_ms(&text).map(|_| text)
    }

    /// The form operators should see.
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::S => "ten digits of Unix seconds",
            Self::Ms => "thirteen digits of Unix milliseconds",
            Self::Iso => "an RFC 3339 time",
        }
    }
}

fn digits(text: &str, length: usize) -> Option<u64> {
    let plain = text.len() == length
        && !text.starts_with('0')
        && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// How far a signed time may lie from now. Both limits are inclusive, and now is cut to the unit
/// of the signed time first, so `past_s = 300` accepts a second-stamped request for 300 whole
/// seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) past_s: u64,
    pub(crate) future_s: u64,
}

impl Window {
    /// Refuses a signed time outside the window.
    pub(crate) fn check(self, signed_ms: u64, now_ms: u64, unit: TimeUnit) -> Result<(), Rejection> {
        let now_ms = match unit {
            TimeUnit::S => now_ms.saturating_sub(now_ms.checked_rem(1_000).unwrap_or(0)),
            TimeUnit::Ms | TimeUnit::Iso => now_ms,
        };
        let age_ms = now_ms.saturating_sub(signed_ms);
        let lead_ms = signed_ms.saturating_sub(now_ms);
        let past_ms = self.past_s.saturating_mul(1_000);
        let future_ms = self.future_s.saturating_mul(1_000);
        if age_ms > past_ms {
            return Err(Rejection::TooOld {
                by_s: age_ms.saturating_sub(past_ms).div_ceil(1_000),
            });
        }
        if lead_ms > future_ms {
            return Err(Rejection::TooNew {
                by_s: lead_ms.saturating_sub(future_ms).div_ceil(1_000),
            });
        }
        Ok(())
    }
}
