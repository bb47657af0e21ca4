//! One pair: a row and a verb, on a store, against the pure function.

use crate::{
    lives::is_possible,
    store::{InMemory, OnDynamoDb, Store, Stores},
};
use futures::{StreamExt, stream};
use ledger::{EventKey, Life, Row, SourceName};
use std::fmt::Debug;
use workflow::ports::{Conditional, Ledger, Refused};

/// A row, or none, and what is asked of it.
#[derive(Clone)]
pub(crate) struct Pair<A> {
    pub(crate) key: EventKey,
    pub(crate) row: Option<Row>,
    pub(crate) ask: A,
}

/// A verb as a port and as a function.
pub(crate) trait Verb {
    type Ask: Debug;
    type Refusal: Debug + PartialEq;
    /// The pure verb, on the whole row.
    fn pure(found: Option<&Row>, ask: &Self::Ask) -> Result<Row, Self::Refusal>;
    /// The port; the row it answers with, where it answers with one.
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &Self::Ask,
    ) -> Conditional<Option<Row>, Self::Refusal>;
}

/// A verb that moves a life, on a row.
pub(crate) fn moved<R>(
    found: Option<&Row>,
    verb: impl FnOnce(Option<&Life>) -> Result<Life, R>,
) -> Result<Row, R> {
    let life = verb(found.map(|row| &row.life))?;
    let row = found.expect("only a claim makes a row of nothing");
    Ok(Row { life, ..row.clone() })
}

impl Stores {
    /// A key that no other pair has.
    pub(crate) fn key(&self) -> EventKey {
        EventKey::new(&SourceName::new("s").unwrap(), &format!("e{}", self.number())).unwrap()
    }

    /// Pairs of every life that `lives` makes for a key, and of no row, with `ask`.
    pub(crate) fn pairs<A>(
        &self,
        lives: &[impl Fn(&EventKey) -> Row],
        ask: impl Fn(&EventKey) -> A,
    ) -> Vec<Pair<A>> {
        let of = |row: Option<&dyn Fn(&EventKey) -> Row>| {
            let key = self.key();
            Pair { row: row.map(|row| row(&key)), ask: ask(&key), key }
        };
        let rows = lives.iter().map(|life| of(Some(life as &dyn Fn(&EventKey) -> Row)));
        let possible =
            rows.filter(|pair| pair.row.as_ref().is_none_or(|row| is_possible(&row.life)));
        possible.chain([of(None)]).collect()
    }

    /// Checks the pairs on every store.
    pub(crate) async fn check<V: Verb>(&self, pairs: Vec<Pair<V::Ask>>) {
        crate::store::clock_stands(self);
        assert!(pairs.len() > 1);
        let accepted = pairs.iter().filter(|pair| accepts::<V>(pair)).count();
        assert!(
            accepted > 0 && accepted < pairs.len(),
            "{accepted} of {} are accepted",
            pairs.len()
        );
        on::<V, InMemory>(&self.twin, &pairs).await;
        for emulator in &self.emulators {
            on::<V, OnDynamoDb>(emulator, &pairs).await;
        }
        self.count(pairs.len());
    }
}

fn accepts<V: Verb>(pair: &Pair<V::Ask>) -> bool {
    V::pure(pair.row.as_ref(), &pair.ask).is_ok()
}

async fn on<V: Verb, S: Store>(store: &S, pairs: &[Pair<V::Ask>]) {
    let rows: Vec<&Row> = pairs.iter().filter_map(|pair| pair.row.as_ref()).collect();
    let keys: Vec<&EventKey> = pairs.iter().map(|pair| &pair.key).collect();
    store.plant_all(&rows).await;
    let before = store.raw_all(&keys).await;
    assert_eq!(before.len(), rows.len(), "rows planted on {}", store.name());
    let calls = pairs.iter().map(|pair| V::port(store.ports(), &pair.key, &pair.ask));
    let found: Vec<_> = stream::iter(calls).buffered(store.at_once()).collect().await;
    let after = store.raw_all(&keys).await;
    let wrong = pairs.iter().zip(found).filter_map(|(pair, found)| {
        let key = pair.key.as_str();
        wrong::<V, S>(pair, found, before.get(key), after.get(key))
    });
    let wrong: Vec<String> = wrong.collect();
    if let Some(first) = wrong.first() {
        panic!(
            "on {}, {} of {} pairs differ; the first:\n{first}",
            store.name(),
            wrong.len(),
            pairs.len()
        );
    }
}

/// What is wrong with one pair, if anything.
fn wrong<V: Verb, S: Store>(
    pair: &Pair<V::Ask>,
    found: Conditional<Option<Row>, V::Refusal>,
    before: Option<&S::Raw>,
    after: Option<&S::Raw>,
) -> Option<String> {
    let Pair { row, ask, .. } = pair;
    let wanted = V::pure(row.as_ref(), ask);
    let told = |problem: &str, details: &dyn Debug| {
        let life = row.as_ref().map(|row| &row.life);
        let rule = wanted.as_ref().map(|row| &row.life);
        Some(format!(
            "{problem}\n  row   {life:?}\n  ask   {ask:?}\n  rule  {rule:?}\n  store {details:?}"
        ))
    };
    match (&wanted, found) {
        (_, Err(error)) => told("the store failed", &error),
        (Ok(_), Ok(Err(Refused { why, .. }))) => {
            told("the store refuses what the rule allows", &why)
        }
        (Err(_), Ok(Ok(_))) => told("the store allows what the rule refuses", &after),
        (Err(wanted), Ok(Err(refused))) => {
            let is_known = row.as_ref().is_none_or(|row| row.life.format == ledger::ROW_FORMAT);
            if refused.why != *wanted {
                told("the refusal is read differently", &refused.why)
            } else if is_known && refused.row.as_deref() != row.as_ref() {
                told("the refusal shows another row", &refused.row)
            } else if after != before {
                told("a refused write changed the row", &after)
            } else {
                None
            }
        }
        (Ok(wanted), Ok(Ok(answered))) => {
            let lies = after.map(S::row);
            if lies.as_ref() != Some(wanted) {
                told("the row written is not the rule's", &lies)
            } else if answered.as_ref().is_some_and(|answered| answered != wanted) {
                told("the row answered is not the rule's", &answered)
            } else {
                None
            }
        }
    }
}
