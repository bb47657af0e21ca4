//! `dead list`: what is dead, by what went wrong.
//!
//! A hundred rows that died of one bug are one thing to do. Failures are grouped by their text
//! with its numbers and ids taken out; each group says what to do about it.

use crate::{
    args::DeadList,
    explain,
    failure::Failure,
    output::{Fact, Page, Report, Table, Tone, count, quoted, shown},
    rows,
    time::{relative, utc, when},
};
use ledger::{Bucket, EventKey, FailureClass, Millis, Row, Status};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use workflow::ports::{Clock, Ledger};

/// Rows shown of one group.
const SHOWN_MAX: usize = 5;

/// The dead.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    /// Dead rows read.
    dead: usize,
    groups: Vec<Group>,
    /// Set where some may have been left unread.
    more: bool,
    /// Entries of the index that were looked at.
    #[serde(skip)]
    looked_at: usize,
    #[serde(skip)]
    now: Millis,
}

/// Rows that died of the same.
#[derive(Debug, Serialize)]
struct Group {
    /// The first failure's text.
    error: String,
    class: Option<FailureClass>,
    count: usize,
    next: String,
    rows: Vec<Value>,
    #[serde(skip)]
    found: Vec<Row>,
}

/// Lists.
pub(crate) async fn run(ports: &(impl Ledger + Clock), args: &DeadList) -> Result<Listed, Failure> {
    let now = ports.now();
    // Chosen by the key, before the limit: another source's flood must not hide this one's.
    let wanted =
        |key: &EventKey| args.source.as_ref().is_none_or(|source| key.source() == source.as_str());
    let (buckets, limit) =
        ([Bucket::Dead as fn(u8) -> Bucket, Bucket::Parked], args.limit as usize);
    let chosen = rows::choose(ports, &buckets, Millis::END_OF_TIME, limit, &wanted).await?;
    let (more, looked_at) = (chosen.more, chosen.looked_at);
    let keys = chosen.entries.into_iter().map(|entry| entry.key);
    let mut dead = rows::read(ports, keys).await?;
    // The index runs a moment behind the rows.
    dead.retain(|row| row.life.status == Status::Dead);
    dead.sort_by_key(|row| row.life.failure.as_ref().map(|failure| failure.at));
    let count = dead.len();
    let mut groups: BTreeMap<(Option<FailureClass>, String), Vec<Row>> = BTreeMap::new();
    for row in dead {
        let failure = row.life.failure.as_ref();
        let text = failure.map_or("", |failure| failure.error.as_str());
        groups
            .entry((failure.map(|failure| failure.class), fingerprint(text)))
            .or_default()
            .push(row);
    }
    let mut groups: Vec<Group> = groups.into_values().map(|rows| group(rows, now)).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    Ok(Listed { dead: count, groups, more, looked_at, now })
}

/// A failure's text without what differs from row to row: ids, numbers, addresses, and what was
/// found in the event, which errors quote.
fn fingerprint(error: &str) -> String {
    let unquoted: String =
        error.split('"').enumerate().map(|(n, part)| if n % 2 == 0 { part } else { "#" }).collect();
    let words = unquoted.split_whitespace();
    words.map(|word| if is_of_one_row(word) { "#" } else { word }).collect::<Vec<_>>().join(" ")
}

/// Whether a word is likely to be another for each row: it has a digit, is an address, or is an id
/// such as `sub_AbCdEf`.
fn is_of_one_row(word: &str) -> bool {
    let is_id = word.rsplit_once('_').is_some_and(|(_, tail)| {
        let upper = tail.contains(|c: char| c.is_ascii_uppercase());
        upper && tail.contains(|c: char| c.is_ascii_lowercase())
    });
    word.contains(|c: char| c.is_ascii_digit()) || word.contains("://") || is_id
}

fn group(rows: Vec<Row>, now: Millis) -> Group {
    let failure = rows.first().and_then(|row| row.life.failure.as_ref());
    Group {
        error: failure
            .map_or_else(|| "no failure was recorded".to_owned(), |failure| failure.error.clone()),
        class: failure.map(|failure| failure.class),
        count: rows.len(),
        next: next(&rows, now),
        rows: rows.iter().map(|row| explain::json(row, now)).collect(),
        found: rows,
    }
}

/// What to do about a whole group.
fn next(rows: &[Row], now: Millis) -> String {
    let word = rows.first().map(|row| quoted(row.evidence.key.as_str())).unwrap_or_default();
    let by_itself = rows.iter().filter_map(|row| match row.life.open {
        Some(open) if matches!(open.bucket, Bucket::Dead(_)) => Some(open.due_at),
        Some(_) | None => None,
    });
    let soonest = by_itself.min();
    let is_conflict = rows.iter().any(|row| explain::is_conflict(&row.evidence.key));
    let redrive = "  oncehook dead redrive KEY... --by YOU --reason WHY";
    let together = one_build(rows).map_or_else(
        || redrive.to_owned(),
        |build| {
            format!("  oncehook dead redrive --release {} --by YOU --reason WHY", quoted(build))
        },
    );
    let look = format!("  oncehook dead show {word}");
    match (is_conflict, soonest) {
        (true, _) => format!("compare the bodies, then resolve:\n{look}"),
        (false, Some(at)) => {
            format!("redriven by itself, the first {}; sooner:\n{redrive}", relative(at, now))
        }
        (false, None) if rows.iter().any(|row| explain::is_permanent(&row.life)) => {
            format!("see what is wrong:\n{look}\nmend it, deploy, then:\n{together}")
        }
        (false, None) => {
            format!("automatic redrives are spent; when the cause is gone:\n{redrive}")
        }
    }
}

/// The build under which all of them died, if it is one.
fn one_build(rows: &[Row]) -> Option<&str> {
    let build = rows.first()?.life.release.as_deref();
    build.filter(|_| rows.iter().all(|row| row.life.release.as_deref() == build))
}

impl Report for Listed {
    fn needs_attention(&self) -> bool {
        self.dead > 0 || self.more
    }

    fn write(&self, page: &mut Page) {
        if self.dead == 0 {
            if self.more {
                let said = format!("none among the first {}; --limit reads on", self.looked_at);
                page.toned(Tone::Warn, said);
            } else {
                page.line("nothing is dead");
            }
            return;
        }
        for group in &self.groups {
            page.heading(format!("{} x {}", group.count, shown(&group.error)));
            let class = group.class.map_or("without a class", explain::class);
            let mut facts = vec![Fact::new("class", class)];
            let times = || {
                group
                    .found
                    .iter()
                    .filter_map(|row| row.life.failure.as_ref())
                    .map(|failure| failure.at)
            };
            if let (Some(first), Some(last)) = (times().min(), times().max()) {
                let from =
                    if first == last { String::new() } else { format!("{} to ", utc(first)) };
                facts.push(Fact::new("died", format!("{from}{}", when(last, self.now))));
            }
            let builds: BTreeSet<&str> =
                group.found.iter().filter_map(|row| row.life.release.as_deref()).collect();
            if !builds.is_empty() {
                let builds: Vec<String> = builds.into_iter().map(shown).collect();
                facts.push(Fact::new("build", builds.join(", ")));
            }
            facts.push(Fact::new("next", group.next.clone()));
            page.facts(&facts);
            page.inner_table(&self.table(group));
            if group.count > SHOWN_MAX {
                let rest = group.count - SHOWN_MAX;
                page.toned(Tone::Dim, format!("  and {rest} more; --json lists them all"));
            }
            page.blank();
        }
        let more = if self.more { " or more; --limit reads on" } else { "" };
        page.toned(Tone::Dim, format!("{}{more}", count(self.dead, "dead event", "dead events")));
    }
}

impl Listed {
    fn table(&self, group: &Group) -> Table {
        let mut table = Table::new(&["KEY", "TYPE", "RECEIVED", "ATTEMPTS", "REDRIVES"]);
        for row in group.found.iter().take(SHOWN_MAX) {
            let cells = [
                shown(row.evidence.key.as_str()),
                shown(&row.evidence.event_type),
                when(row.evidence.received_at, self.now),
                row.life.attempts.to_string(),
                row.life.redrives.to_string(),
            ];
            table.row(Tone::Plain, cells);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_not_read_to_its_end_does_not_say_that_nothing_is_dead() {
        let nothing =
            |more| Listed { dead: 0, groups: Vec::new(), more, looked_at: 1_000, now: Millis(0) };
        let said = |listed: &Listed| {
            let mut page = Page::default();
            listed.write(&mut page);
            anstream::adapter::strip_str(page.text()).to_string()
        };
        assert_eq!(said(&nothing(false)), "nothing is dead\n");
        assert!(!nothing(false).needs_attention());
        assert_eq!(said(&nothing(true)), "none among the first 1000; --limit reads on\n");
        assert!(nothing(true).needs_attention());
    }

    #[test]
    fn a_fingerprint_leaves_out_what_differs_from_row_to_row() {
        let a = fingerprint("no answer from evt_1x after 203 ms: connection reset");
        let b = fingerprint("no answer from evt_9y after 7 ms: connection reset");
        assert_eq!(a, b);
        assert_ne!(a, fingerprint("no answer from evt_9y after 7 ms: refused"));
        assert_eq!(fingerprint("version at /created is null"), "version at /created is null");
        let a = fingerprint("the id at /x is \"in hand\", from https://a.example/v/sub_AbC");
        assert_eq!(a, fingerprint("the id at /x is \"\", from https://b.example/v/sub_XyZ"));
        assert_eq!(fingerprint("no sub_AbCdEf"), fingerprint("no sub_GhIjKl"));
        assert_ne!(fingerprint("field past_due"), fingerprint("field paid_out"), "words stay");
    }
}
