//! Wait in sequence: give the row back without fault until its predecessor has come, and leave
//! its name where whoever applies the predecessor reads it. One transaction of two writes: the
//! row under its fence, and the state row only while the predecessor is still missing.
//!
//! The state row's revision rises with the set. Without that, an applier that read the set a
//! moment too early would commit beside the waiter and wake nobody.

use super::{FenceRefusal, fence_refusal, is_held, wait::given_back};
use crate::{Entity, Life, Millis, Policy, Version, Waiter};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WaitInSequence {
    /// The holder's fence.
    pub epoch: u64,
    /// The holder's clock.
    pub now: Millis,
    /// Since when the leased row has waited, if it has.
    pub waiting_since: Option<Millis>,
    /// How long the sequence waits for a missing number, from the first wait.
    pub timeout_ms: u64,
    /// The row and its number.
    pub waiter: Waiter,
}

impl WaitInSequence {
    /// When the wait is over, whoever comes: the row's `due_at` and `retry_at`.
    #[must_use]
    pub fn due_at(&self) -> Millis {
        self.waiting_since.unwrap_or(self.now).plus(self.timeout_ms)
    }

    /// The number that must have come first.
    #[must_use]
    pub fn predecessor(&self) -> Version {
        self.waiter.number.predecessor()
    }
}

/// What the transaction wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waited {
    /// The waiting row.
    pub life: Life,
    /// The state row, born by this write where there was none.
    pub entity: Entity,
}

/// What a lease holder does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitInSequenceRefusal {
    /// The fence.
    Fence(FenceRefusal),
    /// The predecessor came in between: project again.
    PredecessorCame,
    /// The set is full: nobody will wake this row, so it has to look again by itself.
    TooManyWaiters,
}

/// Gives a row back until its predecessor has come. `entity` is the state row found.
pub fn wait_in_sequence(
    found: Option<&Life>,
    entity: Option<&Entity>,
    ask: &WaitInSequence,
    policy: &Policy,
) -> Result<Waited, WaitInSequenceRefusal> {
    let member = ask.waiter.to_string();
    match found {
        Some(life)
            if is_held(life, ask.epoch)
                && is_missing(entity, ask.predecessor())
                && has_room(entity, &member, policy) =>
        {
            let mut after = entity.cloned().unwrap_or_else(unwritten);
            after.revision = after.revision.saturating_add(1);
            after.waiting.insert(member);
            Ok(Waited {
                life: given_back(life, ask.now, ask.due_at(), ask.due_at(), ask.waiter.key.shard()),
                entity: after,
            })
        }
        Some(_) | None => Err(refusal(found, entity, ask, policy)),
    }
}

/// A state row that has only a set of waiters.
fn unwritten() -> Entity {
    Entity {
        version: None,
        rank: 0,
        last_event: String::new(),
        revision: 0,
        state: serde_json::Map::new(),
        updated_at: Millis(0),
        is_final: false,
        waiting: std::collections::BTreeSet::new(),
    }
}

fn is_missing(entity: Option<&Entity>, predecessor: Version) -> bool {
    entity.and_then(|entity| entity.version).is_none_or(|reached| reached < predecessor)
}

/// A member already counted may stay: a full set must not push its own waiters over the gap.
fn has_room(entity: Option<&Entity>, member: &str, policy: &Policy) -> bool {
    entity.is_none_or(|entity| {
        entity.waiting.len() < policy.waiters_max || entity.waiting.contains(member)
    })
}

/// Reads a refused transaction.
#[must_use]
pub fn refusal(
    found: Option<&Life>,
    entity: Option<&Entity>,
    ask: &WaitInSequence,
    policy: &Policy,
) -> WaitInSequenceRefusal {
    if !found.is_some_and(|life| is_held(life, ask.epoch)) {
        return WaitInSequenceRefusal::Fence(fence_refusal(found, |life| {
            super::wait::is_my_wait(life, ask.epoch, ask.due_at())
        }));
    }
    if is_missing(entity, ask.predecessor()) && !has_room(entity, &ask.waiter.to_string(), policy) {
        WaitInSequenceRefusal::TooManyWaiters
    } else {
        WaitInSequenceRefusal::PredecessorCame
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{EPOCH, NOW, life, lives, newer};
    use super::*;
    use crate::{Bucket, EventKey, Open, Status};

    const HOUR_MS: u64 = 3_600_000;

    fn waiter(number: i128, key: &str) -> Waiter {
        Waiter { number: Version::new(number).unwrap(), key: EventKey::parse(key).unwrap() }
    }

    fn ask() -> WaitInSequence {
        WaitInSequence {
            epoch: EPOCH,
            now: NOW,
            waiting_since: None,
            timeout_ms: HOUR_MS,
            waiter: waiter(5, "s#evt_5"),
        }
    }

    fn reached(version: i128, waiting: &[&str]) -> Entity {
        Entity {
            version: Some(Version::new(version).unwrap()),
            revision: 8,
            waiting: waiting.iter().map(|member| (*member).to_owned()).collect(),
            ..unwritten()
        }
    }

    fn run(found: &Life, entity: Option<&Entity>) -> Result<Waited, WaitInSequenceRefusal> {
        wait_in_sequence(Some(found), entity, &ask(), &Policy::default())
    }

    #[test]
    fn a_waiter_gives_its_attempt_back_and_joins_the_set_until_its_time_is_up() {
        let entity = reached(3, &["6#s#evt_6"]);
        let waited = run(&life(Status::Processing), Some(&entity)).unwrap();
        assert_eq!((waited.life.status, waited.life.attempts), (Status::Waiting, 2));
        let open = Open {
            bucket: Bucket::Pending(EventKey::parse("s#evt_5").unwrap().shard()),
            due_at: NOW.plus(HOUR_MS),
        };
        assert_eq!(waited.life.open, Some(open));
        assert_eq!(waited.life.retry_at, Some(open.due_at));
        assert_eq!(waited.life.waiting_since, Some(NOW));
        assert_eq!(waited.life.lease, None);
        let members: Vec<_> = waited.entity.waiting.iter().map(String::as_str).collect();
        assert_eq!(members, ["5#s#evt_5", "6#s#evt_6"]);
        assert_eq!(waited.entity.revision, 9, "an applier must read the set again");
        let expected = Entity { revision: 9, waiting: waited.entity.waiting.clone(), ..entity };
        assert_eq!(waited.entity, expected, "and nothing else of the state moved");
    }

    #[test]
    fn the_first_waiter_of_an_entity_nobody_wrote_creates_its_row() {
        let waited = run(&life(Status::Processing), None).unwrap();
        assert_eq!((waited.entity.version, waited.entity.revision), (None, 1));
        assert_eq!(waited.entity.waiting.len(), 1);
    }

    #[test]
    fn waiting_again_does_not_start_the_hour_again() {
        let held = Life { waiting_since: Some(NOW.minus(1_000)), ..life(Status::Processing) };
        let again = WaitInSequence { waiting_since: held.waiting_since, ..ask() };
        let waited = wait_in_sequence(Some(&held), None, &again, &Policy::default()).unwrap();
        assert_eq!(waited.life.waiting_since, Some(NOW.minus(1_000)));
        let due_at = waited.life.open.unwrap().due_at;
        assert_eq!(due_at, NOW.plus(HOUR_MS - 1_000));
    }

    #[test]
    fn nobody_waits_for_a_predecessor_that_has_come() {
        let held = life(Status::Processing);
        assert!(run(&held, Some(&reached(3, &[]))).is_ok());
        for version in [4, 5, 6] {
            assert_eq!(
                run(&held, Some(&reached(version, &[]))),
                Err(WaitInSequenceRefusal::PredecessorCame)
            );
        }
    }

    #[test]
    fn a_full_set_refuses_a_new_waiter_but_keeps_its_own() {
        let policy = Policy { waiters_max: 2, ..Policy::default() };
        let held = life(Status::Processing);
        let full = reached(1, &["6#s#evt_6", "7#s#evt_7"]);
        let refused = wait_in_sequence(Some(&held), Some(&full), &ask(), &policy);
        assert_eq!(refused, Err(WaitInSequenceRefusal::TooManyWaiters));
        let with_me = reached(1, &["5#s#evt_5", "7#s#evt_7"]);
        let waited = wait_in_sequence(Some(&held), Some(&with_me), &ask(), &policy).unwrap();
        assert_eq!(waited.entity.waiting, with_me.waiting);
        let room = reached(1, &["7#s#evt_7"]);
        assert!(wait_in_sequence(Some(&held), Some(&room), &ask(), &policy).is_ok());
    }

    #[test]
    fn a_full_set_does_not_hide_that_the_predecessor_came() {
        let policy = Policy { waiters_max: 1, ..Policy::default() };
        let full = reached(4, &["6#s#evt_6"]);
        let held = life(Status::Processing);
        assert_eq!(
            wait_in_sequence(Some(&held), Some(&full), &ask(), &policy),
            Err(WaitInSequenceRefusal::PredecessorCame)
        );
    }

    #[test]
    fn only_the_holder_of_the_lease_can_wait_and_the_fence_is_named_first() {
        let lost = Err(WaitInSequenceRefusal::Fence(FenceRefusal::Lost));
        let came = reached(9, &[]);
        for found in lives().filter(|found| found.status != Status::Processing) {
            assert_eq!(run(&found, None), lost, "{}", found.status);
            assert_eq!(run(&found, Some(&came)), lost, "{}", found.status);
        }
        for epoch in [EPOCH - 1, EPOCH + 1] {
            let held = Life { epoch, ..life(Status::Processing) };
            assert_eq!(run(&held, None), lost);
        }
        let policy = Policy::default();
        assert_eq!(
            wait_in_sequence(None, None, &ask(), &policy),
            Err(WaitInSequenceRefusal::Fence(FenceRefusal::Missing))
        );
        assert_eq!(
            run(&newer(Status::Processing), None),
            Err(WaitInSequenceRefusal::Fence(FenceRefusal::UnknownFormat))
        );
    }

    #[test]
    fn a_wait_whose_answer_was_lost_is_known_even_after_it_was_woken() {
        let waited = run(&life(Status::Processing), None).unwrap();
        let mine = Err(WaitInSequenceRefusal::Fence(FenceRefusal::Mine));
        assert_eq!(run(&waited.life, Some(&waited.entity)), mine);
        let woken =
            Life { open: waited.life.open.map(|open| Open { due_at: NOW, ..open }), ..waited.life };
        assert_eq!(run(&woken, Some(&reached(4, &[]))), mine);
    }
}
