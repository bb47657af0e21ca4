//! Bury and forced bury: the row is dead, with its reason.

use super::{FORMAT, HELD, write::Update};
use ledger::{
    EventKey, Failure, FailureClass, Open, Policy, ROW_FORMAT, Status,
    verbs::{Bury, ForcedBury},
};

const BUDGET_SPENT: &str = " AND #attempts >= :cap";

const ABANDONED: &str = "#format = :format AND #attempts >= :cap AND (\
    #status IN (:claimed, :failed, :waiting) \
    OR (#status = :processing AND #lease_until < :now))";

const BURY: &str = "SET #status = :dead, #error = :error, #failure_class = :class, \
    #failed_at = :at, #bucket = :bucket, #due_at = :due_at \
    REMOVE #lease_owner, #lease_until, #waiting_since";

/// By the holder: a permanent failure at once, any other when the budget is spent.
pub(super) fn bury(table: &str, key: &EventKey, ask: &Bury, policy: &Policy) -> Update {
    let held = match ask.failure.class {
        FailureClass::Permanent => Update::new(table, key.as_str(), HELD, BURY),
        FailureClass::RateLimited | FailureClass::Transient => {
            let condition = format!("{HELD}{BUDGET_SPENT}");
            Update::new(table, key.as_str(), condition, BURY).number(":cap", policy.attempts_max)
        }
    };
    let held = held
        .number(FORMAT, ROW_FORMAT)
        .text(":processing", Status::Processing)
        .number(":epoch", ask.epoch);
    buried(held, &ask.failure, ask.open)
}

/// By anybody, when nobody can be working on the row any more.
pub(super) fn forced(table: &str, key: &EventKey, ask: &ForcedBury, policy: &Policy) -> Update {
    let abandoned = Update::new(table, key.as_str(), ABANDONED, BURY)
        .number(FORMAT, ROW_FORMAT)
        .number(":cap", policy.attempts_max)
        .text(":claimed", Status::Claimed)
        .text(":failed", Status::Failed)
        .text(":waiting", Status::Waiting)
        .text(":processing", Status::Processing)
        .number(":now", ask.now.0);
    buried(abandoned, &ask.failure, ask.open)
}

fn buried(update: Update, failure: &Failure, open: Open) -> Update {
    update
        .text(":dead", Status::Dead)
        .text(":error", &failure.error)
        .text(":class", failure.class)
        .number(":at", failure.at.0)
        .text(":bucket", open.bucket)
        .number(":due_at", open.due_at.0)
}
