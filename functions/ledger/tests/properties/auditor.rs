//! The auditor: what must hold, from what was asked, what was answered and what stood before and
//! after. It knows the words of the ledger and none of its rules.

use crate::history::{Request, Said};
use ledger::{
    Bucket, Entity, FailureClass, Life, Millis, Outcome, Policy, Status, verbs::RedriveBy,
};

/// One request and what became of it.
pub(crate) struct Fact<'a> {
    pub(crate) request: &'a Request,
    pub(crate) said: Said,
    pub(crate) before: Option<&'a Life>,
    pub(crate) after: Option<&'a Life>,
    pub(crate) entity_before: Option<&'a Entity>,
    pub(crate) entity_after: Option<&'a Entity>,
}

/// The auditor's books.
#[derive(Default)]
pub(crate) struct Auditor {
    /// Requests that were accepted.
    accepted: Vec<Request>,
    /// The request whose write was the last one.
    last_write: Option<Request>,
    /// Runs since the last grant, without those given back.
    runs: u32,
    /// The last fence given out, and whether its holder has written the end of its run.
    fence: u64,
    is_open: bool,
    lease_until: Millis,
    /// How often the event changed the entity.
    effects: u32,
}

impl Auditor {
    /// How often the event changed the entity.
    pub(crate) const fn effects(&self) -> u32 {
        self.effects
    }

    /// Judges one fact.
    pub(crate) fn see(&mut self, fact: &Fact<'_>, policy: &Policy) {
        match fact.said {
            Said::Accepted => {
                self.judge_write(fact, policy);
                self.accepted.push(fact.request.clone());
                self.last_write = Some(fact.request.clone());
            }
            Said::Mine => {
                assert!(
                    self.accepted.contains(fact.request),
                    "taken for its own, and it never was: {:?} before {:?}",
                    fact.request,
                    fact.before
                );
                Self::judge_refusal(fact);
            }
            Said::Refused => {
                assert!(
                    self.last_write.as_ref() != Some(fact.request),
                    "its own last write was not recognised: {:?} before {:?}",
                    fact.request,
                    fact.before
                );
                Self::judge_refusal(fact);
            }
        }
        if let Some(life) = fact.after {
            self.judge_row(life, policy);
        }
    }

    fn judge_refusal(fact: &Fact<'_>) {
        assert_eq!(fact.before, fact.after, "a refused request wrote");
        assert_eq!(fact.entity_before, fact.entity_after, "a refused request wrote the entity");
    }

    fn judge_write(&mut self, fact: &Fact<'_>, policy: &Policy) {
        let after = fact.after.expect("an accepted request leaves a row");
        if let Some(before) = fact.before {
            assert_ne!(before.status, Status::Settled, "a settled row changed");
            assert_eq!(before.claim_nonce, after.claim_nonce, "the claim's token changed");
        }
        match fact.request {
            Request::Claim(_) => assert_eq!(fact.before, None, "a claim replaced a row"),
            Request::Lease(ask) => self.judge_lease(fact, ask.now, policy),
            Request::Apply(_) => {
                self.end_of_run(fact);
                self.effects += 1;
                assert_eq!(self.effects, 1, "the event changed the state again");
                assert_eq!(after.outcome, Some(Outcome::Applied));
                let version = |entity: Option<&Entity>| entity.and_then(|entity| entity.version);
                assert!(
                    version(fact.entity_after) >= version(fact.entity_before),
                    "an older version replaced a newer one"
                );
            }
            Request::Settle(_) => {
                self.end_of_run(fact);
                assert_ne!(after.outcome, Some(Outcome::Applied));
            }
            Request::Fail(_) => {
                self.end_of_run(fact);
                assert!(self.runs < policy.attempts_max, "a spent budget was given another run");
            }
            Request::Bury(ask) => {
                self.end_of_run(fact);
                let is_permanent = ask.failure.class == FailureClass::Permanent;
                assert!(
                    is_permanent || self.runs >= policy.attempts_max,
                    "buried with budget left"
                );
            }
            Request::Wait(_) => {
                self.end_of_run(fact);
                self.runs -= 1;
            }
            Request::Force(ask) => {
                let is_running = self.is_open && self.lease_until >= ask.now;
                assert!(!is_running, "buried under a running worker");
                assert!(self.runs >= policy.attempts_max, "buried by force with budget left");
                self.is_open = false;
            }
            Request::Redrive(ask) => {
                let before = fact.before.expect("a row");
                assert_eq!(before.status, Status::Dead, "a budget for a row that lives");
                assert_eq!(self.effects, 0, "a row that had its effect was redriven");
                Self::judge_grant(before, after, &ask.by, policy);
                self.runs = 0;
            }
            Request::Sweep(_) => {
                let (before, after) = (fact.before.expect("a row"), after);
                let except_when =
                    Life { open: before.open, sweeps: before.sweeps, ..after.clone() };
                assert_eq!(before, &except_when, "a sweep changed more than when to look again");
            }
            Request::Resolve(_) => {
                let before = fact.before.expect("a row");
                assert_eq!(before.status, Status::Dead, "a person closed a row that lives");
            }
        }
        if !matches!(fact.request, Request::Apply(_)) {
            assert_eq!(fact.entity_before, fact.entity_after, "only an apply writes the entity");
        }
    }

    /// Who may grant a budget.
    fn judge_grant(dead: &Life, after: &Life, by: &RedriveBy, policy: &Policy) {
        let failure = dead.failure.as_ref().expect("a dead row has a reason");
        match by {
            RedriveBy::Message { sent_at } => {
                let youngest = failure.at.0 + policy.redrive_margin_ms;
                assert!(sent_at.0 >= youngest, "a message older than the burial granted a budget");
            }
            RedriveBy::Steward { seen_due_at, .. } => {
                assert_ne!(failure.class, FailureClass::Permanent, "revived by itself");
                let due_at = dead.open.expect("a place in the index").due_at;
                assert_eq!(*seen_due_at, due_at, "redriven on the strength of an old look");
            }
            RedriveBy::Person { by, reason } => {
                let kept = after.by_hand.as_ref().map(|hand| (&hand.by, &hand.reason));
                assert_eq!(kept, Some((by, reason)), "a redrive by nobody");
            }
        }
    }

    fn judge_lease(&mut self, fact: &Fact<'_>, now: Millis, policy: &Policy) {
        let after = fact.after.expect("a row");
        let is_running = self.is_open && self.lease_until >= now;
        assert!(!is_running, "two workers hold the row");
        assert!(self.runs < policy.attempts_max, "a run beyond the budget");
        assert!(after.epoch > self.fence, "a fence was given out twice");
        self.fence = after.epoch;
        self.is_open = true;
        self.lease_until = after.lease.expect("a leased row has a lease").until;
        self.runs += 1;
    }

    /// Only the holder of the last fence may end a run, and only once.
    fn end_of_run(&mut self, fact: &Fact<'_>) {
        let epoch = fact.request.epoch().expect("a lease holder's request");
        assert_eq!(epoch, self.fence, "a stale lease wrote");
        assert!(self.is_open, "a run ended twice");
        self.is_open = false;
    }

    /// What every row must look like, at every moment.
    fn judge_row(&self, life: &Life, policy: &Policy) {
        assert_eq!(life.attempts, self.runs, "attempts are no count of runs: {life:?}");
        assert!(life.attempts <= policy.attempts_max, "more runs than the budget: {life:?}");
        let is_settled = life.status == Status::Settled;
        assert_eq!(life.outcome == Some(Outcome::Applied), self.effects == 1, "{life:?}");
        assert_eq!(life.lease.is_some(), life.status == Status::Processing, "{life:?}");
        assert_eq!(life.settled_at.is_some(), is_settled, "{life:?}");
        let kept_until =
            life.settled_at.map(|at| at.0 / 1_000 + u64::from(policy.retention_days) * 86_400);
        assert_eq!(life.expires_at.map(|at| at.0), kept_until, "pruned at another time: {life:?}");
        let bucket = life.open.map(|open| open.bucket);
        let is_found = match life.status {
            Status::Settled => bucket.is_none(),
            Status::Dead => matches!(bucket, Some(Bucket::Dead(_) | Bucket::Parked(_))),
            _ => matches!(bucket, Some(Bucket::Pending(_))),
        };
        assert!(is_found, "nobody will find this row: {life:?}");
        if life.status == Status::Dead {
            assert!(life.failure.is_some(), "dead without a reason");
        }
    }
}
