//! Redrive: the only way back from `dead`. It grants a fresh budget and puts the row back under
//! the sweeper's eye in the same write, so that a redriven row whose message is lost is not lost.

use super::{Found, look};
use crate::{Bucket, FailureClass, Life, Millis, Open, Policy, Status};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RedriveBy {
    /// A message of the queue, sent at that time: an operator moved it, or a provider sent again.
    /// It must be younger than the burial, or copies still in flight would grant budgets.
    Message {
        /// The message's `SentTimestamp`.
        sent_at: Millis,
    },
    /// The steward, which saw the row due at that time.
    Steward {
        /// The `due_at` it saw.
        seen_due_at: Millis,
        /// Set where the budget is given because the build is new.
        release: Option<String>,
    },
    /// A person.
    Person,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Redrive {
    /// Who asks.
    pub by: RedriveBy,
    /// The asker's clock.
    pub now: Millis,
    /// The row's partition.
    pub shard: u8,
}

/// What the asker does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RedriveRefusal {
    /// My own redrive, whose answer was lost: go on.
    Mine,
    /// The message is older than the burial: it grants nothing.
    MessageTooOld,
    /// Somebody else moved it since it was seen, or it may not be redriven by itself.
    MovedOn,
    /// Not dead.
    NotDead,
    /// No such row.
    Missing,
    /// Written by a newer build: touch nothing.
    UnknownFormat,
}

impl Redrive {
    fn due_at(&self, policy: &Policy) -> Millis {
        self.now.plus(policy.retry_grace_ms)
    }
}

/// Brings a dead row back.
pub fn redrive(
    found: Option<&Life>,
    ask: &Redrive,
    policy: &Policy,
) -> Result<Life, RedriveRefusal> {
    let allowed = found.filter(|life| match look(Some(life)) {
        Found::Known(life) => life.status == Status::Dead && may_redrive(life, &ask.by, policy),
        Found::Missing | Found::UnknownFormat => false,
    });
    let Some(life) = allowed else {
        return Err(refusal(found, ask, policy));
    };
    let (redrives, budget_release) = match &ask.by {
        RedriveBy::Message { .. } | RedriveBy::Person => {
            (life.redrives, life.budget_release.clone())
        }
        RedriveBy::Steward { release, .. } => (
            life.redrives.saturating_add(1),
            release.clone().or_else(|| life.budget_release.clone()),
        ),
    };
    Ok(Life {
        status: Status::Failed,
        attempts: 0,
        retry_at: Some(ask.now),
        redriven_at: Some(ask.now),
        open: Some(Open {
            bucket: Bucket::Pending(ask.shard),
            due_at: ask.due_at(policy),
        }),
        waiting_since: None,
        redrives,
        budget_release,
        ..life.clone()
    })
}

fn may_redrive(life: &Life, by: &RedriveBy, policy: &Policy) -> bool {
    match by {
        RedriveBy::Message { sent_at } => life
            .failure
            .as_ref()
            .is_some_and(|failure| failure.at <= sent_at.minus(policy.redrive_margin_ms)),
        RedriveBy::Steward { seen_due_at, .. } => {
            life.open.map(|open| open.due_at) == Some(*seen_due_at)
                && life.failure.as_ref().map(|failure| failure.class)
                    != Some(FailureClass::Permanent)
        }
        RedriveBy::Person => true,
    }
}

/// Reads a refused redrive.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Redrive, policy: &Policy) -> RedriveRefusal {
    match look(found) {
        Found::Missing => RedriveRefusal::Missing,
        Found::UnknownFormat => RedriveRefusal::UnknownFormat,
        Found::Known(life) => match life.status {
            Status::Dead => match ask.by {
                RedriveBy::Message { .. } => RedriveRefusal::MessageTooOld,
                RedriveBy::Steward { .. } | RedriveBy::Person => RedriveRefusal::MovedOn,
            },
            Status::Failed
                if life.redriven_at == Some(ask.now)
                    && life.open.map(|open| open.due_at) == Some(ask.due_at(policy)) =>
            {
                RedriveRefusal::Mine
            }
            Status::Claimed
            | Status::Processing
            | Status::Failed
            | Status::Waiting
            | Status::Settled => RedriveRefusal::NotDead,
        },
    }
}
