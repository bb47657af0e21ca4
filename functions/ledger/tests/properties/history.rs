//! A random history of one row and one entity: three actors, each with a memory of its last
//! requests, a clock that goes forward, and a rival who writes the same entity.

use crate::{
    auditor::{Auditor, Fact},
    ops::Op,
};
use ledger::{
    Body, Change, Codec, Entity, EntityKey, EventKey, Evidence, Failure, FailureClass, Guard,
    Jitter, Life, Millis, Origin, Outcome, Policy, Row, SourceName, Stamp, Status, Tie, Token,
    Version, next_redrive_due,
    verbs::{
        self, Apply, ApplyRefusal, Birth, Bury, BuryRefusal, Claim, ClaimRefusal, Fail,
        FailRefusal, FenceRefusal, ForcedBury, ForcedBuryRefusal, LeaseAsk, LeaseRefusal, Redrive,
        RedriveBy, RedriveRefusal, Resolve, ResolveRefusal, Settle, Sweep, SweepRefusal, Wait,
        resting_place,
    },
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A request as it went out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Claim(Claim),
    Lease(LeaseAsk),
    Apply(Apply),
    Settle(Settle),
    Fail(Fail),
    Bury(Bury),
    Wait(Wait),
    Force(ForcedBury),
    Redrive(Redrive),
    Sweep(Sweep),
    Resolve(Resolve),
}

impl Request {
    /// The fence a lease holder writes under.
    pub(crate) const fn epoch(&self) -> Option<u64> {
        match self {
            Self::Apply(ask) => Some(ask.epoch),
            Self::Settle(ask) => Some(ask.epoch),
            Self::Fail(ask) => Some(ask.epoch),
            Self::Bury(ask) => Some(ask.epoch),
            Self::Wait(ask) => Some(ask.epoch),
            Self::Claim(_)
            | Self::Lease(_)
            | Self::Force(_)
            | Self::Redrive(_)
            | Self::Sweep(_)
            | Self::Resolve(_) => None,
        }
    }
}

/// An answer, as far as the auditor cares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Said {
    Accepted,
    Mine,
    Refused,
}

#[derive(Default)]
struct Actor {
    epoch: u64,
    read: Option<Change>,
    requests: Vec<Request>,
}

pub(crate) struct Play {
    policy: Policy,
    key: EventKey,
    is_delta: bool,
    now: Millis,
    row: Option<Row>,
    entity: Option<Entity>,
    actors: [Actor; 3],
    tokens: u128,
    auditor: Auditor,
}

impl Play {
    pub(crate) fn new(is_delta: bool) -> Self {
        Self {
            policy: Policy { attempts_max: 3, redrives_max: 2, ..Policy::default() },
            key: EventKey::parse("s#evt_1").expect("a key"),
            is_delta,
            now: Millis(10_000_000),
            row: None,
            entity: None,
            actors: Default::default(),
            tokens: 0,
            auditor: Auditor::default(),
        }
    }

    pub(crate) fn life(&self) -> Option<&Life> {
        self.row.as_ref().map(|row| &row.life)
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.life().is_none_or(|life| matches!(life.status, Status::Settled | Status::Dead))
    }

    pub(crate) fn act(&mut self, op: &Op) {
        // No two requests carry one time: what a millisecond in common does is known to be
        // harmless (a burial or sweep is taken for one's own, and was made all the same).
        self.now = self.now.plus(1);
        match op {
            Op::Tick { ms } => self.now = self.now.plus(*ms),
            Op::Rival { version } => self.rival(*version),
            Op::Read { actor } => self.actors[*actor].read = Some(self.change()),
            Op::Repeat { actor, back } => {
                let requests = &self.actors[*actor].requests;
                let index = requests.len().checked_sub(back + 1);
                if let Some(request) = index.and_then(|index| requests.get(index)).cloned() {
                    self.send(*actor, &request);
                }
            }
            _ => {
                if let Some((actor, request)) = self.holders(op).or_else(|| self.anyones(op)) {
                    self.actors[actor].requests.push(request.clone());
                    self.send(actor, &request);
                }
            }
        }
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn failure(&self, class: FailureClass) -> Failure {
        Failure { error: "no".to_owned(), class, at: self.now }
    }

    fn grave(&self, class: FailureClass) -> ledger::Open {
        let redrives = self.life().map_or(0, |life| life.redrives);
        let due = next_redrive_due(redrives, self.now, &self.policy, Jitter::NONE);
        resting_place(self.key.shard(), class, redrives, self.now, due, &self.policy)
    }

    /// What a lease holder writes, or believes it may.
    fn holders(&self, op: &Op) -> Option<(usize, Request)> {
        let (now, shard) = (self.now, self.key.shard());
        let epoch = |actor: usize| self.actors[actor].epoch;
        Some(match *op {
            Op::Apply { actor } => {
                let change = self.actors[actor].read.clone().unwrap_or_else(|| self.change());
                (actor, Request::Apply(Apply::new(epoch(actor), now, vec![change])))
            }
            Op::Settle { actor } => {
                let outcome = Outcome::Superseded;
                (actor, Request::Settle(Settle { epoch: epoch(actor), outcome, settled_at: now }))
            }
            Op::Fail { actor } => {
                let failure = self.failure(FailureClass::Transient);
                let retry_at = now.plus(4_000);
                (actor, Request::Fail(Fail { epoch: epoch(actor), failure, retry_at, shard }))
            }
            Op::Bury { actor, is_permanent } => {
                let class =
                    if is_permanent { FailureClass::Permanent } else { FailureClass::Transient };
                let (failure, open) = (self.failure(class), self.grave(class));
                (actor, Request::Bury(Bury { epoch: epoch(actor), failure, open }))
            }
            Op::Wait { actor } => {
                let (retry_at, due_at) = (now.plus(10_000), now.plus(130_000));
                let ask = Wait { epoch: epoch(actor), now, retry_at, due_at, shard };
                (actor, Request::Wait(ask))
            }
            _ => return None,
        })
    }

    /// What needs no lease.
    fn anyones(&mut self, op: &Op) -> Option<(usize, Request)> {
        let (now, shard) = (self.now, self.key.shard());
        let due = self.life().and_then(|life| life.open).map_or(Millis(0), |open| open.due_at);
        let redrive = |by| Request::Redrive(Redrive { by, now, shard });
        Some(match *op {
            Op::Claim { actor } => {
                let nonce = self.token();
                (actor, Request::Claim(Claim { birth: Birth::Claimed, nonce, received_at: now }))
            }
            Op::Lease { actor, for_ms } => {
                let (owner, until) = (self.token(), now.plus(for_ms));
                (actor, Request::Lease(LeaseAsk { owner, until, now, release: "b".to_owned() }))
            }
            Op::Force { actor } => {
                let class = FailureClass::Transient;
                let (failure, open) = (self.failure(class), self.grave(class));
                (actor, Request::Force(ForcedBury { failure, now, open }))
            }
            Op::RedriveByMessage { actor, age_ms } => {
                (actor, redrive(RedriveBy::Message { sent_at: now.minus(age_ms) }))
            }
            Op::RedriveBySteward { actor, is_stale } => {
                let seen_due_at = due.minus(u64::from(is_stale));
                (actor, redrive(RedriveBy::Steward { seen_due_at, release: None }))
            }
            Op::RedriveByPerson { actor } => {
                let (by, reason) = (format!("p{actor}"), String::new());
                (actor, redrive(RedriveBy::Person { by, reason }))
            }
            Op::Sweep { actor, is_stale } => {
                let sweeps = self.life().map_or(0, |life| life.sweeps);
                let seen_due_at = due.minus(u64::from(is_stale));
                (actor, Request::Sweep(Sweep { seen_due_at, now, shard, sweeps }))
            }
            Op::Resolve { actor } => {
                let (by, note) = (format!("p{actor}"), String::new());
                (actor, Request::Resolve(Resolve { by, note, settled_at: now }))
            }
            _ => return None,
        })
    }

    /// The event's change, on the entity as it stands: a delta of 1, or version 5.
    fn change(&self) -> Change {
        self.change_of("evt_1", 5, 1)
    }

    /// Another event writes the same entity.
    fn rival(&mut self, version: i128) {
        let change = self.change_of("evt_rival", version, 100);
        if let Ok(written) = change.make(self.entity.as_ref(), self.now) {
            self.entity = Some(written);
        }
    }

    fn change_of(&self, event_id: &str, version: i128, amount: u64) -> Change {
        let entity = self.entity.as_ref();
        let event_id = event_id.to_owned();
        let mut state = Map::new();
        let guard = if self.is_delta {
            state.insert("total".to_owned(), Value::from(total(entity) + amount));
            Guard::Revision { read: entity.map(|entity| entity.revision), version: None, event_id }
        } else {
            let version = Version::new(version).expect("a small version");
            Guard::Newer { stamp: Stamp { version, rank: 0, event_id }, tie: Tie::Rank }
        };
        let entity = EntityKey::new("s", "thing", "1").expect("a key");
        Change { entity, guard, state, is_final: false, leaves: BTreeSet::new() }
    }

    /// Sends one request and lets the auditor see what came of it.
    fn send(&mut self, actor: usize, request: &Request) {
        let before = self.life().cloned();
        let entity_before = self.entity.clone();
        let said = self.perform(actor, request);
        let fact = Fact {
            request,
            said,
            before: before.as_ref(),
            after: self.row.as_ref().map(|row| &row.life),
            entity_before: entity_before.as_ref(),
            entity_after: self.entity.as_ref(),
        };
        self.auditor.see(&fact, &self.policy);
        if self.is_delta {
            let effects = u64::from(self.auditor.effects());
            assert_eq!(total(self.entity.as_ref()) % 100, effects, "the total tells another story");
        }
    }

    fn perform(&mut self, actor: usize, request: &Request) -> Said {
        let policy = self.policy.clone();
        let found = self.life().cloned();
        let found = found.as_ref();
        let written: Result<Life, bool> = match request {
            Request::Claim(ask) => return self.claim(ask),
            Request::Apply(ask) => return self.apply(ask),
            Request::Lease(ask) => {
                verbs::lease(found, ask, &policy).map_err(|why| why == LeaseRefusal::Mine)
            }
            Request::Settle(ask) => {
                verbs::settle(found, ask, &policy).map_err(|why| why == FenceRefusal::Mine)
            }
            Request::Fail(ask) => verbs::fail(found, ask, &policy)
                .map_err(|why| why == FailRefusal::Fence(FenceRefusal::Mine)),
            Request::Bury(ask) => verbs::bury(found, ask, &policy)
                .map_err(|why| why == BuryRefusal::Fence(FenceRefusal::Mine)),
            Request::Wait(ask) => verbs::wait(found, ask).map_err(|why| why == FenceRefusal::Mine),
            Request::Force(ask) => verbs::forced_bury(found, ask, &policy)
                .map_err(|why| why == ForcedBuryRefusal::Mine),
            Request::Redrive(ask) => {
                verbs::redrive(found, ask, &policy).map_err(|why| why == RedriveRefusal::Mine)
            }
            Request::Sweep(ask) => {
                verbs::sweep(found, ask, &policy).map_err(|why| why == SweepRefusal::Mine)
            }
            Request::Resolve(ask) => {
                verbs::resolve(found, ask, &policy).map_err(|why| why == ResolveRefusal::Mine)
            }
        };
        match (written, &mut self.row) {
            (Ok(life), Some(row)) => {
                if matches!(request, Request::Lease(_)) {
                    self.actors[actor].epoch = life.epoch;
                    self.actors[actor].read = None;
                }
                row.life = life;
                Said::Accepted
            }
            (Ok(_), None) => unreachable!("only a claim makes a row"),
            (Err(true), _) => Said::Mine,
            (Err(false), _) => Said::Refused,
        }
    }

    fn claim(&mut self, ask: &Claim) -> Said {
        match verbs::claim(self.row.as_ref(), &self.key, None, ask, &self.policy) {
            Ok(life) => {
                self.row = Some(row(&self.key, life, self.now));
                Said::Accepted
            }
            Err(ClaimRefusal::Mine) => Said::Mine,
            Err(_) => Said::Refused,
        }
    }

    fn apply(&mut self, ask: &Apply) -> Said {
        let entities = [self.entity.as_ref()];
        match verbs::apply(self.life(), &entities, ask, &self.policy) {
            Ok(applied) => {
                if let Some(row) = &mut self.row {
                    row.life = applied.life;
                }
                self.entity = applied.entities.into_iter().next();
                Said::Accepted
            }
            Err(ApplyRefusal::Fence(FenceRefusal::Mine)) => Said::Mine,
            Err(_) => Said::Refused,
        }
    }
}

/// One versioned change arrives: (final, version, rank, event).
pub(crate) fn arrive(entity: Option<Entity>, place: (bool, i128, u32, u8)) -> Option<Entity> {
    let (is_final, version, rank, event) = place;
    let version = Version::new(version).expect("a small version");
    let stamp = Stamp { version, rank, event_id: format!("e{event:02}") };
    let change = Change {
        entity: EntityKey::new("s", "thing", "1").expect("a key"),
        guard: Guard::Newer { stamp, tie: Tie::Rank },
        state: Map::new(),
        is_final,
        leaves: BTreeSet::new(),
    };
    change.make(entity.as_ref(), Millis(0)).ok().or(entity)
}

fn total(entity: Option<&Entity>) -> u64 {
    entity.and_then(|entity| entity.state.get("total")).and_then(Value::as_u64).unwrap_or(0)
}

/// A row with nothing but its life.
pub(crate) fn row(key: &EventKey, life: Life, received_at: Millis) -> Row {
    let evidence = Evidence {
        key: key.clone(),
        source: SourceName::new("s").expect("a source name"),
        event_type: String::new(),
        received_at,
        body: Body { codec: Codec::Plain, inline: None, chunks: 0, sha256: [0; 32], len: 0 },
        identity_hash: None,
        headers: BTreeMap::new(),
        kid: String::new(),
        origin: Origin::Delivery,
        origin_note: None,
    };
    Row { evidence, life, effects: Vec::new() }
}
