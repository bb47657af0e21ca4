//! Dead rows: bring back what may live, and clear the dead-letter queue of what is settled.

use super::{PAGE, Reached, Run};
use crate::ports::{OpenEntry, PortError, Refused, StewardNotes, StewardPorts};
use ledger::{
    Bucket, EventKey, Message, Millis, SHARDS, Status,
    verbs::{Redrive, RedriveBy, RedriveRefusal, is_curable_by},
};

/// Dead letters looked at in one run.
const LETTERS_MAX: usize = 1_000;

impl<P: StewardPorts> Run<'_, P> {
    /// Redrives the rows whose automatic redrive is due, the earliest first, and counts the dead.
    pub(super) async fn redrive_due(&mut self) -> Reached {
        let (dead, dead_is_whole) = self.entries(Bucket::Dead, Millis::END_OF_TIME).await;
        let (parked, parked_is_whole) = self.entries(Bucket::Parked, Millis::END_OF_TIME).await;
        let now = self.now;
        let is_whole = dead_is_whole && parked_is_whole;
        self.tally.is_blind |= !is_whole;
        if is_whole {
            let ages = dead.iter().chain(&parked).map(|(_, entry)| now.since(entry.received_at));
            self.tally.oldest_dead_ms = ages.max().unwrap_or(0);
            let parked = parked.len() as u64;
            self.tally.dead = Some((parked.saturating_add(dead.len() as u64), parked));
        }
        let mut due: Vec<OpenEntry> =
            dead.into_iter().map(|(_, entry)| entry).filter(|entry| entry.due_at <= now).collect();
        due.sort_by_key(|entry| entry.due_at);
        for entry in &due {
            if self.sends_left == 0 || self.out_of_time() {
                return Reached::Bound;
            }
            self.redrive(entry, None).await;
        }
        if is_whole { Reached::End } else { Reached::Bound }
    }

    /// After a deploy, gives every row that died under an earlier build one fresh budget. Walks
    /// the dead buckets once per build, in as many runs as it takes.
    pub(super) async fn walk(&mut self, notes: &mut StewardNotes) {
        let release = self.steward.release.clone();
        if notes.walked_release == release {
            return;
        }
        // Where the walk of another build was cut short means nothing to this one.
        if notes.walk_release != release {
            notes.walk_release.clone_from(&release);
            (notes.walk_bucket, notes.walk_after) = (None, None);
        }
        let mut bucket = notes.walk_bucket.unwrap_or(Bucket::Parked(0));
        let mut after = notes.walk_after.take();
        loop {
            if self.sends_left == 0 || self.out_of_time() {
                notes.walk_bucket = Some(bucket);
                notes.walk_after = after;
                return;
            }
            let page = match self
                .steward
                .ports
                .open(bucket, Millis::END_OF_TIME, after.as_ref(), PAGE)
                .await
            {
                Ok(page) => page,
                Err(error) => {
                    self.trouble("a bucket could not be walked", &error);
                    notes.walk_bucket = Some(bucket);
                    notes.walk_after = after;
                    return;
                }
            };
            for entry in &page {
                if self.sends_left == 0 {
                    break;
                }
                self.redrive(entry, Some(&release)).await;
                after = Some(entry.clone());
            }
            if self.sends_left > 0 && page.len() < PAGE as usize {
                after = None;
                match next_bucket(bucket) {
                    Some(next) => bucket = next,
                    None => break,
                }
            }
        }
        notes.walked_release = release;
        notes.walk_release = String::new();
        notes.walk_bucket = None;
        notes.walk_after = None;
    }

    async fn redrive(&mut self, entry: &OpenEntry, release: Option<&String>) {
        match self.steward.redrive(entry, self.now, release).await {
            Ok(Some((message, source))) => {
                // Unsent, the row is pending and swept in two minutes.
                self.send_all(&[(message, source)]).await;
                self.tally.redriven += 1;
            }
            Ok(None) => {}
            Err(error) => self.trouble("a dead row could not be redriven", &error),
        }
    }

    /// Deletes the dead-letter messages whose rows are settled: what was redriven or resolved
    /// another way leaves no stale alarm behind. A run that found none to delete among those it
    /// looked at has come to the end: the others wait for a person.
    pub(super) async fn clear_dead_letters(&mut self) -> Reached {
        let mut seen = 0;
        while seen < LETTERS_MAX && !self.out_of_time() {
            let letters = match self.steward.ports.dead_letters().await {
                Ok(letters) if letters.is_empty() => return Reached::End,
                Ok(letters) => letters,
                Err(error) => {
                    self.trouble("the dead-letter queue could not be read", &error);
                    return Reached::End;
                }
            };
            let mut cleared = 0;
            for letter in &letters {
                match self.steward.clear(&letter.body, &letter.receipt).await {
                    Ok(true) => cleared += 1,
                    Ok(false) => {}
                    Err(error) => self.trouble("a dead letter could not be cleared", &error),
                }
            }
            seen += letters.len();
            self.tally.cleared += cleared;
        }
        if self.tally.cleared > 0 { Reached::Bound } else { Reached::End }
    }
}

impl<P: StewardPorts> super::Steward<P> {
    /// Redrives one row; its message, if it was.
    async fn redrive(
        &self,
        entry: &OpenEntry,
        now: Millis,
        release: Option<&String>,
    ) -> Result<Option<(Message, String)>, PortError> {
        let Some(row) = self.ports.row(&entry.key).await? else {
            return Ok(None);
        };
        if release.is_some_and(|release| !is_curable_by(&row.life, release)) {
            return Ok(None);
        }
        let by = RedriveBy::Steward { seen_due_at: entry.due_at, release: release.cloned() };
        let ask = Redrive { by, now, shard: entry.key.shard() };
        Ok(match self.ports.redrive(&entry.key, &ask).await? {
            Ok(()) | Err(Refused { why: RedriveRefusal::Mine, .. }) => {
                let message = Message::new(entry.key.clone(), &row.evidence.event_type, None);
                Some((message, row.evidence.source.as_str().to_owned()))
            }
            Err(_) => None,
        })
    }

    async fn clear(&self, body: &str, receipt: &str) -> Result<bool, PortError> {
        let Ok(Message { key, .. }) = Message::parse(body) else {
            return Ok(false);
        };
        let settled = self.row_status(&key).await? == Some(Status::Settled);
        if settled {
            self.ports.delete_dead_letter(receipt).await?;
        }
        Ok(settled)
    }

    async fn row_status(&self, key: &EventKey) -> Result<Option<Status>, PortError> {
        Ok(self.ports.row(key).await?.map(|row| row.life.status))
    }
}

/// Parked rows first, partition by partition, then those with a redrive still to come.
fn next_bucket(bucket: Bucket) -> Option<Bucket> {
    let next = |n: u8| n.checked_add(1).filter(|n| *n < SHARDS);
    match bucket {
        Bucket::Parked(n) => Some(next(n).map_or(Bucket::Dead(0), Bucket::Parked)),
        Bucket::Dead(n) => next(n).map(Bucket::Dead),
        Bucket::Pending(_) => Some(Bucket::Parked(0)),
    }
}
