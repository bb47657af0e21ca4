//! The keys for calls to the outside: one secret, kept like the signing keys
//! ([`crate::freshness`]). An entry is a text, `{"stripe-api": "sk_live_..."}`; one that is no
//! usable key is named, never shown.

use crate::{
    freshness::Freshness,
    ports::{Clock, Secret, SecretStore},
};
use futures::lock::Mutex;
use serde_json::{Map, Value};
use thiserror::Error;
use verifier::KeyDefect;

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum NoKey {
    #[error("the outbound secret could not be read: {0}")]
    Unread(String),
    #[error("the outbound secret is no JSON object (line {line}, column {column})")]
    NoObject { line: usize, column: usize },
    #[error("the outbound secret has no entry {name:?}: store its key there")]
    Missing { name: String },
    #[error("the entry {name:?} of the outbound secret is not used: {why}")]
    Unusable { name: String, why: String },
}

/// The keys as last read.
#[derive(Default)]
pub(super) struct OutboundKeys(Mutex<State>);

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
    ) -> Result<String, NoKey> {
        let mut state = self.0.lock().await;
        let read =
            if state.freshness.is_due(ports.now()) { state.read(ports).await } else { Ok(()) };
        if !state.freshness.is_usable(ports.now()) {
            return read.and(Err(NoKey::Unread("it was last read too long ago".to_owned())));
        }
        let unusable = |why: String| NoKey::Unusable { name: name.to_owned(), why };
        match state.entries.get(name) {
            None => Err(NoKey::Missing { name: name.to_owned() }),
            Some(Value::String(key)) => match KeyDefect::of(key) {
                None => Ok(key.clone()),
                Some(defect) => Err(unusable(defect.to_string())),
            },
            Some(_) => Err(unusable("expected a text".to_owned())),
        }
    }

    /// Reads the secret again after the provider refused a key, unless that was done less than a
    /// minute ago. Whether it was read.
    pub(super) async fn refresh(&self, ports: &(impl SecretStore + Clock)) -> bool {
        let mut state = self.0.lock().await;
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
