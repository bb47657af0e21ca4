//! Waiting for a state, with a limit. A suite never sleeps and hopes.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// What a look at the world says: the state waited for, or what is there instead.
pub type Probe<T> = Result<T, String>;

/// How often the world is looked at.
const EVERY: Duration = Duration::from_millis(50);

/// Looks again and again until the state is there.
///
/// # Panics
///
/// When it is not there within `limit`: with what was waited for and what was seen last.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Probe<T>>,
{
    let begun = Instant::now();
    loop {
        let seen = match look().await {
            Ok(state) => return state,
            Err(seen) => seen,
        };
        assert!(
            begun.elapsed() < limit,
            "{what}: not within {} s; last seen: {seen}",
            limit.as_secs()
        );
        tokio::time::sleep(EVERY).await;
    }
}
