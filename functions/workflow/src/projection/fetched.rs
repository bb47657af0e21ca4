//! Fetched state: the event says that something changed, the provider says what it is now.
//!
//! The answer is written only if the entity still has the revision that was read before the
//! question, so of two workers the one who asked later writes, and no clock is compared. Under a
//! version whose ties are fetched, the provider is asked only where two events carry one version.

use super::{
    ProjectionError, Step, Told,
    facts::Facts,
    plan::standing_on,
    values::{pointers_of, state},
};
use config::Fetch;
use ledger::{Entity, EntityKey, Version};
use serde_json::{Map, Value};
use std::{cmp::Ordering, sync::Arc};

/// A change that the provider may have to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Whose state.
    pub entity: EntityKey,
    /// The entity's id as the provider writes it.
    pub id: String,
    /// The event that makes the change.
    pub event_id: String,
    /// How the provider is asked.
    pub fetch: Arc<Fetch>,
    /// The event's own version and state, where the provider is asked among equals only.
    pub tied: Option<Tied>,
}

/// What an event with a version says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tied {
    /// Its version.
    pub version: Version,
    /// The state after it.
    pub state: Map<String, Value>,
}

impl Fetched {
    pub(super) fn step(&self, found: Option<&Entity>) -> Step {
        if found.is_some_and(|entity| entity.is_final) {
            return Step::Superseded;
        }
        let Some(tied) = &self.tied else {
            return Step::Fetch;
        };
        let stored = found.and_then(|entity| entity.version);
        match stored.map_or(Ordering::Greater, |stored| tied.version.cmp(&stored)) {
            Ordering::Less => Step::Superseded,
            Ordering::Equal => Step::Fetch,
            Ordering::Greater => {
                let (version, state) = (Some(tied.version), tied.state.clone());
                let change = standing_on(found, &self.entity, &self.event_id, version, state);
                Step::Write { change, wakes: Vec::new() }
            }
        }
    }

    pub(super) fn told(&self, found: Option<&Entity>, told: &Told) -> Step {
        let stored = found.and_then(|entity| entity.version);
        let version = self.tied.as_ref().map_or(stored, |tied| Some(tied.version));
        let mut change =
            standing_on(found, &self.entity, &self.event_id, version, told.state.clone());
        change.is_final = told.is_final;
        Step::Write { change, wakes: Vec::new() }
    }
}

impl Told {
    /// What an answer with a body says.
    pub fn read(fetch: &Fetch, entity_type: &str, body: &[u8]) -> Result<Self, ProjectionError> {
        let in_answer = |why: ProjectionError| ProjectionError::Answer(Box::new(why));
        let text = std::str::from_utf8(body)
            .map_err(|_| in_answer(ProjectionError::NotJson { line: 1, column: 0 }))?;
        let facts = Facts::read(text, pointers_of(&fetch.set)).map_err(in_answer)?;
        let state = state(&fetch.set, entity_type, &facts).map_err(in_answer)?;
        Ok(Self { state, is_final: false })
    }

    /// That the provider knows no such entity: every field is null.
    #[must_use]
    pub fn nothing(fetch: &Fetch, is_final: bool) -> Self {
        let state = fetch.set.keys().map(|field| (field.clone(), Value::Null)).collect();
        Self { state, is_final }
    }
}
