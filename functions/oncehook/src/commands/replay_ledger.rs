//! `replay --from-ledger`: events of the ledger are fed in again, as rows of their own.
//!
//! A walk through the window, oldest first, a few rows at a time. Each event is judged by the use
//! case's own rule and then, with `--execute`, claimed under the run's key and sent. Claims are
//! conditional, so the run's name is all that is needed to go on after an interruption. One event
//! that fails is named and the walk goes on; the numbers add up to what was selected.

use crate::{
    args::{FromLedger, Standing},
    commands::events_list::ordered,
    context,
    failure::Failure,
    output::{Fact, Page, Report, Table, Tone, count, note, progress, quoted, shown},
    pace::Pace,
    rows,
    time::{rfc3339, utc},
    window::Walk,
};
use config::Config;
use ledger::{EventKey, Millis, Outcome, Policy, Row, RunName};
use serde::Serialize;
use std::collections::BTreeMap;
use workflow::{
    ledger_replay::{LedgerReplay, Replayed, WhyNot, why_not},
    ports::{Clock, Entropy, Ledger, Outbox, PortError},
};

/// Rows read at a time.
const AT_A_TIME: usize = 64;
/// Keys named of those that failed or were refused.
const NAMED_MAX: usize = 20;

/// What a run did, or would do.
#[derive(Debug, Serialize)]
pub(crate) struct Ran {
    run: String,
    executed: bool,
    by: String,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// Events that the options chose: the sum of the four numbers that follow.
    selected: usize,
    /// Made, or to be made.
    replayed: usize,
    /// Made by this run before.
    before: usize,
    refused: usize,
    failed: usize,
    /// Made, and left for the steward to send.
    unsent: usize,
    /// Named keys that no row has.
    missing: Vec<EventKey>,
    types: BTreeMap<String, usize>,
    refusals: Vec<Refusals>,
    failures: Vec<Failed>,
    /// Set where --limit ended it.
    more: bool,
    next: String,
    #[serde(skip)]
    named: bool,
}

/// Events that were refused for one reason.
#[derive(Debug, Serialize)]
struct Refusals {
    why: String,
    count: usize,
    /// The first of them.
    keys: Vec<EventKey>,
}

/// An event that could not be replayed.
#[derive(Debug, Serialize)]
struct Failed {
    key: EventKey,
    error: String,
}

/// The parts of a run that stay the same.
struct Run<'a, P> {
    ports: &'a P,
    replay: LedgerReplay<'a>,
    args: &'a FromLedger,
    pace: Pace,
    refusals: BTreeMap<WhyNot, (usize, Vec<EventKey>)>,
    ran: Ran,
}

/// Walks, judges, and with `--execute` replays.
pub(crate) async fn run<P: Ledger + Outbox + Clock + Entropy>(
    ports: &P,
    config: &Config,
    policy: &Policy,
    args: &FromLedger,
) -> Result<Ran, Failure> {
    let now = ports.now();
    let made_up = RunName::new(&made_up(now, ports.token().0));
    let run = match &args.run {
        Some(run) => run.clone(),
        None => made_up.map_err(|error| Failure::usage(error.to_string()))?,
    };
    let replay = LedgerReplay { config, policy, run: &run, by: &args.by, reason: &args.reason };
    let window = args
        .since
        .map(|since| (since.resolve(now), args.until.map_or(now, |until| until.resolve(now))));
    let ran = Ran::new(args, &run, window);
    let mut work =
        Run { ports, replay, args, pace: Pace::new(args.rate), refusals: BTreeMap::new(), ran };
    if args.execute {
        note(&format!("run {run}; should it be interrupted, go on with --run {run}"));
    }
    match window {
        Some(window) => work.window(window).await?,
        None => work.keys().await?,
    }
    progress("");
    Ok(work.finish())
}

/// A name that sorts by time and that two people do not make up at once.
fn made_up(now: Millis, token: u128) -> String {
    let digits = utc(now).replace([' ', ':'], "-");
    format!("{}-{:04x}", digits.trim_end_matches('Z'), token & 0xFFFF)
}

impl<P: Ledger + Outbox + Clock + Entropy> Run<'_, P> {
    async fn window(&mut self, (since, until): (Millis, Millis)) -> Result<(), Failure> {
        ordered(since, until)?;
        let sources = context::sources(self.replay.config, self.args.filter.source.as_ref());
        let mut walk = Walk::new(sources, (since, until), false);
        loop {
            let entries = walk.next(self.ports, AT_A_TIME).await?;
            if entries.is_empty() {
                return Ok(());
            }
            // What replays have made is not replayed: it would double with every run.
            let keys = entries.into_iter().map(|entry| entry.key);
            let keys = keys.filter(|key| key.replay_of().is_none());
            for row in rows::read(self.ports, keys).await? {
                if !self.args.filter.is_met_by(&row) {
                    continue;
                }
                if self.args.limit.is_some_and(|limit| self.ran.selected >= limit as usize) {
                    self.ran.more = true;
                    return Ok(());
                }
                self.one(&row).await;
            }
        }
    }

    async fn keys(&mut self) -> Result<(), Failure> {
        for key in &self.args.keys {
            match self.ports.row(key).await? {
                Some(row) if self.args.filter.is_met_by(&row) => self.one(&row).await,
                Some(_) => {}
                None => self.ran.missing.push(key.clone()),
            }
        }
        Ok(())
    }

    /// One event; whatever becomes of it is counted.
    async fn one(&mut self, row: &Row) {
        let key = &row.evidence.key;
        self.ran.selected += 1;
        let closed_too = self.ran.named
            || self.args.filter.status.contains(&Standing::Outcome(Outcome::Resolved));
        if let Some(why) = why_not(row, self.replay.config, closed_too) {
            self.ran.refused += 1;
            let (count, keys) = self.refusals.entry(why).or_default();
            *count += 1;
            if keys.len() < NAMED_MAX {
                keys.push(key.clone());
            }
            return;
        }
        let done = if self.args.execute {
            self.pace.turn().await;
            let done = self.replay.replay(self.ports, row).await;
            done.map_err(|error| error.to_string())
        } else {
            self.would_be(key).await.map_err(|error| error.to_string())
        };
        match done {
            Ok(Replayed::New { sent }) => {
                self.ran.replayed += 1;
                self.ran.unsent += usize::from(!sent);
                *self.ran.types.entry(row.evidence.event_type.clone()).or_default() += 1;
            }
            Ok(Replayed::Before) => self.ran.before += 1,
            Err(error) => {
                self.ran.failed += 1;
                if self.ran.failures.len() < NAMED_MAX {
                    self.ran.failures.push(Failed { key: key.clone(), error });
                }
            }
        }
        let verb = if self.args.execute { "replayed" } else { "to replay" };
        progress(&format!(
            "{} looked at, {} {verb}, now at {}",
            self.ran.selected,
            self.ran.replayed,
            utc(row.evidence.received_at)
        ));
    }

    /// What a preview says of an event: only a run that has a name may have made its row before.
    async fn would_be(&self, key: &EventKey) -> Result<Replayed, PortError> {
        let is_there =
            self.args.run.is_some() && self.ports.row(&self.replay.key(key)).await?.is_some();
        Ok(if is_there { Replayed::Before } else { Replayed::New { sent: true } })
    }

    fn finish(self) -> Ran {
        let refusals = self.refusals.into_iter().map(|(why, (count, keys))| Refusals {
            why: why.to_string(),
            count,
            keys,
        });
        let mut ran = self.ran;
        ran.refusals = refusals.collect();
        ran.next = ran.next(self.args);
        ran
    }
}

impl Ran {
    fn new(args: &FromLedger, run: &RunName, window: Option<(Millis, Millis)>) -> Self {
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
            next: String::new(),
            named: !args.keys.is_empty(),
        }
    }

    fn next(&self, args: &FromLedger) -> String {
        if !self.executed {
            return match self.replayed {
                0 => "nothing would be replayed".to_owned(),
                _ => "nothing is written yet; the same with --execute does it".to_owned(),
            };
        }
        if self.failed > 0 || self.more {
            let what = if self.failed > 0 { "try what failed again" } else { "go on" };
            return format!("{what}: the same command with --run {}", self.run);
        }
        match (&args.keys.first(), self.replayed + self.before) {
            (_, 0) => "nothing was replayed".to_owned(),
            (Some(key), _) => {
                let key = format!("_r#{}#{key}", self.run);
                format!("see how it went:\n  oncehook events show {}", quoted(&key))
            }
            (None, _) => {
                "see how they went:\n  oncehook events list --since 10m\n  oncehook dead list"
                    .to_owned()
            }
        }
    }
}

impl Report for Ran {
    fn needs_attention(&self) -> bool {
        self.failed > 0 || !self.missing.is_empty() || (self.named && self.refused > 0)
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
        facts.push(Fact::new("next", self.next.clone()));
        page.facts(&facts);
    }
}
