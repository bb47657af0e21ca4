//! Redrive: the only way back from `dead`. It grants a fresh budget and puts the row back under
//! the sweeper's eye in the same write, so that a redriven row whose message is lost is not lost.

use super::{Found, look};
use crate::{Bucket, ByHand, FailureClass, Life, Millis, Open, Policy, Status};

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
    /// A person who gives a name and a reason: the row keeps both.
    Person {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
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
    let mut redriven = life.clone();
    match &ask.by {
        RedriveBy::Message { .. } => {}
        RedriveBy::Steward { release, .. } => {
            redriven.redrives = life.redrives.saturating_add(1);
            redriven.budget_release = release.clone().or(redriven.budget_release);
        }
        RedriveBy::Person { by, reason } => {
            redriven.by_hand = Some(ByHand { by: by.clone(), reason: reason.clone(), at: ask.now });
        }
    }
    Ok(Life {
        status: Status::Failed,
        attempts: 0,
        retry_at: Some(ask.now),
        redriven_at: Some(ask.now),
        open: Some(Open { bucket: Bucket::Pending(ask.shard), due_at: ask.due_at(policy) }),
        waiting_since: None,
        ..redriven
    })
}

/// Whether `release` may cure a dead row: the row died under another build, and this one has not
/// granted it a budget yet. The steward asks before it redrives because the build is new.
#[must_use]
pub fn is_curable_by(life: &Life, release: &str) -> bool {
    life.status == Status::Dead
        && life.failure.as_ref().map(|failure| failure.class) != Some(FailureClass::Permanent)
        && life.release.as_deref() != Some(release)
        && life.budget_release.as_deref() != Some(release)
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
        RedriveBy::Person { .. } => true,
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
                RedriveBy::Steward { .. } | RedriveBy::Person { .. } => RedriveRefusal::MovedOn,
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{EPOCH, NOW, SHARD, failure, life, lives, newer};
    use super::*;

    fn ask(by: RedriveBy) -> Redrive {
        Redrive { by, now: NOW, shard: SHARD }
    }

    fn steward(seen_due_at: Millis) -> Redrive {
        ask(RedriveBy::Steward { seen_due_at, release: None })
    }

    fn person() -> Redrive {
        ask(RedriveBy::Person { by: "ada".to_owned(), reason: "mended".to_owned() })
    }

    fn message(sent_at: Millis) -> Redrive {
        ask(RedriveBy::Message { sent_at })
    }

    fn run(found: &Life, ask: &Redrive) -> Result<Life, RedriveRefusal> {
        redrive(Some(found), ask, &Policy::default())
    }

    fn dead(class: FailureClass) -> Life {
        Life {
            failure: Some(failure(class, NOW.minus(60_000))),
            waiting_since: Some(NOW),
            ..life(Status::Dead)
        }
    }

    #[test]
    fn a_redrive_grants_a_fresh_budget_and_puts_the_row_under_the_sweepers_eye_in_one_write() {
        let found = dead(FailureClass::Transient);
        for by in [message(NOW), steward(NOW.plus(5)), person()] {
            let after = run(&found, &by).unwrap();
            assert_eq!((after.status, after.attempts), (Status::Failed, 0));
            let open = Open { bucket: Bucket::Pending(SHARD), due_at: NOW.plus(120_000) };
            assert_eq!(after.open, Some(open));
            assert_eq!((after.retry_at, after.redriven_at), (Some(NOW), Some(NOW)));
            assert_eq!((after.waiting_since, after.epoch), (None, EPOCH));
        }
    }

    #[test]
    fn only_the_stewards_redrives_count_as_automatic_and_name_the_new_build() {
        let found =
            Life { budget_release: Some("build-1".to_owned()), ..dead(FailureClass::Transient) };
        for by in [message(NOW), person()] {
            let after = run(&found, &by).unwrap();
            assert_eq!((after.redrives, &after.budget_release), (1, &found.budget_release));
        }
        let after = run(&found, &steward(NOW.plus(5))).unwrap();
        assert_eq!((after.redrives, &after.budget_release), (2, &found.budget_release));
        let fresh = ask(RedriveBy::Steward {
            seen_due_at: NOW.plus(5),
            release: Some("build-2".to_owned()),
        });
        let after = run(&found, &fresh).unwrap();
        assert_eq!(after.redrives, 2);
        assert_eq!(after.budget_release.as_deref(), Some("build-2"));
    }

    #[test]
    fn a_persons_redrive_keeps_who_why_and_when_and_others_leave_that_as_it_was() {
        let after = run(&dead(FailureClass::Permanent), &person()).unwrap();
        let kept = ByHand { by: "ada".to_owned(), reason: "mended".to_owned(), at: NOW };
        assert_eq!(after.by_hand, Some(kept));
        for by in [message(NOW), steward(NOW.plus(5))] {
            assert_eq!(run(&dead(FailureClass::Transient), &by).unwrap().by_hand, None);
            let found = Life { by_hand: after.by_hand.clone(), ..dead(FailureClass::Transient) };
            assert_eq!(run(&found, &by).unwrap().by_hand, after.by_hand);
        }
    }

    #[test]
    fn a_message_redrives_only_if_sent_ten_seconds_after_the_burial() {
        for class in FailureClass::ALL {
            let found = dead(*class);
            assert!(run(&found, &message(NOW.minus(50_000))).is_ok());
            assert_eq!(
                run(&found, &message(NOW.minus(50_001))),
                Err(RedriveRefusal::MessageTooOld)
            );
        }
    }

    #[test]
    fn the_steward_redrives_only_what_it_saw_due_and_never_a_permanent_row() {
        for class in FailureClass::ALL {
            let may = run(&dead(*class), &steward(NOW.plus(5))).is_ok();
            assert_eq!(may, *class != FailureClass::Permanent);
        }
        assert_eq!(
            run(&dead(FailureClass::Transient), &steward(NOW.plus(6))),
            Err(RedriveRefusal::MovedOn)
        );
    }

    #[test]
    fn a_build_cures_what_died_under_another_and_once_only() {
        let found = dead(FailureClass::Transient);
        assert!(is_curable_by(&found, "build-2"));
        assert!(!is_curable_by(&found, "build-1"), "it died under this build");
        let granted = Life { budget_release: Some("build-2".to_owned()), ..found };
        assert!(!is_curable_by(&granted, "build-2"));
        assert!(is_curable_by(&granted, "build-3"));
        assert!(!is_curable_by(&dead(FailureClass::Permanent), "build-2"));
        for other in lives().filter(|found| found.status != Status::Dead) {
            assert!(!is_curable_by(&other, "build-2"));
        }
    }

    #[test]
    fn a_person_redrives_even_a_permanent_row() {
        assert!(run(&dead(FailureClass::Permanent), &person()).is_ok());
    }

    #[test]
    fn nothing_but_a_dead_row_is_redriven() {
        for found in lives().filter(|found| found.status != Status::Dead) {
            for by in [message(NOW), steward(NOW.plus(5)), person()] {
                assert_eq!(run(&found, &by), Err(RedriveRefusal::NotDead));
            }
        }
        let missing = redrive(None, &person(), &Policy::default());
        assert_eq!(missing, Err(RedriveRefusal::Missing));
        assert_eq!(run(&newer(Status::Dead), &person()), Err(RedriveRefusal::UnknownFormat));
    }

    #[test]
    fn a_redrive_whose_answer_was_lost_is_known_by_its_time_while_the_row_stands_as_it_left_it() {
        let mine = message(NOW);
        let after = run(&dead(FailureClass::Transient), &mine).unwrap();
        assert_eq!(run(&after, &mine), Err(RedriveRefusal::Mine));

        let other = Redrive { now: NOW.plus(1), ..mine.clone() };
        assert_eq!(run(&after, &other), Err(RedriveRefusal::NotDead));
        let failed_since = Life {
            open: Some(Open { bucket: Bucket::Pending(SHARD), due_at: NOW.plus(120_001) }),
            ..after.clone()
        };
        assert_eq!(run(&failed_since, &mine), Err(RedriveRefusal::NotDead));
        let redriven_by_another = Life { redriven_at: Some(NOW.plus(1)), ..after.clone() };
        assert_eq!(run(&redriven_by_another, &mine), Err(RedriveRefusal::NotDead));
        let leased_since = Life { status: Status::Processing, ..after };
        assert_eq!(run(&leased_since, &mine), Err(RedriveRefusal::NotDead));
    }
}
