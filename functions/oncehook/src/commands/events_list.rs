//! `events list`: the newest events of a window, by the index `by_day`.
//!
//! The index holds keys only, so each listed row is read, and with a filter each row of the window
//! until enough match.

use crate::{
    args::EventsList,
    context, explain,
    failure::Failure,
    output::{Page, Report, Table, Tone, count, shown},
    rows,
    time::{self, relative, utc},
    window::Walk,
};
use config::Config;
use ledger::{Millis, Row};
use serde::Serialize;
use serde_json::Value;
use workflow::ports::{Clock, DayEntry, Ledger};

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
    ordered(since, until)?;
    let limit = args.limit as usize;
    let mut search = Search { rows: Vec::new(), reads: 0, more: None };
    let mut walk =
        Walk::new(context::sources(config, args.filter.source.as_ref()), (since, until), true);
    while search.more.is_none() {
        let wanted = if args.filter.is_open() { limit - search.rows.len() } else { ROWS_AT_A_TIME };
        let entries = walk.next(ports, wanted.max(1)).await?;
        if entries.is_empty() {
            break;
        }
        search.take(ports, args, entries, limit).await?;
    }
    Ok(listed(search, (since, until), now))
}

/// A window that ends before it begins is a mistake of the caller's.
pub(crate) fn ordered(since: Millis, until: Millis) -> Result<(), Failure> {
    if since <= until {
        return Ok(());
    }
    Err(Failure::usage(format!("--since {} is after --until {}", utc(since), utc(until))))
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
            if self.rows.len() < limit && args.filter.is_met_by(&row) {
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
