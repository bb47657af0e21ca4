//! The run: providers deliver, stewards tick, slow workers stand still, storms pass, a build is
//! deployed. All of it at once, ended when every delivery has been sent.

use crate::{
    outside,
    plan::{Event, Plan},
    rig::Rig,
    schedule::Fault,
    slow::{SlowWorker, Slowness},
};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, MessageSystemAttributeName};
use fastrand::Rng;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use support::{Answered, Call, Resource, now_ms};

/// Providers that deliver at the same time.
const PROVIDERS: usize = 8;
/// How long a provider waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Deliveries between storms, about.
const STORM_EVERY: usize = 250;
/// Dead letters that are moved back: more than a run makes.
const DEAD_LETTERS_MAX: u32 = 5_000;
/// Tries of a delivery until a provider gives up for good: more than any run needs.
const TRIES_MAX: u32 = 200;
/// The steward's distance; a minute in the template.
const STEWARD_EVERY: Duration = Duration::from_millis(1_500);
/// The reconciler's distance; an hour in the template.
const RECONCILER_EVERY: Duration = Duration::from_secs(5);
/// How long a storm lasts.
const STORM: Duration = Duration::from_secs(3);
/// More messages than this wait: providers hold back, for it is the faults that are tested.
const BACKLOG: u64 = 150;

/// The weather, in turn: what almost every call meets for a while.
const STORMS: [Fault; 5] =
    [Fault::Throttled, Fault::ServerError, Fault::Conflict, Fault::Denied, Fault::Broken];

/// What the parts of a run share.
pub(crate) struct Drive {
    pub(crate) rig: Rig,
    pub(crate) plan: Plan,
    seed: u64,
    sent: AtomicUsize,
    accepted: Mutex<HashSet<usize>>,
    over: AtomicBool,
    no_steward: AtomicBool,
}

impl Drive {
    pub(crate) fn new(rig: Rig, plan: Plan, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            rig,
            plan,
            seed,
            sent: AtomicUsize::new(0),
            accepted: Mutex::default(),
            over: AtomicBool::new(false),
            no_steward: AtomicBool::new(false),
        })
    }

    /// Sends everything, amid every fault.
    pub(crate) async fn run(self: &Arc<Self>) -> Result<(), String> {
        let worker = self.rig.slow_worker().await?;
        let others = [
            tokio::spawn(Arc::clone(self).report()),
            tokio::spawn(Arc::clone(self).steward()),
            tokio::spawn(Arc::clone(self).reconciler()),
            tokio::spawn(Arc::clone(self).weather()),
            tokio::spawn(Arc::clone(self).events()),
            tokio::spawn(Arc::clone(self).slow(worker)),
        ];
        let providers = (0..PROVIDERS).map(|n| tokio::spawn(Arc::clone(self).provide(n)));
        for provider in futures::future::join_all(providers).await {
            provider.map_err(|error| error.to_string())?;
        }
        self.over.store(true, Ordering::Relaxed);
        for other in others {
            other.await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// How much is sent, in hundredths.
    fn progress(&self) -> usize {
        self.sent.load(Ordering::Relaxed).min(self.plan.deliveries.len()) * 100
            / self.plan.deliveries.len()
    }

    /// Waits until so much is sent, or all is over.
    async fn reached(&self, hundredths: usize) {
        while self.progress() < hundredths && !self.is_over() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Events that were answered 2xx.
    pub(crate) fn accepted(&self) -> HashSet<usize> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn provide(self: Arc<Self>, n: usize) {
        let mut rng = Rng::with_seed(self.seed.wrapping_add(n as u64));
        loop {
            while n % 2 == 1 && self.backlog().await > BACKLOG {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            let at = self.sent.fetch_add(1, Ordering::Relaxed);
            let Some(index) = self.plan.deliveries.get(at) else { return };
            self.deliver(*index, &mut rng).await;
        }
    }

    async fn backlog(&self) -> u64 {
        self.rig.stack.depth(Resource::Queue).await.map_or(0, |depth| depth.visible)
    }

    /// One delivery, tried again as its provider would.
    async fn deliver(&self, index: usize, rng: &mut Rng) {
        let event = &self.plan.events[index];
        self.rig.outside.happens(event);
        let tries = if event.retries { TRIES_MAX } else { 1 };
        for _ in 0..tries {
            let call = self.rig.stack.http.send(self.call(event));
            let answer = tokio::time::timeout(PATIENCE, call).await;
            let said = match &answer {
                Ok(Ok(Answered { status, .. })) => format!("delivered, answered {status}"),
                Ok(Err(_)) | Err(_) => "delivered, not answered".to_owned(),
            };
            self.rig.witness.remark(&event.key, &said);
            if matches!(answer, Ok(Ok(Answered { status: 200..300, .. }))) {
                self.accepted.lock().unwrap_or_else(PoisonError::into_inner).insert(index);
                return;
            }
            tokio::time::sleep(Duration::from_millis(rng.u64(50..600))).await;
        }
    }

    fn call(&self, event: &Event) -> Call {
        let (headers, body) = (&event.headers, event.body.clone());
        if outside::is_proven(event) {
            return Call::to_source(event.source, headers.clone(), body);
        }
        self.rig.stack.signer.call_at(event.source, headers, body, now_ms())
    }

    /// The reconciler, more often than once an hour.
    async fn reconciler(self: Arc<Self>) {
        while !self.is_over() {
            self.reconcile().await;
            tokio::time::sleep(RECONCILER_EVERY).await;
        }
    }

    /// One run of the reconciler. It may be killed in it.
    pub(crate) async fn reconcile(&self) {
        _ = self.rig.lambda.invoke(self.rig.reconciler(), &json!({})).await;
    }

    /// The steward, more often than once a minute, and every third time two at once.
    async fn steward(self: Arc<Self>) {
        let mut round = 0_u32;
        while !self.is_over() {
            let began = Instant::now();
            if !self.no_steward.load(Ordering::Relaxed) {
                round += 1;
                self.tick(round.is_multiple_of(3)).await;
            }
            tokio::time::sleep(STEWARD_EVERY.saturating_sub(began.elapsed())).await;
        }
    }

    /// One run of the steward, or two.
    pub(crate) async fn tick(&self, twice: bool) {
        let empty = json!({});
        let run = || self.rig.lambda.invoke(self.rig.steward(), &empty);
        if twice {
            self.rig.schedule.count(Fault::TwoStewards);
            _ = futures::join!(run(), run());
        } else {
            // It may be killed in it, or throttled.
            _ = run().await;
        }
    }

    /// Storms, spread over the way.
    async fn weather(self: Arc<Self>) {
        let first = usize::try_from(self.seed % STORMS.len() as u64).unwrap_or(0);
        let storms = (self.plan.deliveries.len() / STORM_EVERY).clamp(2, 24);
        for n in 1..=storms {
            self.reached(n * 100 / (storms + 1)).await;
            if self.is_over() {
                return;
            }
            self.rig.schedule.storm(Some(STORMS[(first + n) % STORMS.len()]));
            tokio::time::sleep(STORM).await;
            self.rig.schedule.storm(None);
        }
    }

    /// The steward is away from a third of the way to half; then a new build comes, function by
    /// function, while the slow worker stays with the old one.
    async fn events(self: Arc<Self>) {
        let (lambda, rig) = (&self.rig.lambda, &self.rig);
        self.reached(33).await;
        self.no_steward.store(true, Ordering::Relaxed);
        lambda.hold(rig.steward(), true).await.unwrap();
        rig.schedule.count(Fault::StewardDown);
        self.reached(50).await;
        lambda.hold(rig.steward(), false).await.unwrap();
        self.no_steward.store(false, Ordering::Relaxed);
        for (hundredths, function) in [
            (60, rig.steward()),
            (62, rig.reconciler()),
            (65, rig.consumer()),
            (70, rig.receiver()),
        ] {
            self.reached(hundredths).await;
            lambda.set_variables(function, &[("ONCEHOOK_RELEASE", "r2")]).await.unwrap();
        }
        rig.schedule.count(Fault::Deploy);
        self.reached(80).await;
        self.redrive_dead_letters().await;
    }

    /// What the SQS console does on *Start DLQ redrive*: every dead letter goes back to the queue.
    async fn redrive_dead_letters(&self) {
        let (stack, sqs) = (&self.rig.stack, self.rig.stack.aws.sqs());
        let [from, to] =
            ["ONCEHOOK_DLQ_URL", "ONCEHOOK_QUEUE_URL"].map(|name| stack.env.get(name).unwrap());
        for _ in 0..DEAD_LETTERS_MAX / 10 {
            let call = sqs.receive_message().queue_url(from).max_number_of_messages(10);
            let letters =
                call.send().await.ok().and_then(|answer| answer.messages).unwrap_or_default();
            if letters.is_empty() {
                return;
            }
            for letter in letters {
                let again = sqs.send_message().queue_url(to).set_message_body(letter.body.clone());
                let sent = again.message_group_id("redrive").send().await;
                if sent.is_ok() {
                    let delete = sqs.delete_message().queue_url(from);
                    _ = delete.set_receipt_handle(letter.receipt_handle).send().await;
                }
            }
        }
    }

    /// Feeds the slow worker from the queue, as Lambda's pollers do; every other batch goes to the
    /// deployed consumer as well, at the same time: the queue promises no less.
    async fn slow(self: Arc<Self>, mut worker: SlowWorker) {
        let turns = [Slowness::UntilLeased, Slowness::Held, Slowness::UntilSettled];
        let mut turn = 0;
        while !self.is_over() {
            let batch = self.receive().await.unwrap_or_default();
            if batch.is_empty() {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            tokio::select! {
                () = self.work(&mut worker, &batch, turns[turn % 3], turn % 2 == 1) => turn += 1,
                // Its sandbox ends with it, wherever it stands.
                () = self.ended() => return,
            }
        }
    }

    async fn work(
        &self,
        worker: &mut SlowWorker,
        batch: &[Value],
        slowness: Slowness,
        twice: bool,
    ) {
        let event = json!({ "Records": batch });
        let slow = worker.work(event.clone(), slowness);
        let answers = if twice {
            self.rig.schedule.count(Fault::DeliveredTwice);
            let other = self.rig.lambda.invoke(self.rig.consumer(), &event);
            let (slow, other) = futures::join!(slow, other);
            vec![slow, other.ok()]
        } else {
            vec![slow.await]
        };
        for answer in answers.into_iter().flatten() {
            self.delete_finished(batch, &answer).await;
        }
    }

    async fn ended(&self) {
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Up to three messages, in the shape in which Lambda hands them over.
    async fn receive(&self) -> Option<Vec<Value>> {
        let queue = self.rig.stack.env.get("ONCEHOOK_QUEUE_URL").ok()?;
        let call = self.rig.stack.aws.sqs().receive_message().queue_url(queue);
        let call = call
            .max_number_of_messages(3)
            .message_system_attribute_names(MessageSystemAttributeName::All);
        let messages = call.send().await.ok()?.messages.unwrap_or_default().into_iter();
        Some(
            messages
                .map(|message| {
                    let sent = MessageSystemAttributeName::SentTimestamp;
                    let sent = message.attributes.and_then(|mut found| found.remove(&sent));
                    json!({
                        "messageId": message.message_id,
                        "receiptHandle": message.receipt_handle,
                        "body": message.body,
                        "attributes": { "SentTimestamp": sent },
                        "messageAttributes": {},
                        "eventSource": "aws:sqs",
                        "awsRegion": "us-east-1",
                    })
                })
                .collect(),
        )
    }

    /// Deletes what an answer does not name as failed. No answer, or another one: nothing is.
    async fn delete_finished(&self, batch: &[Value], answer: &Value) {
        let Some(failures) = answer.get("batchItemFailures").and_then(Value::as_array) else {
            return;
        };
        let is_finished = |message: &&Value| {
            !failures
                .iter()
                .any(|failure| failure.get("itemIdentifier") == message.get("messageId"))
        };
        let entries: Option<Vec<_>> = batch
            .iter()
            .filter(is_finished)
            .map(|message| {
                let text = |name: &str| message.get(name).and_then(Value::as_str);
                let entry = DeleteMessageBatchRequestEntry::builder();
                let entry = entry.set_id(text("messageId").map(str::to_owned));
                entry.set_receipt_handle(text("receiptHandle").map(str::to_owned)).build().ok()
            })
            .collect();
        let Some(entries) = entries.filter(|entries| !entries.is_empty()) else { return };
        let queue = self.rig.stack.env.get("ONCEHOOK_QUEUE_URL").unwrap();
        let call = self.rig.stack.aws.sqs().delete_message_batch().queue_url(queue);
        // What is not deleted comes again, as everything may.
        _ = call.set_entries(Some(entries)).send().await;
    }

    /// A line every few seconds.
    async fn report(self: Arc<Self>) {
        let begun = Instant::now();
        let mut next = Duration::from_secs(10);
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(200)).await;
            if begun.elapsed() < next {
                continue;
            }
            next += Duration::from_secs(10);
            let sent = self.sent.load(Ordering::Relaxed).min(self.plan.deliveries.len());
            eprintln!(
                "faults: {} s, {sent} of {} deliveries, {} accepted events, {} faults, {} messages wait",
                begun.elapsed().as_secs(),
                self.plan.deliveries.len(),
                self.accepted().len(),
                self.rig.schedule.total(),
                self.backlog().await,
            );
        }
    }
}
