//! Reading many rows: the open index, and rows side by side.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use ledger::{Bucket, EventKey, Millis, Row, SHARDS};
use workflow::ports::{Ledger, OpenEntry, PortError};

/// Calls at the same time: a table on demand takes them without a thought, and a laptop's
/// connection too.
pub(crate) const AT_ONCE: usize = 16;
/// Entries in one page of an index.
const PAGE: u32 = 1_000;

/// Up to `most` entries of the ten partitions of some buckets, the earliest due first.
pub(crate) async fn open(
    ledger: &impl Ledger,
    buckets: &[fn(u8) -> Bucket],
    due_before: Millis,
    most: usize,
) -> Result<Vec<OpenEntry>, PortError> {
    let partitions = buckets.iter().flat_map(|bucket| (0..SHARDS).map(bucket));
    let reads = stream::iter(partitions).map(|bucket| partition(ledger, bucket, due_before, most));
    let entries: Vec<Vec<OpenEntry>> = reads.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut entries: Vec<OpenEntry> = entries.into_iter().flatten().collect();
    entries.sort_by(|a, b| (a.due_at, &a.key).cmp(&(b.due_at, &b.key)));
    entries.truncate(most);
    Ok(entries)
}

async fn partition(
    ledger: &impl Ledger,
    bucket: Bucket,
    due_before: Millis,
    most: usize,
) -> Result<Vec<OpenEntry>, PortError> {
    let mut entries: Vec<OpenEntry> = Vec::new();
    while entries.len() < most {
        let page = ledger.open(bucket, due_before, entries.last(), PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        entries.extend(page);
        if is_last {
            break;
        }
    }
    entries.truncate(most);
    Ok(entries)
}

/// Reads the rows of `keys`, in their order. A row that is gone by now is left out.
pub(crate) async fn read(
    ledger: &impl Ledger,
    keys: impl IntoIterator<Item = EventKey>,
) -> Result<Vec<Row>, PortError> {
    let reads = stream::iter(keys).map(|key| async move { ledger.row(&key).await });
    let rows: Vec<Option<Row>> = reads.buffered(AT_ONCE).try_collect().await?;
    Ok(rows.into_iter().flatten().collect())
}
