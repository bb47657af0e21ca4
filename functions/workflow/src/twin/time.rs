//! The twin's time: it moves only when told.
//!
//! A sleeper wakes when the clock was moved to its time or beyond. Calls take no time unless a
//! latency is set; then each waits for its own before it takes effect, so that calls of several
//! workers interleave as they would on a network. Whoever drives the twin runs its tasks until all
//! of them wait, and moves the clock to [`Twin::next_wake`].

use super::{Fault, Twin, World};
use crate::ports::{Clock, PortError};
use ledger::Millis;
use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::MutexGuard,
    task::{Context, Poll, Waker},
};

/// How many milliseconds a call of this name takes.
pub(super) type Latency = Box<dyn FnMut(&'static str) -> u64 + Send>;

/// Who waits until when.
#[derive(Default)]
pub(super) struct Sleepers {
    by_time: BTreeMap<(Millis, u64), Waker>,
    next: u64,
}

impl Twin {
    /// Moves the clock, and wakes whose time has come.
    pub fn advance(&self, ms: u64) {
        let mut world = self.world();
        world.now = world.now.plus(ms);
        let later = (world.now.plus(1), 0);
        let waiting = world.sleepers.by_time.split_off(&later);
        let due = std::mem::replace(&mut world.sleepers.by_time, waiting);
        drop(world);
        due.into_values().for_each(Waker::wake);
    }

    /// When the next sleeper wakes.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        self.world().sleepers.by_time.keys().next().map(|(at, _)| *at)
    }

    /// From now on each call takes as long as `latency` says of its name.
    pub fn set_latency(&self, latency: impl FnMut(&'static str) -> u64 + Send + 'static) {
        self.world().latency = Some(Box::new(latency));
    }

    /// A call: it travels, is counted, and meets its fault.
    pub(super) async fn begin(
        &self,
        step: &'static str,
    ) -> Result<(MutexGuard<'_, World>, Option<Fault>), PortError> {
        let latency_ms = self.world().latency.as_mut().map_or(0, |latency| latency(step));
        self.sleep(latency_ms).await;
        let mut world = self.world();
        let fault = world.call(step)?;
        Ok((world, fault))
    }
}

impl Clock for Twin {
    fn now(&self) -> Millis {
        self.world().now
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send {
        let mut world = self.world();
        world.sleepers.next += 1;
        Sleep { twin: self, wakes: (world.now.plus(ms), world.sleepers.next) }
    }
}

/// Waits for the clock. One that is dropped waits no longer.
struct Sleep<'a> {
    twin: &'a Twin,
    wakes: (Millis, u64),
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut world = self.twin.world();
        if world.now >= self.wakes.0 {
            return Poll::Ready(());
        }
        world.sleepers.by_time.insert(self.wakes, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        self.twin.world().sleepers.by_time.remove(&self.wakes);
    }
}
