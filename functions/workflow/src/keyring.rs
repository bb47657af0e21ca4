//! The live keys of every source, read from one secret and kept for a while.
//!
//! Read at start, again after five minutes, and at most once a minute after a signature failed,
//! since a rotated key looks like a forged request until it is loaded. When the store does not
//! answer, what was loaded serves for an hour more; then the receiver says it is not ready rather
//! than refusing authentic deliveries.
//!
//! A defective entry is dropped and named, never its value; it weakens no other.

use crate::{
    freshness::Freshness,
    ports::{Clock, Secret, SecretStore},
    telemetry::{Level, Line, Telemetry},
};
use config::{Config, Source};
use futures::lock::Mutex;
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};
use verifier::Key;

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
    freshness: Freshness,
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
        if state.freshness.is_due(ports.now()) {
            self.read(&mut state, ports, config).await;
        }
        if state.freshness.is_usable(ports.now()) { state.of(source) } else { Arc::from([]) }
    }

    /// Reads the secret again after a signature failed, unless that was done less than a minute
    /// ago. Says whether it was read.
    pub async fn refresh(
        &self,
        ports: &(impl SecretStore + Clock + Telemetry),
        config: &Config,
    ) -> bool {
        let mut state = self.state.lock().await;
        if !state.freshness.may_refresh(ports.now()) {
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
        state.freshness.tried(ports.now());
        let document = match ports.fetch(Secret::Signing).await {
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
                state.keys = self.parse(entries, config, ports);
                state.freshness.read(ports.now());
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
        mut entries: BTreeMap<String, serde_json::Value>,
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
            if keys.contains_key(&source.secret) {
                continue;
            }
            let Some(value) = entries.remove(&source.secret) else {
                continue;
            };
            let Ok(list) = serde_json::from_value::<Vec<Entry>>(value) else {
                complain(&source.secret, "*", "expected a list of {\"kid\":...,\"key\":...}");
                continue;
            };
            let mut usable = Vec::new();
            for entry in list {
                if usable.len() == KEYS_MAX {
                    complain(&source.secret, &entry.kid, "at most three keys may be live");
                } else if entry.local && !self.allow_local {
                    complain(
                        &source.secret,
                        &entry.kid,
                        "a local key is refused outside the stage `local`",
                    );
                } else {
                    match source.preset.key(&entry.kid, &entry.key) {
                        Ok(key) => usable.push(key),
                        Err(defect) => complain(&source.secret, &entry.kid, &defect.to_string()),
                    }
                }
            }
            keys.insert(source.secret.clone(), Arc::from(usable));
        }
        keys
    }
}

impl State {
    fn of(&self, source: &Source) -> Arc<[Key]> {
        self.keys.get(&source.secret).cloned().unwrap_or_else(|| Arc::from([]))
    }
}
