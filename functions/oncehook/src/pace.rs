//! So many a second, and no more: what is done to a live system by hand is done slowly.

use std::time::Duration;
use tokio::time::Instant;

/// Lets a caller through at a steady rate.
pub(crate) struct Pace {
    every: Duration,
    next: Instant,
}

impl Pace {
    /// At most `per_second`, which is not zero.
    pub(crate) fn new(per_second: u32) -> Self {
        Self { every: Duration::from_secs(1) / per_second.max(1), next: Instant::now() }
    }

    /// Waits for the next turn. Turns that were missed are not made up for.
    pub(crate) async fn turn(&mut self) {
        tokio::time::sleep_until(self.next).await;
        self.next = self.next.max(Instant::now()) + self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ten_turns_at_two_hundred_a_second_take_nine_pauses() {
        let begun = Instant::now();
        let mut pace = Pace::new(200);
        for _ in 0..10 {
            pace.turn().await;
        }
        assert!(begun.elapsed() >= Duration::from_millis(45), "{:?}", begun.elapsed());
    }
}
