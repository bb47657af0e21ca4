//! Claim: looks at evidence too, at what identifies a resend.

use super::CLASSES;
use crate::{
    check::{Pair, Verb},
    lives::{FORMATS, MINE, NOW, OTHERS, RECEIVED, failure, row, statuses},
    store::Stores,
};
use ledger::{
    EventKey, Life, Policy, Row, Status,
    verbs::{self, Birth, Claim, ClaimRefusal},
};
use workflow::ports::{Conditional, Ledger};

/// The row to be put, and its claim.
struct Claiming;
impl Verb for Claiming {
    type Ask = (Row, Claim);
    type Refusal = ClaimRefusal;
    fn pure(found: Option<&Row>, (new, ask): &(Row, Claim)) -> Result<Row, ClaimRefusal> {
        let (key, identity) = (&new.evidence.key, new.evidence.identity_hash.as_ref());
        let life = verbs::claim(found, key, identity, ask, &Policy::default())?;
        Ok(Row { life, ..new.clone() })
    }
    async fn port(
        ledger: &impl Ledger,
        _: &EventKey,
        (new, ask): &(Row, Claim),
    ) -> Conditional<Option<Row>, ClaimRefusal> {
        Ok(ledger.claim(new, ask).await?.map(|()| None))
    }
}

/// What the planted rows differ in, beside their status.
#[derive(Clone, Copy)]
struct Found {
    status: Status,
    format: u32,
    class: Option<ledger::FailureClass>,
    nonce: ledger::Token,
    identity: Option<[u8; 32]>,
}

fn every_found() -> Vec<Found> {
    let mut every = Vec::new();
    for &status in statuses() {
        for format in FORMATS {
            for class in
                CLASSES.into_iter().filter(|class| class.is_none() || status == Status::Dead)
            {
                for nonce in [MINE, OTHERS] {
                    let identities = [None, Some([1; 32]), Some([2; 32])];
                    every.extend(identities.map(|identity| Found {
                        status,
                        format,
                        class,
                        nonce,
                        identity,
                    }));
                }
            }
        }
    }
    every
}

pub(crate) async fn claim(stores: &Stores) {
    let births = [Birth::Claimed, Birth::Dead { error: "not JSON".to_owned() }, Birth::Ignored];
    let ages = [stores.policy.resend_after_ms, stores.policy.resend_after_ms + 1];
    let mut pairs = Vec::new();
    for birth in &births {
        for offered in [None, Some([1; 32])] {
            pairs.push(pair(stores, None, offered, birth, NOW));
            for found in every_found() {
                pairs.extend(
                    ages.map(|age| pair(stores, Some(found), offered, birth, RECEIVED.plus(age))),
                );
            }
        }
    }
    stores.check::<Claiming>(pairs).await;
}

fn pair(
    stores: &Stores,
    found: Option<Found>,
    offered: Option<[u8; 32]>,
    birth: &Birth,
    received_at: ledger::Millis,
) -> Pair<(Row, Claim)> {
    let key = stores.key();
    let ask = Claim { birth: birth.clone(), nonce: MINE, received_at };
    let mut new = row(&key, |_| ask.life(&key, &stores.policy));
    new.evidence.identity_hash = offered;
    new.evidence.received_at = received_at;
    let found = found.map(|Found { status, format, class, nonce, identity }| {
        let failure = class.map(|class| failure(RECEIVED, class));
        let mut found =
            row(&key, |life| Life { status, format, claim_nonce: nonce, failure, ..life });
        found.evidence.identity_hash = identity;
        found
    });
    Pair { row: found, ask: (new, ask), key }
}
