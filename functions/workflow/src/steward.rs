//! The steward: what nobody else would do.
//!
//! Every minute it sends again what is overdue, buries what killed its workers until the budget
//! was spent, and measures the oldest event that should be finished by now. Every five minutes it
//! redrives what died and may live, and says how long the reconciler has been silent; after a deploy
//! it walks the dead once, since the new build may be the cure. Every fifteen minutes it clears the
//! dead-letter queue of messages whose rows are settled.
//!
//! Every act is a conditional write on what was seen, so two stewards do no harm. A run is bounded
//! in sends and in time, and the next one goes on where it ended.

mod ages;
mod dead;
mod pending;

use crate::{
    ports::{OpenEntry, StewardNotes, StewardPorts},
    reconcile::last_run,
    telemetry::{Level, Line, MetricUnit},
};
use ledger::{Bucket, Millis, Policy, SHARDS};
use std::sync::Arc;

/// Entries read per page.
const PAGE: u32 = 250;
/// Entries of one partition that a run reads at most, the earliest due. More than a run may send, so
/// that no partition waits for another's; the counts are "at least" beyond.
const ENTRIES_MAX: usize = 2_000;
/// Rows worked at the same time.
const AT_ONCE: usize = 8;
/// A run ends this long before the function's deadline.
const MARGIN_MS: u64 = 10_000;

/// The steward.
pub struct Steward<P> {
    /// The world.
    pub ports: Arc<P>,
    /// The limits.
    pub policy: Policy,
    /// The build that runs.
    pub release: String,
    /// Whether the stack has a reconciler, which is expected to finish a run every hour.
    pub has_reconciler: bool,
}

/// What one run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Pending rows seen.
    pub pending: u64,
    /// Overdue rows sent again.
    pub swept: u64,
    /// Rows buried by force.
    pub forced_buries: u64,
    /// Dead rows, of which the second number wait for a person; counted every five minutes.
    pub dead: Option<(u64, u64)>,
    /// Age of the oldest dead event; counted with them.
    pub oldest_dead_ms: u64,
    /// Dead rows brought back.
    pub redriven: u64,
    /// Dead-letter messages of settled rows deleted.
    pub cleared: u64,
    /// Rows or messages that could not be worked; they are still due.
    pub troubles: u64,
    /// Age of the oldest event that should be finished.
    pub oldest_pending_ms: u64,
    /// Whether some rows were not seen, for want of an answer or of time: then counts and ages say
    /// nothing, and the run does not count as one.
    pub is_blind: bool,
    /// How long the reconciler has finished no run; looked up every five minutes.
    pub reconciler_silent_ms: Option<u64>,
    /// How long the longest wait by design has lasted: for another number, or for a turn.
    pub oldest_waiting_ms: u64,
}

/// How far a step of a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// There is no more to do for now.
    End,
    /// The run's bound; the next run goes on.
    Bound,
}

/// One run.
struct Run<'a, P> {
    steward: &'a Steward<P>,
    now: Millis,
    end: Millis,
    sends_left: u32,
    tally: Tally,
}

impl<P: StewardPorts> Steward<P> {
    /// One run, and its line.
    pub async fn run(&self, deadline: Millis) -> Tally {
        let now = self.ports.now();
        let notes = match self.ports.notes().await {
            Ok(notes) => notes,
            Err(error) => {
                self.trouble("the steward's notes could not be read", &error);
                StewardNotes { redriven_at: now, cleared_at: now, ..StewardNotes::default() }
            }
        };
        let mut run = Run {
            steward: self,
            now,
            end: deadline.minus(MARGIN_MS),
            sends_left: self.policy.sends_max,
            tally: Tally::default(),
        };
        let mut next = notes.clone();
        run.sweep().await;
        // What a bound cut short goes on in the next run: the dead of an outage are many.
        if now.since(notes.redriven_at) >= self.policy.redrive_every_ms {
            run.listen_to_the_reconciler().await;
            if run.redrive_due().await == Reached::End {
                next.redriven_at = now;
            }
        }
        run.walk(&mut next).await;
        if now.since(notes.cleared_at) >= self.policy.clear_every_ms
            && run.clear_dead_letters().await == Reached::End
        {
            next.cleared_at = now;
        }
        if next != notes
            && let Err(error) = self.ports.write_notes(&next).await
        {
            self.trouble("the steward's notes could not be written", &error);
        }
        self.ports.emit(&report(&run.tally));
        run.tally
    }

    fn trouble(&self, what: &str, error: &(dyn std::error::Error + '_)) {
        self.ports
            .emit(&Line::new(Level::Warn, format!("{what}: {error}")).count("StewardTrouble"));
    }
}

impl<P: StewardPorts> Run<'_, P> {
    /// How long the reconciler has been silent. Where it never spoke, it is waited for from now on, so
    /// that a stack that was just deployed rings nothing.
    async fn listen_to_the_reconciler(&mut self) {
        if !self.steward.has_reconciler {
            return;
        }
        let ports = &*self.steward.ports;
        let last = match last_run::noted(ports).await {
            Ok(Some(last)) => Ok(last),
            Ok(None) => last_run::note(ports, self.now).await.map(|()| self.now),
            Err(error) => Err(error),
        };
        match last {
            Ok(last) => self.tally.reconciler_silent_ms = Some(self.now.since(last)),
            Err(error) => self.trouble("the reconciler's last run could not be read", &error),
        }
    }

    fn out_of_time(&self) -> bool {
        self.steward.ports.now() >= self.end
    }

    fn trouble(&mut self, what: &str, error: &(dyn std::error::Error + '_)) {
        self.tally.troubles += 1;
        self.steward.trouble(what, error);
    }

    /// The entries of one kind of bucket due at or before `due_before`, earliest first per
    /// partition, up to the bound of each; and whether every partition could be read.
    async fn entries(
        &mut self,
        bucket: fn(u8) -> Bucket,
        due_before: Millis,
    ) -> (Vec<(Bucket, OpenEntry)>, bool) {
        let mut entries = Vec::new();
        let mut is_whole = true;
        for shard in 0..SHARDS {
            let mut after: Option<OpenEntry> = None;
            let full = entries.len() + ENTRIES_MAX;
            while entries.len() < full {
                if self.out_of_time() {
                    return (entries, false);
                }
                let page =
                    self.steward.ports.open(bucket(shard), due_before, after.as_ref(), PAGE).await;
                let page = match page {
                    Ok(page) => page,
                    Err(error) => {
                        self.trouble("a bucket could not be read", &error);
                        is_whole = false;
                        break;
                    }
                };
                after = page.last().cloned();
                let is_last = page.len() < PAGE as usize;
                entries.extend(page.into_iter().map(|entry| (bucket(shard), entry)));
                if is_last {
                    break;
                }
            }
        }
        (entries, is_whole)
    }
}

fn report(tally: &Tally) -> Line {
    #[expect(clippy::cast_precision_loss, reason = "metrics are approximate beyond 2^52")]
    let number = |n: u64| n as f64;
    let count = |line: Line, name, n| line.measure(name, number(n), MetricUnit::Count);
    let mut line = Line::new(
        Level::Info,
        format!(
            "steward: {} pending, {} sent again, {} redriven, {} buried by force",
            tally.pending, tally.swept, tally.redriven, tally.forced_buries,
        ),
    );
    if let Some((dead, parked)) = tally.dead {
        line = count(count(line, "DeadRows", dead), "ParkedRows", parked);
        let age = number(tally.oldest_dead_ms / 1_000);
        line = line.measure("OldestDeadAge", age, MetricUnit::Seconds);
    }
    if let Some(silent_ms) = tally.reconciler_silent_ms {
        let age = number(silent_ms / 1_000);
        line = line.measure("ReconcilerSilentFor", age, MetricUnit::Seconds);
    }
    for (name, n) in [
        ("Swept", tally.swept),
        ("ForcedBury", tally.forced_buries),
        ("RedrivenRows", tally.redriven),
        ("ClearedDeadLetters", tally.cleared),
    ] {
        line = count(line, name, n);
    }
    // Said without having looked, a zero would end the alarms that rest on it.
    if tally.is_blind {
        return line;
    }
    line = count(count(line, "StewardRun", 1), "Pending", tally.pending);
    if tally.oldest_waiting_ms > 0 {
        let age = number(tally.oldest_waiting_ms / 1_000);
        line = line.measure("OldestWaitingAge", age, MetricUnit::Seconds);
    }
    line.measure("OldestPendingAge", number(tally.oldest_pending_ms / 1_000), MetricUnit::Seconds)
}
