//! Body chunks: rows of the ledger table without a status. `bytes`, and `expires_at` unless the
//! body belongs to a row that waits for a person. And the marks of proofs, which look like them.

use super::write::{Update, key};
use crate::{
    Aws, Resource,
    item::{Item, Reader, bytes as blob, number, text},
    trouble::Failed,
};
use aws_sdk_dynamodb::{config::Builder, operation::put_item::PutItemError};
use ledger::Seconds;
use workflow::ports::{PortError, Trouble};

/// A chunk whose time to live was taken must not get one again from a late duplicate. Such a
/// chunk has the same bytes, for their hash is in its key.
const MAY_EXPIRE: &str = "attribute_not_exists(#pk) OR attribute_exists(#expires_at)";
/// A mark is its own again, or nobody's yet. One that has expired and is not deleted yet still
/// counts.
const FREE: &str = "attribute_not_exists(#pk) OR #bytes = :bytes";
const EXISTS: &str = "attribute_exists(#pk)";
const KEEP: &str = "REMOVE #expires_at";
const EXPIRE: &str = "SET #expires_at = :at";

impl Aws {
    pub(super) async fn write_chunk(
        &self,
        pk: &str,
        bytes: &[u8],
        expires_at: Option<Seconds>,
    ) -> Result<(), PortError> {
        let step = "write chunk";
        let table = self.resource(step, Resource::LedgerTable)?;
        let mut item = Item::from([("pk".to_owned(), text(pk)), ("bytes".to_owned(), blob(bytes))]);
        if let Some(at) = expires_at {
            item.insert("expires_at".to_owned(), number(at.0));
        }
        let call = self.clients.dynamodb.put_item();
        let call = call
            .table_name(table)
            .set_item(Some(item))
            .condition_expression(MAY_EXPIRE)
            .expression_attribute_names("#pk", "pk")
            .expression_attribute_names("#expires_at", "expires_at");
        let done = call.customize().config_override(self.slowly()).send().await;
        match done {
            Ok(_) => Ok(()),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(PutItemError::is_conditional_check_failed_exception) =>
            {
                Ok(())
            }
            Err(error) => Err(Failed::from_sdk(&error).at(step)),
        }
    }

    pub(super) async fn write_mark(
        &self,
        pk: &str,
        value: &[u8; 32],
        expires_at: Seconds,
    ) -> Result<bool, PortError> {
        let step = "bind proof";
        let table = self.resource(step, Resource::LedgerTable)?;
        let item = Item::from([
            ("pk".to_owned(), text(pk)),
            ("bytes".to_owned(), blob(value)),
            ("expires_at".to_owned(), number(expires_at.0)),
        ]);
        let call = self.clients.dynamodb.put_item().table_name(table).set_item(Some(item));
        let call = call
            .condition_expression(FREE)
            .expression_attribute_names("#pk", "pk")
            .expression_attribute_names("#bytes", "bytes")
            .expression_attribute_values(":bytes", blob(value));
        match call.send().await {
            Ok(_) => Ok(true),
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(PutItemError::is_conditional_check_failed_exception) =>
            {
                Ok(false)
            }
            Err(error) => Err(Failed::from_sdk(&error).at(step)),
        }
    }

    pub(super) async fn read_chunk(&self, pk: &str) -> Result<Option<Vec<u8>>, PortError> {
        let step = "read chunk";
        let table = self.resource(step, Resource::LedgerTable)?;
        let call = self.clients.dynamodb.get_item().table_name(table);
        let call = call.set_key(Some(key(pk))).consistent_read(true);
        let answer = call.customize().config_override(self.slowly()).send().await;
        let answer = answer.map_err(|error| Failed::from_sdk(&error).at(step))?;
        let Some(item) = answer.item else { return Ok(None) };
        let bytes = Reader(&item).bytes("bytes");
        let bytes =
            bytes.map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(step))?;
        Ok(Some(bytes.unwrap_or_default().to_vec()))
    }

    pub(super) async fn spare_chunk(&self, pk: &str) -> Result<(), PortError> {
        let step = "keep chunk";
        let table = self.resource(step, Resource::LedgerTable)?;
        // A refusal means the chunk is gone, which nothing here can change.
        let _gone = self.update(step, &Update::new(table, pk, EXISTS, KEEP)).await?;
        Ok(())
    }

    pub(super) async fn date_chunk(&self, pk: &str, at: Seconds) -> Result<(), PortError> {
        let step = "expire chunk";
        let table = self.resource(step, Resource::LedgerTable)?;
        let update = Update::new(table, pk, EXISTS, EXPIRE).number(":at", at.0);
        let _gone = self.update(step, &update).await?;
        Ok(())
    }

    /// A chunk is a hundred times a row: its calls may take longer.
    fn slowly(&self) -> Builder {
        let limits = self.timeouts.chunk;
        Builder::default().timeout_config(limits.config(self.timeouts.connect))
    }
}
