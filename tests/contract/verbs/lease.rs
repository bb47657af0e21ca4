//! Lease.

use super::life;
use crate::{
    check::{Verb, moved},
    lives::{FORMATS, MINE, NOW, RECEIVED, failure, leases, statuses},
    store::Stores,
};
use ledger::{
    EventKey, FailureClass, Life, Policy, Row,
    verbs::{self, LeaseAsk, LeaseRefusal},
};
use workflow::ports::{Conditional, Ledger};

struct Leasing;
impl Verb for Leasing {
    type Ask = LeaseAsk;
    type Refusal = LeaseRefusal;
    fn pure(found: Option<&Row>, ask: &LeaseAsk) -> Result<Row, LeaseRefusal> {
        moved(found, |life| verbs::lease(life, ask, &Policy::default()))
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &LeaseAsk,
    ) -> Conditional<Option<Row>, LeaseRefusal> {
        Ok(ledger.lease(key, ask).await?.map(|leased| Some(leased.row)))
    }
}

pub(crate) async fn lease(stores: &Stores) {
    let cap = stores.policy.attempts_max;
    let early = NOW.plus(stores.policy.lease_early_ms);
    let mut lives = Vec::new();
    for &status in statuses() {
        for format in FORMATS {
            for attempts in [0, cap - 1, cap, cap + 1] {
                for retry_at in [None, Some(early), Some(early.plus(1))] {
                    for held in leases() {
                        for class in [None, Some(FailureClass::Transient)] {
                            let failure = class.map(|class| failure(RECEIVED, class));
                            lives.push(life(move |_, life| Life {
                                status,
                                format,
                                attempts,
                                retry_at,
                                lease: held,
                                failure: failure.clone(),
                                ..life
                            }));
                        }
                    }
                }
            }
        }
    }
    let ask = LeaseAsk { owner: MINE, until: NOW.plus(40_000), now: NOW, release: "r2".to_owned() };
    stores.check::<Leasing>(stores.pairs(&lives, |_| ask.clone())).await;
}
