//! Backfill: one conditional write on an entity, whatever the entity is.

use crate::store::{InMemory, OnDynamoDb, Store, Stores};
use ledger::{
    Entity, EntityKey, Millis, Version,
    verbs::{Backfill, backfill},
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use workflow::ports::Ledger;

const NOW: Millis = Millis(77);

fn state(by: &str) -> Map<String, Value> {
    Map::from_iter([("by".to_owned(), Value::from(by))])
}

fn entity(version: Option<i128>, is_final: bool, waiter: Option<&str>) -> Entity {
    Entity {
        version: version.map(|number| Version::new(number).unwrap()),
        rank: 3,
        last_event: "evt_m".to_owned(),
        revision: 4,
        state: state("event"),
        updated_at: Millis(5),
        is_final,
        waiting: waiter.map(str::to_owned).into_iter().collect::<BTreeSet<_>>(),
    }
}

pub(crate) async fn backfill_a_version(stores: &Stores) {
    let mut lives = vec![None];
    for version in [None, Some(-60), Some(49), Some(50), Some(51), Some(10_i128.pow(37))] {
        for is_final in [false, true] {
            for waiter in [None, Some("3#s#evt")] {
                lives.push(Some(entity(version, is_final, waiter)));
            }
        }
    }
    let mut pairs = Vec::new();
    for found in lives {
        for given in [None, Some(state("file"))] {
            let entity = EntityKey::new("s", "thing", &stores.number().to_string()).unwrap();
            let version = Version::new(50).unwrap();
            let ask = Backfill { entity, version, state: given, at: NOW };
            pairs.push((found.clone(), ask));
        }
    }
    let accepted =
        pairs.iter().filter(|(found, ask)| backfill(found.as_ref(), ask).is_ok()).count();
    assert!(accepted > 0 && accepted < pairs.len(), "{accepted} of {} are accepted", pairs.len());
    on::<InMemory>(&stores.twin, &pairs).await;
    for emulator in &stores.emulators {
        on::<OnDynamoDb>(emulator, &pairs).await;
    }
    stores.count(pairs.len());
}

async fn on<S: Store>(store: &S, pairs: &[(Option<Entity>, Backfill)]) {
    for (found, ask) in pairs {
        if let Some(entity) = found {
            store.plant_entity(&ask.entity, entity).await;
        }
        let before = store.raw_entity(&ask.entity).await;
        let wanted = backfill(found.as_ref(), ask);
        let answered = store.ports().backfill(ask).await.unwrap();
        let told = format!("on {}: {found:?}, {ask:?}", store.name());
        assert_eq!(answered, wanted.as_ref().map(|_| ()).map_err(|why| *why), "{told}");
        match wanted {
            Ok(entity) => {
                let lies = store.ports().entity(&ask.entity).await.unwrap();
                assert_eq!(lies, Some(entity), "{told}");
            }
            Err(_) => assert_eq!(store.raw_entity(&ask.entity).await, before, "{told}"),
        }
    }
}
