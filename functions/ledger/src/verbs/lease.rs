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
        lease: Some(Lease { owner: ask.owner, until: ask.until }),
        release: Some(ask.release.clone()),
        ..life.clone()
    })
}

fn may_start(life: &Life, now: Millis, policy: &Policy) -> bool {
    match life.status {
        Status::Claimed | Status::Waiting => true,
        Status::Failed => life.retry_at.is_some_and(|at| at <= now.plus(policy.lease_early_ms)),
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
            failed_at: life.failure.as_ref().map_or(Millis(0), |failure| failure.at),
        },
        (Status::Processing, Some(lease)) if lease.owner == ask.owner => LeaseRefusal::Mine,
        (Status::Processing, Some(lease)) if lease.until >= ask.now => {
            LeaseRefusal::Held { until: lease.until }
        }
        (Status::Claimed | Status::Failed | Status::Waiting | Status::Processing, _) if spent => {
            LeaseRefusal::OutOfBudget
        }
        (Status::Failed, _) => LeaseRefusal::NotYet { retry_at: life.retry_at.unwrap_or(ask.now) },
        // A processing row without a lease is nobody's doing: treat it as held until it is seen
        // to have none, which a person must settle. A claimed or waiting row within budget is
        // never refused; met here it moved in between, so look again at once.
        (Status::Processing, _) => LeaseRefusal::Held { until: ask.now },
        (Status::Claimed | Status::Waiting, _) => LeaseRefusal::NotYet { retry_at: ask.now },
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{EPOCH, NOW, life, lives, newer};
    use super::*;

    fn ask() -> LeaseAsk {
        LeaseAsk {
            owner: Token(99),
            until: NOW.plus(40_000),
            now: NOW,
            release: "build-2".to_owned(),
        }
    }

    fn read(found: &Life) -> LeaseRefusal {
        lease(Some(found), &ask(), &Policy::default()).unwrap_err()
    }

    fn may(found: &Life) -> bool {
        lease(Some(found), &ask(), &Policy::default()).is_ok()
    }

    fn held_until(until: Millis) -> Life {
        Life { lease: Some(Lease { owner: Token(2), until }), ..life(Status::Processing) }
    }

    #[test]
    fn a_lease_raises_the_fence_and_counts_a_run_and_moves_nothing_in_the_index() {
        let found = life(Status::Claimed);
        let leased = lease(Some(&found), &ask(), &Policy::default()).unwrap();
        assert_eq!(leased.status, Status::Processing);
        assert_eq!((leased.epoch, leased.attempts), (EPOCH + 1, 4));
        let lease = leased.lease.unwrap();
        assert_eq!((lease.owner, lease.until), (Token(99), NOW.plus(40_000)));
        assert_eq!(leased.release.as_deref(), Some("build-2"));
        assert_eq!(leased.open, found.open);
    }

    #[test]
    fn a_wait_keeps_its_beginning_through_a_lease() {
        let found = life(Status::Waiting);
        let leased = lease(Some(&found), &ask(), &Policy::default()).unwrap();
        assert_eq!(leased.waiting_since, found.waiting_since);
        assert!(leased.waiting_since.is_some());
    }

    #[test]
    fn claimed_and_waiting_rows_may_start_at_once_and_rows_at_rest_never() {
        for found in lives() {
            let expected = match found.status {
                Status::Claimed | Status::Waiting | Status::Failed => true,
                Status::Processing | Status::Dead | Status::Settled => false,
            };
            assert_eq!(may(&found), expected, "{}", found.status);
        }
    }

    #[test]
    fn a_failed_row_may_start_a_second_before_its_retry_time_and_not_earlier() {
        let mut found = life(Status::Failed);
        found.retry_at = Some(NOW.plus(1_000));
        assert!(may(&found));
        found.retry_at = Some(NOW.plus(1_001));
        let retry_at = NOW.plus(1_001);
        assert_eq!(read(&found), LeaseRefusal::NotYet { retry_at });
    }

    #[test]
    fn a_lease_is_taken_over_only_after_its_end() {
        assert!(may(&held_until(NOW.minus(1))));
        assert_eq!(
            read(&held_until(NOW)),
            LeaseRefusal::Held { until: NOW },
            "at its last millisecond it still holds"
        );
    }

    #[test]
    fn a_spent_budget_refuses_every_start() {
        let mut starts = vec![held_until(NOW.minus(1))];
        starts.extend(
            [Status::Claimed, Status::Waiting, Status::Failed].iter().map(|status| life(*status)),
        );
        for mut found in starts {
            found.attempts = 5;
            assert!(may(&found));
            for spent in [6, 7] {
                found.attempts = spent;
                assert_eq!(read(&found), LeaseRefusal::OutOfBudget);
            }
        }
        let mut running = held_until(NOW.plus(1));
        running.attempts = 6;
        let until = NOW.plus(1);
        assert_eq!(read(&running), LeaseRefusal::Held { until }, "its sixth run is not over");
    }

    #[test]
    fn a_lease_whose_answer_was_lost_is_known_by_its_owner_while_it_is_processing() {
        for mut found in lives() {
            found.lease = Some(Lease { owner: Token(99), until: NOW.plus(1) });
            let mine = refusal(Some(&found), &ask(), &Policy::default()) == LeaseRefusal::Mine;
            assert_eq!(mine, found.status == Status::Processing, "{}", found.status);
        }
        assert_ne!(read(&held_until(NOW.plus(1))), LeaseRefusal::Mine);
    }

    #[test]
    fn rows_at_rest_missing_rows_and_foreign_rows_are_told_apart() {
        let policy = Policy::default();
        assert_eq!(read(&life(Status::Settled)), LeaseRefusal::Settled);
        let failed_at = NOW.minus(60_000);
        assert_eq!(read(&life(Status::Dead)), LeaseRefusal::Dead { failed_at });
        assert_eq!(lease(None, &ask(), &policy), Err(LeaseRefusal::Missing));
        assert_eq!(read(&newer(Status::Claimed)), LeaseRefusal::UnknownFormat);
    }
}
