//! A worker that outlives its lease: the shipped consumer under a Lambda runtime of this suite's own.
//!
//! The emulator, like Lambda, kills a function at its deadline, and a lease ends after that; so no
//! worker it runs can be too slow. This one is told a deadline of seconds and never killed. Its batches
//! come from the same queue. It stands still between its lease and its first write until another worker
//! has the row, or its first writes are held that long; then it goes on, or they arrive.

use crate::{
    wire::{Message, Wire, answer},
    witness::Witness,
};
use serde_json::Value;
use std::{
    collections::HashMap,
    io::Result,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use support::now_ms;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// What the worker is told of its time, in ms: its cut-off leaves a second of it to work in.
const DEADLINE_MS: u64 = 2_500;
/// How long after the lease's end somebody else is waited for.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(3);

/// How the worker is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slowness {
    /// It stands still until another has leased the row.
    UntilLeased,
    /// It stands still until another has settled the row.
    UntilSettled,
    /// It runs, its writes are held until another has leased the row.
    Held,
}

/// The slow process and what it holds.
#[derive(Default)]
pub(crate) struct Slow {
    inner: Mutex<Option<State>>,
}

struct State {
    pid: u32,
    slowness: Slowness,
    /// Leases of this batch.
    held: HashMap<String, Held>,
}

/// A lease that is to be outlived.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    key: String,
    until: u64,
    before: (u32, u32),
    settled: bool,
}

impl Held {
    /// `before` is the row's progress before this lease.
    pub(crate) fn new(key: &str, until: u64, before: (u32, u32)) -> Self {
        Self { key: key.to_owned(), until, before, settled: false }
    }

    /// Waits until the lease is over and the row in other hands, or nobody took it.
    pub(crate) async fn over(&self, witness: &Witness) {
        let lease = Duration::from_millis(self.until.saturating_sub(now_ms()));
        let limit = Instant::now() + lease + TAKEN_OVER_WITHIN;
        tokio::time::sleep(lease).await;
        while Instant::now() < limit {
            let (leases, ended) = witness.progress(&self.key);
            let taken_over = leases > self.before.0 + 1;
            if if self.settled { ended > self.before.1 } else { taken_over } {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Slow {
    fn inner(&self) -> MutexGuard<'_, Option<State>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process, once it has worked.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.inner().as_ref().map(|state| state.pid)
    }

    fn begin(&self, pid: u32, slowness: Slowness) {
        *self.inner() = Some(State { pid, slowness, held: HashMap::new() });
    }

    /// Notes a lease; the process to be frozen at it, if it is, and until when.
    pub(crate) fn leased(&self, held: Held) -> Option<(u32, Held)> {
        let mut inner = self.inner();
        let state = inner.as_mut()?;
        let settled = state.slowness == Slowness::UntilSettled;
        let held = Held { settled, ..held };
        let freezes = state.held.is_empty() && state.slowness != Slowness::Held;
        state.held.insert(held.key.clone(), held.clone());
        freezes.then_some((state.pid, held))
    }

    /// The lease beyond which a write about this row is to be held, if it is.
    pub(crate) fn is_to_be_held(&self, key: &str) -> Option<Held> {
        let inner = self.inner();
        let state = inner.as_ref().filter(|state| state.slowness == Slowness::Held)?;
        state.held.get(key).cloned()
    }
}

/// The worker.
pub(crate) struct SlowWorker {
    child: Child,
    slow: Arc<Slow>,
    batches: mpsc::Sender<Value>,
    answers: mpsc::Receiver<Value>,
}

impl SlowWorker {
    /// Starts the consumer at `binary` with the deployed function's own variables.
    pub(crate) async fn start(
        binary: &std::path::Path,
        variables: &[(String, String)],
        slow: Arc<Slow>,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let api = listener.local_addr()?.to_string();
        let (batches, next) = mpsc::channel(1);
        let (answered, answers) = mpsc::channel(1);
        tokio::spawn(serve(listener, Arc::new(tokio::sync::Mutex::new(next)), answered));
        let child = Command::new(binary)
            .env_clear()
            .envs(variables.iter().cloned())
            .env("AWS_LAMBDA_RUNTIME_API", api)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, slow, batches, answers })
    }

    /// Has it work a batch, slowly. Its answer, or none if it said nothing for long.
    pub(crate) async fn work(&mut self, event: Value, slowness: Slowness) -> Option<Value> {
        self.slow.begin(self.child.id(), slowness);
        self.batches.send(event).await.ok()?;
        tokio::time::timeout(Duration::from_secs(20), self.answers.recv()).await.ok().flatten()
    }
}

impl Drop for SlowWorker {
    fn drop(&mut self) {
        // A stopped process dies of it too.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

type Next = Arc<tokio::sync::Mutex<mpsc::Receiver<Value>>>;

/// Lambda's runtime interface: `next` waits for an event, `response` and `error` end it.
async fn serve(listener: TcpListener, next: Next, answered: mpsc::Sender<Value>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (next, answered) = (Arc::clone(&next), answered.clone());
        tokio::spawn(async move {
            // It ends with the worker.
            _ = converse(stream, next, answered).await;
        });
    }
}

async fn converse(stream: TcpStream, next: Next, answered: mpsc::Sender<Value>) -> Result<()> {
    let mut wire = Wire::new(stream)?;
    while let Some(request) = wire.read().await? {
        if request.start.starts_with("GET") {
            let Some(event) = next.lock().await.recv().await else { return Ok(()) };
            wire.write(&invocation(&event)).await?;
        } else {
            wire.write(&answer(202, &[], b"{}")).await?;
            // Nobody may be waiting any more.
            _ = answered.send(said(&request)).await;
        }
    }
    Ok(())
}

fn invocation(event: &Value) -> Vec<u8> {
    let deadline = (now_ms() + DEADLINE_MS).to_string();
    let headers = [
        ("lambda-runtime-aws-request-id", deadline.as_str()),
        ("lambda-runtime-deadline-ms", deadline.as_str()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:slow",
        ),
        ("content-type", "application/json"),
    ];
    answer(200, &headers, event.to_string().as_bytes())
}

fn said(request: &Message) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}
