//! Keys looked up many at a time, and notes by name: what replay and reconciliation read.
//!
//! Strongly consistent, so that a row claimed a moment ago is not taken for missing. DynamoDB takes a
//! hundred keys a call and may leave some undone when it is throttled; those are asked for again.

use super::write::key;
use crate::{
    Aws, Resource,
    item::{DecodeError, Item, Reader, needed, text},
    trouble::Failed,
};
use aws_sdk_dynamodb::types::KeysAndAttributes;
use ledger::{EventKey, Millis, Origin};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};
use workflow::ports::{KnownRow, Lookup, Notes, PortError, Trouble};

const KEYS_MAX: usize = 100;
/// Rounds for what throttling left undone.
const ROUNDS_MAX: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const STEP: &str = "look up keys";

impl Lookup for Aws {
    async fn known(&self, keys: &[EventKey]) -> Result<BTreeMap<EventKey, KnownRow>, PortError> {
        let table = self.resource(STEP, Resource::LedgerTable)?;
        let mut known = BTreeMap::new();
        for some in keys.chunks(KEYS_MAX) {
            for item in self.look_up(table, some).await.map_err(|failed| failed.at(STEP))? {
                let (key, row) = decode(&item)
                    .map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(STEP))?;
                known.insert(key, row);
            }
        }
        Ok(known)
    }
}

impl Aws {
    async fn look_up(&self, table: &str, keys: &[EventKey]) -> Result<Vec<Item>, Failed> {
        let mut found = Vec::new();
        let mut left = Some(asks(keys)?);
        let mut pause = FIRST_PAUSE;
        for _ in 0..ROUNDS_MAX {
            let Some(asks) = left.take() else { return Ok(found) };
            let call = self.clients.dynamodb.batch_get_item().request_items(table, asks);
            let answer = call.send().await.map_err(|error| Failed::from_sdk(&error))?;
            found
                .extend(answer.responses.and_then(|mut all| all.remove(table)).unwrap_or_default());
            let undone = answer.unprocessed_keys.and_then(|mut all| all.remove(table));
            left = undone.filter(|asks| !asks.keys.is_empty());
            if left.is_some() {
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2);
            }
        }
        match left {
            None => Ok(found),
            Some(_) => Err(Failed::new(Trouble::Throttled, "keys are left undone time after time")),
        }
    }
}

/// Only what tells how a row came in, so that bodies stay where they are.
fn asks(keys: &[EventKey]) -> Result<KeysAndAttributes, Failed> {
    let asks = KeysAndAttributes::builder()
        .set_keys(Some(keys.iter().map(|event| key(event.as_str())).collect()))
        .consistent_read(true)
        .projection_expression("pk, #received_at, #origin, #origin_note")
        .expression_attribute_names("#received_at", "received_at")
        .expression_attribute_names("#origin", "origin")
        .expression_attribute_names("#origin_note", "origin_note");
    asks.build().map_err(|error| Failed::new(Trouble::Invalid, error.to_string()))
}

fn decode(item: &Item) -> Result<(EventKey, KnownRow), DecodeError> {
    let reader = Reader(item);
    let found = reader.parsed("pk", "a row's key", |text| EventKey::parse(text).ok())?;
    let row = KnownRow {
        received_at: Millis(reader.number("received_at")?.unwrap_or(0)),
        // A row of a newer build may hold a word this one does not know; it is there all the same.
        origin: reader.text("origin")?.and_then(Origin::parse).unwrap_or(Origin::Delivery),
        origin_note: reader.text("origin_note")?.map(str::to_owned),
    };
    Ok((needed(found, "pk", "a row's key")?, row))
}

impl Notes for Aws {
    async fn note(&self, name: &str) -> Result<Option<String>, PortError> {
        let step = "read note";
        let table = self.resource(step, Resource::LedgerTable)?;
        let item = self.get(step, table, &pk(name)).await?.unwrap_or_else(HashMap::new);
        let text = Reader(&item).text("text").map(|text| text.map(str::to_owned));
        text.map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(step))
    }

    async fn write_note(&self, name: &str, note: &str) -> Result<(), PortError> {
        let step = "write note";
        let table = self.resource(step, Resource::LedgerTable)?;
        let mut item = key(&pk(name));
        item.insert("text".to_owned(), text(note));
        let call = self.clients.dynamodb.put_item().table_name(table).set_item(Some(item));
        call.send().await.map_err(|error| Failed::from_sdk(&error).at(step))?;
        Ok(())
    }
}

/// Beside the steward's notebook. It has no format, so no verb ever touches it.
fn pk(name: &str) -> String {
    format!("_s#{name}")
}
