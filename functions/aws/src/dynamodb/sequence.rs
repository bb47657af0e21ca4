//! Wait in sequence: the row gives its lease back and its name joins the set on the state row, in
//! one transaction.

use super::{give_back, read_row, refused, transaction::Verdict, write::Update};
use crate::{Aws, Resource, item::decode_entity, trouble::Failed};
use aws_sdk_dynamodb::types::AttributeValue;
use ledger::{
    EntityKey, EventKey, Life, Millis, Policy, Status, Token,
    verbs::{Birth, Claim, Wait, WaitInSequence, WaitInSequenceRefusal, wait_in_sequence_refusal},
};
use workflow::ports::{Conditional, Trouble};

const STEP: &str = "wait in sequence";

const STILL_MISSING: &str = "(attribute_not_exists(#version) OR #version < :predecessor) \
    AND (attribute_not_exists(#waiting) OR size(#waiting) < :most OR contains(#waiting, :member))";
const JOIN: &str = "ADD #waiting :members, #revision :one";

impl Aws {
    /// Gives the row of `key` back until its predecessor on `entity` has come.
    pub(super) async fn wait_for_predecessor(
        &self,
        key: &EventKey,
        entity: &EntityKey,
        ask: &WaitInSequence,
    ) -> Conditional<(), WaitInSequenceRefusal> {
        let policy = &self.settings().policy;
        let ledger = self.resource(STEP, Resource::LedgerTable)?;
        let state = self.resource(STEP, Resource::StateTable)?;
        let wait = Wait {
            epoch: ask.epoch,
            now: ask.now,
            retry_at: ask.due_at(),
            due_at: ask.due_at(),
            shard: ask.waiter.key.shard(),
        };
        let updates = [give_back::wait(ledger, key, &wait), join(state, entity, ask, policy)];
        let Err(verdicts) = self.transact(STEP, key, ask.epoch, &updates).await? else {
            return Ok(Ok(()));
        };
        let mut verdicts = verdicts.into_iter();
        let born = Claim { birth: Birth::Claimed, nonce: Token(0), received_at: Millis(0) };
        let held = Life { status: Status::Processing, epoch: ask.epoch, ..born.life(key, policy) };
        let row = match verdicts.next() {
            Some(Verdict::Refused(found)) => Some(read_row(STEP, found)?),
            Some(Verdict::Passed) | None => None,
        };
        let life = row.as_ref().map_or(Some(&held), |row| row.as_ref().map(|row| &row.life));
        let found = match verdicts.next() {
            Some(Verdict::Refused(Some(item))) => Some(
                decode_entity(&item)
                    .map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(STEP))?,
            ),
            Some(Verdict::Refused(None) | Verdict::Passed) | None => None,
        };
        let why = wait_in_sequence_refusal(life, found.as_ref(), ask, policy);
        Ok(Err(refused(why, row.flatten())))
    }
}

pub(super) fn join(
    table: &str,
    entity: &EntityKey,
    ask: &WaitInSequence,
    policy: &Policy,
) -> Update {
    let member = ask.waiter.to_string();
    Update::new(table, entity.as_str(), STILL_MISSING, JOIN)
        .number(":predecessor", ask.predecessor())
        .number(":most", policy.waiters_max)
        .text(":member", &member)
        .value(":members", AttributeValue::Ss(vec![member]))
        .number(":one", 1)
}
