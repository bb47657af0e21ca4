//! What providers answered during one batch.
//!
//! Every event of a batch happened before the batch was handed over, so an answer given during it
//! speaks of all of them: several events of one entity need one question. It holds as long as
//! nobody else has written the entity since, which its revision tells; no clock is asked. Records
//! that may fetch one entity take turns, so that the second finds what the first was told.

use crate::{
    fetch::NoAnswer,
    projection::{Plan, Told},
};
use futures::lock::{Mutex as AsyncMutex, OwnedMutexGuard};
use ledger::EntityKey;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The answers of one batch.
#[derive(Default)]
pub(super) struct Answers(Mutex<BTreeMap<EntityKey, Arc<AsyncMutex<Known>>>>);

/// What is known about one entity.
#[derive(Default)]
pub(super) struct Known(Option<Answer>);

struct Answer {
    /// The table that was asked through.
    path: String,
    /// The entity's revision as the answer found it, or as its write left it.
    revision: Option<u64>,
    told: Result<Told, NoAnswer>,
    /// Whether the record that holds it asked itself.
    is_own: bool,
}

/// The turns of one record.
pub(super) struct Held(BTreeMap<EntityKey, OwnedMutexGuard<Known>>);

impl Answers {
    /// Waits for the record's turn with every entity it may fetch; in the order of their keys, so
    /// that no two records wait for each other.
    pub(super) async fn hold(&self, plans: &[Plan]) -> Held {
        let mut keys: Vec<&EntityKey> =
            plans.iter().filter(|plan| plan.fetch().is_some()).map(Plan::entity).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut held = BTreeMap::new();
        for key in keys {
            let known = {
                let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(all.entry(key.clone()).or_default())
            };
            let mut guard = known.lock_owned().await;
            if let Some(answer) = &mut guard.0 {
                answer.is_own = false;
            }
            held.insert(key.clone(), guard);
        }
        Held(held)
    }
}

impl Held {
    /// What was answered through this table about the entity at this revision. A question that
    /// failed is not asked again by other records of the batch, whatever the revision.
    pub(super) fn known(
        &self,
        entity: &EntityKey,
        path: &str,
        revision: Option<u64>,
    ) -> Option<Result<Told, NoAnswer>> {
        let answer = self.0.get(entity)?.0.as_ref().filter(|answer| answer.path == path)?;
        let holds = match &answer.told {
            Ok(_) => answer.revision == revision,
            Err(_) => !answer.is_own,
        };
        holds.then(|| answer.told.clone())
    }

    /// Remembers an answer.
    pub(super) fn learn(
        &mut self,
        entity: &EntityKey,
        path: &str,
        revision: Option<u64>,
        told: &Result<Told, NoAnswer>,
    ) {
        if let Some(known) = self.0.get_mut(entity) {
            let (path, told) = (path.to_owned(), told.clone());
            known.0 = Some(Answer { path, revision, told, is_own: true });
        }
    }

    /// The record's own write of the entity raised its revision.
    pub(super) fn wrote(&mut self, entity: &EntityKey, read: Option<u64>) {
        let answer = self.0.get_mut(entity).and_then(|known| known.0.as_mut());
        if let Some(answer) = answer.filter(|answer| answer.revision == read) {
            answer.revision = Some(read.unwrap_or(0).saturating_add(1));
        }
    }
}
