//! Versions: the integers the guard compares.
//!
//! A provider's version is a counter or a timestamp. Counters are taken as they are, up to the 38
//! digits a DynamoDB number keeps; timestamps become microseconds UTC whatever their zone,
//! precision or unit, so that `2026-01-01T01:00:00+01:00` and `2026-01-01T00:00:00.000Z` are the
//! same version. Nothing is ever rounded to a float, and nothing unreadable becomes zero: an
//! unreadable version is an error that says what was found.

use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The last time of ten digits of seconds, in microseconds: seconds read as milliseconds lie far
/// before it, and milliseconds read as seconds far behind.
const LATEST_US: i128 = 9_999_999_999_999_999;

/// Digits a DynamoDB number keeps.
const DIGITS_MAX: usize = 38;

/// What an entity's writes are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(i128);

/// How a provider's version is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A counter.
    #[default]
    Integer,
    /// Unix time in seconds, fractions allowed.
    S,
    /// Unix time in milliseconds, fractions allowed.
    Ms,
    /// Unix time in microseconds.
    Us,
    /// An RFC 3339 timestamp with its zone.
    Iso,
}

/// Why a value is no version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VersionError {
    /// The field is absent.
    #[error("the version is missing")]
    Missing,
    /// The field is `null`.
    #[error("the version is null")]
    Null,
    /// The field is an object, a list or a boolean.
    #[error("the version is {found}, expected a number or text")]
    Kind {
        /// The JSON kind found.
        found: &'static str,
    },
    /// The text is no number of the declared unit, or no timestamp.
    #[error("the version {found:?} is no {expected}")]
    Unreadable {
        /// The text, shortened.
        found: String,
        /// What the unit asks for.
        expected: &'static str,
    },
    /// More than 38 digits.
    #[error("the version has more than {DIGITS_MAX} digits")]
    TooLong,
    /// A time that is no time of an event.
    #[error("the version is a time after the year 2286: is it written in another unit?")]
    TooLate,
}

impl Version {
    /// A version of at most 38 digits.
    pub fn new(number: i128) -> Result<Self, VersionError> {
        if number.unsigned_abs() < 10_u128.pow(38) {
            Ok(Self(number))
        } else {
            Err(VersionError::TooLong)
        }
    }

    /// Reads the version at its place in an event; `None` where the event has no such place.
    pub fn read(value: Option<&serde_json::Value>, unit: Unit) -> Result<Self, VersionError> {
        use serde_json::Value;
        match value {
            None => Err(VersionError::Missing),
            Some(Value::Null) => Err(VersionError::Null),
            Some(Value::Bool(_)) => Err(VersionError::Kind { found: "a boolean" }),
            Some(Value::Array(_)) => Err(VersionError::Kind { found: "a list" }),
            Some(Value::Object(_)) => Err(VersionError::Kind { found: "an object" }),
            Some(Value::Number(number)) => Self::from_text(&number.to_string(), unit),
            Some(Value::String(text)) => Self::from_text(text, unit),
        }
    }

    /// Reads a version written as text.
    pub fn from_text(text: &str, unit: Unit) -> Result<Self, VersionError> {
        let version = Self::unbounded(text, unit)?;
        match unit {
            // Nothing newer would ever come after it, and its entity would stand still.
            Unit::S | Unit::Ms | Unit::Us | Unit::Iso if version.0 > LATEST_US => {
                Err(VersionError::TooLate)
            }
            Unit::Integer | Unit::S | Unit::Ms | Unit::Us | Unit::Iso => Ok(version),
        }
    }

    fn unbounded(text: &str, unit: Unit) -> Result<Self, VersionError> {
        match unit {
            Unit::Integer => decimal(text, 0, Fraction::Refused, "integer"),
            Unit::S => decimal(text, 6, Fraction::Truncated, "Unix time in seconds"),
            Unit::Ms => decimal(text, 3, Fraction::Truncated, "Unix time in milliseconds"),
            Unit::Us => decimal(text, 0, Fraction::Truncated, "Unix time in microseconds"),
            Unit::Iso => {
                let stamp: jiff::Timestamp = text.parse().map_err(|_| {
                    unreadable(text, "RFC 3339 timestamp with a zone, such as 2026-01-31T09:30:00Z")
                })?;
                Self::new(i128::from(stamp.as_microsecond()))
            }
        }
    }

    /// One less; the least version is its own predecessor.
    #[must_use]
    pub fn predecessor(self) -> Self {
        Self::new(self.0.saturating_sub(1)).unwrap_or(self)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i128 {
        self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// As text: JSON numbers of this size do not survive most readers.
impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// What to do with digits finer than the version keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fraction {
    Refused,
    Truncated,
}

fn unreadable(text: &str, expected: &'static str) -> VersionError {
    VersionError::Unreadable { found: text.chars().take(60).collect(), expected }
}

/// Reads `[-]digits[.digits][e[+-]digits]`, times ten to the `shift`, exactly.
fn decimal(
    text: &str,
    shift: i64,
    fraction: Fraction,
    expected: &'static str,
) -> Result<Version, VersionError> {
    let bad = || unreadable(text, expected);
    let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().map_err(|_| bad())?),
        None => (unsigned, 0),
    };
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let all_digits =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(decimals) {
        return Err(bad());
    }
    let digits = format!("{whole}{decimals}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(Version(0));
    }
    let places = i64::try_from(decimals.len()).map_err(|_| VersionError::TooLong)?;
    // Where the decimal point stands, counted from the end of `digits`.
    let scale = exponent.saturating_add(shift).saturating_sub(places);
    let exact = if scale >= 0 {
        let zeros = usize::try_from(scale).map_err(|_| VersionError::TooLong)?;
        if digits.len().saturating_add(zeros) > DIGITS_MAX {
            return Err(VersionError::TooLong);
        }
        format!("{digits}{}", "0".repeat(zeros))
    } else {
        let cut = usize::try_from(scale.unsigned_abs()).unwrap_or(usize::MAX);
        let kept = digits.len().saturating_sub(cut);
        let (kept, dropped) = digits.split_at_checked(kept).ok_or_else(bad)?;
        let lost = dropped.bytes().any(|digit| digit != b'0');
        if lost && fraction == Fraction::Refused {
            return Err(bad());
        }
        if kept.is_empty() { "0".to_owned() } else { kept.to_owned() }
    };
    if exact.len() > DIGITS_MAX {
        return Err(VersionError::TooLong);
    }
    let number: i128 = exact.parse().map_err(|_| VersionError::TooLong)?;
    Version::new(if negative { number.saturating_neg() } else { number })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str, unit: Unit) -> Result<i128, VersionError> {
        Version::from_text(text, unit).map(Version::get)
    }

    #[test]
    fn one_instant_is_one_version_in_every_zone_precision_and_unit() {
        let micros = 1_767_225_600_000_000;
        assert_eq!(read("2026-01-01T00:00:00Z", Unit::Iso), Ok(micros));
        assert_eq!(read("2026-01-01T01:00:00.000+01:00", Unit::Iso), Ok(micros));
        assert_eq!(read("2025-12-31T19:00:00.000000-05:00", Unit::Iso), Ok(micros));
        assert_eq!(read("1767225600", Unit::S), Ok(micros));
        assert_eq!(read("1767225600.000", Unit::S), Ok(micros));
        for (text, unit) in [
            ("1767225600000", Unit::S),
            ("1767225600000000", Unit::Ms),
            ("17672256000000000", Unit::Us),
            ("9999-12-30T00:00:00Z", Unit::Iso),
        ] {
            assert_eq!(read(text, unit), Err(VersionError::TooLate), "{text}");
        }
        assert!(read("9999999999", Unit::S).is_ok());
        assert!(read("99999999999999999999", Unit::Integer).is_ok());
        assert_eq!(read("1767225600000", Unit::Ms), Ok(micros));
        assert_eq!(read("1767225600000000", Unit::Us), Ok(micros));
        assert_eq!(read("1.7672256e9", Unit::S), Ok(micros));
    }

    #[test]
    fn integers_are_exact_to_38_digits_and_refused_beyond() {
        let longest = "9".repeat(38);
        assert_eq!(read(&longest, Unit::Integer), Ok(longest.parse().unwrap()));
        assert_eq!(read(&"9".repeat(39), Unit::Integer), Err(VersionError::TooLong));
        assert_eq!(read("1e37", Unit::Integer), Ok(10_i128.pow(37)));
        assert_eq!(read("1e38", Unit::Integer), Err(VersionError::TooLong));
        assert_eq!(read("1e400", Unit::Integer), Err(VersionError::TooLong));
        // Refused before anybody writes out its zeros.
        assert_eq!(read("1e9223372036854775807", Unit::Integer), Err(VersionError::TooLong));
        assert_eq!(read("-1E400", Unit::Integer), Err(VersionError::TooLong));
        assert_eq!(read("9007199254740993", Unit::Integer), Ok(9_007_199_254_740_993));
        assert_eq!(read("-7", Unit::Integer), Ok(-7));
        assert_eq!(read("1e3", Unit::Integer), Ok(1_000));
        assert_eq!(read("10.0", Unit::Integer), Ok(10));
        assert_eq!(read("0e999999999999", Unit::Integer), Ok(0));
    }

    #[test]
    fn a_fraction_that_is_cut_off_does_not_make_a_version_longer() {
        let longest = "9".repeat(38);
        let cut = format!("{longest}.5");
        let decimal = |text: &str| decimal(text, 0, Fraction::Truncated, "a number");
        assert_eq!(decimal(&cut).map(Version::get), Ok(longest.parse().unwrap()));
        assert_eq!(decimal(&format!("9{cut}")), Err(VersionError::TooLong));
        let least = Version::from_text(&format!("-{longest}"), Unit::Integer).unwrap();
        assert_eq!(least.predecessor(), least);
        assert_eq!(Version::new(5).unwrap().predecessor(), Version::new(4).unwrap());
    }

    #[test]
    fn what_is_no_version_is_named_and_never_zero() {
        for bad in
            ["", "abc", "1.5", "1e-400", "0x10", "1_000", " 1", "--1", "1e", ".5", "NaN", "١"]
        {
            assert!(read(bad, Unit::Integer).is_err(), "{bad:?} was read");
        }
        assert_eq!(Version::read(None, Unit::Integer), Err(VersionError::Missing));
        assert_eq!(Version::read(Some(&json!(null)), Unit::S), Err(VersionError::Null));
        assert!(Version::read(Some(&json!(true)), Unit::S).is_err());
        assert!(Version::read(Some(&json!([1])), Unit::S).is_err());
        assert!(read("2026-01-01T00:00:00", Unit::Iso).is_err(), "a zone is needed");
        assert!(read("2026-01-01", Unit::Iso).is_err());
    }

    #[test]
    fn finer_than_a_microsecond_is_cut_off_not_refused() {
        assert_eq!(read("1.0000019", Unit::S), Ok(1_000_001));
        assert_eq!(read("2026-01-01T00:00:00.0000019Z", Unit::Iso), Ok(1_767_225_600_000_001));
    }
}
