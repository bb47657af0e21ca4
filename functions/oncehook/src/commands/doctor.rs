//! `doctor`: is this stack as it should be, and may this person work on it?
//!
//! Asks AWS once for each thing, changes nothing, and judges each answer by itself: what was found,
//! what was expected, what to do. One that cannot be asked is a check that fails, not a command that
//! does, so that a missing permission hides nothing else.

mod judge;
mod missed;
mod parts;

use crate::{
    context::Context,
    failure::Failure,
    output::{Fact, Page, Report, Table, Tone, count, shown},
    rows,
};
use aws::{Aws, Resource};
use config::Fetch;
use futures::{StreamExt, future::join_all, stream};
use ledger::{Age, Bucket, EntityKey, EventKey, Millis, Policy, age};
use serde::Serialize;
use std::collections::BTreeMap;
use workflow::{
    outbound::{NoKey, api_key},
    ports::{Clock, Ledger, OpenEntry, PortError, Secret, SecretStore},
};

/// Entries counted of one kind; more are "at least".
const COUNTED_MAX: usize = 10_000;
/// Old pending rows read to see whether they wait by design.
const READ_MAX: usize = 500;
/// What must be named for anything to be checked.
const NEEDED: &[Resource] = &[
    Resource::LedgerTable,
    Resource::StateTable,
    Resource::Queue,
    Resource::DeadLetterQueue,
    Resource::SigningSecret,
];

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Grade {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warn,
    /// Somebody should act.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// What was looked at.
    what: String,
    grade: Grade,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Check {
    fn ok(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            grade: Grade::Ok,
            found: found.into(),
            expected: None,
            next: None,
        }
    }

    fn bad(
        grade: Grade,
        what: impl Into<String>,
        found: impl Into<String>,
        expected: &str,
        next: &str,
    ) -> Self {
        Self {
            grade,
            expected: Some(expected.to_owned()),
            next: Some(next.to_owned()),
            ..Self::ok(what, found)
        }
    }

    /// A thing that could not be asked.
    fn unasked(what: impl Into<String>, error: PortError) -> Self {
        let failure = Failure::from(error);
        let next = failure.next().unwrap_or_default().to_owned();
        Self::bad(Grade::Fail, what, failure.to_string(), "an answer", &next)
    }
}

/// Every check.
#[derive(Debug, Serialize)]
pub(crate) struct Examined {
    ok: usize,
    warn: usize,
    fail: usize,
    checks: Vec<Check>,
}

/// Examines the stack.
pub(crate) async fn run(context: &Context) -> Result<Examined, Failure> {
    let aws = context.connect(NEEDED).await?;
    let mut checks = vec![judge::configuration(&context.config, &context.settings.stage)];
    checks.extend(tables(&aws).await);
    checks.extend(queues(&aws).await);
    checks.extend(permissions(&aws, context).await);
    checks.extend(secrets(&aws, context).await);
    checks.extend(missed::checks(&aws, context).await);
    checks.push(clock(&aws).await);
    checks.extend(work(&aws, context).await);
    let number = |grade| checks.iter().filter(|check| check.grade == grade).count();
    let (ok, warn, fail) = (number(Grade::Ok), number(Grade::Warn), number(Grade::Fail));
    Ok(Examined { ok, warn, fail, checks })
}

async fn tables(aws: &Aws) -> Vec<Check> {
    let ledger = match aws.table_facts(Resource::LedgerTable).await {
        Ok(facts) => parts::ledger_table(&facts),
        Err(error) => vec![Check::unasked("ledger table", error)],
    };
    let state = match aws.table_facts(Resource::StateTable).await {
        Ok(facts) => parts::state_table(&facts),
        Err(error) => vec![Check::unasked("state table", error)],
    };
    [ledger, state].concat()
}

async fn queues(aws: &Aws) -> Vec<Check> {
    let queue = aws.queue_facts(Resource::Queue).await;
    let dead = aws.queue_facts(Resource::DeadLetterQueue).await;
    match (queue, dead) {
        (Ok(queue), Ok(dead)) => parts::queues(&queue, &dead),
        (queue, dead) => {
            let queue = queue.err().map(|error| Check::unasked("queue", error));
            let dead = dead.err().map(|error| Check::unasked("dead-letter queue", error));
            queue.into_iter().chain(dead).collect()
        }
    }
}

/// Each kind of call that the other commands make, tried without a change.
async fn permissions(aws: &Aws, context: &Context) -> Vec<Check> {
    let nobody =
        |error: ledger::KeyError| Check::bad(Grade::Fail, "key", error.to_string(), "a key", "");
    let (event, entity) = match (EventKey::parse("_w#doctor"), EntityKey::parse("_w#doctor#x")) {
        (Ok(event), Ok(entity)) => (event, entity),
        (Err(error), _) | (_, Err(error)) => return vec![nobody(error)],
    };
    let source = context.config.sources().next().map_or("none", |source| source.name.as_str());
    let day = format!("{source}#{}#0", aws.now().date());
    let now = aws.now();
    let tried: [(&str, Result<(), PortError>); 5] = [
        ("read events", aws.row(&event).await.map(drop)),
        ("read entities", aws.entity(&entity).await.map(drop)),
        ("query the index open", aws.open(Bucket::Pending(0), now, None, 1).await.map(drop)),
        ("query the index by_day", aws.day(&day, now, now, true, 1).await.map(drop)),
        ("write events", aws.try_writes(Resource::LedgerTable).await),
    ];
    let checks = tried.into_iter().map(|(what, done)| {
        let what = format!("may {what}");
        match done {
            Ok(()) => Check::ok(what, "yes"),
            Err(error) => Check::unasked(what, error),
        }
    });
    checks.collect()
}

/// The signing secret as the receiver reads it, source by source; of the others, whether they are
/// there.
async fn secrets(aws: &Aws, context: &Context) -> Vec<Check> {
    let document = match aws.fetch(Secret::Signing).await {
        Ok(document) => document,
        Err(error) => return vec![Check::unasked("signing secret", error)],
    };
    let settings = &context.settings;
    let reads = context.config.sources().map(|source| async {
        let keys = crate::keys::on(source, &context.config, &document, settings.is_local()).await;
        judge::keys(source, keys)
    });
    let mut checks = join_all(reads).await;
    for (secret, resource, what) in [
        (Secret::Outbound, Resource::OutboundSecret, "outbound secret"),
        (Secret::Replay, Resource::ReplaySecret, "replay secret"),
    ] {
        if settings.get(resource).is_ok() {
            checks.push(match aws.fetch(secret).await {
                Ok(document) => judge::document(what, &document),
                Err(error) => Check::unasked(what, error),
            });
        }
    }
    if settings.get(Resource::OutboundSecret).is_ok() {
        checks.extend(outbound_keys(aws, context).await);
    }
    checks
}

/// What is wrong with the keys that fetched state is asked for with.
async fn outbound_keys(aws: &Aws, context: &Context) -> Vec<Check> {
    let projections = context.config.sources().flat_map(|source| &source.projections);
    let fetches: BTreeMap<&str, &Fetch> = projections
        .filter_map(|projection| projection.fetch.as_deref())
        .map(|fetch| (fetch.path.as_str(), fetch))
        .collect();
    let is_local = context.settings.is_local();
    let reads = fetches.into_values().map(|fetch| async move {
        match api_key(aws, Secret::Outbound, &fetch.secret, is_local).await {
            // That is said of the secret as a whole.
            Err(NoKey::Unreadable(_) | NoKey::NotAnObject) => None,
            read => judge::outbound_key(&fetch.path, read.map(drop)),
        }
    });
    join_all(reads).await.into_iter().flatten().collect()
}

async fn clock(aws: &Aws) -> Check {
    match aws.clocks().await {
        Ok(clocks) => judge::clock(clocks),
        Err(error) => Check::unasked("clock", error),
    }
}

/// What is going on: the steward, the oldest pending event, the dead.
async fn work(aws: &Aws, context: &Context) -> Vec<Check> {
    let now = aws.now();
    let steward = match aws.notes().await {
        Ok(notes) => judge::steward(notes.redriven_at, now, &context.settings.policy),
        Err(error) => Check::unasked("steward", error),
    };
    let pending = rows::open(aws, &[Bucket::Pending], Millis::END_OF_TIME, COUNTED_MAX).await;
    let pending = match pending {
        Ok(entries) => {
            let unfinished_ms = unfinished_ms(aws, &entries, now, &context.settings.policy).await;
            judge::pending(&entries, unfinished_ms, now, COUNTED_MAX)
        }
        Err(error) => Check::unasked("pending events", error),
    };
    let dead =
        rows::open(aws, &[Bucket::Dead, Bucket::Parked], Millis::END_OF_TIME, COUNTED_MAX).await;
    let dead = dead.map_or_else(
        |error| Check::unasked("dead events", error),
        |entries| judge::dead(entries.len(), COUNTED_MAX),
    );
    vec![steward, pending, dead]
}

/// For how long the oldest pending event should have been finished. What waits by design is no such
/// event, so the old ones are looked at; one that cannot be read is counted.
async fn unfinished_ms(
    ledger: &impl Ledger,
    entries: &[OpenEntry],
    now: Millis,
    policy: &Policy,
) -> u64 {
    let age_of = async |entry: &OpenEntry| match ledger.row(&entry.key).await {
        Ok(row) => row.and_then(|row| age(&row.life, row.evidence.received_at, now, policy)),
        Err(_) => Some(Age::Unfinished { ms: now.since(entry.received_at) }),
    };
    let old = entries.iter().filter(|one| now.since(one.received_at) > judge::PENDING_MAX_MS);
    let ages = stream::iter(old.take(READ_MAX)).map(age_of).buffer_unordered(rows::AT_ONCE);
    ages.fold(0, async |oldest: u64, age| match age {
        Some(Age::Unfinished { ms }) => oldest.max(ms),
        Some(Age::Waits { .. }) | None => oldest,
    })
    .await
}

impl Report for Examined {
    fn needs_attention(&self) -> bool {
        self.fail > 0
    }

    fn write(&self, page: &mut Page) {
        let mut table = Table::new(&["CHECK", "WHAT", "FOUND"]);
        for check in &self.checks {
            let (word, tone) = match check.grade {
                Grade::Ok => ("ok", Tone::Good),
                Grade::Warn => ("warn", Tone::Warn),
                Grade::Fail => ("FAIL", Tone::Bad),
            };
            table.row(tone, [word.to_owned(), check.what.clone(), shown(&check.found)]);
        }
        page.table(&table);
        for check in self.checks.iter().filter(|check| check.grade != Grade::Ok) {
            page.blank();
            page.heading(&check.what);
            let mut facts = vec![Fact::new("found", shown(&check.found))];
            facts.extend(check.expected.as_deref().map(|text| Fact::new("expected", text)));
            facts.extend(check.next.as_deref().map(|text| Fact::new("next", text)));
            page.facts(&facts);
        }
        page.blank();
        let text = format!(
            "{}: {} ok, {} to look at, {} failed",
            count(self.checks.len(), "check", "checks"),
            self.ok,
            self.warn,
            self.fail
        );
        page.toned(if self.fail > 0 { Tone::Bad } else { Tone::Dim }, text);
    }
}
