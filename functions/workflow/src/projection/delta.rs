//! Deltas: "add 5". They need no order, only to be made exactly once.
//!
//! A delta stands on the state it was computed from: the change holds only at the revision that
//! was read. The caller reads, asks for the change, writes it in the transaction that settles the
//! row, and does all of it again where somebody else wrote in between.

use super::{Decimal, ProjectionError, StoredDefect, facts};
use ledger::{Change, Entity, EntityKey, Guard};
use serde_json::Value;
use std::collections::BTreeSet;

/// Amounts to add to fields of one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// Whose state.
    pub entity: EntityKey,
    /// The event that adds.
    pub event_id: String,
    /// What is added; no two of one field.
    pub adds: Vec<Addend>,
}

/// One amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addend {
    /// The field of the state.
    pub field: String,
    /// Where the amount stands in the event, for messages.
    pub from: String,
    /// The amount.
    pub amount: Decimal,
}

impl Delta {
    /// The change to make to the entity as found: its state, whole, with the amounts added. A
    /// field that is absent or null counts as zero; fields that nothing is added to stay.
    pub fn change(&self, found: Option<&Entity>) -> Result<Change, ProjectionError> {
        let mut state = found.map(|entity| entity.state.clone()).unwrap_or_default();
        for addend in &self.adds {
            let sum = sum(state.get(&addend.field), &addend.amount).map_err(|why| {
                ProjectionError::Sum {
                    entity_type: self.entity_type().to_owned(),
                    field: addend.field.clone(),
                    from: addend.from.clone(),
                    why,
                }
            })?;
            state.insert(addend.field.clone(), Value::Number(sum.to_number()));
        }
        Ok(Change {
            entity: self.entity.clone(),
            guard: Guard::Revision {
                read: found.map(|entity| entity.revision),
                version: found.and_then(|entity| entity.version),
                event_id: self.event_id.clone(),
            },
            state,
            is_final: false,
            leaves: BTreeSet::new(),
        })
    }

    /// The middle of `<namespace>#<type>#<id>`.
    fn entity_type(&self) -> &str {
        self.entity.as_str().split('#').nth(1).unwrap_or_default()
    }
}

fn sum(stored: Option<&Value>, amount: &Decimal) -> Result<Decimal, StoredDefect> {
    let stored = match stored {
        None | Some(Value::Null) => Decimal::zero(),
        Some(Value::Number(number)) => {
            number.to_string().parse().map_err(|_| StoredDefect::Kind("no number it could hold"))?
        }
        other @ Some(Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
            return Err(StoredDefect::Kind(facts::kind(other)));
        }
    };
    stored.plus(amount).map_err(StoredDefect::Sum)
}
