//! What a replay from the ledger did, or would do.

use crate::{
    args::FromLedger,
    failure::Failure,
    output::{Fact, Page, Report, Table, Tone, count, shown},
    time::rfc3339,
};
use ledger::{EventKey, Millis, RunName};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a run did, or would do.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the document's fields are what programs read")]
pub(crate) struct Ran {
    pub(super) run: String,
    pub(super) executed: bool,
    pub(super) by: String,
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<String>,
    /// Events that the options chose: the sum of the four numbers that follow.
    pub(super) selected: usize,
    /// Made, or to be made.
    pub(super) replayed: usize,
    /// Made by this run before.
    pub(super) before: usize,
    pub(super) refused: usize,
    pub(super) failed: usize,
    /// Made, and left for the steward to send.
    pub(super) unsent: usize,
    /// Named keys that no row has.
    pub(super) missing: Vec<EventKey>,
    pub(super) types: BTreeMap<String, usize>,
    pub(super) refusals: Vec<Refusals>,
    pub(super) failures: Vec<Failed>,
    /// Set where --limit ended it.
    pub(super) more: bool,
    /// Whether everything that was asked for was looked at.
    pub(super) complete: bool,
    pub(super) next: String,
    #[serde(skip)]
    pub(super) named: bool,
    #[serde(skip)]
    pub(super) stopped: Option<Failure>,
}

/// Events that were refused for one reason.
#[derive(Debug, Serialize)]
pub(super) struct Refusals {
    pub(super) why: String,
    pub(super) count: usize,
    /// The first of them.
    pub(super) keys: Vec<EventKey>,
}

/// An event that could not be replayed.
#[derive(Debug, Serialize)]
pub(super) struct Failed {
    pub(super) key: EventKey,
    pub(super) error: String,
}

impl Ran {
    pub(super) fn new(args: &FromLedger, run: &RunName, window: Option<(Millis, Millis)>) -> Self {
        Self {
            run: run.to_string(),
            executed: args.execute,
            by: args.by.clone(),
            reason: args.reason.clone(),
            since: window.map(|(since, _)| rfc3339(since)),
            until: window.map(|(_, until)| rfc3339(until)),
            selected: 0,
            replayed: 0,
            before: 0,
            refused: 0,
            failed: 0,
            unsent: 0,
            missing: Vec::new(),
            types: BTreeMap::new(),
            refusals: Vec::new(),
            failures: Vec::new(),
            more: false,
            complete: false,
            next: String::new(),
            named: !args.keys.is_empty(),
            stopped: None,
        }
    }
}

impl Report for Ran {
    fn needs_attention(&self) -> bool {
        self.failed > 0 || !self.missing.is_empty() || (self.named && self.refused > 0)
    }

    fn stopped(&self) -> Option<&Failure> {
        self.stopped.as_ref()
    }

    fn write(&self, page: &mut Page) {
        let what = if self.executed { "replayed" } else { "to replay" };
        page.heading(format!(
            "run {}: {} {what}",
            self.run,
            count(self.replayed, "event", "events")
        ));
        let mut table = Table::new(&["COUNT", "WHAT", "WHICH"]);
        for (kind, number) in &self.types {
            table.row(Tone::Good, [number.to_string(), what.to_owned(), shown(kind)]);
        }
        if self.before > 0 {
            let cells = [
                self.before.to_string(),
                "there".to_owned(),
                "this run made them before".to_owned(),
            ];
            table.row(Tone::Dim, cells);
        }
        for refusals in &self.refusals {
            let cells = [refusals.count.to_string(), "refused".to_owned(), shown(&refusals.why)];
            table.row(Tone::Warn, cells);
        }
        for failed in &self.failures {
            let which = format!("{}: {}", shown(failed.key.as_str()), shown(&failed.error));
            table.row(Tone::Bad, ["1".to_owned(), "failed".to_owned(), which]);
        }
        for key in &self.missing {
            table.row(Tone::Bad, ["1".to_owned(), "missing".to_owned(), shown(key.as_str())]);
        }
        if !table.is_empty() {
            page.table(&table);
        }
        let mut facts = Vec::new();
        if let (Some(since), Some(until)) = (&self.since, &self.until) {
            facts.push(Fact::new("window", format!("{since} to {until}")));
        }
        facts.push(Fact::new("selected", self.selected.to_string()));
        if self.unsent > 0 {
            let said =
                format!("{} not sent; the steward sends them within two minutes", self.unsent);
            facts.push(Fact::new("note", said).in_tone(Tone::Warn));
        }
        if self.failed > self.failures.len() {
            let said = format!("{} failed; the first are named above", self.failed);
            facts.push(Fact::new("note", said).in_tone(Tone::Bad));
        }
        if self.more {
            facts
                .push(Fact::new("note", "--limit ended it; there may be more").in_tone(Tone::Warn));
        }
        if self.stopped.is_none() {
            facts.push(Fact::new("next", self.next.clone()));
        }
        page.facts(&facts);
    }
}
