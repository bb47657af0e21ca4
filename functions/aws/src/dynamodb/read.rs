//! Reads: a row, an entity, and the two indexes.
//!
//! Rows and entities are read strongly consistent. Indexes are not, and cannot be: what they list
//! is a hint, and every act that follows is conditional.

use super::{read_row, write::key};
use crate::{
    Aws, Resource,
    item::{Item, Reader, decode_entity, number, text},
    trouble::Failed,
};
use aws_sdk_dynamodb::{operation::query::builders::QueryFluentBuilder, types::AttributeValue};
use ledger::{Bucket, Entity, EntityKey, EventKey, Millis, Row};
use workflow::ports::{DayEntry, OpenEntry, PortError, Trouble};

/// A key that no row has: read only to open the connection.
const NOBODY: &str = "_w#warm";

impl Aws {
    pub(super) async fn read_event(&self, key: &EventKey) -> Result<Option<Row>, PortError> {
        let step = "read row";
        let table = self.resource(step, Resource::LedgerTable)?;
        read_row(step, self.get(step, table, key.as_str()).await?)
    }

    pub(super) async fn read_entity(&self, key: &EntityKey) -> Result<Option<Entity>, PortError> {
        let step = "read entity";
        let table = self.resource(step, Resource::StateTable)?;
        let entity = self.get(step, table, key.as_str()).await?;
        let entity = entity.map(|item| decode_entity(&item)).transpose();
        entity.map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(step))
    }

    pub(super) async fn list_open(
        &self,
        bucket: Bucket,
        due_before: Millis,
        after: Option<&OpenEntry>,
        limit: u32,
    ) -> Result<Vec<OpenEntry>, PortError> {
        let step = "list open";
        let table = self.resource(step, Resource::LedgerTable)?;
        let query = self.clients.dynamodb.query().table_name(table).index_name("open");
        let query = query
            .key_condition_expression("#bucket = :bucket AND #due_at <= :before")
            .expression_attribute_names("#bucket", "bucket")
            .expression_attribute_names("#due_at", "due_at")
            .expression_attribute_values(":bucket", text(bucket.to_string()))
            .expression_attribute_values(":before", number(due_before.0));
        let start = after.map(|entry| {
            Item::from([
                ("pk".to_owned(), text(entry.key.as_str())),
                ("bucket".to_owned(), text(bucket.to_string())),
                ("due_at".to_owned(), number(entry.due_at.0)),
            ])
        });
        let items = pages(step, query, start, limit).await?;
        Ok(items.iter().filter_map(open_entry).collect())
    }

    pub(super) async fn list_day(
        &self,
        day: &str,
        from: Millis,
        until: Millis,
        newest_first: bool,
        limit: u32,
    ) -> Result<Vec<DayEntry>, PortError> {
        let step = "list day";
        if from > until {
            // DynamoDB calls an empty range an error.
            return Ok(Vec::new());
        }
        let table = self.resource(step, Resource::LedgerTable)?;
        let query = self.clients.dynamodb.query().table_name(table).index_name("by_day");
        let query = query
            .key_condition_expression("#day = :day AND #received_at BETWEEN :from AND :until")
            .expression_attribute_names("#day", "day")
            .expression_attribute_names("#received_at", "received_at")
            .expression_attribute_values(":day", text(day))
            .expression_attribute_values(":from", number(from.0))
            .expression_attribute_values(":until", number(until.0))
            .scan_index_forward(!newest_first);
        let items = pages(step, query, None, limit).await?;
        Ok(items.iter().filter_map(day_entry).collect())
    }

    /// One item, strongly consistent.
    pub(super) async fn get(
        &self,
        step: &'static str,
        table: &str,
        pk: &str,
    ) -> Result<Option<Item>, PortError> {
        let call = self.clients.dynamodb.get_item().table_name(table);
        let call = call.set_key(Some(key(pk))).consistent_read(true);
        let answer = call.send().await;
        let answer = answer.map_err(|error| Failed::from_sdk(&error).at(step))?;
        Ok(answer.item)
    }

    pub(crate) async fn touch_ledger(&self) {
        if let Ok(table) = self.settings().get(Resource::LedgerTable)
            && let Err(error) = self.get("warm up", table, NOBODY).await
        {
            tracing::debug!("ledger not reached at start: {error}");
        }
    }
}

/// Pages through a query until `limit` items are found or there are no more.
async fn pages(
    step: &'static str,
    query: QueryFluentBuilder,
    mut start: Option<Item>,
    limit: u32,
) -> Result<Vec<Item>, PortError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut items: Vec<Item> = Vec::new();
    while items.len() < limit {
        let wanted = i32::try_from(limit - items.len()).unwrap_or(i32::MAX);
        let call = query.clone().limit(wanted).set_exclusive_start_key(start.take());
        let page = call.send().await;
        let page = page.map_err(|error| Failed::from_sdk(&error).at(step))?;
        items.extend(page.items.unwrap_or_default());
        start = page.last_evaluated_key.filter(|next| !next.is_empty());
        if start.is_none() {
            break;
        }
    }
    Ok(items)
}

/// An index holds only what has its keys; an entry that cannot be read is nobody's row.
fn open_entry(item: &Item) -> Option<OpenEntry> {
    Some(OpenEntry {
        key: event_key(item)?,
        due_at: time(item, "due_at")?,
        received_at: time(item, "received_at")?,
    })
}

fn day_entry(item: &Item) -> Option<DayEntry> {
    Some(DayEntry { key: event_key(item)?, received_at: time(item, "received_at")? })
}

fn event_key(item: &Item) -> Option<EventKey> {
    EventKey::parse(item.get("pk").map(AttributeValue::as_s)?.ok()?).ok()
}

fn time(item: &Item, attribute: &'static str) -> Option<Millis> {
    Reader(item).number(attribute).ok()?.map(Millis)
}
