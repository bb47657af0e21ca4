//! Claim: the first durable write of an event. Condition: no row of that key.
//!
//! A claim also gives birth to rows that are finished already: authentic events nobody can use
//! (dead, kept for a person) and events of another mode (settled, ignored). Nothing authentic is
//! thrown away.

use super::{Found, look};
use crate::{
    Bucket, EventKey, Failure, FailureClass, Life, Millis, Open, Outcome, Policy, ROW_FORMAT, Row,
    Seconds, Status, Token,
};

/// How the new row begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Birth {
    /// Work to do.
    Claimed,
    /// Authentic, but of no use as it is; waits for a person.
    Dead {
        /// Why, without payload.
        error: String,
    },
    /// Belongs to another mode.
    Ignored,
}

/// What the receiver asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// How the row begins.
    pub birth: Birth,
    /// This request's token.
    pub nonce: Token,
    /// When the delivery was received.
    pub received_at: Millis,
}

/// What the receiver does about a key that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimRefusal {
    /// My own claim, whose answer was lost: go on.
    Mine,
    /// The same id with other content: keep the second body too.
    Conflict,
    /// A duplicate of finished work.
    Settled,
    /// A duplicate of young, unfinished work: somebody is at it.
    Pending,
    /// A duplicate of unfinished work that is not young: send it again.
    Overdue,
    /// A duplicate of a dead row that another run may cure: send it again.
    Dead,
    /// A duplicate of a dead row that only a person can cure.
    DeadPermanent,
    /// Written by a newer build: it is durable; send it again, its consumer will know.
    UnknownFormat,
}

impl Life {
    /// A life just claimed, of which nothing has happened yet: in no bucket, and never leased.
    #[must_use]
    pub const fn claimed(nonce: Token) -> Self {
        Self {
            format: ROW_FORMAT,
            status: Status::Claimed,
            outcome: None,
            claim_nonce: nonce,
            epoch: 0,
            attempts: 0,
            lease: None,
            failure: None,
            retry_at: None,
            release: None,
            redrives: 0,
            redriven_at: None,
            by_hand: None,
            budget_release: None,
            waiting_since: None,
            sweeps: 0,
            open: None,
            settled_at: None,
            expires_at: None,
            resolved_by: None,
            note: None,
        }
    }
}

impl Claim {
    /// The life this claim creates for `key`.
    #[must_use]
    pub fn life(&self, key: &EventKey, policy: &Policy) -> Life {
        let n = key.shard();
        let born = Life::claimed(self.nonce);
        match &self.birth {
            Birth::Claimed => Life {
                open: Some(Open {
                    bucket: Bucket::Pending(n),
                    due_at: self.received_at.plus(policy.first_due_ms),
                }),
                ..born
            },
            Birth::Dead { error } => Life {
                status: Status::Dead,
                failure: Some(Failure {
                    error: error.clone(),
                    class: FailureClass::Permanent,
                    at: self.received_at,
                }),
                open: Some(Open { bucket: Bucket::Parked(n), due_at: self.received_at }),
                ..born
            },
            Birth::Ignored => Life {
                status: Status::Settled,
                outcome: Some(Outcome::Ignored),
                settled_at: Some(self.received_at),
                expires_at: Some(expiry(self.received_at, policy)),
                ..born
            },
        }
    }

    const fn born_status(&self) -> Status {
        match self.birth {
            Birth::Claimed => Status::Claimed,
            Birth::Dead { .. } => Status::Dead,
            Birth::Ignored => Status::Settled,
        }
    }
}

/// When a row that settles at `settled_at` may be deleted.
pub(super) fn expiry(settled_at: Millis, policy: &Policy) -> Seconds {
    settled_at.seconds_after(policy.retention_seconds())
}

/// Claims `key`. `identity_hash` is the new delivery's, `found` the row of that key.
pub fn claim(
    found: Option<&Row>,
    key: &EventKey,
    identity_hash: Option<&[u8; 32]>,
    ask: &Claim,
    policy: &Policy,
) -> Result<Life, ClaimRefusal> {
    match found {
        None => Ok(ask.life(key, policy)),
        Some(row) => Err(refusal(row, identity_hash, ask, policy)),
    }
}

/// Reads the row that stood in a claim's way.
#[must_use]
pub fn refusal(
    row: &Row,
    identity_hash: Option<&[u8; 32]>,
    ask: &Claim,
    policy: &Policy,
) -> ClaimRefusal {
    let life = match look(Some(&row.life)) {
        Found::Known(life) => life,
        Found::Missing | Found::UnknownFormat => return ClaimRefusal::UnknownFormat,
    };
    if life.claim_nonce == ask.nonce && life.status == ask.born_status() {
        return ClaimRefusal::Mine;
    }
    if let (Some(stored), Some(offered)) = (row.evidence.identity_hash.as_ref(), identity_hash)
        && stored != offered
    {
        return ClaimRefusal::Conflict;
    }
    match life.status {
        Status::Settled => ClaimRefusal::Settled,
        Status::Dead => match life.failure.as_ref().map(|failure| failure.class) {
            Some(FailureClass::Permanent) => ClaimRefusal::DeadPermanent,
            Some(FailureClass::Transient | FailureClass::RateLimited) | None => ClaimRefusal::Dead,
        },
        Status::Claimed | Status::Processing | Status::Failed | Status::Waiting => {
            if ask.received_at.since(row.evidence.received_at) > policy.resend_after_ms {
                ClaimRefusal::Overdue
            } else {
                ClaimRefusal::Pending
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::fixture::{NOW, life, newer};
    use super::*;
    use crate::{Body, Codec, Evidence, Origin, SourceName};

    fn key() -> EventKey {
        EventKey::parse("stripe-live#evt_1").unwrap()
    }

    fn ask(birth: Birth) -> Claim {
        Claim { birth, nonce: Token(42), received_at: NOW }
    }

    fn row(life: Life, identity_hash: Option<[u8; 32]>, received_at: Millis) -> Row {
        Row {
            evidence: Evidence {
                key: key(),
                source: SourceName::new("stripe-live").unwrap(),
                event_type: "invoice.paid".to_owned(),
                received_at,
                body: Body {
                    codec: Codec::Plain,
                    inline: Some(Vec::new()),
                    chunks: 0,
                    sha256: [0; 32],
                    len: 0,
                },
                identity_hash,
                headers: std::collections::BTreeMap::new(),
                kid: "2026-11".to_owned(),
                origin: Origin::Delivery,
                origin_note: None,
            },
            life,
            effects: Vec::new(),
        }
    }

    fn read(found: &Row, hash: Option<[u8; 32]>, ask: &Claim) -> ClaimRefusal {
        let policy = Policy::default();
        claim(Some(found), &key(), hash.as_ref(), ask, &policy).unwrap_err()
    }

    #[test]
    fn a_free_key_is_claimed_and_overdue_a_minute_after_it_was_received() {
        let life = claim(None, &key(), None, &ask(Birth::Claimed), &Policy::default()).unwrap();
        let open = Open { bucket: Bucket::Pending(5), due_at: NOW.plus(60_000) };
        assert_eq!((life.status, life.open), (Status::Claimed, Some(open)));
        assert_eq!((life.epoch, life.attempts, life.format), (0, 0, 1));
        assert_eq!((life.claim_nonce, life.expires_at), (Token(42), None));
    }

    #[test]
    fn an_event_nobody_can_use_is_born_dead_and_waits_for_a_person() {
        let birth = Birth::Dead { error: "no id".to_owned() };
        let life = ask(birth).life(&key(), &Policy::default());
        let failure = life.failure.unwrap();
        assert_eq!(life.status, Status::Dead);
        assert_eq!(
            (failure.class, failure.at),
            (FailureClass::Permanent, NOW),
            "permanent rows revive only by a person"
        );
        assert_eq!(life.open.unwrap().bucket, Bucket::Parked(5));
        assert_eq!(life.expires_at, None);
    }

    #[test]
    fn an_event_of_another_mode_is_born_settled_and_is_pruned_later() {
        let life = ask(Birth::Ignored).life(&key(), &Policy::default());
        assert_eq!((life.status, life.outcome), (Status::Settled, Some(Outcome::Ignored)));
        assert_eq!((life.settled_at, life.open), (Some(NOW), None));
        assert_eq!(life.expires_at, Some(Seconds(1_000 + 90 * 86_400)));
    }

    #[test]
    fn a_claim_whose_answer_was_lost_is_known_by_its_nonce_while_the_row_is_as_it_was_born() {
        let births = [Birth::Claimed, Birth::Dead { error: String::new() }, Birth::Ignored];
        for birth in births {
            let mine = ask(birth);
            let born = mine.life(&key(), &Policy::default());
            let found = row(born, None, NOW);
            assert_eq!(read(&found, None, &mine), ClaimRefusal::Mine);
            let other = Claim { nonce: Token(43), ..mine };
            assert_ne!(read(&found, None, &other), ClaimRefusal::Mine);
        }
        let mut moved = life(Status::Processing);
        moved.claim_nonce = Token(42);
        assert_eq!(
            read(&row(moved, None, NOW), None, &ask(Birth::Claimed)),
            ClaimRefusal::Pending,
            "a worker has it: a message was sent already"
        );
    }

    #[test]
    fn another_body_under_one_id_is_a_conflict_where_both_carry_a_hash() {
        for status in Status::ALL {
            let carries = row(life(*status), Some([1; 32]), NOW);
            let bare = row(life(*status), None, NOW);
            let ask = ask(Birth::Claimed);
            assert_eq!(read(&carries, Some([2; 32]), &ask), ClaimRefusal::Conflict);
            assert_ne!(read(&carries, Some([1; 32]), &ask), ClaimRefusal::Conflict);
            assert_ne!(read(&carries, None, &ask), ClaimRefusal::Conflict);
            assert_ne!(read(&bare, Some([2; 32]), &ask), ClaimRefusal::Conflict);
        }
    }

    #[test]
    fn a_duplicate_of_pending_work_is_sent_again_once_the_row_is_older_than_thirty_seconds() {
        for status in Status::ALL.iter().filter(|status| status.is_pending()) {
            let young = row(life(*status), None, NOW.minus(30_000));
            let old = row(life(*status), None, NOW.minus(30_001));
            let ask = ask(Birth::Claimed);
            assert_eq!(read(&young, None, &ask), ClaimRefusal::Pending);
            assert_eq!(read(&old, None, &ask), ClaimRefusal::Overdue);
        }
    }

    #[test]
    fn a_duplicate_of_a_row_at_rest_tells_settled_from_dead_and_curable_from_permanent() {
        let ask = ask(Birth::Claimed);
        let settled = row(life(Status::Settled), None, NOW);
        assert_eq!(read(&settled, None, &ask), ClaimRefusal::Settled);
        let mut dead = life(Status::Dead);
        for (class, expected) in [
            (FailureClass::Transient, ClaimRefusal::Dead),
            (FailureClass::RateLimited, ClaimRefusal::Dead),
            (FailureClass::Permanent, ClaimRefusal::DeadPermanent),
        ] {
            dead.failure = Some(super::super::fixture::failure(class, NOW));
            assert_eq!(read(&row(dead.clone(), None, NOW), None, &ask), expected);
        }
    }

    #[test]
    fn a_rows_day_is_its_source_its_date_and_its_partition_and_never_changes() {
        let found = row(life(Status::Dead), None, Millis(1_767_225_600_000));
        assert_eq!(found.evidence.day(), "stripe-live#2026-01-01#5");
    }

    #[test]
    fn a_row_of_a_newer_build_is_durable_and_is_judged_by_that_build() {
        let found = row(newer(Status::Settled), Some([1; 32]), NOW);
        let refusal = read(&found, Some([2; 32]), &ask(Birth::Claimed));
        assert_eq!(refusal, ClaimRefusal::UnknownFormat);
    }
}
