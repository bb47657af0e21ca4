//! What is there: the settings of tables and queues, AWS's clock, and what this identity may do.
//!
//! For whoever checks a deployed stack. Nothing here changes anything: a write is tried under a
//! condition that never holds, and its refusal is the proof that it would be allowed.

use crate::{Aws, Resource, item::Item, item::text, trouble::Failed};
use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::BeforeDeserializationInterceptorContextRef,
    },
    error::BoxError,
    operation::{put_item::PutItemError, update_item::UpdateItemError},
    types::{IndexStatus, TableDescription, TableStatus, TimeToLiveStatus},
};
use aws_sdk_sqs::types::QueueAttributeName;
use ledger::Millis;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use workflow::ports::PortError;

/// A key that no row has.
const NOBODY: &str = "_w#doctor";
/// True of a row that is there, and nobody's is not.
const NEVER: &str = "attribute_exists(#pk) AND #pk <> :nobody";

/// What a table is like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableFacts {
    /// `ACTIVE`, where all is well.
    pub status: String,
    /// The attribute by which rows expire; `None` where they do not.
    pub expires_by: Option<String>,
    /// Whether changes are streamed.
    pub is_streamed: bool,
    /// The indexes and their statuses, empty where the store says nothing of one.
    pub indexes: BTreeMap<String, String>,
}

/// AWS's clock and this machine's, at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// What AWS said, to the second.
    pub theirs: Millis,
    /// What it was here.
    pub ours: Millis,
}

impl Aws {
    /// Looks at a table.
    pub async fn table_facts(&self, table: Resource) -> Result<TableFacts, PortError> {
        let step = "describe table";
        let name = self.resource(step, table)?;
        let answer = self.clients.dynamodb.describe_table().table_name(name).send().await;
        let answer = answer.map_err(|error| Failed::from_sdk(&error).at(step))?;
        let step = "describe time to live";
        let ttl = self.clients.dynamodb.describe_time_to_live().table_name(name).send().await;
        let ttl = ttl.map_err(|error| Failed::from_sdk(&error).at(step))?;
        let ttl = ttl.time_to_live_description.filter(|ttl| {
            matches!(
                ttl.time_to_live_status,
                Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
            )
        });
        let found = answer.table.map(|table| facts(&table)).unwrap_or_default();
        Ok(TableFacts { expires_by: ttl.and_then(|ttl| ttl.attribute_name), ..found })
    }

    /// Every attribute of a queue, by its name.
    pub async fn queue_facts(
        &self,
        queue: Resource,
    ) -> Result<BTreeMap<String, String>, PortError> {
        let step = "read queue attributes";
        let url = self.resource(step, queue)?;
        let call = self.clients.sqs.get_queue_attributes().queue_url(url);
        let answer = call.attribute_names(QueueAttributeName::All).send().await;
        let answer = answer.map_err(|error| Failed::from_sdk(&error).at(step))?;
        let found = answer.attributes.unwrap_or_default().into_iter();
        Ok(found.map(|(name, value)| (name.as_str().to_owned(), value)).collect())
    }

    /// Whether this identity may write to a table: an update and a put that never happen.
    pub async fn try_writes(&self, table: Resource) -> Result<(), PortError> {
        let step = "try to write";
        let name = self.resource(step, table)?;
        let key = Item::from([("pk".to_owned(), text(NOBODY))]);
        let update = self.clients.dynamodb.update_item().table_name(name);
        let update = update
            .set_key(Some(key.clone()))
            .condition_expression(NEVER)
            .update_expression("SET #tried = :nobody")
            .expression_attribute_names("#pk", "pk")
            .expression_attribute_names("#tried", "tried")
            .expression_attribute_values(":nobody", text(NOBODY));
        if let Err(error) = update.send().await
            && !error
                .as_service_error()
                .is_some_and(UpdateItemError::is_conditional_check_failed_exception)
        {
            return Err(Failed::from_sdk(&error).at(step));
        }
        let put = self.clients.dynamodb.put_item().table_name(name).set_item(Some(key));
        let put = put
            .condition_expression(NEVER)
            .expression_attribute_names("#pk", "pk")
            .expression_attribute_values(":nobody", text(NOBODY));
        match put.send().await {
            Err(error)
                if !error
                    .as_service_error()
                    .is_some_and(PutItemError::is_conditional_check_failed_exception) =>
            {
                Err(Failed::from_sdk(&error).at(step))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Compares the clocks by the `Date` of an answer; `None` where it had none.
    pub async fn clocks(&self) -> Result<Option<Clocks>, PortError> {
        let step = "read AWS's clock";
        let name = self.resource(step, Resource::LedgerTable)?;
        let heard = Heard::default();
        let call = self.clients.dynamodb.describe_table().table_name(name).customize();
        let answer = call.interceptor(heard.clone()).send().await;
        answer.map_err(|error| Failed::from_sdk(&error).at(step))?;
        let heard = heard.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(heard
            .as_ref()
            .and_then(|(date, ours)| Some(Clocks { theirs: read(date)?, ours: *ours })))
    }
}

fn facts(table: &TableDescription) -> TableFacts {
    let indexes = table.global_secondary_indexes().iter();
    let status = |status: Option<&str>| status.unwrap_or_default().to_owned();
    TableFacts {
        status: status(table.table_status.as_ref().map(TableStatus::as_str)),
        expires_by: None,
        is_streamed: table.stream_specification.as_ref().is_some_and(|one| one.stream_enabled),
        indexes: indexes
            .filter_map(|index| {
                let state = status(index.index_status.as_ref().map(IndexStatus::as_str));
                Some((index.index_name.clone()?, state))
            })
            .collect(),
    }
}

/// The date of an answer, and when it came.
#[derive(Debug, Clone, Default)]
struct Heard(Arc<Mutex<Option<(String, Millis)>>>);

impl Intercept for Heard {
    fn name(&self) -> &'static str {
        "Heard"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date").map(str::to_owned);
        let now = crate::clock::now();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date.map(|date| (date, now));
        Ok(())
    }
}

/// An HTTP date, `Mon, 30 Nov 2026 12:00:00 GMT`.
fn read(date: &str) -> Option<Millis> {
    let time = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    u64::try_from(time.as_millisecond()).ok().map(Millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_an_answer_is_read_to_the_second() {
        assert_eq!(read("Mon, 30 Nov 2026 12:00:00 GMT"), Some(Millis(1_796_040_000_000)));
        assert_eq!(read("yesterday"), None);
    }
}
