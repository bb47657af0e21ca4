//! Names and keys: what identifies a source, an event and an entity.
//!
//! A ledger key is `<source>#<event id>`. Source names cannot contain `#`, so the first `#`
//! splits whatever the provider puts into its ids, and cannot begin with `_`, so internal rows
//! (`_b#...`, `_c#...`, `_t#...`) never meet a provider's.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use thiserror::Error;

/// How many partitions each bucket of the `open` index has: a constant of row format 1.
pub const SHARDS: u8 = 10;

/// Ids longer than this many bytes are replaced by their hash.
const ID_BYTES_MAX: usize = 1_024;

/// The partition of `pk` in a bucket: the first eight bytes of its SHA-256, modulo [`SHARDS`].
#[must_use]
pub fn shard_of(pk: &str) -> u8 {
    let digest = Sha256::digest(pk.as_bytes());
    let first = digest.iter().take(8).fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
    u8::try_from(first.checked_rem(u64::from(SHARDS)).unwrap_or(0)).unwrap_or(0)
}

/// Why a name or key was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// A source name outside `[a-z0-9][a-z0-9-]{0,63}`.
    #[error(
        "source name {found:?} must be 1 to 64 of a-z, 0-9 and '-', beginning with a letter or digit"
    )]
    SourceName {
        /// The text that was offered.
        found: String,
    },
    /// A ledger key without `#`, or with nothing behind it.
    #[error("ledger key {found:?} must read <source>#<event id>")]
    EventKey {
        /// The text that was offered.
        found: String,
    },
    /// The name of a run outside `[A-Za-z0-9._-]{1,64}`.
    #[error("run {found:?} must be 1 to 64 of a-z, A-Z, 0-9, '.', '_' and '-'")]
    Run {
        /// The text that was offered.
        found: String,
    },
    /// An id of no bytes.
    #[error("an id cannot be empty")]
    EmptyId,
}

/// The name of a configured endpoint, such as `stripe-live`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceName(String);

impl SourceName {
    /// Checks `name` against `[a-z0-9][a-z0-9-]{0,63}`.
    pub fn new(name: &str) -> Result<Self, KeyError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let good = !name.is_empty()
            && name.len() <= 64
            && !name.starts_with('-')
            && name.bytes().all(allowed);
        if good {
            Ok(Self(name.to_owned()))
        } else {
            Err(KeyError::SourceName { found: name.to_owned() })
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SourceName {
    type Error = KeyError;
    fn try_from(name: String) -> Result<Self, KeyError> {
        Self::new(&name)
    }
}

impl From<SourceName> for String {
    fn from(name: SourceName) -> Self {
        name.0
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of a ledger row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventKey(String);

impl EventKey {
    /// The key of the event that `source` calls `event_id`.
    pub fn new(source: &SourceName, event_id: &str) -> Result<Self, KeyError> {
        Ok(Self(format!("{source}#{}", bounded(event_id)?)))
    }

    /// The key under which a second body of the same id is kept: `_c#<identity hash>#<pk>`.
    #[must_use]
    pub fn conflict(&self, identity_hash: &[u8; 32]) -> Self {
        Self(format!("_c#{}#{}", hex::encode(identity_hash), self.0))
    }

    /// The key under which `run` feeds this event in again: `_r#<run>#<pk>`.
    #[must_use]
    pub fn replay(&self, run: &RunName) -> Self {
        Self(format!("_r#{run}#{}", self.0))
    }

    /// The run that fed this row in from the ledger, and the key it was fed from.
    #[must_use]
    pub fn replay_of(&self) -> Option<(&str, &str)> {
        self.0.strip_prefix("_r#")?.split_once('#')
    }

    /// The key of the body chunk number `n`: `_b#<sha256 of the body>#<n>#<pk>`.
    #[must_use]
    pub fn chunk(&self, body_sha256: &[u8; 32], n: u32) -> String {
        format!("_b#{}#{n}#{}", hex::encode(body_sha256), self.0)
    }

    /// The key of the mark that binds a proof of `source` to its one event: `_t#<source>#<proof>`.
    pub fn proof(source: &SourceName, proof: &str) -> Result<String, KeyError> {
        Ok(format!("_t#{source}#{}", bounded(proof)?))
    }

    /// Reads a key as stored, in a message or on a command line.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        match text.split_once('#') {
            Some((head, rest)) if !head.is_empty() && !rest.is_empty() => Ok(Self(text.to_owned())),
            Some(_) | None => Err(KeyError::EventKey { found: text.chars().take(80).collect() }),
        }
    }

    /// The partition key as stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This key's partition in a bucket of the `open` index.
    #[must_use]
    pub fn shard(&self) -> u8 {
        shard_of(&self.0)
    }

    /// The event id: what stands behind the source's `#`, also in the key of a conflict or of a
    /// replay, which hold the first row's key whole.
    #[must_use]
    pub fn event_id(&self) -> &str {
        let original = self.original();
        original.split_once('#').map_or(original, |(_, id)| id)
    }

    /// The source's name: what stands before the `#`, also in the key of a conflict or of a replay.
    #[must_use]
    pub fn source(&self) -> &str {
        let original = self.original();
        original.split_once('#').map_or(original, |(source, _)| source)
    }

    fn original(&self) -> &str {
        // A second body may be replayed too, so one prefix may stand behind another.
        let mut original = self.0.as_str();
        while let Some((_, inner)) = ["_c#", "_r#"]
            .iter()
            .find_map(|prefix| original.strip_prefix(prefix))
            .and_then(|rest| rest.split_once('#'))
        {
            original = inner;
        }
        original
    }
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of one replay from the ledger. The same name goes on where it was interrupted: its rows
/// have the same keys, so none is made twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName(String);

impl RunName {
    /// Checks `name` against `[A-Za-z0-9._-]{1,64}`.
    pub fn new(name: &str) -> Result<Self, KeyError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
            Ok(Self(name.to_owned()))
        } else {
            Err(KeyError::Run { found: name.chars().take(80).collect() })
        }
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of a state row: `<namespace>#<entity type>#<entity id>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntityKey(String);

impl EntityKey {
    /// Joins the parts. `namespace` and `entity_type` come from configuration, where `#` is
    /// refused, so the first two `#` split; `id` comes from the provider and may hold anything.
    pub fn new(namespace: &str, entity_type: &str, id: &str) -> Result<Self, KeyError> {
        Ok(Self(format!("{namespace}#{entity_type}#{}", bounded(id)?)))
    }

    /// Reads a key as stored or as typed on a command line.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut parts = text.splitn(3, '#');
        let whole = parts.by_ref().take(3).filter(|part| !part.is_empty()).count() == 3;
        if whole {
            Ok(Self(text.to_owned()))
        } else {
            Err(KeyError::EventKey { found: text.chars().take(80).collect() })
        }
    }

    /// The entity type: what stands between the first two `#`.
    #[must_use]
    pub fn entity_type(&self) -> &str {
        self.0.split('#').nth(1).unwrap_or_default()
    }

    /// The partition key as stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id itself, or `sha256:<hex>` of it where it is too long or would garble a terminal.
fn bounded(id: &str) -> Result<String, KeyError> {
    if id.is_empty() {
        return Err(KeyError::EmptyId);
    }
    if id.len() > ID_BYTES_MAX || id.chars().any(char::is_control) {
        return Ok(format!("sha256:{}", hex::encode(Sha256::digest(id.as_bytes()))));
    }
    Ok(id.to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn hash_signs_inside_ids_never_make_two_keys_equal() {
        let a = SourceName::new("a").unwrap();
        let keys: Vec<_> = ["#b", "b", "b#", "##b", "b#c"]
            .iter()
            .map(|id| EventKey::new(&a, id).unwrap())
            .collect();
        for (i, left) in keys.iter().enumerate() {
            for right in keys.iter().skip(i.saturating_add(1)) {
                assert_ne!(left, right);
            }
            assert_eq!(EventKey::parse(left.as_str()).unwrap(), *left);
        }
        let key = EventKey::new(&a, "b#c").unwrap();
        assert_eq!(key.event_id(), "b#c");
        assert_eq!(key.conflict(&[7; 32]).event_id(), "b#c", "a conflict is the same event");
    }

    #[test]
    fn source_names_cannot_reach_internal_rows_or_hold_separators() {
        for bad in ["", "_b", "-a", "A", "a#b", "a/b", "ä", "a b", &"a".repeat(65)] {
            assert!(SourceName::new(bad).is_err(), "{bad:?} was taken");
        }
        assert!(SourceName::new(&"a".repeat(64)).is_ok());
    }

    #[test]
    fn ids_that_are_long_or_hold_control_characters_are_hashed_and_stay_distinct() {
        let source = SourceName::new("s").unwrap();
        let long = "x".repeat(1_025);
        let key = EventKey::new(&source, &long).unwrap();
        assert!(key.event_id().starts_with("sha256:"));
        assert_ne!(key, EventKey::new(&source, &"y".repeat(1_025)).unwrap());
        assert_eq!(EventKey::new(&source, &"x".repeat(1_024)).unwrap().event_id().len(), 1_024);
        assert!(EventKey::new(&source, "a\u{0}b").unwrap().event_id().starts_with("sha256:"));
        assert_eq!(EventKey::new(&source, ""), Err(KeyError::EmptyId));
    }

    #[test]
    fn keys_read_back_as_they_are_written_and_nothing_else_reads_as_a_key() {
        let source = SourceName::new("stripe-live").unwrap();
        assert_eq!(
            (source.as_str(), String::from(source.clone())),
            ("stripe-live", source.to_string())
        );
        let key = EventKey::new(&source, "evt_1").unwrap();
        assert_eq!(key.to_string(), "stripe-live#evt_1");
        for bad in ["", "#", "s", "s#", "#e", "stripe-live"] {
            assert!(EventKey::parse(bad).is_err(), "{bad:?} was read as an event's key");
        }
        let entity = EntityKey::new("stripe-live", "invoice", "in#1").unwrap();
        assert_eq!(entity.to_string(), "stripe-live#invoice#in#1");
        assert_eq!(EntityKey::parse(entity.as_str()).unwrap(), entity);
        for bad in ["", "a", "a#b", "a#b#", "#b#c", "a##c"] {
            assert!(EntityKey::parse(bad).is_err(), "{bad:?} was read as an entity's key");
        }
    }

    #[test]
    fn internal_rows_carry_the_key_they_belong_to_behind_an_underscore() {
        let key = EventKey::parse("s#e").unwrap();
        let hash = [0xAB; 32];
        let hex = "ab".repeat(32);
        assert_eq!(key.chunk(&hash, 3), format!("_b#{hex}#3#s#e"));
        assert_eq!(key.conflict(&hash).as_str(), format!("_c#{hex}#s#e"));
        let run = RunName::new("2026-11-30.a").unwrap();
        let replay = key.replay(&run);
        assert_eq!(replay.as_str(), "_r#2026-11-30.a#s#e");
        assert_eq!(replay.replay_of(), Some(("2026-11-30.a", "s#e")));
        assert_eq!((replay.event_id(), key.replay_of()), ("e", None), "a replay is the same event");
        assert_eq!(key.conflict(&hash).replay(&run).event_id(), "e", "so is that of a second body");
        for of_s in [&key, &replay, &key.conflict(&hash), &key.conflict(&hash).replay(&run)] {
            assert_eq!(of_s.source(), "s", "{of_s}");
        }
        for bad in ["", "a#b", "a b", "ä", &"r".repeat(65)] {
            assert!(RunName::new(bad).is_err(), "{bad:?} was taken");
        }
        let source = SourceName::new("s").unwrap();
        assert_eq!(EventKey::proof(&source, "p#1").unwrap(), "_t#s#p#1");
        assert_eq!(EventKey::proof(&source, ""), Err(KeyError::EmptyId));
    }

    #[test]
    fn shards_are_a_constant_of_the_row_format() {
        // Recomputed with `printf %s KEY | sha256sum`: the first 16 hex digits modulo 10.
        assert_eq!(shard_of("stripe-live#evt_1"), 5);
        assert_eq!(shard_of("github#72d3162e"), 2);
        let used: std::collections::BTreeSet<u8> =
            (0..1_000).map(|n| shard_of(&format!("s#evt_{n}"))).collect();
        assert_eq!(used.len(), usize::from(SHARDS));
    }
}
