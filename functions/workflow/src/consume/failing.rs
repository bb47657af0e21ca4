//! Giving a leased row back: without fault, for another run, or for good.

use super::{Disposal, record::Work, seconds_until};
use crate::{
    body,
    ports::{ConsumerPorts, PortError, Refused},
    telemetry::{Level, Line},
};
use ledger::{
    Failure, FailureClass, Jitter, Millis, Next, Row, next_redrive_due, next_step,
    verbs::{Bury, BuryRefusal, Fail, FailRefusal, FenceRefusal, resting_place},
};

impl<P: ConsumerPorts> Work<'_, P> {
    /// Gives a throttled row back without counting the attempt, for an hour at most. It waits as
    /// long again as it has waited, within a rate limit's bounds: a store that throttles is not
    /// helped by being asked, and every look costs the message one of its receives.
    pub(super) async fn wait_out(&self, row: &Row, error: String, excused_ms: u64) -> Disposal {
        let policy = &self.consumer.policy;
        let now = self.ports().now();
        let waiting = row.life.waiting_since.map_or(0, |since| now.since(since));
        let throttled = waiting.saturating_sub(excused_ms);
        if throttled > policy.throttled_max_ms {
            return self.give_up(row, error, FailureClass::Transient, None).await;
        }
        let delay = ledger::retry_delay_ms(
            row.life.attempts,
            FailureClass::RateLimited,
            None,
            policy,
            self.ports().jitter(),
        );
        let retry_at = now.plus(delay.max(throttled.min(policy.rate_limited_max_ms)));
        let line = Line::new(Level::Warn, format!("gave the attempt back: {error}"));
        self.emit(line.count("Throttled"));
        self.give_back(row, now, retry_at).await
    }

    /// Gives a row back whose turn at the provider has not come. The rate is the team's own choice,
    /// so that no event dies of it, however long the queue.
    pub(super) async fn come_again(&self, row: &Row, at: Millis) -> Disposal {
        let now = self.ports().now();
        let line = Line::new(Level::Info, "waits for its turn to be fetched");
        self.emit(line.with("retry.at_ms", at.0).count("FetchDeferred"));
        self.give_back(row, now, at.max(now)).await
    }

    async fn give_back(&self, row: &Row, now: Millis, retry_at: Millis) -> Disposal {
        match self.ports().wait(self.key(), &self.wait_ask(&row.life, now, retry_at)).await {
            Ok(Ok(()) | Err(Refused { why: FenceRefusal::Mine, .. })) => {
                Disposal::RetryIn(seconds_until(retry_at, now))
            }
            Ok(Err(refused)) => self.fenced(refused.why),
            Err(_) => self.lease_ends(now),
        }
    }

    /// Fails the row, or buries it when that was its last run or no run can help.
    pub(super) async fn give_up(
        &self,
        row: &Row,
        error: String,
        class: FailureClass,
        retry_after_ms: Option<u64>,
    ) -> Disposal {
        let policy = &self.consumer.policy;
        let now = self.ports().now();
        let failure = Failure { error: error.chars().take(500).collect(), class, at: now };
        let jitter = self.ports().jitter();
        let line = Line::new(Level::Warn, format!("run failed: {}", failure.error))
            .with("row.attempts", row.life.attempts)
            .with("failure.class", class.as_str());
        let (written, line, disposal) =
            match next_step(row.life.attempts, class, retry_after_ms, now, policy, jitter) {
                Next::Retry { at } => {
                    let ask = Fail {
                        epoch: row.life.epoch,
                        failure,
                        retry_at: at,
                        shard: self.key().shard(),
                    };
                    let mine = FailRefusal::Fence(FenceRefusal::Mine);
                    let written = self.ports().fail(self.key(), &ask).await;
                    let written = written
                        .map(|done| done.map_or_else(|refused| refused.why == mine, |()| true));
                    (written, line.count("Failed"), Disposal::RetryIn(seconds_until(at, now)))
                }
                Next::BuryPermanent | Next::BuryExhausted => {
                    let mut line = line.count("Dead");
                    line.level = Level::Error;
                    line.message = line.message.replacen("run failed", "buried", 1);
                    (self.bury(row, failure, jitter).await, line, Disposal::RetryIn(0))
                }
            };
        match written {
            Ok(true) => {
                self.emit(line);
                disposal
            }
            Ok(false) => self.fenced(FenceRefusal::Lost),
            Err(error) => {
                self.emit(line.with("ledger.error", error.to_string()));
                self.lease_ends(now)
            }
        }
    }

    /// Buries; the body first loses its time to live. The burial is dated when that is done: dated
    /// earlier, it would be undone by a message that was sent meanwhile.
    async fn bury(&self, row: &Row, failure: Failure, jitter: Jitter) -> Result<bool, PortError> {
        body::keep(self.ports(), row).await?;
        let policy = &self.consumer.policy;
        let at = self.ports().now();
        let redrives = row.life.redrives;
        let due = next_redrive_due(redrives, at, policy, jitter);
        let open = resting_place(self.key().shard(), failure.class, redrives, at, due, policy);
        let ask = Bury { epoch: row.life.epoch, failure: Failure { at, ..failure }, open };
        let mine = BuryRefusal::Fence(FenceRefusal::Mine);
        let written = self.ports().bury(self.key(), &ask).await?;
        Ok(written.map_or_else(|refused| refused.why == mine, |()| true))
    }

    /// The row could not be given back: it is taken over when its lease ends.
    pub(super) fn lease_ends(&self, now: Millis) -> Disposal {
        let until = self.deadline.plus(self.consumer.policy.lease_margin_ms);
        Disposal::RetryIn(seconds_until(until.plus(1), now))
    }
}
