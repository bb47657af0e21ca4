//! Why an event cannot be projected.
//!
//! Messages name the entity type and the place in the event, and say what is there in words.
//! Payload does not appear in them, except the text of a version, shortened: without it nobody
//! could tell what is wrong with it.

use super::{NumberDefect, decimal};
use config::Pointer;
use ledger::{FailureClass, Version, VersionError};
use serde_json::Value;
use thiserror::Error;

/// Why an event has no plans. The class says whether trying again can help.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProjectionError {
    /// The body cannot be turned into JSON.
    #[error("the event body cannot be read: {0}")]
    Body(verifier::UnusableReason),
    /// The body is no JSON.
    #[error("the event body is no JSON: line {line}, column {column}")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// No usable entity id.
    #[error("{entity_type}: the id at {at} is {found}, expected a text or a whole number")]
    Id {
        /// The projection's entity type.
        entity_type: String,
        /// Where the id should stand.
        at: Pointer,
        /// What is there.
        found: &'static str,
    },
    /// No usable version.
    #[error("{entity_type}: {why} (at {at})")]
    Version {
        /// The projection's entity type.
        entity_type: String,
        /// Where the version should stand.
        at: Pointer,
        /// What is wrong with it.
        why: VersionProblem,
    },
    /// A value that a state row cannot hold.
    #[error("{entity_type}: the value at {at}, for the field {field}, {why}")]
    Value {
        /// The projection's entity type.
        entity_type: String,
        /// The field it is for.
        field: String,
        /// Where the value stands.
        at: Pointer,
        /// Why it cannot be held.
        why: Unstorable,
    },
    /// The fields together are more than a state row holds.
    #[error(
        "{entity_type}: the state is {bytes} bytes long, at most {bytes_max} can be stored: set fewer fields"
    )]
    StateTooLarge {
        /// The projection's entity type.
        entity_type: String,
        /// Length as JSON.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// What should be added is no amount.
    #[error("{entity_type}: the amount at {at}, for the field {field}, {why}")]
    Amount {
        /// The projection's entity type.
        entity_type: String,
        /// The field it is for.
        field: String,
        /// Where the amount should stand.
        at: Pointer,
        /// What is wrong, as the rest of the sentence.
        why: String,
    },
    /// The amount cannot be added to what is stored.
    #[error("{entity_type}: the amount at {from} cannot be added to the field {field}: {why}")]
    Sum {
        /// The projection's entity type.
        entity_type: String,
        /// The field.
        field: String,
        /// Where the amount stands.
        from: String,
        /// Why not.
        why: StoredDefect,
    },
    /// The item cannot be appended to what is stored.
    #[error("{entity_type}: nothing can be appended to the field {field}: {why}")]
    List {
        /// The entity type.
        entity_type: String,
        /// The field.
        field: String,
        /// Why not.
        why: StoredDefect,
    },
    /// The number before did not come, and without it nothing may be applied.
    #[error(
        "{entity_type}: number {number} cannot be applied, since {missing} has not come{}",
        gap(*.reached)
    )]
    Gap {
        /// The entity type.
        entity_type: String,
        /// The number that waited.
        number: Version,
        /// The number it waited for.
        missing: Version,
        /// The last number applied, if any.
        reached: Option<Version>,
    },
    /// What the provider answered cannot be used.
    #[error("in the provider's answer: {0}")]
    Answer(Box<ProjectionError>),
    /// An id that no address can hold.
    #[error("{entity_type}: the id {id:?} cannot stand in the provider's address")]
    Address {
        /// The entity type.
        entity_type: String,
        /// The id.
        id: String,
    },
    /// Two projections have one event wait in two sequences.
    #[error("{first} and {second}: one event waits in one sequence only")]
    TwoSequences {
        /// The entity type of the first.
        first: String,
        /// The entity type of the second.
        second: String,
    },
    /// What adds, worked again from the ledger.
    #[error(
        "{entity_type}: it adds, and was worked before: fed in again from the ledger it would count twice"
    )]
    CountsTwice {
        /// What it adds to.
        entity_type: String,
    },
    /// A projection that fetches and does not know how.
    #[error("{entity_type}: no table says how to fetch it")]
    NoFetch {
        /// The projection's entity type.
        entity_type: String,
    },
    /// Two projections chose one entity.
    #[error(
        "{entity_type}: the ids at {first} and {second} are the same, and one event changes an entity once"
    )]
    SameEntity {
        /// The entity type of both.
        entity_type: String,
        /// The first projection's id pointer.
        first: Pointer,
        /// The second one's.
        second: Pointer,
    },
    /// A projection written in Rust refused the event.
    #[error("{reason}")]
    Custom {
        /// One sentence without payload.
        reason: String,
        /// Whether trying again can help.
        class: FailureClass,
        /// How long to wait, where the other side said so; read for
        /// [`FailureClass::RateLimited`] only. [`ledger::retry_after_ms`] reads the header.
        retry_after_ms: Option<u64>,
    },
}

impl ProjectionError {
    /// What no retry can help, said by a projection written in Rust; `why` is one sentence without
    /// payload.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that it stands in a `map_err` as it is")]
    pub fn permanent(why: impl ToString) -> Self {
        let class = FailureClass::Permanent;
        Self::Custom { reason: why.to_string(), class, retry_after_ms: None }
    }

    /// What the failure means for the next run. An event does not change, so what is wrong with
    /// it is wrong for good; only a team's own projection may know better.
    #[must_use]
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Body(_)
            | Self::NotJson { .. }
            | Self::Id { .. }
            | Self::Version { .. }
            | Self::Value { .. }
            | Self::StateTooLarge { .. }
            | Self::Amount { .. }
            | Self::Sum { .. }
            | Self::List { .. }
            | Self::Gap { .. }
            | Self::Address { .. }
            | Self::TwoSequences { .. }
            | Self::CountsTwice { .. }
            | Self::NoFetch { .. }
            | Self::SameEntity { .. } => FailureClass::Permanent,
            // A server that is down answers in HTML; a value that cannot be stored stays so.
            Self::Answer(why) => match &**why {
                Self::NotJson { .. } => FailureClass::Transient,
                why => why.class(),
            },
            Self::Custom { class, .. } => *class,
        }
    }

    /// How long the other side asked to wait.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Custom { retry_after_ms, .. } => *retry_after_ms,
            Self::Body(_)
            | Self::NotJson { .. }
            | Self::Id { .. }
            | Self::Version { .. }
            | Self::Value { .. }
            | Self::StateTooLarge { .. }
            | Self::Amount { .. }
            | Self::Sum { .. }
            | Self::List { .. }
            | Self::Gap { .. }
            | Self::Answer(_)
            | Self::Address { .. }
            | Self::TwoSequences { .. }
            | Self::CountsTwice { .. }
            | Self::NoFetch { .. }
            | Self::SameEntity { .. } => None,
        }
    }
}

fn gap(reached: Option<Version>) -> String {
    reached.map_or_else(String::new, |reached| format!(" (the last was {reached})"))
}

/// What is wrong with a version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VersionProblem {
    /// It is no version of its unit.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// It is no text that can be read.
    #[error("the version {0}")]
    Unreadable(#[from] Unstorable),
}

/// Why a value cannot be held exactly. The texts continue "the value at /x ...".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unstorable {
    /// A number beyond the bounds.
    #[error("is or holds a number that {0}")]
    Number(NumberDefect),
    /// More levels than DynamoDB stores.
    #[error("is nested deeper than {levels_max} levels")]
    TooDeep {
        /// The limit.
        levels_max: usize,
    },
    /// DynamoDB's maps have no empty keys.
    #[error("holds an object with an empty key")]
    EmptyKey,
    /// Its text is no Unicode, or it is nested beyond reading.
    #[error("cannot be read ({0})")]
    Unreadable(String),
}

/// Why a state cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateDefect {
    /// It holds a value that a state row cannot hold.
    #[error("the state {0}")]
    Value(Unstorable),
    /// It is more than a row holds.
    #[error("the state is {bytes} bytes long, at most {bytes_max} can be stored")]
    TooLarge {
        /// Length as JSON.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}

/// Why nothing can be added or appended to a stored field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StoredDefect {
    /// What is stored is no number.
    #[error("it is {0}, expected a number")]
    Kind(&'static str),
    /// What is stored is no list.
    #[error("it is {0}, expected a list")]
    NoList(&'static str),
    /// The sum cannot be stored.
    #[error("the sum {0}")]
    Sum(NumberDefect),
}

/// Whether a state row can hold a value exactly.
pub(super) fn storable(value: &Value, levels_max: usize) -> Result<(), Unstorable> {
    fn walk(value: &Value, levels_left: usize, levels_max: usize) -> Result<(), Unstorable> {
        let deeper = || levels_left.checked_sub(1).ok_or(Unstorable::TooDeep { levels_max });
        match value {
            Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
            Value::Number(number) => {
                decimal::check(&number.to_string()).map_err(Unstorable::Number)
            }
            Value::Array(items) => {
                let left = deeper()?;
                items.iter().try_for_each(|item| walk(item, left, levels_max))
            }
            Value::Object(fields) => {
                let left = deeper()?;
                if fields.contains_key("") {
                    return Err(Unstorable::EmptyKey);
                }
                fields.values().try_for_each(|field| walk(field, left, levels_max))
            }
        }
    }
    walk(value, levels_max, levels_max)
}
