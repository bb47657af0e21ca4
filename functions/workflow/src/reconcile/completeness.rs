//! Completeness: what a comparison found, as figures and as the sentence for people.

use crate::replay::{Tally, pager::Window};
use serde::Serialize;

/// What the comparison of one source found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// What was compared.
    pub window: Window,
    /// Events that the provider lists in it.
    pub listed: u64,
    /// Of these, events that the ledger held.
    pub held: u64,
    /// Events that it did not hold, and are claimed now.
    pub missing: u64,
    /// Held events that came long after they happened.
    pub late: u64,
    /// Events that could neither be found nor claimed.
    pub failed: u64,
    /// Events older than the ledger remembers, neither looked for nor claimed.
    pub forgotten: u64,
}

impl Completeness {
    /// Reads a run's figures.
    #[must_use]
    pub fn of(window: Window, tally: &Tally) -> Self {
        Self {
            window,
            listed: tally.fetched,
            held: tally.duplicate,
            missing: tally.new,
            late: tally.late,
            failed: tally.failed,
            forgotten: tally.forgotten,
        }
    }

    /// `Stripe says 4,112, ledger holds 4,112, 0 missing, 3 late`.
    #[must_use]
    pub fn sentence(&self, title: &str) -> String {
        let mut said = format!(
            "{title} says {}, ledger holds {}, {} missing, {} late",
            grouped(self.listed),
            grouped(self.held),
            grouped(self.missing),
            grouped(self.late)
        );
        if self.failed > 0 {
            said = format!("{said}, {} failed", grouped(self.failed));
        }
        if self.forgotten > 0 {
            said = format!("{said}, {} too old to compare", grouped(self.forgotten));
        }
        said
    }
}

/// A number with its thousands apart.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::Millis;

    #[test]
    fn the_sentence_is_the_one_people_asked_for() {
        let window = Window::new(Millis(0), Millis(0));
        let tally = Tally { fetched: 4_112, duplicate: 4_112, late: 3, ..Tally::default() };
        let found = Completeness::of(window, &tally);
        let said = "Stripe says 4,112, ledger holds 4,112, 0 missing, 3 late";
        assert_eq!(found.sentence("Stripe"), said);
        let numbers = [0, 7, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
    }
}
