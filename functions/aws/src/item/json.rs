//! JSON as attribute values: the state of an entity.
//!
//! Numbers keep their text and with it every digit: DynamoDB stores 38 significant digits
//! exactly, and returns the same number, though perhaps in another notation (`1e2` as `100`). A
//! number it cannot hold is stored as its text rather than rounded.

use super::{Item, text};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Number, Value};

/// Significant digits that a DynamoDB number keeps.
const DIGITS_MAX: usize = 38;
/// The power of ten of the first significant digit, at least and at most.
const EXPONENT: std::ops::RangeInclusive<i64> = -130..=125;

/// A JSON value as stored.
#[must_use]
pub fn encode(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(flag) => AttributeValue::Bool(*flag),
        Value::Number(number) => {
            let digits = number.to_string();
            if is_storable(&digits) { AttributeValue::N(digits) } else { AttributeValue::S(digits) }
        }
        Value::String(string) => text(string.as_str()),
        Value::Array(items) => AttributeValue::L(items.iter().map(encode).collect()),
        Value::Object(members) => AttributeValue::M(encode_map(members)),
    }
}

pub(super) fn encode_map(members: &Map<String, Value>) -> Item {
    members.iter().map(|(name, value)| (name.clone(), encode(value))).collect()
}

/// A stored value as JSON. Sets become arrays and bytes hexadecimal text; Oncehook writes
/// neither, but a team may have.
#[must_use]
pub fn decode(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Bool(flag) => Value::Bool(*flag),
        AttributeValue::N(digits) => decode_number(digits),
        AttributeValue::S(string) => Value::String(string.clone()),
        AttributeValue::L(items) => Value::Array(items.iter().map(decode).collect()),
        AttributeValue::M(members) => Value::Object(decode_map(members)),
        AttributeValue::Ss(items) => items.iter().map(String::as_str).collect(),
        AttributeValue::Ns(items) => items.iter().map(|digits| decode_number(digits)).collect(),
        AttributeValue::B(bytes) => Value::String(hex::encode(bytes)),
        AttributeValue::Bs(items) => items.iter().map(hex::encode).collect(),
        // The SDK's enum is open; a kind it does not know yet has no JSON form either.
        _ => Value::Null,
    }
}

pub(super) fn decode_map(members: &Item) -> Map<String, Value> {
    members.iter().map(|(name, value)| (name.clone(), decode(value))).collect()
}

fn decode_number(digits: &str) -> Value {
    serde_json::from_str::<Number>(digits)
        .map_or_else(|_| Value::String(digits.to_owned()), Value::Number)
}

/// Whether DynamoDB holds this JSON number without losing anything.
fn is_storable(number: &str) -> bool {
    let unsigned = number.trim_start_matches('-');
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let Ok(exponent) = exponent.trim_start_matches('+').parse::<i64>() else {
        return false;
    };
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{decimals}");
    let significant = digits.trim_start_matches('0');
    let leading = digits.len() - significant.len();
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return EXPONENT.contains(&exponent);
    }
    // The first digit of `whole` stands for ten to the power of its length minus one.
    let place = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
    let first = place(whole.len()) - 1 - place(leading);
    significant.len() <= DIGITS_MAX && EXPONENT.contains(&first.saturating_add(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(digits: &str) -> Value {
        decode_number(digits)
    }

    #[test]
    fn every_digit_that_dynamodb_holds_is_kept_and_the_rest_becomes_text() {
        for kept in [
            "0",
            "-0.0",
            "9007199254740993",
            "0.1",
            "12345678901234567890123456789012345678",
            "1e125",
            "-9.9e125",
            "1e-130",
            "1000000000000000000000000000000000000000000000",
            "0.00000000000000000000000000000000000000000001",
        ] {
            let kept = number(kept);
            assert_eq!(encode(&kept), AttributeValue::N(kept.to_string()));
        }
        for text in [
            "123456789012345678901234567890123456789",
            "1e126",
            "0e999999",
            "1e-131",
            "1e99999999999999999999",
            "0.123456789012345678901234567890123456789",
        ] {
            let stored = encode(&number(text));
            assert!(matches!(stored, AttributeValue::S(_)), "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,17})?".prop_map(|digits| number(&digits)),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{1,6}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_comes_back_as_it_was(value in any_json()) {
            prop_assert_eq!(decode(&encode(&value)), value);
        }
    }
}
