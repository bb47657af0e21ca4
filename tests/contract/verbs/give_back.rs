//! Wait and fail.

use super::fenced;
use crate::{
    check::{Verb, moved},
    lives::{EPOCH, NOW, RECEIVED, failure},
    store::Stores,
};
use ledger::{
    EventKey, FailureClass, Life, Policy, Row,
    verbs::{self, Fail, FailRefusal, Wait, WaitRefusal},
};
use workflow::ports::{Conditional, Ledger};

struct Waiting;
impl Verb for Waiting {
    type Ask = Wait;
    type Refusal = WaitRefusal;
    fn pure(found: Option<&Row>, ask: &Wait) -> Result<Row, WaitRefusal> {
        moved(found, |life| verbs::wait(life, ask))
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &Wait,
    ) -> Conditional<Option<Row>, WaitRefusal> {
        Ok(ledger.wait(key, ask).await?.map(|()| None))
    }
}

pub(crate) async fn wait(stores: &Stores) {
    let retry_at = NOW.plus(10_000);
    let mut values = Vec::new();
    for at in [None, Some(retry_at), Some(retry_at.plus(1))] {
        for since in [None, Some(RECEIVED)] {
            values.extend([1, 6].map(|attempts| (at, since, attempts)));
        }
    }
    let lives = fenced(&values, |(retry_at, waiting_since, attempts), life| Life {
        retry_at: *retry_at,
        waiting_since: *waiting_since,
        attempts: *attempts,
        ..life
    });
    let ask = |key: &EventKey| Wait {
        epoch: EPOCH,
        now: NOW,
        retry_at,
        due_at: retry_at.plus(120_000),
        shard: key.shard(),
    };
    stores.check::<Waiting>(stores.pairs(&lives, ask)).await;
}

struct Failing;
impl Verb for Failing {
    type Ask = Fail;
    type Refusal = FailRefusal;
    fn pure(found: Option<&Row>, ask: &Fail) -> Result<Row, FailRefusal> {
        moved(found, |life| verbs::fail(life, ask, &Policy::default()))
    }
    async fn port(
        ledger: &impl Ledger,
        key: &EventKey,
        ask: &Fail,
    ) -> Conditional<Option<Row>, FailRefusal> {
        Ok(ledger.fail(key, ask).await?.map(|()| None))
    }
}

pub(crate) async fn fail(stores: &Stores) {
    let cap = stores.policy.attempts_max;
    let retry_at = NOW.plus(1_000);
    let mut values = Vec::new();
    for attempts in [cap - 1, cap, cap + 1] {
        for failed_at in [None, Some(NOW), Some(NOW.plus(1))] {
            values.extend(
                [retry_at, retry_at.plus(1)].map(|retry_at| (attempts, failed_at, retry_at)),
            );
        }
    }
    let lives = fenced(&values, |(attempts, failed_at, retry_at), life| Life {
        attempts: *attempts,
        failure: failed_at.map(|at| failure(at, FailureClass::Transient)),
        retry_at: Some(*retry_at),
        waiting_since: Some(RECEIVED),
        ..life
    });
    let ask = |key: &EventKey| Fail {
        epoch: EPOCH,
        failure: failure(NOW, FailureClass::RateLimited),
        retry_at,
        shard: key.shard(),
    };
    stores.check::<Failing>(stores.pairs(&lives, ask)).await;
}
