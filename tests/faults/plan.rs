//! The deliveries of a run, a function of its seed: events of many entities, shuffled, in copies.
//!
//! Each event carries what has to come of it, so that the auditor needs none of the product's code.

mod maker;

use crate::schedule::Curse;
use maker::Maker;
use serde_json::Value;
use std::collections::HashMap;

/// What has to come of an event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expect {
    /// Its state is written unless newer state is there. The whole state afterwards.
    Versioned { entity: String, stamp: Stamp, state: Value },
    /// Its amount is added, once, in hundredths.
    Added { entity: String, cents: i64 },
    /// Its state is written on top of the number before it, or after that one's time is up. Numbers
    /// begin with 1; of two events with one number, either is written.
    Numbered { entity: String, number: u64, state: Value },
    /// What is asked for at `path` is stored: `says` from this event on, until a later one. Events are
    /// numbered from 1 within their entity.
    Fetched { entity: String, path: String, number: u64, says: Value, state: Value },
    /// Nothing is configured for it, and its proof serves either it or the event of this key: one is
    /// ignored, the other kept beside it.
    Rival { other: String },
    /// Nothing is configured for it.
    Ignored,
    /// It can never be used: dead, permanent, with a reason that holds these words.
    Dead { why: &'static str },
    /// Its id has two contents: one is ignored, the other kept beside it.
    Conflicting,
}

/// An event's place in its entity's order: tombstones last, then by time, type and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    pub(crate) is_final: bool,
    pub(crate) seconds: u64,
    pub(crate) rank: u8,
    pub(crate) id: String,
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// Its key in the ledger.
    pub(crate) key: String,
    /// The last part of it, by which an entity remembers its last event.
    pub(crate) id: String,
    pub(crate) source: &'static str,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) expect: Expect,
    /// Whether the provider tries again until it hears 2xx.
    pub(crate) retries: bool,
}

/// Everything a run does to the stack from outside.
pub(crate) struct Plan {
    pub(crate) events: Vec<Event>,
    /// Indexes of events, in the order of sending; copies are neighbours of neighbours.
    pub(crate) deliveries: Vec<usize>,
    pub(crate) curses: HashMap<String, Curse>,
}

/// Events a delivery may be moved away from its place.
const SHUFFLED_WITHIN: usize = 40;

impl Plan {
    /// The plan of `seed` with at least `size` deliveries.
    pub(crate) fn new(seed: u64, size: usize) -> Result<Self, String> {
        let mut maker = Maker::new(seed)?;
        let mut deliveries = Vec::new();
        while deliveries.len() < size {
            for index in maker.entity() {
                // One in four comes twice, one in twelve three times.
                let copies = 1 + usize::from(maker.one_in(4)) + usize::from(maker.one_in(12));
                deliveries.extend(std::iter::repeat_n(index, copies));
            }
        }
        for at in 0..deliveries.len() {
            let to = (at + maker.below(SHUFFLED_WITHIN)).min(deliveries.len() - 1);
            deliveries.swap(at, to);
        }
        let (events, curses) = maker.end();
        Ok(Self { events, deliveries, curses })
    }
}
