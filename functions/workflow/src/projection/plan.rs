//! Plans: what an event does to one entity, and what has to happen first.
//!
//! A plan is asked, with the entity as found, for its next [`Step`]: a change to write, a question
//! to the provider, or a wait for a number that has not come. It decides; who reads, calls and
//! writes is its caller. Every change but [`Plan::Versioned`] stands on the revision it was decided
//! on, so that whoever writes in between has it decided again.

use super::{Delta, Fetched, ProjectionError, Sequenced};
use config::{Fetch, Source};
use ledger::{Change, Entity, EntityKey, Guard, Stamp, Tie, Version, verbs::Wake};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};

/// What an event does to one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// A change that needs no look at the entity: its guard decides.
    Versioned(Change),
    /// A change that adds to what the entity is.
    Delta(Delta),
    /// A change that may have to be asked for at the provider.
    Fetched(Fetched),
    /// A change whose turn it has to be.
    Sequenced(Sequenced),
}

/// What a plan asks for next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Write this.
    Write {
        /// The change.
        change: Change,
        /// Whose turn it is then: one of these, the first that has not moved on.
        wakes: Vec<Wake>,
    },
    /// Drop it: the entity is newer, or final.
    Superseded,
    /// Ask the provider, then [`Plan::told`].
    Fetch,
    /// Wait for the number before it.
    Wait {
        /// The number it carries.
        number: Version,
        /// How long at most, from the first wait.
        timeout_ms: u64,
    },
}

/// What a provider said about an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The state.
    pub state: Map<String, Value>,
    /// Whether it is gone for good.
    pub is_final: bool,
}

impl Plan {
    /// A change by version, for projections written in Rust: `state`, an object, replaces the state of
    /// the entity of this type and id if `stamp` is newer. The namespace is the source's name.
    pub fn newer(
        source: &Source,
        entity_type: &str,
        id: &str,
        stamp: Stamp,
        state: Value,
    ) -> Result<Self, ProjectionError> {
        let entity = EntityKey::new(source.name.as_str(), entity_type, id)
            .map_err(ProjectionError::permanent)?;
        let Value::Object(state) = state else {
            return Err(ProjectionError::permanent("the state is no object"));
        };
        super::check_state(&state).map_err(ProjectionError::permanent)?;
        let guard = Guard::Newer { stamp, tie: Tie::Rank };
        Ok(Self::Versioned(Change {
            entity,
            guard,
            state,
            is_final: false,
            leaves: BTreeSet::new(),
        }))
    }

    /// Whose state it changes.
    #[must_use]
    pub const fn entity(&self) -> &EntityKey {
        match self {
            Self::Versioned(change) => &change.entity,
            Self::Delta(delta) => &delta.entity,
            Self::Fetched(fetched) => &fetched.entity,
            Self::Sequenced(sequenced) => &sequenced.entity,
        }
    }

    /// Whether its steps depend on the entity as it is.
    #[must_use]
    pub const fn reads(&self) -> bool {
        match self {
            Self::Versioned(_) => false,
            Self::Delta(_) | Self::Fetched(_) | Self::Sequenced(_) => true,
        }
    }

    /// How the provider is asked, and for which id, should that be needed.
    #[must_use]
    pub fn fetch(&self) -> Option<(&Arc<Fetch>, &str)> {
        match self {
            Self::Versioned(_) | Self::Delta(_) => None,
            Self::Fetched(fetched) => Some((&fetched.fetch, &fetched.id)),
            Self::Sequenced(sequenced) => {
                sequenced.fetch.as_ref().map(|fetch| (fetch, sequenced.id.as_str()))
            }
        }
    }

    /// The version it carries, where it has one of its own.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        match self {
            Self::Versioned(change) => change.version(),
            Self::Delta(_) => None,
            Self::Fetched(fetched) => fetched.tied.as_ref().map(|tied| tied.version),
            Self::Sequenced(sequenced) => Some(sequenced.number),
        }
    }

    /// What is to be done about the entity as found.
    pub fn step(
        &self,
        found: Option<&Entity>,
        waited_ms: Option<u64>,
    ) -> Result<Step, ProjectionError> {
        match self {
            Self::Versioned(change) => {
                Ok(Step::Write { change: change.clone(), wakes: Vec::new() })
            }
            Self::Delta(delta) => match found {
                Some(entity) if entity.is_final => Ok(Step::Superseded),
                Some(_) | None => {
                    Ok(Step::Write { change: delta.change(found)?, wakes: Vec::new() })
                }
            },
            Self::Fetched(fetched) => Ok(fetched.step(found)),
            Self::Sequenced(sequenced) => sequenced.step(found, waited_ms),
        }
    }

    /// What is to be done now that the provider has answered. Only a plan that asked is told.
    #[must_use]
    pub fn told(&self, found: Option<&Entity>, told: &Told) -> Step {
        match self {
            Self::Versioned(_) | Self::Delta(_) => Step::Superseded,
            Self::Fetched(fetched) => fetched.told(found, told),
            Self::Sequenced(sequenced) => sequenced.told(found, told),
        }
    }
}

/// A change that stands on the entity as found.
pub(super) fn standing_on(
    found: Option<&Entity>,
    entity: &EntityKey,
    event_id: &str,
    version: Option<Version>,
    state: Map<String, Value>,
) -> Change {
    Change {
        entity: entity.clone(),
        guard: Guard::Revision {
            read: found.map(|entity| entity.revision),
            version,
            event_id: event_id.to_owned(),
        },
        state,
        is_final: false,
        leaves: BTreeSet::new(),
    }
}
