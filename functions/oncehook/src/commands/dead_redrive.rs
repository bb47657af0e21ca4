//! `dead redrive --release` and `--all`: many dead rows at once, after a preview.
//!
//! Rows are found by the index `open` and brought back one by one, each by the same conditional
//! write as a single redrive, so that each keeps who, when and why. With `--release` their messages
//! are sent; with `--all` they are moved from the dead-letter queue, and should one be missing there
//! the steward sends it, for the row is under its eye again.
//!
//! What was born dead never worked: second bodies of a known id, and events nobody can use. No build
//! cures them and no queue holds their messages, so neither option touches them.

use super::dead_by_hand::{Handled, redrive_one, revive_one};
use crate::{
    args::{Redrive, Which},
    failure::Failure,
    operator::Operator,
    output::{Fact, Page, Report, Table, Tone, count, shown},
    pace::Pace,
    progress::Reached,
    rows,
};
use aws::Moved;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use ledger::{Bucket, EventKey, FailureClass, Millis, Row, Status};
use serde::Serialize;
use std::{collections::BTreeMap, future::Future};
use workflow::ports::{Clock, Ledger, Outbox, PortError};

/// Dead rows looked at in one go; a second go takes up the rest.
const ENTRIES_MAX: usize = 100_000;
/// Rows read at a time.
const AT_A_TIME: usize = 64;
/// Rows named of those that could not be brought back.
const NAMED_MAX: usize = 20;

/// Moving the dead-letter queue's messages back.
pub(crate) trait Letters {
    /// How many there are, about.
    fn letters(&self) -> impl Future<Output = Result<u64, PortError>>;
    /// Moves them.
    fn move_back(&self, per_second: u32) -> impl Future<Output = Result<Moved, PortError>>;
}

impl Letters for aws::Aws {
    async fn letters(&self) -> Result<u64, PortError> {
        self.dead_letter_count().await
    }

    async fn move_back(&self, per_second: u32) -> Result<Moved, PortError> {
        self.move_dead_letters(per_second).await
    }
}

/// What was done, or would be.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    executed: bool,
    by: String,
    reason: String,
    /// The build whose dead were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<String>,
    /// Dead rows that were chosen.
    selected: usize,
    /// Of these, permanent failures.
    permanent: usize,
    redriven: usize,
    /// Moved on by somebody else meanwhile.
    left: Vec<Handled>,
    types: BTreeMap<String, usize>,
    /// Messages in the dead-letter queue before; with --all.
    #[serde(skip_serializing_if = "Option::is_none")]
    letters: Option<u64>,
    /// How they were moved; with --all.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<String>,
    /// Set where there are more dead rows than one go looks at.
    more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Failure>,
    /// Whether every dead row was looked at.
    complete: bool,
    next: String,
}

/// Previews, and with `--execute` brings back.
pub(crate) async fn run(
    ports: &(impl Ledger + Outbox + Clock + Letters),
    args: &Redrive,
    operator: &Operator,
) -> Result<Done, Failure> {
    let all = args.which() == Which::All;
    let entries =
        rows::open(ports, &[Bucket::Parked, Bucket::Dead], Millis::END_OF_TIME, ENTRIES_MAX)
            .await?;
    let mut done = Done {
        executed: args.execute,
        by: args.by.clone(),
        reason: args.reason.clone(),
        release: args.release.clone(),
        selected: 0,
        permanent: 0,
        redriven: 0,
        left: Vec::new(),
        types: BTreeMap::new(),
        letters: if all { Some(ports.letters().await?) } else { None },
        moved: None,
        more: entries.len() == ENTRIES_MAX,
        stopped: None,
        complete: false,
        next: String::new(),
    };
    let keys: Vec<EventKey> = entries.into_iter().map(|entry| entry.key).collect();
    // From here on rows change: what was done is reported, whatever ends it.
    let worked = operator.interruptible(work(ports, args, operator, keys, &mut done)).await;
    if let Some(worked) = worked {
        done.complete = worked.is_ok();
        done.stopped = worked.err();
        done.next = done.next();
    } else {
        // What was brought back is dead no more: the same command finds the rest.
        done.next = operator.again(&[]);
        done.stopped = Some(done.interruption().with_next(done.next.clone()));
    }
    Ok(done)
}

async fn work(
    ports: &(impl Ledger + Outbox + Clock + Letters),
    args: &Redrive,
    operator: &Operator,
    keys: Vec<EventKey>,
    done: &mut Done,
) -> Result<(), Failure> {
    let all = args.which() == Which::All;
    let length = keys.len();
    let progress = operator.progress(length as u64, Reached::default());
    let mut looked_at = 0;
    let mut pace = Pace::new(args.rate);
    let reads = stream::iter(keys).map(|key| async move { ports.row(&key).await });
    let mut found = reads.buffered(rows::AT_ONCE).try_chunks(AT_A_TIME);
    while let Some(rows) = found.next().await {
        let rows = rows.map_err(|stopped| Failure::from(stopped.1))?;
        for row in rows {
            looked_at += 1;
            let said = format!("{looked_at} of {length} looked at, {} redriven", done.redriven);
            progress.reach(Reached::of(looked_at), &said);
            let Some(row) = row.filter(|row| is_meant(row, args)) else { continue };
            done.count(&row);
            if !args.execute {
                continue;
            }
            pace.turn().await;
            let (redriven, said) = if all {
                revive_one(ports, &row.evidence.key, args).await?
            } else {
                redrive_one(ports, &row.evidence.key, args).await?
            };
            done.take(row, redriven, said);
        }
    }
    drop(progress);
    if all && args.execute {
        done.moved = Some(told(ports.move_back(args.rate).await?));
    }
    Ok(())
}

/// Whether a dead row is among those asked for. One that no worker ever held was born dead.
fn is_meant(row: &Row, args: &Redrive) -> bool {
    let life = &row.life;
    life.status == Status::Dead
        && life.epoch > 0
        && match args.which() {
            Which::All => true,
            Which::Release(release) => life.release.as_deref() == Some(release),
            Which::Keys => false,
        }
}

fn told(moved: Moved) -> String {
    match moved {
        Moved::Task(count) => {
            format!("SQS moves about {count} messages by a task of its own (StartMessageMoveTask)")
        }
        Moved::OneByOne(count) => {
            format!("{count} messages were moved one by one: this SQS has no task for it")
        }
    }
}

impl Done {
    fn count(&mut self, row: &Row) {
        self.selected += 1;
        let class = row.life.failure.as_ref().map(|failure| failure.class);
        self.permanent += usize::from(class == Some(FailureClass::Permanent));
        *self.types.entry(row.evidence.event_type.clone()).or_default() += 1;
    }

    fn take(&mut self, row: Row, done: bool, said: String) {
        if done {
            self.redriven += 1;
        } else if self.left.len() < NAMED_MAX {
            self.left.push(Handled { key: row.evidence.key, done, said });
        }
    }

    fn interruption(&self) -> Failure {
        let letters = match (self.letters, &self.moved) {
            (Some(1..), None) if self.executed => "; the dead-letter queue is not moved",
            _ => "",
        };
        let redriven = count(self.redriven, "dead event", "dead events");
        let under_way = if self.executed { "; one more may be under way" } else { "" };
        Failure::interrupted(&format!("behind {redriven} redriven{under_way}{letters}"))
    }

    fn next(&self) -> String {
        let letters = self.letters.unwrap_or(0);
        if self.stopped.is_some() {
            return self.next_where_stopped();
        }
        match (self.executed, self.selected, letters) {
            (false, 0, 0) => match &self.release {
                Some(release) => format!(
                    "nothing died under build {release}; `oncehook dead list` names each build"
                ),
                None => "nothing is dead".to_owned(),
            },
            (false, _, _) => "nothing is done yet; the same with --execute does it".to_owned(),
            (true, _, _) if self.more => "there are more: once again".to_owned(),
            (true, _, _) => "see how they went:\n  oncehook dead list".to_owned(),
        }
    }
}

impl Done {
    /// The rows brought back are due in two minutes, so that the steward sends what was not moved.
    fn next_where_stopped(&self) -> String {
        let again = "the same command again takes up the rest";
        match (self.executed, self.letters) {
            (false, _) => again.to_owned(),
            (true, None) => format!("it stopped there; {again}"),
            (true, Some(_)) => format!(
                "it stopped there, and not all messages of the dead-letter queue were moved; the steward \
                 sends what was redriven within two minutes; {again}"
            ),
        }
    }
}

impl Report for Done {
    fn needs_attention(&self) -> bool {
        !self.left.is_empty()
    }

    fn stopped(&self) -> Option<&Failure> {
        self.stopped.as_ref()
    }

    fn write(&self, page: &mut Page) {
        let what = if self.executed { "redriven" } else { "to redrive" };
        let number = if self.executed { self.redriven } else { self.selected };
        page.heading(format!("{} {what}", count(number, "dead event", "dead events")));
        let mut table = Table::new(&["COUNT", "TYPE"]);
        for (kind, number) in &self.types {
            table.row(Tone::Plain, [number.to_string(), shown(kind)]);
        }
        if !table.is_empty() {
            page.table(&table);
        }
        let mut facts = Vec::new();
        if let Some(release) = &self.release {
            facts.push(Fact::new("build", shown(release)));
        }
        if self.permanent > 0 {
            let said =
                format!("{} of them, which nothing but a person brings back", self.permanent);
            facts.push(Fact::new("permanent", said));
        }
        if let Some(letters) = self.letters {
            let said = format!("about {letters} in the dead-letter queue");
            facts.push(Fact::new("messages", self.moved.clone().unwrap_or(said)));
        }
        for left in &self.left {
            let said = format!("{}: {}", shown(left.key.as_str()), shown(&left.said));
            facts.push(Fact::new("left", said).in_tone(Tone::Warn));
        }
        // Whoever interrupted it is told on standard error.
        if !self.stopped.as_ref().is_some_and(Failure::is_interrupted) {
            facts.push(Fact::new("next", self.next.clone()));
        }
        page.facts(&facts);
    }
}
