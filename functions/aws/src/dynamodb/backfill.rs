//! Backfill: a version under an entity, unless it has this one, a newer one, or has ended.

use super::{Failed, Trouble, write::Update};
use crate::{
    Aws, Resource,
    item::{decode_entity, encode_state},
};
use ledger::verbs::{Backfill, BackfillRefusal, backfill_refusal};
use workflow::ports::PortError;

const STEP: &str = "backfill version";
const OLDER: &str = "attribute_not_exists(#final) AND \
    (attribute_not_exists(#version) OR #version < :version)";
const WRITE: &str = "SET #version = :version, #rank = :zero, #last_event = :nobody, \
    #updated_at = :at, #state = ";
const GIVEN: &str = ":state";
const KEPT: &str = "if_not_exists(#state, :state)";
const COUNT: &str = " ADD #revision :one";

pub(super) fn backfill(table: &str, ask: &Backfill) -> Update {
    let state = if ask.state.is_some() { GIVEN } else { KEPT };
    let none = serde_json::Map::new();
    Update::new(table, ask.entity.as_str(), OLDER, format!("{WRITE}{state}{COUNT}"))
        .number(":version", ask.version)
        .number(":zero", 0)
        .text(":nobody", "")
        .number(":at", ask.at.0)
        .number(":one", 1)
        .value(":state", encode_state(ask.state.as_ref().unwrap_or(&none)))
}

impl Aws {
    pub(super) async fn write_backfill(
        &self,
        ask: &Backfill,
    ) -> Result<Result<(), BackfillRefusal>, PortError> {
        let update = backfill(self.resource(STEP, Resource::StateTable)?, ask);
        let Err(found) = self.update(STEP, &update).await? else {
            return Ok(Ok(()));
        };
        let found = found.map(|item| decode_entity(&item)).transpose();
        let found =
            found.map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(STEP))?;
        Ok(Err(backfill_refusal(found.as_ref(), ask)))
    }
}
