//! The use cases on the in-memory twin: a receiver, a consumer and a steward in one process, on a
//! clock that moves only when told.

use crate::Signer;
use config::Config;
use futures::FutureExt;
use ledger::{Entity, Millis, Policy, Row, Status};
use std::{future::Future, sync::Arc};
use verifier::{Answer, Headers};
use workflow::{
    CertificateCache, Consumer, Keyring, Receiver, Steward, body, consume::Record,
    receive::Delivery, steward::Tally, twin::Twin,
};

/// Where providers call.
const PUBLIC_URL: &str = "https://hooks.example";
/// The functions' time limits, as in the template.
const RECEIVER_MS: u64 = 8_000;
const CONSUMER_MS: u64 = 30_000;
const STEWARD_MS: u64 = 60_000;
/// Rounds of receiving and working after which a queue is not going to become quiet.
const ROUNDS_MAX: usize = 1_000;

/// What a world is made of.
pub struct WorldBuilder {
    sources: String,
    secret: serde_json::Map<String, serde_json::Value>,
    policy: Policy,
    now: Millis,
    allow_local: bool,
}

/// A receiver, a consumer and a steward on one twin.
pub struct World {
    /// The tables, the queue and the clock.
    pub twin: Arc<Twin>,
    /// The limits.
    pub policy: Policy,
    /// The receiver.
    pub receiver: Receiver<Twin>,
    /// The consumer.
    pub consumer: Consumer<Twin>,
    /// The steward.
    pub steward: Steward<Twin>,
    /// Signs for the sources.
    pub signer: Signer,
}

impl WorldBuilder {
    /// A world with these sources, in which it is 1,700,000,000 s after the epoch.
    #[must_use]
    pub fn new(sources: &str) -> Self {
        Self {
            sources: sources.to_owned(),
            secret: serde_json::Map::new(),
            policy: Policy::default(),
            now: Millis(1_700_000_000_000),
            allow_local: false,
        }
    }

    /// Stores keys, named `k0`, `k1`, ..., under a name in the signing secret.
    #[must_use]
    pub fn keys(mut self, name: &str, keys: &[&str]) -> Self {
        let entry =
            |(n, key): (usize, &&str)| serde_json::json!({"kid": format!("k{n}"), "key": key});
        self.secret.insert(name.to_owned(), keys.iter().enumerate().map(entry).collect());
        self
    }

    /// Stores the word a provider repeats in its handshake, beside a name's keys.
    #[must_use]
    pub fn handshake_token(mut self, name: &str, token: &str) -> Self {
        let entry = serde_json::json!({"kid": "subscribe", "key": token, "handshake": true});
        self.secret[name].as_array_mut().unwrap().push(entry);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub const fn at(mut self, now: Millis) -> Self {
        self.now = now;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Makes it.
    #[must_use]
    pub fn build(self) -> World {
        let config = Config::parse("sources.toml", &self.sources, &|_| None).unwrap();
        let twin = Arc::new(Twin::new(self.policy.clone(), self.now));
        let document = serde_json::Value::Object(self.secret).to_string();
        twin.set_secret(&document);
        let signer = Signer::new(config.clone(), &document).unwrap().at(PUBLIC_URL);
        let keyring = Keyring::new(self.allow_local);
        now(keyring.load(&*twin, &config));
        World {
            receiver: Receiver {
                ports: Arc::clone(&twin),
                config: config.clone(),
                policy: self.policy.clone(),
                keyring,
                certificates: CertificateCache::default(),
                replay: Some(workflow::receive::tokens(self.allow_local)),
                public_url: Some(PUBLIC_URL.to_owned()),
            },
            consumer: Consumer {
                ports: Arc::clone(&twin),
                config,
                policy: self.policy.clone(),
                release: "r1".to_owned(),
                projection: Box::new(workflow::projection::Declarative),
                fetcher: workflow::Fetcher::default(),
            },
            steward: Steward {
                ports: Arc::clone(&twin),
                policy: self.policy.clone(),
                release: "r1".to_owned(),
                has_reconciler: true,
            },
            policy: self.policy,
            signer,
            twin,
        }
    }
}

/// Runs a future that the twin never suspends.
///
/// # Panics
///
/// When it waits: for a deadline that only the case can bring about.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("on the twin nothing waits, unless a deadline stands still")
}

impl World {
    /// The twin's clock.
    #[must_use]
    pub fn now(&self) -> Millis {
        use workflow::ports::Clock;
        self.twin.now()
    }

    /// Posts bytes to a source.
    pub fn post(&self, source: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.request("POST", &format!("/webhooks/{source}"), headers, body)
    }

    /// Posts bytes to a source, signed with its first key at the twin's time.
    pub fn deliver(&self, source: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<_> = headers.iter().map(own).collect();
        let call = self.signer.call_at(source, &headers, body.to_vec(), self.now().0);
        let headers: Vec<(String, String)> = call
            .headers
            .into_iter()
            .map(|(name, value)| (name, String::from_utf8(value).unwrap()))
            .collect();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.post(source, &headers, &call.body)
    }

    /// Sends any request; `path` may have a query behind it.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let headers: Headers = headers.iter().copied().collect();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        now(self.receiver.receive(Delivery {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: body.to_vec(),
            deadline: self.now().plus(RECEIVER_MS),
        }))
    }

    /// Hands the consumer what is visible in the queue, once.
    pub fn work_once(&self) -> usize {
        let batch = self.twin.receive(10);
        self.work_batch(&batch);
        batch.len()
    }

    /// Hands the consumer a batch; the ids of the messages it reports as failed.
    pub fn work_batch(&self, batch: &[Record]) -> Vec<String> {
        let failed = now(self.consumer.consume(batch.to_vec(), self.now().plus(CONSUMER_MS)));
        self.twin.finish(batch, &failed);
        failed
    }

    /// Works until nothing is visible; the clock stands still.
    pub fn work(&self) {
        for _ in 0..ROUNDS_MAX {
            if self.work_once() == 0 {
                return;
            }
        }
        panic!("the queue does not become quiet: {} messages", self.twin.queue_len());
    }

    /// Works until the queue is empty, moving the clock to each message's time.
    pub fn work_through(&self) {
        for _ in 0..ROUNDS_MAX {
            self.work();
            match self.twin.next_visible() {
                Some(at) => self.twin.advance(at.since(self.now())),
                None => return,
            }
        }
        panic!("the queue does not become empty: {} messages", self.twin.queue_len());
    }

    /// Runs the steward once.
    pub fn steward(&self) -> Tally {
        now(self.steward.run(self.now().plus(STEWARD_MS)))
    }

    /// Runs the steward every minute, and the consumer between, for `minutes`.
    pub fn minutes(&self, minutes: u64) {
        for _ in 0..minutes {
            self.twin.advance(60_000);
            self.steward();
            self.work();
        }
    }

    /// A row that is there.
    #[must_use]
    pub fn row(&self, key: &str) -> Row {
        self.twin.find(key).unwrap_or_else(|| panic!("no row {key}; there are {:?}", self.keys()))
    }

    /// A row's status.
    #[must_use]
    pub fn status(&self, key: &str) -> Status {
        self.row(key).life.status
    }

    /// A row's body, byte for byte.
    #[must_use]
    pub fn body(&self, key: &str) -> Vec<u8> {
        now(body::read(&*self.twin, &self.row(key))).unwrap()
    }

    /// The keys of all rows.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.twin.rows().iter().map(|row| row.evidence.key.as_str().to_owned()).collect()
    }

    /// An entity that is there.
    #[must_use]
    pub fn entity(&self, key: &str) -> Entity {
        self.twin.state(key).unwrap_or_else(|| panic!("no entity {key}"))
    }

    /// One field of an entity's state.
    #[must_use]
    pub fn field(&self, key: &str, field: &str) -> serde_json::Value {
        self.entity(key).state.get(field).cloned().unwrap_or_default()
    }
}
