//! Reconcile: the ledger compared with each provider's own list, hour by hour, and what is missing
//! claimed through the receiver's own use case.
//!
//! A run reads the window since the last one, with an hour of overlap, up to ten minutes ago: younger
//! events may still be on their way. What came in and is not there is a gap: claimed, counted, and an
//! alarm, for the next one may hold more than a list keeps. A window too long for one run goes on in
//! the next. The notebook is a hint: a lost or outdated one costs pages read twice, and every claim is
//! conditional, so two runs at once do no harm.
//!
//! An event that is listed and could not be claimed is trouble, and the windows of the next runs begin
//! before it until it is claimed, or is older than the list: an hour of overlap would forget it.
//!
//! A source without a list, an address or a key is left out by name. That a source cannot be compared
//! is trouble, counted apart from gaps: nothing found is not nothing missing.

mod by_hand;
mod claims;
mod completeness;
pub(crate) mod last_run;

pub use by_hand::compare;
pub use claims::Claims;
pub use completeness::Completeness;

use crate::{
    outbound::{NoKey, api_key},
    ports::{Http, Lookup, Notes, PortError, ReceiverPorts, Secret},
    receive::Receiver,
    replay::{
        Access, Checkpoint, Notebook, Opening, Pace, Replay, Stop, Tally,
        pager::{Cursor, Pager, Window},
    },
    telemetry::{Level, Line, MetricUnit, Telemetry, shown},
    within::within,
};
use config::{Config, Source};
use ledger::Millis;
use serde::{Deserialize, Serialize};

/// Younger events may still be on their way.
pub const GRACE_MS: u64 = 600_000;
/// What was read is read again this far back.
const OVERLAP_MS: u64 = 3_600_000;
/// The first run of a source looks back this far.
const FIRST_MS: u64 = 86_400_000;
/// What could not be claimed is tried again for as long as the list holds it, and no longer than this
/// where no provider says how long that is.
const FAILED_MS: u64 = 2_592_000_000;
/// A source takes no more than this share of what is left of the run, so that each has its turn.
const MARGIN_MS: u64 = 20_000;
/// How fast missing events are claimed.
pub const PACE: Pace = Pace { per_second: 200, at_once: 16 };

/// Everything the reconciler needs.
pub trait ReconcilerPorts: ReceiverPorts + Http + Lookup + Notes {}
impl<P: ReceiverPorts + Http + Lookup + Notes> ReconcilerPorts for P {}

/// Which sources are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those whose provider never sends a failed delivery again.
    NeverRetried,
    /// All.
    All,
}

impl Scope {
    /// Reads the stack's parameter.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "never-retried" => Some(Self::NeverRetried),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    const fn holds(self, source: &Source) -> bool {
        match self {
            Self::NeverRetried => !source.preset.retries(),
            Self::All => true,
        }
    }
}

/// The reconciler.
pub struct Reconciler<P> {
    /// Claims what is missing. Its keyring is not used.
    pub receiver: Receiver<P>,
    /// Which sources.
    pub scope: Scope,
    /// Whether keys marked `local` may be used.
    pub allow_local: bool,
    /// How fast missing events are claimed.
    pub pace: Pace,
}

/// What one run leaves to the next.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Memory {
    /// Everything up to here was compared, and what was missing claimed.
    covered_until: Option<Millis>,
    /// A comparison that ran out of time.
    unfinished: Option<Checkpoint>,
}

/// Why a source was not compared.
enum Left {
    /// There is nothing to compare with, by name.
    Out(String),
    /// It could not be done now.
    Trouble(String),
}

impl<P: ReconcilerPorts> Reconciler<P> {
    /// Compares every source in scope. `elsewhere` gives another address for a source's list.
    pub async fn run(&self, deadline: Millis, elsewhere: impl Fn(&str) -> Option<String>) {
        let ports = &*self.receiver.ports;
        let end = deadline.minus(MARGIN_MS);
        let config: &Config = &self.receiver.config;
        let sources: Vec<&Source> =
            config.sources().filter(|source| self.scope.holds(source)).collect();
        let mut left_out = Vec::new();
        for (n, source) in sources.iter().enumerate() {
            let now = ports.now();
            let others = u64::try_from(sources.len() - n).unwrap_or(1).max(1);
            let own_end = now.plus(end.since(now) / others);
            match self.source(source, elsewhere(source.name.as_str()), own_end).await {
                Ok(()) => {}
                Err(Left::Out(why)) => left_out.push(format!("{} ({why})", source.name)),
                Err(Left::Trouble(why)) => {
                    let text = format!("{} could not be compared: {why}", source.preset.title());
                    let line = Line::new(Level::Error, text).of_source(source.name.as_str());
                    ports.emit(&line.count("ReconcileTrouble"));
                }
            }
        }
        let compared = sources.len() - left_out.len();
        let mut text = format!("reconciler: {compared} sources compared");
        if !left_out.is_empty() {
            text = format!("{text}; left out: {}", left_out.join(", "));
        }
        ports.emit(&Line::new(Level::Info, text).count("ReconcilerRun"));
        if let Err(error) = last_run::note(ports, ports.now()).await {
            let text = format!("the end of the reconciler's run could not be noted: {error}");
            ports.emit(&Line::new(Level::Warn, text));
        }
    }

    async fn source(
        &self,
        source: &Source,
        elsewhere: Option<String>,
        end: Millis,
    ) -> Result<(), Left> {
        let ports = &*self.receiver.ports;
        let opening = Opening::of(source, elsewhere).map_err(|none| Left::Out(none.to_string()))?;
        let key = api_key(ports, Secret::Outbound, opening.secret, self.allow_local).await;
        let key = key.map_err(|no_key| match no_key {
            NoKey::NoEntry(_) => Left::Out(no_key.to_string()),
            NoKey::Unreadable(_) | NoKey::NotAnObject | NoKey::Unusable { .. } => {
                Left::Trouble(no_key.to_string())
            }
        })?;
        let access = Access::new(opening.list.auth.clone(), key);
        // What an earlier run left is finished first, then comes what happened since.
        while self.window(source, &opening, &access, end).await? {}
        Ok(())
    }

    /// Compares one window; whether it was what an earlier run had left.
    async fn window(
        &self,
        source: &Source,
        opening: &Opening<'_>,
        access: &Access,
        end: Millis,
    ) -> Result<bool, Left> {
        let ports = &*self.receiver.ports;
        let name = format!("reconcile#{}", source.name);
        let memory = self.memory(&name).await.map_err(|error| Left::Trouble(error.to_string()))?;
        let covered_until = memory.covered_until;
        let run = memory.unfinished.as_ref().map(|unfinished| unfinished.run.clone());
        let begun = self.left_of(memory.unfinished, source, opening);
        let is_left = begun.is_some();
        let checkpoint = begun.unwrap_or_else(|| {
            let remembered_ms = self.receiver.policy.remembered_ms();
            let window = window(covered_until, opening, remembered_ms, ports.now());
            // A run that got nowhere gives its name on, so that its rows are known again.
            let new = || ports.token().to_string().chars().take(12).collect();
            let (run, types) = (run.unwrap_or_else(new), opening.list.types.clone());
            Checkpoint::new(source.name.as_str(), run, window, types)
        });
        let note = format!("reconciler, run {}: scheduled comparison", checkpoint.run);
        let replay = Replay {
            ports,
            source,
            pager: Pager::new(opening.list.clone(), opening.address.clone(), checkpoint.window),
            access,
            feed: Claims::new(&self.receiver, source, note),
            watch: &(),
            pace: self.pace,
            remembered_ms: Some(self.receiver.policy.remembered_ms()),
        };
        let notebook = Kept { ports, name: &name, covered_until };
        // A provider may ask for more patience than the run has; what is done is kept page by page.
        let run = within(ports, end, replay.run(checkpoint, &notebook, Some(end)));
        let checkpoint = match run.await {
            Some(Ok(checkpoint)) => checkpoint,
            Some(Err(broken)) => {
                if matches!(broken.stop, Stop::Refused(_)) && is_left {
                    // Its place in the list may be forgotten by now: the next run begins anew.
                    let memory = Memory { covered_until, unfinished: None };
                    remember(ports, &name, &memory).await.map_err(Left::Trouble)?;
                }
                return Err(Left::Trouble(broken.stop.to_string()));
            }
            None => {
                return Err(Left::Trouble("it was still waiting when its time was up".to_owned()));
            }
        };
        if checkpoint.next.is_some() {
            return Err(Left::Trouble(format!(
                "more events than one run can read; the next goes on behind {} of them",
                completeness::grouped(checkpoint.tally.fetched)
            )));
        }
        let now_covered = Some(covered(checkpoint.window, &checkpoint.tally));
        let memory = Memory { covered_until: now_covered, unfinished: None };
        remember(ports, &name, &memory).await.map_err(Left::Trouble)?;
        let found = Completeness::of(checkpoint.window, &checkpoint.tally);
        publish(ports, source, &found, &checkpoint);
        if let Some(covered) = covered_until.filter(|covered| *covered < found.window.since) {
            ports.emit(&self.uncompared(source, covered, found.window.since));
        }
        Ok(is_left)
    }

    /// What was never compared, since the list or the ledger reaches back no further: there a missing
    /// event could not be told from one that was settled and is gone.
    fn uncompared(&self, source: &Source, since: Millis, until: Millis) -> Line {
        let text = format!(
            "{} was not compared for {} hours, and can be no more: its list or the ledger \
             (RetentionDays {}) reaches back no further",
            source.preset.title(),
            until.since(since).div_ceil(3_600_000),
            self.receiver.policy.retention_days
        );
        let line = Line::new(Level::Error, text).of_source(source.name.as_str());
        let line = line.with("uncompared.since_ms", since.0).with("uncompared.until_ms", until.0);
        line.count("ReconcileTrouble")
    }

    /// What an earlier run left, if it can be gone on with.
    fn left_of(
        &self,
        unfinished: Option<Checkpoint>,
        source: &Source,
        opening: &Opening<'_>,
    ) -> Option<Checkpoint> {
        let left = unfinished.filter(|left| left.next != Some(Cursor::First))?;
        if !left.goes_on_at(&opening.address) {
            let said = "its list has moved to another host; what was left of it is read anew";
            let text = format!("{}: {said}", source.preset.title());
            let line = Line::new(Level::Warn, text).of_source(source.name.as_str());
            self.receiver.ports.emit(&line);
            return None;
        }
        Some(left)
    }

    async fn memory(&self, name: &str) -> Result<Memory, PortError> {
        let text = self.receiver.ports.note(name).await?.unwrap_or_default();
        // A note of another form is no note: what it would have saved is read again.
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

/// What a run reads: since the last one, no further back than the list goes, and than the ledger
/// remembers.
fn window(
    covered_until: Option<Millis>,
    opening: &Opening<'_>,
    remembered_ms: u64,
    now: Millis,
) -> Window {
    let until = now.minus(GRACE_MS);
    let since = covered_until.unwrap_or(until.minus(FIRST_MS)).min(until).minus(OVERLAP_MS);
    let listed = opening.reaches_back_to(now).unwrap_or_default();
    let earliest = listed.max(now.minus(remembered_ms));
    Window::new(since.max(earliest).min(until), until)
}

/// What a finished window covers: all of it, but for what could not be claimed. It is never behind the
/// overlap of its own beginning, or the next windows would begin earlier and earlier.
fn covered(window: Window, tally: &Tally) -> Millis {
    let Some(failed_from) = tally.failed_from else { return window.until };
    let begun = window.since.plus(OVERLAP_MS).max(window.until.minus(FAILED_MS));
    failed_from.max(begun).min(window.until)
}

/// The notebook of a run: a row of the ledger's table.
struct Kept<'r, P> {
    ports: &'r P,
    name: &'r str,
    covered_until: Option<Millis>,
}

impl<P: Notes> Notebook for Kept<'_, P> {
    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), String> {
        let unfinished = Some(checkpoint.clone()).filter(|checkpoint| checkpoint.next.is_some());
        let memory = Memory { covered_until: self.covered_until, unfinished };
        remember(self.ports, self.name, &memory).await
    }
}

async fn remember(ports: &impl Notes, name: &str, memory: &Memory) -> Result<(), String> {
    let text = serde_json::to_string(memory).map_err(|error| error.to_string())?;
    ports.write_note(name, &text).await.map_err(|error| error.to_string())
}

fn publish(
    telemetry: &impl Telemetry,
    source: &Source,
    found: &Completeness,
    checkpoint: &Checkpoint,
) {
    #[expect(clippy::cast_precision_loss, reason = "metrics are approximate beyond 2^52")]
    let number = |n: u64| n as f64;
    let level = if found.missing > 0 || found.failed > 0 { Level::Error } else { Level::Info };
    let mut line = Line::new(level, found.sentence(source.preset.title()))
        .of_source(source.name.as_str())
        .with("window.since_ms", found.window.since.0)
        .with("window.until_ms", found.window.until.0);
    if let Some(first) = checkpoint.tally.failures.first() {
        line = line.with("failure.id", shown(&first.id)).with("failure.why", shown(&first.why));
    }
    for (name, n) in [
        ("ReconcileListed", found.listed),
        ("ReconcileHeld", found.held),
        ("ReconcileMissing", found.missing),
        ("ReconcileLate", found.late),
        ("ReconcileFailed", found.failed),
    ] {
        line = line.measure(name, number(n), MetricUnit::Count);
    }
    if found.failed > 0 {
        line = line.count("ReconcileTrouble");
    }
    telemetry.emit(&line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_covers_what_it_read_but_nothing_that_failed_in_it() {
        let window = Window::new(Millis(1_796_040_000_000), Millis(1_796_126_400_000));
        let Window { since, until, .. } = window;
        let failed = |failed_from| Tally { failed_from, ..Tally::default() };
        assert_eq!(covered(window, &failed(None)), until);
        let noon = since.plus(43_200_000);
        assert_eq!(covered(window, &failed(Some(noon))), noon);
        // One without a time may be as old as the window, whose beginning stays where it is.
        let next = covered(window, &failed(Some(Millis(0)))).minus(OVERLAP_MS);
        assert_eq!(next, since);
        let short = Window::new(until.minus(600_000), until);
        let all = covered(short, &failed(Some(Millis(0))));
        assert_eq!(all, short.until, "the next one's overlap holds all of it");
        let endless = Window::new(until.minus(2 * FAILED_MS), until);
        let limit = endless.until.minus(FAILED_MS);
        assert_eq!(covered(endless, &failed(Some(Millis(0)))), limit);
    }
}
