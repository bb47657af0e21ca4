//! Replay: a provider's own list of past events, read page by page, and every event of it fed in.
//! The ledger discards what is there.
//!
//! One loop serves a person's replay, which posts to the replay route, its dry run, which only looks
//! keys up, and the scheduled comparison, which claims what is missing. It holds one page at a time,
//! however long the window is, and moves its checkpoint once a page is done as a whole.
//!
//! Not here: which key opens the provider's API, and where checkpoints are kept.

mod access;
mod checkpoint;
mod feed;
mod opening;
pub mod pager;
mod patience;
mod raw;
mod tally;

pub use access::Access;
pub use checkpoint::{Checkpoint, Notebook};
pub use feed::{Fed, Feed, Look, Posts, Words};
pub use opening::{NoList, Opening};
pub use patience::Watch;
pub use tally::{FailedEvent, Outcome, SLOT_MS, Tally};

use crate::ports::{Clock, Entropy, Http, KnownRow, Lookup};
use config::Source;
use futures::{StreamExt as _, stream};
use ledger::{EventKey, Millis};
use pager::{Content, Cursor, Listed, Page, Pager};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};
use thiserror::Error;

/// A known event is late when it came this long after it happened.
pub const LATE_MS: u64 = 300_000;

/// Why a run ends before its window does.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Stop {
    /// The other side gives no answer, or none that helps, for longer than patience lasts.
    #[error("{0}")]
    Unreachable(String),
    /// The other side answers, and no other try would change it.
    #[error("{0}")]
    Refused(String),
    /// The checkpoint cannot be kept.
    #[error("the checkpoint cannot be kept: {0}")]
    NotKept(String),
}

/// A run that ended before its window did, and how far it is.
#[derive(Debug)]
pub struct Broken {
    /// How far.
    pub checkpoint: Checkpoint,
    /// Why.
    pub stop: Stop,
}

/// How fast events are fed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Events a second at most.
    pub per_second: u32,
    /// Events at the same time.
    pub at_once: usize,
}

/// One run over one list.
pub struct Replay<'r, P, F, W> {
    /// The world.
    pub ports: &'r P,
    /// The source the events are fed into.
    pub source: &'r Source,
    /// Reads the list.
    pub pager: Pager,
    /// Opens the list.
    pub access: &'r Access,
    /// Where events go.
    pub feed: F,
    /// Hears how it goes.
    pub watch: &'r W,
    /// How fast.
    pub pace: Pace,
    /// How far back the ledger holds what came ([`ledger::Policy::remembered_ms`]). Of an older event
    /// that is not there nothing tells whether it came, so it is left alone and counted. `None`: a
    /// person knows that none of them did.
    pub remembered_ms: Option<u64>,
}

/// A page, done.
struct Done {
    tally: Tally,
    oldest: Option<Millis>,
    next: Option<Cursor>,
}

/// When the next event may be fed in: one turn after another, at the run's pace.
struct Turns {
    began_at: Millis,
    taken: AtomicU64,
    per_second: u64,
}

impl Turns {
    async fn next(&self, clock: &impl Clock) {
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        let at = self.began_at.plus(turn.saturating_mul(1_000) / self.per_second.max(1));
        let wait_ms = at.since(clock.now());
        if wait_ms > 0 {
            clock.sleep(wait_ms).await;
        }
    }
}

impl<P, F, W> Replay<'_, P, F, W>
where
    P: Http + Clock + Entropy + Lookup,
    F: Feed,
    W: Watch,
{
    /// Goes on from `checkpoint` to the end of its window, or until `end`.
    pub async fn run(
        &self,
        mut checkpoint: Checkpoint,
        notebook: &(impl Notebook + Sync),
        end: Option<Millis>,
    ) -> Result<Checkpoint, Box<Broken>> {
        // The run's name has to outlive it: by that it knows its own rows again.
        if let Err(said) = notebook.save(&checkpoint).await {
            return Err(Box::new(Broken { checkpoint, stop: Stop::NotKept(said) }));
        }
        // The page in which an earlier run of the same name was broken off.
        let mut is_first = true;
        while let Some(cursor) = checkpoint.next.clone() {
            if end.is_some_and(|end| self.ports.now() >= end) {
                break;
            }
            let done = match self.page(&checkpoint, &cursor, is_first).await {
                Ok(done) => done,
                Err(stop) => return Err(Box::new(Broken { checkpoint, stop })),
            };
            checkpoint.tally.add(done.tally);
            checkpoint.next = done.next;
            checkpoint.oldest = [checkpoint.oldest, done.oldest].into_iter().flatten().min();
            is_first = false;
            if let Err(said) = notebook.save(&checkpoint).await {
                return Err(Box::new(Broken { checkpoint, stop: Stop::NotKept(said) }));
            }
            self.watch.reached(&checkpoint);
        }
        Ok(checkpoint)
    }

    async fn page(
        &self,
        checkpoint: &Checkpoint,
        cursor: &Cursor,
        is_first: bool,
    ) -> Result<Done, Stop> {
        let Page { events, unlisted, oldest, next } = self.read(cursor).await?;
        let mut tally = Tally::default();
        for item in unlisted {
            tally.count_unlisted(&item.id, item.why);
        }
        let mut wanted: BTreeMap<EventKey, Listed> = BTreeMap::new();
        let remembered = self.remembered_ms.map(|ms| self.ports.now().minus(ms));
        for event in events {
            if remembered.is_some_and(|since| event.at < since) {
                tally.forgotten += 1;
                continue;
            }
            if !checkpoint.wants(&event.event_type) {
                tally.skipped += 1;
                continue;
            }
            let Ok(key) = EventKey::new(&self.source.name, &event.id) else { continue };
            // A redelivery is listed again under its id.
            if let Some(again) = wanted.insert(key, event) {
                let outcome = Outcome::Duplicate { is_late: false };
                tally.count(&again.id, &again.event_type, again.at, outcome);
            }
        }
        let known = self.known(&wanted).await?;
        let turns = Turns {
            began_at: self.ports.now(),
            taken: AtomicU64::new(0),
            per_second: self.pace.per_second.into(),
        };
        let mut outcomes = stream::iter(wanted)
            .map(|(key, event)| {
                let (known, turns) = (known.get(&key), &turns);
                async move {
                    let fed = self.take(&key, &event, known, turns).await?;
                    let outcome = match fed {
                        Fed::New => Outcome::New,
                        Fed::Duplicate { is_own: true } if is_first => Outcome::New,
                        Fed::WrongMode => Outcome::WrongMode,
                        Fed::Duplicate { .. } => Outcome::Duplicate {
                            is_late: known
                                .is_some_and(|row| row.received_at.since(event.at) > LATE_MS),
                        },
                        Fed::Failed(why) => Outcome::Failed(why),
                    };
                    Ok::<_, Stop>((event, outcome))
                }
            })
            .buffer_unordered(self.pace.at_once.max(1));
        while let Some(done) = outcomes.next().await {
            let (event, outcome) = done?;
            tally.count(&event.id, &event.event_type, event.at, outcome);
        }
        drop(outcomes);
        Ok(Done { tally, oldest, next })
    }

    /// The rows there are, where it pays to ask before: a body that is read by itself is not read
    /// for what is known.
    async fn known(
        &self,
        wanted: &BTreeMap<EventKey, Listed>,
    ) -> Result<BTreeMap<EventKey, KnownRow>, Stop> {
        if !self.feed.looks_first() && !self.pager.needs_details() {
            return Ok(BTreeMap::new());
        }
        let keys: Vec<EventKey> = wanted.keys().cloned().collect();
        let found = self.ports.known(&keys).await;
        found.map_err(|error| Stop::Unreachable(error.to_string()))
    }

    async fn take(
        &self,
        key: &EventKey,
        event: &Listed,
        known: Option<&KnownRow>,
        turns: &Turns,
    ) -> Result<Fed, Stop> {
        if let Some(row) = known {
            let mark = row.origin_note.as_deref().map(|note| (row.origin, note));
            return Ok(Fed::Duplicate { is_own: mark.is_some() && mark == self.feed.mark() });
        }
        turns.next(self.ports).await;
        if !self.feed.needs_content() {
            let nothing = Content { body: Vec::new(), headers: Vec::new() };
            return self.feed.feed(key, nothing).await;
        }
        match self.content(event).await? {
            Ok(content) => self.feed.feed(key, content).await,
            Err(why) => Ok(Fed::Failed(why)),
        }
    }

    async fn read(&self, cursor: &Cursor) -> Result<Page, Stop> {
        let whom = self.source.preset.title();
        if !self.pager.holds(cursor) {
            let said = "a page on another host than its list, where the key does not belong";
            return Err(Stop::Refused(format!("{whom}: the checkpoint names {said}")));
        }
        let answer = self.ask(whom, self.pager.ask(cursor)).await?;
        match answer.status {
            200 => self
                .pager
                .read(cursor, &answer)
                .map_err(|no_page| Stop::Refused(format!("{whom} cannot be read: {no_page}"))),
            401 | 403 => Err(Stop::Refused(format!(
                "{whom} refuses the key ({}); may it read events?",
                answer.status
            ))),
            status => {
                Err(Stop::Refused(format!("{whom} answers {status} to a request for events")))
            }
        }
    }

    /// What a delivery of the event would carry; or why there is nothing to feed in.
    async fn content(&self, event: &Listed) -> Result<Result<Content, String>, Stop> {
        let Some(name) = &event.detail else { return Ok(self.pager.content(event, None)) };
        let whom = self.source.preset.title();
        let answer = self.ask(whom, self.pager.ask_details(name)).await?;
        Ok(match answer.status {
            200 => self.pager.content(event, Some(&answer.body)),
            status => Err(format!("{whom} answers {status} to a request for its body")),
        })
    }

    async fn ask(
        &self,
        whom: &str,
        ask: crate::http::HttpAsk,
    ) -> Result<crate::http::HttpAnswer, Stop> {
        let ask = self.access.with_key(self.ports, self.watch, whom, ask).await?;
        let answer = patience::call(self.ports, self.watch, whom, &ask).await;
        answer.map_err(Stop::Unreachable)
    }
}
