//! The in-memory twin of the deployed system: ledger, state, queue, secret and clock.
//!
//! It runs the ledger's own verbs on maps, so a use case on the twin meets the rules themselves.
//! Faults are injected per call: a call can fail before it takes effect, or take effect and lose
//! its answer. Reads of rows and index entries are counted, so that a test can say what a sweep
//! costs. Time moves only when told; `twin/time.rs` says which calls take some.

mod ledger;
mod queue;
mod time;

use crate::{
    http::{HttpAnswer, HttpAsk},
    ports::{
        Certificates, Entropy, Http, KnownRow, Lookup, Notes, PortError, Secret, SecretStore,
        StewardNotes, Trouble,
    },
    telemetry::{Line, Telemetry},
};
use ::ledger::{Bucket, Entity, EventKey, Jitter, Millis, Policy, Row, Token};
pub use queue::Received;
use queue::SimQueue;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};
use time::{Latency, Sleepers};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails before it takes effect.
    Before(Trouble),
    /// It takes effect and its answer is lost. Callers see it as [`Trouble::Unavailable`], except
    /// that a conditional write is tried again at once, as the SDK does.
    AnswerLost,
    /// It takes effect this many milliseconds later, while its caller waits.
    Slow(u64),
}

/// Somebody else's server: answers, or cannot be reached.
type Server = Box<dyn FnMut(&HttpAsk) -> Option<HttpAnswer> + Send>;

/// Chooses a fault by the call's name and its number since the start.
type FaultPlan = Box<dyn FnMut(&'static str, u64) -> Option<Fault> + Send>;

/// The twin.
pub struct Twin {
    policy: Policy,
    world: Mutex<World>,
}

#[derive(Default)]
struct World {
    now: Millis,
    calls: u64,
    counts: BTreeMap<&'static str, u64>,
    tokens: u128,
    rows: BTreeMap<EventKey, Row>,
    open: BTreeMap<Bucket, BTreeSet<(Millis, EventKey)>>,
    days: BTreeMap<String, BTreeSet<(Millis, EventKey)>>,
    entities: BTreeMap<String, Entity>,
    chunks: BTreeMap<String, (Vec<u8>, Option<::ledger::Seconds>)>,
    notes: StewardNotes,
    named_notes: BTreeMap<String, String>,
    queue: SimQueue,
    secrets: BTreeMap<Secret, String>,
    provider: Option<Server>,
    certificates: BTreeMap<String, Vec<u8>>,
    lines: Vec<Line>,
    faults: Option<FaultPlan>,
    latency: Option<Latency>,
    sleepers: Sleepers,
}

impl Twin {
    /// An empty world at `now`.
    #[must_use]
    pub fn new(policy: Policy, now: Millis) -> Self {
        Self { policy, world: Mutex::new(World { now, ..World::default() }) }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // A panicking test must not hide behind a poisoned lock.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the signing secret.
    pub fn set_secret(&self, document: &str) {
        self.set_secret_of(Secret::Signing, document);
    }

    /// Stores one of the secrets.
    pub fn set_secret_of(&self, secret: Secret, document: &str) {
        self.world().secrets.insert(secret, document.to_owned());
    }

    /// Puts a server where calls to the outside end. It may look at the twin and change it, as what
    /// happens elsewhere while a provider is asked.
    pub fn set_provider(
        &self,
        server: impl FnMut(&HttpAsk) -> Option<HttpAnswer> + Send + 'static,
    ) {
        self.world().provider = Some(Box::new(server));
    }

    /// Puts a certificate, or anything else, where requests may point to.
    pub fn set_certificate(&self, url: &str, pem: &[u8]) {
        self.world().certificates.insert(url.to_owned(), pem.to_vec());
    }

    /// Injects faults from now on.
    pub fn set_faults(
        &self,
        plan: impl FnMut(&'static str, u64) -> Option<Fault> + Send + 'static,
    ) {
        self.world().faults = Some(Box::new(plan));
    }

    /// Ends the faults.
    pub fn clear_faults(&self) {
        self.world().faults = None;
    }

    /// How often each call was made.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.world().counts.clone()
    }

    /// Forgets the counts.
    pub fn reset_counts(&self) {
        self.world().counts.clear();
    }

    /// Every row.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        self.world().rows.values().cloned().collect()
    }

    /// One row.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<Row> {
        self.world().rows.get(&EventKey::parse(key).ok()?).cloned()
    }

    /// Puts a row in place as it is, index entries included.
    pub fn plant(&self, row: Row) {
        self.world().put(row);
    }

    /// One entity.
    #[must_use]
    pub fn state(&self, key: &str) -> Option<Entity> {
        self.world().entities.get(key).cloned()
    }

    /// Puts an entity in place.
    pub fn plant_state(&self, key: &str, entity: Entity) {
        self.world().entities.insert(key.to_owned(), entity);
    }

    /// When each stored chunk expires, by its key.
    #[must_use]
    pub fn chunk_expiries(&self) -> BTreeMap<String, Option<::ledger::Seconds>> {
        let world = self.world();
        world.chunks.iter().map(|(pk, (_, expires_at))| (pk.clone(), *expires_at)).collect()
    }

    /// What was reported so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.world().lines.clone()
    }

    /// Forgets what was reported: hours of traffic report more than memory holds.
    pub fn forget_lines(&self) {
        self.world().lines.clear();
    }

    /// The total of a metric so far.
    #[must_use]
    pub fn metric(&self, name: &str) -> f64 {
        let world = self.world();
        world
            .lines
            .iter()
            .flat_map(|line| &line.metrics)
            .filter(|m| m.name == name)
            .map(|m| m.value)
            .sum()
    }

    /// Deletes what has expired, as the store would.
    pub fn expire(&self) {
        let mut world = self.world();
        let now = world.now;
        let gone: Vec<EventKey> = world
            .rows
            .values()
            .filter(|row| row.life.expires_at.is_some_and(|at| at.0 <= now.0 / 1_000))
            .map(|row| row.evidence.key.clone())
            .collect();
        for key in gone {
            world.remove(&key);
        }
        world.chunks.retain(|_, (_, expires_at)| expires_at.is_none_or(|at| at.0 > now.0 / 1_000));
    }
}

impl World {
    /// Counts a call and draws its fault.
    fn call(&mut self, step: &'static str) -> Result<Option<Fault>, PortError> {
        self.calls += 1;
        *self.counts.entry(step).or_default() += 1;
        let calls = self.calls;
        match self.faults.as_mut().and_then(|plan| plan(step, calls)) {
            Some(Fault::Before(trouble)) => Err(injected(step, trouble)),
            Some(Fault::Slow(ms)) => {
                self.now = self.now.plus(ms);
                Ok(None)
            }
            fault => Ok(fault),
        }
    }

    fn put(&mut self, row: Row) {
        let key = row.evidence.key.clone();
        self.remove(&key);
        if let Some(open) = row.life.open {
            self.open.entry(open.bucket).or_default().insert((open.due_at, key.clone()));
        }
        let day = self.days.entry(row.evidence.day()).or_default();
        day.insert((row.evidence.received_at, key.clone()));
        self.rows.insert(key, row);
    }

    fn remove(&mut self, key: &EventKey) {
        let Some(old) = self.rows.remove(key) else {
            return;
        };
        if let Some(open) = old.life.open
            && let Some(bucket) = self.open.get_mut(&open.bucket)
        {
            bucket.remove(&(open.due_at, key.clone()));
        }
        if let Some(day) = self.days.get_mut(&old.evidence.day()) {
            day.remove(&(old.evidence.received_at, key.clone()));
        }
    }
}

fn injected(step: &'static str, trouble: Trouble) -> PortError {
    PortError { step, trouble, source: "injected".into() }
}

impl Entropy for Twin {
    fn token(&self) -> Token {
        let mut world = self.world();
        world.tokens += 1;
        // Mirrored, so that two differ in their first digits, as random ones do.
        Token(world.tokens.reverse_bits())
    }

    fn jitter(&self) -> Jitter {
        Jitter::NONE
    }
}

impl SecretStore for Twin {
    async fn fetch(&self, secret: Secret) -> Result<String, PortError> {
        let (world, _) = self.begin("secret").await?;
        let stored = world.secrets.get(&secret).cloned();
        stored.ok_or_else(|| injected("secret", Trouble::Unavailable))
    }
}

impl Http for Twin {
    async fn call(&self, ask: HttpAsk) -> Result<HttpAnswer, PortError> {
        let (mut world, fault) = self.begin("http").await?;
        // The server may ask the twin for the time.
        let server = world.provider.take();
        drop(world);
        let (answer, server) = match server {
            Some(mut server) => (server(&ask), Some(server)),
            None => (None, None),
        };
        self.world().provider = server;
        let is_lost = matches!(fault, Some(Fault::AnswerLost));
        let answer = answer.filter(|_| !is_lost);
        answer.ok_or_else(|| injected("http", Trouble::Unavailable))
    }
}

impl Lookup for Twin {
    async fn known(&self, keys: &[EventKey]) -> Result<BTreeMap<EventKey, KnownRow>, PortError> {
        let (world, _) = self.begin("known").await?;
        let found = keys.iter().filter_map(|key| {
            let evidence = &world.rows.get(key)?.evidence;
            let row = KnownRow {
                received_at: evidence.received_at,
                origin: evidence.origin,
                origin_note: evidence.origin_note.clone(),
            };
            Some((key.clone(), row))
        });
        Ok(found.collect())
    }
}

impl Notes for Twin {
    async fn note(&self, name: &str) -> Result<Option<String>, PortError> {
        let (world, _) = self.begin("note").await?;
        Ok(world.named_notes.get(name).cloned())
    }

    async fn write_note(&self, name: &str, text: &str) -> Result<(), PortError> {
        let (mut world, _) = self.begin("write_note").await?;
        world.named_notes.insert(name.to_owned(), text.to_owned());
        Ok(())
    }
}

impl Certificates for Twin {
    async fn certificate(&self, url: &str) -> Result<Vec<u8>, PortError> {
        let (world, _) = self.begin("certificate").await?;
        let found = world.certificates.get(url).cloned();
        found.ok_or_else(|| injected("certificate", Trouble::Invalid))
    }
}

impl Telemetry for Twin {
    fn emit(&self, line: &Line) {
        self.world().lines.push(line.clone());
    }
}
