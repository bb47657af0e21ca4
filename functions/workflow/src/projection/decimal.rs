//! Exact decimal numbers, within what a state row holds.
//!
//! DynamoDB keeps 38 significant digits between 1e-130 and 9.99...e125 (AWS, "Naming rules and
//! data types", Number). A number inside these bounds is kept and added exactly; one outside is
//! refused. The bounds are checked on the text before any arithmetic: `1e1000000000` is twelve
//! bytes to send and a gigabyte to write out.

use bigdecimal::{BigDecimal, num_bigint::BigInt};
use serde_json::Number;
use std::{fmt, str::FromStr};
use thiserror::Error;

const DIGITS_MAX: usize = 38;
/// The power of ten of the first digit.
const EXPONENT_MIN: i64 = -130;
const EXPONENT_MAX: i64 = 125;

/// Why a text is no number that can be stored exactly. The texts continue "the amount at /x ...".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum NumberDefect {
    /// Not `[-]digits[.digits][e[+-]digits]`.
    #[error("is a text that is no number")]
    NotANumber,
    /// More significant digits than a state row keeps.
    #[error("has more than {DIGITS_MAX} significant digits")]
    TooLong,
    /// Too great or too close to zero.
    #[error("is outside 1e{EXPONENT_MIN} to 9.99e{EXPONENT_MAX}")]
    OutOfRange,
}

/// An exact decimal number that a state row can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal(BigDecimal);

impl Decimal {
    /// Zero.
    #[must_use]
    pub fn zero() -> Self {
        Self(BigDecimal::from(0))
    }

    /// The exact sum, or why it cannot be stored.
    pub fn plus(&self, other: &Self) -> Result<Self, NumberDefect> {
        (&self.0 + &other.0).to_plain_string().parse()
    }

    /// As a JSON number, written out, without idle zeros: as DynamoDB gives it back.
    #[must_use]
    pub fn to_number(&self) -> Number {
        // Digits and one point are a JSON number.
        self.to_string().parse().unwrap_or_else(|_| Number::from(0))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.normalized().to_plain_string())
    }
}

impl FromStr for Decimal {
    type Err = NumberDefect;

    fn from_str(text: &str) -> Result<Self, NumberDefect> {
        let Scanned { negative, digits, exponent } = scan(text)?;
        if digits.is_empty() {
            return Ok(Self::zero());
        }
        let whole: i128 = digits.parse().map_err(|_| NumberDefect::TooLong)?;
        let whole = if negative { -whole } else { whole };
        // `digits` as an integer has its last digit at 10^0; the scale moves it to its place.
        let last = i64::try_from(digits.len()).map_or(0, |count| count - 1);
        Ok(Self(BigDecimal::new(BigInt::from(whole), last - exponent)))
    }
}

/// Whether a number written so can be stored exactly.
pub(super) fn check(text: &str) -> Result<(), NumberDefect> {
    scan(text).map(|_| ())
}

struct Scanned {
    negative: bool,
    /// The significant ones; none for zero.
    digits: String,
    /// The power of ten of the first of them.
    exponent: i64,
}

/// Takes a number apart within the bounds.
fn scan(text: &str) -> Result<Scanned, NumberDefect> {
    let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
        None => (unsigned, 0),
        Some((mantissa, power)) => (mantissa, read_power(power)?),
    };
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    if !all_digits(whole) || !all_digits(decimals) {
        return Err(NumberDefect::NotANumber);
    }
    let all = format!("{whole}{decimals}");
    let significant = all.trim_start_matches('0');
    let leading = i64::try_from(all.len() - significant.len()).unwrap_or(i64::MAX);
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let digits = significant.trim_end_matches('0').to_owned();
    let exponent = if digits.is_empty() {
        power
    } else {
        power.saturating_add(point).saturating_sub(leading).saturating_sub(1)
    };
    if !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
        return Err(NumberDefect::OutOfRange);
    }
    if digits.len() > DIGITS_MAX {
        return Err(NumberDefect::TooLong);
    }
    Ok(Scanned { negative, digits, exponent })
}

/// An exponent; one of more digits than an `i64` has is as far out as it can be.
fn read_power(text: &str) -> Result<i64, NumberDefect> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !all_digits(digits) {
        return Err(NumberDefect::NotANumber);
    }
    let power = digits.parse().unwrap_or(i64::MAX);
    Ok(if negative { -power } else { power })
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, NumberDefect> {
        text.parse::<Decimal>().map(|number| number.to_string())
    }

    fn sum(left: &str, right: &str) -> Result<String, NumberDefect> {
        let (left, right) = (left.parse::<Decimal>()?, right.parse::<Decimal>()?);
        left.plus(&right).map(|sum| sum.to_string())
    }

    #[test]
    fn numbers_are_kept_exactly_and_written_out() {
        for (text, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.00", "0"),
            ("10.50", "10.5"),
            ("-10.05", "-10.05"),
            ("007", "7"),
            ("1e3", "1000"),
            ("1.5E+2", "150"),
            ("25e-1", "2.5"),
            ("100", "100"),
            ("0.1234567890123456789", "0.1234567890123456789"),
            ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        let smallest = format!("0.{}1", "0".repeat(129));
        assert_eq!(read("1e-130"), Ok(smallest));
        let greatest = format!("{}{}", "9".repeat(38), "0".repeat(88));
        assert_eq!(read(&format!("9.{}e125", "9".repeat(37))), Ok(greatest));
    }

    #[test]
    fn what_a_state_row_cannot_hold_is_refused_before_any_arithmetic() {
        for text in ["1e126", "-1e126", "1e400", "1e-131", "1e1000000000", "1e99999999999999999999"]
        {
            assert_eq!(read(text), Err(NumberDefect::OutOfRange), "{text}");
        }
        assert_eq!(read("0e999"), Err(NumberDefect::OutOfRange));
        assert_eq!(read(&"9".repeat(39)), Err(NumberDefect::TooLong));
        assert_eq!(read(&format!("1.{}1", "0".repeat(37))), Err(NumberDefect::TooLong));
        assert_eq!(read(&format!("1{}", "0".repeat(100))).map(|text| text.len()), Ok(101));
        assert_eq!(read(&format!("1.{}", "0".repeat(1_000_000))).as_deref(), Ok("1"));
        for text in ["", "-", "abc", "1,5", " 1", "1 ", "+1", ".5", "1.", "1e", "0x1", "NaN", "١"]
        {
            assert_eq!(read(text), Err(NumberDefect::NotANumber), "{text:?}");
        }
    }

    #[test]
    fn sums_are_exact_and_refused_where_they_would_need_a_39th_digit() {
        assert_eq!(sum("0.1", "0.2").as_deref(), Ok("0.3"));
        assert_eq!(sum("10.50", "-10.50").as_deref(), Ok("0"));
        assert_eq!(sum("9007199254740993", "0.01").as_deref(), Ok("9007199254740993.01"));
        assert_eq!(sum(&"9".repeat(38), "1"), Ok(format!("1{}", "0".repeat(38))));
        assert_eq!(sum(&"9".repeat(38), "2"), Err(NumberDefect::TooLong));
        assert_eq!(sum("1e125", "1e-130"), Err(NumberDefect::TooLong));
        assert_eq!(sum("9e125", "9e125"), Err(NumberDefect::OutOfRange));
    }
}
