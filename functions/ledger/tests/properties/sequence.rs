//! Many numbers of one sequence, arriving in any order, worked by workers that may die anywhere.
//!
//! Within half an hour everything must be applied, in order, though the sequence's timeout is an
//! hour: a waiter that nobody wakes would miss it.

use crate::history::row;
use ledger::{
    Change, Entity, EntityKey, EventKey, Guard, Life, Millis, Outcome, Policy, Status, Token, Turn,
    Version, Waiter, succession, turn,
    verbs::{
        self, Apply, ApplyRefusal, Birth, Claim, LeaseAsk, Sweep, WaitInSequence,
        WaitInSequenceRefusal, Wake,
    },
};
use proptest::{collection::vec, prelude::*};
use std::collections::BTreeMap;

/// One step of the random part: a number arrives, or a worker takes one step.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Arrives(usize),
    Works { worker: usize, number: usize },
    Dies(usize),
}

/// How many numbers, and what happens before everybody gets to work properly.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    numbers: usize,
    steps: Vec<Step>,
}

pub(crate) fn order() -> impl Strategy<Value = Order> {
    (2..6_usize).prop_flat_map(|numbers| {
        let step = prop_oneof![
            2 => (0..numbers).prop_map(Step::Arrives),
            6 => (0..2_usize, 0..numbers)
                .prop_map(|(worker, number)| Step::Works { worker, number }),
            1 => (0..2_usize).prop_map(Step::Dies),
        ];
        vec(step, 0..60).prop_map(move |steps| Order { numbers, steps })
    })
}

/// Where a worker stands.
#[derive(Default)]
enum Worker {
    #[default]
    Idle,
    Leased {
        number: usize,
        epoch: u64,
    },
    Decided {
        number: usize,
        ask: Box<Apply>,
    },
    Waits {
        number: usize,
        ask: Box<WaitInSequence>,
    },
}

struct Play {
    policy: Policy,
    now: Millis,
    keys: Vec<EventKey>,
    rows: BTreeMap<usize, Life>,
    entity: Option<Entity>,
    workers: [Worker; 2],
    tokens: u128,
    /// The numbers in the order in which they were applied.
    applied: Vec<usize>,
}

/// Plays it and judges the end.
pub(crate) fn play(order: &Order) {
    let key = |n| EventKey::parse(&format!("s#e{n}")).expect("a key");
    let mut play = Play {
        policy: Policy { attempts_max: 1_000, ..Policy::default() },
        now: Millis(10_000_000),
        keys: (0..order.numbers).map(key).collect(),
        rows: BTreeMap::new(),
        entity: None,
        workers: Default::default(),
        tokens: 0,
        applied: Vec::new(),
    };
    for step in &order.steps {
        play.now = play.now.plus(10);
        match step {
            Step::Arrives(number) => play.arrives(*number),
            Step::Works { worker, number } => play.works(*worker, *number),
            Step::Dies(worker) => play.workers[*worker] = Worker::Idle,
        }
    }
    play.workers = Default::default();
    (0..order.numbers).for_each(|number| play.arrives(number));
    let patience = play.now.plus(1_800_000);
    while play.now < patience {
        play.now = play.now.plus(60_000);
        play.minute();
    }
    play.judge(order.numbers);
}

impl Play {
    fn version(number: usize) -> Version {
        Version::new(number as i128 + 1).expect("a small version")
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn arrives(&mut self, number: usize) {
        let ask = Claim { birth: Birth::Claimed, nonce: self.token(), received_at: self.now };
        let found =
            self.rows.get(&number).map(|life| row(&self.keys[number], life.clone(), self.now));
        let key = &self.keys[number];
        if let Ok(life) = verbs::claim(found.as_ref(), key, None, &ask, &self.policy) {
            self.rows.insert(number, life);
        }
    }

    /// The steward and one good worker.
    fn minute(&mut self) {
        for number in 0..self.keys.len() {
            let Some(open) = self.rows.get(&number).and_then(|life| life.open) else { continue };
            if open.due_at > self.now {
                continue;
            }
            let life = self.rows.get(&number);
            let ask = Sweep {
                seen_due_at: open.due_at,
                now: self.now,
                shard: self.keys[number].shard(),
                sweeps: life.map_or(0, |life| life.sweeps),
            };
            let swept = verbs::sweep(life, &ask, &self.policy).expect("it is as it was seen");
            self.rows.insert(number, swept);
            for _ in 0..12 {
                self.works(0, number);
            }
            self.workers[0] = Worker::Idle;
        }
    }

    fn works(&mut self, worker: usize, number: usize) {
        let next = match std::mem::take(&mut self.workers[worker]) {
            Worker::Idle => self.leases(number),
            Worker::Leased { number, epoch } => self.decides(number, epoch),
            Worker::Decided { number, ask } => self.applies(number, *ask),
            Worker::Waits { number, ask } => self.waits(number, &ask),
        };
        self.workers[worker] = next;
    }

    fn leases(&mut self, number: usize) -> Worker {
        let ask = LeaseAsk {
            owner: self.token(),
            until: self.now.plus(40_000),
            now: self.now,
            release: String::new(),
        };
        match verbs::lease(self.rows.get(&number), &ask, &self.policy) {
            Ok(life) => {
                let epoch = life.epoch;
                self.rows.insert(number, life);
                Worker::Leased { number, epoch }
            }
            Err(_) => Worker::Idle,
        }
    }

    fn decides(&mut self, number: usize, epoch: u64) -> Worker {
        let version = Self::version(number);
        match turn(self.entity.as_ref(), version, Self::version(0)) {
            Turn::Now => {
                let after = succession(self.entity.as_ref(), version);
                let change = Change {
                    entity: EntityKey::new("s", "thing", "1").expect("a key"),
                    guard: Guard::Revision {
                        read: self.entity.as_ref().map(|entity| entity.revision),
                        version: Some(version),
                        event_id: String::new(),
                    },
                    state: serde_json::Map::new(),
                    is_final: false,
                    leaves: after.leaves,
                };
                let mut ask = Apply::new(epoch, self.now, vec![change]);
                ask.wake = after.wakes.into_iter().next();
                Worker::Decided { number, ask: Box::new(ask) }
            }
            Turn::Early => {
                let ask = WaitInSequence {
                    epoch,
                    now: self.now,
                    waiting_since: self.rows.get(&number).and_then(|life| life.waiting_since),
                    timeout_ms: 3_600_000,
                    waiter: Waiter { number: version, key: self.keys[number].clone() },
                };
                Worker::Waits { number, ask: Box::new(ask) }
            }
            Turn::Superseded => Worker::Idle,
        }
    }

    fn applies(&mut self, number: usize, mut ask: Apply) -> Worker {
        let woken =
            ask.wake.as_ref().and_then(|Wake { key }| self.keys.iter().position(|k| k == key));
        let next = woken.and_then(|next| self.rows.get(&next));
        let entities = [self.entity.as_ref()];
        let life = self.rows.get(&number);
        match verbs::apply_and_wake(life, &entities, next, &ask, &self.policy) {
            Ok(applied) => {
                self.applied.push(number);
                self.rows.insert(number, applied.life);
                self.entity = applied.entities.into_iter().next();
                if let (Some(next), Some(life)) = (woken, applied.woken) {
                    self.rows.insert(next, life);
                }
                Worker::Idle
            }
            Err(ApplyRefusal::NotWaiting) => {
                ask.wake = None;
                Worker::Decided { number, ask: Box::new(ask) }
            }
            Err(ApplyRefusal::RevisionMoved(_)) => Worker::Leased { number, epoch: ask.epoch },
            Err(ApplyRefusal::Superseded(_) | ApplyRefusal::Fence(_)) => Worker::Idle,
        }
    }

    fn waits(&mut self, number: usize, ask: &WaitInSequence) -> Worker {
        let life = self.rows.get(&number);
        match verbs::wait_in_sequence(life, self.entity.as_ref(), ask, &self.policy) {
            Ok(waited) => {
                self.rows.insert(number, waited.life);
                self.entity = Some(waited.entity);
                Worker::Idle
            }
            Err(WaitInSequenceRefusal::PredecessorCame) => {
                Worker::Leased { number, epoch: ask.epoch }
            }
            Err(WaitInSequenceRefusal::TooManyWaiters | WaitInSequenceRefusal::Fence(_)) => {
                Worker::Idle
            }
        }
    }

    fn judge(&self, numbers: usize) {
        let all: Vec<usize> = (0..numbers).collect();
        assert_eq!(self.applied, all, "applied in another order, or not all: {:?}", self.rows);
        for life in self.rows.values() {
            assert_eq!(life.status, Status::Settled);
            assert_eq!(life.outcome, Some(Outcome::Applied));
        }
        let entity = self.entity.as_ref().expect("an entity");
        assert_eq!(entity.version, Some(Self::version(numbers - 1)));
        assert!(entity.waiting.is_empty(), "the set of waiters leaks: {:?}", entity.waiting);
    }
}
