//! One transaction: all of its updates or none, told apart from every other by its token.
//!
//! The token is a hash of what is written, so the same attempt sent twice is one transaction to
//! DynamoDB for ten minutes, and a changed one is another. After that the epoch in the row's
//! condition protects.

use super::{
    cancellation::{self, Reading},
    write::{Update, key},
};
use crate::{Aws, item::Item, trouble::Failed};
use aws_sdk_dynamodb::{
    operation::transact_write_items::TransactWriteItemsError,
    types::{
        AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update as SdkUpdate,
    },
};
use ledger::EventKey;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use workflow::{
    ports::{PortError, Trouble},
    telemetry::shown,
};

/// Items of one transaction.
const ITEMS_MAX: usize = 100;
/// Hexadecimal digits of a client request token, of at most 36 characters.
const TOKEN_DIGITS: usize = 32;

/// What became of one update of a cancelled transaction.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// Its condition held, or was not looked at.
    Passed,
    /// Its condition did not hold on this item, or there is none.
    Refused(Option<Item>),
}

impl Aws {
    /// Writes all updates or none. The first is the row's own, whose fence outranks the rest.
    pub(super) async fn transact(
        &self,
        step: &'static str,
        key: &EventKey,
        epoch: u64,
        updates: &[Update],
    ) -> Result<Result<(), Vec<Verdict>>, PortError> {
        check(updates).map_err(|failed| failed.at(step))?;
        let items: Result<Vec<_>, Failed> = updates.iter().map(item).collect();
        let items = items.map_err(|failed| failed.at(step))?;
        let call = self.clients.dynamodb.transact_write_items();
        let call =
            call.set_transact_items(Some(items)).client_request_token(token(key, epoch, updates));
        let write = || {
            let call = call.clone();
            async move {
                let Err(error) = call.send().await else { return Ok(Ok(())) };
                match error.as_service_error() {
                    Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                        match cancellation::read(cancelled.cancellation_reasons()) {
                            Reading::Refused(verdicts) => Ok(Err(verdicts)),
                            Reading::Failed(failed) => Err(failed),
                        }
                    }
                    Some(_) | None => Err(Failed::from_sdk(&error)),
                }
            }
        };
        let written = Box::pin(self.patiently(passes, write)).await;
        written.map_err(|failed| failed.at(step))
    }
}

/// The SDK sees one error where a transaction has a reason for each item, so it retries neither
/// conflicts nor throttled items.
const fn passes(trouble: Trouble) -> bool {
    match trouble {
        Trouble::Conflict | Trouble::Throttled => true,
        Trouble::Unavailable | Trouble::Invalid => false,
    }
}

fn check(updates: &[Update]) -> Result<(), Failed> {
    if updates.len() > ITEMS_MAX {
        let said = format!("{} writes, a transaction takes {ITEMS_MAX}", updates.len());
        return Err(Failed::new(Trouble::Invalid, said));
    }
    let mut seen = BTreeSet::new();
    match updates.iter().find(|update| !seen.insert((&update.table, &update.pk))) {
        None => Ok(()),
        Some(twice) => {
            let said = format!("two writes to {} in one transaction", shown(&twice.pk));
            Err(Failed::new(Trouble::Invalid, said))
        }
    }
}

fn item(update: &Update) -> Result<TransactWriteItem, Failed> {
    let update = SdkUpdate::builder()
        .table_name(&update.table)
        .set_key(Some(key(&update.pk)))
        .condition_expression(&update.condition)
        .update_expression(&update.expression)
        .set_expression_attribute_names(Some(update.names()))
        .set_expression_attribute_values(Some(update.values()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build();
    let update = update.map_err(|error| Failed::new(Trouble::Invalid, error.to_string()))?;
    Ok(TransactWriteItem::builder().update(update).build())
}

/// The first 32 hexadecimal digits of the SHA-256 of the row's key, its epoch and every write.
fn token(key: &EventKey, epoch: u64, updates: &[Update]) -> String {
    let mut hash = Sha256::new();
    frame(&mut hash, key.as_str().as_bytes());
    frame(&mut hash, &epoch.to_be_bytes());
    for update in updates {
        for part in [&update.table, &update.pk, &update.condition, &update.expression] {
            frame(&mut hash, part.as_bytes());
        }
        for (name, value) in &update.values {
            frame(&mut hash, name.as_bytes());
            absorb(&mut hash, value);
        }
    }
    let mut digits = hex::encode(hash.finalize());
    digits.truncate(TOKEN_DIGITS);
    digits
}

/// Hashes bytes with their length, so that no two lists of parts read alike.
fn frame(hash: &mut Sha256, part: &[u8]) {
    hash.update(part.len().to_be_bytes());
    hash.update(part);
}

/// Hashes a value; a map's members in the order of their names, which the map itself forgets.
fn absorb(hash: &mut Sha256, value: &AttributeValue) {
    let mut leaf = |kind: &[u8], part: &[u8]| {
        hash.update(kind);
        frame(hash, part);
    };
    match value {
        AttributeValue::S(text) => leaf(b"S", text.as_bytes()),
        AttributeValue::N(digits) => leaf(b"N", digits.as_bytes()),
        AttributeValue::B(bytes) => leaf(b"B", bytes.as_ref()),
        AttributeValue::Bool(flag) => leaf(b"BOOL", &[u8::from(*flag)]),
        AttributeValue::Null(_) => leaf(b"NULL", &[]),
        AttributeValue::Ss(texts) => {
            let texts: BTreeSet<&String> = texts.iter().collect();
            leaf(b"SS", &texts.len().to_be_bytes());
            for text in texts {
                frame(hash, text.as_bytes());
            }
        }
        AttributeValue::L(items) => {
            leaf(b"L", &items.len().to_be_bytes());
            for item in items {
                absorb(hash, item);
            }
        }
        AttributeValue::M(members) => {
            let members: BTreeMap<&String, &AttributeValue> = members.iter().collect();
            leaf(b"M", &members.len().to_be_bytes());
            for (name, member) in members {
                frame(hash, name.as_bytes());
                absorb(hash, member);
            }
        }
        // Oncehook writes no other kind.
        other => leaf(b"?", format!("{other:?}").as_bytes()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::item::encode_json;
    use serde_json::json;

    fn write(pk: &str, state: &serde_json::Value) -> Update {
        let condition = "attribute_not_exists(#pk)";
        Update::new("state", pk, condition, "SET #state = :state")
            .value(":state", encode_json(state))
    }

    #[test]
    fn the_same_writes_have_the_same_token_and_any_change_another() {
        let key = EventKey::parse("s#evt_1").unwrap();
        let state: serde_json::Value =
            (0..40).map(|n| (format!("name{n}"), json!({"n": n, "list": [n, null]}))).collect();
        let writes = || vec![write("s#thing#1", &state), write("b", &json!(1))];
        let first = token(&key, 1, &writes());
        assert_eq!(first.len(), 32);
        assert_eq!(first, token(&key, 1, &writes()), "whatever order a map has in memory");
        assert_ne!(first, token(&key, 2, &writes()));
        assert_ne!(first, token(&EventKey::parse("s#evt_2").unwrap(), 1, &writes()));
        assert_ne!(first, token(&key, 1, &writes()[..1]));
        let mut changed = writes();
        changed[1] = write("b", &json!("1"));
        assert_ne!(first, token(&key, 1, &changed), "a number is not its text");
    }

    #[test]
    fn conflicts_and_throttles_pass_and_nothing_else_does() {
        use crate::dynamodb::write::is_conflict;
        for (trouble, passing, conflict) in [
            (Trouble::Conflict, true, true),
            (Trouble::Throttled, true, false),
            (Trouble::Unavailable, false, false),
            (Trouble::Invalid, false, false),
        ] {
            assert_eq!((passes(trouble), is_conflict(trouble)), (passing, conflict), "{trouble:?}");
        }
    }

    #[test]
    fn what_dynamodb_would_refuse_whole_is_refused_before_it_is_sent() {
        let many: Vec<Update> =
            (0..101).map(|n| write(&format!("s#thing#{n}"), &json!(null))).collect();
        assert!(check(&many[..100]).is_ok());
        assert_eq!(check(&many).unwrap_err().trouble, Trouble::Invalid);
        let twice = [write("s#thing#1", &json!(1)), write("s#thing#1", &json!(2))];
        let failed = check(&twice).unwrap_err();
        assert_eq!(failed.trouble, Trouble::Invalid);
        assert!(failed.said.contains("s#thing#1"), "{}", failed.said);
    }
}
