//! `replay --from-ledger`: events of the ledger are fed in again, as rows of their own.
//!
//! A walk through the window, oldest first, a few rows at a time. Each event is judged by the use
//! case's own rule and then, with `--execute`, claimed under the run's key and sent. Claims are
//! conditional, so the run's name is all that is needed to go on after an interruption; what was
//! claimed by then and not sent is sent by the steward. One event that fails is named and the walk
//! goes on; the numbers add up to what was selected.

mod report;

pub(crate) use report::Ran;

use crate::{
    args::{FromLedger, Standing},
    commands::events_list::ordered,
    context,
    failure::Failure,
    operator::{Change, Operator},
    output::{count, note, quoted},
    pace::Pace,
    progress::{Progress, Reached},
    rows,
    time::{rfc3339, utc},
    window::Walk,
};
use config::Config;
use ledger::{EventKey, Millis, Outcome, Policy, Row, RunName};
use report::{Failed, Refusals};
use std::collections::BTreeMap;
use workflow::{
    ledger_replay::{LedgerReplay, Replayed, WhyNot, why_not},
    ports::{Clock, Entropy, Ledger, Outbox, PortError},
};

/// Rows read at a time.
const AT_A_TIME: usize = 64;
/// Keys named of those that failed or were refused.
const NAMED_MAX: usize = 20;

/// A run, and how far it is.
struct Run<'a, P> {
    ports: &'a P,
    replay: LedgerReplay<'a>,
    args: &'a FromLedger,
    operator: &'a Operator,
    window: Option<(Millis, Millis)>,
    pace: Pace,
    /// When the last event that was looked at came in.
    reached: Option<Millis>,
    refusals: BTreeMap<WhyNot, (usize, Vec<EventKey>)>,
    ran: Ran,
}

/// Walks, judges, and with `--execute` replays.
pub(crate) async fn run<P: Ledger + Outbox + Clock + Entropy>(
    ports: &P,
    config: &Config,
    policy: &Policy,
    args: &FromLedger,
    operator: &Operator,
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
    if let Some((since, until)) = window {
        ordered(since, until)?;
    }
    let ran = Ran::new(args, &run, window);
    let (pace, refusals) = (Pace::new(args.rate), BTreeMap::new());
    let mut work =
        Run { ports, replay, args, operator, window, pace, reached: None, refusals, ran };
    if args.execute {
        note(&format!("run {run}; should it be cut off, this goes on:\n  {}", work.go_on(None)));
    }
    let done = match window {
        Some(window) => operator.interruptible(work.window(window)).await,
        None => operator.interruptible(work.keys()).await,
    };
    let is_done = done.transpose()?.is_some();
    Ok(work.finish(is_done))
}

/// A name that sorts by time and that two people do not make up at once.
fn made_up(now: Millis, token: u128) -> String {
    let digits = utc(now).replace([' ', ':'], "-");
    format!("{}-{:04x}", digits.trim_end_matches('Z'), token & 0xFFFF)
}

impl<P: Ledger + Outbox + Clock + Entropy> Run<'_, P> {
    async fn window(&mut self, (since, until): (Millis, Millis)) -> Result<(), Failure> {
        let progress = self.operator.progress(until.since(since), Reached::default());
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
                if self.limit_left() == Some(0) {
                    self.ran.more = true;
                    return Ok(());
                }
                self.one(&row).await;
                let at = row.evidence.received_at;
                self.reached = Some(at);
                self.show(&progress, at.since(since));
            }
        }
    }

    async fn keys(&mut self) -> Result<(), Failure> {
        let progress = self.operator.progress(self.args.keys.len() as u64, Reached::default());
        for (n, key) in self.args.keys.iter().enumerate() {
            match self.ports.row(key).await? {
                Some(row) if self.args.filter.is_met_by(&row) => self.one(&row).await,
                Some(_) => {}
                None => self.ran.missing.push(key.clone()),
            }
            self.show(&progress, n as u64 + 1);
        }
        Ok(())
    }

    /// How many more events --limit lets in. What the run made before counts for nothing, or a run that
    /// goes on would end where it ended.
    fn limit_left(&self) -> Option<usize> {
        let limit = self.args.limit? as usize;
        Some(limit.saturating_sub(self.ran.selected - self.ran.before))
    }

    fn show(&self, progress: &Progress, length: u64) {
        let ran = &self.ran;
        let verb = if self.args.execute { "replayed" } else { "to replay" };
        let said =
            format!("{} {verb}, {} refused, {} failed", ran.replayed, ran.refused, ran.failed);
        progress.reach(Reached { length, count: ran.selected as u64 }, &said);
    }

    /// The command that goes on with this run. Its window is named by its ends, which an age would move;
    /// what is done of it is left out, unless something failed that is to be tried again.
    fn go_on(&self, limit: Option<usize>) -> String {
        let mut changes = vec![Change::Set("--run", self.replay.run.to_string())];
        if let Some((since, until)) = self.window {
            let done = self.reached.filter(|_| self.ran.failed == 0);
            changes.push(Change::Set("--since", rfc3339(done.unwrap_or(since))));
            changes.push(Change::Set("--until", rfc3339(until)));
        }
        changes.extend(limit.map(|limit| Change::Set("--limit", limit.to_string())));
        self.operator.again(&changes)
    }

    /// One event; whatever becomes of it is counted.
    async fn one(&mut self, row: &Row) {
        let key = &row.evidence.key;
        let closed_too = self.ran.named
            || self.args.filter.status.contains(&Standing::Outcome(Outcome::Resolved));
        if let Some(why) = why_not(row, self.replay.config, closed_too) {
            self.ran.selected += 1;
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
        // Not before it is known what becomes of it: the work may be let go of meanwhile.
        self.ran.selected += 1;
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
    }

    /// What a preview says of an event: only a run that has a name may have made its row before.
    async fn would_be(&self, key: &EventKey) -> Result<Replayed, PortError> {
        let is_there =
            self.args.run.is_some() && self.ports.row(&self.replay.key(key)).await?.is_some();
        Ok(if is_there { Replayed::Before } else { Replayed::New { sent: true } })
    }

    /// How far an interrupted run is, and with which command it goes on.
    fn interruption(&self) -> Failure {
        let ran = &self.ran;
        let at = self.reached.map(|at| format!(", at {}", utc(at))).unwrap_or_default();
        let looked_at = count(ran.selected, "event", "events");
        if !self.args.execute {
            let said = format!("behind {looked_at}{at}; it was a preview, nothing is written");
            return Failure::interrupted(&said).with_next(self.operator.again(&[]));
        }
        let said = format!(
            "behind {looked_at}{at}: {} replayed, {} there before, {} refused, {} failed; one more \
             may be under way; run {}",
            ran.replayed, ran.before, ran.refused, ran.failed, ran.run
        );
        // What failed takes its place again.
        let limit = self.limit_left().map(|left| left.max(1) + ran.failed);
        Failure::interrupted(&said).with_next(self.go_on(limit))
    }

    fn finish(mut self, is_done: bool) -> Ran {
        let interrupted = (!is_done).then(|| self.interruption());
        self.ran.complete = is_done && !self.ran.more;
        self.ran.next = match &interrupted {
            Some(failure) => failure.next().unwrap_or_default().to_owned(),
            None => self.next(),
        };
        self.ran.stopped = interrupted;
        let refusals = self.refusals.into_iter().map(|(why, (count, keys))| Refusals {
            why: why.to_string(),
            count,
            keys,
        });
        let mut ran = self.ran;
        ran.refusals = refusals.collect();
        ran
    }

    fn next(&self) -> String {
        let ran = &self.ran;
        if !ran.executed {
            return match ran.replayed {
                0 => "nothing would be replayed".to_owned(),
                _ => "nothing is written yet; the same with --execute does it".to_owned(),
            };
        }
        if ran.failed > 0 || ran.more {
            let what = if ran.failed > 0 { "try what failed again" } else { "go on" };
            return format!("{what}:\n  {}", self.go_on(None));
        }
        match (&self.args.keys.first(), ran.replayed + ran.before) {
            (_, 0) => "nothing was replayed".to_owned(),
            (Some(key), _) => {
                let key = format!("_r#{}#{key}", ran.run);
                format!("see how it went:\n  oncehook events show {}", quoted(&key))
            }
            (None, _) => {
                "see how they went:\n  oncehook events list --since 10m\n  oncehook dead list"
                    .to_owned()
            }
        }
    }
}
