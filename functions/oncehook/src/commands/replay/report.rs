//! What a replay found.

use super::chart::{self, Slot};
use crate::{
    failure::Failure,
    output::{Fact, Page, Report, Table, Tone, count, shown},
    time::{self, utc},
};
use config::Source;
use serde::Serialize;
use std::collections::BTreeMap;
use workflow::replay::{Checkpoint, FailedEvent};

/// Failures shown one by one; more are in the JSON document.
const FAILURES_SHOWN: usize = 10;
/// Types shown, the most frequent first.
const TYPES_SHOWN: usize = 20;

/// What a replay found.
#[derive(Debug, Serialize)]
pub(crate) struct Replayed {
    source: String,
    provider: String,
    since: String,
    until: String,
    dry_run: bool,
    /// Whether the window was read to its end.
    complete: bool,
    fetched: u64,
    new: u64,
    duplicate: u64,
    failed: u64,
    /// New ones of the other mode, which change nothing.
    wrong_mode: u64,
    /// Listed events of types that were not asked for.
    skipped: u64,
    /// Listed events from before the ledger's memory, left alone.
    forgotten: u64,
    /// New ones per five minutes, by the provider's time.
    per_five_minutes: Vec<Slot>,
    types: Vec<TypeCount>,
    failures: Vec<FailedEvent>,
    notes: Vec<String>,
    #[serde(skip)]
    slots: BTreeMap<u64, u64>,
    #[serde(skip)]
    window: String,
    #[serde(skip)]
    stopped: Option<Failure>,
}

#[derive(Debug, Serialize)]
struct TypeCount {
    #[serde(rename = "type")]
    name: String,
    fetched: u64,
    new: u64,
}

impl Replayed {
    pub(super) fn new(
        source: &Source,
        checkpoint: Checkpoint,
        dry_run: bool,
        notes: Vec<String>,
        stopped: Option<Failure>,
    ) -> Self {
        let Checkpoint { window, tally, next, .. } = checkpoint;
        let count = |(name, (fetched, new))| TypeCount { name, fetched, new };
        let mut types: Vec<TypeCount> = tally.types.into_iter().map(count).collect();
        types.sort_by(|a, b| b.fetched.cmp(&a.fetched).then_with(|| a.name.cmp(&b.name)));
        Self {
            source: source.name.to_string(),
            provider: source.preset.title().to_owned(),
            since: time::rfc3339(window.since),
            until: time::rfc3339(window.until),
            dry_run,
            complete: next.is_none(),
            fetched: tally.fetched,
            new: tally.new,
            duplicate: tally.duplicate,
            failed: tally.failed,
            wrong_mode: tally.wrong_mode,
            skipped: tally.skipped,
            forgotten: tally.forgotten,
            per_five_minutes: chart::slots(&tally.slots),
            types,
            failures: tally.failures,
            notes,
            slots: tally.slots,
            window: format!("{} until {}", utc(window.since), utc(window.until)),
            stopped,
        }
    }

    fn figures(&self) -> Vec<Fact> {
        let figure = |label, n: u64| Fact::data(label, format!("{n:>7}"));
        let new_tone = if self.new > 0 { Tone::Warn } else { Tone::Good };
        let failed_tone = if self.failed > 0 { Tone::Bad } else { Tone::Plain };
        let mut figures = vec![
            figure("fetched", self.fetched),
            figure("new", self.new).in_tone(new_tone),
            figure("duplicate", self.duplicate),
            figure("failed", self.failed).in_tone(failed_tone),
        ];
        if self.wrong_mode > 0 {
            figures.push(figure("of the new: other mode, ignored", self.wrong_mode));
        }
        if self.skipped > 0 {
            figures.push(figure("of other types, left alone", self.skipped));
        }
        if self.forgotten > 0 {
            let label = "older than the ledger remembers, left alone";
            figures.push(figure(label, self.forgotten).in_tone(Tone::Warn));
        }
        figures
    }

    fn next(&self) -> String {
        let source = &self.source;
        if self.failed > 0 {
            return "what failed is named above; what is kept and unusable:\n  oncehook dead list"
                .to_owned();
        }
        match (self.new, self.dry_run) {
            (0, _) => "nothing is missing".to_owned(),
            (_, true) => {
                "run it without --dry-run, with --by and --reason, to feed them in".to_owned()
            }
            (_, false) => format!("  oncehook events list --source {source} --since 10m"),
        }
    }
}

impl Report for Replayed {
    /// Failures, and what a dry run found missing.
    fn needs_attention(&self) -> bool {
        self.failed > 0 || (self.dry_run && self.new > 0)
    }

    fn stopped(&self) -> Option<&Failure> {
        self.stopped.as_ref()
    }

    fn write(&self, page: &mut Page) {
        let what = if self.dry_run { "dry run of a replay" } else { "replay" };
        page.heading(format!("{what} of {} from {}", self.source, self.provider));
        page.facts(&[Fact::data("window", self.window.as_str())]);
        page.facts(&self.figures());
        chart::draw(page, &self.slots);
        if self.types.len() > 1 {
            page.blank();
            let mut table = Table::new(&["TYPE", "FETCHED", "NEW"]);
            for one in self.types.iter().take(TYPES_SHOWN) {
                let cells = [shown(&one.name), one.fetched.to_string(), one.new.to_string()];
                table.row(Tone::Plain, cells);
            }
            page.table(&table);
            if let Some(more @ 1..) = self.types.len().checked_sub(TYPES_SHOWN) {
                page.toned(Tone::Dim, format!("and {more} more types"));
            }
        }
        if !self.failures.is_empty() {
            page.blank();
            page.heading(count(self.failures.len(), "event failed", "events failed"));
            let mut table = Table::new(&["ID", "WHY"]);
            for one in self.failures.iter().take(FAILURES_SHOWN) {
                table.row(Tone::Bad, [shown(&one.id), shown(&one.why)]);
            }
            page.table(&table);
        }
        page.blank();
        for note in &self.notes {
            page.facts(&[Fact::new("note", note.as_str()).in_tone(Tone::Warn)]);
        }
        if self.stopped.is_none() {
            page.facts(&[Fact::new("next", self.next())]);
        }
    }
}
