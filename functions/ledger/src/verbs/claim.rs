//! Claim: the first durable write of an event. Condition: no row of that key.
//!
//! A claim also gives birth to rows that are finished already: authentic events nobody can use
//! (dead, kept for a person) and events of another mode (settled, ignored). Nothing authentic is
//! thrown away.

use super::{Found, look};
use crate::{
    Bucket, EventKey, Failure, FailureClass, Life, Millis, Open, Outcome, Policy, ROW_FORMAT, Row,
    Seconds, Status, Token,
};

/// How the new row begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Birth {
    /// Work to do.
    Claimed,
    /// Authentic, but of no use as it is; waits for a person.
    Dead {
        /// Why, without payload.
        error: String,
    },
    /// Belongs to another mode.
    Ignored,
}

/// What the receiver asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// How the row begins.
    pub birth: Birth,
    /// This request's token.
    pub nonce: Token,
    /// When the delivery was received.
    pub received_at: Millis,
}

/// What the receiver does about a key that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimRefusal {
    /// My own claim, whose answer was lost: go on.
    Mine,
    /// The same id with other content: keep the second body too.
    Conflict,
    /// A duplicate of finished work.
    Settled,
    /// A duplicate of young, unfinished work: somebody is at it.
    Pending,
    /// A duplicate of unfinished work that is not young: send it again.
    Overdue,
    /// A duplicate of a dead row that another run may cure: send it again.
    Dead,
    /// A duplicate of a dead row that only a person can cure.
    DeadPermanent,
    /// Written by a newer build: it is durable; send it again, its consumer will know.
    UnknownFormat,
}

impl Claim {
    /// The life this claim creates for `key`.
    #[must_use]
    pub fn life(&self, key: &EventKey, policy: &Policy) -> Life {
        let n = key.shard();
        let born = Life {
            format: ROW_FORMAT,
            status: Status::Claimed,
            outcome: None,
            claim_nonce: self.nonce,
            epoch: 0,
            attempts: 0,
            lease: None,
            failure: None,
            retry_at: None,
            release: None,
            redrives: 0,
            redriven_at: None,
            budget_release: None,
            waiting_since: None,
            sweeps: 0,
            open: None,
            settled_at: None,
            expires_at: None,
            resolved_by: None,
            note: None,
        };
        match &self.birth {
            Birth::Claimed => Life {
                open: Some(Open {
                    bucket: Bucket::Pending(n),
                    due_at: self.received_at.plus(policy.first_due_ms),
                }),
                ..born
            },
            Birth::Dead { error } => Life {
                status: Status::Dead,
                failure: Some(Failure {
                    error: error.clone(),
                    class: FailureClass::Permanent,
                    at: self.received_at,
                }),
                open: Some(Open {
                    bucket: Bucket::Parked(n),
                    due_at: self.received_at,
                }),
                ..born
            },
            Birth::Ignored => Life {
                status: Status::Settled,
                outcome: Some(Outcome::Ignored),
                settled_at: Some(self.received_at),
                expires_at: Some(expiry(self.received_at, policy)),
                ..born
            },
        }
    }

    const fn born_status(&self) -> Status {
        match self.birth {
            Birth::Claimed => Status::Claimed,
            Birth::Dead { .. } => Status::Dead,
            Birth::Ignored => Status::Settled,
        }
    }
}

/// When a row that settles at `settled_at` may be deleted.
pub(super) fn expiry(settled_at: Millis, policy: &Policy) -> Seconds {
    settled_at.seconds_after(policy.retention_seconds())
}

/// Claims `key`. `identity_hash` is the new delivery's, `found` the row of that key.
pub fn claim(
    found: Option<&Row>,
    key: &EventKey,
    identity_hash: Option<&[u8; 32]>,
    ask: &Claim,
    policy: &Policy,
) -> Result<Life, ClaimRefusal> {
    match found {
        None => Ok(ask.life(key, policy)),
        Some(row) => Err(refusal(row, identity_hash, ask, policy)),
    }
}

/// Reads the row that stood in a claim's way.
#[must_use]
pub fn refusal(
    row: &Row,
    identity_hash: Option<&[u8; 32]>,
    ask: &Claim,
    policy: &Policy,
) -> ClaimRefusal {
    let life = match look(Some(&row.life)) {
        Found::Known(life) => life,
        Found::Missing | Found::UnknownFormat => return ClaimRefusal::UnknownFormat,
    };
    if life.claim_nonce == ask.nonce && life.status == ask.born_status() {
        return ClaimRefusal::Mine;
    }
    if let (Some(stored), Some(offered)) = (row.evidence.identity_hash.as_ref(), identity_hash)
        && stored != offered
    {
        return ClaimRefusal::Conflict;
    }
    match life.status {
        Status::Settled => ClaimRefusal::Settled,
        Status::Dead => match life.failure.as_ref().map(|failure| failure.class) {
            Some(FailureClass::Permanent) => ClaimRefusal::DeadPermanent,
            Some(FailureClass::Transient | FailureClass::RateLimited) | None => ClaimRefusal::Dead,
        },
        Status::Claimed | Status::Processing | Status::Failed | Status::Waiting => {
            if ask.received_at.since(row.evidence.received_at) > policy.resend_after_ms {
                ClaimRefusal::Overdue
            } else {
                ClaimRefusal::Pending
            }
        }
    }
}
