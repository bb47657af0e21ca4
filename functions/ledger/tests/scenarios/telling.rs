//! The lines that name the events and the lines that say what must be so.

use crate::{
    stage::{Effect, Event, total},
    story::{Story, Told},
    words::clock,
};
use ledger::{Bucket, Entity, EventKey, Life, Policy, SourceName, Tie};
use std::collections::BTreeSet;

impl Story {
    /// `event e1 of sub_1 version 3 final, of sum adds 1`.
    pub(crate) fn event(&mut self, name: &str, rest: &[&str]) -> Told<String> {
        let (source, id) = name.split_once(':').unwrap_or(("s", name));
        let source = SourceName::new(source).map_err(|error| error.to_string())?;
        let key = EventKey::new(&source, id).map_err(|error| error.to_string())?;
        let text = rest.join(" ");
        let changes: Result<Vec<_>, String> = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| effect(&part.split(' ').collect::<Vec<_>>()))
            .collect();
        let event = Event { key, source, changes: changes? };
        self.stage.events.insert(name.to_owned(), event);
        Ok("ok".to_owned())
    }

    pub(crate) fn policy(&mut self, name: &str, value: &str) -> Told<String> {
        let mut settings =
            serde_json::to_value(&self.stage.policy).map_err(|error| error.to_string())?;
        let number: u64 = value.parse().map_err(|_| format!("no number: {value}"))?;
        if let Some(setting) = settings.get_mut(name) {
            *setting = number.into();
        } else {
            return Err(format!("no such policy: {name}"));
        }
        self.stage.policy =
            Policy::with_overrides(&settings.to_string()).map_err(|error| error.to_string())?;
        Ok("ok".to_owned())
    }

    /// Every word must be among those that describe the row or the state row.
    pub(crate) fn expect(&self, name: &str, words: &[&str]) -> Told<String> {
        let row = self.stage.rows.get(name);
        let description = match (row, self.stage.entities.get(name)) {
            (Some(row), _) => self.row(name, &row.life),
            (None, Some(entity)) => state_row(entity),
            (None, None) => "absent".to_owned(),
        };
        let facts: BTreeSet<String> = facts(&description.split(' ').collect::<Vec<_>>());
        for fact in self::facts(words) {
            if !facts.contains(&fact) {
                return Err(format!("expected {fact} in: {description}"));
            }
        }
        Ok("ok".to_owned())
    }

    fn row(&self, name: &str, life: &Life) -> String {
        let mut words = vec![life.status.to_string()];
        words.extend(life.outcome.map(|outcome| outcome.to_string()));
        if let Some(open) = life.open {
            words.push(match open.bucket {
                Bucket::Pending(_) => "pending".to_owned(),
                // A dead row's bucket has the name of its status.
                Bucket::Dead(_) => "awaiting".to_owned(),
                Bucket::Parked(_) => "parked".to_owned(),
            });
            words.push(format!("due {}", clock(open.due_at, self.stage.began)));
        }
        words.extend(life.failure.as_ref().map(|failure| failure.class.to_string()));
        let sent = self.stage.messages.get(name).map_or(0, Vec::len);
        words.push(format!(
            "attempts {} epoch {} redrives {} messages {sent}",
            life.attempts, life.epoch, life.redrives
        ));
        words.join(" ")
    }

    /// The changes of a transaction that the guards refuse now.
    pub(crate) fn superseded(&self, event: &str, names: &[String]) -> Vec<String> {
        let (ask, _) = self.stage.project(event, 0, &BTreeSet::new());
        let known = self.stage.events.get(event).map_or(&[][..], |event| &event.changes);
        known
            .iter()
            .zip(&ask.changes)
            .filter(|((name, _), change)| {
                let found = self.stage.entities.get(name);
                names.contains(name) && change.make(found, self.stage.now).is_err()
            })
            .map(|((name, _), _)| name.clone())
            .collect()
    }
}

fn state_row(entity: &Entity) -> String {
    let mut words = Vec::new();
    words.extend(entity.version.map(|version| format!("version {version}")));
    if !entity.last_event.is_empty() {
        words.push(format!("by {}", entity.last_event));
    }
    if entity.is_final {
        words.push("final".to_owned());
    }
    words.push(format!(
        "total {} revision {} waiting {}",
        total(Some(entity)),
        entity.revision,
        entity.waiting.len()
    ));
    words.join(" ")
}

/// Words with the numbers, times and names that belong to them.
fn facts(words: &[&str]) -> BTreeSet<String> {
    const WITH_VALUE: [&str; 9] =
        ["attempts", "epoch", "redrives", "messages", "due", "version", "by", "total", "revision"];
    let mut facts = BTreeSet::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let has_value = WITH_VALUE.contains(word) || *word == "waiting";
        match words.as_slice().first() {
            // `waiting` is a status too.
            Some(value) if has_value && (*word != "waiting" || value.parse::<u32>().is_ok()) => {
                facts.insert(format!("{word} {value}"));
                words.next();
            }
            _ => {
                facts.insert((*word).to_owned());
            }
        }
    }
    facts
}

fn effect(words: &[&str]) -> Told<(String, Effect)> {
    let bad = || format!("an event {}?", words.join(" "));
    let number = |text: &str| text.parse::<i128>().map_err(|_| bad());
    match words {
        ["of", entity, "adds", amount] => {
            let amount = i64::try_from(number(amount)?).map_err(|_| bad())?;
            Ok(((*entity).to_owned(), Effect::Adds(amount)))
        }
        ["of", entity, "number", n] => Ok(((*entity).to_owned(), Effect::Number(number(n)?))),
        ["of", entity, "version", version, rest @ ..] => {
            let (mut rank, mut is_final, mut tie) = (0, false, Tie::Rank);
            let mut rest = rest.iter();
            while let Some(word) = rest.next() {
                match *word {
                    "final" => is_final = true,
                    "skip" => tie = Tie::Skip,
                    "rank" => {
                        let value = rest.next().ok_or_else(bad)?;
                        rank = value.parse().map_err(|_| bad())?;
                    }
                    _ => return Err(bad()),
                }
            }
            let version = number(version)?;
            Ok(((*entity).to_owned(), Effect::Version { version, rank, is_final, tie }))
        }
        _ => Err(bad()),
    }
}
