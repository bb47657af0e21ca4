//! Redrive and sweep: what brings a row back before somebody's eyes.

use super::{FORMAT, write::Update};
use ledger::{
    Bucket, EventKey, FailureClass, Policy, ROW_FORMAT, Status,
    verbs::{Redrive, RedriveBy, Sweep},
};

const DEAD: &str = "#format = :format AND #status = :dead";
const BURIED_BEFORE: &str = " AND #failed_at <= :sent";
/// A missing class is not the permanent one, and comparing with nothing is left to no store.
const STILL_DUE: &str = " AND #due_at = :seen \
    AND (attribute_not_exists(#failure_class) OR #failure_class <> :permanent)";

const REVIVE: &str = "SET #status = :failed, #attempts = :zero, #retry_at = :now, \
    #redriven_at = :now, #bucket = :bucket, #due_at = :due_at";
const NEW_BUILD: &str = ", #budget_release = :release";
const BY_HAND: &str = ", #redriven_by = :by, #redrive_reason = :reason, #redriven_by_at = :now";
const FORGET: &str = " REMOVE #waiting_since";
const COUNT: &str = " ADD #redrives :one";

const OVERDUE: &str = "#format = :format AND #due_at = :seen AND #bucket = :bucket";
const PUSH: &str = "SET #due_at = :next ADD #sweeps :one";

pub(super) fn redrive(table: &str, key: &EventKey, ask: &Redrive, policy: &Policy) -> Update {
    let pk = key.as_str();
    let update = match &ask.by {
        RedriveBy::Message { sent_at } => {
            let condition = format!("{DEAD}{BURIED_BEFORE}");
            Update::new(table, pk, condition, format!("{REVIVE}{FORGET}"))
                .number(":sent", sent_at.minus(policy.redrive_margin_ms).0)
        }
        RedriveBy::Steward { seen_due_at, release } => {
            let condition = format!("{DEAD}{STILL_DUE}");
            let new_build = if release.is_some() { NEW_BUILD } else { "" };
            let expression = format!("{REVIVE}{new_build}{FORGET}{COUNT}");
            let update = Update::new(table, pk, condition, expression)
                .number(":seen", seen_due_at.0)
                .text(":permanent", FailureClass::Permanent)
                .number(":one", 1);
            match release {
                Some(release) => update.text(":release", release),
                None => update,
            }
        }
        RedriveBy::Person { by, reason } => {
            Update::new(table, pk, DEAD, format!("{REVIVE}{BY_HAND}{FORGET}"))
                .text(":by", by)
                .text(":reason", reason)
        }
    };
    update
        .number(FORMAT, ROW_FORMAT)
        .text(":dead", Status::Dead)
        .text(":failed", Status::Failed)
        .number(":zero", 0)
        .number(":now", ask.now.0)
        .text(":bucket", Bucket::Pending(ask.shard))
        .number(":due_at", ask.now.plus(policy.retry_grace_ms).0)
}

pub(super) fn sweep(table: &str, key: &EventKey, ask: &Sweep, policy: &Policy) -> Update {
    Update::new(table, key.as_str(), OVERDUE, PUSH)
        .number(FORMAT, ROW_FORMAT)
        .number(":seen", ask.seen_due_at.0)
        .text(":bucket", Bucket::Pending(ask.shard))
        .number(":next", ask.next_due_at(policy).0)
        .number(":one", 1)
}
