//! Reading many rows: the open index, and rows side by side.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use ledger::{Bucket, EventKey, Millis, Row, SHARDS};
use workflow::ports::{Ledger, OpenEntry, PortError};

/// Calls at the same time: a table on demand takes them without a thought, and a laptop's
/// connection too.
pub(crate) const AT_ONCE: usize = 16;
/// Entries in one page of an index.
const PAGE: u32 = 1_000;

/// How many entries of a partition are looked at for each that is wanted.
const LOOKED_AT_MAX: usize = 100;

/// What was chosen of an index.
pub(crate) struct Chosen {
    /// The entries, the earliest due first.
    pub(crate) entries: Vec<OpenEntry>,
    /// How many were looked at.
    pub(crate) looked_at: usize,
    /// Whether some were left that may be wanted too.
    pub(crate) more: bool,
}

/// Up to `most` entries of the ten partitions of some buckets, the earliest due first.
pub(crate) async fn open(
    ledger: &impl Ledger,
    buckets: &[fn(u8) -> Bucket],
    due_before: Millis,
    most: usize,
) -> Result<Vec<OpenEntry>, PortError> {
    Ok(choose(ledger, buckets, due_before, most, &|_| true).await?.entries)
}

/// The same of those that are `wanted`. The rest counts against no limit but the one that keeps a
/// look at a flood from going on for ever.
pub(crate) async fn choose(
    ledger: &impl Ledger,
    buckets: &[fn(u8) -> Bucket],
    due_before: Millis,
    most: usize,
    wanted: &impl Fn(&EventKey) -> bool,
) -> Result<Chosen, PortError> {
    let partitions = buckets.iter().flat_map(|bucket| (0..SHARDS).map(bucket));
    let reads =
        stream::iter(partitions).map(|bucket| partition(ledger, bucket, due_before, most, wanted));
    let parts: Vec<Chosen> = reads.buffer_unordered(AT_ONCE).try_collect().await?;
    let looked_at = parts.iter().map(|part| part.looked_at).sum();
    let mut more = parts.iter().any(|part| part.more);
    let mut entries: Vec<OpenEntry> = parts.into_iter().flat_map(|part| part.entries).collect();
    entries.sort_by(|a, b| (a.due_at, &a.key).cmp(&(b.due_at, &b.key)));
    more |= entries.len() > most;
    entries.truncate(most);
    Ok(Chosen { entries, looked_at, more })
}

async fn partition(
    ledger: &impl Ledger,
    bucket: Bucket,
    due_before: Millis,
    most: usize,
    wanted: &impl Fn(&EventKey) -> bool,
) -> Result<Chosen, PortError> {
    let mut chosen = Chosen { entries: Vec::new(), looked_at: 0, more: false };
    let mut last: Option<OpenEntry> = None;
    loop {
        let page = ledger.open(bucket, due_before, last.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        chosen.looked_at += page.len();
        last = page.last().cloned();
        chosen.entries.extend(page.into_iter().filter(|entry| wanted(&entry.key)));
        if is_last {
            return Ok(chosen);
        }
        if chosen.entries.len() > most || chosen.looked_at >= most.saturating_mul(LOOKED_AT_MAX) {
            return Ok(Chosen { more: true, ..chosen });
        }
    }
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
