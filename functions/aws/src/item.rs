//! Items: how rows, entities and JSON lie in DynamoDB.
//!
//! One file each, both directions side by side, so that an attribute is written and read by
//! neighbours. Empty texts, lists and maps are left out and read back as empty: DynamoDB stores
//! some of them, refuses others, and charges for all.

mod entity;
mod foreign;
mod json;
mod row;

pub(crate) use entity::state as encode_state;
pub use entity::{decode as decode_entity, encode as encode_entity};
pub use json::{decode as decode_json, encode as encode_json};
pub(crate) use row::effects as encode_effects;
pub use row::{decode as decode_row, encode as encode_row};

use aws_sdk_dynamodb::types::AttributeValue;
use ledger::{Unit, Version};
use std::collections::HashMap;
use thiserror::Error;

/// An item as the SDK has it.
pub type Item = HashMap<String, AttributeValue>;

/// An item that is no row or entity of this build's format. Names the attribute, never its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("attribute `{attribute}` is {found}, expected {expected}")]
pub struct DecodeError {
    /// The attribute.
    pub attribute: &'static str,
    /// `missing` or `unreadable`.
    pub found: &'static str,
    /// What should be there.
    pub expected: &'static str,
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl ToString + Copy) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn bytes(value: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(aws_sdk_dynamodb::primitives::Blob::new(value))
}

/// Reads attributes of one item by name and kind.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a Item);

impl<'a> Reader<'a> {
    pub(crate) fn text(self, attribute: &'static str) -> Result<Option<&'a str>, DecodeError> {
        self.read(attribute, "text", |value| value.as_s().ok().map(String::as_str))
    }

    pub(crate) fn bytes(self, attribute: &'static str) -> Result<Option<&'a [u8]>, DecodeError> {
        self.read(attribute, "bytes", |value| value.as_b().ok().map(AsRef::as_ref))
    }

    /// A whole number, in whatever notation the store returns it.
    pub(crate) fn number<N: TryFrom<i128>>(
        self,
        attribute: &'static str,
    ) -> Result<Option<N>, DecodeError> {
        self.read(attribute, "a whole number in range", |value| {
            let number = Version::from_text(value.as_n().ok()?, Unit::Integer).ok()?;
            N::try_from(number.get()).ok()
        })
    }

    /// A text that one of our enums or types reads.
    pub(crate) fn parsed<T>(
        self,
        attribute: &'static str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, DecodeError> {
        self.read(attribute, expected, |value| parse(value.as_s().ok()?))
    }

    /// Thirty-two bytes, written as 64 hexadecimal digits.
    pub(crate) fn hash(self, attribute: &'static str) -> Result<Option<[u8; 32]>, DecodeError> {
        self.parsed(attribute, "64 hexadecimal digits", |text| {
            let mut hash = [0; 32];
            hex::decode_to_slice(text, &mut hash).ok()?;
            Some(hash)
        })
    }

    pub(crate) fn map(self, attribute: &'static str) -> Result<Option<&'a Item>, DecodeError> {
        self.read(attribute, "a map", |value| value.as_m().ok())
    }

    pub(crate) fn list(self, attribute: &'static str) -> Result<&'a [AttributeValue], DecodeError> {
        let list = self.read(attribute, "a list", |value| value.as_l().ok())?;
        Ok(list.map_or(&[], Vec::as_slice))
    }

    pub(crate) fn read<T>(
        self,
        attribute: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'a AttributeValue) -> Option<T>,
    ) -> Result<Option<T>, DecodeError> {
        self.0
            .get(attribute)
            .map(|value| {
                read(value).ok_or(DecodeError { attribute, found: "unreadable", expected })
            })
            .transpose()
    }
}

/// A value that every item of its kind has.
pub(crate) fn needed<T>(
    value: Option<T>,
    attribute: &'static str,
    expected: &'static str,
) -> Result<T, DecodeError> {
    value.ok_or(DecodeError { attribute, found: "missing", expected })
}
