//! The twin's queue: at least once, visibility timeouts, a receive limit and a dead-letter queue.

use super::{Fault, Twin, injected};
use crate::{
    consume::Record,
    ports::{DeadLetter, Inbox, Outbox, PortError, Queues, Trouble},
};
use ledger::{Message, Millis};
use std::collections::BTreeSet;

/// Receives after which a message moves to the dead-letter queue.
const RECEIVES_MAX: u32 = 10;
/// How long a received message stays hidden.
const VISIBILITY_MS: u64 = 180_000;

#[derive(Default)]
pub(super) struct SimQueue {
    messages: Vec<SimMessage>,
    dead: Vec<SimMessage>,
    next_id: u64,
}

#[derive(Clone)]
struct SimMessage {
    /// Rises from message to message, and so through the queue.
    number: u64,
    id: String,
    body: String,
    sent_at: Millis,
    visible_at: Millis,
    receives: u32,
}

/// A batch handed to a consumer.
pub type Received = Vec<Record>;

impl Twin {
    /// Up to `most` visible messages. One that was received too often moves to the dead letters.
    pub fn receive(&self, most: usize) -> Received {
        let mut world = self.world();
        let now = world.now;
        let mut batch = Vec::new();
        let queue = &mut world.queue;
        let mut index = 0;
        while index < queue.messages.len() && batch.len() < most {
            let Some(message) = queue.messages.get_mut(index) else {
                break;
            };
            if message.visible_at > now {
                index += 1;
                continue;
            }
            if message.receives >= RECEIVES_MAX {
                let dead = queue.messages.remove(index);
                queue.dead.push(SimMessage { receives: 0, visible_at: now, ..dead });
                continue;
            }
            message.receives += 1;
            message.visible_at = now.plus(VISIBILITY_MS);
            batch.push(Record {
                message_id: message.id.clone(),
                receipt: message.id.clone(),
                body: message.body.clone(),
                sent_at: message.sent_at,
            });
            index += 1;
        }
        batch
    }

    /// Deletes what a consumer did not report as failed.
    pub fn finish(&self, batch: &[Record], failed: &[String]) {
        let done = batch.iter().map(|record| record.message_id.as_str());
        let done: BTreeSet<&str> =
            done.filter(|id| !failed.iter().any(|failed| failed == id)).collect();
        self.world().queue.messages.retain(|message| !done.contains(message.id.as_str()));
    }

    /// Messages in the queue, visible or not.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.world().queue.messages.len()
    }

    /// Bodies in the dead-letter queue.
    #[must_use]
    pub fn dead_letter_bodies(&self) -> Vec<String> {
        self.world().queue.dead.iter().map(|message| message.body.clone()).collect()
    }

    /// When the next hidden message becomes visible.
    #[must_use]
    pub fn next_visible(&self) -> Option<Millis> {
        self.world().queue.messages.iter().map(|message| message.visible_at).min()
    }

    /// Puts a message body into the queue as it is.
    pub fn enqueue(&self, body: &str) {
        let mut world = self.world();
        let now = world.now;
        world.queue.push(body, now);
    }

    /// Loses every message of the queue.
    pub fn lose_queue(&self) {
        self.world().queue.messages.clear();
    }

    /// Moves every dead letter back to the queue, as the SQS console does.
    pub fn redrive_dead_letters(&self) {
        let mut world = self.world();
        let now = world.now;
        for message in std::mem::take(&mut world.queue.dead) {
            world.queue.push(&message.body, now);
        }
    }
}

impl SimQueue {
    fn push(&mut self, body: &str, now: Millis) {
        self.next_id += 1;
        let id = format!("m{}", self.next_id);
        self.messages.push(SimMessage {
            number: self.next_id,
            id,
            body: body.to_owned(),
            sent_at: now,
            visible_at: now,
            receives: 0,
        });
    }
}

impl Outbox for Twin {
    async fn send(&self, message: &Message, _source: &str) -> Result<(), PortError> {
        let mut world = self.world();
        let fault = world.call("send")?;
        let now = world.now;
        world.queue.push(&message.to_json(), now);
        match fault {
            Some(Fault::AnswerLost) => Err(injected("send", Trouble::Unavailable)),
            Some(Fault::Before(_) | Fault::Slow(_)) | None => Ok(()),
        }
    }

    async fn send_all(&self, messages: &[(Message, String)]) -> Vec<usize> {
        let mut failed = Vec::new();
        for (index, (message, source)) in messages.iter().enumerate() {
            if self.send(message, source).await.is_err() {
                failed.push(index);
            }
        }
        failed
    }
}

impl Inbox for Twin {
    async fn postpone(&self, receipt: &str, seconds: u32) -> Result<(), PortError> {
        let mut world = self.world();
        world.call("postpone")?;
        let visible_at = world.now.plus(u64::from(seconds) * 1_000);
        let number: u64 = receipt.trim_start_matches('m').parse().unwrap_or(0);
        let messages = &mut world.queue.messages;
        let found = messages.binary_search_by_key(&number, |message| message.number);
        if let Some(message) = found.ok().and_then(|index| messages.get_mut(index)) {
            message.visible_at = visible_at;
        }
        Ok(())
    }
}

impl Queues for Twin {
    async fn backlog(&self) -> Result<u64, PortError> {
        let mut world = self.world();
        world.call("backlog")?;
        let now = world.now;
        Ok(world.queue.messages.iter().filter(|message| message.visible_at <= now).count() as u64)
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, PortError> {
        let mut world = self.world();
        world.call("dead_letters")?;
        let now = world.now;
        let visible =
            world.queue.dead.iter_mut().filter(|message| message.visible_at <= now).take(10);
        Ok(visible
            .map(|message| {
                message.visible_at = now.plus(5_000);
                DeadLetter { body: message.body.clone(), receipt: message.id.clone() }
            })
            .collect())
    }

    async fn delete_dead_letter(&self, receipt: &str) -> Result<(), PortError> {
        let mut world = self.world();
        world.call("delete_dead_letter")?;
        world.queue.dead.retain(|message| message.id != receipt);
        Ok(())
    }
}
