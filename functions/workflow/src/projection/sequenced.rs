//! Sequences: number *n* is applied on top of *n* - 1, and waits for it.
//!
//! Whose turn it is, and who is woken, is decided by the ledger ([`ledger::turn`],
//! [`ledger::succession`]). Here stands what a number does when its time is up, or when so many
//! wait that it finds no room: what the configuration says, and the sequence goes on behind it.

use super::{ProjectionError, Step, Told, plan::standing_on};
use config::{Fetch, OnGap};
use ledger::{Entity, EntityKey, Turn, Version, is_behind_another, succession, turn};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A change with a place in a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequenced {
    /// Whose state.
    pub entity: EntityKey,
    /// The entity's id as the provider writes it.
    pub id: String,
    /// The event that makes the change.
    pub event_id: String,
    /// Its number.
    pub number: Version,
    /// The sequence's first number.
    pub start: Version,
    /// How long the number before it is waited for.
    pub timeout_ms: u64,
    /// What is done then.
    pub on_gap: OnGap,
    /// The state after it.
    pub state: Map<String, Value>,
    /// Whether it is a tombstone.
    pub is_final: bool,
    /// How the provider is asked; with [`OnGap::Fetch`].
    pub fetch: Option<Arc<Fetch>>,
}

impl Sequenced {
    pub(super) fn step(
        &self,
        found: Option<&Entity>,
        waited_ms: Option<u64>,
    ) -> Result<Step, ProjectionError> {
        match turn(found, self.number, self.start) {
            Turn::Superseded => return Ok(Step::Superseded),
            Turn::Now => return Ok(self.write(found, self.state.clone(), self.is_final)),
            Turn::Early => {}
        }
        let is_over = |timeout_ms| waited_ms.is_some_and(|ms| ms >= timeout_ms);
        let mut timeout_ms = self.timeout_ms;
        // Who came later with a lower number still has time to wait, and goes first. Not for ever: its
        // name stays in the set if its row ended another way.
        if is_over(timeout_ms) && is_behind_another(found, self.number) {
            timeout_ms = timeout_ms.saturating_mul(2);
        }
        if !is_over(timeout_ms) {
            return Ok(Step::Wait { number: self.number, timeout_ms });
        }
        match (self.on_gap, &self.fetch) {
            // A tombstone is not asked about: that it ends here is what the event says.
            (OnGap::Fetch, Some(_)) if !self.is_final => Ok(Step::Fetch),
            (OnGap::Apply | OnGap::Fetch, _) => {
                Ok(self.write(found, self.state.clone(), self.is_final))
            }
            (OnGap::Dead, _) => Err(ProjectionError::Gap {
                entity_type: self.entity.entity_type().to_owned(),
                number: self.number,
                missing: self.number.predecessor(),
                reached: found.and_then(|entity| entity.version),
            }),
        }
    }

    pub(super) fn told(&self, found: Option<&Entity>, told: &Told) -> Step {
        self.write(found, told.state.clone(), told.is_final)
    }

    fn write(&self, found: Option<&Entity>, state: Map<String, Value>, is_final: bool) -> Step {
        let version = Some(self.number);
        let mut change = standing_on(found, &self.entity, &self.event_id, version, state);
        let after = succession(found, self.number);
        change.is_final = is_final;
        change.leaves = after.leaves;
        Step::Write { change, wakes: after.wakes }
    }
}
