//! What became of the events of a window: figures, and where in time the new ones lie.
//!
//! Bounded whatever the window's size: slots of five minutes, a number of types, a number of
//! failures by name. What is beyond is counted.

use ledger::Millis;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The new ones are counted in slots of this length.
pub const SLOT_MS: u64 = 300_000;
/// Types counted one by one.
const TYPES_MAX: usize = 200;
/// Failures kept by name.
const FAILURES_MAX: usize = 1_000;
/// The type of what is beyond.
const OTHER: &str = "(others)";

/// Figures of a run, or of a page of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Events of the window that the provider listed: new, duplicate and failed ones together.
    pub fetched: u64,
    /// Events that the ledger did not have.
    pub new: u64,
    /// Events that it had.
    pub duplicate: u64,
    /// Events that could not be fed in, or are kept and of no use.
    pub failed: u64,
    /// When the earliest of these happened; zero where one has no readable time.
    #[serde(default)]
    pub failed_from: Option<Millis>,
    /// New ones that belong to the other mode: kept, and settled as ignored.
    pub wrong_mode: u64,
    /// Events of types that were not asked for; not among the fetched.
    pub skipped: u64,
    /// Events from before the time that the ledger remembers, left alone; not among the fetched.
    #[serde(default)]
    pub forgotten: u64,
    /// Duplicates that the ledger received long after they happened.
    pub late: u64,
    /// New ones by slot of [`SLOT_MS`], by the provider's time.
    pub slots: BTreeMap<u64, u64>,
    /// Fetched and new ones by type.
    pub types: BTreeMap<String, (u64, u64)>,
    /// The first failures.
    pub failures: Vec<FailedEvent>,
}

/// An event that could not be fed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedEvent {
    /// Its id, or what there is of it.
    pub id: String,
    /// Why.
    pub why: String,
}

/// What became of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The ledger did not have it.
    New,
    /// The same, and it belongs to the other mode.
    WrongMode,
    /// The ledger had it.
    Duplicate {
        /// Whether it came long after it happened.
        is_late: bool,
    },
    /// It could not be fed in, or is of no use.
    Failed(String),
}

impl Tally {
    /// Counts one event.
    pub fn count(&mut self, id: &str, event_type: &str, at: Millis, outcome: Outcome) {
        self.fetched += 1;
        let is_new = matches!(outcome, Outcome::New | Outcome::WrongMode);
        let is_known = self.types.contains_key(event_type) || self.types.len() < TYPES_MAX;
        let name = if is_known { event_type } else { OTHER };
        let (fetched, new) = self.types.entry(name.to_owned()).or_default();
        *fetched += 1;
        *new += u64::from(is_new);
        match outcome {
            Outcome::New | Outcome::WrongMode => {
                self.new += 1;
                self.wrong_mode += u64::from(outcome == Outcome::WrongMode);
                *self.slots.entry(at.0 / SLOT_MS).or_default() += 1;
            }
            Outcome::Duplicate { is_late } => {
                self.duplicate += 1;
                self.late += u64::from(is_late);
            }
            Outcome::Failed(why) => self.fail(id, at, why),
        }
    }

    /// Counts an item that names no event.
    pub fn count_unlisted(&mut self, id: &str, why: String) {
        self.fetched += 1;
        self.fail(id, Millis::default(), why);
    }

    fn fail(&mut self, id: &str, at: Millis, why: String) {
        self.failed += 1;
        self.failed_from = earliest(self.failed_from, Some(at));
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(FailedEvent { id: id.to_owned(), why });
        }
    }

    /// Adds the figures of a page.
    pub fn add(&mut self, page: Self) {
        self.fetched += page.fetched;
        self.new += page.new;
        self.duplicate += page.duplicate;
        self.failed += page.failed;
        self.failed_from = earliest(self.failed_from, page.failed_from);
        self.wrong_mode += page.wrong_mode;
        self.skipped += page.skipped;
        self.forgotten += page.forgotten;
        self.late += page.late;
        for (slot, new) in page.slots {
            *self.slots.entry(slot).or_default() += new;
        }
        for (name, (fetched, new)) in page.types {
            let is_known = self.types.contains_key(&name) || self.types.len() < TYPES_MAX;
            let name = if is_known { name } else { OTHER.to_owned() };
            let sums = self.types.entry(name).or_default();
            *sums = (sums.0 + fetched, sums.1 + new);
        }
        let room = FAILURES_MAX.saturating_sub(self.failures.len());
        self.failures.extend(page.failures.into_iter().take(room));
    }
}

fn earliest(one: Option<Millis>, other: Option<Millis>) -> Option<Millis> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_counted_once_and_the_figures_add_up() {
        let mut tally = Tally::default();
        let at = Millis(SLOT_MS * 7 + 1);
        tally.count("a", "x", at, Outcome::New);
        tally.count("b", "x", at, Outcome::WrongMode);
        tally.count("c", "y", at, Outcome::Duplicate { is_late: true });
        tally.count("d", "y", at, Outcome::Failed("it is too long".to_owned()));
        assert_eq!(tally.failed_from, Some(at));
        tally.count_unlisted("", "it has no id".to_owned());
        assert_eq!(tally.failed_from, Some(Millis(0)), "it may be as old as any");
        assert_eq!(tally.fetched, tally.new + tally.duplicate + tally.failed);
        assert_eq!((tally.fetched, tally.new, tally.wrong_mode, tally.late), (5, 2, 1, 1));
        assert_eq!(tally.slots, BTreeMap::from([(7, 2)]));
        assert_eq!(tally.types["x"], (2, 2));
        let mut sum = tally.clone();
        sum.add(tally);
        assert_eq!((sum.fetched, sum.slots[&7], sum.types["y"]), (10, 4, (4, 0)));
        sum = Tally::default();
        sum.count("e", "x", at, Outcome::Failed("no".to_owned()));
        sum.add(Tally::default());
        assert_eq!(sum.failed_from, Some(at));
    }

    #[test]
    fn types_and_failures_without_end_do_not_grow_without_end() {
        let mut tally = Tally::default();
        for n in 0..5_000_u64 {
            let mut page = Tally::default();
            page.count(
                &n.to_string(),
                &format!("t{n}"),
                Millis(0),
                Outcome::Failed("no".to_owned()),
            );
            tally.add(page);
        }
        assert_eq!((tally.fetched, tally.failed), (5_000, 5_000));
        assert_eq!((tally.types.len(), tally.failures.len()), (TYPES_MAX + 1, FAILURES_MAX));
        assert_eq!(tally.types.values().map(|(fetched, _)| fetched).sum::<u64>(), 5_000);
    }
}
