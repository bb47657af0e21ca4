//! Sequences: each number is written once, on top of the one before it, and nobody who waits is
//! forgotten. Only over a number that never came is one applied, and only after its time.

use super::{Auditing, Breach};
use crate::{
    plan::{Event, Expect},
    stream::Write,
};
use std::collections::{BTreeSet, HashMap};

/// Whether a row joined those that wait, perhaps again, and nothing else was done. An effect has its
/// event and its time; two effects may have one time, to the millisecond.
pub(super) fn is_joining(before: Option<&Write>, write: &Write) -> bool {
    let Some(before) = before else { return write.updated_at.is_none() };
    !write.waiting.is_empty()
        && write.waiting.is_superset(&before.waiting)
        && (&write.event, write.updated_at) == (&before.event, before.updated_at)
}

fn number_of(event: &Event) -> Option<u64> {
    match event.expect {
        Expect::Numbered { number, .. } => Some(number),
        _ => None,
    }
}

impl Auditing<'_> {
    pub(super) fn numbers(&mut self, by_id: &HashMap<&str, &Event>) {
        let accepted: BTreeSet<u64> =
            self.events.iter().filter_map(|event| number_of(event)).collect();
        let Some(highest) = accepted.last().copied() else { return };
        let mut reached = 0;
        let mut before: Option<&Write> = None;
        for write in self.writes {
            if is_joining(before, write) {
                self.waits(before, write, reached);
            } else if let Some(event) = by_id.get(write.event.as_str())
                && let Some(number) = number_of(event)
            {
                self.turn(event, number, reached, &accepted);
                self.wrote(event, write);
                reached = number;
            }
            before = Some(write);
        }
        if reached != highest {
            let (expected, found) = (format!("number {highest} stands"), reached.to_string());
            self.say(Breach::Lost, self.entity, expected, found);
        }
        let left: Vec<&String> = before.iter().flat_map(|write| &write.waiting).collect();
        if !left.is_empty() {
            self.say(Breach::Lost, self.entity, "nobody waits".to_owned(), format!("{left:?}"));
        }
        self.all_written(&accepted);
    }

    /// Who waits has no predecessor yet, and changes nothing else.
    fn waits(&mut self, before: Option<&Write>, write: &Write, reached: u64) {
        let is_new = |name: &&String| before.is_none_or(|before| !before.waiting.contains(*name));
        for name in write.waiting.iter().filter(is_new) {
            let number = self.events.iter().find_map(|event| {
                let number = number_of(event)?;
                (format!("{number}#{}", event.key) == *name).then_some(number)
            });
            if number.is_none_or(|number| number <= reached + 1) {
                let expected = format!("its own numbers beyond {} wait", reached + 1);
                self.say(Breach::Lost, self.entity, expected, name.clone());
            }
        }
        let is_kept = before.map_or(write.event.is_empty() && write.state.is_null(), |before| {
            (&before.event, &before.state) == (&write.event, &write.state)
        });
        if !is_kept {
            let expected = "who waits changes no state".to_owned();
            self.say(Breach::Doubled, self.entity, expected, write.state.to_string());
        }
    }

    /// It is the next of those that came; if one between never did, its time was up.
    fn turn(&mut self, event: &Event, number: u64, reached: u64, accepted: &BTreeSet<u64>) {
        let next = accepted.range(reached + 1..).next().copied();
        let may_be = number == reached + 1 || self.waited.contains(&event.key);
        if next != Some(number) || !may_be {
            let (expected, found) = (format!("{next:?}, in its time"), number.to_string());
            self.say(Breach::Reversed, &event.key, expected, found);
        }
    }

    fn wrote(&mut self, event: &Event, write: &Write) {
        let Expect::Numbered { state, .. } = &event.expect else { return };
        if &write.state != state || write.is_final {
            let found = write.state.to_string();
            self.say(Breach::Lost, &event.key, state.to_string(), found);
        }
    }

    /// Every number was written, and nobody's time ran out who had all its predecessors.
    fn all_written(&mut self, accepted: &BTreeSet<u64>) {
        let written: BTreeSet<&str> =
            self.writes.iter().map(|write| write.event.as_str()).collect();
        for number in accepted {
            let of_number: Vec<&Event> = self
                .events
                .iter()
                .copied()
                .filter(|event| number_of(event) == Some(*number))
                .collect();
            let times = of_number.iter().filter(|event| written.contains(event.id.as_str()));
            let times = times.count();
            if times != 1 {
                let breach = if times == 0 { Breach::Lost } else { Breach::Doubled };
                let expected = format!("number {number} once");
                self.say(breach, self.entity, expected, format!("{times} times"));
            }
            let forgotten = of_number.iter().find(|event| self.waited.contains(&event.key));
            let is_behind_a_gap = (1..*number).any(|below| !accepted.contains(&below));
            if let Some(event) = forgotten.filter(|_| of_number.len() == 1 && !is_behind_a_gap) {
                let expected = "woken by its predecessor".to_owned();
                self.say(Breach::Lost, &event.key, expected, "left until its time".to_owned());
            }
        }
    }
}
