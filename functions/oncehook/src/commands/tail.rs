//! `tail`: what comes in, as it comes in; with `--forward` also on this machine.
//!
//! A cursor walks through the index `by_day`. The index is a moment behind the rows, and receivers'
//! clocks are not one clock, so an event may reach the index behind others that are younger: each
//! look begins a little before the last one and leaves out what was shown. A machine that slept asks
//! from where it was, however long ago that is.
//!
//! Ctrl-C is how following ends: no work is left undone by it, so the exit code is what it would be
//! had the stream ended there, 0, or 1 where something that was to be forwarded was not taken. With
//! `--once` there is an end, and whoever does not wait for it has interrupted it.

use crate::{
    args::Tail,
    context, explain,
    failure::Failure,
    http::{Outgoing, Wire},
    operator::{Change, Operator},
    output::{Tone, count, print_more, shown},
    rows,
    time::{rfc3339, utc},
    window::Walk,
};
use config::Config;
use ledger::{EventKey, Millis, Row, SourceName};
use std::{collections::BTreeSet, time::Duration};
use workflow::{
    body,
    ports::{Clock, DayEntry, Ledger},
};

/// An event may reach the index this long after the time it carries.
const LATE_MS: u64 = 30_000;
/// ... or carry a time this far ahead of this machine's.
const AHEAD_MS: u64 = 60_000;
/// Entries taken at a time.
const AT_A_TIME: usize = 64;
/// The header that names the event to whoever it is forwarded to.
const KEY_HEADER: &str = "x-oncehook-key";

/// Where the walk stands.
struct Cursor {
    sources: Vec<SourceName>,
    /// Where it began: nothing older is shown.
    begun: Millis,
    from: Millis,
    /// What was shown and might be met again.
    seen: BTreeSet<(Millis, EventKey)>,
}

impl Cursor {
    fn new(sources: Vec<SourceName>, begun: Millis) -> Self {
        Self { sources, begun, from: begun, seen: BTreeSet::new() }
    }

    /// A walk through what may be new at `now`.
    fn walk(&self, now: Millis) -> Walk {
        Walk::new(self.sources.clone(), (self.from, now.plus(AHEAD_MS)), false)
    }

    /// Whether an entry was not shown yet. It is from now on.
    fn is_new(&mut self, entry: &DayEntry) -> bool {
        self.seen.insert((entry.received_at, entry.key.clone()))
    }

    /// A whole look is over that began at `now`: the next one begins a little before it.
    fn looked(&mut self, now: Millis) {
        self.from = self.begun.max(now.minus(LATE_MS)).max(self.from);
        let from = self.from;
        self.seen.retain(|(at, _)| *at >= from);
    }
}

/// Follows until interrupted, or with `--once` to the end of what there is. Whether something that
/// was to be forwarded was not taken.
pub(crate) async fn run(
    ports: &(impl Ledger + Clock),
    config: &Config,
    wire: &impl Wire,
    args: &Tail,
    json: bool,
    operator: &Operator,
) -> Result<bool, Failure> {
    let sources = context::sources(config, args.filter.source.as_ref());
    let cursor = Cursor::new(sources, args.since.resolve(ports.now()));
    let mut so_far = SoFar { shown: 0, until: cursor.begun, refused: false };
    let follower = Follower { wire, args, json };
    match operator.interruptible(follow(ports, cursor, &follower, &mut so_far)).await {
        Some(done) => done.map(|()| so_far.refused),
        None if args.once => {
            let events = count(so_far.shown, "event", "events");
            let since = Change::Set("--since", rfc3339(so_far.until));
            Err(Failure::interrupted(&format!("behind {events}, at {}", utc(so_far.until)))
                .with_next(operator.again(&[since])))
        }
        None => {
            operator.leaves();
            Ok(so_far.refused)
        }
    }
}

/// What was shown so far.
struct SoFar {
    shown: usize,
    /// When the last event shown came in.
    until: Millis,
    /// Whether something that was to be forwarded was not taken.
    refused: bool,
}

async fn follow(
    ports: &(impl Ledger + Clock),
    mut cursor: Cursor,
    follower: &Follower<'_, impl Wire>,
    so_far: &mut SoFar,
) -> Result<(), Failure> {
    let args = follower.args;
    loop {
        let now = ports.now();
        let mut walk = cursor.walk(now);
        loop {
            let entries = walk.next(ports, AT_A_TIME).await?;
            if entries.is_empty() {
                break;
            }
            let new = entries.into_iter().filter(|entry| cursor.is_new(entry));
            let keys: Vec<EventKey> = new.map(|entry| entry.key).collect();
            for row in rows::read(ports, keys).await? {
                if !args.filter.is_met_by(&row) {
                    continue;
                }
                let shown = follower.show(ports, &row).await?;
                so_far.shown += 1;
                so_far.until = row.evidence.received_at;
                so_far.refused |= shown.is_refused;
                if !shown.is_read {
                    return Ok(());
                }
            }
        }
        cursor.looked(now);
        if args.once {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(args.every)).await;
    }
}

/// What came of showing one event.
struct Shown {
    /// Whether anybody reads on.
    is_read: bool,
    /// Whether it was to be forwarded and was not taken.
    is_refused: bool,
}

/// What is done with each event.
struct Follower<'a, W> {
    wire: &'a W,
    args: &'a Tail,
    json: bool,
}

impl<W: Wire> Follower<'_, W> {
    /// Shows one event, forwarded where that is asked for.
    async fn show(&self, ports: &(impl Ledger + Clock), row: &Row) -> Result<Shown, Failure> {
        let forwarded = match &self.args.forward {
            Some(url) => Some(self.forward(ports, url, row).await),
            None => None,
        };
        let is_read = print_more(&self.line(row, forwarded.as_ref(), ports.now()))?;
        let is_taken = forwarded.is_none_or(|answer| matches!(answer, Ok(200..=299)));
        Ok(Shown { is_read, is_refused: !is_taken })
    }

    async fn forward(&self, ledger: &impl Ledger, url: &str, row: &Row) -> Result<u16, String> {
        let body = body::read(ledger, row).await.map_err(|error| error.to_string())?;
        let kept = row.evidence.headers.iter();
        let mut headers: Vec<(String, String)> =
            kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !row.evidence.headers.contains_key("content-type") {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        headers.push((KEY_HEADER.to_owned(), row.evidence.key.to_string()));
        let outgoing = Outgoing {
            method: "POST".to_owned(),
            url: url.to_owned(),
            path: String::new(),
            headers,
            body,
        };
        Ok(self.wire.post(outgoing).await?.status)
    }

    fn line(&self, row: &Row, forwarded: Option<&Result<u16, String>>, now: Millis) -> String {
        if self.json {
            let mut event = explain::json(row, now);
            if let (Some(answer), Some(fields)) = (forwarded, event.as_object_mut()) {
                let said = match answer {
                    Ok(status) => serde_json::json!({ "status": status }),
                    Err(error) => serde_json::json!({ "error": error }),
                };
                fields.insert("forwarded".to_owned(), said);
            }
            return format!("{event}\n");
        }
        let passed_on = match forwarded {
            None => String::new(),
            Some(Ok(status @ 200..=299)) => format!("  {}", Tone::Good.paint(&status.to_string())),
            Some(Ok(status)) => format!("  {}", Tone::Bad.paint(&status.to_string())),
            Some(Err(error)) => format!("  {}", Tone::Bad.paint(&shown(error))),
        };
        let standing = format!("{:<10}", explain::standing(&row.life));
        format!(
            "{}  {}  {:<32}  {}{passed_on}\n",
            utc(row.evidence.received_at),
            explain::tone(&row.life).paint(&standing),
            shown(&row.evidence.event_type),
            shown(row.evidence.key.as_str()),
        )
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn entry(at: u64, id: &str) -> DayEntry {
        let key = EventKey::parse(&format!("s#{id}")).unwrap();
        DayEntry { key, received_at: Millis(at) }
    }

    #[test]
    fn what_reaches_the_index_late_or_at_the_same_moment_is_shown_once() {
        let mut cursor = Cursor::new(Vec::new(), Millis(1_000_000));
        assert!(cursor.is_new(&entry(1_000_000, "a")));
        cursor.looked(Millis(1_050_000));
        assert_eq!(cursor.from, Millis(1_020_000), "the next look begins before the last one");
        assert!(cursor.is_new(&entry(1_040_000, "late")));
        assert!(cursor.is_new(&entry(1_040_000, "twin")));
        assert!(!cursor.is_new(&entry(1_040_000, "late")));
        cursor.looked(Millis(1_051_000));
        assert!(!cursor.is_new(&entry(1_040_000, "twin")));
    }

    #[test]
    fn a_machine_that_slept_goes_on_where_it_was_and_holds_no_more_than_a_moment() {
        let mut cursor = Cursor::new(Vec::new(), Millis(1_000_000));
        cursor.looked(Millis(1_060_000));
        let slept_from = cursor.from;
        assert_eq!(
            slept_from,
            Millis(1_030_000),
            "nothing before it is asked for, all after it is"
        );
        for n in 0..1_000 {
            cursor.is_new(&entry(1_060_000 + n * 1_000, &n.to_string()));
        }
        cursor.looked(Millis(2_060_000));
        assert!(cursor.seen.len() <= 31, "{} held", cursor.seen.len());
    }
}
