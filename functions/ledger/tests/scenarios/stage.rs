//! The stage: rows, state rows and messages, and requests that meet them through the verbs.

use crate::words;
use ledger::{
    Body, Change, Codec, Entity, EntityKey, EventKey, Evidence, Guard, Life, Millis, Origin,
    Policy, Row, SourceName, Stamp, Tie, Version, Waiter, succession,
    verbs::{
        self, Apply, Bury, Claim, Fail, ForcedBury, LeaseAsk, Redrive, Resolve, Settle, Sweep,
        Wait, WaitInSequence,
    },
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// How one change of an event becomes state.
#[derive(Clone)]
pub(crate) enum Effect {
    Version { version: i128, rank: u32, is_final: bool, tie: Tie },
    Adds(i64),
    Number(i128),
}

/// What an event is about.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) key: EventKey,
    pub(crate) source: SourceName,
    pub(crate) changes: Vec<(String, Effect)>,
}

/// A request as it went out, so that it can go out again.
#[derive(Clone)]
pub(crate) enum Request {
    Claim { ask: Claim, body: String },
    Lease(LeaseAsk),
    Apply(Apply, Vec<String>),
    Settle(Settle),
    Fail(Fail),
    Bury(Bury),
    Force(ForcedBury),
    Wait(Wait),
    Queue(WaitInSequence, String),
    Redrive(Redrive),
    Resolve(Resolve),
    Sweep(Sweep),
}

pub(crate) struct Stage {
    pub(crate) policy: Policy,
    /// When the story begins; late enough for every clock to look back.
    pub(crate) began: Millis,
    pub(crate) now: Millis,
    pub(crate) events: BTreeMap<String, Event>,
    pub(crate) rows: BTreeMap<String, Row>,
    pub(crate) entities: BTreeMap<String, Entity>,
    /// When each message was sent, by event.
    pub(crate) messages: BTreeMap<String, Vec<Millis>>,
}

impl Stage {
    pub(crate) fn life(&self, event: &str) -> Option<&Life> {
        self.rows.get(event).map(|row| &row.life)
    }

    /// Sends one request to its verb; what the verb said, in words.
    pub(crate) fn perform(&mut self, event: &str, request: &Request) -> String {
        let found = self.life(event).cloned();
        let found = found.as_ref();
        let policy = self.policy.clone();
        let written =
            match request {
                Request::Claim { ask, body } => return self.claim(event, ask, body),
                Request::Apply(ask, names) => return self.apply(event, ask, names),
                Request::Queue(ask, name) => return self.queue(event, ask, name),
                Request::Lease(ask) => {
                    verbs::lease(found, ask, &policy).map_err(|why| words::lease(why, self.began))
                }
                Request::Settle(ask) => {
                    verbs::settle(found, ask, &policy).map_err(|why| words::fence(why).to_owned())
                }
                Request::Fail(ask) => {
                    verbs::fail(found, ask, &policy).map_err(|why| words::fail(why).to_owned())
                }
                Request::Bury(ask) => {
                    verbs::bury(found, ask, &policy).map_err(|why| words::bury(why).to_owned())
                }
                Request::Force(ask) => verbs::forced_bury(found, ask, &policy)
                    .map_err(|why| words::force(why).to_owned()),
                Request::Wait(ask) => {
                    verbs::wait(found, ask).map_err(|why| words::fence(why).to_owned())
                }
                Request::Redrive(ask) => verbs::redrive(found, ask, &policy)
                    .map_err(|why| words::redrive(why).to_owned()),
                Request::Resolve(ask) => verbs::resolve(found, ask, &policy)
                    .map_err(|why| words::resolve(why).to_owned()),
                Request::Sweep(ask) => {
                    verbs::sweep(found, ask, &policy).map_err(|why| words::sweep(why).to_owned())
                }
            };
        match written {
            Ok(life) => {
                self.put(event, life);
                "ok".to_owned()
            }
            Err(words) => words,
        }
    }

    fn put(&mut self, event: &str, life: Life) {
        self.rows.get_mut(event).expect("only a claim makes a row").life = life;
    }

    fn claim(&mut self, event: &str, ask: &Claim, body: &str) -> String {
        let Event { key, source, .. } = self.events.get(event).expect("a known event").clone();
        let mut hash = [0; 32];
        for (to, from) in hash.iter_mut().zip(body.bytes()) {
            *to = from;
        }
        match verbs::claim(self.rows.get(event), &key, Some(&hash), ask, &self.policy) {
            Ok(life) => {
                let row =
                    Row { evidence: evidence(key, source, hash, self.now), life, effects: vec![] };
                self.rows.insert(event.to_owned(), row);
                "ok".to_owned()
            }
            Err(why) => words::claim(why).to_owned(),
        }
    }

    fn apply(&mut self, event: &str, ask: &Apply, names: &[String]) -> String {
        let entities: Vec<Option<&Entity>> =
            names.iter().map(|name| self.entities.get(name)).collect();
        let next = ask.wake.as_ref().and_then(|wake| self.named(&wake.key));
        let next_life = next.as_deref().and_then(|next| self.life(next));
        match verbs::apply_and_wake(self.life(event), &entities, next_life, ask, &self.policy) {
            Ok(applied) => {
                self.put(event, applied.life);
                if let (Some(next), Some(woken)) = (next, applied.woken) {
                    self.put(&next, woken);
                }
                for (name, entity) in names.iter().zip(applied.entities) {
                    self.entities.insert(name.clone(), entity);
                }
                "ok".to_owned()
            }
            Err(why) => words::apply(&why).to_owned(),
        }
    }

    fn queue(&mut self, event: &str, ask: &WaitInSequence, name: &str) -> String {
        let entity = self.entities.get(name);
        match verbs::wait_in_sequence(self.life(event), entity, ask, &self.policy) {
            Ok(waited) => {
                self.put(event, waited.life);
                self.entities.insert(name.to_owned(), waited.entity);
                "ok".to_owned()
            }
            Err(why) => words::queue(why).to_owned(),
        }
    }

    fn named(&self, key: &EventKey) -> Option<String> {
        self.events.iter().find(|(_, event)| event.key == *key).map(|(name, _)| name.clone())
    }

    /// The transaction for an event, standing on the entities as they are now. Changes of
    /// entities in `dropped` were superseded before.
    pub(crate) fn project(
        &self,
        event: &str,
        epoch: u64,
        dropped: &BTreeSet<String>,
    ) -> (Apply, Vec<String>) {
        let known = self.events.get(event).expect("a known event");
        let mut ask = Apply::new(epoch, self.now, Vec::new());
        let mut names = Vec::new();
        for (name, effect) in known.changes.iter().filter(|(name, _)| !dropped.contains(name)) {
            let entity = self.entities.get(name);
            let id = known.key.event_id();
            let mut change = change(name, effect, entity, id);
            if let Effect::Number(number) = effect {
                let after = succession(entity, version(*number));
                change.leaves = after.leaves;
                ask.wake = after.wakes.into_iter().next();
            }
            ask.changes.push(change);
            names.push(name.clone());
        }
        (ask, names)
    }

    /// The event's number and its entity, in a sequence.
    pub(crate) fn number(&self, event: &str) -> Option<(String, Waiter)> {
        let known = self.events.get(event)?;
        known.changes.iter().find_map(|(name, effect)| match effect {
            Effect::Number(number) => {
                let waiter = Waiter { number: version(*number), key: known.key.clone() };
                Some((name.clone(), waiter))
            }
            Effect::Version { .. } | Effect::Adds(_) => None,
        })
    }
}

pub(crate) fn version(number: i128) -> Version {
    Version::new(number).expect("a version of at most 38 digits")
}

/// The total of a state row.
pub(crate) fn total(entity: Option<&Entity>) -> i64 {
    entity.and_then(|entity| entity.state.get("total")).and_then(Value::as_i64).unwrap_or(0)
}

fn change(name: &str, effect: &Effect, entity: Option<&Entity>, id: &str) -> Change {
    let read = entity.map(|entity| entity.revision);
    let mut state = Map::new();
    let (guard, is_final) = match effect {
        Effect::Version { version: number, rank, is_final, tie } => {
            let stamp = Stamp { version: version(*number), rank: *rank, event_id: id.to_owned() };
            (Guard::Newer { stamp, tie: *tie }, *is_final)
        }
        Effect::Adds(amount) => {
            state.insert("total".to_owned(), Value::from(total(entity) + amount));
            (Guard::Revision { read, version: None, event_id: id.to_owned() }, false)
        }
        Effect::Number(number) => {
            let version = Some(version(*number));
            (Guard::Revision { read, version, event_id: id.to_owned() }, false)
        }
    };
    let entity = EntityKey::new("s", "thing", name).expect("a key");
    Change { entity, guard, state, is_final, leaves: BTreeSet::new() }
}

fn evidence(key: EventKey, source: SourceName, hash: [u8; 32], now: Millis) -> Evidence {
    Evidence {
        key,
        source,
        event_type: String::new(),
        received_at: now,
        body: Body { codec: Codec::Plain, inline: None, chunks: 0, sha256: hash, len: 0 },
        identity_hash: Some(hash),
        headers: BTreeMap::new(),
        kid: String::new(),
        origin: Origin::Delivery,
        origin_note: None,
    }
}
