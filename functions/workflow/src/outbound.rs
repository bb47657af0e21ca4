//! Keys for calls to the outside, providers' APIs and the replay route: a secret, an entry a name, read
//! when a run begins.
//!
//! `{"stripe-live": [{"kid": "2026-11", "key": "rk_live_..."}]}`: the form of the signing secret, so
//! that a key is rotated alike. A caller can show one key only: the first usable one of its entry.

use crate::ports::{PortError, Secret, SecretStore};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};
use thiserror::Error;

/// A key for calls to the outside. Its text is in no `Debug` form and no error.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Why there is no key.
#[derive(Debug, Error)]
pub enum NoKey {
    /// The secret could not be read.
    #[error("the secret cannot be read: {0}")]
    Unreadable(#[from] PortError),
    /// It is no JSON object of entries.
    #[error("the secret is no JSON object of entries")]
    NotAnObject,
    /// It has no such entry.
    #[error("the secret has no entry {0:?}")]
    NoEntry(String),
    /// The entry has no usable key.
    #[error("the entry {name:?} of the secret has no usable key: {why}")]
    Unusable {
        /// The entry.
        name: String,
        /// What is wrong with its last key.
        why: String,
    },
}

#[derive(Deserialize)]
struct Entry {
    key: String,
    #[serde(default)]
    local: bool,
}

/// The key under `name` in `secret`. Keys marked `local` are used only where `allow_local` is true.
pub async fn api_key(
    store: &impl SecretStore,
    secret: Secret,
    name: &str,
    allow_local: bool,
) -> Result<ApiKey, NoKey> {
    let document = store.fetch(secret).await?;
    let mut entries: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&document).map_err(|_| NoKey::NotAnObject)?;
    let entry = entries.remove(name).ok_or_else(|| NoKey::NoEntry(name.to_owned()))?;
    first_usable(name, entry, allow_local)
}

/// The first usable key of the entry `name`.
pub(crate) fn first_usable(
    name: &str,
    entry: serde_json::Value,
    allow_local: bool,
) -> Result<ApiKey, NoKey> {
    let unusable = |why: String| NoKey::Unusable { name: name.to_owned(), why };
    let list: Vec<Entry> = serde_json::from_value(entry)
        .map_err(|_| unusable("expected a list of {\"kid\":...,\"key\":...}".to_owned()))?;
    let mut why = "it is empty".to_owned();
    for entry in list {
        if entry.local && !allow_local {
            "a local key is refused outside the stage `local`".clone_into(&mut why);
            continue;
        }
        match verifier::check_secret(&entry.key) {
            Ok(()) => return Ok(ApiKey(entry.key)),
            Err(defect) => why = defect.to_string(),
        }
    }
    Err(unusable(why))
}
