//! Apply and settle: every entity's change and the row's end in one transaction, or nothing.
//!
//! A refusal names the first thing the caller must react to, in this order: the row (a lost
//! fence ends everything), then the entities.

use super::{
    FenceRefusal, fence_refusal, is_held,
    settle::{is_my_settle, settled},
};
use crate::{Change, Entity, GuardRefusal, Life, Millis, Outcome, Policy};

/// What a lease holder asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Apply {
    /// The holder's fence.
    pub epoch: u64,
    /// Fixed once per attempt, so that a retried transaction is the same transaction.
    pub settled_at: Millis,
    /// The changes; no two of one entity. Never empty: a row without changes settles by
    /// [`super::settle`].
    pub changes: Vec<Change>,
}

/// What the transaction wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The settled row.
    pub life: Life,
    /// The entities, in the order of the changes.
    pub entities: Vec<Entity>,
}

/// What a lease holder does about a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ApplyRefusal {
    /// The fence.
    Fence(FenceRefusal),
    /// These changes, by index, are superseded: drop them and apply the rest.
    Superseded(Vec<usize>),
    /// These changes, by index, stand on a revision that has moved: read and project again.
    RevisionMoved(Vec<usize>),
}

/// Applies and settles. `entities` are the rows found, in the order of the changes.
pub fn apply(
    found: Option<&Life>,
    entities: &[Option<&Entity>],
    ask: &Apply,
    policy: &Policy,
) -> Result<Applied, ApplyRefusal> {
    let Some(life) = found.filter(|life| is_held(life, ask.epoch)) else {
        return Err(refusal(found, entities, ask));
    };
    let made: Result<Vec<Entity>, GuardRefusal> = ask
        .changes
        .iter()
        .zip(entities)
        .map(|(change, entity)| change.make(*entity, ask.settled_at))
        .collect();
    match made {
        Ok(written) => Ok(Applied {
            life: settled(life, Outcome::Applied, ask.settled_at, policy),
            entities: written,
        }),
        Err(_) => Err(refusal(found, entities, ask)),
    }
}

/// Reads a refused transaction.
#[must_use]
pub fn refusal(found: Option<&Life>, entities: &[Option<&Entity>], ask: &Apply) -> ApplyRefusal {
    if !found.is_some_and(|life| is_held(life, ask.epoch)) {
        return ApplyRefusal::Fence(fence_refusal(found, |life| {
            is_my_settle(life, ask.epoch, ask.settled_at)
        }));
    }
    let mut superseded = Vec::new();
    let mut moved = Vec::new();
    for (index, (change, entity)) in ask.changes.iter().zip(entities).enumerate() {
        match change.make(*entity, ask.settled_at) {
            Ok(_) => {}
            Err(GuardRefusal::Superseded) => superseded.push(index),
            Err(GuardRefusal::RevisionMoved) => moved.push(index),
        }
    }
    if superseded.is_empty() {
        ApplyRefusal::RevisionMoved(moved)
    } else {
        ApplyRefusal::Superseded(superseded)
    }
}
