//! The values of an event, or of a provider's answer, as what the state needs: an id, a version,
//! fields, amounts. Each refusal names the entity type and the place.

use super::{
    Addend, Appendix, Decimal, ProjectionError, StateDefect, Unstorable, VersionProblem, error,
    facts::{self, Facts},
};
use config::{Expr, Order, Pointer};
use ledger::{EntityKey, Unit, Version};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Bytes of JSON that a state may have. DynamoDB stores items of 400 KB and counts up to half as
/// much again for lists of short numbers.
const STATE_BYTES_MAX: usize = 256_000;

/// Levels of lists and objects inside a field. DynamoDB stores 32, the state itself included.
const LEVELS_MAX: usize = 30;

/// Every place a projection looks at.
pub(super) fn pointers(projection: &config::Projection) -> Vec<&Pointer> {
    let by = match &projection.order {
        Order::Version { by, .. } | Order::Sequence { by, .. } => Some(by),
        Order::Fetch | Order::None => None,
    };
    let differences = projection.add.values().chain(projection.append.values());
    [&projection.id]
        .into_iter()
        .chain(by)
        .chain(pointers_of(&projection.set))
        .chain(differences)
        .collect()
}

/// Every place that fields are taken from.
pub(super) fn pointers_of(set: &BTreeMap<String, Expr>) -> impl Iterator<Item = &Pointer> {
    set.values().filter_map(|expr| match expr {
        Expr::At(pointer) => Some(pointer),
        Expr::Constant(_) => None,
    })
}

pub(super) fn version(
    projection: &config::Projection,
    facts: &Facts<'_, '_>,
    by: &Pointer,
    unit: Unit,
) -> Result<Version, ProjectionError> {
    let read = || -> Result<Version, VersionProblem> {
        Ok(Version::read(facts.scalar(by)?.as_ref(), unit)?)
    };
    read().map_err(|why| ProjectionError::Version {
        entity_type: projection.entity_type.clone(),
        at: by.clone(),
        why,
    })
}

/// The state row's key, and the id as the provider writes it. An id is a text or a whole number,
/// and both spell the same key.
pub(super) fn entity(
    projection: &config::Projection,
    facts: &Facts<'_, '_>,
) -> Result<(EntityKey, String), ProjectionError> {
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
    let key = EntityKey::new(&projection.namespace, &projection.entity_type, &id);
    Ok((key.map_err(|_| refuse("blank"))?, id))
}

/// The state that `set` describes: every field, null where there is no such place.
pub(super) fn state(
    set: &BTreeMap<String, Expr>,
    entity_type: &str,
    facts: &Facts<'_, '_>,
) -> Result<Map<String, Value>, ProjectionError> {
    let mut state = Map::new();
    for (field, expr) in set {
        let value = match expr {
            Expr::Constant(value) => value.clone(),
            Expr::At(at) => value(entity_type, field, at, facts)?,
        };
        state.insert(field.clone(), value);
    }
    fits(&state, entity_type)?;
    Ok(state)
}

/// Whether a state row holds this state.
pub(super) fn fits(state: &Map<String, Value>, entity_type: &str) -> Result<(), ProjectionError> {
    match bytes_too_many(state) {
        Some(bytes) => Err(ProjectionError::StateTooLarge {
            entity_type: entity_type.to_owned(),
            bytes,
            bytes_max: STATE_BYTES_MAX,
        }),
        None => Ok(()),
    }
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

/// One value that can be stored; null where there is no such place.
fn value(
    entity_type: &str,
    field: &str,
    at: &Pointer,
    facts: &Facts<'_, '_>,
) -> Result<Value, ProjectionError> {
    let found = facts.value(at).and_then(|found| match found {
        Some(value) => error::storable(&value, LEVELS_MAX).map(|()| value),
        None => Ok(Value::Null),
    });
    found.map_err(|why: Unstorable| ProjectionError::Value {
        entity_type: entity_type.to_owned(),
        field: field.to_owned(),
        at: at.clone(),
        why,
    })
}

/// What a change adds, and what it appends.
pub(super) fn differences(
    projection: &config::Projection,
    facts: &Facts<'_, '_>,
) -> Result<(Vec<Addend>, Vec<Appendix>), ProjectionError> {
    let adds = projection.add.iter().map(|(field, at)| addend(projection, field, at, facts));
    let adds = adds.collect::<Result<_, _>>()?;
    let appends = projection.append.iter().map(|(field, at)| {
        // One level less: the list itself is one.
        let item = value(&projection.entity_type, field, at, facts)?;
        Ok(Appendix { field: field.clone(), item, max: projection.append_max })
    });
    Ok((adds, appends.collect::<Result<_, ProjectionError>>()?))
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
