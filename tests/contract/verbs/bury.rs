//! Bury and forced bury.

use super::{fenced, life};
use crate::{
    check::{Verb, moved},
    lives::{EPOCH, FORMATS, NOW, RECEIVED, failure, leases, open, statuses},
    store::Stores,
};
use ledger::{
    Bucket, EventKey, FailureClass, Life, Policy, Row,
    verbs::{self, Bury, BuryRefusal, ForcedBury, ForcedBuryRefusal},
};
use workflow::ports::{Conditional, Ledger};

struct Burying;
impl Verb for Burying {
    type Ask = Bury;
    type Refusal = BuryRefusal;
    fn pure(found: Option<&Row>, ask: &Bury) -> Result<Row, BuryRefusal> {
        moved(found, |life| verbs::bury(life, ask, &Policy::default()))
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &Bury,
    ) -> Conditional<Option<Row>, BuryRefusal> {
        Ok(ledger.bury(key, ask).await?.map(|()| None))
    }
}

pub(crate) async fn bury(stores: &Stores) {
    let cap = stores.policy.attempts_max;
    let mut values = Vec::new();
    for attempts in [cap - 1, cap, cap + 1] {
        values.extend([None, Some(NOW), Some(NOW.plus(1))].map(|failed_at| (attempts, failed_at)));
    }
    let lives = fenced(&values, |(attempts, failed_at), life| Life {
        attempts: *attempts,
        failure: failed_at.map(|at| failure(at, FailureClass::Transient)),
        waiting_since: Some(RECEIVED),
        ..life
    });
    for class in [FailureClass::Permanent, FailureClass::Transient] {
        let ask = |key: &EventKey| Bury {
            epoch: EPOCH,
            failure: failure(NOW, class),
            open: open(Bucket::Dead(key.shard()), NOW.plus(9)),
        };
        stores.check::<Burying>(stores.pairs(&lives, ask)).await;
    }
}

struct Forcing;
impl Verb for Forcing {
    type Ask = ForcedBury;
    type Refusal = ForcedBuryRefusal;
    fn pure(found: Option<&Row>, ask: &ForcedBury) -> Result<Row, ForcedBuryRefusal> {
        moved(found, |life| verbs::forced_bury(life, ask, &Policy::default()))
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &ForcedBury,
    ) -> Conditional<Option<Row>, ForcedBuryRefusal> {
        Ok(ledger.forced_bury(key, ask).await?.map(|()| None))
    }
}

pub(crate) async fn forced_bury(stores: &Stores) {
    let cap = stores.policy.attempts_max;
    let mut lives = Vec::new();
    for &status in statuses() {
        for format in FORMATS {
            for attempts in [cap - 1, cap, cap + 1] {
                for held in leases() {
                    for failed_at in [None, Some(NOW), Some(NOW.plus(1))] {
                        lives.push(life(move |_, life| Life {
                            status,
                            format,
                            attempts,
                            lease: held,
                            failure: failed_at.map(|at| failure(at, FailureClass::Transient)),
                            ..life
                        }));
                    }
                }
            }
        }
    }
    let ask = |key: &EventKey| ForcedBury {
        failure: failure(NOW, FailureClass::Transient),
        now: NOW,
        open: open(Bucket::Parked(key.shard()), NOW),
    };
    stores.check::<Forcing>(stores.pairs(&lives, ask)).await;
}
