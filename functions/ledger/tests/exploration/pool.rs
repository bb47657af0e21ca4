//! Interning: every distinct life, entity and process gets a small number, so that a world is a
//! handful of numbers, and every verb is called once per distinct question.

use ledger::{Bucket, Entity, Life, Outcome, Status};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hash, Hasher},
};

/// A hasher for keys that are numbers already. Fast unoptimised, which is how tests are built.
#[derive(Default)]
pub(crate) struct Mix(u64);

pub(crate) const fn mix(left: u64, right: u64) -> u64 {
    let product = (left ^ 0x9E37_79B9_7F4A_7C15) as u128 * (right ^ 0xD6E8_FEB8_6659_FD93) as u128;
    (product as u64) ^ ((product >> 64) as u64)
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0, u64::from(*byte));
        }
    }
    fn write_u8(&mut self, number: u8) {
        self.0 = mix(self.0, u64::from(number));
    }
    fn write_u16(&mut self, number: u16) {
        self.0 = mix(self.0, u64::from(number));
    }
    fn write_u32(&mut self, number: u32) {
        self.0 = mix(self.0, u64::from(number));
    }
    fn write_usize(&mut self, number: usize) {
        self.0 = mix(self.0, number as u64);
    }
    fn write_isize(&mut self, number: isize) {
        self.0 = mix(self.0, number as u64);
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0, number);
    }
    fn write_u128(&mut self, number: u128) {
        self.0 = mix(mix(self.0, number as u64), (number >> 64) as u64);
    }
}

pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Things by number; number 0 is *nothing*.
pub(crate) struct Pool<T> {
    all: Vec<T>,
    numbers: FastMap<T, u16>,
}

impl<T: Clone + Eq + Hash> Pool<T> {
    pub(crate) fn new() -> Self {
        Self { all: Vec::new(), numbers: FastMap::default() }
    }

    pub(crate) fn number(&mut self, thing: &T) -> u16 {
        if let Some(number) = self.numbers.get(thing) {
            return *number;
        }
        self.all.push(thing.clone());
        let number = u16::try_from(self.all.len()).expect("fewer than 65,536 distinct things");
        self.numbers.insert(thing.clone(), number);
        number
    }

    pub(crate) fn get(&self, number: u16) -> Option<&T> {
        usize::from(number).checked_sub(1).map(|index| &self.all[index])
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

/// What the search asks of a life at every step, without touching it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    pub(crate) status: Status,
    pub(crate) is_known: bool,
    pub(crate) epoch: u8,
    /// The lease's owner, 0 for nobody in particular.
    pub(crate) owner: u8,
    pub(crate) nonce: u8,
    pub(crate) has_waited: bool,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) bucket: Option<Kind>,
    pub(crate) due: u32,
}

/// A bucket without its partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Pending,
    Dead,
    Parked,
}

impl Glance {
    pub(crate) fn of(life: &Life) -> Self {
        Self {
            status: life.status,
            is_known: life.format == ledger::ROW_FORMAT,
            epoch: small(life.epoch),
            owner: life.lease.map_or(0, |lease| small(lease.owner.0)),
            nonce: small(life.claim_nonce.0),
            has_waited: life.waiting_since.is_some(),
            outcome: life.outcome,
            bucket: life.open.map(|open| match open.bucket {
                Bucket::Pending(_) => Kind::Pending,
                Bucket::Dead(_) => Kind::Dead,
                Bucket::Parked(_) => Kind::Parked,
            }),
            due: life.open.map_or(0, |open| small(open.due_at.0)),
        }
    }
}

/// The revision of an entity, 0 where there is none.
pub(crate) fn revision(entity: Option<&Entity>) -> u8 {
    entity.map_or(0, |entity| small(entity.revision))
}

pub(crate) fn small<N, S: TryFrom<N>>(number: N) -> S {
    S::try_from(number).ok().expect("the model keeps its numbers small")
}
