//! Wait in sequence: the row's fence and the state row's set, in one transaction.

use crate::{
    lives::{EPOCH, FORMATS, NOW, RECEIVED, row, statuses},
    store::{InMemory, OnDynamoDb, Store, Stores},
};
use futures::{StreamExt, stream};
use ledger::{
    Entity, EntityKey, EventKey, Life, Millis, Row, Status, Version, Waiter,
    verbs::{self, WaitInSequence, WaitInSequenceRefusal, Waited},
};
use std::{collections::BTreeSet, fmt::Debug};
use workflow::ports::Ledger;

/// The number that waits; the one before it is missing, or not.
const NUMBER: i128 = 50;

/// A row, the entity as it is, and what is asked.
struct Joining {
    key: EventKey,
    row: Option<Row>,
    entity_key: EntityKey,
    entity: Option<Entity>,
    ask: WaitInSequence,
}

fn joining(
    stores: &Stores,
    life: impl FnOnce(Life) -> Life,
    entity: impl FnOnce(&Waiter) -> Option<Entity>,
) -> Joining {
    let key = stores.key();
    let waiter = Waiter { number: Version::new(NUMBER).unwrap(), key: key.clone() };
    Joining {
        row: Some(row(&key, |fresh| {
            life(Life { status: Status::Processing, epoch: EPOCH, attempts: 2, ..fresh })
        })),
        entity_key: EntityKey::new("s", "thing", &stores.number().to_string()).unwrap(),
        entity: entity(&waiter),
        ask: WaitInSequence {
            epoch: EPOCH,
            now: NOW,
            waiting_since: None,
            timeout_ms: 3_600_000,
            waiter,
        },
        key,
    }
}

fn entity(reached: Option<i128>, waiting: BTreeSet<String>) -> Entity {
    let is_written = reached.is_some();
    Entity {
        version: reached.map(|reached| Version::new(reached).unwrap()),
        rank: 0,
        last_event: if is_written { "evt_a".to_owned() } else { String::new() },
        revision: 7,
        state: serde_json::Map::new(),
        updated_at: if is_written { RECEIVED } else { Millis(0) },
        is_final: false,
        waiting,
    }
}

pub(crate) async fn wait_in_sequence(stores: &Stores) {
    let mut all = Vec::new();
    let due_at = NOW.plus(3_600_000);
    for &status in statuses() {
        for format in FORMATS {
            for epoch in [EPOCH - 1, EPOCH, EPOCH + 1] {
                for retry_at in [None, Some(due_at), Some(due_at.plus(1))] {
                    // With the predecessor there, too: the fence is what counts.
                    for reached in [None, Some(NUMBER - 1)] {
                        let life = |life| Life { status, format, epoch, retry_at, ..life };
                        let found = reached.map(|_| entity(reached, BTreeSet::new()));
                        all.push(joining(stores, life, |_| found));
                    }
                }
            }
        }
    }
    let mut missing = joining(stores, |life| life, |_| None);
    missing.row = None;
    all.push(missing);

    let others = |count: usize| (0..count).map(|n| format!("{}#s#evt_{n}", 60 + n)).collect();
    let most = stores.policy.waiters_max;
    for reached in [None, Some(-60), Some(NUMBER - 2), Some(NUMBER - 1), Some(NUMBER)] {
        for count in [0, 1, most - 1, most, most + 1] {
            for is_member in [false, true] {
                for since in [None, Some(RECEIVED)] {
                    let life = |life| Life { waiting_since: since, ..life };
                    let mut one = joining(stores, life, |waiter| {
                        let mut waiting: BTreeSet<String> = others(count);
                        if is_member && count > 0 {
                            waiting.pop_last();
                            waiting.insert(waiter.to_string());
                        }
                        Some(entity(reached, waiting))
                    });
                    one.ask.waiting_since = since;
                    all.push(one);
                }
            }
        }
    }
    check(stores, all).await;
}

async fn check(stores: &Stores, all: Vec<Joining>) {
    let accepted = all.iter().filter(|one| pure(stores, one).is_ok()).count();
    assert!(accepted > 0 && accepted < all.len(), "{accepted} of {} are accepted", all.len());
    on::<InMemory>(stores, &stores.twin, &all).await;
    for emulator in &stores.emulators {
        on::<OnDynamoDb>(stores, emulator, &all).await;
    }
    stores.count(all.len());
}

fn pure(stores: &Stores, one: &Joining) -> Result<Waited, WaitInSequenceRefusal> {
    let life = one.row.as_ref().map(|row| &row.life);
    verbs::wait_in_sequence(life, one.entity.as_ref(), &one.ask, &stores.policy)
}

async fn on<S: Store>(stores: &Stores, store: &S, all: &[Joining]) {
    let checks =
        stream::iter(all).map(|one| wrong(stores, store, one)).buffer_unordered(store.at_once());
    let wrong: Vec<String> = checks.filter_map(|wrong| async { wrong }).collect().await;
    if let Some(first) = wrong.first() {
        panic!("on {}, {} of {} differ; the first:\n{first}", store.name(), wrong.len(), all.len());
    }
}

/// What is wrong with one, if anything.
async fn wrong<S: Store>(stores: &Stores, store: &S, one: &Joining) -> Option<String> {
    if let Some(row) = &one.row {
        store.plant(row).await;
    }
    if let Some(entity) = &one.entity {
        store.plant_entity(&one.entity_key, entity).await;
    }
    let raw = async || (store.raw(&one.key).await, store.raw_entity(&one.entity_key).await);
    let before = raw().await;
    let wanted = pure(stores, one);
    let found = store.ports().wait_in_sequence(&one.key, &one.entity_key, &one.ask).await;
    let told = |problem: &str, details: &dyn Debug| {
        let life = one.row.as_ref().map(|row| &row.life);
        Some(format!(
            "{problem}\n  row   {life:?}\n  entity {:?}\n  ask   {:?}\n  rule  {wanted:?}\n  store {details:?}",
            one.entity, one.ask
        ))
    };
    match (&wanted, found) {
        (_, Err(error)) => told("the store failed", &error),
        (Ok(_), Ok(Err(refused))) => told("the store refuses what the rule allows", &refused.why),
        (Err(_), Ok(Ok(()))) => told("the store allows what the rule refuses", &()),
        (Err(wanted), Ok(Err(refused))) if refused.why != *wanted => {
            told("the refusal is read differently", &refused.why)
        }
        (Err(_), Ok(Err(_))) if raw().await != before => told("a refused wait wrote", &()),
        (Err(_), Ok(Err(_))) => None,
        (Ok(written), Ok(Ok(()))) => {
            let row = one.row.as_ref()?;
            let wanted = Row { life: written.life.clone(), ..row.clone() };
            let lies = store.ports().row(&one.key).await.unwrap();
            if lies.as_ref() != Some(&wanted) {
                return told("the row written is not the rule's", &lies);
            }
            let lies = store.ports().entity(&one.entity_key).await.unwrap();
            if lies.as_ref() != Some(&written.entity) {
                return told("the entity written is not the rule's", &lies);
            }
            None
        }
    }
}
