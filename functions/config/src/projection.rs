//! A projection: which events change which entity, in what order, and how.

mod order;
pub(crate) mod read;

use crate::{Expr, Fetch, Pointer};
use ledger::{Unit, Version};
use std::{collections::BTreeMap, sync::Arc};

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
    /// The state after the change, field by field; with [`Order::Version`] and
    /// [`Order::Sequence`] only.
    pub set: BTreeMap<String, Expr>,
    /// Fields to which the number at a place is added; with [`Order::None`] only.
    pub add: BTreeMap<String, Pointer>,
    /// Lists at whose end the value at a place is put; with [`Order::None`] only.
    pub append: BTreeMap<String, Pointer>,
    /// How long those lists may be: beyond that, what came first leaves.
    pub append_max: usize,
    /// Whether the change is a tombstone; with [`Order::Version`] and [`Order::Sequence`] only.
    pub is_final: bool,
    /// How the provider is asked; where, and only where, the order may have it asked.
    pub fetch: Option<Arc<Fetch>>,
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
    /// The event is a hint; what the provider says now is the state.
    Fetch,
    /// Numbers without gaps: each waits for its predecessor.
    Sequence {
        /// Where the number stands in the event.
        by: Pointer,
        /// The first number.
        start: Version,
        /// How long a missing number is waited for.
        timeout_ms: u64,
        /// What is done then.
        on_gap: OnGap,
    },
    /// No order is needed: each change is a difference, made exactly once.
    None,
}

/// Which of two equal versions wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tie {
    /// The type later in the lists `on` of the entity type, then the greater event id.
    Rank,
    /// Neither: the provider is asked.
    Fetch,
    /// The first to arrive.
    Skip,
}

/// What is done about a number that does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnGap {
    /// The provider is asked for the present state, and the sequence goes on behind it.
    Fetch,
    /// The next one is applied without it.
    Apply,
    /// The next one is dead, for a person to look at.
    Dead,
}

impl Order {
    /// Where the order has the provider asked: the key that says so.
    pub(crate) const fn fetches(&self) -> Option<&'static str> {
        match self {
            Self::Fetch => Some("strategy"),
            Self::Version { tie: Tie::Fetch, .. } => Some("tie"),
            Self::Sequence { on_gap: OnGap::Fetch, .. } => Some("on_gap"),
            Self::Version { .. } | Self::Sequence { .. } | Self::None => None,
        }
    }
}

impl Projection {
    /// Whether events of this type change the entity.
    #[must_use]
    pub fn is_on(&self, event_type: &str) -> bool {
        self.on.iter().any(|known| known == event_type)
    }

    /// The rank of an event type among equal versions of this entity type: the lists `on` that the
    /// source has for the entity type one after another, and in them their types, where the type is
    /// named first. Lists only grow at their end, and new ones come last, so a rank, once stored,
    /// keeps its meaning. `None` for a type that is not in `on`.
    #[must_use]
    pub fn rank_of(&self, event_type: &str) -> Option<u32> {
        let mut ranked = self.on.iter().zip(&self.ranks);
        ranked.find(|(known, _)| known.as_str() == event_type).map(|(_, rank)| *rank)
    }
}
