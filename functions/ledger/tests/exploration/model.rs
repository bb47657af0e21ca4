//! The pools of everything distinct, and the memory of every question asked of a verb.

use crate::{
    bounds::{Bounds, Design},
    pool::{FastMap, Glance, Pool, revision},
    process::Proc,
    properties::Property,
    search::Move,
    world::World,
};
use ledger::{Entity, EventKey, Lease, Life, Policy, Token};
use std::collections::BTreeSet;

/// What a verb said to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    Done,
    Mine,
    Lost,
    Missing,
    UnknownFormat,
    Settled,
    Pending,
    Overdue,
    Conflict,
    Dead,
    DeadPermanent,
    Held,
    NotYet,
    OutOfBudget,
    BudgetLeft,
    MessageTooOld,
    MovedOn,
    NotDead,
    /// These changes, by bit.
    Superseded(u8),
    RevisionMoved,
    NotWaiting,
    PredecessorCame,
    TooManyWaiters,
}

/// A verb's answer: what it said and, where it wrote, what stands there now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) said: Said,
    pub(crate) life: u16,
    pub(crate) entities: [u16; 2],
    pub(crate) next: u16,
    pub(crate) breach: Option<Property>,
}

impl Answer {
    pub(crate) const fn said(said: Said) -> Self {
        Self { said, life: 0, entities: [0; 2], next: 0, breach: None }
    }
}

/// The questions that are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Claim,
    Lease,
    Redrive,
    Wait,
    Apply,
    Settle,
    Fail,
    Bury,
    ForcedBury,
    Sweep,
    Resolve,
    WaitInSequence,
    Rewrite,
    WithEpoch,
    WithOwner,
    WithNonce,
    WithRevision,
}

pub(crate) struct Model {
    pub(crate) bounds: Bounds,
    pub(crate) design: Design,
    pub(crate) policy: Policy,
    pub(crate) keys: [EventKey; 2],
    pub(crate) lives: Pool<Life>,
    glances: Vec<Glance>,
    pub(crate) entities: Pool<Entity>,
    revisions: Vec<u8>,
    procs: Pool<Proc>,
    memory: FastMap<u128, Answer>,
    /// Every verb's every answer, as `lease: Held`.
    pub(crate) heard: BTreeSet<String>,
    /// The successors under construction.
    pub(crate) moves: Vec<Move>,
    /// The world whose successors are under construction; without one they are left as they are.
    pub(crate) origin: Option<World>,
    pub(crate) rescued: FastMap<u64, bool>,
}

impl Model {
    pub(crate) fn new(bounds: Bounds, design: Design) -> Self {
        let policy = bounds.policy();
        let key = |text: &str| EventKey::parse(text).expect("a ledger key");
        Self {
            bounds,
            design,
            policy,
            keys: [key("s#e1"), key("s#e2")],
            lives: Pool::new(),
            glances: Vec::new(),
            entities: Pool::new(),
            revisions: vec![0],
            procs: Pool::new(),
            memory: FastMap::default(),
            heard: BTreeSet::new(),
            moves: Vec::new(),
            origin: None,
            rescued: FastMap::default(),
        }
    }

    pub(crate) fn number(&mut self, proc: Proc) -> u16 {
        self.procs.number(&proc)
    }

    pub(crate) fn proc(&self, number: u16) -> Proc {
        *self.procs.get(number).expect("a process")
    }

    /// What the search needs to know of the life with that number, which is not 0.
    pub(crate) fn glance(&self, life: u16) -> Glance {
        self.glances[usize::from(life) - 1]
    }

    pub(crate) fn glance_at(&self, life: u16) -> Option<Glance> {
        (life != 0).then(|| self.glance(life))
    }

    pub(crate) fn revision(&self, entity: u16) -> u8 {
        self.revisions[usize::from(entity)]
    }

    pub(crate) fn store(&mut self, life: &Life) -> u16 {
        let number = self.lives.number(life);
        if self.glances.len() < self.lives.len() {
            self.glances.push(Glance::of(life));
        }
        number
    }

    pub(crate) fn store_entity(&mut self, entity: Entity) -> u16 {
        let entity = Entity { updated_at: ledger::Millis(0), ..entity };
        let number = self.entities.number(&entity);
        if self.revisions.len() <= self.entities.len() {
            self.revisions.push(revision(Some(&entity)));
        }
        number
    }

    /// The answer to a question; asked of the verb the first time only.
    pub(crate) fn ask(
        &mut self,
        verb: Verb,
        question: [u16; 7],
        verb_itself: impl FnOnce(&mut Self) -> Answer,
    ) -> Answer {
        let key = question.iter().fold(verb as u128, |key, part| key << 16 | u128::from(*part));
        if let Some(answer) = self.memory.get(&key) {
            return *answer;
        }
        let answer = verb_itself(self);
        self.heard.insert(match answer.said {
            Said::Superseded(_) => format!("{verb:?}: Superseded"),
            said => format!("{verb:?}: {said:?}"),
        });
        self.memory.insert(key, answer);
        answer
    }

    fn changed(&mut self, verb: Verb, life: u16, to: u16, change: impl FnOnce(&mut Life)) -> u16 {
        let question = [life, to, 0, 0, 0, 0, 0];
        self.ask(verb, question, |model| {
            let mut after = model.lives.get(life).expect("a life").clone();
            change(&mut after);
            Answer { life: model.store(&after), ..Answer::said(Said::Done) }
        })
        .life
    }

    pub(crate) fn with_epoch(&mut self, life: u16, epoch: u8) -> u16 {
        self.changed(Verb::WithEpoch, life, epoch.into(), |life| life.epoch = epoch.into())
    }

    pub(crate) fn with_nonce(&mut self, life: u16, nonce: u8) -> u16 {
        let token = Token(nonce.into());
        self.changed(Verb::WithNonce, life, nonce.into(), |life| life.claim_nonce = token)
    }

    pub(crate) fn with_owner(&mut self, life: u16, owner: u8) -> u16 {
        let token = Token(owner.into());
        self.changed(Verb::WithOwner, life, owner.into(), |life| {
            life.lease = life.lease.map(|lease| Lease { owner: token, ..lease });
        })
    }

    pub(crate) fn with_revision(&mut self, entity: u16, revision: u8) -> u16 {
        if entity == 0 || self.revision(entity) == revision {
            return entity;
        }
        let question = [entity, revision.into(), 0, 0, 0, 0, 0];
        self.ask(Verb::WithRevision, question, |model| {
            let mut after = model.entities.get(entity).expect("an entity").clone();
            after.revision = revision.into();
            let number = model.store_entity(after);
            Answer { entities: [number, 0], ..Answer::said(Said::Done) }
        })
        .entities[0]
    }

    /// The distinct lives and entities met so far.
    pub(crate) fn distinct(&self) -> (usize, usize) {
        (self.lives.len(), self.entities.len())
    }

    /// Every status met, with its outcome or bucket: `dead, Parked`.
    pub(crate) fn shapes(&self) -> BTreeSet<String> {
        let shape = |glance: &Glance| match (glance.outcome, glance.bucket) {
            (Some(outcome), _) => format!("{}, {outcome}", glance.status),
            (None, Some(bucket)) => format!("{}, {bucket:?}", glance.status),
            (None, None) => glance.status.to_string(),
        };
        self.glances.iter().map(shape).collect()
    }
}
