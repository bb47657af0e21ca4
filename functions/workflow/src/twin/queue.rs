//! The twin's queue: at least once, visibility timeouts, a receive limit and a dead-letter queue.

use super::{Fault, Twin, injected};
use crate::{
    consume::Record,
    ports::{DeadLetter, Inbox, Outbox, PortError, Queues, Trouble},
};
use ledger::{Message, Millis};
use std::collections::{BTreeMap, BTreeSet};

/// Receives after which a message moves to the dead-letter queue.
const RECEIVES_MAX: u32 = 10;
/// How long a received message stays hidden.
const VISIBILITY_MS: u64 = 180_000;
/// Dead letters that one call shows, and how long it hides them from others.
const LETTERS_AT_ONCE: usize = 10;
const LOOK_MS: u64 = 5_000;

#[derive(Default)]
pub(super) struct SimQueue {
    messages: Shelf,
    dead: Shelf,
    next: u64,
}

/// Messages by number, and in the order in which they become visible: a backlog of a hundred
/// thousand costs no more than one of ten.
#[derive(Default)]
struct Shelf {
    messages: BTreeMap<u64, SimMessage>,
    in_order: BTreeSet<(Millis, u64)>,
}

struct SimMessage {
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
        let queue = &mut world.queue;
        let mut batch = Vec::new();
        while batch.len() < most {
            let Some(number) = queue.messages.first_visible(now) else { break };
            let Some(mut message) = queue.messages.take(number) else { break };
            if message.receives >= RECEIVES_MAX {
                queue.dead.put(number, SimMessage { receives: 0, visible_at: now, ..message });
                continue;
            }
            message.receives += 1;
            message.visible_at = now.plus(VISIBILITY_MS);
            batch.push(Record {
                message_id: named(number),
                receipt: named(number),
                body: message.body.clone(),
                sent_at: message.sent_at,
            });
            queue.messages.put(number, message);
        }
        batch
    }

    /// Deletes what a consumer did not report as failed.
    pub fn finish(&self, batch: &[Record], failed: &[String]) {
        let mut world = self.world();
        for record in batch.iter().filter(|record| !failed.contains(&record.message_id)) {
            world.queue.messages.take(numbered(&record.message_id));
        }
    }

    /// Messages in the queue, visible or not.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.world().queue.messages.messages.len()
    }

    /// Bodies in the dead-letter queue.
    #[must_use]
    pub fn dead_letter_bodies(&self) -> Vec<String> {
        self.world().queue.dead.messages.values().map(|message| message.body.clone()).collect()
    }

    /// When the next hidden message becomes visible.
    #[must_use]
    pub fn next_visible(&self) -> Option<Millis> {
        self.world().queue.messages.in_order.first().map(|(visible_at, _)| *visible_at)
    }

    /// Puts a message body into the queue as it is.
    pub fn enqueue(&self, body: &str) {
        let mut world = self.world();
        let now = world.now;
        world.queue.push(body, now);
    }

    /// Loses every message of the queue.
    pub fn lose_queue(&self) {
        self.world().queue.messages = Shelf::default();
    }

    /// Moves every dead letter back to the queue, as the SQS console does.
    pub fn redrive_dead_letters(&self) {
        let mut world = self.world();
        let now = world.now;
        for message in std::mem::take(&mut world.queue.dead).messages.into_values() {
            world.queue.push(&message.body, now);
        }
    }
}

impl SimQueue {
    fn push(&mut self, body: &str, now: Millis) {
        self.next += 1;
        let body = body.to_owned();
        let message = SimMessage { body, sent_at: now, visible_at: now, receives: 0 };
        self.messages.put(self.next, message);
    }
}

impl Shelf {
    fn put(&mut self, number: u64, message: SimMessage) {
        self.in_order.insert((message.visible_at, number));
        self.messages.insert(number, message);
    }

    fn take(&mut self, number: u64) -> Option<SimMessage> {
        let message = self.messages.remove(&number)?;
        self.in_order.remove(&(message.visible_at, number));
        Some(message)
    }

    fn hide(&mut self, number: u64, until: Millis) {
        if let Some(message) = self.take(number) {
            self.put(number, SimMessage { visible_at: until, ..message });
        }
    }

    /// The message that has been visible for longest.
    fn first_visible(&self, now: Millis) -> Option<u64> {
        self.in_order
            .first()
            .filter(|(visible_at, _)| *visible_at <= now)
            .map(|(_, number)| *number)
    }
}

/// A message's id, which is its receipt too.
fn named(number: u64) -> String {
    format!("m{number}")
}

fn numbered(id: &str) -> u64 {
    id.strip_prefix('m').and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

impl Outbox for Twin {
    async fn send(&self, message: &Message, _source: &str) -> Result<(), PortError> {
        let (mut world, fault) = self.begin("send").await?;
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
        let (mut world, _) = self.begin("postpone").await?;
        let until = world.now.plus(u64::from(seconds) * 1_000);
        world.queue.messages.hide(numbered(receipt), until);
        Ok(())
    }
}

impl Queues for Twin {
    async fn backlog(&self) -> Result<u64, PortError> {
        let (world, _) = self.begin("backlog").await?;
        let in_order = &world.queue.messages.in_order;
        Ok(in_order.range(..=(world.now, u64::MAX)).count() as u64)
    }

    async fn dead_letters(&self) -> Result<Vec<DeadLetter>, PortError> {
        let (mut world, _) = self.begin("dead_letters").await?;
        let now = world.now;
        let mut letters = Vec::new();
        while letters.len() < LETTERS_AT_ONCE {
            let dead = &mut world.queue.dead;
            let Some(number) = dead.first_visible(now) else { break };
            dead.hide(number, now.plus(LOOK_MS));
            let body = dead.messages.get(&number).map(|message| message.body.clone());
            letters.push(DeadLetter { body: body.unwrap_or_default(), receipt: named(number) });
        }
        Ok(letters)
    }

    async fn delete_dead_letter(&self, receipt: &str) -> Result<(), PortError> {
        let (mut world, _) = self.begin("delete_dead_letter").await?;
        world.queue.dead.take(numbered(receipt));
        Ok(())
    }
}
