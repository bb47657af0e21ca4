//! Consume: a batch of queue messages becomes settled rows, and an exact list of what is left.
//!
//! Records of one entity are worked one after another, the rest at the same time. A record is
//! leased when its turn comes. One whose last worker died is a *suspect*: it gives its lease back
//! and runs last and alone, so that a record that kills its worker takes no neighbour with it.
//! Each record has its own panic guard and its own end before the function's deadline.
//!
//! A message is deleted only when its row is settled. Whatever is left is made visible again at
//! the time the row allows, and reported as failed; the queue's redrive policy moves what stays
//! dead to the dead-letter queue.

mod answers;
mod failing;
mod record;
mod settling;
mod trip;

use crate::{
    fetch::Fetcher,
    ports::ConsumerPorts,
    projection::Projection,
    telemetry::{Level, Line},
};
use answers::Answers;
use config::Config;
use futures::{FutureExt, StreamExt, stream};
use ledger::{EventKey, Message, Millis, Policy};
use record::{Turn, Work};
use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc};

/// A queue message as the function is handed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The queue's id of it: what a failure is reported by.
    pub message_id: String,
    /// Makes it visible again.
    pub receipt: String,
    /// Its body.
    pub body: String,
    /// When it was sent.
    pub sent_at: Millis,
}

/// The consumer.
pub struct Consumer<P> {
    /// The world.
    pub ports: Arc<P>,
    /// The sources.
    pub config: Config,
    /// The limits.
    pub policy: Policy,
    /// The build that runs.
    pub release: String,
    /// How events become changes: [`crate::projection::Declarative`], or a team's own.
    pub projection: Box<dyn Projection + Send + Sync>,
    /// Asks providers, where the configuration has them asked.
    pub fetcher: Fetcher,
}

/// What happens to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disposal {
    /// Its row is settled.
    Delete,
    /// Try again after this many seconds.
    RetryIn(u32),
}

impl<P: ConsumerPorts> Consumer<P> {
    /// Works a batch; the ids of the messages that are not finished.
    pub async fn consume(&self, records: Vec<Record>, deadline: Millis) -> Vec<String> {
        let alone = records.len() == 1;
        let mut failed = Vec::new();
        let mut groups: BTreeMap<String, Vec<(Record, Message)>> = BTreeMap::new();
        for record in records {
            match Message::parse(&record.body) {
                Ok(message) => {
                    let group = message.entity.clone();
                    let group = group.unwrap_or_else(|| message.key.as_str().to_owned());
                    groups.entry(group).or_default().push((record, message));
                }
                Err(error) => {
                    let line =
                        Line::new(Level::Error, format!("queue message not understood: {error}"))
                            .with("message.id", record.message_id.as_str())
                            .count("ForeignMessage");
                    self.ports.emit(&line);
                    self.give_back(&record, 0).await;
                    failed.push(record.message_id);
                }
            }
        }

        let answers = Answers::default();
        let at_once = groups.len().max(1);
        let mut turns = stream::iter(groups.into_values())
            .map(|group| self.work_in_order(group, deadline, alone, &answers))
            .buffer_unordered(at_once);
        let mut suspects = Vec::new();
        while let Some((left, doubtful)) = turns.next().await {
            failed.extend(left);
            suspects.extend(doubtful);
        }
        for (record, message) in suspects {
            let turn = self.guarded(record.sent_at, &message, deadline, true, &answers).await;
            // A suspect that is set aside again stays where it is.
            _ = self.dispose(&record, turn, deadline, &mut failed).await;
        }
        failed
    }

    /// Works the records of one entity; the ids that are not finished, and the suspects.
    async fn work_in_order(
        &self,
        group: Vec<(Record, Message)>,
        deadline: Millis,
        alone: bool,
        answers: &Answers,
    ) -> (Vec<String>, Vec<(Record, Message)>) {
        let mut failed = Vec::new();
        let mut suspects = Vec::new();
        for (record, message) in group {
            let turn = self.guarded(record.sent_at, &message, deadline, alone, answers).await;
            if self.dispose(&record, turn, deadline, &mut failed).await {
                suspects.push((record, message));
            }
        }
        (failed, suspects)
    }

    /// Works one record. A panic outside the projection's own guard is a failed record, not a
    /// failed batch; its row's lease ends by itself.
    async fn guarded(
        &self,
        sent_at: Millis,
        message: &Message,
        deadline: Millis,
        suspects_run: bool,
        answers: &Answers,
    ) -> Turn {
        let work = Work { consumer: self, message, answers, sent_at, deadline };
        let guarded = AssertUnwindSafe(work.run(suspects_run)).catch_unwind().await;
        guarded.unwrap_or_else(|_| {
            let line = Line::new(Level::Error, "worker panicked outside the projection");
            self.ports.emit(&line.with_key(&message.key).count("Panic"));
            Turn::Done(Disposal::RetryIn(30))
        })
    }

    /// Does with a message what its turn asks for; whether the turn is still to come.
    async fn dispose(
        &self,
        record: &Record,
        turn: Turn,
        deadline: Millis,
        failed: &mut Vec<String>,
    ) -> bool {
        match turn {
            Turn::Suspect => return true,
            Turn::Done(Disposal::Delete) => {}
            Turn::Done(Disposal::RetryIn(seconds)) => {
                self.give_back(record, seconds).await;
                failed.push(record.message_id.clone());
            }
            Turn::Passed(next) => self.follow(next, deadline).await,
        }
        false
    }

    /// Works the row whose turn has come, and whoever's comes with it, while there is time. They
    /// have no message of their own: what is not finished here is due, and the steward sends it.
    async fn follow(&self, next: EventKey, deadline: Millis) {
        let mut next = Some(next);
        while let Some(key) = next.take() {
            let message = Message::new(key, "", None);
            // It may have come after the batch, so no earlier answer speaks of it.
            let answers = Answers::default();
            let turn = self.guarded(Millis(0), &message, deadline, false, &answers).await;
            next = match turn {
                Turn::Passed(key) => Some(key),
                Turn::Done(_) | Turn::Suspect => None,
            };
        }
    }

    /// Makes a message visible after `seconds`. If that fails it comes back when its visibility
    /// ends: later, but not lost.
    async fn give_back(&self, record: &Record, seconds: u32) {
        if let Err(error) = self.ports.postpone(&record.receipt, seconds).await {
            let line = Line::new(Level::Warn, format!("message not postponed: {error}"))
                .with("message.id", record.message_id.as_str());
            self.ports.emit(&line);
        }
    }
}

/// Whole seconds until `at`, at least one, at most what a visibility timeout may be.
fn seconds_until(at: Millis, now: Millis) -> u32 {
    const VISIBILITY_SECONDS_MAX: u32 = 43_170;
    let seconds = at.since(now).div_ceil(1_000).max(1);
    u32::try_from(seconds).unwrap_or(u32::MAX).min(VISIBILITY_SECONDS_MAX)
}
