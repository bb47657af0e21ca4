//! The keys that providers are asked with: the outbound secret, kept like the signing keys
//! ([`crate::freshness`]). Its form is that of [`crate::outbound`]; an entry without a usable key is
//! named, never shown.

use crate::{
    freshness::Freshness,
    outbound::{self, ApiKey},
    ports::{Clock, Secret, SecretStore},
};
use futures::lock::Mutex;
use serde_json::{Map, Value};
use thiserror::Error;

/// Why there is no key.
#[derive(Debug, Error)]
pub(super) enum NoKey {
    #[error("the outbound secret could not be read: {0}")]
    Unread(String),
    #[error("the outbound secret is no JSON object (line {line}, column {column})")]
    NoObject { line: usize, column: usize },
    #[error("the outbound secret has no entry {name:?}: store its key there")]
    Missing { name: String },
    #[error("the outbound secret: {0}")]
    Unusable(outbound::NoKey),
}

/// The keys as last read.
#[derive(Default)]
pub(super) struct OutboundKeys {
    /// Whether keys marked `local` may be used.
    pub(super) allow_local: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    freshness: Freshness,
    entries: Map<String, Value>,
}

impl OutboundKeys {
    /// The key under `name`.
    pub(super) async fn key(
        &self,
        ports: &(impl SecretStore + Clock),
        name: &str,
    ) -> Result<ApiKey, NoKey> {
        let mut state = self.state.lock().await;
        let read =
            if state.freshness.is_due(ports.now()) { state.read(ports).await } else { Ok(()) };
        if !state.freshness.is_usable(ports.now()) {
            return read.and(Err(NoKey::Unread("it was last read too long ago".to_owned())));
        }
        let entry = state.entries.get(name).cloned();
        let entry = entry.ok_or_else(|| NoKey::Missing { name: name.to_owned() })?;
        let key = outbound::first_usable(name, entry, self.allow_local);
        key.map_err(NoKey::Unusable)
    }

    /// Reads the secret again after the provider refused a key, unless that was done less than a
    /// minute ago. Whether it was read.
    pub(super) async fn refresh(&self, ports: &(impl SecretStore + Clock)) -> bool {
        let mut state = self.state.lock().await;
        state.freshness.may_refresh(ports.now()) && state.read(ports).await.is_ok()
    }
}

impl State {
    async fn read(&mut self, ports: &(impl SecretStore + Clock)) -> Result<(), NoKey> {
        self.freshness.tried(ports.now());
        let document = ports.fetch(Secret::Outbound).await;
        let document = document.map_err(|error| NoKey::Unread(error.to_string()))?;
        // serde_json's message may quote the text: say where, not what.
        self.entries = serde_json::from_str(&document)
            .map_err(|error| NoKey::NoObject { line: error.line(), column: error.column() })?;
        self.freshness.read(ports.now());
        Ok(())
    }
}
