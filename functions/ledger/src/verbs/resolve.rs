//! Resolve: a person closes a dead row without running it again.

use super::{Found, claim::expiry, look};
use crate::{Life, Millis, Outcome, Policy, Status};

/// What a person asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resolve {
    /// Who.
    pub by: String,
    /// Why.
    pub note: String,
    /// Fixed once per command.
    pub settled_at: Millis,
}

/// What the person is told about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResolveRefusal {
    /// My own write, whose answer was lost.
    Mine,
    /// Only dead rows can be closed by hand.
    NotDead(Status),
    /// No such row.
    Missing,
    /// Written by a newer build: touch nothing.
    UnknownFormat,
}

/// Closes a dead row.
pub fn resolve(
    found: Option<&Life>,
    ask: &Resolve,
    policy: &Policy,
) -> Result<Life, ResolveRefusal> {
    match look(found) {
        Found::Known(life) if life.status == Status::Dead => Ok(Life {
            status: Status::Settled,
            outcome: Some(Outcome::Resolved),
            resolved_by: Some(ask.by.clone()),
            note: Some(ask.note.clone()),
            settled_at: Some(ask.settled_at),
            expires_at: Some(expiry(ask.settled_at, policy)),
            open: None,
            ..life.clone()
        }),
        Found::Known(_) | Found::Missing | Found::UnknownFormat => Err(refusal(found, ask)),
    }
}

/// Reads a refused resolve.
#[must_use]
pub fn refusal(found: Option<&Life>, ask: &Resolve) -> ResolveRefusal {
    match look(found) {
        Found::Missing => ResolveRefusal::Missing,
        Found::UnknownFormat => ResolveRefusal::UnknownFormat,
        Found::Known(life)
            if life.status == Status::Settled
                && life.settled_at == Some(ask.settled_at)
                && life.resolved_by.as_deref() == Some(ask.by.as_str()) =>
        {
            ResolveRefusal::Mine
        }
        Found::Known(life) => ResolveRefusal::NotDead(life.status),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{NOW, life, lives, newer};
    use super::*;
    use crate::Seconds;

    fn ask() -> Resolve {
        Resolve { by: "ada".to_owned(), note: "refunded by hand".to_owned(), settled_at: NOW }
    }

    fn run(found: &Life) -> Result<Life, ResolveRefusal> {
        resolve(Some(found), &ask(), &Policy::default())
    }

    #[test]
    fn a_person_closes_a_dead_row_and_the_row_says_who_and_why() {
        let after = run(&life(Status::Dead)).unwrap();
        assert_eq!(after.status, Status::Settled);
        assert_eq!(after.outcome, Some(Outcome::Resolved));
        assert_eq!(after.resolved_by.as_deref(), Some("ada"));
        assert_eq!(after.note.as_deref(), Some("refunded by hand"));
        assert_eq!((after.open, after.settled_at), (None, Some(NOW)));
        assert_eq!(after.expires_at, Some(Seconds(1_000 + 90 * 86_400)));
    }

    #[test]
    fn nothing_but_a_dead_row_is_closed_by_hand() {
        for found in lives().filter(|found| found.status != Status::Dead) {
            assert_eq!(run(&found), Err(ResolveRefusal::NotDead(found.status)));
        }
        let missing = resolve(None, &ask(), &Policy::default());
        assert_eq!(missing, Err(ResolveRefusal::Missing));
        assert_eq!(run(&newer(Status::Dead)), Err(ResolveRefusal::UnknownFormat));
    }

    #[test]
    fn a_resolve_whose_answer_was_lost_is_known_by_its_person_and_time() {
        let after = run(&life(Status::Dead)).unwrap();
        assert_eq!(run(&after), Err(ResolveRefusal::Mine));
        let not_mine = [
            Life { resolved_by: Some("bob".to_owned()), ..after.clone() },
            Life { settled_at: Some(NOW.plus(1)), ..after.clone() },
            Life { status: Status::Processing, ..after },
        ];
        for found in not_mine {
            assert_eq!(run(&found), Err(ResolveRefusal::NotDead(found.status)));
        }
    }
}
