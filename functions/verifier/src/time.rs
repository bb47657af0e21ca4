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
            Self::Iso => {
                jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?.to_string()
            }
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
    pub(crate) fn check(
        self,
        signed_ms: u64,
        now_ms: u64,
        unit: TimeUnit,
    ) -> Result<(), Rejection> {
        let now_ms = match unit {
            TimeUnit::S => now_ms.saturating_sub(now_ms.checked_rem(1_000).unwrap_or(0)),
            TimeUnit::Ms | TimeUnit::Iso => now_ms,
        };
        let age_ms = now_ms.saturating_sub(signed_ms);
        let lead_ms = signed_ms.saturating_sub(now_ms);
        let past_ms = self.past_s.saturating_mul(1_000);
        let future_ms = self.future_s.saturating_mul(1_000);
        if age_ms > past_ms {
            return Err(Rejection::TooOld { by_s: age_ms.saturating_sub(past_ms).div_ceil(1_000) });
        }
        if lead_ms > future_ms {
            return Err(Rejection::TooNew {
                by_s: lead_ms.saturating_sub(future_ms).div_ceil(1_000),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::TimeUnit;

    #[test]
    fn a_time_has_its_full_length_and_no_ornament() {
        assert_eq!(TimeUnit::S.parse_ms("1700000000"), Some(1_700_000_000_000));
        assert_eq!(TimeUnit::Ms.parse_ms("1700000000123"), Some(1_700_000_000_123));
        for text in ["", "0", "170000000", "17000000000", "0170000000", "+170000000", "1700000 00"]
        {
            assert_eq!(TimeUnit::S.parse_ms(text), None, "{text}");
        }
        assert_eq!(TimeUnit::Ms.parse_ms("1700000000"), None);
        assert_eq!(TimeUnit::S.parse_ms("١٧٠٠٠٠٠٠٠٠"), None, "other digits");
    }

    #[test]
    fn iso_times_carry_their_zone() {
        let expected = Some(1_557_155_734_121);
        assert_eq!(TimeUnit::Iso.parse_ms("2019-05-06T17:15:34.121+02:00"), expected);
        assert_eq!(TimeUnit::Iso.parse_ms("2019-05-06T15:15:34.121Z"), expected);
        for text in ["2019-05-06T15:15:34", "2019-05-06", "1557155734", "1900-01-01T00:00:00Z", ""]
        {
            assert_eq!(TimeUnit::Iso.parse_ms(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let ms = 1_700_000_000_123;
        for (unit, back) in
            [(TimeUnit::S, 1_700_000_000_000), (TimeUnit::Ms, ms), (TimeUnit::Iso, ms)]
        {
            let text = unit.write(ms).expect("in range");
            assert_eq!(unit.parse_ms(&text), Some(back), "{text}");
        }
        for unit in [TimeUnit::S, TimeUnit::Ms, TimeUnit::Iso] {
            assert_eq!(unit.write(u64::MAX), None);
        }
    }
}
