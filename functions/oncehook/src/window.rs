//! The events of a window, in order of time, a few at a time: a walk through the index `by_day`.
//!
//! The index has a partition for each source, day and shard. Days are taken one after another;
//! within a day all partitions are read side by side and merged, a page at a time, so that what is
//! held does not grow with the window. A page ends at a time, and other events may have that very
//! time: it is read again, and what is known left out, so that ties lose nothing.

use crate::{rows, time};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use ledger::{Millis, SHARDS, SourceName};
use std::collections::{BTreeSet, VecDeque};
use workflow::ports::{DayEntry, Ledger, PortError};

/// Entries in the first page of a partition.
const PAGE: u32 = 100;

/// A walk.
pub(crate) struct Walk {
    sources: Vec<SourceName>,
    window: (Millis, Millis),
    newest_first: bool,
    days: VecDeque<String>,
    partitions: Vec<Partition>,
}

impl Walk {
    /// Through the events of `sources` received in `since..=until`.
    pub(crate) fn new(
        sources: Vec<SourceName>,
        (since, until): (Millis, Millis),
        newest_first: bool,
    ) -> Self {
        let mut days: VecDeque<String> = time::days(since, until).collect();
        if !newest_first {
            days = days.into_iter().rev().collect();
        }
        Self { sources, window: (since, until), newest_first, days, partitions: Vec::new() }
    }

    /// The next entries, at most `most`. None when there are no more.
    pub(crate) async fn next(
        &mut self,
        ledger: &impl Ledger,
        most: usize,
    ) -> Result<Vec<DayEntry>, PortError> {
        loop {
            let taken = self.merge(ledger, most).await?;
            if !taken.is_empty() {
                return Ok(taken);
            }
            let Some(day) = self.days.pop_front() else { return Ok(taken) };
            self.partitions = self.open(ledger, &day).await?;
        }
    }

    /// The partitions of one day, each with its first page.
    async fn open(&self, ledger: &impl Ledger, day: &str) -> Result<Vec<Partition>, PortError> {
        let (window, newest_first) = (self.window, self.newest_first);
        let names = self.sources.iter();
        let names =
            names.flat_map(|source| (0..SHARDS).map(move |n| format!("{source}#{day}#{n}")));
        let partitions = names.map(|name| async move {
            let mut partition = Partition {
                name,
                window,
                newest_first,
                buffer: VecDeque::new(),
                seen: BTreeSet::new(),
                page: PAGE,
                is_exhausted: false,
            };
            partition.fill(ledger).await?;
            Ok(partition)
        });
        stream::iter(partitions).buffer_unordered(rows::AT_ONCE).try_collect().await
    }

    async fn merge(
        &mut self,
        ledger: &impl Ledger,
        most: usize,
    ) -> Result<Vec<DayEntry>, PortError> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let waiting = self.partitions.iter_mut().filter(|one| !one.buffer.is_empty());
            let at = |one: &&mut Partition| {
                one.buffer.front().map(|entry| (entry.received_at, entry.key.clone()))
            };
            let next =
                if self.newest_first { waiting.max_by_key(at) } else { waiting.min_by_key(at) };
            let Some(partition) = next else { break };
            taken.extend(partition.buffer.pop_front());
            partition.fill(ledger).await?;
        }
        Ok(taken)
    }
}

/// One partition of a day: what was read of it and not yet used.
struct Partition {
    name: String,
    window: (Millis, Millis),
    newest_first: bool,
    buffer: VecDeque<DayEntry>,
    /// Entries of the millisecond at which the last page ended.
    seen: BTreeSet<String>,
    page: u32,
    is_exhausted: bool,
}

impl Partition {
    /// Reads the next page, if nothing is left of the last.
    async fn fill(&mut self, ledger: &impl Ledger) -> Result<(), PortError> {
        while self.buffer.is_empty() && !self.is_exhausted {
            let (since, until) = self.window;
            let page = ledger.day(&self.name, since, until, self.newest_first, self.page).await?;
            self.is_exhausted = page.len() < self.page as usize;
            let Some(last) = page.last().map(|entry| entry.received_at) else { break };
            let ends = page.iter().filter(|entry| entry.received_at == last);
            let ends: BTreeSet<String> = ends.map(|entry| entry.key.to_string()).collect();
            let fresh = page.into_iter().filter(|entry| !self.seen.contains(entry.key.as_str()));
            self.buffer = fresh.collect();
            if self.buffer.is_empty() {
                // More events of one millisecond than a page holds.
                self.page = self.page.saturating_mul(2);
            }
            self.seen = ends;
            self.window = if self.newest_first { (since, last) } else { (last, until) };
        }
        Ok(())
    }
}
