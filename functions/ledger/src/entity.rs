//! The entity: the object whose state is versioned, and the guard that keeps it from going back.
//!
//! Under the tie rule `rank` the guard is a total order of *(final, version, rank, event id)*:
//! whatever the order of arrival, the greatest wins, so every order ends the same. A final change
//! (a tombstone) beats every version; among finals the newer wins. The tie rule `skip` keeps what
//! came first among equals and is exempt from that promise.
//!
//! Strategies that read before they write (deltas, fetched state, sequences) stand on the row's
//! `revision` instead: the write holds only if nobody wrote in between.

use crate::{EntityKey, Millis, Version};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A state row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entity {
    /// The version of the last change; absent under strategies without versions.
    pub version: Option<Version>,
    /// The last change's position among event types of one version.
    pub rank: u32,
    /// The event that made the last change.
    pub last_event: String,
    /// One more with every write.
    pub revision: u64,
    /// The state, replaced whole.
    pub state: Map<String, Value>,
    /// When it was written last.
    pub updated_at: Millis,
    /// A tombstone: only another, newer one may follow.
    pub is_final: bool,
    /// Ledger keys that wait for their predecessor, as `<n>#<ledger pk>`.
    pub waiting: BTreeSet<String>,
}

/// What orders one change against another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// First by version.
    pub version: Version,
    /// Then by the event type's position in the configuration.
    pub rank: u32,
    /// Then by the event id, byte by byte.
    pub event_id: String,
}

/// Which of two changes of one version wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tie {
    /// Rank, then event id.
    Rank,
    /// The first to arrive.
    Skip,
}

/// When a change may be made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Guard {
    /// Only if newer.
    Newer {
        /// The change's place in the order.
        stamp: Stamp,
        /// The rule among equals.
        tie: Tie,
    },
    /// Only if the row still has the revision that was read; `None` if there was no row.
    Revision {
        /// What was read.
        read: Option<u64>,
        /// The version to store beside the state, where the strategy has one.
        version: Option<Version>,
        /// The event that makes the change.
        event_id: String,
    },
}

/// One write to one entity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change {
    /// Whose state.
    pub entity: EntityKey,
    /// When it may be made.
    pub guard: Guard,
    /// The state afterwards, whole.
    pub state: Map<String, Value>,
    /// Whether it is a tombstone.
    pub is_final: bool,
    /// Members that leave the set of waiters with this write; empty outside sequences. See
    /// [`crate::succession`].
    pub leaves: BTreeSet<String>,
}

/// Why the guard refused a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuardRefusal {
    /// The entity is newer, or final: drop the change.
    Superseded,
    /// Somebody wrote since the read: read again.
    RevisionMoved,
}

impl Change {
    /// The entity after this change, or why it may not be made.
    pub fn make(&self, found: Option<&Entity>, now: Millis) -> Result<Entity, GuardRefusal> {
        match &self.guard {
            Guard::Newer { stamp, tie } => {
                if !self.is_newer(found, stamp, *tie) {
                    return Err(GuardRefusal::Superseded);
                }
                Ok(self.written(found, Some(stamp.version), stamp.rank, &stamp.event_id, now))
            }
            Guard::Revision { read, version, event_id } => {
                if found.is_some_and(|entity| entity.is_final) {
                    return Err(GuardRefusal::Superseded);
                }
                if found.map(|entity| entity.revision) != *read {
                    return Err(GuardRefusal::RevisionMoved);
                }
                Ok(self.written(found, *version, 0, event_id, now))
            }
        }
    }

    /// The version this change carries.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        match &self.guard {
            Guard::Newer { stamp, .. } => Some(stamp.version),
            Guard::Revision { version, .. } => *version,
        }
    }

    fn is_newer(&self, found: Option<&Entity>, stamp: &Stamp, tie: Tie) -> bool {
        let Some(entity) = found else { return true };
        let later = entity.version.is_none_or(|stored| match stamp.version.cmp(&stored) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => match tie {
                Tie::Skip => false,
                Tie::Rank => {
                    (stamp.rank, stamp.event_id.as_bytes())
                        > (entity.rank, entity.last_event.as_bytes())
                }
            },
        });
        match (self.is_final, entity.is_final) {
            (true, false) => true,
            (true, true) | (false, false) => later,
            (false, true) => false,
        }
    }

    fn written(
        &self,
        found: Option<&Entity>,
        version: Option<Version>,
        rank: u32,
        event_id: &str,
        now: Millis,
    ) -> Entity {
        Entity {
            version,
            rank,
            last_event: event_id.to_owned(),
            revision: found.map_or(0, |entity| entity.revision).saturating_add(1),
            state: self.state.clone(),
            updated_at: now,
            is_final: self.is_final,
            waiting: found
                .map(|entity| entity.waiting.difference(&self.leaves).cloned().collect())
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn change(version: i128, rank: u32, event_id: &str, is_final: bool, tie: Tie) -> Change {
        let stamp =
            Stamp { version: Version::new(version).unwrap(), rank, event_id: event_id.to_owned() };
        let mut state = Map::new();
        state.insert("by".to_owned(), Value::from(event_id));
        Change {
            entity: EntityKey::new("s", "thing", "1").unwrap(),
            guard: Guard::Newer { stamp, tie },
            state,
            is_final,
            leaves: BTreeSet::new(),
        }
    }

    fn run(order: &[&Change]) -> Entity {
        let mut entity = None;
        for change in order {
            if let Ok(next) = change.make(entity.as_ref(), Millis(1)) {
                entity = Some(next);
            }
        }
        entity.unwrap()
    }

    #[test]
    fn every_order_of_arrival_ends_in_the_same_state() {
        let history = [
            change(1, 0, "a", false, Tie::Rank),
            change(2, 1, "b", false, Tie::Rank),
            change(2, 1, "c", false, Tie::Rank),
            change(2, 2, "d", true, Tie::Rank),
            change(9, 0, "e", false, Tie::Rank),
        ];
        let mut orders = 0;
        permute(&mut [0, 1, 2, 3, 4], 0, &mut |order| {
            let order: Vec<&Change> = order.iter().filter_map(|i| history.get(*i)).collect();
            let end = run(&order);
            assert_eq!((end.last_event.as_str(), end.is_final), ("d", true));
            orders += 1;
        });
        assert_eq!(orders, 120);
    }

    #[test]
    fn among_equal_versions_the_type_decides_and_only_among_equal_types_the_event_id() {
        let updated = change(2, 1, "a", false, Tie::Rank);
        let created = change(2, 0, "z", false, Tie::Rank);
        let again = change(2, 1, "b", false, Tie::Rank);
        for order in [[&updated, &created], [&created, &updated]] {
            assert_eq!(run(&order).last_event, "a", "whatever the ids");
        }
        for order in [[&updated, &again], [&again, &updated]] {
            assert_eq!(run(&order).last_event, "b");
        }
    }

    #[test]
    fn a_tombstone_beats_any_version_and_only_a_newer_tombstone_beats_it() {
        let late = change(99, 0, "late", false, Tie::Rank);
        let tomb = change(5, 0, "tomb", true, Tie::Rank);
        let newer_tomb = change(6, 0, "tomb2", true, Tie::Rank);
        assert_eq!(run(&[&late, &tomb]).last_event, "tomb");
        assert_eq!(run(&[&tomb, &late]).last_event, "tomb");
        assert_eq!(run(&[&newer_tomb, &tomb]).last_event, "tomb2");
        assert_eq!(run(&[&tomb, &newer_tomb]).last_event, "tomb2");
    }

    #[test]
    fn skip_keeps_the_first_of_equals() {
        let a = change(1, 0, "a", false, Tie::Skip);
        let b = change(1, 5, "b", false, Tie::Skip);
        assert_eq!(run(&[&a, &b]).last_event, "a");
        assert_eq!(run(&[&b, &a]).last_event, "b");
    }

    #[test]
    fn the_same_event_twice_is_superseded_by_itself() {
        let a = change(1, 0, "a", false, Tie::Rank);
        let entity = a.make(None, Millis(1)).unwrap();
        assert_eq!(a.make(Some(&entity), Millis(2)), Err(GuardRefusal::Superseded));
    }

    #[test]
    fn a_change_that_read_first_needs_the_revision_it_read() {
        let mut delta = change(1, 0, "a", false, Tie::Rank);
        let entity = delta.make(None, Millis(1)).unwrap();
        delta.guard = Guard::Revision { read: None, version: None, event_id: "b".to_owned() };
        assert_eq!(delta.make(Some(&entity), Millis(2)), Err(GuardRefusal::RevisionMoved));
        delta.guard = Guard::Revision { read: Some(1), version: None, event_id: "b".to_owned() };
        assert_eq!(delta.make(Some(&entity), Millis(2)).unwrap().revision, 2);
    }

    #[test]
    fn a_change_that_read_first_does_not_wake_the_dead() {
        let tomb = change(5, 0, "tomb", true, Tie::Rank).make(None, Millis(1)).unwrap();
        let mut delta = change(6, 0, "a", false, Tie::Rank);
        delta.guard = Guard::Revision { read: Some(1), version: None, event_id: "a".to_owned() };
        assert_eq!(delta.make(Some(&tomb), Millis(2)), Err(GuardRefusal::Superseded));
    }

    #[test]
    fn a_write_takes_out_of_the_set_of_waiters_whom_it_names_and_nobody_else() {
        let first = change(1, 0, "a", false, Tie::Rank);
        let mut entity = first.make(None, Millis(1)).unwrap();
        entity.waiting = ["2#s#b", "3#s#c"].map(str::to_owned).into();
        let mut second = change(2, 0, "b", false, Tie::Rank);
        second.leaves = ["2#s#b", "9#s#never"].map(str::to_owned).into();
        let after = second.make(Some(&entity), Millis(2)).unwrap();
        assert_eq!(after.waiting, ["3#s#c".to_owned()].into());
        let kept = change(2, 0, "b", false, Tie::Rank).make(Some(&entity), Millis(2)).unwrap();
        assert_eq!(kept.waiting, entity.waiting);
    }

    #[test]
    fn a_change_tells_the_version_it_carries_whatever_its_guard() {
        let mut change = change(7, 0, "a", false, Tie::Rank);
        let seven = Version::new(7).unwrap();
        assert_eq!(change.version(), Some(seven));
        for version in [Some(seven), None] {
            change.guard = Guard::Revision { read: None, version, event_id: String::new() };
            assert_eq!(change.version(), version);
        }
    }

    #[test]
    fn a_row_that_only_waiters_have_written_accepts_any_version() {
        let mut only_waiters = change(1, 0, "a", false, Tie::Rank).make(None, Millis(1)).unwrap();
        only_waiters.version = None;
        let any = change(-5, 0, "", false, Tie::Rank);
        assert!(any.make(Some(&only_waiters), Millis(2)).is_ok());
    }

    fn permute(items: &mut [usize], at: usize, visit: &mut impl FnMut(&[usize])) {
        if at == items.len() {
            visit(items);
            return;
        }
        for i in at..items.len() {
            items.swap(at, i);
            permute(items, at.saturating_add(1), visit);
            items.swap(at, i);
        }
    }
}
