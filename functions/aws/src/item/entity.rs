//! The entity's item: one row of the state table.
//!
//! `final` is stored only when true and `waiting` only when somebody waits, so that conditions
//! can ask for their absence. `last_event` is a string: DynamoDB compares strings by their UTF-8
//! bytes, which is the order of the pure guard.

use super::{DecodeError, Item, Reader, json, needed, number, text};
use aws_sdk_dynamodb::types::AttributeValue;
use ledger::{Entity, EntityKey, Millis, Version};
use serde_json::{Map, Value};

/// An entity as stored.
#[must_use]
pub fn encode(key: &EntityKey, entity: &Entity) -> Item {
    let mut item = Item::from([
        ("pk".to_owned(), text(key.as_str())),
        ("rank".to_owned(), number(entity.rank)),
        ("last_event".to_owned(), text(entity.last_event.as_str())),
        ("revision".to_owned(), number(entity.revision)),
        ("state".to_owned(), state(&entity.state)),
        ("updated_at".to_owned(), number(entity.updated_at.0)),
    ]);
    if let Some(version) = entity.version {
        item.insert("version".to_owned(), number(version));
    }
    if entity.is_final {
        item.insert("final".to_owned(), AttributeValue::Bool(true));
    }
    if !entity.waiting.is_empty() {
        let waiting = entity.waiting.iter().cloned().collect();
        item.insert("waiting".to_owned(), AttributeValue::Ss(waiting));
    }
    item
}

/// A state as stored: a map, whatever it holds.
pub(crate) fn state(state: &Map<String, Value>) -> AttributeValue {
    AttributeValue::M(json::encode_map(state))
}

/// Reads an entity. One that so far only has waiters has no state, rank or event yet.
pub fn decode(item: &Item) -> Result<Entity, DecodeError> {
    let reader = Reader(item);
    let version = reader.read("version", "a whole number of at most 38 digits", |value| {
        Version::from_text(value.as_n().ok()?, ledger::Unit::Integer).ok()
    })?;
    Ok(Entity {
        version,
        rank: reader.number("rank")?.unwrap_or(0),
        last_event: reader.text("last_event")?.unwrap_or_default().to_owned(),
        revision: needed(reader.number("revision")?, "revision", "a whole number")?,
        state: reader.map("state")?.map(json::decode_map).unwrap_or_default(),
        updated_at: Millis(reader.number("updated_at")?.unwrap_or(0)),
        is_final: reader
            .read("final", "true or absent", |value| value.as_bool().ok().copied())?
            .unwrap_or(false),
        waiting: reader
            .read("waiting", "a set of texts", |value| value.as_ss().ok())?
            .map(|waiting| waiting.iter().cloned().collect())
            .unwrap_or_default(),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn any_entity()(
            version in prop::option::of(-(10_i128.pow(38) - 1)..10_i128.pow(38)),
            rank in any::<u32>(),
            last_event in ".{0,20}",
            revision in any::<u64>(),
            state in prop::collection::btree_map(".{1,8}", any::<i64>(), 0..4),
            updated_at in any::<u64>(),
            is_final in any::<bool>(),
            waiting in prop::collection::btree_set(".{1,20}", 0..4),
        ) -> Entity {
            Entity {
                version: version.map(|number| Version::new(number).unwrap()),
                rank,
                last_event,
                revision,
                state: state.into_iter().map(|(name, n)| (name, Value::from(n))).collect(),
                updated_at: Millis(updated_at),
                is_final,
                waiting,
            }
        }
    }

    proptest! {
        #[test]
        fn an_entity_comes_back_as_it_was(entity in any_entity()) {
            let key = EntityKey::new("s", "thing", "1").unwrap();
            let item = encode(&key, &entity);
            prop_assert_eq!(item.contains_key("final"), entity.is_final);
            prop_assert_eq!(item.contains_key("waiting"), !entity.waiting.is_empty());
            prop_assert_eq!(decode(&item).unwrap(), entity);
        }
    }

    #[test]
    fn a_row_that_only_has_waiters_is_an_entity_without_version_or_state() {
        let item = Item::from([
            ("pk".to_owned(), text("s#thing#1")),
            ("revision".to_owned(), number(1)),
            ("waiting".to_owned(), AttributeValue::Ss(vec!["3#s#evt".to_owned()])),
        ]);
        let entity = decode(&item).unwrap();
        assert_eq!((entity.version, entity.revision), (None, 1));
        assert!(entity.state.is_empty());
    }
}
