//! Settle and resolve: the two ways a row ends without a change to an entity. Their writes agree
//! with the row's part of [`super::apply`].

use super::{FORMAT, HELD, write::Update};
use crate::item::encode_effects;
use ledger::{
    Effect, EventKey, Millis, Outcome, Policy, ROW_FORMAT, Status,
    verbs::{Resolve, Settle},
};

const SETTLE: &str = "SET #status = :settled, #outcome = :outcome, #settled_at = :at, \
    #expires_at = :expires";
const EFFECTS: &str = ", #effects = :effects";
const LEAVE: &str = " REMOVE #bucket, #due_at, #lease_owner, #lease_until, #waiting_since";

const RESOLVE_CONDITION: &str = "#format = :format AND #status = :dead";
const RESOLVE: &str = "SET #status = :settled, #outcome = :outcome, #settled_at = :at, \
    #expires_at = :expires, #resolved_by = :by, #note = :note REMOVE #bucket, #due_at";

/// The row's end, under the holder's epoch.
pub(super) fn settle(
    table: &str,
    key: &EventKey,
    ask: &Settle,
    effects: &[Effect],
    policy: &Policy,
) -> Update {
    let remembered = if effects.is_empty() { "" } else { EFFECTS };
    let expression = format!("{SETTLE}{remembered}{LEAVE}");
    let update = Update::new(table, key.as_str(), HELD, expression)
        .number(FORMAT, ROW_FORMAT)
        .text(":processing", Status::Processing)
        .number(":epoch", ask.epoch);
    let update = end(update, ask.outcome, ask.settled_at, policy);
    if effects.is_empty() { update } else { update.value(":effects", encode_effects(effects)) }
}

/// A person's end of a dead row.
pub(super) fn resolve(table: &str, key: &EventKey, ask: &Resolve, policy: &Policy) -> Update {
    let update = Update::new(table, key.as_str(), RESOLVE_CONDITION, RESOLVE)
        .number(FORMAT, ROW_FORMAT)
        .text(":dead", Status::Dead)
        .text(":by", &ask.by)
        .text(":note", &ask.note);
    end(update, Outcome::Resolved, ask.settled_at, policy)
}

fn end(update: Update, outcome: Outcome, at: Millis, policy: &Policy) -> Update {
    let expires_at = at.seconds_after(policy.retention_seconds());
    update
        .text(":settled", Status::Settled)
        .text(":outcome", outcome)
        .number(":at", at.0)
        .number(":expires", expires_at.0)
}
