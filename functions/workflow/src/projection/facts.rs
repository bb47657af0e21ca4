//! The values an event has at the places that projections look at.
//!
//! One pass over the text, whatever the number of places. Only these values are built; everything
//! else is checked for syntax and skipped. So the depth of an unused part, or `1e400` in a field
//! nobody reads, is of no concern, and recursion goes as deep as a pointer, never as deep as the
//! input. A repeated key means its last value.

use super::{ProjectionError, Unstorable};
use config::Pointer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// Values by pointer. A pointer that is absent leads nowhere in this event.
pub(super) struct Facts<'p, 'd> {
    values: BTreeMap<&'p Pointer, &'d RawValue>,
}

impl<'p, 'd> Facts<'p, 'd> {
    /// Finds the values at `wanted`.
    pub(super) fn read(
        text: &'d str,
        wanted: impl IntoIterator<Item = &'p Pointer>,
    ) -> Result<Self, ProjectionError> {
        let mut root = Node::default();
        for pointer in wanted {
            let node = pointer
                .tokens()
                .fold(&mut root, |node, token| node.below.entry(token).or_default());
            node.here = Some(pointer);
        }
        let mut values = BTreeMap::new();
        descend(text, &root, &mut values).map_err(|error| ProjectionError::NotJson {
            line: error.line(),
            column: error.column(),
        })?;
        Ok(Self { values })
    }

    /// The value at a place, whole.
    pub(super) fn value(&self, at: &Pointer) -> Result<Option<Value>, Unstorable> {
        self.values
            .get(at)
            .map(|raw| serde_json::from_str(raw.get()))
            .transpose()
            .map_err(|error| Unstorable::Unreadable(error.to_string()))
    }

    /// The value at a place where only a scalar is of use: lists and objects come empty.
    pub(super) fn scalar(&self, at: &Pointer) -> Result<Option<Value>, Unstorable> {
        match self.values.get(at).and_then(|raw| raw.get().bytes().next()) {
            Some(b'[') => Ok(Some(Value::Array(Vec::new()))),
            Some(b'{') => Ok(Some(Value::Object(serde_json::Map::new()))),
            Some(_) | None => self.value(at),
        }
    }
}

/// What a value is, in words.
pub(super) const fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a text",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}

/// The places of interest as a tree of tokens.
#[derive(Default)]
struct Node<'p> {
    here: Option<&'p Pointer>,
    below: BTreeMap<Cow<'p, str>, Node<'p>>,
}

impl<'p> Node<'p> {
    /// Forgets what an earlier occurrence of this key held.
    fn forget<'d>(&self, values: &mut BTreeMap<&'p Pointer, &'d RawValue>) {
        if let Some(pointer) = self.here {
            values.remove(pointer);
        }
        for node in self.below.values() {
            node.forget(values);
        }
    }
}

fn descend<'p, 'd>(
    text: &'d str,
    node: &Node<'p>,
    values: &mut BTreeMap<&'p Pointer, &'d RawValue>,
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Seed { node, values }.deserialize(&mut deserializer)?;
    deserializer.end()
}

struct Seed<'n, 'p, 'd> {
    node: &'n Node<'p>,
    values: &'n mut BTreeMap<&'p Pointer, &'d RawValue>,
}

impl<'d> DeserializeSeed<'d> for Seed<'_, '_, 'd> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<(), D::Error> {
        let Some(pointer) = self.node.here else {
            return deserializer.deserialize_any(self);
        };
        let raw: &'d RawValue = serde::Deserialize::deserialize(deserializer)?;
        self.values.insert(pointer, raw);
        if self.node.below.is_empty() {
            return Ok(());
        }
        // Another pointer goes on inside this value, whose syntax has been checked just now.
        let mut inner = serde_json::Deserializer::from_str(raw.get());
        inner.deserialize_any(self).map_err(serde::de::Error::custom)
    }
}

/// Scalars have nothing below them.
macro_rules! nothing_below {
    ($($visit:ident: $value:ty),*) => {
        $(fn $visit<E: serde::de::Error>(self, _: $value) -> Result<(), E> {
            Ok(())
        })*
    };
}

impl<'d> Visitor<'d> for Seed<'_, '_, 'd> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    nothing_below!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'d, str>>()? {
            match self.node.below.get(key.as_ref()) {
                Some(node) => {
                    node.forget(self.values);
                    map.next_value_seed(Seed { node, values: &mut *self.values })?;
                }
                None => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        loop {
            let more = match self.node.below.get(index.to_string().as_str()) {
                Some(node) => {
                    seq.next_element_seed(Seed { node, values: &mut *self.values })?.is_some()
                }
                None => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                return Ok(());
            }
            index += 1;
        }
    }
}
