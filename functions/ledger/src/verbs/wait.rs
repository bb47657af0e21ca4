//! Wait: give the row back without fault, and the attempt with it. A throttled store is nobody's
//! failure, and neither is an event whose predecessor has not come yet.

use super::{FenceRefusal, fence_refusal, is_held};
use crate::{Bucket, Life, Millis, Open, Status};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The holder's fence.
    pub epoch: u64,
    /// The holder's clock.
    pub now: Millis,
    /// When to look again.
    pub retry_at: Millis,
    /// When the sweeper sends it, should nobody else.
    pub due_at: Millis,
    /// The row's partition.
    pub shard: u8,
}

/// What a lease holder does about a refusal.
pub type WaitRefusal = FenceRefusal;

/// Gives a row back without fault.
pub fn wait(found: Option<&Life>, ask: &Wait) -> Result<Life, WaitRefusal> {
    match found {
        Some(life) if is_held(life, ask.epoch) => {
            Ok(given_back(life, ask.now, ask.retry_at, ask.due_at, ask.shard))
        }
        Some(_) | None => Err(refusal(found, ask)),
    }
}

/// The life after giving back: the attempt is returned, and the clock of the whole wait starts
/// only once.
pub(super) fn given_back(
    life: &Life,
    now: Millis,
    retry_at: Millis,
    due_at: Millis,
    shard: u8,
) -> Life {
    Life {
        status: Status::Waiting,
        attempts: life.attempts.saturating_sub(1),
        waiting_since: life.waiting_since.or(Some(now)),
        retry_at: Some(retry_at),
        open: Some(Open { bucket: Bucket::Pending(shard), due_at }),
        lease: None,
        ..life.clone()
    }
}

/// Reads a refused wait. Only the holder of an epoch can wait under it, and it waits once.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Wait) -> WaitRefusal {
    fence_refusal(found, |life| is_my_wait(life, ask.epoch, ask.retry_at))
}

/// Whether the row stands as the wait of `epoch` until `retry_at` leaves it.
pub(super) fn is_my_wait(life: &Life, epoch: u64, retry_at: Millis) -> bool {
    life.status == Status::Waiting && life.epoch == epoch && life.retry_at == Some(retry_at)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{EPOCH, NOW, SHARD, life, lives, newer};
    use super::*;

    fn ask() -> Wait {
        Wait {
            epoch: EPOCH,
            now: NOW,
            retry_at: NOW.plus(10_000),
            due_at: NOW.plus(130_000),
            shard: SHARD,
        }
    }

    #[test]
    fn a_wait_gives_the_attempt_back_and_lets_the_lease_go() {
        let after = wait(Some(&life(Status::Processing)), &ask()).unwrap();
        assert_eq!((after.status, after.attempts), (Status::Waiting, 2));
        assert_eq!((after.lease, after.epoch), (None, EPOCH));
        assert_eq!(after.retry_at, Some(NOW.plus(10_000)));
        assert_eq!(after.waiting_since, Some(NOW));
        let open = Open { bucket: Bucket::Pending(SHARD), due_at: NOW.plus(130_000) };
        assert_eq!(after.open, Some(open));
    }

    #[test]
    fn a_second_wait_keeps_the_beginning_of_the_first() {
        let mut held = life(Status::Processing);
        held.waiting_since = Some(NOW.minus(9));
        let after = wait(Some(&held), &ask()).unwrap();
        assert_eq!(after.waiting_since, Some(NOW.minus(9)));
    }

    #[test]
    fn only_the_holder_of_the_lease_can_wait() {
        for found in lives().filter(|found| found.status != Status::Processing) {
            assert!(wait(Some(&found), &ask()).is_err(), "{}", found.status);
        }
        for epoch in [EPOCH - 1, EPOCH + 1] {
            let stale = Wait { epoch, ..ask() };
            assert_eq!(wait(Some(&life(Status::Processing)), &stale), Err(FenceRefusal::Lost));
        }
        assert_eq!(wait(None, &ask()), Err(FenceRefusal::Missing));
        assert_eq!(
            wait(Some(&newer(Status::Processing)), &ask()),
            Err(FenceRefusal::UnknownFormat)
        );
    }

    #[test]
    fn a_wait_whose_answer_was_lost_is_known_by_its_epoch_and_times() {
        let after = wait(Some(&life(Status::Processing)), &ask()).unwrap();
        assert_eq!(wait(Some(&after), &ask()), Err(FenceRefusal::Mine));
        let not_mine = [
            Life { epoch: EPOCH + 1, ..after.clone() },
            Life { retry_at: Some(NOW), ..after.clone() },
            Life { status: Status::Failed, ..after },
        ];
        for found in not_mine {
            assert_eq!(wait(Some(&found), &ask()), Err(FenceRefusal::Lost));
        }
    }
}
