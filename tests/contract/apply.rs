//! Apply and settle: the row's fence, every entity's guard and the waiter, in one transaction.

use crate::{
    lives::{EPOCH, FORMATS, NOW, RECEIVED, row, statuses},
    store::{InMemory, OnDynamoDb, Store, Stores},
};
use futures::{StreamExt, stream};
use ledger::{
    Bucket, Change, Effect, EffectOutcome, Entity, EntityKey, EventKey, Guard, Life, Open, Row,
    Stamp, Status, Tie, Version,
    verbs::{self, Apply, Wake},
};
use serde_json::json;
use std::{collections::BTreeSet, fmt::Debug};
use workflow::ports::{Ledger, Refused};

/// A row, the entities it changes as they are, the row it wakes, and what is asked.
struct Transaction {
    key: EventKey,
    row: Option<Row>,
    entities: Vec<Option<Entity>>,
    next: Option<Row>,
    ask: Apply,
}

fn version(number: i128) -> Version {
    Version::new(number).unwrap()
}

fn state(value: i64) -> serde_json::Map<String, serde_json::Value> {
    let json =
        json!({"n": value, "exact": "10.10", "none": null, "list": [1, {"a": ""}], "yes": true});
    json.as_object().unwrap().clone()
}

fn held(life: Life) -> Life {
    Life {
        status: Status::Processing,
        epoch: EPOCH,
        attempts: 1,
        waiting_since: Some(RECEIVED),
        ..life
    }
}

fn newer(stores: &Stores, tie: Tie, is_final: bool) -> Change {
    let stamp = Stamp { version: version(50), rank: 5, event_id: "evt_m".to_owned() };
    change(stores, Guard::Newer { stamp, tie }, is_final)
}

fn on_revision(
    stores: &Stores,
    read: Option<u64>,
    carried: Option<Version>,
    is_final: bool,
) -> Change {
    change(
        stores,
        Guard::Revision { read, version: carried, event_id: "evt_m".to_owned() },
        is_final,
    )
}

fn change(stores: &Stores, guard: Guard, is_final: bool) -> Change {
    let entity = EntityKey::new("s", "thing", &stores.number().to_string()).unwrap();
    Change { entity, guard, state: state(2), is_final, leaves: BTreeSet::new() }
}

fn entity(
    number: Option<i128>,
    rank: u32,
    last_event: &str,
    revision: u64,
    is_final: bool,
) -> Entity {
    Entity {
        version: number.map(version),
        rank,
        last_event: last_event.to_owned(),
        revision,
        state: state(1),
        updated_at: RECEIVED,
        is_final,
        waiting: BTreeSet::new(),
    }
}

/// A transaction on a held row.
fn on_held(stores: &Stores, entities: Vec<Option<Entity>>, changes: Vec<Change>) -> Transaction {
    let key = stores.key();
    let row = Some(row(&key, held));
    Transaction { key, row, entities, next: None, ask: Apply::new(EPOCH, NOW, changes) }
}

pub(crate) async fn apply_under_the_fence(stores: &Stores) {
    let mut all = Vec::new();
    for &status in statuses() {
        for format in FORMATS {
            for epoch in [EPOCH - 1, EPOCH, EPOCH + 1] {
                for settled_at in [None, Some(NOW), Some(NOW.plus(1))] {
                    // With an entity in the way, too: the fence is what counts.
                    for found in [None, Some(entity(Some(60), 0, "evt_a", 1, false))] {
                        let mut one =
                            on_held(stores, vec![found], vec![newer(stores, Tie::Rank, false)]);
                        let key = one.key.clone();
                        let life = |life| Life { status, format, epoch, settled_at, ..held(life) };
                        one.row = Some(row(&key, life));
                        all.push(one);
                    }
                }
            }
        }
    }
    let mut missing = on_held(stores, vec![None], vec![newer(stores, Tie::Rank, false)]);
    missing.row = None;
    all.push(missing);
    check(stores, all).await;
}

pub(crate) async fn apply_behind_the_version_guard(stores: &Stores) {
    let mut entities = vec![None];
    for number in [None, Some(-60), Some(49), Some(50), Some(51)] {
        for rank in [4, 5, 6] {
            for last_event in ["evt_a", "evt_m", "evt_m2", "evt_z", "EVT_M", "\u{e9}"] {
                entities.extend(
                    [false, true]
                        .map(|is_final| Some(entity(number, rank, last_event, 3, is_final))),
                );
            }
        }
    }
    let mut all = Vec::new();
    for tie in [Tie::Rank, Tie::Skip] {
        for is_final in [false, true] {
            let one = |found: &Option<Entity>| {
                on_held(stores, vec![found.clone()], vec![newer(stores, tie, is_final)])
            };
            all.extend(entities.iter().map(one));
        }
    }
    check(stores, all).await;
}

pub(crate) async fn apply_on_the_revision_read(stores: &Stores) {
    let mut all = Vec::new();
    for read in [None, Some(1), Some(2)] {
        for carried in [None, Some(version(50))] {
            for becomes_final in [false, true] {
                for number in [None, Some(40)] {
                    let of =
                        |revision, is_final| Some(entity(number, 0, "evt_a", revision, is_final));
                    for found in [None, of(1, false), of(2, false), of(3, false), of(1, true)] {
                        let asked = on_revision(stores, read, carried, becomes_final);
                        all.push(on_held(stores, vec![found], vec![asked]));
                    }
                }
            }
        }
    }
    check(stores, all).await;
}

/// What may be written, what is superseded, what has moved.
fn outcomes(stores: &Stores) -> [(Option<Entity>, Change); 3] {
    [
        (None, newer(stores, Tie::Rank, false)),
        (Some(entity(Some(60), 0, "evt_a", 1, false)), newer(stores, Tie::Rank, false)),
        (Some(entity(None, 0, "evt_a", 2, false)), on_revision(stores, Some(1), None, false)),
    ]
}

pub(crate) async fn apply_to_several_entities(stores: &Stores) {
    let mut all = Vec::new();
    for first in 0..3 {
        for second in outcomes(stores) {
            // Anew for every transaction: each has entities of its own.
            let first = outcomes(stores)[first].clone();
            let (entities, changes) = [first, second].into_iter().unzip();
            all.push(on_held(stores, entities, changes));
        }
    }
    check(stores, all).await;
}

pub(crate) async fn apply_that_wakes_a_waiter(stores: &Stores) {
    let waits: Vec<Option<(Status, u32)>> =
        statuses().iter().map(|status| Some((*status, FORMATS[0]))).collect();
    let mut all = Vec::new();
    for next in [waits, vec![Some((Status::Waiting, FORMATS[1])), None]].concat() {
        for (found, mut asked) in outcomes(stores) {
            let key = stores.key();
            let member = |n: u32| format!("{n}#{key}");
            let found =
                found.map(|found| Entity { waiting: (4..7).map(member).collect(), ..found });
            asked.leaves = (4..6).map(member).collect();
            let mut one = on_held(stores, vec![found], vec![asked]);
            one.ask.wake = Some(Wake { key: key.clone() });
            one.next = next.map(|(status, format)| {
                let open = Open { bucket: Bucket::Pending(key.shard()), due_at: NOW.plus(9_000) };
                row(&key, |life| Life { status, format, open: Some(open), ..life })
            });
            all.push(one);
        }
    }
    check(stores, all).await;
}

async fn check(stores: &Stores, all: Vec<Transaction>) {
    let accepted = all.iter().filter(|one| pure(stores, one).is_ok()).count();
    assert!(accepted > 0 && accepted < all.len(), "{accepted} of {} are accepted", all.len());
    on::<InMemory>(stores, &stores.twin, &all).await;
    for emulator in &stores.emulators {
        on::<OnDynamoDb>(stores, emulator, &all).await;
    }
    stores.count(all.len());
}

fn pure(stores: &Stores, one: &Transaction) -> Result<verbs::Applied, verbs::ApplyRefusal> {
    let entities: Vec<Option<&Entity>> = one.entities.iter().map(Option::as_ref).collect();
    let life = |row: &Option<Row>| row.as_ref().map(|row| row.life.clone());
    let (found, next) = (life(&one.row), life(&one.next));
    verbs::apply_and_wake(found.as_ref(), &entities, next.as_ref(), &one.ask, &stores.policy)
}

async fn on<S: Store>(stores: &Stores, store: &S, all: &[Transaction]) {
    let checks =
        stream::iter(all).map(|one| wrong(stores, store, one)).buffer_unordered(store.at_once());
    let wrong: Vec<String> = checks.filter_map(|wrong| async { wrong }).collect().await;
    if let Some(first) = wrong.first() {
        panic!(
            "on {}, {} of {} transactions differ; the first:\n{first}",
            store.name(),
            wrong.len(),
            all.len()
        );
    }
}

/// What is wrong with one transaction, if anything.
async fn wrong<S: Store>(stores: &Stores, store: &S, one: &Transaction) -> Option<String> {
    plant(store, one).await;
    let before = all_raw(store, one).await;
    let wanted = pure(stores, one);
    let effects: Vec<Effect> = one.ask.changes.iter().map(effect).collect();
    let found = store.ports().apply(&one.key, &one.ask, &effects).await;
    let told = |problem: &str, details: &dyn Debug| {
        let life = one.row.as_ref().map(|row| &row.life);
        let next = one.next.as_ref().map(|row| &row.life);
        Some(format!(
            "{problem}\n  row   {life:?}\n  entities {:?}\n  next  {next:?}\n  ask   {:?}\n  rule  {wanted:?}\n  store {details:?}",
            one.entities, one.ask
        ))
    };
    match (&wanted, found) {
        (_, Err(error)) => told("the store failed", &error),
        (Ok(_), Ok(Err(Refused { why, .. }))) => {
            told("the store refuses what the rule allows", &why)
        }
        (Err(_), Ok(Ok(()))) => told("the store allows what the rule refuses", &()),
        (Err(wanted), Ok(Err(refused))) if refused.why != *wanted => {
            told("the refusal is read differently", &refused.why)
        }
        (Err(_), Ok(Err(_))) if all_raw(store, one).await != before => {
            told("a refused transaction wrote", &())
        }
        (Err(_), Ok(Err(_))) => None,
        (Ok(applied), Ok(Ok(()))) => {
            let row = one.row.as_ref()?;
            let wanted = Row { life: applied.life.clone(), effects, ..row.clone() };
            let lies = store.ports().row(&one.key).await.unwrap();
            if lies.as_ref() != Some(&wanted) {
                return told("the row written is not the rule's", &lies);
            }
            for (asked, wanted) in one.ask.changes.iter().zip(&applied.entities) {
                let lies = store.ports().entity(&asked.entity).await.unwrap();
                if lies.as_ref() != Some(wanted) {
                    return told("an entity written is not the rule's", &lies);
                }
            }
            let next = one.next.as_ref().zip(applied.woken.clone());
            let wanted = next.map(|(row, life)| Row { life, ..row.clone() });
            match &one.ask.wake {
                Some(wake) if store.ports().row(&wake.key).await.unwrap() != wanted => {
                    told("the row woken is not the rule's", &wake)
                }
                _ => None,
            }
        }
    }
}

async fn plant<S: Store>(store: &S, one: &Transaction) {
    for row in [&one.row, &one.next].into_iter().flatten() {
        store.plant(row).await;
    }
    for (asked, entity) in one.ask.changes.iter().zip(&one.entities) {
        if let Some(entity) = entity {
            store.plant_entity(&asked.entity, entity).await;
        }
    }
}

/// Everything the transaction may touch, as it lies there.
async fn all_raw<S: Store>(store: &S, one: &Transaction) -> Vec<Option<S::Raw>> {
    let mut all = vec![store.raw(&one.key).await];
    for asked in &one.ask.changes {
        all.push(store.raw_entity(&asked.entity).await);
    }
    if let Some(wake) = &one.ask.wake {
        all.push(store.raw(&wake.key).await);
    }
    all
}

fn effect(change: &Change) -> Effect {
    Effect {
        entity: change.entity.as_str().to_owned(),
        outcome: EffectOutcome::Applied,
        version: change.version(),
    }
}
