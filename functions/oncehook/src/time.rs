//! Times as people write and read them: UTC always, with the age beside it.
//!
//! An operator compares times with those of logs, of a provider's dashboard and of a colleague in
//! another zone, so nothing here knows a local zone. `now` is passed in.

use ledger::Millis;
use serde::{Deserialize, Serialize};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A time on the command line: an age, or a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moment {
    /// This many milliseconds before now.
    Ago(u64),
    /// This point.
    At(Millis),
}

impl Moment {
    /// Reads `90s`, `15m`, `2h`, `3d`, an RFC 3339 time, or Unix seconds.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(ms) = duration(text) {
            return Ok(Self::Ago(ms));
        }
        instant(text).map(Self::At)
    }

    /// The point, given now.
    pub(crate) fn resolve(self, now: Millis) -> Millis {
        match self {
            Self::Ago(ms) => now.minus(ms),
            Self::At(at) => at,
        }
    }
}

/// Reads an RFC 3339 time, or Unix seconds (milliseconds, where there are thirteen digits).
pub(crate) fn instant(text: &str) -> Result<Millis, String> {
    let expected =
        || format!("{text:?} is no time; write 15m, 2h, 3d, 2026-11-30T13:00:00Z, or Unix seconds");
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: u64 = text.parse().map_err(|_| expected())?;
        return Ok(Millis(if text.len() >= 13 { number } else { number.saturating_mul(SECOND) }));
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| expected())?;
    u64::try_from(time.as_millisecond()).map(Millis).map_err(|_| expected())
}

/// A whole number and one of s, m, h, d, in milliseconds.
fn duration(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        's' => SECOND,
        'm' => MINUTE,
        'h' => HOUR,
        'd' => DAY,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(unit)
}

/// `2026-11-30 13:05:07Z`.
pub(crate) fn utc(at: Millis) -> String {
    stamp(at).strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// `2026-11-30T13:05:07.123Z`, for machines.
pub(crate) fn rfc3339(at: Millis) -> String {
    stamp(at).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// `2026-11-30 13:05:07Z (2m ago)`.
pub(crate) fn when(at: Millis, now: Millis) -> String {
    format!("{} ({})", utc(at), relative(at, now))
}

/// `2m ago`, `in 40s`, `now`.
pub(crate) fn relative(at: Millis, now: Millis) -> String {
    if now.since(at) >= SECOND {
        format!("{} ago", span(now.since(at)))
    } else if at.since(now) >= SECOND {
        format!("in {}", span(at.since(now)))
    } else {
        "now".to_owned()
    }
}

/// A length of time in its largest unit, with the next one while the number is small: `42s`,
/// `1m 05s`, `17m`, `3h 10m`, `2d 4h`, `12d`.
pub(crate) fn span(ms: u64) -> String {
    let whole = |unit: u64| ms / unit;
    let rest = |unit: u64, of: u64| (ms % unit) / of;
    match ms {
        0..MINUTE => format!("{}s", whole(SECOND)),
        MINUTE..HOUR if whole(MINUTE) < 10 => {
            format!("{}m {:02}s", whole(MINUTE), rest(MINUTE, SECOND))
        }
        MINUTE..HOUR => format!("{}m", whole(MINUTE)),
        HOUR..DAY => format!("{}h {:02}m", whole(HOUR), rest(HOUR, MINUTE)),
        _ if whole(DAY) < 10 => format!("{}d {}h", whole(DAY), rest(DAY, HOUR)),
        _ => format!("{}d", whole(DAY)),
    }
}

/// The UTC days from `from` to `until`, newest first, as the index `by_day` names them.
pub(crate) fn days(from: Millis, until: Millis) -> impl Iterator<Item = String> {
    let first = from.0 / DAY;
    let last = until.0 / DAY;
    (first..=last).rev().map(|day| Millis(day.saturating_mul(DAY)).date())
}

/// Times beyond the calendar read as its last second.
fn stamp(at: Millis) -> jiff::Timestamp {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    const NOON: Millis = Millis(1_796_040_000_000);

    #[test]
    fn ages_and_points_are_both_understood() {
        let read = |text: &str| Moment::parse(text).unwrap().resolve(NOON);
        assert_eq!(read("15m"), NOON.minus(900_000));
        assert_eq!(read("2h"), NOON.minus(7_200_000));
        assert_eq!(read("3d"), NOON.minus(259_200_000));
        assert_eq!(read("2026-11-30T13:00:00+01:00"), NOON);
        assert_eq!(read("1796040000"), NOON);
        assert_eq!(read("1796040000000"), NOON);
    }

    #[test]
    fn what_is_no_time_is_answered_with_examples() {
        for bad in ["", "m", "yesterday", "5w", "-3h", "2026-11-30", "99999999999999999999"] {
            let said = Moment::parse(bad).unwrap_err();
            assert!(said.contains("15m") && said.contains("13:00:00Z"), "{said}");
        }
    }

    #[test]
    fn times_are_utc_to_the_second_with_their_age() {
        assert_eq!(utc(NOON), "2026-11-30 12:00:00Z");
        assert_eq!(rfc3339(NOON.plus(7)), "2026-11-30T12:00:00.007Z");
        assert_eq!(when(NOON, NOON.plus(65_000)), "2026-11-30 12:00:00Z (1m 05s ago)");
        assert_eq!(relative(NOON.plus(40_000), NOON), "in 40s");
        assert_eq!(relative(NOON, NOON.plus(999)), "now");
        assert_eq!(utc(Millis(u64::MAX)), "9999-12-30 22:00:00Z");
    }

    #[test]
    fn spans_name_their_largest_units() {
        let spans = [42_000, 65_000, 1_020_000, 11_400_000, 187_200_000, 1_036_800_000];
        let read: Vec<String> = spans.into_iter().map(span).collect();
        assert_eq!(read, ["42s", "1m 05s", "17m", "3h 10m", "2d 4h", "12d"]);
    }

    #[test]
    fn a_window_over_midnight_has_two_days_newest_first() {
        let read: Vec<String> = days(NOON.minus(DAY), NOON).collect();
        assert_eq!(read, ["2026-11-30", "2026-11-29"]);
        assert_eq!(days(NOON, NOON).count(), 1);
    }
}
