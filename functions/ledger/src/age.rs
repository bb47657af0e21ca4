//! How old unfinished work is, for whoever watches over it.
//!
//! Some rows wait by design: for the number before theirs, or for their turn at a provider. However old
//! such an event is, nothing has gone wrong while its wait lasts. What does not wait is counted from when
//! it last became work: from its birth, its last redrive, or the end of its wait.

use crate::{Life, Millis, Policy, Status};

/// How old a pending row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// It waits, for as long as it was told to, since the first of its waits.
    Waits {
        /// How long.
        ms: u64,
    },
    /// It should be finished.
    Unfinished {
        /// For how long.
        ms: u64,
    },
}

/// The age of a row that was received at `received_at`; `None` for one that is not pending.
#[must_use]
pub fn age(life: &Life, received_at: Millis, now: Millis, policy: &Policy) -> Option<Age> {
    let since = match life.status {
        Status::Settled | Status::Dead => return None,
        Status::Claimed | Status::Failed => born(life, received_at),
        Status::Processing => match (life.waiting_since, life.lease) {
            // It came out of its wait a moment ago.
            (Some(since), Some(lease)) if now <= lease.until => return Some(waits(since, now)),
            (Some(_), Some(lease)) => lease.until,
            (None, _) | (_, None) => born(life, received_at),
        },
        Status::Waiting => match (life.waiting_since, life.retry_at, life.open) {
            // A row that was woken, or sent again, is due before its wait would have ended.
            (Some(since), Some(retry_at), Some(open))
                if now <= retry_at.plus(policy.retry_grace_ms) && open.due_at >= retry_at =>
            {
                return Some(waits(since, now));
            }
            (_, Some(retry_at), _) if retry_at <= now => retry_at,
            (_, _, Some(open)) if open.due_at <= now => open.due_at,
            (_, _, _) => born(life, received_at),
        },
    };
    Some(Age::Unfinished { ms: now.since(since) })
}

const fn waits(since: Millis, now: Millis) -> Age {
    Age::Waits { ms: now.since(since) }
}

/// When it last had all of its budget.
fn born(life: &Life, received_at: Millis) -> Millis {
    life.redriven_at.map_or(received_at, |redriven_at| redriven_at.max(received_at))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::{Bucket, Lease, Open, Token, verbs::fixture};

    const RECEIVED: Millis = Millis(1_700_000_000_000);
    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;

    fn at(life: &Life, ms: u64) -> Age {
        age(life, RECEIVED, RECEIVED.plus(ms), &Policy::default()).unwrap()
    }

    fn life(status: Status) -> Life {
        Life { waiting_since: None, lease: None, ..fixture::life(status) }
    }

    /// Waiting since a second after it came.
    fn waiting(retry_ms: u64, due_ms: u64) -> Life {
        let open = Open { bucket: Bucket::Pending(0), due_at: RECEIVED.plus(due_ms) };
        Life {
            waiting_since: Some(RECEIVED.plus(1_000)),
            retry_at: Some(RECEIVED.plus(retry_ms)),
            open: Some(open),
            ..life(Status::Waiting)
        }
    }

    #[test]
    fn what_does_not_wait_is_as_old_as_its_event_or_its_last_redrive() {
        for status in [Status::Claimed, Status::Failed, Status::Processing] {
            assert_eq!(at(&life(status), HOUR), Age::Unfinished { ms: HOUR });
            let redriven_at = Some(RECEIVED.plus(HOUR - 5));
            let redriven = Life { redriven_at, ..life(status) };
            assert_eq!(at(&redriven, HOUR), Age::Unfinished { ms: 5 });
        }
        for status in [Status::Dead, Status::Settled] {
            assert_eq!(age(&life(status), RECEIVED, RECEIVED, &Policy::default()), None);
        }
    }

    #[test]
    fn a_wait_counts_apart_until_the_steward_has_had_its_time_and_from_then_on_as_unfinished() {
        let grace = Policy::default().retry_grace_ms;
        // For the number before: due when the time is up. For its turn: due a while after it.
        for due_ms in [HOUR, HOUR + grace] {
            let row = waiting(HOUR, due_ms);
            for ms in [2_000, HOUR, HOUR + grace] {
                assert_eq!(at(&row, ms), Age::Waits { ms: ms - 1_000 });
            }
            let late = HOUR + grace + MINUTE;
            assert_eq!(at(&row, late), Age::Unfinished { ms: late - HOUR });
        }
    }

    #[test]
    fn a_wait_that_was_sent_again_or_woken_and_is_not_worked_is_unfinished() {
        let grace = Policy::default().retry_grace_ms;
        let sent_again = waiting(HOUR, 2 * HOUR);
        let late = HOUR + grace + 1;
        assert_eq!(at(&sent_again, late), Age::Unfinished { ms: late - HOUR });
        let woken = waiting(HOUR, 10 * MINUTE);
        assert_eq!(at(&woken, 10 * MINUTE), Age::Unfinished { ms: 0 });
        assert_eq!(at(&woken, 17 * MINUTE), Age::Unfinished { ms: 7 * MINUTE });
        let woken_and_sent = waiting(HOUR, 20 * MINUTE);
        assert_eq!(at(&woken_and_sent, 17 * MINUTE), Age::Unfinished { ms: 17 * MINUTE });
    }

    #[test]
    fn what_came_out_of_its_wait_counts_apart_while_its_worker_lives() {
        let until = RECEIVED.plus(HOUR);
        let lease = Some(Lease { owner: Token(2), until });
        let leased = Life { status: Status::Processing, lease, ..waiting(HOUR, HOUR) };
        assert_eq!(at(&leased, HOUR), Age::Waits { ms: HOUR - 1_000 });
        assert_eq!(at(&leased, HOUR + 7), Age::Unfinished { ms: 7 });
    }
}
