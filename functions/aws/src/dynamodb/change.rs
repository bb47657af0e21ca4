//! One entity's change: the guard as a condition, the new state as a write.
//!
//! Read beside `ledger::Change::make`. `final` and `version` may be absent from a row, or the row
//! itself; an absent version is older than every version.

use super::write::Update;
use crate::item::encode_state;
use aws_sdk_dynamodb::types::AttributeValue;
use ledger::{Change, Guard, Millis, Tie};

const NEWER: &str = "attribute_not_exists(#version) OR #version < :version";
const TIED: &str = " OR (#version = :version AND (#rank < :rank \
    OR (#rank = :rank AND #last_event < :event)))";
const NOT_FINAL: &str = "attribute_not_exists(#final)";
const UNWRITTEN: &str = "attribute_not_exists(#pk)";
const UNMOVED: &str = "#revision = :read";

const WRITE: &str = "SET #state = :state, #rank = :rank, #last_event = :event, \
    #updated_at = :now";
const VERSION: &str = ", #version = :version";
const FINAL: &str = ", #final = :true";
const NO_VERSION: &str = " REMOVE #version";
const COUNT: &str = " ADD #revision :one";
const LEAVE: &str = " DELETE #waiting :leaves";

pub(super) fn change(table: &str, change: &Change, now: Millis) -> Update {
    let update = Update::new(table, change.entity.as_str(), condition(change), write(change))
        .value(":state", encode_state(&change.state))
        .number(":now", now.0)
        .number(":one", 1);
    let update = match &change.guard {
        Guard::Newer { stamp, tie: Tie::Rank | Tie::Skip } => {
            update.number(":rank", stamp.rank).text(":event", &stamp.event_id)
        }
        Guard::Revision { read, event_id, version: _ } => {
            let update = update.number(":rank", 0).text(":event", event_id);
            match read {
                Some(revision) => update.number(":read", revision),
                None => update,
            }
        }
    };
    let update = match change.version() {
        Some(version) => update.number(":version", version),
        None => update,
    };
    let update =
        if change.is_final { update.value(":true", AttributeValue::Bool(true)) } else { update };
    if change.leaves.is_empty() {
        update
    } else {
        update.value(":leaves", AttributeValue::Ss(change.leaves.iter().cloned().collect()))
    }
}

fn condition(change: &Change) -> String {
    match &change.guard {
        Guard::Newer { tie, stamp: _ } => {
            let tied = match tie {
                Tie::Rank => TIED,
                Tie::Skip => "",
            };
            if change.is_final {
                format!("{NOT_FINAL} OR {NEWER}{tied}")
            } else {
                format!("{NOT_FINAL} AND ({NEWER}{tied})")
            }
        }
        Guard::Revision { read: None, .. } => UNWRITTEN.to_owned(),
        Guard::Revision { read: Some(_), .. } => format!("{NOT_FINAL} AND {UNMOVED}"),
    }
}

fn write(change: &Change) -> String {
    let (version, no_version) = match change.version() {
        Some(_) => (VERSION, ""),
        None => ("", NO_VERSION),
    };
    let is_final = if change.is_final { FINAL } else { "" };
    let leave = if change.leaves.is_empty() { "" } else { LEAVE };
    format!("{WRITE}{version}{is_final}{no_version}{COUNT}{leave}")
}
