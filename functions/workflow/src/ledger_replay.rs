//! Replay from the ledger: an event that is there already is fed in again, as a row of its own.
//!
//! The new row's key is `_r#<run>#<pk>`: deduplication, which stops the same key, does not swallow it,
//! and within one run it stops everything else, so that an interrupted run is simply run again. The
//! original is read and never written. The body is copied, chunks too: the original may expire while
//! its replay waits. The consumer projects the new row like any other, through the version guard, so
//! what the state knows already is superseded.
//!
//! A change that adds cannot be told from its replay by any version; such events are refused, and so
//! is what would be worked anyway, or what a person or a rule has set aside. [`why_not`] says which.

use crate::{
    body::{self, BodyError},
    ports::{Clock, Entropy, Ledger, Outbox, Refused},
    projection::{Declarative, EventView, Projection},
};
use config::Config;
use ledger::{
    EventKey, Evidence, Message, Origin, Outcome, Policy, ROW_FORMAT, Row, RunName, Status,
    verbs::{Birth, Claim, ClaimRefusal},
};
use thiserror::Error;

/// Why an event is not fed in again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum WhyNot {
    /// Written by another build.
    #[error("written by another build; use the oncehook of that build")]
    UnknownFormat,
    /// It will be worked without anybody's help.
    #[error("it is not finished yet, and is being worked")]
    Unfinished,
    /// Its own row can be brought back.
    #[error("it is dead: a redrive runs it again, in its own row")]
    Dead,
    /// It is itself a replay.
    #[error("it is a replay itself: name the event it was made from")]
    Replay,
    /// A person closed it.
    #[error("a person closed it without running it; name its key, or ask for --status resolved")]
    Resolved,
    /// It belongs to the provider's other mode and was never worked.
    #[error("it belongs to the other mode (test or live) than its source")]
    OtherMode,
    /// This build does not know its source.
    #[error("its source is not configured in this build")]
    NotConfigured,
    /// It changes an entity by a difference.
    #[error("it adds to {entity}, and a replay would be counted a second time")]
    Delta {
        /// The entity's type.
        entity: String,
    },
}

/// Why `row` may not be fed in again; `None` if it may. `closed_too`: also what a person closed.
#[must_use]
pub fn why_not(row: &Row, config: &Config, closed_too: bool) -> Option<WhyNot> {
    let life = &row.life;
    if life.format != ROW_FORMAT {
        return Some(WhyNot::UnknownFormat);
    }
    if row.evidence.key.replay_of().is_some() {
        return Some(WhyNot::Replay);
    }
    match (life.status, life.outcome) {
        (Status::Dead, _) => return Some(WhyNot::Dead),
        (Status::Claimed | Status::Processing | Status::Failed | Status::Waiting, _) => {
            return Some(WhyNot::Unfinished);
        }
        (Status::Settled, Some(Outcome::Resolved)) if !closed_too => {
            return Some(WhyNot::Resolved);
        }
        // The receiver settled it at birth: no consumer ever held it.
        (Status::Settled, Some(Outcome::Ignored)) if life.epoch == 0 => {
            return Some(WhyNot::OtherMode);
        }
        (Status::Settled, _) => {}
    }
    let Some(source) = config.source(row.evidence.source.as_str()) else {
        return Some(WhyNot::NotConfigured);
    };
    let delta = source.is_replayable(&row.evidence.event_type).err();
    delta.map(|delta| WhyNot::Delta { entity: delta.entity_type })
}

/// What became of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// It has a new row; `sent` says whether its message is in the queue. If not, the steward sends it.
    New {
        /// Whether the message was sent.
        sent: bool,
    },
    /// This run fed it in before.
    Before,
}

/// One run.
#[derive(Debug, Clone)]
pub struct LedgerReplay<'a> {
    /// The sources.
    pub config: &'a Config,
    /// The limits.
    pub policy: &'a Policy,
    /// Its name.
    pub run: &'a RunName,
    /// Who.
    pub by: &'a str,
    /// Why.
    pub reason: &'a str,
}

impl LedgerReplay<'_> {
    /// The key of the row that this run makes of an event.
    #[must_use]
    pub fn key(&self, original: &EventKey) -> EventKey {
        original.replay(self.run)
    }

    /// Feeds one event in again. Whether it may be is [`why_not`]'s to say.
    pub async fn replay(
        &self,
        ports: &(impl Ledger + Outbox + Clock + Entropy),
        original: &Row,
    ) -> Result<Replayed, BodyError> {
        let key = self.key(&original.evidence.key);
        if original.evidence.body.chunks > 0 && ports.row(&key).await?.is_some() {
            // Megabytes are not copied to learn that they are there.
            return Ok(Replayed::Before);
        }
        let bytes = body::read(ports, original).await?;
        let encoded = body::encode(&bytes, self.policy);
        let now = ports.now();
        let claim = Claim { birth: Birth::Claimed, nonce: ports.token(), received_at: now };
        let row = Row {
            life: claim.life(&key, self.policy),
            effects: Vec::new(),
            evidence: Evidence {
                key: key.clone(),
                received_at: now,
                body: encoded.body.clone(),
                identity_hash: None,
                origin: Origin::Replay,
                origin_note: Some(format!("by {}: {} (run {})", self.by, self.reason, self.run)),
                ..original.evidence.clone()
            },
        };
        let expires_at = now.seconds_after(self.policy.chunk_seconds());
        body::store(ports, &key, &encoded, self.policy, Some(expires_at)).await?;
        match ports.claim(&row, &claim).await? {
            Ok(()) | Err(Refused { why: ClaimRefusal::Mine, .. }) => {
                let message =
                    Message::new(key, &row.evidence.event_type, self.entity(&row, &bytes));
                let sent = ports.send(&message, row.evidence.source.as_str()).await.is_ok();
                Ok(Replayed::New { sent })
            }
            Err(_) => Ok(Replayed::Before),
        }
    }

    /// The entity it will change: a hint that keeps the events of one entity in order in a batch.
    fn entity(&self, row: &Row, bytes: &[u8]) -> Option<String> {
        let event = EventView {
            source: self.config.source(row.evidence.source.as_str())?,
            event_type: &row.evidence.event_type,
            event_id: row.evidence.key.event_id(),
            body: bytes,
        };
        let plans = Declarative.project(&event).ok()?;
        plans.first().map(|plan| plan.entity().as_str().to_owned())
    }
}
