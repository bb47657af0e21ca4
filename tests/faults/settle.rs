//! After the last delivery: faults end, stewards go on, an operator redrives what is out of automatic
//! redrives, and everything that can finish has to.

use crate::{audit::Ends, drive::Drive, outside, plan::Event, stream};
use aws::item::encode_row;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::{StreamExt, TryStreamExt, stream as streams};
use ledger::{
    Bucket, EventKey, FailureClass, Life, Message, Millis, Open, Row, SHARDS, Status,
    verbs::{Redrive, RedriveBy},
};
use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};
use support::{Depth, Resource, now_ms};
use workflow::{
    body,
    ports::{Ledger, Outbox},
};

/// Rows read at the same time.
const AT_ONCE: usize = 16;
/// How long everything may take to finish. The longest single wait is a message's visibility.
const LIMIT: Duration = Duration::from_mins(4);
/// How long a number waits for the one before it, in `infra/sources.toml`.
const HOUR_MS: u64 = 3_600_000;
/// Who is due later than this waits for a predecessor: nothing else here waits that long.
const RESTS_MS: u64 = 60_000;
/// How often it is said what is left.
const EVERY: Duration = Duration::from_secs(10);
/// How long dead letters that are looked at may stay hidden.
const LETTERS_WITHIN: Duration = Duration::from_secs(15);

/// Waits until nothing is unfinished: no row is pending, none is dead that could live, no message is
/// in the queue. When all that is left waits for its predecessor, its time passes. What is left at the
/// limit is the auditor's to find. Rows whose time had to pass.
pub(crate) async fn settle(drive: &Drive) -> Result<HashSet<String>, String> {
    drive.rig.schedule.calm();
    let begun = Instant::now();
    let mut said = Instant::now();
    let mut waited = HashSet::new();
    let mut listed: Vec<&Event> =
        drive.plan.events.iter().filter(|event| outside::is_listed(event)).collect();
    loop {
        drive.tick(false).await;
        listed = unclaimed(drive, listed).await?;
        if !listed.is_empty() {
            drive.reconcile().await;
        }
        let is_late = begun.elapsed() > LIMIT;
        match left(drive).await {
            Ok((open, queue)) if open.is_empty() && queue.total() == 0 && listed.is_empty() => {
                return Ok(waited);
            }
            Ok((open, queue)) if open.may_wait_alone() && queue.total() == 0 => {
                waited.extend(let_time_pass(drive, &open.pending).await?);
            }
            Ok((open, queue)) if is_late || said.elapsed() > EVERY => {
                said = Instant::now();
                tell(&open, queue);
            }
            // A busy machine answers the next time.
            Err(error) if is_late => return Err(error),
            Ok(_) | Err(_) => {}
        }
        if is_late {
            eprintln!("faults: not over after {} s", LIMIT.as_secs());
            return Ok(waited);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Those of a provider's list that have no row yet.
async fn unclaimed<'a>(drive: &Drive, listed: Vec<&'a Event>) -> Result<Vec<&'a Event>, String> {
    let looked: Vec<Option<&Event>> = streams::iter(listed)
        .map(|event| async move {
            let row = drive.rig.stack.find_row(&event.key).await?;
            Ok::<_, String>(row.is_none().then_some(event))
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(looked.into_iter().flatten().collect())
}

/// What is unfinished, and what the queue holds; what waits for a person is redriven.
async fn left(drive: &Drive) -> Result<(Unfinished, Depth), String> {
    let open = open(drive).await?;
    if !open.parked.is_empty() {
        redrive(drive, &open.parked).await?;
    }
    Ok((open, drive.rig.stack.depth(Resource::Queue).await?))
}

fn tell(open: &Unfinished, queue: Depth) {
    eprintln!(
        "faults: {} rows pending, {} dead, {} parked; messages {} waiting, {} hidden",
        open.pending.len(),
        open.dead.len(),
        open.parked.len(),
        queue.visible,
        queue.hidden
    );
}

/// Keys of unfinished rows, those left out that no run can help.
#[derive(Debug, Default)]
struct Unfinished {
    pending: Vec<String>,
    dead: Vec<String>,
    parked: Vec<String>,
}

impl Unfinished {
    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.dead.is_empty() && self.parked.is_empty()
    }

    /// Whether rows that wait for their predecessor may be all that is left.
    fn may_wait_alone(&self) -> bool {
        !self.pending.is_empty() && self.dead.is_empty() && self.parked.is_empty()
    }
}

/// The hour that a number waits is over for these rows, if all of them rest in it; which they are.
async fn let_time_pass(drive: &Drive, keys: &[String]) -> Result<Vec<String>, String> {
    let stack = &drive.rig.stack;
    let rows: Vec<Option<Row>> = streams::iter(keys)
        .map(|key| stack.find_row(key))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let now = Millis(now_ms());
    if !rows.iter().all(|row| row.as_ref().is_some_and(|row| rests(&row.life, now))) {
        return Ok(Vec::new());
    }
    streams::iter(rows.into_iter().flatten())
        .map(|row| let_its_time_pass(drive, row))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// A row that waits is looked at when its time is up, and not before; so is one whose worker was killed
/// while it looked whether to go on waiting.
fn rests(life: &Life, now: Millis) -> bool {
    let is_asleep = match life.status {
        Status::Waiting => true,
        Status::Processing => life.lease.is_none_or(|lease| lease.until < now),
        Status::Claimed | Status::Failed | Status::Dead | Status::Settled => false,
    };
    is_asleep && life.open.is_some_and(|open| open.due_at > now.plus(RESTS_MS))
}

async fn let_its_time_pass(drive: &Drive, mut row: Row) -> Result<String, String> {
    let now = Millis(now_ms());
    row.life.waiting_since = Some(now.minus(HOUR_MS));
    row.life.open = row.life.open.map(|open| Open { due_at: now, ..open });
    let put = drive.rig.stack.aws.dynamodb().put_item().set_item(Some(encode_row(&row)));
    put.table_name(drive.rig.stack.env.get("ONCEHOOK_LEDGER_TABLE")?)
        .condition_expression("epoch = :epoch AND #status = :status")
        .expression_attribute_names("#status", "status")
        .expression_attribute_values(":epoch", AttributeValue::N(row.life.epoch.to_string()))
        .expression_attribute_values(":status", AttributeValue::S(row.life.status.to_string()))
        .send()
        .await
        .map_err(|error| error.to_string())?;
    drive.rig.witness.remark(row.evidence.key.as_str(), "its time passes");
    Ok(row.evidence.key.as_str().to_owned())
}

async fn open(drive: &Drive) -> Result<Unfinished, String> {
    let aws = &drive.rig.stack.aws;
    let mut open = Unfinished::default();
    for shard in 0..SHARDS {
        for bucket in [Bucket::Pending(shard), Bucket::Dead(shard), Bucket::Parked(shard)] {
            let entries = aws.open(bucket, Millis::END_OF_TIME, None, 100_000).await;
            for entry in entries.map_err(|error| error.to_string())? {
                let key = entry.key.as_str().to_owned();
                match bucket {
                    Bucket::Pending(_) => open.pending.push(key),
                    Bucket::Dead(_) => open.dead.push(key),
                    Bucket::Parked(_) if is_hopeless(drive, &key).await? => {}
                    Bucket::Parked(_) => open.parked.push(key),
                }
            }
        }
    }
    Ok(open)
}

async fn is_hopeless(drive: &Drive, key: &str) -> Result<bool, String> {
    let row = drive.rig.stack.find_row(key).await?;
    Ok(row
        .and_then(|row| row.life.failure)
        .is_some_and(|failure| failure.class == FailureClass::Permanent))
}

/// What an operator's command does: the row, then its message.
async fn redrive(drive: &Drive, keys: &[String]) -> Result<(), String> {
    let aws = &drive.rig.stack.aws;
    for key in keys {
        let key = EventKey::parse(key).map_err(|error| error.to_string())?;
        let by = RedriveBy::Person {
            by: "auditor".to_owned(),
            reason: "the faults are over".to_owned(),
        };
        let ask = Redrive { by, now: Millis(now_ms()), shard: key.shard() };
        drive.rig.witness.remark(key.as_str(), "redriven by a person");
        aws.redrive(&key, &ask).await.map_err(|error| error.to_string())?.ok();
        let message = Message::new(key, "", None);
        aws.send(&message, "operator").await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Reads everything there is.
pub(crate) async fn ends(drive: &Drive, waited: HashSet<String>) -> Result<Ends<'_>, String> {
    let stack = &drive.rig.stack;
    let mut keys: HashSet<String> =
        drive.plan.events.iter().map(|event| event.key.clone()).collect();
    keys.extend(beside(drive).await?);
    let rows: Vec<Option<Row>> = streams::iter(keys)
        .map(|key| async move { stack.find_row(&key).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let rows: HashMap<String, Row> =
        rows.into_iter().flatten().map(|row| (row.evidence.key.as_str().to_owned(), row)).collect();
    let bodies: Vec<(String, Vec<u8>)> = streams::iter(rows.values())
        .map(|row| async move {
            let bytes = body::read(&stack.aws, row).await.unwrap_or_default();
            (row.evidence.key.as_str().to_owned(), bytes)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let changes = drive.rig.lambda.changes(stack.env.get("ONCEHOOK_STATE_TABLE")?).await?;
    Ok(Ends {
        plan: &drive.plan,
        accepted: drive.accepted(),
        rows,
        bodies: bodies.into_iter().collect(),
        writes: stream::writes(&changes)?,
        dead_letters: dead_letters(drive).await?,
        waited,
    })
}

/// The keys of what was kept beside a row of the same id.
async fn beside(drive: &Drive) -> Result<Vec<String>, String> {
    let stack = &drive.rig.stack;
    let scan = stack.aws.dynamodb().scan().table_name(stack.env.get("ONCEHOOK_LEDGER_TABLE")?);
    let scan = scan
        .projection_expression("pk")
        .filter_expression("begins_with(pk, :beside)")
        .expression_attribute_values(":beside", AttributeValue::S("_c#".to_owned()));
    let items: Vec<_> = scan
        .into_paginator()
        .items()
        .send()
        .collect::<Result<_, _>>()
        .await
        .map_err(|error| error.to_string())?;
    let key = |item: &HashMap<String, AttributeValue>| item.get("pk")?.as_s().ok().cloned();
    Ok(items.iter().filter_map(key).collect())
}

/// Rows named in the dead-letter queue. Its messages stay hidden: the run is over. What a steward
/// looks at just now is hidden from us, so they are counted first and waited for.
async fn dead_letters(drive: &Drive) -> Result<HashSet<String>, String> {
    let stack = &drive.rig.stack;
    let url = stack.env.get("ONCEHOOK_DLQ_URL")?;
    let there = stack.depth(Resource::DeadLetterQueue).await?.total();
    let begun = Instant::now();
    let (mut seen, mut found) = (HashSet::new(), HashSet::new());
    while (seen.len() as u64) < there && begun.elapsed() < LETTERS_WITHIN {
        let call = stack.aws.sqs().receive_message().queue_url(url).max_number_of_messages(10);
        let answer = call.visibility_timeout(600).wait_time_seconds(1).send().await;
        let messages = answer.map_err(|error| error.to_string())?.messages.unwrap_or_default();
        for message in messages {
            seen.extend(message.message_id);
            let message = Message::parse(message.body.as_deref().unwrap_or_default());
            found.extend(message.map(|message| message.key.as_str().to_owned()).ok());
        }
    }
    Ok(found)
}

/// Rows settled, and rows dead.
pub(crate) fn finished(ends: &Ends<'_>) -> (usize, usize) {
    let count = |status| ends.rows.values().filter(|row| row.life.status == status).count();
    (count(Status::Settled), count(Status::Dead))
}
