//! Bury: the row is dead, with its reason. A permanent failure is buried at once, a spent budget
//! by its last holder, and a row whose workers all died without a word by force.

use super::{FenceRefusal, Found, fence_refusal, is_held, look};
use crate::{Bucket, Failure, FailureClass, Life, Millis, Open, Policy, Status};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bury {
    /// The holder's fence.
    pub epoch: u64,
    /// What went wrong; a permanent class needs no spent budget.
    pub failure: Failure,
    /// Where the dead row lies; see [`resting_place`].
    pub open: Open,
}

/// What a lease holder does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BuryRefusal {
    /// The fence.
    Fence(FenceRefusal),
    /// Still mine, and not out of budget: fail it instead.
    BudgetLeft,
}

/// What the steward, or a consumer that was refused, asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForcedBury {
    /// "the worker died N times". Its time must not lie before the sending of the message that
    /// shows the burial in the dead-letter queue, or that very message would redrive the row.
    pub failure: Failure,
    /// The asker's clock.
    pub now: Millis,
    /// Where the dead row lies; see [`resting_place`].
    pub open: Open,
}

/// What the asker does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForcedBuryRefusal {
    /// My own burial, whose answer was lost.
    Mine,
    /// The row has moved on: leave it.
    MovedOn,
    /// No such row.
    Missing,
    /// Written by a newer build: touch nothing.
    UnknownFormat,
}

/// The bucket of a row that dies: parked when only a person can help, else dead with the time of
/// its next automatic redrive.
#[must_use]
pub fn resting_place(
    shard: u8,
    class: FailureClass,
    redrives: u32,
    failed_at: Millis,
    next_redrive: Millis,
    policy: &Policy,
) -> Open {
    if class == FailureClass::Permanent || redrives >= policy.redrives_max {
        Open { bucket: Bucket::Parked(shard), due_at: failed_at }
    } else {
        Open { bucket: Bucket::Dead(shard), due_at: next_redrive }
    }
}

/// Buries a row that the caller holds.
pub fn bury(found: Option<&Life>, ask: &Bury, policy: &Policy) -> Result<Life, BuryRefusal> {
    match found {
        Some(life) if is_held(life, ask.epoch) && may_bury(life, &ask.failure, policy) => {
            Ok(buried(life, &ask.failure, ask.open))
        }
        Some(_) | None => Err(refusal(found, ask, policy)),
    }
}

fn may_bury(life: &Life, failure: &Failure, policy: &Policy) -> bool {
    failure.class == FailureClass::Permanent || life.attempts >= policy.attempts_max
}

fn buried(life: &Life, failure: &Failure, open: Open) -> Life {
    Life {
        status: Status::Dead,
        failure: Some(failure.clone()),
        open: Some(open),
        lease: None,
        waiting_since: None,
        ..life.clone()
    }
}

fn is_my_burial(life: &Life, failure: &Failure) -> bool {
    life.status == Status::Dead && life.failure.as_ref().map(|f| f.at) == Some(failure.at)
}

/// Reads a refused burial.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Bury, policy: &Policy) -> BuryRefusal {
    if found.is_some_and(|life| is_held(life, ask.epoch) && !may_bury(life, &ask.failure, policy)) {
        return BuryRefusal::BudgetLeft;
    }
    BuryRefusal::Fence(fence_refusal(found, |life| {
        life.epoch == ask.epoch && is_my_burial(life, &ask.failure)
    }))
}

/// Buries a row whose budget was spent by workers that died.
pub fn forced_bury(
    found: Option<&Life>,
    ask: &ForcedBury,
    policy: &Policy,
) -> Result<Life, ForcedBuryRefusal> {
    match look(found) {
        Found::Known(life) if is_abandoned(life, ask.now, policy) => {
            Ok(buried(life, &ask.failure, ask.open))
        }
        Found::Known(_) | Found::Missing | Found::UnknownFormat => Err(forced_refusal(found, ask)),
    }
}

/// Whether a row's budget is spent and nobody can be working on it.
#[must_use]
pub fn is_abandoned(life: &Life, now: Millis, policy: &Policy) -> bool {
    life.attempts >= policy.attempts_max
        && match life.status {
            Status::Claimed | Status::Failed | Status::Waiting => true,
            Status::Processing => life.lease.is_some_and(|lease| lease.until < now),
            Status::Dead | Status::Settled => false,
        }
}

/// Reads a refused forced burial.
#[must_use]
pub fn forced_refusal(found: Option<&Life>, ask: &ForcedBury) -> ForcedBuryRefusal {
    match look(found) {
        Found::Missing => ForcedBuryRefusal::Missing,
        Found::UnknownFormat => ForcedBuryRefusal::UnknownFormat,
        Found::Known(life) if is_my_burial(life, &ask.failure) => ForcedBuryRefusal::Mine,
        Found::Known(_) => ForcedBuryRefusal::MovedOn,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{EPOCH, NOW, SHARD, failure, life, lives, newer};
    use super::*;
    use crate::{Lease, Token};

    const OPEN: Open = Open { bucket: Bucket::Dead(SHARD), due_at: Millis(5_000_000) };

    fn ask(class: FailureClass) -> Bury {
        Bury { epoch: EPOCH, failure: failure(class, NOW), open: OPEN }
    }

    fn run(found: &Life, class: FailureClass) -> Result<Life, BuryRefusal> {
        bury(Some(found), &ask(class), &Policy::default())
    }

    fn held(attempts: u32) -> Life {
        Life { attempts, waiting_since: Some(NOW), ..life(Status::Processing) }
    }

    fn forced(found: &Life) -> Result<Life, ForcedBuryRefusal> {
        let ask =
            ForcedBury { failure: failure(FailureClass::Transient, NOW), now: NOW, open: OPEN };
        forced_bury(Some(found), &ask, &Policy::default())
    }

    fn spent(status: Status, lease_until: Millis) -> Life {
        Life {
            attempts: 6,
            lease: (status == Status::Processing)
                .then_some(Lease { owner: Token(2), until: lease_until }),
            waiting_since: Some(NOW),
            ..life(status)
        }
    }

    #[test]
    fn a_burial_keeps_the_attempts_and_the_reason_and_lets_everything_else_go() {
        for after in [
            run(&held(6), FailureClass::Transient).unwrap(),
            forced(&spent(Status::Claimed, NOW)).unwrap(),
        ] {
            assert_eq!((after.status, after.attempts), (Status::Dead, 6));
            let failure = after.failure.unwrap();
            assert_eq!((failure.class, failure.at), (FailureClass::Transient, NOW));
            assert_eq!(after.open, Some(OPEN));
            assert_eq!((after.lease, after.waiting_since), (None, None));
            assert_eq!(after.expires_at, None, "a dead row is never pruned");
        }
    }

    #[test]
    fn only_a_permanent_failure_is_buried_before_the_budget_is_spent() {
        for class in FailureClass::ALL {
            let early = run(&held(5), *class);
            if *class == FailureClass::Permanent {
                assert!(early.is_ok());
            } else {
                assert_eq!(early, Err(BuryRefusal::BudgetLeft));
            }
            assert!(run(&held(6), *class).is_ok());
            assert!(run(&held(7), *class).is_ok());
        }
    }

    #[test]
    fn a_stale_lease_cannot_bury() {
        let lost = Err(BuryRefusal::Fence(FenceRefusal::Lost));
        for class in FailureClass::ALL {
            for epoch in [EPOCH - 1, EPOCH + 1] {
                assert_eq!(run(&Life { epoch, ..held(6) }, *class), lost);
                assert_eq!(run(&Life { epoch, ..held(3) }, *class), lost);
            }
            for found in lives().filter(|found| found.status != Status::Processing) {
                assert_eq!(run(&found, *class), lost, "{}", found.status);
            }
        }
        let policy = Policy::default();
        let missing = bury(None, &ask(FailureClass::Permanent), &policy);
        assert_eq!(missing, Err(BuryRefusal::Fence(FenceRefusal::Missing)));
        assert_eq!(
            run(&newer(Status::Processing), FailureClass::Permanent),
            Err(BuryRefusal::Fence(FenceRefusal::UnknownFormat))
        );
    }

    #[test]
    fn a_burial_whose_answer_was_lost_is_known_by_its_epoch_and_time() {
        let after = run(&held(6), FailureClass::Transient).unwrap();
        let read = |found: &Life| run(found, FailureClass::Transient);
        assert_eq!(read(&after), Err(BuryRefusal::Fence(FenceRefusal::Mine)));
        let not_mine = [
            Life { epoch: EPOCH + 1, ..after.clone() },
            Life { failure: Some(failure(FailureClass::Transient, NOW.plus(1))), ..after.clone() },
            // Redriven since.
            Life { status: Status::Failed, ..after },
        ];
        for found in not_mine {
            assert_eq!(read(&found), Err(BuryRefusal::Fence(FenceRefusal::Lost)));
        }
    }

    #[test]
    fn force_needs_a_spent_budget_and_nobody_at_work() {
        for status in Status::ALL {
            let found = spent(*status, NOW.minus(1));
            assert_eq!(forced(&found).is_ok(), status.is_pending(), "{status}");
            let in_budget = Life { attempts: 5, ..found };
            assert_eq!(forced(&in_budget), Err(ForcedBuryRefusal::MovedOn));
        }
        assert_eq!(
            forced(&spent(Status::Processing, NOW)),
            Err(ForcedBuryRefusal::MovedOn),
            "its last run is not over"
        );
        assert_eq!(forced(&newer(Status::Claimed)), Err(ForcedBuryRefusal::UnknownFormat));
        let ask =
            ForcedBury { failure: failure(FailureClass::Transient, NOW), now: NOW, open: OPEN };
        let missing = forced_bury(None, &ask, &Policy::default());
        assert_eq!(missing, Err(ForcedBuryRefusal::Missing));
    }

    #[test]
    fn a_forced_burial_whose_answer_was_lost_is_known_by_its_time() {
        let after = forced(&spent(Status::Failed, NOW)).unwrap();
        assert_eq!(forced(&after), Err(ForcedBuryRefusal::Mine));
        let by_another =
            Life { failure: Some(failure(FailureClass::Transient, NOW.minus(1))), ..after.clone() };
        assert_eq!(forced(&by_another), Err(ForcedBuryRefusal::MovedOn));
        let redriven = Life { status: Status::Failed, attempts: 0, ..after };
        assert_eq!(forced(&redriven), Err(ForcedBuryRefusal::MovedOn));
    }

    #[test]
    fn permanent_rows_and_those_out_of_automatic_redrives_are_parked() {
        let policy = Policy::default();
        let place =
            |class, redrives| resting_place(SHARD, class, redrives, NOW, NOW.plus(9), &policy);
        let parked = Open { bucket: Bucket::Parked(SHARD), due_at: NOW };
        let dead = Open { bucket: Bucket::Dead(SHARD), due_at: NOW.plus(9) };
        assert_eq!(place(FailureClass::Permanent, 0), parked);
        assert_eq!(place(FailureClass::Transient, 5), parked);
        assert_eq!(place(FailureClass::Transient, 6), parked);
        assert_eq!(place(FailureClass::Transient, 4), dead);
        assert_eq!(place(FailureClass::RateLimited, 0), dead);
    }
}
