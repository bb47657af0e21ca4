//! The auditor: what must be true when all is over, computed from the plan and from what providers
//! heard, by code that shares nothing with the product's.
//!
//! Its witness is the stream of the state table: every write to every entity, in order. So an effect
//! made twice, or an older one over a newer, is found even where later writes covered it.

mod fetched;
mod numbers;

use crate::{
    outside,
    plan::{Event, Expect, Plan, Stamp},
    stream::Write,
};
use ledger::{FailureClass, Outcome, Row, Status};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What kind of promise was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breach {
    /// Accepted and not finished, or finished without its effect.
    Lost,
    /// Its effect was made more than once, or made and not owned to.
    Doubled,
    /// Older state stands where newer was.
    Reversed,
}

/// One broken promise.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) breach: Breach,
    /// The row, or one row of the entity.
    pub(crate) key: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// Everything there is at the end.
pub(crate) struct Ends<'a> {
    pub(crate) plan: &'a Plan,
    /// Events answered 2xx, by index.
    pub(crate) accepted: HashSet<usize>,
    pub(crate) rows: HashMap<String, Row>,
    /// The bodies of the rows, as read back.
    pub(crate) bodies: HashMap<String, Vec<u8>>,
    /// Every write to an entity, oldest first.
    pub(crate) writes: BTreeMap<String, Vec<Write>>,
    /// Rows that the dead-letter queue names.
    pub(crate) dead_letters: HashSet<String>,
    /// Rows that were left waiting for their predecessor until their time was up.
    pub(crate) waited: HashSet<String>,
}

impl Ends<'_> {
    /// Every broken promise.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (index, event) in self.plan.events.iter().enumerate() {
            self.row(index, event, &mut findings);
            self.rival(index, event, &mut findings);
        }
        self.entities(&mut findings);
        findings
    }

    /// The row of one event: there if it was accepted, ended as it has to, with its bytes.
    fn row(&self, index: usize, event: &Event, findings: &mut Vec<Finding>) {
        let mut lost = |expected: &str, found: String| {
            let expected = expected.to_owned();
            findings.push(Finding {
                breach: Breach::Lost,
                key: event.key.clone(),
                expected,
                found,
            });
        };
        let Some(row) = self.rows.get(&event.key) else {
            let is_kept =
                matches!(event.expect, Expect::Rival { .. }) && self.beside(event).is_some();
            if self.has_to_be_here(index, event) && !is_kept {
                lost("a row, for it was answered 2xx or is listed", "none".to_owned());
            }
            return;
        };
        let stands = support::brief(row);
        let ends_well = match &event.expect {
            Expect::Versioned { .. } | Expect::Numbered { .. } | Expect::Fetched { .. } => {
                matches!(
                    (row.life.status, row.life.outcome),
                    (Status::Settled, Some(Outcome::Applied | Outcome::Superseded))
                )
            }
            Expect::Added { .. } => row.life.outcome == Some(Outcome::Applied),
            Expect::Ignored | Expect::Conflicting | Expect::Rival { .. } => {
                row.life.outcome == Some(Outcome::Ignored)
            }
            Expect::Dead { why } => {
                let failure = row.life.failure.as_ref();
                row.life.status == Status::Dead
                    && failure.is_some_and(|failure| {
                        failure.class == FailureClass::Permanent && failure.error.contains(why)
                    })
            }
        };
        if !ends_well {
            lost(&brief(&event.expect), stands);
        }
        // Born dead, a row never had a message; buried, it has to show where operators look.
        let buried = row.life.status == Status::Dead && row.life.attempts > 0;
        if buried && !self.dead_letters.contains(&event.key) {
            lost("a dead letter for a dead row", "none".to_owned());
        }
        self.body(index, event, &mut lost);
    }

    /// Answered 2xx, or in a list that is read until it is all here.
    fn has_to_be_here(&self, index: usize, event: &Event) -> bool {
        self.accepted.contains(&index) || outside::is_listed(event)
    }

    /// Of two events under one proof one is worked, the other kept beside it.
    fn rival(&self, index: usize, event: &Event, findings: &mut Vec<Finding>) {
        let Expect::Rival { other } = &event.expect else { return };
        let (own, others) = (self.rows.contains_key(&event.key), self.rows.contains_key(other));
        if event.key > *other || own != others || !(own || self.accepted.contains(&index)) {
            return;
        }
        findings.push(Finding {
            breach: if own { Breach::Doubled } else { Breach::Lost },
            key: event.key.clone(),
            expected: format!("a row of its own, or {other} has one"),
            found: format!("{} of them", usize::from(own) + usize::from(others)),
        });
    }

    /// The bytes as sent; of two contents one is here and the other beside it.
    fn body(&self, index: usize, event: &Event, lost: &mut impl FnMut(&str, String)) {
        if self.bodies.get(&event.key).is_some_and(|bytes| same(event, bytes)) {
            return;
        }
        let is_beside = event.expect == Expect::Conflicting
            && (self.beside(event).is_some() || !self.accepted.contains(&index));
        if !is_beside {
            let len = self.bodies.get(&event.key).map(Vec::len);
            lost(&format!("its {} bytes", event.body.len()), format!("{len:?} bytes, or others"));
        }
    }

    /// The dead row that keeps this event's bytes beside another's.
    fn beside(&self, event: &Event) -> Option<&Row> {
        let behind = format!("#{}", event.key);
        let mut kept = self.rows.iter().filter(|(key, row)| {
            key.starts_with("_c#") && key.ends_with(&behind) && row.life.status == Status::Dead
        });
        kept.find(|(key, _)| self.bodies.get(*key) == Some(&event.body)).map(|(_, row)| row)
    }

    fn entities(&self, findings: &mut Vec<Finding>) {
        let mut by_entity: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
        for event in &self.plan.events {
            if let Expect::Versioned { entity, .. }
            | Expect::Added { entity, .. }
            | Expect::Numbered { entity, .. }
            | Expect::Fetched { entity, .. } = &event.expect
                && self.rows.contains_key(&event.key)
            {
                by_entity.entry(entity).or_default().push(event);
            }
        }
        for (entity, events) in &by_entity {
            let writes = self.writes.get(*entity).map(Vec::as_slice).unwrap_or_default();
            let (rows, waited) = (&self.rows, &self.waited);
            Auditing { entity, events, writes, rows, waited, findings }.entity();
        }
        for entity in self.writes.keys().filter(|entity| !by_entity.contains_key(entity.as_str())) {
            findings.push(Finding {
                breach: Breach::Doubled,
                key: entity.clone(),
                expected: "no such entity".to_owned(),
                found: "it was written to".to_owned(),
            });
        }
    }
}

/// One entity, the events that change it, and the writes it saw.
struct Auditing<'a> {
    entity: &'a str,
    events: &'a [&'a Event],
    writes: &'a [Write],
    rows: &'a HashMap<String, Row>,
    waited: &'a HashSet<String>,
    findings: &'a mut Vec<Finding>,
}

impl Auditing<'_> {
    fn say(&mut self, breach: Breach, key: &str, expected: String, found: String) {
        self.findings.push(Finding { breach, key: key.to_owned(), expected, found });
    }

    fn entity(&mut self) {
        let by_id: HashMap<&str, &Event> =
            self.events.iter().map(|event| (event.id.as_str(), *event)).collect();
        let mut times: HashMap<&str, usize> = HashMap::new();
        let mut before: Option<&Write> = None;
        for (write, revision) in self.writes.iter().zip(1_u64..) {
            let is_effect = !numbers::is_joining(before, write);
            before = Some(write);
            if write.revision != revision {
                let found = format!("{} by {}", write.revision, write.event);
                self.say(Breach::Lost, self.entity, format!("revision {revision}"), found);
            }
            if !is_effect {
                continue;
            }
            *times.entry(write.event.as_str()).or_default() += 1;
            if !by_id.contains_key(write.event.as_str()) {
                let found = write.event.clone();
                self.say(
                    Breach::Doubled,
                    self.entity,
                    "writes of its own events".to_owned(),
                    found,
                );
            }
        }
        for event in self.events {
            let times = times.get(event.id.as_str()).copied().unwrap_or(0);
            self.owned(event, times);
        }
        self.versions(&by_id);
        self.sum(&by_id);
        self.numbers(&by_id);
        self.fetched(&by_id);
    }

    /// A row says `applied` exactly if its event wrote, and it wrote once.
    fn owned(&mut self, event: &Event, times: usize) {
        let row = self.rows.get(&event.key);
        let applied = row.is_some_and(|row| row.life.outcome == Some(Outcome::Applied));
        let stands = row.map(support::brief).unwrap_or_default();
        let breach = match (applied, times) {
            (true, 1) | (false, 0) => return,
            (true, 0) => Breach::Lost,
            _ => Breach::Doubled,
        };
        let expected = format!("{} effects", usize::from(applied));
        self.say(breach, &event.key, expected, format!("{times}, and the row is {stands}"));
    }

    /// Each write is newer than the one before, and the last is the newest event's.
    fn versions(&mut self, by_id: &HashMap<&str, &Event>) {
        let mut last: Option<&Stamp> = None;
        for write in self.writes {
            let Some(Expect::Versioned { stamp, state, .. }) =
                by_id.get(write.event.as_str()).map(|event| &event.expect)
            else {
                continue;
            };
            if let Some(newer) = last.filter(|last| *last >= stamp) {
                let (expected, found) = (format!("newer than {newer:?}"), format!("{stamp:?}"));
                let key = by_id[write.event.as_str()].key.clone();
                self.say(Breach::Reversed, &key, expected, found);
            }
            if &write.state != state || write.is_final != stamp.is_final {
                let key = by_id[write.event.as_str()].key.clone();
                self.say(Breach::Lost, &key, state.to_string(), write.state.to_string());
            }
            last = Some(stamp);
        }
        let stamps = self.events.iter().filter_map(|event| match &event.expect {
            Expect::Versioned { stamp, .. } => Some((stamp, event.key.as_str())),
            _ => None,
        });
        if let Some((newest, key)) = stamps.max()
            && last != Some(newest)
        {
            let breach = if last.is_some() { Breach::Reversed } else { Breach::Lost };
            self.say(breach, key, format!("{newest:?} stands"), format!("{last:?}"));
        }
    }

    /// Each write adds its event's amount to what was there, and all of them are there.
    fn sum(&mut self, by_id: &HashMap<&str, &Event>) {
        let amount = |event: &Event| match event.expect {
            Expect::Added { cents, .. } => Some(cents),
            _ => None,
        };
        let mut total = 0;
        for write in self.writes {
            let event = by_id.get(write.event.as_str());
            let Some((event, cents)) = event.and_then(|event| Some((event, amount(event)?))) else {
                continue;
            };
            total += cents;
            let found = write.cents("received");
            if found != Some(total) {
                let expected = format!("{total} hundredths after it");
                self.say(Breach::Lost, &event.key, expected, format!("{found:?}"));
                total = found.unwrap_or(total);
            }
        }
        let wanted: Vec<i64> = self.events.iter().filter_map(|event| amount(event)).collect();
        if !wanted.is_empty() && total != wanted.iter().sum::<i64>() {
            let expected = format!("{} hundredths in all", wanted.iter().sum::<i64>());
            let breach = if total > wanted.iter().sum() { Breach::Doubled } else { Breach::Lost };
            self.say(breach, self.entity, expected, total.to_string());
        }
    }
}

/// The bytes as sent. A list hands over JSON, whose spaces are its own.
fn same(event: &Event, bytes: &[u8]) -> bool {
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    event.body == bytes || (outside::is_listed(event) && json(&event.body) == json(bytes))
}

/// An expectation in a few words.
fn brief(expect: &Expect) -> String {
    match expect {
        Expect::Versioned { .. } | Expect::Numbered { .. } | Expect::Fetched { .. } => {
            "settled, applied or superseded".to_owned()
        }
        Expect::Added { .. } => "settled, applied".to_owned(),
        Expect::Ignored | Expect::Conflicting | Expect::Rival { .. } => {
            "settled, ignored".to_owned()
        }
        Expect::Dead { why } => format!("dead, permanent, because of {why}"),
    }
}
