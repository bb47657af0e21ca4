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
