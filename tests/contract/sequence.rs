//! Wait in sequence: the row's fence, the predecessor that is still missing, and room in the set of
//! waiters, in one transaction. The verb is not a port of the twin, which runs the pure one anyway.

use crate::{
    lives::{EPOCH, FORMATS, NOW, RECEIVED, row, statuses},
    store::{OnDynamoDb, Store, Stores},
};
use ledger::{
    Entity, EntityKey, EventKey, Life, Row, Status, Version, Waiter,
    verbs::{self, WaitInSequence},
};
use std::collections::BTreeSet;
use workflow::ports::Refused;

/// A row that wants to wait, the entity as it is, and what is asked.
struct Wait {
    key: EventKey,
    row: Option<Row>,
    entity_key: EntityKey,
    entity: Option<Entity>,
    ask: WaitInSequence,
}

fn held(life: Life) -> Life {
    Life { status: Status::Processing, epoch: EPOCH, attempts: 1, ..life }
}

/// A held row with number 50.
fn wait(stores: &Stores, entity: Option<Entity>) -> Wait {
    let key = stores.key();
    let number = Version::new(50).unwrap();
    Wait {
        row: Some(row(&key, held)),
        entity_key: EntityKey::new("s", "thing", &stores.number().to_string()).unwrap(),
        entity,
        ask: WaitInSequence {
            epoch: EPOCH,
            now: NOW,
            waiting_since: None,
            timeout_ms: 3_600_000,
            waiter: Waiter { number, key: key.clone() },
        },
        key,
    }
}

fn entity(reached: Option<i128>, waiting: BTreeSet<String>) -> Entity {
    Entity {
        version: reached.map(|number| Version::new(number).unwrap()),
        rank: 0,
        last_event: "evt_a".to_owned(),
        revision: 7,
        state: serde_json::Map::new(),
        updated_at: RECEIVED,
        is_final: false,
        waiting,
    }
}

fn others(count: usize) -> BTreeSet<String> {
    (0..count).map(|n| format!("{}#s#other_{n}", 60 + n)).collect()
}

pub(crate) async fn wait_in_sequence(stores: &Stores) {
    let most = stores.policy.waiters_max;
    let mut all = vec![wait(stores, None)];
    for reached in [None, Some(-50), Some(48), Some(49), Some(50), Some(51)] {
        for count in [0, 1, most - 1, most, most + 1] {
            for counted in [false, true] {
                let mut one = wait(stores, None);
                let mut waiting = others(count);
                if counted {
                    waiting.insert(one.ask.waiter.to_string());
                }
                one.entity = Some(entity(reached, waiting));
                all.push(one);
            }
        }
    }
    for &status in statuses() {
        for format in FORMATS {
            for epoch in [EPOCH - 1, EPOCH, EPOCH + 1] {
                for reached in [48, 49] {
                    let mut one = wait(stores, Some(entity(Some(reached), others(1))));
                    let life = |life| Life { status, format, epoch, ..held(life) };
                    one.row = Some(row(&one.key, life));
                    all.push(one);
                }
            }
        }
    }
    let mut missing = wait(stores, None);
    missing.row = None;
    all.push(missing);
    for store in &stores.emulators {
        for one in &all {
            check(stores, store, one).await;
        }
    }
    stores.count(all.len());
}

async fn check(stores: &Stores, store: &OnDynamoDb, one: &Wait) {
    if let Some(row) = &one.row {
        store.plant(row).await;
    }
    if let Some(entity) = &one.entity {
        store.plant_entity(&one.entity_key, entity).await;
    }
    let life = one.row.as_ref().map(|row| &row.life);
    let wanted = verbs::wait_in_sequence(life, one.entity.as_ref(), &one.ask, &stores.policy);
    let found = store.ports().wait_in_sequence(&one.key, &one.entity_key, &one.ask).await;
    let (raw, raw_entity) = (store.raw(&one.key).await, store.raw_entity(&one.entity_key).await);
    let lies = raw.as_ref().filter(|_| life.is_none_or(|life| life.format == ledger::ROW_FORMAT));
    let lies = lies.map(|raw| OnDynamoDb::row(raw).life);
    let entity = raw_entity.as_ref().map(|raw| aws::item::decode_entity(raw).unwrap());
    let told = || format!("row {life:?}\nentity {:?}\nask {:?}", one.entity, one.ask);
    match (wanted, found.unwrap()) {
        (Ok(wanted), Ok(())) => {
            assert_eq!(lies.as_ref(), Some(&wanted.life), "{}", told());
            assert_eq!(entity, Some(wanted.entity), "{}", told());
        }
        (Err(wanted), Err(Refused { why, .. })) => {
            assert_eq!(why, wanted, "{}", told());
            assert!(lies.is_none() || lies.as_ref() == life, "{}", told());
            assert_eq!(entity, one.entity, "a refused wait changed the state: {}", told());
        }
        (wanted, found) => {
            panic!(
                "the rule says {wanted:?}, the store {:?}\n{}",
                found.map_err(|no| no.why),
                told()
            )
        }
    }
}
