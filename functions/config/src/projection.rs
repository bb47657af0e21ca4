//! A projection: which events change which entity, in what order, and how.

pub(crate) mod read;

use crate::{Expr, Pointer};
use ledger::{Tie, Unit};
use std::collections::BTreeMap;

/// How an event becomes a change of one entity.
#[derive(Debug, Clone)]
pub struct Projection {
    /// Event types, compared exactly. Never empty.
    pub on: Vec<String>,
    /// The entity's type, such as `subscription`: `[a-z0-9_-]{1,64}`.
    pub entity_type: String,
    /// What entity ids are unique within: the source's name, or a name that sources share.
    pub namespace: String,
    /// Where the entity's id stands in the event.
    pub id: Pointer,
    /// What puts two changes of one entity into order.
    pub order: Order,
    /// The state after the change, field by field; with [`Order::Version`] only.
    pub set: BTreeMap<String, Expr>,
    /// Fields to which the number at a place is added; with [`Order::None`] only.
    pub add: BTreeMap<String, Pointer>,
    /// Whether the change is a tombstone; with [`Order::Version`] only.
    pub is_final: bool,
    /// The rank of each type of `on`.
    pub(crate) ranks: Vec<u32>,
}

/// What puts changes into order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Newer versions win.
    Version {
        /// Where the version stands in the event.
        by: Pointer,
        /// How it is written.
        unit: Unit,
        /// Which of two equal versions wins.
        tie: Tie,
    },
    /// No order is needed: each change is a difference, made exactly once.
    None,
}

impl Projection {
    /// Whether events of this type change the entity.
    #[must_use]
    pub fn is_on(&self, event_type: &str) -> bool {
        self.on.iter().any(|known| known == event_type)
    }

    /// The rank of an event type among equal versions of this entity type: its place in the lists
    /// `on` of the source, one after another, where the entity type names it first. Lists only
    /// grow at their end, so a rank, once stored, keeps its meaning. `None` for a type that is
    /// not in `on`.
    #[must_use]
    pub fn rank_of(&self, event_type: &str) -> Option<u32> {
        let mut ranked = self.on.iter().zip(&self.ranks);
        ranked.find(|(known, _)| known.as_str() == event_type).map(|(_, rank)| *rank)
    }
}
