//! `events list`: the newest events of a window, by the index `by_day`.
//!
//! The index has a partition for each source, day and shard. Days are taken newest first; within
//! a day all partitions are read side by side and merged, a page at a time, until enough events
//! are found. The index holds keys only, so each listed row is read, and with a filter each row
//! of the window until enough match.

use crate::{
    args::EventsList,
    explain,
    failure::Failure,
    output::{Page, Report, Table, Tone, count, shown},
    rows,
    time::{self, relative, utc},
};
use config::Config;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use ledger::{Life, Millis, Row, SHARDS, SourceName};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use workflow::ports::{Clock, DayEntry, Ledger};

/// Entries in one page of a partition.
const PAGE: u32 = 100;
/// Rows that a filter may read before it asks for a narrower window.
const READS_MAX: usize = 20_000;
/// Rows read at a time while filtering.
const ROWS_AT_A_TIME: usize = 64;

/// The events found.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    since: String,
    until: String,
    events: Vec<Value>,
    /// Why there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<String>,
    #[serde(skip)]
    rows: Vec<Row>,
    #[serde(skip)]
    now: Millis,
}

/// Lists.
pub(crate) async fn run(
    ports: &(impl Ledger + Clock),
    config: &Config,
    args: &EventsList,
) -> Result<Listed, Failure> {
    let now = ports.now();
    let (since, until) =
        (args.since.resolve(now), args.until.map_or(now, |until| until.resolve(now)));
    if since > until {
        return Err(Failure::usage(format!(
            "--since {} is after --until {}",
            utc(since),
            utc(until)
        )));
    }
    let sources = sources(config, args);
    let limit = args.limit as usize;
    let mut search = Search { rows: Vec::new(), reads: 0, more: None };
    for day in time::days(since, until) {
        let mut partitions = open_day(ports, &sources, &day, (since, until)).await?;
        loop {
            let wanted = if is_filtered(args) { ROWS_AT_A_TIME } else { limit - search.rows.len() };
            let entries = newest(ports, &mut partitions, wanted.max(1)).await?;
            if entries.is_empty() {
                break;
            }
            search.take(ports, args, entries, limit).await?;
            if search.more.is_some() {
                return Ok(listed(search, (since, until), now));
            }
        }
    }
    Ok(listed(search, (since, until), now))
}

/// The sources to look through. One that is no longer configured may still have rows.
fn sources(config: &Config, args: &EventsList) -> Vec<SourceName> {
    match &args.source {
        Some(name) => vec![name.clone()],
        None => config.sources().map(|source| source.name.clone()).collect(),
    }
}

fn is_filtered(args: &EventsList) -> bool {
    !args.status.is_empty() || !args.event_type.is_empty()
}

fn matches(args: &EventsList, life: &Life, event_type: &str) -> bool {
    let status =
        args.status.is_empty() || args.status.iter().any(|standing| standing.is_met_by(life));
    let kind =
        args.event_type.is_empty() || args.event_type.iter().any(|known| known == event_type);
    status && kind
}

/// Rows found so far.
struct Search {
    rows: Vec<Row>,
    reads: usize,
    more: Option<String>,
}

impl Search {
    async fn take(
        &mut self,
        ports: &impl Ledger,
        args: &EventsList,
        entries: Vec<DayEntry>,
        limit: usize,
    ) -> Result<(), Failure> {
        self.reads += entries.len();
        for row in rows::read(ports, entries.into_iter().map(|entry| entry.key)).await? {
            if self.rows.len() < limit && matches(args, &row.life, &row.evidence.event_type) {
                self.rows.push(row);
            }
        }
        if self.rows.len() >= limit {
            self.more = Some(format!("the newest {limit}; --limit asks for more"));
        } else if self.reads >= READS_MAX {
            let reads = self.reads;
            self.more = Some(format!(
                "{reads} events were looked at; narrow --since and --until for the rest"
            ));
        }
        Ok(())
    }
}

/// One partition of a day: what was read of it and not yet used, newest first.
struct Partition {
    name: String,
    window: (Millis, Millis),
    /// Newest last, to be popped.
    buffer: Vec<DayEntry>,
    /// Entries of the millisecond at which the last page ended.
    seen: BTreeSet<String>,
    page: u32,
    is_exhausted: bool,
}

impl Partition {
    /// Reads the next page. A page ends at a time, and other entries may have that very time: it
    /// is read again, and what is known left out.
    async fn fill(&mut self, ledger: &impl Ledger) -> Result<(), Failure> {
        while self.buffer.is_empty() && !self.is_exhausted {
            let (since, until) = self.window;
            let page = ledger.day(&self.name, since, until, true, self.page).await?;
            self.is_exhausted = page.len() < self.page as usize;
            let last = page.last().map_or(since, |entry| entry.received_at);
            let ends = page.iter().filter(|entry| entry.received_at == last);
            let ends: BTreeSet<String> = ends.map(|entry| entry.key.to_string()).collect();
            let fresh = page.into_iter().filter(|entry| !self.seen.contains(entry.key.as_str()));
            self.buffer = fresh.collect();
            self.buffer.reverse();
            if self.buffer.is_empty() {
                // More events of one millisecond than a page holds.
                self.page = self.page.saturating_mul(2);
            }
            self.seen = ends;
            self.window = (since, last);
        }
        Ok(())
    }
}

/// The partitions of one day, each with its first page.
async fn open_day(
    ledger: &impl Ledger,
    sources: &[SourceName],
    day: &str,
    window: (Millis, Millis),
) -> Result<Vec<Partition>, Failure> {
    let names =
        sources.iter().flat_map(|source| (0..SHARDS).map(move |n| format!("{source}#{day}#{n}")));
    let partitions = names.map(|name| async move {
        let mut partition = Partition {
            name,
            window,
            buffer: Vec::new(),
            seen: BTreeSet::new(),
            page: PAGE,
            is_exhausted: false,
        };
        partition.fill(ledger).await?;
        Ok(partition)
    });
    stream::iter(partitions).buffer_unordered(rows::AT_ONCE).try_collect().await
}

/// Takes the newest `most` entries of a day.
async fn newest(
    ledger: &impl Ledger,
    partitions: &mut [Partition],
    most: usize,
) -> Result<Vec<DayEntry>, Failure> {
    let mut taken = Vec::new();
    while taken.len() < most {
        let newest = partitions
            .iter_mut()
            .filter(|partition| !partition.buffer.is_empty())
            .max_by_key(|partition| {
                partition.buffer.last().map(|entry| (entry.received_at, entry.key.clone()))
            });
        let Some(partition) = newest else { break };
        taken.extend(partition.buffer.pop());
        partition.fill(ledger).await?;
    }
    Ok(taken)
}

fn listed(search: Search, (since, until): (Millis, Millis), now: Millis) -> Listed {
    Listed {
        since: time::rfc3339(since),
        until: time::rfc3339(until),
        events: search.rows.iter().map(|row| explain::json(row, now)).collect(),
        more: search.more,
        rows: search.rows,
        now,
    }
}

impl Report for Listed {
    fn needs_attention(&self) -> bool {
        false
    }

    fn write(&self, page: &mut Page) {
        if self.rows.is_empty() {
            page.line("no events in this window");
            return;
        }
        let mut table = Table::new(&["STATUS", "RECEIVED", "AGE", "TYPE", "KEY"]);
        for row in &self.rows {
            let received = row.evidence.received_at;
            let cells = [
                explain::standing(&row.life).to_owned(),
                utc(received),
                relative(received, self.now).trim_end_matches(" ago").to_owned(),
                shown(&row.evidence.event_type),
                shown(row.evidence.key.as_str()),
            ];
            table.row(explain::tone(&row.life), cells);
        }
        page.table(&table);
        let shown = count(self.rows.len(), "event", "events");
        let more = self.more.as_deref().map(|more| format!(" ({more})"));
        page.toned(Tone::Dim, format!("{shown}{}", more.unwrap_or_default()));
    }
}
