//! Settle: finish a row that changes no entity, because nothing is configured for its type or
//! every change was superseded. Rows with changes settle inside [`super::apply`].

use super::{FenceRefusal, claim::expiry, fence_refusal, is_held};
use crate::{Life, Millis, Outcome, Policy, Status};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settle {
    /// The holder's fence.
    pub epoch: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Fixed once per attempt.
    pub settled_at: Millis,
}

/// Settles a row.
pub fn settle(found: Option<&Life>, ask: &Settle, policy: &Policy) -> Result<Life, FenceRefusal> {
    match found {
        Some(life) if is_held(life, ask.epoch) => {
            Ok(settled(life, ask.outcome, ask.settled_at, policy))
        }
        Some(_) | None => Err(refusal(found, ask)),
    }
}

/// The life after settling.
pub(super) fn settled(life: &Life, outcome: Outcome, settled_at: Millis, policy: &Policy) -> Life {
    Life {
        status: Status::Settled,
        outcome: Some(outcome),
        settled_at: Some(settled_at),
        expires_at: Some(expiry(settled_at, policy)),
        open: None,
        lease: None,
        waiting_since: None,
        ..life.clone()
    }
}

/// Reads a refused settle.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Settle) -> FenceRefusal {
    fence_refusal(found, |life| is_my_settle(life, ask.epoch, ask.settled_at))
}

/// Whether the row stands as the settle of `epoch` at `settled_at` leaves it.
pub(super) fn is_my_settle(life: &Life, epoch: u64, settled_at: Millis) -> bool {
    life.status == Status::Settled && life.epoch == epoch && life.settled_at == Some(settled_at)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{EPOCH, NOW, life, lives, newer};
    use super::*;
    use crate::Seconds;

    fn ask() -> Settle {
        Settle { epoch: EPOCH, outcome: Outcome::Superseded, settled_at: NOW }
    }

    fn run(found: &Life) -> Result<Life, FenceRefusal> {
        settle(Some(found), &ask(), &Policy::default())
    }

    #[test]
    fn a_settled_row_leaves_the_index_and_is_pruned_ninety_days_later() {
        let mut held = life(Status::Processing);
        held.waiting_since = Some(NOW);
        let after = run(&held).unwrap();
        assert_eq!(after.status, Status::Settled);
        assert_eq!(after.outcome, Some(Outcome::Superseded));
        assert_eq!(after.settled_at, Some(NOW));
        assert_eq!(after.expires_at, Some(Seconds(1_000 + 90 * 86_400)));
        assert_eq!((after.open, after.lease, after.waiting_since), (None, None, None));
    }

    #[test]
    fn a_stale_lease_cannot_settle() {
        for epoch in [EPOCH - 1, EPOCH + 1] {
            let held = Life { epoch, ..life(Status::Processing) };
            assert_eq!(run(&held), Err(FenceRefusal::Lost));
        }
        for found in lives().filter(|found| found.status != Status::Processing) {
            assert_eq!(run(&found), Err(FenceRefusal::Lost), "{}", found.status);
        }
        let missing = settle(None, &ask(), &Policy::default());
        assert_eq!(missing, Err(FenceRefusal::Missing));
        assert_eq!(run(&newer(Status::Processing)), Err(FenceRefusal::UnknownFormat));
    }

    #[test]
    fn a_settle_whose_answer_was_lost_is_known_by_its_epoch_and_time() {
        let after = run(&life(Status::Processing)).unwrap();
        assert_eq!(run(&after), Err(FenceRefusal::Mine));
        let not_mine = [
            Life { epoch: EPOCH + 1, ..after.clone() },
            Life { settled_at: Some(NOW.plus(1)), ..after.clone() },
            Life { status: Status::Dead, ..after },
        ];
        for found in not_mine {
            assert_eq!(run(&found), Err(FenceRefusal::Lost));
        }
    }
}
