//! The live keys of every source, read from one secret and kept for a while: the keys that providers
//! sign with, or the tokens that open the replay route.
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
use verifier::{Key, KeyDefect, SharedToken};

/// Live keys of one source.
const KEYS_MAX: usize = 3;

/// What the entries of the secret are.
enum Kind {
    /// Keys that providers sign with, under the names that sources give them.
    Signing,
    /// Tokens, under the sources' own names.
    Tokens(SharedToken),
}

/// The live keys.
pub struct Keyring {
    kind: Kind,
    /// Whether keys marked `local` may be used.
    allow_local: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    freshness: Freshness,
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
        Self { kind: Kind::Signing, allow_local, state: Mutex::new(State::default()) }
    }

    /// An empty ring of the tokens that `token` reads.
    #[must_use]
    pub fn of_tokens(token: SharedToken, allow_local: bool) -> Self {
        Self { kind: Kind::Tokens(token), allow_local, state: Mutex::new(State::default()) }
    }

    /// Whether the secret was read at all, of late enough to say who is not in it.
    pub async fn is_loaded(&self, ports: &impl Clock) -> bool {
        let state = self.state.lock().await;
        state.freshness.is_usable(ports.now())
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
        let usable = state.freshness.is_usable(ports.now());
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
        let document = match ports.fetch(self.kind.secret()).await {
            Ok(document) => document,
            Err(error) => {
                let line = Line::new(
                    Level::Error,
                    format!("{} could not be read: {error}", self.kind.title()),
                );
                ports.emit(&line.count("SecretUnavailable"));
                return false;
            }
        };
        match serde_json::from_str::<BTreeMap<String, serde_json::Value>>(&document) {
            Ok(entries) => {
                state.keys = self.parse(&entries, config, ports);
                state.freshness.read(ports.now());
                true
            }
            Err(error) => {
                // serde_json's message may quote the text: say where, not what.
                let line = Line::new(
                    Level::Error,
                    format!(
                        "the secret with the {} is no JSON object of sources (line {}, column {})",
                        self.kind.title(),
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
                format!("{} {kid:?} of secret {secret:?} is not used: {what}", self.kind.one()),
            );
            telemetry.emit(&line.count("KeyRefused"));
        };
        let mut keys = BTreeMap::new();
        for source in config.sources() {
            let secret = self.kind.name(source);
            let Some(value) = entries.get(secret) else {
                continue;
            };
            let Ok(list) = Vec::<Entry>::deserialize(value) else {
                complain(secret, "*", "expected a list of {\"kid\":...,\"key\":...}");
                continue;
            };
            let usable = self.usable(list, source, &|kid, what| complain(secret, kid, what));
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
                self.kind.key(source, &kid, &key)
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

impl Kind {
    const fn secret(&self) -> Secret {
        match self {
            Self::Signing => Secret::Signing,
            Self::Tokens(_) => Secret::Replay,
        }
    }

    const fn title(&self) -> &'static str {
        match self {
            Self::Signing => "signing keys",
            Self::Tokens(_) => "replay tokens",
        }
    }

    const fn one(&self) -> &'static str {
        match self {
            Self::Signing => "signing key",
            Self::Tokens(_) => "replay token",
        }
    }

    /// The entry of the secret that is this source's.
    fn name<'s>(&self, source: &'s Source) -> &'s str {
        match self {
            Self::Signing => &source.secret,
            Self::Tokens(_) => source.name.as_str(),
        }
    }

    fn key(&self, source: &Source, kid: &str, text: &str) -> Result<Key, KeyDefect> {
        match self {
            Self::Signing => source.preset.key(kid, text),
            Self::Tokens(token) => token.key(kid, text),
        }
    }
}

impl State {
    fn of(&self, source: &Source) -> Arc<[Key]> {
        self.keys.get(source.name.as_str()).cloned().unwrap_or_else(|| Arc::from([]))
    }
}
