//! `stuck`: pending events that should have moved by now, why, since when, and what to do.
//!
//! Stuck is what is overdue with nobody at work on it, and what the steward has had to send again
//! and is still not settled. A row that waits out its back-off is not stuck, however old.

use crate::{
    args, explain,
    failure::Failure,
    output::{Fact, Page, Report, Table, Tone, count, shown},
    rows,
    time::{relative, rfc3339, span, when},
};
use ledger::{Bucket, EventKey, Life, Millis, Policy, ROW_FORMAT, Row, Status};
use serde::Serialize;
use workflow::ports::{Clock, Ledger};

/// Pending entries looked through: keys only, a few hundred kilobytes.
const ENTRIES_MAX: usize = 20_000;
/// The steward runs every minute; a row this much overdue was passed over.
const STEWARD_MS: u64 = 120_000;

/// What is stuck.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    /// Pending rows in all, as far as they were counted.
    pending: usize,
    /// Age of the oldest, in seconds.
    oldest_pending_s: u64,
    stuck: Vec<Stuck>,
    /// Set where some that may be stuck were left unread.
    more: bool,
    /// What is said of these where none was found.
    #[serde(skip)]
    unread: String,
    /// What the steward last noted.
    steward: String,
    #[serde(skip)]
    now: Millis,
}

/// One stuck event.
#[derive(Debug, Serialize)]
struct Stuck {
    key: EventKey,
    #[serde(rename = "type")]
    event_type: String,
    status: Status,
    why: String,
    since: String,
    next: String,
    #[serde(skip)]
    since_ms: Millis,
}

/// Looks for what is stuck.
pub(crate) async fn run(
    ports: &(impl Ledger + Clock),
    policy: &Policy,
    args: &args::Stuck,
) -> Result<Found, Failure> {
    let now = ports.now();
    let (ever, all) = (Millis::END_OF_TIME, |_: &EventKey| true);
    let chosen = rows::choose(ports, &[Bucket::Pending], ever, ENTRIES_MAX, &all).await?;
    let entries = chosen.entries;
    let ages = entries.iter().map(|entry| now.since(entry.received_at));
    let oldest_pending_s = ages.max().unwrap_or(0) / 1_000;
    let pending = entries.len();
    let first_look = policy.first_due_ms.saturating_add(60_000);
    let late = entries
        .into_iter()
        .filter(|entry| entry.due_at <= now || now.since(entry.received_at) > first_look)
        .map(|entry| entry.key);
    let mut late: Vec<EventKey> = late.collect();
    let has_more_late = late.len() > args.limit as usize;
    let (more, unread) = if has_more_late {
        (true, format!("none among the first {}; --limit reads on", args.limit))
    } else {
        (chosen.more, format!("none among the {pending} that are due first"))
    };
    late.truncate(args.limit as usize);
    let rows = rows::read(ports, late).await?;
    let mut stuck: Vec<Stuck> = rows.iter().filter_map(|row| judge(row, now)).collect();
    stuck.sort_by_key(|stuck| stuck.since_ms);
    let steward = steward(ports.notes().await?.redriven_at, now);
    Ok(Found { pending, oldest_pending_s, stuck, more, unread, steward, now })
}

/// The steward notes its redrives every five minutes; an old note means that it does not run.
fn steward(redriven_at: Millis, now: Millis) -> String {
    if redriven_at == Millis::default() {
        return "has left no note yet".to_owned();
    }
    let quiet = now.since(redriven_at);
    let alarm = if quiet > 15 * 60_000 {
        ": it does not run, or fails; see its log and its schedule"
    } else {
        ""
    };
    format!("looked after the dead {}{alarm}", relative(redriven_at, now))
}

/// Why a row is stuck, if it is.
fn judge(row: &Row, now: Millis) -> Option<Stuck> {
    let life = &row.life;
    if life.format == ROW_FORMAT && (!life.status.is_pending() || explain::is_at_work(life, now)) {
        return None;
    }
    let due = life.open.map_or(row.evidence.received_at, |open| open.due_at);
    let is_overdue = due <= now;
    if !is_overdue && life.sweeps == 0 && life.format == ROW_FORMAT {
        return None;
    }
    let since = if life.sweeps > 0 { row.evidence.received_at } else { due };
    Some(Stuck {
        key: row.evidence.key.clone(),
        event_type: row.evidence.event_type.clone(),
        status: life.status,
        why: why(life, now),
        since: rfc3339(since),
        since_ms: since,
        next: next(life, due, now),
    })
}

fn why(life: &Life, now: Millis) -> String {
    if life.format != ROW_FORMAT {
        return format!("row format {} is of another build", life.format);
    }
    if life.sweeps > 0 {
        let times = count(life.sweeps as usize, "time", "times");
        let last = life.failure.as_ref().map(|failure| format!("; last error: {}", failure.error));
        let what = if life.epoch == 0 { "no consumer ever took it" } else { "it is not settled" };
        return format!("sent again {times}, and {what}{}", last.unwrap_or_default());
    }
    match life.status {
        Status::Claimed => {
            "no consumer took it: its message was lost or is still queued".to_owned()
        }
        Status::Processing => {
            let ended = life.lease.map_or(now, |lease| lease.until);
            format!("its worker died: the lease ended {}", relative(ended, now))
        }
        Status::Failed => "its next try was due and did not come".to_owned(),
        Status::Waiting => "its wait is over and nobody took it up".to_owned(),
        Status::Dead | Status::Settled => String::new(),
    }
}

fn next(life: &Life, due: Millis, now: Millis) -> String {
    if life.format != ROW_FORMAT {
        return "use the oncehook of that build".to_owned();
    }
    if now.since(due) > STEWARD_MS {
        return "the steward passed it over: is its schedule on, or is the queue's backlog above the limit?".to_owned();
    }
    if life.sweeps > 0 && life.epoch == 0 {
        return "messages reach no consumer: is its event source mapping enabled? see its log"
            .to_owned();
    }
    if due <= now {
        return "the steward sends it again at its next run, within a minute".to_owned();
    }
    format!("the steward sends it again {}", relative(due, now))
}

impl Report for Found {
    fn needs_attention(&self) -> bool {
        !self.stuck.is_empty() || self.more
    }

    fn write(&self, page: &mut Page) {
        if self.stuck.is_empty() && self.more {
            page.toned(Tone::Warn, &self.unread);
        } else if self.stuck.is_empty() {
            page.toned(Tone::Good, "nothing is stuck");
        } else {
            let more = if self.more { " or more; --limit reads on" } else { "" };
            page.heading(format!(
                "{} stuck{more}",
                count(self.stuck.len(), "event is", "events are")
            ));
        }
        // What is said of many is said once.
        let mut groups: Vec<(&str, &str, Vec<&Stuck>)> = Vec::new();
        for stuck in &self.stuck {
            match groups.iter_mut().find(|(why, next, _)| *why == stuck.why && *next == stuck.next)
            {
                Some((_, _, group)) => group.push(stuck),
                None => groups.push((&stuck.why, &stuck.next, vec![stuck])),
            }
        }
        for (why, next, group) in groups {
            page.blank();
            page.facts(&[
                Fact::new("why", shown(why)).in_tone(Tone::Warn),
                Fact::new("next", next),
            ]);
            let mut table = Table::new(&["STATUS", "SINCE", "TYPE", "KEY"]);
            for stuck in group {
                let cells = [
                    stuck.status.to_string(),
                    when(stuck.since_ms, self.now),
                    shown(&stuck.event_type),
                    shown(stuck.key.as_str()),
                ];
                table.row(Tone::Plain, cells);
            }
            page.inner_table(&table);
        }
        page.blank();
        let oldest = match self.pending {
            0 => String::new(),
            _ => format!(
                ", the oldest received {} ago",
                span(self.oldest_pending_s.saturating_mul(1_000))
            ),
        };
        let most = if self.pending == ENTRIES_MAX { "at least " } else { "" };
        page.facts(&[
            Fact::new(
                "pending",
                format!("{most}{}{oldest}", count(self.pending, "event", "events")),
            ),
            Fact::new("steward", self.steward.clone()),
        ]);
    }
}
