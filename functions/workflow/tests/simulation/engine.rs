//! Runs tasks in simulated time: until all of them wait, then the clock jumps to the next wake.

use futures::{
    Stream,
    future::LocalBoxFuture,
    stream::FuturesUnordered,
    task::{ArcWake, waker},
};
use ledger::Millis;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use workflow::{ports::Clock, twin::Twin};

/// Tasks that share a clock.
pub(crate) struct Engine<'a> {
    twin: &'a Twin,
    tasks: FuturesUnordered<LocalBoxFuture<'a, ()>>,
}

/// Whether a task was woken since it was last looked at.
struct Woken(AtomicBool);

impl ArcWake for Woken {
    fn wake_by_ref(woken: &Arc<Self>) {
        woken.0.store(true, Ordering::Relaxed);
    }
}

impl<'a> Engine<'a> {
    pub(crate) fn new(twin: &'a Twin) -> Self {
        Self { twin, tasks: FuturesUnordered::new() }
    }

    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + 'a) {
        self.tasks.push(Box::pin(task));
    }

    /// Runs for `ms`.
    pub(crate) fn run_for(&mut self, ms: u64) {
        self.run_until(ms, ms, || false);
    }

    /// Runs for `ms`, or until `is_over` says so, which is asked every `every_ms`; how long that was.
    pub(crate) fn run_until(
        &mut self,
        ms: u64,
        every_ms: u64,
        mut is_over: impl FnMut() -> bool,
    ) -> u64 {
        let began = self.twin.now();
        while self.twin.now().since(began) < ms && !is_over() {
            let stop = self.twin.now().plus(every_ms).min(began.plus(ms));
            self.run_all_until(stop);
        }
        self.twin.now().since(began)
    }

    fn run_all_until(&mut self, stop: Millis) {
        loop {
            self.run_until_all_wait();
            let now = self.twin.now();
            if now >= stop {
                return;
            }
            let next = self.twin.next_wake().unwrap_or(stop).min(stop);
            self.twin.advance(next.since(now));
        }
    }

    fn run_until_all_wait(&mut self) {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = waker(Arc::clone(&woken));
        while woken.0.swap(false, Ordering::Relaxed) {
            let mut context = Context::from_waker(&waker);
            while let Poll::Ready(Some(())) = Pin::new(&mut self.tasks).poll_next(&mut context) {}
        }
    }
}

/// Sleeps until `at`.
pub(crate) async fn until(twin: &Twin, at: Millis) {
    twin.sleep(at.since(twin.now())).await;
}
