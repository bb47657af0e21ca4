//! Pending rows: send the overdue ones again, bury the hopeless ones.

use super::{AT_ONCE, Run};
use crate::{
    body,
    ports::{OpenEntry, PortError, Refused, StewardPorts},
};
use futures::{StreamExt, stream};
use ledger::{
    Bucket, Failure, FailureClass, Message, Millis, Row, Sweeping, next_redrive_due,
    verbs::{ForcedBury, Sweep, SweepRefusal, is_abandoned, resting_place},
};

/// Messages collected before they are sent.
const SEND_EVERY: usize = 100;

/// What became of one overdue row.
enum Swept {
    /// Its due time is pushed forward; its message is to be sent.
    Send(Message, String),
    /// Its message is sent and the row buried.
    Buried,
    /// Somebody else moved it.
    Left,
}

impl<P: StewardPorts> Run<'_, P> {
    pub(super) async fn sweep(&mut self) {
        let sweeping = match self.steward.ports.backlog().await {
            Ok(visible) => Sweeping::for_backlog(visible, &self.steward.policy),
            Err(error) => {
                self.trouble("the queue's depth could not be read", &error);
                Sweeping::All
            }
        };
        let (entries, is_whole) = self.entries(Bucket::Pending, Millis::END_OF_TIME).await;
        self.tally.is_blind |= !is_whole;
        let entries: Vec<OpenEntry> = entries.into_iter().map(|(_, entry)| entry).collect();
        self.tally.pending = entries.len() as u64;
        self.sweep_due(&entries, sweeping).await;
        self.measure(entries).await;
    }

    async fn sweep_due(&mut self, entries: &[OpenEntry], sweeping: Sweeping) {
        let due_before = sweeping.due_before(self.now, &self.steward.policy);
        let mut due: Vec<OpenEntry> =
            entries.iter().filter(|entry| entry.due_at <= due_before).cloned().collect();
        due.sort_by_key(|entry| entry.due_at);
        due.truncate(self.sends_left as usize);
        for entries in due.chunks(SEND_EVERY) {
            if self.out_of_time() {
                return;
            }
            self.sweep_some(entries).await;
        }
    }

    /// Sweeps up to a hundred rows and sends their messages.
    async fn sweep_some(&mut self, entries: &[OpenEntry]) {
        let now = self.now;
        let steward = self.steward;
        let swept: Vec<Result<Swept, PortError>> = stream::iter(entries)
            .map(|entry| steward.sweep_one(entry, now))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut messages = Vec::new();
        for outcome in swept {
            match outcome {
                Ok(Swept::Send(message, source)) => messages.push((message, source)),
                Ok(Swept::Buried) => self.tally.forced_buries += 1,
                Ok(Swept::Left) => {}
                Err(error) => self.trouble("an overdue row could not be swept", &error),
            }
        }
        self.tally.swept += self.send_all(&messages).await;
    }

    /// Sends; the number that arrived. What did not is swept again when it is due.
    pub(super) async fn send_all(&mut self, messages: &[(Message, String)]) -> u64 {
        let failed = self.steward.ports.send_all(messages).await.len();
        self.tally.troubles += failed as u64;
        let sent = messages.len().saturating_sub(failed);
        self.sends_left = self.sends_left.saturating_sub(u32::try_from(sent).unwrap_or(u32::MAX));
        sent as u64
    }
}

impl<P: StewardPorts> super::Steward<P> {
    async fn sweep_one(&self, entry: &OpenEntry, now: Millis) -> Result<Swept, PortError> {
        let Some(row) = self.ports.row(&entry.key).await? else {
            return Ok(Swept::Left);
        };
        let message = Message::new(entry.key.clone(), &row.evidence.event_type, None);
        let source = row.evidence.source.as_str().to_owned();
        if is_abandoned(&row.life, now, &self.policy) {
            return self.bury_by_force(&row, message, &source).await;
        }
        let ask = Sweep {
            seen_due_at: entry.due_at,
            now,
            shard: entry.key.shard(),
            sweeps: row.life.sweeps,
        };
        Ok(match self.ports.sweep(&entry.key, &ask).await? {
            Ok(()) | Err(Refused { why: SweepRefusal::Mine, .. }) => Swept::Send(message, source),
            Err(_) => Swept::Left,
        })
    }

    /// The message goes first: it meets the dead row and ends in the dead-letter queue, where an
    /// operator sees it. The burial is dated after that: dated before its own message, it would be
    /// undone by it.
    async fn bury_by_force(
        &self,
        row: &Row,
        message: Message,
        source: &str,
    ) -> Result<Swept, PortError> {
        self.ports.send(&message, source).await?;
        body::keep(&*self.ports, row).await?;
        let now = self.ports.now();
        let failure = Failure {
            error: format!("the worker died {} times", row.life.attempts),
            class: FailureClass::Transient,
            at: now,
        };
        let key = &row.evidence.key;
        let due = next_redrive_due(row.life.redrives, now, &self.policy, self.ports.jitter());
        let open =
            resting_place(key.shard(), failure.class, row.life.redrives, now, due, &self.policy);
        Ok(match self.ports.forced_bury(key, &ForcedBury { failure, now, open }).await? {
            Ok(()) => Swept::Buried,
            Err(_) => Swept::Left,
        })
    }
}
