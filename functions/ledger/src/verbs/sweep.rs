//! Sweep: push an overdue row's next look into the future, *then* send its message. A crash in
//! between costs one distance, never the event.

use super::{Found, look};
use crate::{Bucket, Life, Millis, Open, Policy, next_sweep_due};

/// What the steward asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// The `due_at` it saw.
    pub seen_due_at: Millis,
    /// The steward's clock.
    pub now: Millis,
    /// The row's partition.
    pub shard: u8,
    /// The row's `sweeps` as the steward read it; decides the next distance.
    pub sweeps: u32,
}

/// What the steward does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SweepRefusal {
    /// My own sweep, whose answer was lost: send.
    Mine,
    /// Somebody moved it: leave it.
    MovedOn,
    /// No such row.
    Missing,
    /// Written by a newer build: touch nothing.
    UnknownFormat,
}

impl Sweep {
    /// When the row is looked at again.
    #[must_use]
    pub fn next_due_at(&self, policy: &Policy) -> Millis {
        next_sweep_due(self.sweeps, self.now, policy)
    }
}

/// Pushes a pending row's due time forward.
pub fn sweep(found: Option<&Life>, ask: &Sweep, policy: &Policy) -> Result<Life, SweepRefusal> {
    let seen = Open { bucket: Bucket::Pending(ask.shard), due_at: ask.seen_due_at };
    match look(found) {
        Found::Known(life) if life.open == Some(seen) => Ok(Life {
            open: Some(Open { bucket: seen.bucket, due_at: ask.next_due_at(policy) }),
            sweeps: life.sweeps.saturating_add(1),
            ..life.clone()
        }),
        Found::Known(_) | Found::Missing | Found::UnknownFormat => Err(refusal(found, ask, policy)),
    }
}

/// Reads a refused sweep.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Sweep, policy: &Policy) -> SweepRefusal {
    let next = Open { bucket: Bucket::Pending(ask.shard), due_at: ask.next_due_at(policy) };
    match look(found) {
        Found::Missing => SweepRefusal::Missing,
        Found::UnknownFormat => SweepRefusal::UnknownFormat,
        Found::Known(life) if life.open == Some(next) => SweepRefusal::Mine,
        Found::Known(_) => SweepRefusal::MovedOn,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{NOW, SHARD, life, lives, newer};
    use super::*;
    use crate::Status;

    fn ask() -> Sweep {
        Sweep { seen_due_at: NOW.plus(5), now: NOW.plus(7), shard: SHARD, sweeps: 2 }
    }

    fn run(found: &Life) -> Result<Life, SweepRefusal> {
        sweep(Some(found), &ask(), &Policy::default())
    }

    #[test]
    fn every_pending_row_is_swept_and_nothing_else() {
        for found in lives() {
            let swept = run(&found);
            if !found.status.is_pending() {
                assert_eq!(swept, Err(SweepRefusal::MovedOn), "{}", found.status);
                continue;
            }
            let open = Open { bucket: Bucket::Pending(SHARD), due_at: NOW.plus(7 + 4 * 120_000) };
            let expected = Life { open: Some(open), sweeps: 3, ..found };
            assert_eq!(swept, Ok(expected));
        }
    }

    #[test]
    fn a_row_that_moved_since_it_was_seen_is_left_alone() {
        let mut found = life(Status::Failed);
        for due_at in [NOW.plus(4), NOW.plus(6)] {
            found.open = Some(Open { bucket: Bucket::Pending(SHARD), due_at });
            assert_eq!(run(&found), Err(SweepRefusal::MovedOn));
        }
        for bucket in [Bucket::Dead(SHARD), Bucket::Parked(SHARD), Bucket::Pending(SHARD + 1)] {
            found.open = Some(Open { bucket, due_at: NOW.plus(5) });
            assert_eq!(run(&found), Err(SweepRefusal::MovedOn));
        }
    }

    #[test]
    fn a_sweep_whose_answer_was_lost_is_known_by_the_time_it_set() {
        let after = run(&life(Status::Claimed)).unwrap();
        assert_eq!(run(&after), Err(SweepRefusal::Mine));
        let died = Life {
            open: after.open.map(|open| Open { bucket: Bucket::Dead(SHARD), ..open }),
            ..after
        };
        assert_eq!(run(&died), Err(SweepRefusal::MovedOn));
    }

    #[test]
    fn missing_and_foreign_rows_are_left_alone() {
        let missing = sweep(None, &ask(), &Policy::default());
        assert_eq!(missing, Err(SweepRefusal::Missing));
        assert_eq!(run(&newer(Status::Failed)), Err(SweepRefusal::UnknownFormat));
    }
}
