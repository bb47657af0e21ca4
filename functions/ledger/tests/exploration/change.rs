//! The transactions of a lease holder: what each event changes, and the wait in sequence.

use crate::{
    bounds::{Design, Projection},
    model::{Answer, Model, Said, Verb},
    process::RowIx,
    properties::{Property, Writer, judge_entity},
    times::SETTLED,
    verbs::{SEQUENCE_CLOCK, fence},
};
use ledger::{
    Change, Entity, EntityKey, Guard, Life, Stamp, Status, Tie, Turn, Version, Waiter, succession,
    turn,
    verbs::{self, Apply, ApplyRefusal, WaitInSequence, WaitInSequenceRefusal},
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What each event adds to the total: one digit pair each, so that the total tells how often
/// either was added.
pub(crate) const AMOUNTS: [u64; 2] = [1, 100];

/// What a lease holder has decided to do in one transaction.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) row: RowIx,
    pub(crate) epoch: u8,
    pub(crate) dropped: u8,
    pub(crate) wakes: bool,
    pub(crate) read: [u16; 2],
}

/// The number, or version, of an event.
fn version(row: RowIx) -> Version {
    Version::new(i128::from(row) + 1).expect("a small version")
}

/// The total of a state row.
pub(crate) fn total(entity: Option<&Entity>) -> u64 {
    entity.and_then(|entity| entity.state.get("total")).and_then(Value::as_u64).unwrap_or(0)
}

fn snapshot(row: RowIx) -> Change {
    let stamp = Stamp { version: version(row), rank: 0, event_id: format!("e{}", row + 1) };
    Change {
        entity: EntityKey::new("s", "thing", "x").expect("a key"),
        guard: Guard::Newer { stamp, tie: Tie::Rank },
        state: Map::new(),
        is_final: false,
        leaves: BTreeSet::new(),
    }
}

impl Model {
    /// The changes a plan makes, with the entity slot of each.
    fn changes(&self, plan: Plan) -> (Vec<usize>, Apply) {
        let snapshot = (0, snapshot(plan.row));
        let all = match self.bounds.projection {
            Projection::Snapshot => vec![snapshot],
            Projection::Delta => vec![(0, self.delta(plan, 0))],
            Projection::Sequence => vec![(0, self.numbered(plan))],
            Projection::Both => vec![snapshot, (1, self.delta(plan, 1))],
        };
        let kept = all.into_iter().filter(|(slot, _)| plan.dropped & (1 << slot) == 0);
        let (slots, changes) = kept.unzip();
        let mut ask = Apply::new(plan.epoch.into(), SETTLED, changes);
        if self.bounds.projection == Projection::Sequence && plan.wakes {
            let after = succession(self.entities.get(plan.read[0]), version(plan.row));
            ask.wake = after.wakes.into_iter().next();
        }
        (slots, ask)
    }

    fn delta(&self, plan: Plan, slot: usize) -> Change {
        let read = self.entities.get(plan.read[slot]);
        let sum = total(read) + AMOUNTS[usize::from(plan.row)];
        let mut state = Map::new();
        state.insert("total".to_owned(), Value::from(sum));
        Change {
            entity: EntityKey::new("s", "sum", "y").expect("a key"),
            guard: Guard::Revision {
                read: read.map(|entity| entity.revision),
                version: None,
                event_id: String::new(),
            },
            state,
            is_final: false,
            leaves: BTreeSet::new(),
        }
    }

    fn numbered(&self, plan: Plan) -> Change {
        let read = self.entities.get(plan.read[0]);
        Change {
            guard: Guard::Revision {
                read: read.map(|entity| entity.revision),
                version: Some(version(plan.row)),
                event_id: String::new(),
            },
            leaves: succession(read, version(plan.row)).leaves,
            ..snapshot(plan.row)
        }
    }

    /// Whether it is an event's turn on the entity as it stands.
    pub(crate) fn turn(&self, row: RowIx, entity: u16) -> Turn {
        {
            // Row 0 carries number 1.
            let first = version(0);
            let start = if self.bounds.gap { first.predecessor() } else { first };
            turn(self.entities.get(entity), version(row), start)
        }
    }

    /// The next row, if this plan wakes one.
    pub(crate) fn wakes(&self, plan: Plan) -> Option<RowIx> {
        let wake = self.changes(plan).1.wake?;
        self.keys.iter().position(|key| *key == wake.key).and_then(|row| u8::try_from(row).ok())
    }

    /// Applies, settles and wakes. `next` is the life of the row that is to be woken.
    pub(crate) fn apply(&mut self, life: u16, entities: [u16; 2], next: u16, plan: Plan) -> Answer {
        let code = u16::from(plan.row)
            | u16::from(plan.dropped) << 1
            | u16::from(plan.wakes) << 3
            | u16::from(plan.epoch) << 4;
        let question = [life, entities[0], entities[1], plan.read[0], plan.read[1], next, code];
        self.ask(Verb::Apply, question, |model| model.apply_itself(life, entities, next, plan))
    }

    fn apply_itself(&mut self, life: u16, entities: [u16; 2], next: u16, plan: Plan) -> Answer {
        let (slots, mut ask) = self.changes(plan);
        if self.design == Design::WokenByMessageOnly {
            ask.wake = None;
        }
        let found = self.fenced(life, plan.epoch);
        let sleeps_on =
            |life: &Life| self.design == Design::WakesWaitersOnly && life.status != Status::Waiting;
        let next = self.lives.get(next).filter(|life| !sleeps_on(life)).cloned();
        let stored: Vec<Option<Entity>> =
            slots.iter().map(|slot| self.entities.get(entities[*slot]).cloned()).collect();
        let is_unguarded = self.design == Design::NoVersionGuard;
        let seen: Vec<Option<&Entity>> =
            stored.iter().map(|entity| entity.as_ref().filter(|_| !is_unguarded)).collect();
        let policy = self.policy.clone();
        match verbs::apply_and_wake(found.as_ref(), &seen, next.as_ref(), &ask, &policy) {
            Ok(applied) => {
                let mut answer = self.wrote(
                    (Verb::Apply, Writer::Holder { epoch: plan.epoch }),
                    found.as_ref(),
                    &applied.life,
                );
                answer.entities = entities;
                for ((slot, old), new) in slots.iter().zip(&stored).zip(applied.entities) {
                    answer.breach = answer.breach.or(judge_entity(old.as_ref(), &new));
                    answer.entities[*slot] = self.store_entity(new);
                }
                if let Some(woken) = applied.woken {
                    answer.next =
                        self.wrote((Verb::Sweep, Writer::Anyone), next.as_ref(), &woken).life;
                }
                answer
            }
            Err(ApplyRefusal::Fence(why)) => Answer::said(fence(why)),
            Err(ApplyRefusal::RevisionMoved(_)) => Answer::said(Said::RevisionMoved),
            Err(ApplyRefusal::NotWaiting) => Answer::said(Said::NotWaiting),
            Err(ApplyRefusal::Superseded(indexes)) => {
                let bits = indexes.iter().fold(0, |bits, index| bits | 1 << slots[*index]);
                Answer::said(Said::Superseded(bits))
            }
        }
    }

    /// Broken designs only: the first of two writes.
    pub(crate) fn write_entity_alone(&mut self, entities: [u16; 2], plan: Plan) -> Answer {
        let (slots, ask) = self.changes(plan);
        let mut answer = Answer { entities, ..Answer::said(Said::Done) };
        for (slot, change) in slots.iter().zip(&ask.changes) {
            let found = self.entities.get(entities[*slot]).cloned();
            match change.make(found.as_ref(), SETTLED) {
                Ok(new) => answer.entities[*slot] = self.store_entity(new),
                Err(_) => return Answer::said(Said::RevisionMoved),
            }
        }
        answer
    }

    /// Waits in sequence.
    pub(crate) fn queue(&mut self, life: u16, entity: u16, row: RowIx, epoch: u8) -> Answer {
        let question = [life, entity, row.into(), epoch.into(), 0, 0, 0];
        self.ask(Verb::WaitInSequence, question, |model| {
            let found = model.fenced(life, epoch);
            let old = model.entities.get(entity).cloned();
            let (now, timeout_ms) = SEQUENCE_CLOCK;
            let key = model.keys[usize::from(row)].clone();
            let ask = WaitInSequence {
                epoch: epoch.into(),
                now,
                waiting_since: found.as_ref().and_then(|life| life.waiting_since),
                timeout_ms,
                waiter: Waiter { number: version(row), key },
            };
            match verbs::wait_in_sequence(found.as_ref(), old.as_ref(), &ask, &model.policy) {
                Ok(mut waited) => {
                    match model.design {
                        Design::WokenByMessageOnly => waited.life.open = None,
                        Design::SilentWaiters => {
                            waited.entity.revision = old.as_ref().map_or(1, |old| old.revision);
                        }
                        _ => {}
                    }
                    let mut answer = model.wrote(
                        (Verb::Wait, Writer::Holder { epoch }),
                        found.as_ref(),
                        &waited.life,
                    );
                    let breach = judge_entity(old.as_ref(), &waited.entity);
                    answer.breach = answer.breach.or(breach);
                    answer.entities = [model.store_entity(waited.entity), 0];
                    answer
                }
                Err(WaitInSequenceRefusal::Fence(why)) => Answer::said(fence(why)),
                Err(WaitInSequenceRefusal::PredecessorCame) => Answer::said(Said::PredecessorCame),
                Err(WaitInSequenceRefusal::TooManyWaiters) => Answer::said(Said::TooManyWaiters),
            }
        })
    }

    /// What the entities must be, from the events that changed them; `None` if all is well.
    pub(crate) fn tells_another_story(
        &self,
        entities: [u16; 2],
        applied: [u8; 2],
    ) -> Option<Property> {
        let sum: u64 = applied.iter().zip(AMOUNTS).map(|(n, amount)| u64::from(*n) * amount).sum();
        let newest = if applied[1] > 0 { 2 } else { i128::from(applied[0] > 0) };
        let is_total = |slot: usize| total(self.entities.get(entities[slot])) == sum;
        let reached = self
            .entities
            .get(entities[0])
            .and_then(|entity| entity.version)
            .map_or(0, Version::get);
        let is_true = match self.bounds.projection {
            Projection::Delta => is_total(0),
            Projection::Snapshot | Projection::Sequence => reached == newest,
            Projection::Both => is_total(1),
        };
        (!is_true).then_some(Property::StateIsItsEvents)
    }
}
