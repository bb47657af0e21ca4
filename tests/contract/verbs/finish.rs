//! Settle and resolve.

use super::{fenced, life};
use crate::{
    check::{Verb, moved},
    lives::{EPOCH, FORMATS, NOW, RECEIVED, failure, statuses},
    store::Stores,
};
use ledger::{
    Effect, EffectOutcome, EventKey, FailureClass, Life, Outcome, Policy, Row,
    verbs::{self, FenceRefusal, Resolve, ResolveRefusal, Settle},
};
use workflow::ports::{Conditional, Ledger};

struct Settling;
impl Verb for Settling {
    type Ask = Settle;
    type Refusal = FenceRefusal;
    fn pure(found: Option<&Row>, ask: &Settle) -> Result<Row, FenceRefusal> {
        let row = moved(found, |life| verbs::settle(life, ask, &Policy::default()))?;
        Ok(Row { effects: effects(), ..row })
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &Settle,
    ) -> Conditional<Option<Row>, FenceRefusal> {
        Ok(ledger.settle(key, ask, &effects()).await?.map(|()| None))
    }
}

fn effects() -> Vec<Effect> {
    let version = ledger::Version::new(-7).ok();
    vec![Effect { entity: "s#thing#1".to_owned(), outcome: EffectOutcome::Superseded, version }]
}

pub(crate) async fn settle(stores: &Stores) {
    let times = [None, Some(NOW), Some(NOW.plus(1))];
    let lives = fenced(&times, |at, life| Life {
        settled_at: *at,
        waiting_since: Some(RECEIVED),
        failure: Some(failure(RECEIVED, FailureClass::Transient)),
        ..life
    });
    for outcome in [Outcome::Superseded, Outcome::Ignored] {
        let ask = Settle { epoch: EPOCH, outcome, settled_at: NOW };
        stores.check::<Settling>(stores.pairs(&lives, |_| ask.clone())).await;
    }
}

struct Resolving;
impl Verb for Resolving {
    type Ask = Resolve;
    type Refusal = ResolveRefusal;
    fn pure(found: Option<&Row>, ask: &Resolve) -> Result<Row, ResolveRefusal> {
        moved(found, |life| verbs::resolve(life, ask, &Policy::default()))
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &Resolve,
    ) -> Conditional<Option<Row>, ResolveRefusal> {
        Ok(ledger.resolve(key, ask).await?.map(|()| None))
    }
}

pub(crate) async fn resolve(stores: &Stores) {
    let mut lives = Vec::new();
    for &status in statuses() {
        for format in FORMATS {
            for settled_at in [None, Some(NOW), Some(NOW.plus(1))] {
                for by in [None, Some("ann"), Some("bob")] {
                    lives.push(life(move |_, life| Life {
                        status,
                        format,
                        settled_at,
                        resolved_by: by.map(str::to_owned),
                        failure: Some(failure(RECEIVED, FailureClass::Permanent)),
                        ..life
                    }));
                }
            }
        }
    }
    let ask =
        Resolve { by: "ann".to_owned(), note: "refunded by hand".to_owned(), settled_at: NOW };
    stores.check::<Resolving>(stores.pairs(&lives, |_| ask.clone())).await;
}
