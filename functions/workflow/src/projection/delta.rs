//! Deltas: "add 5", "append this". They need no order, only to be made exactly once.
//!
//! A delta stands on the state it was computed from: the change holds only at the revision that
//! was read. The caller reads, asks for the change, writes it in the transaction that settles the
//! row, and does all of it again where somebody else wrote in between.

use super::{Decimal, ProjectionError, StoredDefect, facts, plan::standing_on, values};
use ledger::{Change, Entity, EntityKey};
use serde_json::Value;

/// Amounts to add to fields of one entity, and items to append to lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// Whose state.
    pub entity: EntityKey,
    /// The event that adds.
    pub event_id: String,
    /// What is added; no two of one field.
    pub adds: Vec<Addend>,
    /// What is appended; to no field that is added to.
    pub appends: Vec<Appendix>,
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

/// One item for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appendix {
    /// The field of the state.
    pub field: String,
    /// The item.
    pub item: Value,
    /// How long the list may be; beyond that, what came first leaves.
    pub max: usize,
}

impl Delta {
    /// The change to make to the entity as found: its state, whole, with the amounts added and the
    /// items appended, in the order in which events are worked. A field that is absent or null
    /// counts as zero, or as an empty list; all other fields stay.
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
        for appendix in &self.appends {
            let list = state.entry(appendix.field.clone()).or_insert(Value::Null);
            appendix.append_to(list).map_err(|why| ProjectionError::List {
                entity_type: self.entity_type().to_owned(),
                field: appendix.field.clone(),
                why,
            })?;
        }
        values::fits(&state, self.entity_type())?;
        let version = found.and_then(|entity| entity.version);
        Ok(standing_on(found, &self.entity, &self.event_id, version, state))
    }

    fn entity_type(&self) -> &str {
        self.entity.entity_type()
    }
}

impl Appendix {
    fn append_to(&self, list: &mut Value) -> Result<(), StoredDefect> {
        if list.is_null() {
            *list = Value::Array(Vec::new());
        }
        let Some(items) = list.as_array_mut() else {
            return Err(StoredDefect::NoList(facts::kind(Some(list))));
        };
        items.push(self.item.clone());
        let surplus = items.len().saturating_sub(self.max);
        items.drain(..surplus);
        Ok(())
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
