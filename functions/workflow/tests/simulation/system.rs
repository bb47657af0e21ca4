//! A deployment in simulated time: traffic, consumers, stewards, and what befalls them.

use crate::{
    engine::{Engine, until},
    rig::Rig,
};
use futures::{StreamExt, stream};
use ledger::{FailureClass, Millis, Policy, Row, Status};
use serde_json::Value;
use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
};
use workflow::{
    ports::Clock,
    projection::{Declarative, EventView, Plan, Projection, ProjectionError},
    steward::Tally,
    twin::Twin,
};

pub(crate) const SECOND: u64 = 1_000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;

/// How long a function may run.
const FUNCTION_MS: u64 = 30_000;
/// What an invocation costs beside its calls: with them, a batch takes about a tenth of a second, and
/// one worker does about a hundred events a second.
const INVOCATION_MS: u64 = 60;
/// Deliveries in flight or about to come.
const DELIVERIES_MAX: usize = 32;
/// An idle poller asks again after this long at most.
const POLL_MS: u64 = 500;

/// A call's time in milliseconds: slow for DynamoDB and SQS, to leave the consumer little to spare.
fn latency(step: &str) -> u64 {
    match step {
        "apply" => 30,
        "claim" | "lease" | "settle" | "fail" | "wait" | "bury" | "redrive" | "sweep" => 10,
        "row" | "entity" | "open" | "backlog" | "send" | "postpone" => 8,
        _ => 5,
    }
}

/// What stands between an event and its state, and fails as a scenario wishes.
#[derive(Default)]
pub(crate) struct Downstream {
    /// Down before this time.
    down_until: AtomicU64,
    /// Answers 429 before this time ...
    limited_until: AtomicU64,
    /// ... asking for this many milliseconds.
    retry_after_ms: AtomicU64,
    /// The event that was just projected kills its worker.
    kills: AtomicBool,
    /// Runs so far.
    runs: AtomicU64,
}

struct Through {
    downstream: Arc<Downstream>,
    twin: Arc<Twin>,
}

impl Projection for Through {
    fn project(&self, event: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError> {
        let down = &self.downstream;
        down.runs.fetch_add(1, Ordering::Relaxed);
        let refused = |class, retry_after_ms| ProjectionError::Custom {
            reason: "the price service does not answer".to_owned(),
            class,
            retry_after_ms,
        };
        if event.event_id.starts_with("killer") {
            down.kills.store(true, Ordering::Relaxed);
        }
        let now = self.twin.now().0;
        if now < down.down_until.load(Ordering::Relaxed) {
            return Err(refused(FailureClass::Transient, None));
        }
        if now < down.limited_until.load(Ordering::Relaxed) {
            let asked = down.retry_after_ms.load(Ordering::Relaxed);
            return Err(refused(FailureClass::RateLimited, Some(asked)));
        }
        Declarative.project(event)
    }
}

impl Downstream {
    fn stand_before(self: &Arc<Self>, rig: &mut Rig) {
        let (downstream, twin) = (Arc::clone(self), Arc::clone(&rig.twin));
        rig.consumer.projection = Box::new(Through { downstream, twin });
    }

    pub(crate) fn is_down_until(&self, at: Millis) {
        self.down_until.store(at.0, Ordering::Relaxed);
    }

    pub(crate) fn limits_until(&self, at: Millis, retry_after_ms: u64) {
        self.limited_until.store(at.0, Ordering::Relaxed);
        self.retry_after_ms.store(retry_after_ms, Ordering::Relaxed);
    }

    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }
}

/// The deployment.
pub(crate) struct System {
    pub(crate) rig: Rig,
    pub(crate) downstream: Arc<Downstream>,
    /// Whether the mapping hands out messages.
    pub(crate) consumes: Cell<bool>,
    /// Whether the schedule runs the steward.
    pub(crate) tends: Cell<bool>,
    /// What an invocation costs beside its calls.
    pub(crate) invocation_ms: Cell<u64>,
    tally: RefCell<Tally>,
    deaths: Cell<u64>,
}

impl System {
    pub(crate) fn new() -> Self {
        Self::with(Policy::default())
    }

    pub(crate) fn with(policy: Policy) -> Self {
        let mut rig = Rig::with(policy, "build-1");
        let downstream = Arc::new(Downstream::default());
        downstream.stand_before(&mut rig);
        rig.twin.set_latency(latency);
        Self {
            rig,
            downstream,
            consumes: Cell::new(true),
            tends: Cell::new(true),
            invocation_ms: Cell::new(INVOCATION_MS),
            tally: RefCell::default(),
            deaths: Cell::new(0),
        }
    }

    pub(crate) fn twin(&self) -> &Twin {
        &self.rig.twin
    }

    /// An engine with `workers` consumers and one steward.
    pub(crate) fn engine(&self, workers: usize) -> Engine<'_> {
        let mut engine = Engine::new(self.twin());
        for _ in 0..workers {
            engine.spawn(self.consumer(&self.rig));
        }
        engine.spawn(self.steward(&self.rig));
        engine
    }

    /// Another build over the same tables and queues.
    pub(crate) fn build(&self, release: &str) -> Rig {
        let mut rig = self.rig.deploy(release);
        self.downstream.stand_before(&mut rig);
        rig
    }

    /// Delivers `count` events, one every `every_ms`, each on its time whatever the others take.
    pub(crate) async fn traffic(&self, count: u64, every_ms: u64, event: impl Fn(u64) -> Value) {
        let (began, event) = (self.rig.now(), &event);
        let deliveries = stream::iter(0..count).map(|n| async move {
            until(self.twin(), began.plus(n * every_ms)).await;
            assert_eq!(self.rig.deliver(&event(n)).await.status, 200);
        });
        deliveries.buffer_unordered(DELIVERIES_MAX).collect::<()>().await;
    }

    /// One of the mapping's pollers, and the function it invokes.
    pub(crate) async fn consumer(&self, build: &Rig) {
        let twin = self.twin();
        loop {
            let batch = if self.consumes.get() { twin.receive(10) } else { Vec::new() };
            if batch.is_empty() {
                let now = twin.now();
                let next = twin.next_visible().map_or(POLL_MS, |at| at.since(now));
                twin.sleep(next.clamp(20, POLL_MS)).await;
                continue;
            }
            let deadline = twin.now().plus(FUNCTION_MS);
            twin.sleep(self.invocation_ms.get()).await;
            let consumed = Box::pin(build.consumer.consume(batch.clone(), deadline));
            match self.survives(consumed).await {
                Some(failed) => twin.finish(&batch, &failed),
                None => self.deaths.set(self.deaths.get() + 1),
            }
        }
    }

    /// What comes of `work`, or nothing when its process was killed: then it stops where it stands.
    async fn survives<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if self.downstream.kills.swap(false, Ordering::Relaxed) {
                return Poll::Ready(None);
            }
            polled.map(Some)
        })
        .await
    }

    /// The scheduled steward of one build.
    pub(crate) async fn steward(&self, build: &Rig) {
        loop {
            self.twin().sleep(MINUTE).await;
            // Hours of lines are more than is worth keeping.
            self.twin().forget_lines();
            if self.tends.get() {
                let tally = build.steward.run(self.rig.now().plus(MINUTE)).await;
                self.add(tally);
            }
        }
    }

    fn add(&self, tally: Tally) {
        let mut sum = self.tally.borrow_mut();
        sum.swept += tally.swept;
        sum.redriven += tally.redriven;
        sum.forced_buries += tally.forced_buries;
        sum.cleared += tally.cleared;
        sum.troubles += tally.troubles;
        sum.pending = tally.pending;
        sum.dead = tally.dead.or(sum.dead);
        sum.oldest_pending_ms = sum.oldest_pending_ms.max(tally.oldest_pending_ms);
    }

    /// What the stewards did so far.
    pub(crate) fn tally(&self) -> Tally {
        *self.tally.borrow()
    }

    /// How often a worker was killed.
    pub(crate) fn deaths(&self) -> u64 {
        self.deaths.get()
    }

    /// The rows of the events whose id begins with `prefix`.
    pub(crate) fn rows(&self, prefix: &str) -> Vec<Row> {
        let mut rows = self.twin().rows();
        rows.retain(|row| row.evidence.key.event_id().starts_with(prefix));
        rows
    }

    /// Whether all `count` events of this prefix changed their entity, or met a newer state.
    pub(crate) fn all_settled(&self, prefix: &str, count: u64) -> bool {
        let rows = self.rows(prefix);
        rows.len() as u64 == count && rows.iter().all(|row| row.life.status == Status::Settled)
    }
}

/// How long each row took to settle, the quickest first.
pub(crate) fn times_to_settle(rows: &[Row]) -> Vec<u64> {
    let mut times: Vec<u64> = rows
        .iter()
        .filter_map(|row| Some(row.life.settled_at?.since(row.evidence.received_at)))
        .collect();
    times.sort_unstable();
    times
}

/// The value below which `percent` of the sorted values lie.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}

/// How much smaller than in life the large scenarios are: not at all where that is asked for.
pub(crate) fn scale(parts: u64) -> u64 {
    if std::env::var("ONCEHOOK_SIMULATE").is_ok_and(|word| word == "full") { 1 } else { parts }
}

/// The limits that count messages, scaled with the traffic.
pub(crate) fn scaled(parts: u64) -> Policy {
    let full = Policy::default();
    Policy {
        sends_max: full.sends_max / u32::try_from(parts).unwrap(),
        backlog_messages: full.backlog_messages / parts,
        ..full
    }
}

/// Minutes and seconds.
pub(crate) fn shown(ms: u64) -> String {
    format!("{} min {:02} s", ms / MINUTE, ms % MINUTE / SECOND)
}
