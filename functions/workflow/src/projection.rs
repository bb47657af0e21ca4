//! How an event becomes changes of state: the pure half of the consumer.
//!
//! A [`Projection`] looks at one event and says which entities it changes and how. [`Declarative`]
//! does what `sources.toml` says; a team whose mapping is no table of pointers implements the
//! trait beside it. Nothing is read or written here: a change by version carries its guard, and a
//! delta is turned into a change once its entity has been read, as often as it takes.
//!
//! Values keep the digits they were written in. What a state row cannot hold exactly is refused,
//! never rounded, and refused for good: the same event would fail the same way tomorrow. A
//! repeated key in an object means its last value, as `serde_json` reads it.

mod decimal;
mod delta;
mod error;
mod facts;
#[cfg(test)]
mod tests;

pub use decimal::{Decimal, NumberDefect};
pub use delta::{Addend, Delta};
pub use error::{ProjectionError, StateDefect, StoredDefect, Unstorable, VersionProblem};

use config::{Expr, Order, Pointer, Source};
use facts::Facts;
use ledger::{Change, EntityKey, Guard, Stamp, Unit, Version};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Bytes of JSON that a state may have. DynamoDB stores items of 400 KB and counts up to half as
/// much again for lists of short numbers.
const STATE_BYTES_MAX: usize = 256_000;

/// Levels of lists and objects inside a field. DynamoDB stores 32, the state itself included.
const LEVELS_MAX: usize = 30;

/// One event, as projections see it. Not `Debug`: bodies do not belong in logs.
#[derive(Clone, Copy)]
pub struct EventView<'a> {
    /// The source it came through.
    pub source: &'a Source,
    /// Its type, exactly as the provider writes it.
    pub event_type: &'a str,
    /// Its id.
    pub event_id: &'a str,
    /// Its bytes, as delivered.
    pub body: &'a [u8],
}

/// What an event does to one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// A change that needs no look at the entity: its guard decides.
    Versioned(Change),
    /// A change that stands on what the entity is: read it, then ask [`Delta::change`].
    Delta(Delta),
}

impl Plan {
    /// Whose state it changes.
    #[must_use]
    pub const fn entity(&self) -> &EntityKey {
        match self {
            Self::Versioned(change) => &change.entity,
            Self::Delta(delta) => &delta.entity,
        }
    }
}

/// Maps events to changes. Implementations are pure: one event gives one answer, whenever and
/// however often it is asked.
pub trait Projection {
    /// The plans of an event, at most one per entity; none where nothing is to be done, and the
    /// event settles as ignored.
    fn project(&self, event: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError>;
}

/// The projections of `sources.toml`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Declarative;

impl Projection for Declarative {
    fn project(&self, event: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError> {
        let matching: Vec<&config::Projection> =
            event.source.projections_on(event.event_type).collect();
        if matching.is_empty() {
            return Ok(Vec::new());
        }
        let document = event.source.preset.document(event.body).map_err(ProjectionError::Body)?;
        let wanted = matching.iter().flat_map(|projection| pointers(projection));
        let facts = Facts::read(&document, wanted)?;
        let mut plans: Vec<Plan> = Vec::with_capacity(matching.len());
        for projection in &matching {
            let plan = plan(projection, event, &facts)?;
            let twin = plans.iter().position(|earlier| earlier.entity() == plan.entity());
            if let Some(earlier) = twin.and_then(|index| matching.get(index)) {
                return Err(ProjectionError::SameEntity {
                    entity_type: projection.entity_type.clone(),
                    first: earlier.id.clone(),
                    second: projection.id.clone(),
                });
            }
            plans.push(plan);
        }
        Ok(plans)
    }
}

/// Every place a projection looks at.
fn pointers(projection: &config::Projection) -> Vec<&Pointer> {
    let by = match &projection.order {
        Order::Version { by, .. } => Some(by),
        Order::None => None,
    };
    let set = projection.set.values().filter_map(|expr| match expr {
        Expr::At(pointer) => Some(pointer),
        Expr::Constant(_) => None,
    });
    [&projection.id].into_iter().chain(by).chain(set).chain(projection.add.values()).collect()
}

fn plan(
    projection: &config::Projection,
    event: &EventView<'_>,
    facts: &Facts<'_, '_>,
) -> Result<Plan, ProjectionError> {
    let entity = entity(projection, facts)?;
    let event_id = event.event_id.to_owned();
    match &projection.order {
        Order::Version { by, unit, tie } => {
            let version = version(facts, by, *unit).map_err(|why| ProjectionError::Version {
                entity_type: projection.entity_type.clone(),
                at: by.clone(),
                why,
            })?;
            let rank = projection.rank_of(event.event_type).unwrap_or_default();
            Ok(Plan::Versioned(Change {
                entity,
                guard: Guard::Newer { stamp: Stamp { version, rank, event_id }, tie: *tie },
                state: state(projection, facts)?,
                is_final: projection.is_final,
                leaves: BTreeSet::new(),
            }))
        }
        Order::None => {
            let adds: Result<Vec<Addend>, ProjectionError> = projection
                .add
                .iter()
                .map(|(field, at)| addend(projection, field, at, facts))
                .collect();
            Ok(Plan::Delta(Delta { entity, event_id, adds: adds? }))
        }
    }
}

fn version(facts: &Facts<'_, '_>, by: &Pointer, unit: Unit) -> Result<Version, VersionProblem> {
    Ok(Version::read(facts.scalar(by)?.as_ref(), unit)?)
}

/// The state row's key. An id is a text or a whole number, and both spell the same key.
fn entity(
    projection: &config::Projection,
    facts: &Facts<'_, '_>,
) -> Result<EntityKey, ProjectionError> {
    let refuse = |found: &'static str| ProjectionError::Id {
        entity_type: projection.entity_type.clone(),
        at: projection.id.clone(),
        found,
    };
    let id = match facts.scalar(&projection.id).map_err(|_| refuse("unreadable"))? {
        Some(Value::String(id)) if id.trim().is_empty() => return Err(refuse("blank")),
        Some(Value::String(id)) => id,
        Some(Value::Number(number)) => {
            let id = number.to_string();
            if id.contains(['.', 'e', 'E']) {
                return Err(refuse("a number with a fraction or an exponent"));
            }
            id
        }
        found
        @ (None | Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
            return Err(refuse(facts::kind(found.as_ref())));
        }
    };
    EntityKey::new(&projection.namespace, &projection.entity_type, &id).map_err(|_| refuse("blank"))
}

/// The state after a change by version: every field, null where the event has no such place.
fn state(
    projection: &config::Projection,
    facts: &Facts<'_, '_>,
) -> Result<Map<String, Value>, ProjectionError> {
    let mut state = Map::new();
    for (field, expr) in &projection.set {
        let value = match expr {
            Expr::Constant(value) => value.clone(),
            Expr::At(at) => {
                let found = facts.value(at).and_then(|found| match found {
                    Some(value) => error::storable(&value, LEVELS_MAX).map(|()| value),
                    None => Ok(Value::Null),
                });
                found.map_err(|why| ProjectionError::Value {
                    entity_type: projection.entity_type.clone(),
                    field: field.clone(),
                    at: at.clone(),
                    why,
                })?
            }
        };
        state.insert(field.clone(), value);
    }
    if let Some(bytes) = bytes_too_many(&state) {
        let entity_type = projection.entity_type.clone();
        return Err(ProjectionError::StateTooLarge {
            entity_type,
            bytes,
            bytes_max: STATE_BYTES_MAX,
        });
    }
    Ok(state)
}

/// Length of a state as JSON, where it is more than a row holds.
fn bytes_too_many(state: &Map<String, Value>) -> Option<usize> {
    // A map of values always serialises.
    let bytes = serde_json::to_string(state).unwrap_or_default().len();
    (bytes > STATE_BYTES_MAX).then_some(bytes)
}

/// Whether a state row can hold a state that comes from elsewhere, such as a file, exactly.
pub fn check_state(state: &Map<String, Value>) -> Result<(), StateDefect> {
    if state.contains_key("") {
        return Err(StateDefect::Value(Unstorable::EmptyKey));
    }
    for value in state.values() {
        error::storable(value, LEVELS_MAX).map_err(StateDefect::Value)?;
    }
    match bytes_too_many(state) {
        Some(bytes) => Err(StateDefect::TooLarge { bytes, bytes_max: STATE_BYTES_MAX }),
        None => Ok(()),
    }
}

fn addend(
    projection: &config::Projection,
    field: &str,
    at: &Pointer,
    facts: &Facts<'_, '_>,
) -> Result<Addend, ProjectionError> {
    let refuse = |why: String| ProjectionError::Amount {
        entity_type: projection.entity_type.clone(),
        field: field.to_owned(),
        at: at.clone(),
        why,
    };
    let found = facts.scalar(at).map_err(|why| refuse(why.to_string()))?;
    let amount = match &found {
        Some(Value::Number(number)) => number.to_string().parse::<Decimal>(),
        Some(Value::String(text)) => text.parse(),
        None | Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
            return Err(refuse(format!("is {}, expected a number", facts::kind(found.as_ref()))));
        }
    };
    let amount = amount.map_err(|defect| refuse(defect.to_string()))?;
    Ok(Addend { field: field.to_owned(), from: at.to_string(), amount })
}
