//! One record: lease its row, make its changes, settle it; or say what went wrong.

use super::{Consumer, Disposal, answers::Answers, seconds_until, settling::Ended, trip::Trip};
use crate::{
    body::{self},
    ports::{ConsumerPorts, Leased, Refused},
    telemetry::{Level, Line, MetricUnit},
    within::within,
};
use futures::FutureExt;
use ledger::{
    EventKey, Failure, FailureClass, Life, Message, Millis, Outcome, Row, Status, next_redrive_due,
    verbs::{
        FenceRefusal, ForcedBury, LeaseAsk, LeaseRefusal, Redrive, RedriveBy, RedriveRefusal, Wait,
        resting_place,
    },
};
use std::panic::AssertUnwindSafe;

/// What came of a record's turn.
pub(super) enum Turn {
    /// It is over.
    Done(Disposal),
    /// Its row is settled, and with it the turn of another one has come.
    Passed(EventKey),
    /// Its last worker died; it must wait for the others.
    Suspect,
}

/// One record at work.
pub(super) struct Work<'a, P> {
    pub(super) consumer: &'a Consumer<P>,
    pub(super) message: &'a Message,
    /// What providers answered so far.
    pub(super) answers: &'a Answers,
    pub(super) sent_at: Millis,
    pub(super) deadline: Millis,
}

impl<P: ConsumerPorts> Work<'_, P> {
    pub(super) const fn key(&self) -> &EventKey {
        &self.message.key
    }

    pub(super) fn ports(&self) -> &P {
        &self.consumer.ports
    }

    /// When the record is cut off.
    pub(super) fn end(&self) -> Millis {
        self.deadline.minus(self.consumer.policy.cut_off_ms)
    }

    /// Leases and works the row. `suspects_run` is false while other records are still at work.
    pub(super) async fn run(&self, suspects_run: bool) -> Turn {
        let mut redriven = false;
        loop {
            if self.ports().now() >= self.end() {
                // No time is left to work in: an attempt would be counted for nothing.
                return Turn::Done(Disposal::RetryIn(1));
            }
            let ask = LeaseAsk {
                owner: self.ports().token(),
                until: self.deadline.plus(self.consumer.policy.lease_margin_ms),
                now: self.ports().now(),
                release: self.consumer.release.clone(),
            };
            let refused = match self.ports().lease(self.key(), &ask).await {
                Ok(Ok(leased)) if leased.was == Status::Processing && !suspects_run => {
                    return self.set_aside(&leased.row).await;
                }
                Ok(Ok(leased)) => return self.work(leased).await,
                Ok(Err(refused)) => refused,
                Err(error) => {
                    let line = Line::new(Level::Warn, format!("row not leased: {error}"));
                    self.emit(line.count("LeaseFailed"));
                    return Turn::Done(Disposal::RetryIn(5));
                }
            };
            match self.read_refusal(refused, ask.now, redriven).await {
                Some(turn) => return turn,
                None => redriven = true,
            }
        }
    }

    /// Gives a suspect's lease back, and the attempt with it, until the others are finished.
    async fn set_aside(&self, row: &Row) -> Turn {
        let now = self.ports().now();
        match self.ports().wait(self.key(), &self.wait_ask(&row.life, now, now)).await {
            Ok(Ok(()) | Err(Refused { why: FenceRefusal::Mine, .. })) => Turn::Suspect,
            Ok(Err(refused)) => Turn::Done(self.fenced(refused.why)),
            // Still leased: it comes back when the lease ends.
            Err(_) => Turn::Done(Disposal::RetryIn(seconds_until(
                self.deadline.plus(self.consumer.policy.lease_margin_ms),
                now,
            ))),
        }
    }

    /// What to do about a row that could not be leased; `None` means it was redriven: try again.
    async fn read_refusal(
        &self,
        refused: Refused<LeaseRefusal>,
        now: Millis,
        redriven: bool,
    ) -> Option<Turn> {
        let done = |disposal| Some(Turn::Done(disposal));
        match refused.why {
            LeaseRefusal::Mine => match refused.row {
                Some(row) => {
                    let was = Status::Claimed;
                    Some(self.work(Leased { row: *row, was }).await)
                }
                None => done(Disposal::RetryIn(1)),
            },
            LeaseRefusal::Settled => {
                self.emit(Line::new(Level::Info, "already settled").count("SettledAlready"));
                done(Disposal::Delete)
            }
            LeaseRefusal::Held { until } => {
                self.emit(
                    Line::new(Level::Info, "another worker has it").with("lease.until", until.0),
                );
                // The lease ends *after* `until`.
                done(Disposal::RetryIn(seconds_until(until.plus(1), now)))
            }
            LeaseRefusal::NotYet { retry_at } => {
                done(Disposal::RetryIn(seconds_until(retry_at, now)))
            }
            LeaseRefusal::OutOfBudget => done(self.bury_by_force(refused.row).await),
            LeaseRefusal::Dead { .. } if redriven => done(Disposal::RetryIn(0)),
            LeaseRefusal::Dead { failed_at } => self.redrive(failed_at, now).await,
            LeaseRefusal::Missing => {
                let line = Line::new(Level::Error, "the message names a row that does not exist");
                self.emit(line.count("RowMissing"));
                done(Disposal::RetryIn(0))
            }
            LeaseRefusal::UnknownFormat => {
                let line =
                    Line::new(Level::Error, "the row was written by a newer build; left untouched");
                self.emit(line.count("UnknownFormat"));
                done(Disposal::RetryIn(60))
            }
        }
    }

    /// A message younger than the burial brings the row back; an older one goes the way of the
    /// redrive policy, to the dead-letter queue.
    async fn redrive(&self, failed_at: Millis, now: Millis) -> Option<Turn> {
        let by = RedriveBy::Message { sent_at: self.sent_at };
        let ask = Redrive { by, now, shard: self.key().shard() };
        let bounce = Some(Turn::Done(Disposal::RetryIn(0)));
        if self.sent_at.minus(self.consumer.policy.redrive_margin_ms) < failed_at {
            return bounce;
        }
        match self.ports().redrive(self.key(), &ask).await {
            Ok(
                Ok(()) | Err(Refused { why: RedriveRefusal::Mine | RedriveRefusal::NotDead, .. }),
            ) => {
                self.emit(Line::new(Level::Info, "redriven with a fresh budget").count("Redriven"));
                None
            }
            Ok(Err(_)) => bounce,
            Err(error) => {
                self.emit(Line::new(Level::Warn, format!("row not redriven: {error}")));
                Some(Turn::Done(Disposal::RetryIn(5)))
            }
        }
    }

    async fn bury_by_force(&self, row: Option<Box<Row>>) -> Disposal {
        let policy = &self.consumer.policy;
        let Some(row) = row else {
            return Disposal::RetryIn(1);
        };
        if let Err(error) = body::keep(self.ports(), &row).await {
            self.emit(Line::new(Level::Warn, format!("body not kept: {error}")));
            return Disposal::RetryIn(5);
        }
        // As late as can be: a burial dated before a message that is on its way is undone by it.
        let now = self.ports().now();
        let failure = Failure {
            error: format!("the worker died {} times", row.life.attempts),
            class: FailureClass::Transient,
            at: now,
        };
        let due = next_redrive_due(row.life.redrives, now, policy, self.ports().jitter());
        let open =
            resting_place(self.key().shard(), failure.class, row.life.redrives, now, due, policy);
        match self.ports().forced_bury(self.key(), &ForcedBury { failure, now, open }).await {
            Ok(Ok(())) => {
                let line =
                    Line::new(Level::Error, "buried: its workers died until the budget was spent");
                self.emit(line.count("Dead").count("ForcedBury"));
                Disposal::RetryIn(0)
            }
            Ok(Err(_)) => Disposal::RetryIn(1),
            Err(error) => {
                self.emit(Line::new(Level::Warn, format!("row not buried: {error}")));
                Disposal::RetryIn(5)
            }
        }
    }

    /// Works a leased row to its end, within the time that is left.
    async fn work(&self, leased: Leased) -> Turn {
        let row = &leased.row;
        let attempt = AssertUnwindSafe(self.settle(row)).catch_unwind();
        let outcome = match within(self.ports(), self.end(), attempt).await {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => {
                Err(Trip::failed("the projection panicked".to_owned(), FailureClass::Transient))
            }
            None => Err(Trip::failed(
                "cut off before the function's deadline".to_owned(),
                FailureClass::Transient,
            )),
        };
        Turn::Done(match outcome {
            Ok(Ended::Settled { outcome, woken }) => {
                self.release_body(row).await;
                self.emit(self.settled(row, outcome));
                match woken {
                    Some(next) => return Turn::Passed(next),
                    None => Disposal::Delete,
                }
            }
            // Who applies its predecessor works it, or the steward sends it.
            Ok(Ended::Waits) => {
                self.emit(Line::new(Level::Info, "waits for its predecessor").count("Waiting"));
                Disposal::Delete
            }
            Err(Trip::Fenced(why)) => self.fenced(why),
            Err(Trip::Throttled { error, excused_ms }) => {
                self.wait_out(row, error, excused_ms).await
            }
            Err(Trip::NotYet { at }) => self.come_again(row, at).await,
            Err(Trip::Failed { error, class, retry_after_ms }) => {
                self.give_up(row, error, class, retry_after_ms).await
            }
        })
    }

    fn settled(&self, row: &Row, outcome: Outcome) -> Line {
        let waited = self.ports().now().since(row.evidence.received_at);
        let waited = u32::try_from(waited).unwrap_or(u32::MAX);
        let line = Line::new(Level::Info, format!("settled: {outcome}"))
            .with("row.attempts", row.life.attempts)
            .with("row.outcome", outcome.as_str())
            .measure("TimeToSettle", f64::from(waited), MetricUnit::Milliseconds);
        line.count(match outcome {
            Outcome::Applied => "Applied",
            Outcome::Superseded => "Superseded",
            Outcome::Ignored | Outcome::Resolved => "Ignored",
        })
    }

    /// A row that was buried took its chunks' time to live away. Settled, they may go in time; should
    /// this fail they stay, which costs storage and nothing else.
    async fn release_body(&self, row: &Row) {
        if row.life.redriven_at.is_none() {
            return;
        }
        let policy = &self.consumer.policy;
        let now = self.ports().now();
        if let Err(error) = body::release(self.ports(), row, policy, now).await {
            self.emit(Line::new(Level::Warn, format!("body not released: {error}")));
        }
    }

    pub(super) fn fenced(&self, why: FenceRefusal) -> Disposal {
        let line = Line::new(Level::Warn, "lease lost; nothing more written")
            .with("fence", format!("{why:?}"));
        self.emit(line.count("Fenced"));
        Disposal::RetryIn(1)
    }

    pub(super) fn wait_ask(&self, life: &Life, now: Millis, retry_at: Millis) -> Wait {
        let due_at = retry_at.plus(self.consumer.policy.retry_grace_ms);
        Wait { epoch: life.epoch, now, retry_at, due_at, shard: self.key().shard() }
    }

    pub(super) fn emit(&self, line: Line) {
        let source = self.key().as_str().split('#').next().unwrap_or_default();
        let line = line.with_key(self.key());
        self.ports().emit(&if source.starts_with('_') { line } else { line.of_source(source) });
    }
}
