//! The steward's notebook: the row `_s#steward` of the ledger table. It has no format, so no verb
//! ever touches it.

use super::write::key;
use crate::{
    Aws, Resource,
    item::{DecodeError, Item, Reader, number, text},
    trouble::Failed,
};
use ledger::{Bucket, EventKey, Millis};
use workflow::ports::{OpenEntry, PortError, StewardNotes, Trouble};

const PK: &str = "_s#steward";

impl Aws {
    pub(super) async fn read_notes(&self) -> Result<StewardNotes, PortError> {
        let step = "read notes";
        let table = self.resource(step, Resource::LedgerTable)?;
        let Some(item) = self.get(step, table, PK).await? else {
            return Ok(StewardNotes::default());
        };
        decode(&item).map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(step))
    }

    pub(super) async fn put_notes(&self, notes: &StewardNotes) -> Result<(), PortError> {
        let step = "write notes";
        let table = self.resource(step, Resource::LedgerTable)?;
        let call = self.clients.dynamodb.put_item().table_name(table);
        let done = call.set_item(Some(encode(notes))).send().await;
        done.map_err(|error| Failed::from_sdk(&error).at(step))?;
        Ok(())
    }
}

fn encode(notes: &StewardNotes) -> Item {
    let mut item = key(PK);
    let mut put = |name: &str, value| item.insert(name.to_owned(), value);
    put("redriven_at", number(notes.redriven_at.0));
    put("cleared_at", number(notes.cleared_at.0));
    if !notes.walked_release.is_empty() {
        put("walked_release", text(notes.walked_release.as_str()));
    }
    if !notes.walk_release.is_empty() {
        put("walk_release", text(notes.walk_release.as_str()));
    }
    if let Some(bucket) = notes.walk_bucket {
        put("walk_bucket", text(bucket.to_string()));
    }
    // Under names of their own: with the index's, the notebook would be listed among events.
    if let Some(after) = &notes.walk_after {
        put("walk_key", text(after.key.as_str()));
        put("walk_due_at", number(after.due_at.0));
        put("walk_received_at", number(after.received_at.0));
    }
    item
}

fn decode(item: &Item) -> Result<StewardNotes, DecodeError> {
    let reader = Reader(item);
    let time = |name| Ok(reader.number(name)?.map(Millis));
    let key = reader.parsed("walk_key", "a row's key", |text| EventKey::parse(text).ok())?;
    let after = key.zip(time("walk_due_at")?).zip(time("walk_received_at")?);
    Ok(StewardNotes {
        redriven_at: time("redriven_at")?.unwrap_or_default(),
        cleared_at: time("cleared_at")?.unwrap_or_default(),
        walked_release: reader.text("walked_release")?.unwrap_or_default().to_owned(),
        walk_release: reader.text("walk_release")?.unwrap_or_default().to_owned(),
        walk_bucket: reader.parsed("walk_bucket", "a bucket", Bucket::parse)?,
        walk_after: after.map(|((key, due_at), received_at)| OpenEntry {
            key,
            due_at,
            received_at,
        }),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_notebook_comes_back_as_it_was_written() {
        let empty = StewardNotes::default();
        let full = StewardNotes {
            redriven_at: Millis(1),
            cleared_at: Millis(2),
            walked_release: "r1".to_owned(),
            walk_release: "r2".to_owned(),
            walk_bucket: Some(Bucket::Parked(3)),
            walk_after: Some(OpenEntry {
                key: EventKey::parse("s#evt").unwrap(),
                due_at: Millis(4),
                received_at: Millis(5),
            }),
        };
        for notes in [empty, full] {
            let item = encode(&notes);
            assert_eq!(decode(&item).unwrap(), notes);
            assert!(["format", "bucket", "day"].iter().all(|name| !item.contains_key(*name)));
        }
    }
}
