//! An operator's desk on the twin: a provider's list and a stack, both in process, on one clock. What
//! waits moves the clock, and a run can be killed at any of its calls.

use crate::{EventApi, ListAnswer, ListAsk, World};
use config::Source;
use futures::FutureExt;
use ledger::{EventKey, Jitter, Millis, Token};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use verifier::{ApiAuth, Headers};
use workflow::{
    http::{HttpAnswer, HttpAsk},
    outbound::{ApiKey, api_key},
    ports::{Clock, Entropy, Http, KnownRow, Lookup, PortError, Secret, SecretStore, Trouble},
    receive::Delivery,
    replay::{
        Access, Broken, Checkpoint, Feed, Notebook, Opening, Pace, Posts, Replay, Watch, Words,
        pager::{Pager, Window},
    },
};

/// Where the stack answers.
const STACK: &str = "http://stack.test";
/// Where the provider's list is.
const PROVIDER: &str = "http://127.0.0.1:1";

/// A provider, a stack and an operator.
pub struct Desk {
    /// The stack.
    pub world: World,
    api: Mutex<EventApi>,
    calls: AtomicU64,
    /// The call at which the run dies: half of them before it takes effect, half after.
    dies_at: AtomicU64,
    waited: Mutex<Vec<String>>,
}

impl Desk {
    /// A desk between these two. Keys and tokens are stored.
    #[must_use]
    pub fn new(world: World, api: EventApi) -> Self {
        let entry = |key: &str| serde_json::json!([{"kid": "k", "key": key}]);
        let names = world.receiver.config.sources();
        let (mut keys, mut tokens) = (serde_json::Map::new(), serde_json::Map::new());
        for source in names {
            keys.insert(source.secret.clone(), entry(&api.key));
            tokens.insert(source.name.to_string(), entry(&Self::token_of(source.name.as_str())));
        }
        world.twin.set_secret_of(Secret::Outbound, &serde_json::Value::Object(keys).to_string());
        world.twin.set_secret_of(Secret::Replay, &serde_json::Value::Object(tokens).to_string());
        Self {
            world,
            api: Mutex::new(api),
            calls: AtomicU64::new(0),
            dies_at: AtomicU64::new(u64::MAX),
            waited: Mutex::default(),
        }
    }

    /// A source's replay token.
    #[must_use]
    pub fn token_of(source: &str) -> String {
        format!("replay-token-of-{source}-0123456789abcdef")
    }

    /// Looks at the provider, or changes it.
    pub fn with<T>(&self, change: impl FnOnce(&mut EventApi) -> T) -> T {
        change(&mut self.api.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next run dies at its call number `calls`.
    pub fn die_at(&self, calls: u64) {
        self.calls.store(0, Ordering::Relaxed);
        self.dies_at.store(calls, Ordering::Relaxed);
    }

    /// Calls since [`Desk::die_at`].
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// What runs waited for.
    #[must_use]
    pub fn waited(&self) -> Vec<String> {
        self.waited.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A source.
    #[must_use]
    pub fn source(&self, name: &str) -> &Source {
        self.world.receiver.config.source(name).unwrap()
    }

    /// A run that has not begun.
    #[must_use]
    pub fn begin(&self, source: &str, window: Window) -> Checkpoint {
        Checkpoint::new(source, self.token().to_string(), window, Vec::new())
    }

    /// Posts to the replay route until the window is done. `None`: the run was killed.
    pub fn replay(
        &self,
        checkpoint: &Checkpoint,
        notebook: &Pages,
    ) -> Option<Result<Checkpoint, Box<Broken>>> {
        let source = checkpoint.source.clone();
        let token = self.key(Secret::Replay, &source);
        let words = Words {
            by: "anna".to_owned(),
            reason: "outage".to_owned(),
            run: checkpoint.run.clone(),
        };
        let posts = Posts::new(self, self, STACK, &source, &token, &words);
        self.run(checkpoint, notebook, posts)
    }

    /// Feeds the events of a window somewhere. `None`: the run was killed.
    pub fn run(
        &self,
        checkpoint: &Checkpoint,
        notebook: &Pages,
        feed: impl Feed,
    ) -> Option<Result<Checkpoint, Box<Broken>>> {
        let source = self.source(&checkpoint.source);
        let path = self.with(|api| api.path());
        let opening = Opening::of(source, Some(format!("{PROVIDER}{path}"))).unwrap();
        let replay = Replay {
            ports: self,
            source,
            pager: Pager::new(opening.list.clone(), opening.address.clone(), checkpoint.window),
            access: &Access::new(ApiAuth::Bearer, self.key(Secret::Outbound, opening.secret)),
            feed,
            watch: self,
            pace: Pace { per_second: 1_000_000, at_once: 16 },
            remembered_ms: Some(self.world.policy.remembered_ms()),
        };
        replay.run(checkpoint.clone(), notebook, None).now_or_never()
    }

    fn key(&self, secret: Secret, name: &str) -> ApiKey {
        crate::now(api_key(self, secret, name, true)).unwrap()
    }
}

/// Checkpoints, in memory.
#[derive(Default)]
pub struct Pages(Mutex<Option<Checkpoint>>);

impl Pages {
    /// The last one.
    #[must_use]
    pub fn last(&self) -> Option<Checkpoint> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Notebook for Pages {
    async fn save(&self, checkpoint: &Checkpoint) -> Result<(), String> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(checkpoint.clone());
        Ok(())
    }
}

impl Http for Desk {
    async fn call(&self, ask: HttpAsk) -> Result<HttpAnswer, PortError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let dies_at = self.dies_at.load(Ordering::Relaxed);
        if call >= dies_at && dies_at.is_multiple_of(2) {
            std::future::pending::<()>().await;
        }
        let answer = if ask.url.starts_with(STACK) {
            Some(self.stack(ask).await)
        } else {
            self.provider(&ask)
        };
        if call >= dies_at {
            std::future::pending::<()>().await;
        }
        answer.ok_or_else(|| PortError {
            step: "call",
            trouble: Trouble::Unavailable,
            source: "connection closed".into(),
        })
    }
}

impl Desk {
    fn provider(&self, ask: &HttpAsk) -> Option<HttpAnswer> {
        let authorization = ask.headers.iter().find(|(name, _)| name == "authorization");
        let authorization = authorization.map_or("", |(_, value)| value.as_str());
        match self.with(|api| api.answer(&ListAsk::new(&ask.url, authorization))) {
            ListAnswer::Close => None,
            ListAnswer::Json(status, headers, body) => {
                Some(HttpAnswer { status, headers, body: body.to_string().into_bytes() })
            }
        }
    }

    async fn stack(&self, ask: HttpAsk) -> HttpAnswer {
        let headers: Headers =
            ask.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let answer = self.world.receiver.receive(Delivery {
            method: ask.method.as_str().to_owned(),
            path: ask.url.strip_prefix(STACK).unwrap_or_default().to_owned(),
            query: String::new(),
            headers,
            body: ask.body,
            deadline: self.now().plus(8_000),
        });
        let answer = answer.await;
        HttpAnswer { status: answer.status, headers: answer.headers, body: answer.body }
    }
}

impl Clock for Desk {
    fn now(&self) -> Millis {
        self.world.now()
    }

    async fn sleep(&self, ms: u64) {
        self.world.twin.advance(ms);
    }
}

impl Entropy for Desk {
    fn token(&self) -> Token {
        self.world.twin.token()
    }

    fn jitter(&self) -> Jitter {
        Jitter::NONE
    }
}

impl SecretStore for Desk {
    async fn fetch(&self, secret: Secret) -> Result<String, PortError> {
        self.world.twin.fetch(secret).await
    }
}

impl Lookup for Desk {
    async fn known(&self, keys: &[EventKey]) -> Result<BTreeMap<EventKey, KnownRow>, PortError> {
        self.world.twin.known(keys).await
    }
}

impl Watch for Desk {
    fn waits(&self, why: &str, ms: u64) {
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        waited.push(format!("{why}; {ms}"));
    }

    fn reached(&self, _checkpoint: &Checkpoint) {}
}
