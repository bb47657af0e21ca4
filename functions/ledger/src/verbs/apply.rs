//! Apply and settle: every entity's change and the row's end in one transaction, or nothing.
//!
//! A refusal names the first thing the caller must react to, in this order: the row (a lost
//! fence ends everything), then the entities, then the waiter that was to be woken. A waiter that
//! moved on by itself must not hold up the change it waited for, so its refusal only drops the
//! wake.

use super::{
    FenceRefusal, fence_refusal, is_held,
    settle::{is_my_settle, settled},
    wake::{Wake, wake},
};
use crate::{Change, Entity, GuardRefusal, Life, Millis, Outcome, Policy};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Apply {
    /// The holder's fence.
    pub epoch: u64,
    /// Fixed once per attempt, so that a retried transaction is the same transaction.
    pub settled_at: Millis,
    /// The changes; no two of one entity. Never empty: a row without changes settles by
    /// [`super::settle`].
    pub changes: Vec<Change>,
    /// The next of a sequence, woken in the same transaction; see [`crate::succession`].
    pub wake: Option<Wake>,
}

impl Apply {
    /// A request that wakes nobody.
    #[must_use]
    pub const fn new(epoch: u64, settled_at: Millis, changes: Vec<Change>) -> Self {
        Self { epoch, settled_at, changes, wake: None }
    }
}

/// What the transaction wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The settled row.
    pub life: Life,
    /// The entities, in the order of the changes.
    pub entities: Vec<Entity>,
    /// The woken row; only where [`Apply::wake`] asked for one.
    pub woken: Option<Life>,
}

/// What a lease holder does about a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ApplyRefusal {
    /// The fence.
    Fence(FenceRefusal),
    /// These changes, by index, are superseded: drop them and apply the rest.
    Superseded(Vec<usize>),
    /// These changes, by index, stand on a revision that has moved: read and project again.
    RevisionMoved(Vec<usize>),
    /// The row to be woken neither waits nor is worked on: drop the wake and try again.
    NotWaiting,
}

/// Applies and settles, waking nobody. `entities` are the rows found, in the order of the
/// changes; one that is not given counts as not found.
pub fn apply(
    found: Option<&Life>,
    entities: &[Option<&Entity>],
    ask: &Apply,
    policy: &Policy,
) -> Result<Applied, ApplyRefusal> {
    apply_and_wake(found, entities, None, ask, policy)
}

/// Applies, settles and wakes. `next` is the row found under the key of [`Apply::wake`].
pub fn apply_and_wake(
    found: Option<&Life>,
    entities: &[Option<&Entity>],
    next: Option<&Life>,
    ask: &Apply,
    policy: &Policy,
) -> Result<Applied, ApplyRefusal> {
    let refused = || refusal_with_wake(found, entities, next, ask);
    let life = found.filter(|life| is_held(life, ask.epoch)).ok_or_else(refused)?;
    let written: Vec<Entity> =
        made(entities, ask).collect::<Result<_, GuardRefusal>>().map_err(|_| refused())?;
    let woken = match &ask.wake {
        None => None,
        Some(asked) => Some(wake(next, asked, ask.settled_at).ok_or_else(refused)?),
    };
    Ok(Applied {
        life: settled(life, Outcome::Applied, ask.settled_at, policy),
        entities: written,
        woken,
    })
}

/// Every change made on its entity, in order.
fn made(
    entities: &[Option<&Entity>],
    ask: &Apply,
) -> impl Iterator<Item = Result<Entity, GuardRefusal>> {
    ask.changes.iter().enumerate().map(|(index, change)| {
        let entity = entities.get(index).copied().flatten();
        change.make(entity, ask.settled_at)
    })
}

/// Reads a refused transaction that wakes nobody.
#[must_use]
pub fn refusal(found: Option<&Life>, entities: &[Option<&Entity>], ask: &Apply) -> ApplyRefusal {
    refusal_with_wake(found, entities, None, ask)
}

/// Reads a refused transaction.
#[must_use]
pub fn refusal_with_wake(
    found: Option<&Life>,
    entities: &[Option<&Entity>],
    next: Option<&Life>,
    ask: &Apply,
) -> ApplyRefusal {
    if !found.is_some_and(|life| is_held(life, ask.epoch)) {
        return ApplyRefusal::Fence(fence_refusal(found, |life| {
            is_my_settle(life, ask.epoch, ask.settled_at)
        }));
    }
    let mut superseded = Vec::new();
    let mut moved = Vec::new();
    for (index, made) in made(entities, ask).enumerate() {
        match made {
            Ok(_) => {}
            Err(GuardRefusal::Superseded) => superseded.push(index),
            Err(GuardRefusal::RevisionMoved) => moved.push(index),
        }
    }
    let is_wake_refused =
        ask.wake.as_ref().is_some_and(|asked| wake(next, asked, ask.settled_at).is_none());
    if !superseded.is_empty() {
        ApplyRefusal::Superseded(superseded)
    } else if moved.is_empty() && is_wake_refused {
        ApplyRefusal::NotWaiting
    } else {
        ApplyRefusal::RevisionMoved(moved)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{EPOCH, NOW, life, lives, newer};
    use super::*;
    use crate::{Bucket, EntityKey, EventKey, Guard, Open, Stamp, Status, Tie, Version};
    use std::collections::BTreeSet;

    fn change(version: i128, entity: &str) -> Change {
        Change {
            entity: EntityKey::new("s", "invoice", entity).unwrap(),
            guard: Guard::Newer {
                stamp: Stamp {
                    version: Version::new(version).unwrap(),
                    rank: 0,
                    event_id: "evt".to_owned(),
                },
                tie: Tie::Rank,
            },
            state: serde_json::Map::new(),
            is_final: false,
            leaves: BTreeSet::new(),
        }
    }

    fn standing_on(read: Option<u64>, entity: &str) -> Change {
        Change {
            guard: Guard::Revision { read, version: None, event_id: "evt".to_owned() },
            ..change(0, entity)
        }
    }

    fn entity(version: i128) -> Entity {
        change(version, "in_1").make(None, NOW).unwrap()
    }

    fn ask(changes: Vec<Change>) -> Apply {
        Apply::new(EPOCH, NOW, changes)
    }

    fn waking(key: &EventKey) -> Apply {
        Apply { wake: Some(Wake { key: key.clone() }), ..ask(vec![standing_on(None, "in_1")]) }
    }

    fn run(
        found: &Life,
        entities: &[Option<&Entity>],
        ask: &Apply,
    ) -> Result<Applied, ApplyRefusal> {
        apply(Some(found), entities, ask, &Policy::default())
    }

    #[test]
    fn every_change_and_the_rows_end_are_written_together() {
        let held = Life { waiting_since: Some(NOW), ..life(Status::Processing) };
        let ask = ask(vec![change(2, "in_1"), change(2, "in_2")]);
        let applied = run(&held, &[Some(&entity(1)), None], &ask).unwrap();
        let versions: Vec<_> = applied.entities.iter().map(|e| e.version).collect();
        assert_eq!(versions, [Version::new(2).ok(), Version::new(2).ok()]);
        assert_eq!(applied.life.status, Status::Settled);
        assert_eq!(applied.life.outcome, Some(Outcome::Applied));
        assert_eq!(applied.life.settled_at, Some(NOW));
        assert!(applied.life.expires_at.is_some());
        assert_eq!((applied.life.open, applied.life.lease), (None, None));
        assert_eq!(applied.life.waiting_since, None);
    }

    #[test]
    fn a_stale_lease_cannot_apply() {
        let ask = ask(vec![change(2, "in_1")]);
        let lost = Err(ApplyRefusal::Fence(FenceRefusal::Lost));
        for epoch in [EPOCH - 1, EPOCH + 1] {
            let held = Life { epoch, ..life(Status::Processing) };
            assert_eq!(run(&held, &[None], &ask), lost);
        }
        for found in lives().filter(|found| found.status != Status::Processing) {
            assert_eq!(run(&found, &[None], &ask), lost, "{}", found.status);
        }
        let policy = Policy::default();
        assert_eq!(
            apply(None, &[None], &ask, &policy),
            Err(ApplyRefusal::Fence(FenceRefusal::Missing))
        );
        assert_eq!(
            run(&newer(Status::Processing), &[None], &ask),
            Err(ApplyRefusal::Fence(FenceRefusal::UnknownFormat))
        );
    }

    #[test]
    fn the_fence_is_named_before_any_entity() {
        let ask = ask(vec![change(1, "in_1")]);
        let settled = life(Status::Settled);
        assert!(matches!(run(&settled, &[Some(&entity(9))], &ask), Err(ApplyRefusal::Fence(_))));
    }

    #[test]
    fn a_superseded_change_is_named_and_nothing_is_written() {
        let held = life(Status::Processing);
        let changes = vec![change(3, "in_1"), change(1, "in_2"), standing_on(Some(9), "in_3")];
        let newer = entity(2);
        let entities = [Some(&newer), Some(&newer), Some(&newer)];
        assert_eq!(
            run(&held, &entities, &ask(changes)),
            Err(ApplyRefusal::Superseded(vec![1])),
            "the moved revision is met again without it"
        );
    }

    #[test]
    fn a_change_on_a_moved_revision_is_named() {
        let held = life(Status::Processing);
        let found = entity(1);
        let changes = vec![standing_on(Some(1), "in_1"), standing_on(None, "in_2")];
        assert_eq!(
            run(&held, &[Some(&found), Some(&found)], &ask(changes)),
            Err(ApplyRefusal::RevisionMoved(vec![1]))
        );
    }

    #[test]
    fn an_entity_that_is_not_given_counts_as_not_found_and_no_change_is_dropped() {
        let held = life(Status::Processing);
        let ask = ask(vec![change(1, "in_1"), change(1, "in_2")]);
        let applied = run(&held, &[None], &ask).unwrap();
        assert_eq!(applied.entities.len(), 2);
    }

    #[test]
    fn an_apply_whose_answer_was_lost_is_known_by_its_epoch_and_time() {
        let ask = ask(vec![change(2, "in_1")]);
        let applied = run(&life(Status::Processing), &[None], &ask).unwrap();
        let entities = [applied.entities.first()];
        assert_eq!(
            run(&applied.life, &entities, &ask),
            Err(ApplyRefusal::Fence(FenceRefusal::Mine))
        );
        let later = Apply { settled_at: NOW.plus(1), ..ask };
        assert_eq!(
            run(&applied.life, &entities, &later),
            Err(ApplyRefusal::Fence(FenceRefusal::Lost))
        );
    }

    #[test]
    fn the_next_row_is_due_at_once_whether_it_waits_or_was_leased_out_of_its_wait() {
        let key = EventKey::parse("s#evt_2").unwrap();
        let ask = waking(&key);
        let policy = Policy::default();
        let held = life(Status::Processing);
        for next in [life(Status::Waiting), life(Status::Processing)] {
            let applied = apply_and_wake(Some(&held), &[None], Some(&next), &ask, &policy).unwrap();
            let open = Open { bucket: Bucket::Pending(key.shard()), due_at: NOW };
            let expected = Life { open: Some(open), ..next };
            assert_eq!(applied.woken, Some(expected));
        }
    }

    #[test]
    fn a_row_that_needs_no_waking_stops_the_wake_and_not_the_change() {
        let ask = waking(&EventKey::parse("s#evt_2").unwrap());
        let policy = Policy::default();
        let held = life(Status::Processing);
        let moved_on =
            lives().filter(|next| !matches!(next.status, Status::Waiting | Status::Processing));
        for next in moved_on.chain([newer(Status::Waiting)]) {
            let refused = apply_and_wake(Some(&held), &[None], Some(&next), &ask, &policy);
            assert_eq!(refused, Err(ApplyRefusal::NotWaiting), "{}", next.status);
        }
        assert_eq!(
            run(&held, &[None], &ask),
            Err(ApplyRefusal::NotWaiting),
            "a wake is never dropped in silence"
        );
        let without = Apply { wake: None, ..ask };
        assert_eq!(run(&held, &[None], &without).unwrap().woken, None);
    }

    #[test]
    fn a_moved_revision_is_named_before_a_waiter_that_moved_on() {
        let ask = waking(&EventKey::parse("s#evt_2").unwrap());
        let held = life(Status::Processing);
        assert_eq!(
            run(&held, &[Some(&entity(1))], &ask),
            Err(ApplyRefusal::RevisionMoved(vec![0])),
            "the set that named the waiter is read again"
        );
    }
}
