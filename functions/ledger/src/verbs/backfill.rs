//! Backfill: a version for an entity that lived before its events were ordered.
//!
//! A state row without a version is older than every event, so the first stale event to arrive
//! would win once. A backfilled version is the floor under it: only what is newer applies, or an
//! event of exactly that version, since a backfill ranks below every event. It never takes an
//! entity back, so it may run beside live traffic, and as often as it takes.

use crate::{Entity, EntityKey, Millis, Version};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What is known of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Backfill {
    /// Which.
    pub entity: EntityKey,
    /// How new what is known of it is.
    pub version: Version,
    /// Its state at that version, whole; `None` leaves the state as it is.
    pub state: Option<Map<String, Value>>,
    /// When it is written.
    pub at: Millis,
}

/// Why nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackfillRefusal {
    /// The entity has just this version: by an earlier run, by my own write whose answer was
    /// lost, or by its event.
    Already,
    /// The entity is newer.
    Newer,
    /// The entity has ended: nothing but a newer tombstone changes it.
    Final,
}

/// The entity with its version.
pub fn backfill(found: Option<&Entity>, ask: &Backfill) -> Result<Entity, BackfillRefusal> {
    let is_older = found.and_then(|entity| entity.version).is_none_or(|v| v < ask.version);
    if !is_older || found.is_some_and(|entity| entity.is_final) {
        return Err(refusal(found, ask));
    }
    let known = found.map(|entity| entity.state.clone()).unwrap_or_default();
    Ok(Entity {
        version: Some(ask.version),
        rank: 0,
        last_event: String::new(),
        revision: found.map_or(0, |entity| entity.revision).saturating_add(1),
        state: ask.state.clone().unwrap_or(known),
        updated_at: ask.at,
        is_final: false,
        waiting: found.map_or_else(BTreeSet::new, |entity| entity.waiting.clone()),
    })
}

/// Reads a refused backfill.
#[must_use]
pub fn refusal(found: Option<&Entity>, ask: &Backfill) -> BackfillRefusal {
    match found {
        Some(entity) if entity.is_final => BackfillRefusal::Final,
        Some(entity) if entity.version > Some(ask.version) => BackfillRefusal::Newer,
        Some(_) | None => BackfillRefusal::Already,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::{Change, Guard, GuardRefusal, Stamp, Tie};

    fn version(number: i128) -> Version {
        Version::new(number).unwrap()
    }

    fn state(by: &str) -> Map<String, Value> {
        Map::from_iter([("by".to_owned(), Value::from(by))])
    }

    fn ask(number: i128, state: Option<Map<String, Value>>) -> Backfill {
        let entity = EntityKey::new("s", "thing", "1").unwrap();
        Backfill { entity, version: version(number), state, at: Millis(9) }
    }

    fn event(number: i128, is_final: bool) -> Change {
        let stamp = Stamp { version: version(number), rank: 0, event_id: "e".to_owned() };
        Change {
            entity: EntityKey::new("s", "thing", "1").unwrap(),
            guard: Guard::Newer { stamp, tie: Tie::Rank },
            state: state("event"),
            is_final,
            leaves: BTreeSet::new(),
        }
    }

    #[test]
    fn a_floor_refuses_what_is_older_and_lets_its_own_version_and_newer_ones_apply() {
        let legacy = Entity {
            version: None,
            waiting: ["3#s#x".to_owned()].into(),
            ..event(1, false).make(None, Millis(1)).unwrap()
        };
        let floor = backfill(Some(&legacy), &ask(100, None)).unwrap();
        assert_eq!(floor.state, legacy.state, "what was known stays");
        assert_eq!((floor.revision, &floor.waiting), (2, &legacy.waiting));
        let stale = event(1, false).make(Some(&floor), Millis(2));
        assert_eq!(stale, Err(GuardRefusal::Superseded));
        assert!(event(100, false).make(Some(&floor), Millis(2)).is_ok());
        assert!(event(101, false).make(Some(&floor), Millis(2)).is_ok());
    }

    #[test]
    fn an_entity_nobody_knew_begins_with_the_state_that_is_given() {
        let born = backfill(None, &ask(5, Some(state("file")))).unwrap();
        assert_eq!((born.state, born.revision, born.version), (state("file"), 1, Some(version(5))));
        assert!(backfill(None, &ask(5, None)).unwrap().state.is_empty());
    }

    #[test]
    fn no_entity_is_taken_back_and_a_second_run_finds_its_own_work() {
        let entity = event(5, false).make(None, Millis(1)).unwrap();
        for (number, why) in [(4, BackfillRefusal::Newer), (5, BackfillRefusal::Already)] {
            assert_eq!(backfill(Some(&entity), &ask(number, Some(state("file")))), Err(why));
        }
        let newer = backfill(Some(&entity), &ask(6, Some(state("file")))).unwrap();
        assert_eq!(newer.state, state("file"));
        assert_eq!(backfill(Some(&newer), &ask(6, None)), Err(BackfillRefusal::Already));
        let ended = event(5, true).make(None, Millis(1)).unwrap();
        assert_eq!(backfill(Some(&ended), &ask(99, None)), Err(BackfillRefusal::Final));
    }
}
