//! Lease: the only exclusive step. Whoever wins it may work until the lease ends; the epoch it
//! raises fences everything the previous holder may still try.

use super::{Found, look};
use crate::{Lease, Life, Millis, Policy, Status, Token};

/// What a consumer asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseAsk {
    /// Random per call.
    pub owner: Token,
    /// The holder's deadline plus the margin.
    pub until: Millis,
    /// The consumer's clock.
    pub now: Millis,
    /// The build that runs.
    pub release: String,
}

/// What a consumer does about a row it cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseRefusal {
    /// My own lease, whose answer was lost: work.
    Mine,
    /// Finished: delete the message.
    Settled,
    /// Another worker has it until then.
    Held {
        /// When that lease ends.
        until: Millis,
    },
    /// Its back-off is not over.
    NotYet {
        /// Not before.
        retry_at: Millis,
    },
    /// Its workers died until the budget was spent: bury it by force.
    OutOfBudget,
    /// Dead: a message newer than the burial redrives it.
    Dead {
        /// When it was buried.
        failed_at: Millis,
    },
    /// No such row.
    Missing,
    /// Written by a newer build: touch nothing.
    UnknownFormat,
}

/// Leases a row.
pub fn lease(found: Option<&Life>, ask: &LeaseAsk, policy: &Policy) -> Result<Life, LeaseRefusal> {
    let allowed = found.filter(|life| match look(Some(life)) {
        Found::Known(life) => {
            life.attempts < policy.attempts_max && may_start(life, ask.now, policy)
        }
        Found::Missing | Found::UnknownFormat => false,
    });
    let Some(life) = allowed else {
        return Err(refusal(found, ask, policy));
    };
    Ok(Life {
        status: Status::Processing,
        epoch: life.epoch.saturating_add(1),
        attempts: life.attempts.saturating_add(1),
        lease: Some(Lease {
            owner: ask.owner,
            until: ask.until,
        }),
        release: Some(ask.release.clone()),
        ..life.clone()
    })
}

fn may_start(life: &Life, now: Millis, policy: &Policy) -> bool {
    match life.status {
        Status::Claimed | Status::Waiting => true,
        Status::Failed => life
            .retry_at
            .is_some_and(|at| at <= now.plus(policy.lease_early_ms)),
        Status::Processing => life.lease.is_some_and(|lease| lease.until < now),
        Status::Dead | Status::Settled => false,
    }
}

/// Reads the row that could not be leased.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &LeaseAsk, policy: &Policy) -> LeaseRefusal {
    let life = match look(found) {
        Found::Missing => return LeaseRefusal::Missing,
        Found::UnknownFormat => return LeaseRefusal::UnknownFormat,
        Found::Known(life) => life,
    };
    let spent = life.attempts >= policy.attempts_max;
    match (life.status, life.lease) {
        (Status::Settled, _) => LeaseRefusal::Settled,
        (Status::Dead, _) => LeaseRefusal::Dead {
            failed_at: life
                .failure
                .as_ref()
                .map_or(Millis(0), |failure| failure.at),
        },
        (Status::Processing, Some(lease)) if lease.owner == ask.owner => LeaseRefusal::Mine,
        (Status::Processing, Some(lease)) if lease.until >= ask.now => {
            LeaseRefusal::Held { until: lease.until }
        }
        (Status::Claimed | Status::Failed | Status::Waiting | Status::Processing, _) if spent => {
            LeaseRefusal::OutOfBudget
        }
        (Status::Failed, _) => LeaseRefusal::NotYet {
            retry_at: life.retry_at.unwrap_or(ask.now),
        },
        // A processing row without a lease is nobody's doing: treat it as held until it is seen
        // to have none, which a person must settle. A claimed or waiting row within budget is
        // never refused; met here it moved in between, so look again at once.
        (Status::Processing, _) => LeaseRefusal::Held { until: ask.now },
        (Status::Claimed | Status::Waiting, _) => LeaseRefusal::NotYet { retry_at: ask.now },
    }
}
