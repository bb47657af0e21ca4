//! One conditional write: its expressions, their values, and how it is carried out.
//!
//! Expressions are written by hand in the verbs' files. Every attribute goes through `#name`,
//! since half of the names are reserved words; the placeholder is the attribute's own name, so
//! the map DynamoDB wants is read off the expressions and cannot disagree with them.

use crate::{
    Aws,
    item::{Item, number, text},
    trouble::Failed,
};
use aws_sdk_dynamodb::{
    operation::{put_item::PutItemError, update_item::UpdateItemError},
    types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure},
};
use std::collections::{BTreeMap, HashMap};
use workflow::ports::{PortError, Trouble};

/// A conditional update of one item.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    pub(super) table: String,
    pub(super) pk: String,
    pub(super) condition: String,
    pub(super) expression: String,
    pub(super) values: BTreeMap<&'static str, AttributeValue>,
}

/// Written, with the item before it, or refused, with the item that stood in its way.
pub(super) type Written = Result<Option<Item>, Option<Item>>;

impl Update {
    pub(super) fn new(
        table: &str,
        pk: &str,
        condition: impl Into<String>,
        expression: impl Into<String>,
    ) -> Self {
        Self {
            table: table.to_owned(),
            pk: pk.to_owned(),
            condition: condition.into(),
            expression: expression.into(),
            values: BTreeMap::new(),
        }
    }

    pub(super) fn value(mut self, name: &'static str, value: AttributeValue) -> Self {
        self.values.insert(name, value);
        self
    }

    pub(super) fn text(self, name: &'static str, value: impl ToString + Copy) -> Self {
        self.value(name, text(value.to_string()))
    }

    pub(super) fn number(self, name: &'static str, value: impl ToString + Copy) -> Self {
        self.value(name, number(value))
    }

    /// `#name` to `name`, for every name in both expressions.
    pub(super) fn names(&self) -> HashMap<String, String> {
        let expressions = [self.condition.as_str(), self.expression.as_str()];
        expressions
            .into_iter()
            .flat_map(|expression| placeholders(expression, '#'))
            .map(|name| (format!("#{name}"), name.to_owned()))
            .collect()
    }

    pub(super) fn values(&self) -> HashMap<String, AttributeValue> {
        let owned = |(name, value): (&&str, &AttributeValue)| ((*name).to_owned(), value.clone());
        self.values.iter().map(owned).collect()
    }
}

/// The names behind each `mark` of an expression.
pub(super) fn placeholders(expression: &str, mark: char) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    expression.split(mark).skip(1).map(move |rest| {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        &rest[..end]
    })
}

/// The key of every item of both tables.
pub(crate) fn key(pk: &str) -> Item {
    Item::from([("pk".to_owned(), text(pk))])
}

// Writes are boxed where they are awaited: the SDK's futures are large, and nested into a use case
// their type is deeper than the compiler likes to look.

/// A conflict passes in a moment. A throttled call the SDK has tried several times already; one
/// that it gave up on is left to whoever can wait longer.
pub(super) const fn is_conflict(trouble: Trouble) -> bool {
    match trouble {
        Trouble::Conflict => true,
        Trouble::Throttled | Trouble::Unavailable | Trouble::Invalid => false,
    }
}

impl Aws {
    /// Carries out an update.
    pub(super) async fn update(
        &self,
        step: &'static str,
        update: &Update,
    ) -> Result<Written, PortError> {
        let call = self.clients.dynamodb.update_item();
        let call = call
            .table_name(&update.table)
            .set_key(Some(key(&update.pk)))
            .condition_expression(&update.condition)
            .update_expression(&update.expression)
            .set_expression_attribute_names(Some(update.names()))
            .set_expression_attribute_values(Some(update.values()).filter(|set| !set.is_empty()))
            .return_values(ReturnValue::AllOld)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let write = || {
            let call = call.clone();
            async move {
                match call.send().await {
                    Ok(answer) => Ok(Ok(answer.attributes)),
                    Err(error) => match error.as_service_error() {
                        Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                            Ok(Err(refused.item.clone()))
                        }
                        Some(_) | None => Err(Failed::from_sdk(&error)),
                    },
                }
            }
        };
        let written = Box::pin(self.patiently(is_conflict, write)).await;
        written.map_err(|failed| failed.at(step))
    }

    /// Puts an item under `condition`.
    pub(super) async fn put(
        &self,
        step: &'static str,
        table: &str,
        item: Item,
        condition: &'static str,
    ) -> Result<Written, PortError> {
        let names = placeholders(condition, '#').map(|name| (format!("#{name}"), name.to_owned()));
        let call = self.clients.dynamodb.put_item();
        let call = call
            .table_name(table)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names.collect()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let write = || {
            let call = call.clone();
            async move {
                match call.send().await {
                    Ok(_) => Ok(Ok(None)),
                    Err(error) => match error.as_service_error() {
                        Some(PutItemError::ConditionalCheckFailedException(refused)) => {
                            Ok(Err(refused.item.clone()))
                        }
                        Some(_) | None => Err(Failed::from_sdk(&error)),
                    },
                }
            }
        };
        let written = Box::pin(self.patiently(is_conflict, write)).await;
        written.map_err(|failed| failed.at(step))
    }
}
