//! Lease: the exclusive step, answered with the row as it was before.
//!
//! The old row carries the body, so an inline one costs no read, and the status before, which
//! tells whether the last worker died. The new life is the pure verb's, computed on the old one:
//! should the two rules ever disagree, the row is not worked but reported.

use super::{FORMAT, read_row, refused, write::Update};
use crate::{Aws, Resource, trouble::Failed};
use ledger::{
    EventKey, Policy, ROW_FORMAT, Row, Status,
    verbs::{LeaseAsk, LeaseRefusal, lease, lease_refusal},
};
use workflow::ports::{Conditional, Leased, Trouble};

const CONDITION: &str = "#format = :format AND #attempts < :cap AND (\
    #status IN (:claimed, :waiting) \
    OR (#status = :failed AND #retry_at <= :soon) \
    OR (#status = :processing AND #lease_until < :now))";

const UPDATE: &str = "SET #status = :processing, #lease_owner = :owner, #lease_until = :until, \
    #release = :release, #epoch = #epoch + :one, #attempts = #attempts + :one";

pub(super) fn update(table: &str, key: &EventKey, ask: &LeaseAsk, policy: &Policy) -> Update {
    Update::new(table, key.as_str(), CONDITION, UPDATE)
        .number(FORMAT, ROW_FORMAT)
        .number(":cap", policy.attempts_max)
        .text(":claimed", Status::Claimed)
        .text(":waiting", Status::Waiting)
        .text(":failed", Status::Failed)
        .number(":soon", ask.now.plus(policy.lease_early_ms).0)
        .text(":processing", Status::Processing)
        .number(":now", ask.now.0)
        .text(":owner", ask.owner)
        .number(":until", ask.until.0)
        .text(":release", &ask.release)
        .number(":one", 1)
}

impl Aws {
    pub(super) async fn take_lease(
        &self,
        key: &EventKey,
        ask: &LeaseAsk,
    ) -> Conditional<Leased, LeaseRefusal> {
        let step = "lease";
        let policy = &self.settings().policy;
        let table = self.resource(step, Resource::LedgerTable)?;
        let old = match self.update(step, &update(table, key, ask, policy)).await? {
            Ok(old) => read_row(step, old)?,
            Err(found) => {
                let found = read_row(step, found)?;
                let why = lease_refusal(found.as_ref().map(|row| &row.life), ask, policy);
                return Ok(Err(refused(why, found)));
            }
        };
        let leased = old.and_then(|old| {
            let life = lease(Some(&old.life), ask, policy).ok()?;
            let was = old.life.status;
            Some(Leased { row: Row { life, ..old }, was })
        });
        leased.map(Ok).ok_or_else(|| {
            let said = "the store leased a row that the rules do not lease";
            Failed::new(Trouble::Invalid, said).at(step)
        })
    }
}
