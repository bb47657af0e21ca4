//! Redrive and sweep.

use super::{CLASSES, life};
use crate::{
    check::{Verb, moved},
    lives::{FORMATS, NOW, RECEIVED, failure, open, statuses},
    store::Stores,
};
use ledger::{
    Bucket, ByHand, EventKey, Life, Policy, Row,
    verbs::{self, Redrive, RedriveBy, RedriveRefusal, Sweep, SweepRefusal},
};
use workflow::ports::{Conditional, Ledger};

struct Redriving;
impl Verb for Redriving {
    type Ask = Redrive;
    type Refusal = RedriveRefusal;
    fn pure(found: Option<&Row>, ask: &Redrive) -> Result<Row, RedriveRefusal> {
        moved(found, |life| verbs::redrive(life, ask, &Policy::default()))
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &Redrive,
    ) -> Conditional<Option<Row>, RedriveRefusal> {
        Ok(ledger.redrive(key, ask).await?.map(|()| None))
    }
}

pub(crate) async fn redrive(stores: &Stores) {
    let sent_at = NOW.minus(1_000);
    let latest = sent_at.minus(stores.policy.redrive_margin_ms);
    let seen = NOW.minus(5);
    let mine = NOW.plus(stores.policy.retry_grace_ms);
    let mut lives = Vec::new();
    for &status in statuses() {
        for format in FORMATS {
            for due_at in [None, Some(seen), Some(seen.plus(1)), Some(mine)] {
                for class in CLASSES {
                    for failed_at in [latest, latest.plus(1)] {
                        for redriven_at in [None, Some(NOW), Some(NOW.minus(1))] {
                            lives.push(life(move |key, life| Life {
                                status,
                                format,
                                redriven_at,
                                by_hand: redriven_at.map(|at| ByHand {
                                    by: "bob".to_owned(),
                                    reason: "an earlier one".to_owned(),
                                    at,
                                }),
                                attempts: 6,
                                waiting_since: Some(RECEIVED),
                                failure: class.map(|class| failure(failed_at, class)),
                                open: due_at.map(|at| open(Bucket::Dead(key.shard()), at)),
                                ..life
                            }));
                        }
                    }
                }
            }
        }
    }
    let steward = |release: Option<&str>| RedriveBy::Steward {
        seen_due_at: seen,
        release: release.map(str::to_owned),
    };
    let person = RedriveBy::Person { by: "ada".to_owned(), reason: "mended".to_owned() };
    for by in [RedriveBy::Message { sent_at }, steward(None), steward(Some("r2")), person] {
        let ask = |key: &EventKey| Redrive { by: by.clone(), now: NOW, shard: key.shard() };
        stores.check::<Redriving>(stores.pairs(&lives, ask)).await;
    }
}

struct Sweeping;
impl Verb for Sweeping {
    type Ask = Sweep;
    type Refusal = SweepRefusal;
    fn pure(found: Option<&Row>, ask: &Sweep) -> Result<Row, SweepRefusal> {
        moved(found, |life| verbs::sweep(life, ask, &Policy::default()))
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &Sweep,
    ) -> Conditional<Option<Row>, SweepRefusal> {
        Ok(ledger.sweep(key, ask).await?.map(|()| None))
    }
}

pub(crate) async fn sweep(stores: &Stores) {
    let seen = NOW.minus(5);
    for sweeps in [0, 3, 40] {
        let ask =
            move |key: &EventKey| Sweep { seen_due_at: seen, now: NOW, shard: key.shard(), sweeps };
        let next = ledger::next_sweep_due(sweeps, NOW, &stores.policy);
        let mut lives = Vec::new();
        for &status in statuses() {
            for format in FORMATS {
                for due_at in [seen, seen.plus(1), next] {
                    let buckets: [fn(u8) -> Bucket; 3] =
                        [Bucket::Pending, Bucket::Dead, Bucket::Parked];
                    for bucket in buckets {
                        lives.push(life(move |key, life| Life {
                            status,
                            format,
                            sweeps,
                            open: Some(open(bucket(key.shard()), due_at)),
                            ..life
                        }));
                    }
                }
                lives.push(life(move |_, life| Life {
                    status,
                    format,
                    sweeps,
                    open: None,
                    ..life
                }));
            }
        }
        stores.check::<Sweeping>(stores.pairs(&lives, ask)).await;
    }
}
