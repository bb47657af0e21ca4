//! Asking a provider for the present state of an entity.
//!
//! One [`Fetcher`] a process: it keeps the keys, the tokens they were exchanged for, and what may be
//! asked how often. A refusal becomes the class that decides about the next run here, where the
//! status is known. Messages name the table and the secret's entry, never an address, a key or an
//! answer.

mod keys;
mod limit;

use crate::{
    http::{HttpAnswer, HttpAsk, Method},
    outbound::ApiKey,
    ports::{Clock, Http, PortError, SecretStore, Trouble},
    projection::{ProjectionError, Told},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use config::{Auth, Fetch, OnMissing};
use futures::lock::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};
use keys::OutboundKeys;
use ledger::{FailureClass, Millis};
use limit::Limit;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The longest a provider is waited for. Ten events of a batch are worked at the same time.
const PATIENCE_MS: u64 = 8_000;
/// Below this there is no point in asking.
const PATIENCE_MS_MIN: u64 = 1_000;
/// What is left for the write after an answer.
const WRITE_MS: u64 = 2_000;
/// An answer is an object, not a list of all of them.
const ANSWER_BYTES_MAX: usize = 1_024 * 1_024;
/// How long a token is kept that does not say how long it lives.
const TOKEN_LIFE_MS: u64 = 300_000;
/// A token is not used in the last minute of its life.
const TOKEN_MARGIN_MS: u64 = 60_000;
/// Silence after a 429, at most: as long as a row waits for it.
const SILENCE_MS_MAX: u64 = 60_000;
/// ... and where the provider does not say how long.
const SILENCE_MS: u64 = 1_000;

/// What one entity is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// How to ask.
    pub fetch: &'a Fetch,
    /// Whose state, for messages.
    pub entity_type: &'a str,
    /// The entity's id as the provider writes it.
    pub id: &'a str,
    /// Whether the event has waited already.
    pub has_waited: bool,
    /// When the event's run ends.
    pub end: Millis,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// It is not its turn: come again then. Nobody's fault.
    NotYet {
        /// When.
        at: Millis,
    },
    /// It was asked, or could not be.
    Failed {
        /// What went wrong, without payload.
        error: String,
        /// Whether trying again can help.
        class: FailureClass,
        /// How long the provider asked to wait.
        retry_after_ms: Option<u64>,
    },
}

/// Asks providers, at their pace.
pub struct Fetcher {
    /// How many processes share a rate.
    processes: u32,
    /// Where every question goes instead of its own host: the local stack's provider.
    origin: Option<String>,
    keys: OutboundKeys,
    /// Tokens by the entry of the secret they were exchanged for.
    tokens: AsyncMutex<BTreeMap<String, Token>>,
    /// By the table's path.
    gates: Mutex<BTreeMap<String, Arc<Gate>>>,
}

struct Token {
    text: String,
    until: Millis,
}

/// What is let through of one table's questions.
struct Gate {
    limit: Mutex<Limit>,
    /// One place for each call at the same time; none where nothing limits them.
    places: Vec<AsyncMutex<()>>,
    next_place: AtomicUsize,
}

impl Default for Fetcher {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Fetcher {
    /// One of `processes` that share every rate.
    #[must_use]
    pub fn new(processes: u32) -> Self {
        Self {
            processes: processes.max(1),
            origin: None,
            keys: OutboundKeys::default(),
            tokens: AsyncMutex::default(),
            gates: Mutex::default(),
        }
    }

    /// Sends every question to `origin`, such as `http://127.0.0.1:8420`, instead of its own host.
    #[must_use]
    pub fn at(mut self, origin: Option<String>) -> Self {
        self.origin = origin;
        self
    }

    /// Whether keys marked `local` may be used.
    #[must_use]
    pub const fn allowing_local(mut self, allow_local: bool) -> Self {
        self.keys.allow_local = allow_local;
        self
    }

    /// Asks for one entity.
    pub async fn ask(
        &self,
        ports: &(impl Http + SecretStore + Clock),
        question: &Question<'_>,
    ) -> Result<Told, NoAnswer> {
        let fetch = question.fetch;
        let url = fetch.url.of(question.id, self.origin.as_deref()).ok_or_else(|| {
            let (entity_type, id) = (question.entity_type.to_owned(), question.id.to_owned());
            failed(&ProjectionError::Address { entity_type, id })
        })?;
        let gate = self.gate(fetch);
        let _place = gate.place().await;
        if question.patience_ms(ports.now()) < PATIENCE_MS_MIN {
            return Err(NoAnswer::NotYet { at: ports.now().plus(PATIENCE_MS_MIN) });
        }
        gate.admit(ports.now(), question.has_waited)?;
        let mut key = self.key(ports, fetch).await?;
        let mut answer = self.call(ports, question, &url, &key).await?;
        if answer.status == 401 {
            // A key that was rotated looks just so.
            self.tokens.lock().await.remove(&fetch.secret);
            self.keys.refresh(ports).await;
            let now_key = self.key(ports, fetch).await?;
            // It may be another question of this batch that read the new one.
            let is_worth_it = now_key != key || is_token(&fetch.auth);
            if is_worth_it && question.patience_ms(ports.now()) >= PATIENCE_MS_MIN {
                gate.admit(ports.now(), true)?;
                key = now_key;
                answer = self.call(ports, question, &url, &key).await?;
            }
        }
        read(ports.now(), question, &gate, &answer)
    }

    async fn key(
        &self,
        ports: &(impl SecretStore + Clock),
        fetch: &Fetch,
    ) -> Result<ApiKey, NoAnswer> {
        // What is missing may be stored in a moment, so it is not for good.
        let key = self.keys.key(ports, &fetch.secret).await;
        key.map_err(|why| NoAnswer::of(why.to_string(), FailureClass::Transient))
    }

    async fn call(
        &self,
        ports: &(impl Http + Clock),
        question: &Question<'_>,
        url: &str,
        key: &ApiKey,
    ) -> Result<HttpAnswer, NoAnswer> {
        let key = key.text();
        let (name, value) = match &question.fetch.auth {
            Auth::Bearer => ("authorization", format!("Bearer {key}")),
            Auth::Basic => ("authorization", basic(key)),
            Auth::Header(name) => (name.as_str(), key.to_owned()),
            Auth::ClientCredentials(address) => {
                let address = address.at(self.origin.as_deref());
                (
                    "authorization",
                    format!("Bearer {}", self.token(ports, question, &address, key).await?),
                )
            }
        };
        let ask = HttpAsk::get(url).header("accept", "application/json").header(name, value);
        let ask = HttpAsk {
            patience_ms: question.patience_ms(ports.now()),
            answer_bytes_max: ANSWER_BYTES_MAX,
            ..ask.header("user-agent", "oncehook")
        };
        ports.call(ask).await.map_err(|error| not_asked(question.fetch, &error))
    }

    /// The token that a client's key is worth, from memory or exchanged now.
    async fn token(
        &self,
        ports: &(impl Http + Clock),
        question: &Question<'_>,
        address: &str,
        key: &str,
    ) -> Result<String, NoAnswer> {
        #[derive(Deserialize)]
        struct Granted {
            access_token: String,
            #[serde(default)]
            expires_in: serde_json::Value,
        }
        let fetch = question.fetch;
        let mut tokens = self.tokens.lock().await;
        let now = ports.now();
        if let Some(token) = tokens.get(&fetch.secret).filter(|token| now < token.until) {
            return Ok(token.text.clone());
        }
        let ask = HttpAsk {
            method: Method::Post,
            body: b"grant_type=client_credentials".to_vec(),
            patience_ms: question.patience_ms(now),
            answer_bytes_max: ANSWER_BYTES_MAX,
            ..HttpAsk::get(address)
        };
        let ask = ask
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("authorization", basic(key));
        let answer = ports.call(ask).await.map_err(|error| not_asked(fetch, &error))?;
        if matches!(answer.status, 400 | 401 | 403) {
            return Err(refused_key(fetch, answer.status, "exchanging "));
        }
        let granted = Some(&answer).filter(|answer| answer.status == 200);
        let granted =
            granted.and_then(|answer| serde_json::from_slice::<Granted>(&answer.body).ok());
        let Some(granted) = granted else {
            let said = format!("{}: no token, but an answer {}", fetch.path, answer.status);
            return Err(NoAnswer::of(said, FailureClass::Transient));
        };
        // RFC 6749 recommends the field; some leave it out, some write the number as text.
        let seconds: Option<u64> = match &granted.expires_in {
            serde_json::Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        };
        let life_ms = seconds.map_or(TOKEN_LIFE_MS, |seconds| seconds.saturating_mul(1_000));
        let life_ms = life_ms.saturating_sub(TOKEN_MARGIN_MS);
        let token = Token { text: granted.access_token.clone(), until: now.plus(life_ms) };
        tokens.insert(fetch.secret.clone(), token);
        Ok(granted.access_token)
    }

    fn gate(&self, fetch: &Fetch) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let places = fetch.concurrency.map_or(0, |all| (all / self.processes).max(1));
            Arc::new(Gate {
                limit: Mutex::new(Limit::new(fetch.rate_per_s, self.processes)),
                places: (0..places).map(|_| AsyncMutex::default()).collect(),
                next_place: AtomicUsize::new(0),
            })
        };
        Arc::clone(gates.entry(fetch.path.clone()).or_insert_with(make))
    }
}

impl Question<'_> {
    fn patience_ms(&self, now: Millis) -> u64 {
        self.end.minus(WRITE_MS).since(now).min(PATIENCE_MS)
    }
}

impl Gate {
    /// A place among the calls at the same time; held until it is dropped.
    async fn place(&self) -> Option<AsyncMutexGuard<'_, ()>> {
        if let Some(free) = self.places.iter().find_map(AsyncMutex::try_lock) {
            return Some(free);
        }
        let turn = self.next_place.fetch_add(1, Ordering::Relaxed);
        let place = self.places.get(turn.checked_rem(self.places.len())?)?;
        Some(place.lock().await)
    }

    fn admit(&self, now: Millis, has_waited: bool) -> Result<(), NoAnswer> {
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        limit.admit(now, has_waited).map_err(|at| NoAnswer::NotYet { at })
    }

    fn silence(&self, until: Millis) {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner).silence(until);
    }
}

impl NoAnswer {
    const fn of(error: String, class: FailureClass) -> Self {
        Self::Failed { error, class, retry_after_ms: None }
    }
}

/// What an answer means.
fn read(
    now: Millis,
    question: &Question<'_>,
    gate: &Gate,
    answer: &HttpAnswer,
) -> Result<Told, NoAnswer> {
    let fetch = question.fetch;
    let said = |what: &str| format!("{}: the provider {what}", fetch.path);
    match answer.status {
        200 => Told::read(fetch, question.entity_type, &answer.body).map_err(|why| failed(&why)),
        // Some answer so when a quota is spent.
        429 | 403 if answer.status == 429 || answer.asks_to_wait_ms(now).is_some() => {
            let retry_after_ms = answer.asks_to_wait_ms(now);
            gate.silence(now.plus(retry_after_ms.unwrap_or(SILENCE_MS).min(SILENCE_MS_MAX)));
            Err(NoAnswer::Failed {
                error: said(&format!("asks for fewer calls ({})", answer.status)),
                class: FailureClass::RateLimited,
                retry_after_ms,
            })
        }
        401 | 403 => Err(refused_key(fetch, answer.status, "")),
        status @ (404 | 410) => match fetch.on_404 {
            OnMissing::Tombstone => Ok(Told::nothing(fetch, true)),
            OnMissing::Empty => Ok(Told::nothing(fetch, false)),
            OnMissing::Retry => {
                let error = said(&format!("does not know it yet ({status})"));
                Err(NoAnswer::of(error, FailureClass::Transient))
            }
            OnMissing::Dead => {
                let error = said(&format!("does not know it ({status})"));
                Err(NoAnswer::of(error, FailureClass::Permanent))
            }
        },
        status @ (301 | 308) => {
            let error = format!("has moved it for good ({status}), and the key follows nowhere");
            let error = said(&format!("{error}: correct its address"));
            Err(NoAnswer::of(error, FailureClass::Permanent))
        }
        status => Err(NoAnswer::of(said(&format!("answered {status}")), class_of(status))),
    }
}

/// What a status means that nothing else is known of. These say that the question itself is wrong, and
/// it is the same tomorrow; whatever they do not name, a lock, a conflict, a detour, may pass.
const fn class_of(status: u16) -> FailureClass {
    match status {
        400 | 402 | 405 | 406 | 411 | 413..=417 | 422 | 431 | 451 => FailureClass::Permanent,
        _ => FailureClass::Transient,
    }
}

fn failed(why: &ProjectionError) -> NoAnswer {
    NoAnswer::of(why.to_string(), why.class())
}

fn refused_key(fetch: &Fetch, status: u16, when: &str) -> NoAnswer {
    let said = format!(
        "{}: {when}the key {:?} of the outbound secret was refused ({status}); store a valid one, \
         then redrive",
        fetch.path, fetch.secret
    );
    NoAnswer::of(said, FailureClass::Permanent)
}

fn not_asked(fetch: &Fetch, error: &PortError) -> NoAnswer {
    let class = match error.trouble {
        Trouble::Invalid => FailureClass::Permanent,
        Trouble::Throttled | Trouble::Conflict | Trouble::Unavailable => FailureClass::Transient,
    };
    NoAnswer::of(format!("{}: {error}", fetch.path), class)
}

const fn is_token(auth: &Auth) -> bool {
    match auth {
        Auth::ClientCredentials(_) => true,
        Auth::Bearer | Auth::Basic | Auth::Header(_) => false,
    }
}

fn basic(key: &str) -> String {
    format!("Basic {}", STANDARD.encode(key))
}
