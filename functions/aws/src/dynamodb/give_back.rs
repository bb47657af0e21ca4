//! Fail and wait: a lease holder gives the row back, for another run or without fault.

use super::{FORMAT, HELD, write::Update};
use ledger::{
    Bucket, EventKey, Policy, ROW_FORMAT, Status,
    verbs::{Fail, Wait},
};

const BUDGET_LEFT: &str = " AND #attempts < :cap";

const FAIL: &str = "SET #status = :failed, #error = :error, #failure_class = :class, \
    #failed_at = :at, #retry_at = :retry_at, #bucket = :bucket, #due_at = :due_at \
    REMOVE #lease_owner, #lease_until, #waiting_since";

const WAIT: &str = "SET #status = :waiting, #attempts = #attempts - :one, \
    #waiting_since = if_not_exists(#waiting_since, :now), #retry_at = :retry_at, \
    #bucket = :bucket, #due_at = :due_at \
    REMOVE #lease_owner, #lease_until";

pub(super) fn fail(table: &str, key: &EventKey, ask: &Fail, policy: &Policy) -> Update {
    let condition = format!("{HELD}{BUDGET_LEFT}");
    Update::new(table, key.as_str(), condition, FAIL)
        .number(FORMAT, ROW_FORMAT)
        .text(":processing", Status::Processing)
        .number(":epoch", ask.epoch)
        .number(":cap", policy.attempts_max)
        .text(":failed", Status::Failed)
        .text(":error", &ask.failure.error)
        .text(":class", ask.failure.class)
        .number(":at", ask.failure.at.0)
        .number(":retry_at", ask.retry_at.0)
        .text(":bucket", Bucket::Pending(ask.shard))
        .number(":due_at", ask.retry_at.plus(policy.retry_grace_ms).0)
}

pub(super) fn wait(table: &str, key: &EventKey, ask: &Wait) -> Update {
    Update::new(table, key.as_str(), HELD, WAIT)
        .number(FORMAT, ROW_FORMAT)
        .text(":processing", Status::Processing)
        .number(":epoch", ask.epoch)
        .text(":waiting", Status::Waiting)
        .number(":one", 1)
        .number(":now", ask.now.0)
        .number(":retry_at", ask.retry_at.0)
        .text(":bucket", Bucket::Pending(ask.shard))
        .number(":due_at", ask.due_at.0)
}
