//! Reads a story line by line and plays it.

use crate::{
    stage::{Request, Stage},
    words::{clock, duration},
};
use ledger::{
    Entity, Failure, FailureClass, Jitter, Millis, Next, Outcome, Policy, Row, Token,
    next_redrive_due, next_step,
    verbs::{
        Birth, Bury, Claim, Fail, ForcedBury, LeaseAsk, Redrive, RedriveBy, Resolve, Settle, Wait,
        WaitInSequence, resting_place,
    },
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Told<T> = Result<T, String>;

/// What an actor remembers.
#[derive(Default)]
struct Memory {
    /// The fence it believes in, by event.
    epochs: BTreeMap<String, u64>,
    /// What it has read and projected.
    read: Option<Request>,
    last: Option<(String, Request)>,
}

pub(crate) struct Story {
    pub(crate) stage: Stage,
    actors: BTreeMap<String, Memory>,
    tokens: u128,
    pub(crate) sequence_timeout_ms: u64,
    /// The tables as they were saved.
    pub(crate) saved: (BTreeMap<String, Row>, BTreeMap<String, Entity>),
}

/// Plays a story; the error begins with the number of its line.
pub(crate) fn tell(text: &str) -> Told<()> {
    let began = Millis(1_000_000_000);
    let mut story = Story {
        stage: Stage {
            policy: Policy::default(),
            began,
            now: began,
            events: BTreeMap::new(),
            rows: BTreeMap::new(),
            entities: BTreeMap::new(),
            messages: BTreeMap::new(),
        },
        actors: BTreeMap::new(),
        tokens: 0,
        sequence_timeout_ms: 3_600_000,
        saved: (BTreeMap::new(), BTreeMap::new()),
    };
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() {
            story.line(&words).map_err(|error| format!("{}: {error}", n + 1))?;
        }
    }
    Ok(())
}

impl Story {
    fn line(&mut self, words: &[&str]) -> Told<()> {
        let (action, expected) = match words.iter().position(|word| *word == "->") {
            Some(arrow) => {
                let (action, outcome) = words.split_at(arrow);
                (action, outcome.get(1..).unwrap_or_default().join(" "))
            }
            None => (words, "ok".to_owned()),
        };
        let action = match action {
            ["at", time, rest @ ..] => {
                let now = self.stage.began.plus(duration(time)?);
                if now < self.stage.now {
                    return Err("time goes forward".to_owned());
                }
                self.stage.now = now;
                rest
            }
            _ => action,
        };
        let happened = self.act(action)?;
        if happened == expected {
            Ok(())
        } else {
            Err(format!("expected {expected}, and it was {happened}"))
        }
    }

    fn act(&mut self, action: &[&str]) -> Told<String> {
        let ok = || Ok("ok".to_owned());
        match action {
            [] => ok(),
            ["event", name, rest @ ..] => self.event(name, rest),
            ["policy", name, value] => self.policy(name, value),
            ["sequence", "timeout", time] => {
                self.sequence_timeout_ms = duration(time)?;
                ok()
            }
            ["expect", name, rest @ ..] => self.expect(name, rest),
            ["look"] => Ok(self.look(None, 0)),
            ["look", "build", build] => Ok(self.look(Some(build), 0)),
            ["look", "backlog", messages] => {
                let visible = messages.parse().map_err(|_| format!("no number: {messages}"))?;
                Ok(self.look(None, visible))
            }
            ["save"] => {
                self.saved = (self.stage.rows.clone(), self.stage.entities.clone());
                ok()
            }
            ["restore", what] => self.restore(what),
            ["kill", actor] => {
                self.actors.remove(*actor);
                ok()
            }
            ["repeat", actor] => {
                let last = self.actors.get(*actor).and_then(|memory| memory.last.clone());
                let (event, request) = last.ok_or("there is nothing to repeat")?;
                Ok(self.stage.perform(&event, &request))
            }
            [verb, event, rest @ ..] => {
                self.known(event, action)?;
                self.verb(verb, event, rest, action)
            }
            _ => Err(format!("no such action: {}", action.join(" "))),
        }
    }

    fn known(&self, event: &str, action: &[&str]) -> Told<()> {
        const VERBS: [&str; 14] = [
            "claim", "deliver", "send", "lease", "read", "apply", "settle", "fail", "wait",
            "redrive", "force", "resolve", "work", "rewrite",
        ];
        if !action.first().is_some_and(|verb| VERBS.contains(verb)) {
            return Err(format!("no such action: {}", action.join(" ")));
        }
        if self.stage.events.contains_key(event) {
            Ok(())
        } else {
            Err(format!("no such event: {event}"))
        }
    }

    fn verb(&mut self, verb: &str, event: &str, rest: &[&str], action: &[&str]) -> Told<String> {
        match (verb, rest) {
            ("send", []) => {
                self.send(event);
                Ok("ok".to_owned())
            }
            ("claim", ["by", actor, body @ ..]) => Ok(self.claim(event, actor, body)),
            ("deliver", ["by", actor, body @ ..]) => Ok(self.deliver(event, actor, body)),
            ("lease", ["by", actor, how @ ..]) => self.lease(event, actor, how),
            ("read", ["by", actor]) => Ok(self.read(event, actor)),
            ("apply", ["by", actor]) => Ok(self.apply(event, actor, true)),
            ("apply", ["by", actor, "waking", "nobody"]) => Ok(self.apply(event, actor, false)),
            ("settle", [outcome, "by", actor]) => self.settle(event, outcome, actor),
            ("fail", ["by", actor, how @ ..]) => self.fail(event, actor, how),
            ("wait", ["by", actor]) => Ok(self.wait(event, actor)),
            ("wait", ["by", actor, "in", "sequence"]) => self.wait_in_sequence(event, actor),
            ("redrive", ["by", actor]) => {
                let (by, reason) = ((*actor).to_owned(), "by hand".to_owned());
                Ok(self.redrive(event, actor, RedriveBy::Person { by, reason }))
            }
            ("redrive", ["by", actor, "message", time]) => {
                let sent_at = self.stage.began.plus(duration(time)?);
                Ok(self.redrive(event, actor, RedriveBy::Message { sent_at }))
            }
            ("force", ["by", actor]) => Ok(self.force(event, actor)),
            ("resolve", ["by", actor]) => {
                let ask = Resolve {
                    by: (*actor).to_owned(),
                    note: "by hand".to_owned(),
                    settled_at: self.stage.now,
                };
                Ok(self.request(event, actor, Request::Resolve(ask)))
            }
            ("work", ["by", actor]) => self.work(event, actor),
            ("rewrite", []) => {
                let row = self.stage.rows.get_mut(event).ok_or("there is no row to rewrite")?;
                row.life.format += 1;
                Ok("ok".to_owned())
            }
            _ => Err(format!("no such action: {}", action.join(" "))),
        }
    }

    /// Sends a request for an actor, who remembers it.
    pub(crate) fn request(&mut self, event: &str, actor: &str, request: Request) -> String {
        let said = self.stage.perform(event, &request);
        let memory = self.actors.entry(actor.to_owned()).or_default();
        memory.last = Some((event.to_owned(), request));
        said
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    pub(crate) fn shard(&self, event: &str) -> u8 {
        self.stage.events.get(event).map_or(0, |event| event.key.shard())
    }

    pub(crate) fn epoch(&self, event: &str, actor: &str) -> u64 {
        let memory = self.actors.get(actor);
        memory.and_then(|memory| memory.epochs.get(event)).copied().unwrap_or(0)
    }

    pub(crate) fn send(&mut self, event: &str) {
        self.stage.messages.entry(event.to_owned()).or_default().push(self.stage.now);
    }

    fn claim(&mut self, event: &str, actor: &str, body: &[&str]) -> String {
        let ask = Claim { birth: Birth::Claimed, nonce: self.token(), received_at: self.stage.now };
        let body = body.join(" ");
        self.request(event, actor, Request::Claim { ask, body })
    }

    /// A whole delivery: what it said to the claim's answer, and whether it sent.
    fn deliver(&mut self, event: &str, actor: &str, body: &[&str]) -> String {
        let said = self.claim(event, actor, body);
        match said.as_str() {
            "ok" => {
                self.send(event);
                "sent".to_owned()
            }
            "mine" | "overdue" | "dead" | "newer format" => {
                self.send(event);
                format!("{said}, sent")
            }
            _ => format!("{said}, answered"),
        }
    }

    pub(crate) fn lease(&mut self, event: &str, actor: &str, how: &[&str]) -> Told<String> {
        let mut ask = LeaseAsk {
            owner: self.token(),
            until: self.stage.now.plus(40_000),
            now: self.stage.now,
            release: "b1".to_owned(),
        };
        for pair in how.chunks(2) {
            match pair {
                ["for", time] => ask.until = self.stage.now.plus(duration(time)?),
                ["build", build] => (*build).clone_into(&mut ask.release),
                _ => return Err(format!("a lease {}?", how.join(" "))),
            }
        }
        let said = self.request(event, actor, Request::Lease(ask));
        if said == "ok" {
            let epoch = self.stage.life(event).map_or(0, |life| life.epoch);
            let memory = self.actors.entry(actor.to_owned()).or_default();
            memory.epochs.insert(event.to_owned(), epoch);
            memory.read = None;
        }
        Ok(said)
    }

    fn read(&mut self, event: &str, actor: &str) -> String {
        let epoch = self.epoch(event, actor);
        let (ask, names) = self.stage.project(event, epoch, &BTreeSet::new());
        let memory = self.actors.entry(actor.to_owned()).or_default();
        memory.read = Some(Request::Apply(ask, names));
        "ok".to_owned()
    }

    fn apply(&mut self, event: &str, actor: &str, wakes: bool) -> String {
        let read = self.actors.entry(actor.to_owned()).or_default().read.take();
        let mut request = read.unwrap_or_else(|| {
            let (ask, names) =
                self.stage.project(event, self.epoch(event, actor), &BTreeSet::new());
            Request::Apply(ask, names)
        });
        if let (false, Request::Apply(ask, _)) = (wakes, &mut request) {
            ask.wake = None;
        }
        self.request(event, actor, request)
    }

    pub(crate) fn settle(&mut self, event: &str, outcome: &str, actor: &str) -> Told<String> {
        let outcome = Outcome::parse(outcome).ok_or(format!("no such outcome: {outcome}"))?;
        let epoch = self.epoch(event, actor);
        let ask = Settle { epoch, outcome, settled_at: self.stage.now };
        Ok(self.request(event, actor, Request::Settle(ask)))
    }

    pub(crate) fn failure(&self, class: FailureClass) -> Failure {
        Failure { error: "it did not work".to_owned(), class, at: self.stage.now }
    }

    pub(crate) fn grave(&self, event: &str, class: FailureClass) -> ledger::Open {
        let redrives = self.stage.life(event).map_or(0, |life| life.redrives);
        let now = self.stage.now;
        let due = next_redrive_due(redrives, now, &self.stage.policy, Jitter::NONE);
        resting_place(self.shard(event), class, redrives, now, due, &self.stage.policy)
    }

    /// What a worker does after a failed run: the retry rules decide between the two verbs.
    fn fail(&mut self, event: &str, actor: &str, how: &[&str]) -> Told<String> {
        let (class, after) = match how {
            [] => (FailureClass::Transient, None),
            ["permanent"] => (FailureClass::Permanent, None),
            ["rate_limited"] => (FailureClass::RateLimited, None),
            ["rate_limited", "after", time] => (FailureClass::RateLimited, Some(duration(time)?)),
            _ => return Err(format!("a failure {}?", how.join(" "))),
        };
        let attempts = self.stage.life(event).map_or(0, |life| life.attempts);
        let (now, epoch) = (self.stage.now, self.epoch(event, actor));
        let failure = self.failure(class);
        let step = next_step(attempts, class, after, now, &self.stage.policy, Jitter::NONE);
        let (request, done) = match step {
            Next::Retry { at } => {
                let shard = self.shard(event);
                let done = format!("retry at {}", clock(at, self.stage.began));
                (Request::Fail(Fail { epoch, failure, retry_at: at, shard }), done)
            }
            Next::BuryPermanent | Next::BuryExhausted => {
                let open = self.grave(event, class);
                (Request::Bury(Bury { epoch, failure, open }), "buried".to_owned())
            }
        };
        let said = self.request(event, actor, request);
        Ok(if said == "ok" { done } else { said })
    }

    fn wait(&mut self, event: &str, actor: &str) -> String {
        let retry_at = self.stage.now.plus(10_000);
        let ask = Wait {
            epoch: self.epoch(event, actor),
            now: self.stage.now,
            retry_at,
            due_at: retry_at.plus(self.stage.policy.retry_grace_ms),
            shard: self.shard(event),
        };
        self.request(event, actor, Request::Wait(ask))
    }

    pub(crate) fn wait_in_sequence(&mut self, event: &str, actor: &str) -> Told<String> {
        let (name, waiter) = self.stage.number(event).ok_or("an event without a number")?;
        let ask = WaitInSequence {
            epoch: self.epoch(event, actor),
            now: self.stage.now,
            waiting_since: self.stage.life(event).and_then(|life| life.waiting_since),
            timeout_ms: self.sequence_timeout_ms,
            waiter,
        };
        Ok(self.request(event, actor, Request::Queue(ask, name)))
    }

    fn redrive(&mut self, event: &str, actor: &str, by: RedriveBy) -> String {
        let ask = Redrive { by, now: self.stage.now, shard: self.shard(event) };
        self.request(event, actor, Request::Redrive(ask))
    }

    fn force(&mut self, event: &str, actor: &str) -> String {
        let ask = ForcedBury {
            failure: self.failure(FailureClass::Transient),
            now: self.stage.now,
            open: self.grave(event, FailureClass::Transient),
        };
        self.request(event, actor, Request::Force(ask))
    }
}
