//! A future with an end.

use crate::ports::Clock;
use futures::future::{Either, select};
use ledger::Millis;
use std::{future::Future, pin::pin};

/// The future's output, or `None` when the clock reaches `deadline` first.
pub(crate) async fn within<F: Future>(
    clock: &impl Clock,
    deadline: Millis,
    future: F,
) -> Option<F::Output> {
    let end = pin!(clock.sleep(deadline.since(clock.now())));
    match select(pin!(future), end).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}
