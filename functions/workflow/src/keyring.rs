//! The live keys of every source, read from one secret and kept for a while.
//!
//! Read at start, again after five minutes, and at most once a minute after a signature failed,
//! since a rotated key looks like a forged request until it is loaded. When the store does not
//! answer, what was loaded serves for an hour more; then the receiver says it is not ready rather
//! than refusing authentic deliveries.
//!
//! A defective entry is dropped and named, never its value; it weakens no other.

use crate::{
    ports::{Clock, SecretStore},
    telemetry::{Level, Line, Telemetry},
};
use config::{Config, Source};
use futures::lock::Mutex;
use ledger::Millis;
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};
use verifier::Key;

const FRESH_MS: u64 = 300_000;
const STALE_MS: u64 = 3_600_000;
const REFRESH_EVERY_MS: u64 = 60_000;
/// After a failed read the stale keys serve this long before the store is asked again.
const RETRY_EVERY_MS: u64 = 10_000;
/// Live keys of one source.
const KEYS_MAX: usize = 3;

/// The live keys.
pub struct Keyring {
    /// Whether keys marked `local` may be used.
    allow_local: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    loaded_at: Option<Millis>,
    tried_at: Option<Millis>,
    /// By the name of the source: two that share a secret may read it in different forms.
    keys: BTreeMap<String, Arc<[Key]>>,
}

/// One entry of the secret: `{"kid":"2026-11","key":"whsec_..."}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kid: String,
    key: String,
    #[serde(default)]
    local: bool,
    /// Whether it is the word a provider repeats in its handshake, and no key.
    #[serde(default)]
    handshake: bool,
}

impl Keyring {
    /// An empty keyring. `allow_local` is true only on a stack whose stage is `local`.
    #[must_use]
    pub fn new(allow_local: bool) -> Self {
        Self { allow_local, state: Mutex::new(State::default()) }
    }

    /// Loads the keys, as a function does at start. A failure is reported and not fatal: the
    /// first delivery tries again.
    pub async fn load(&self, ports: &(impl SecretStore + Clock + Telemetry), config: &Config) {
        self.read(&mut *self.state.lock().await, ports, config).await;
    }

    /// The live keys of `source`; none when nothing usable is loaded.
    pub async fn keys(
        &self,
        ports: &(impl SecretStore + Clock + Telemetry),
        config: &Config,
        source: &Source,
    ) -> Arc<[Key]> {
        let mut state = self.state.lock().await;
        let now = ports.now();
        let age = state.loaded_at.map_or(u64::MAX, |at| now.since(at));
        // With nothing usable in hand there is nothing to serve meanwhile: every request asks.
        let rested =
            age >= STALE_MS || state.tried_at.is_none_or(|at| now.since(at) >= RETRY_EVERY_MS);
        if age >= FRESH_MS && rested {
            self.read(&mut state, ports, config).await;
        }
        let usable = state.loaded_at.is_some_and(|at| ports.now().since(at) < STALE_MS);
        if usable { state.of(source) } else { Arc::from([]) }
    }

    /// Reads the secret again after a signature failed, unless that was done less than a minute
    /// ago. Says whether it was read.
    pub async fn refresh(
        &self,
        ports: &(impl SecretStore + Clock + Telemetry),
        config: &Config,
    ) -> bool {
        let mut state = self.state.lock().await;
        let now = ports.now();
        if state.tried_at.is_some_and(|at| now.since(at) < REFRESH_EVERY_MS) {
            return false;
        }
        self.read(&mut state, ports, config).await
    }

    async fn read(
        &self,
        state: &mut State,
        ports: &(impl SecretStore + Clock + Telemetry),
        config: &Config,
    ) -> bool {
        state.tried_at = Some(ports.now());
        let document = match ports.fetch().await {
            Ok(document) => document,
            Err(error) => {
                let line =
                    Line::new(Level::Error, format!("signing keys could not be read: {error}"));
                ports.emit(&line.count("SecretUnavailable"));
                return false;
            }
        };
        match serde_json::from_str::<BTreeMap<String, serde_json::Value>>(&document) {
            Ok(entries) => {
                state.keys = self.parse(&entries, config, ports);
                state.loaded_at = Some(ports.now());
                true
            }
            Err(error) => {
                // serde_json's message may quote the text: say where, not what.
                let line = Line::new(
                    Level::Error,
                    format!(
                        "the signing secret is no JSON object of sources (line {}, column {})",
                        error.line(),
                        error.column()
                    ),
                );
                ports.emit(&line.count("SecretUnreadable"));
                false
            }
        }
    }

    fn parse(
        &self,
        entries: &BTreeMap<String, serde_json::Value>,
        config: &Config,
        telemetry: &impl Telemetry,
    ) -> BTreeMap<String, Arc<[Key]>> {
        let complain = |secret: &str, kid: &str, what: &str| {
            let line = Line::new(
                Level::Error,
                format!("signing key {kid:?} of secret {secret:?} is not used: {what}"),
            );
            telemetry.emit(&line.count("KeyRefused"));
        };
        let mut keys = BTreeMap::new();
        for source in config.sources() {
            let Some(value) = entries.get(&source.secret) else {
                continue;
            };
            let Ok(list) = Vec::<Entry>::deserialize(value) else {
                complain(&source.secret, "*", "expected a list of {\"kid\":...,\"key\":...}");
                continue;
            };
            let usable =
                self.usable(list, source, &|kid, what| complain(&source.secret, kid, what));
            keys.insert(source.name.as_str().to_owned(), Arc::from(usable));
        }
        keys
    }

    /// The keys of a list that may be used, and a complaint about each that may not.
    fn usable(&self, list: Vec<Entry>, source: &Source, complain: &dyn Fn(&str, &str)) -> Vec<Key> {
        let mut usable = Vec::new();
        let (mut keys, mut tokens) = (0, 0);
        for Entry { kid, key, local, handshake } in list {
            let taken = if handshake { &mut tokens } else { &mut keys };
            if *taken == KEYS_MAX {
                complain(&kid, "at most three keys may be live");
                continue;
            }
            if local && !self.allow_local {
                complain(&kid, "a local key is refused outside the stage `local`");
                continue;
            }
            let made = if handshake {
                source.preset.handshake_token(&kid, &key)
            } else {
                source.preset.key(&kid, &key)
            };
            match made {
                Ok(made) => {
                    *taken += 1;
                    usable.push(made);
                }
                Err(defect) => complain(&kid, &defect.to_string()),
            }
        }
        usable
    }
}

impl State {
    fn of(&self, source: &Source) -> Arc<[Key]> {
        self.keys.get(source.name.as_str()).cloned().unwrap_or_else(|| Arc::from([]))
    }
}
