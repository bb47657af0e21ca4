//! Fail: give the row back for another run.

use super::{FenceRefusal, fence_refusal, is_held};
use crate::{Failure, Life, Millis, Open, Policy, Status};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fail {
    /// The holder's fence.
    pub epoch: u64,
    /// What went wrong; its time is fixed once per attempt.
    pub failure: Failure,
    /// Not to be leased before.
    pub retry_at: Millis,
    /// The row's partition.
    pub shard: u8,
}

/// What a lease holder does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailRefusal {
    /// The fence.
    Fence(FenceRefusal),
    /// Still mine, but that was the last run: bury it.
    OutOfBudget,
}

/// Gives a row back.
pub fn fail(found: Option<&Life>, ask: &Fail, policy: &Policy) -> Result<Life, FailRefusal> {
    match found {
        Some(life) if is_held(life, ask.epoch) && life.attempts < policy.attempts_max => Ok(Life {
            status: Status::Failed,
            failure: Some(ask.failure.clone()),
            retry_at: Some(ask.retry_at),
            open: Some(Open {
                bucket: crate::Bucket::Pending(ask.shard),
                due_at: ask.retry_at.plus(policy.retry_grace_ms),
            }),
            lease: None,
            waiting_since: None,
            ..life.clone()
        }),
        Some(_) | None => Err(refusal(found, ask, policy)),
    }
}

/// Reads a refused fail.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Fail, policy: &Policy) -> FailRefusal {
    if found.is_some_and(|life| is_held(life, ask.epoch) && life.attempts >= policy.attempts_max) {
        return FailRefusal::OutOfBudget;
    }
    FailRefusal::Fence(fence_refusal(found, |life| {
        life.status == Status::Failed
            && life.epoch == ask.epoch
            && life.failure.as_ref().map(|failure| failure.at) == Some(ask.failure.at)
            && life.retry_at == Some(ask.retry_at)
    }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{EPOCH, NOW, SHARD, failure, life, lives, newer};
    use super::*;
    use crate::{Bucket, FailureClass};

    fn ask() -> Fail {
        Fail {
            epoch: EPOCH,
            failure: failure(FailureClass::RateLimited, NOW),
            retry_at: NOW.plus(4_000),
            shard: SHARD,
        }
    }

    fn run(found: &Life) -> Result<Life, FailRefusal> {
        fail(Some(found), &ask(), &Policy::default())
    }

    fn held(attempts: u32) -> Life {
        Life { attempts, waiting_since: Some(NOW), ..life(Status::Processing) }
    }

    #[test]
    fn a_failed_run_is_given_back_and_is_overdue_two_minutes_after_its_retry_time() {
        let after = run(&held(3)).unwrap();
        assert_eq!((after.status, after.attempts), (Status::Failed, 3));
        assert_eq!(after.failure, Some(ask().failure));
        assert_eq!(after.retry_at, Some(NOW.plus(4_000)));
        let open = Open { bucket: Bucket::Pending(SHARD), due_at: NOW.plus(124_000) };
        assert_eq!(after.open, Some(open));
        assert_eq!((after.lease, after.waiting_since), (None, None));
    }

    #[test]
    fn the_last_run_cannot_fail_only_be_buried() {
        assert!(run(&held(5)).is_ok());
        for spent in [6, 7] {
            assert_eq!(run(&held(spent)), Err(FailRefusal::OutOfBudget));
        }
    }

    #[test]
    fn a_stale_lease_cannot_fail() {
        let lost = Err(FailRefusal::Fence(FenceRefusal::Lost));
        for epoch in [EPOCH - 1, EPOCH + 1] {
            assert_eq!(run(&Life { epoch, ..held(3) }), lost);
            assert_eq!(run(&Life { epoch, ..held(6) }), lost);
        }
        for found in lives().filter(|found| found.status != Status::Processing) {
            assert_eq!(run(&found), lost, "{}", found.status);
        }
        let missing = fail(None, &ask(), &Policy::default());
        assert_eq!(missing, Err(FailRefusal::Fence(FenceRefusal::Missing)));
        assert_eq!(
            run(&newer(Status::Processing)),
            Err(FailRefusal::Fence(FenceRefusal::UnknownFormat))
        );
    }

    #[test]
    fn a_fail_whose_answer_was_lost_is_not_mistaken_for_a_later_redrive_or_run() {
        let after = run(&held(3)).unwrap();
        assert_eq!(run(&after), Err(FailRefusal::Fence(FenceRefusal::Mine)));
        let not_mine = [
            Life { epoch: EPOCH + 1, ..after.clone() },
            Life {
                failure: Some(failure(FailureClass::RateLimited, NOW.plus(1))),
                ..after.clone()
            },
            // Buried with the same failure, then redriven.
            Life { retry_at: Some(NOW), ..after.clone() },
            Life { status: Status::Dead, ..after },
        ];
        for found in not_mine {
            assert_eq!(run(&found), Err(FailRefusal::Fence(FenceRefusal::Lost)));
        }
    }
}
