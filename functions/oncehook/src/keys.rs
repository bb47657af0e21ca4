//! The signing keys of a source, read as the receiver reads them.
//!
//! The receiver's own keyring does the reading, so that a key which is refused there is refused
//! here, with the same words. A key marked `local` is taken: what may be signed or judged at a
//! person's terminal is that person's choice.

use crate::failure::Failure;
use config::{Config, Source};
use ledger::Millis;
use std::sync::{Mutex, PoisonError};
use verifier::Key;
use workflow::{
    Keyring,
    ports::{Clock, PortError, Secret, SecretStore},
    telemetry::{Line, Telemetry},
};

/// The live keys of `source` in `document`, the signing secret's text. Never none.
pub(crate) async fn of(
    source: &Source,
    config: &Config,
    document: &str,
) -> Result<Vec<Key>, Failure> {
    on(source, config, document, true).await.map(|read| read.keys)
}

/// What an entry of the secret holds.
#[derive(Debug)]
pub(crate) struct Read {
    /// The usable keys. Never none where the source needs one.
    pub(crate) keys: Vec<Key>,
    /// What is said of those that are refused.
    pub(crate) refused: Vec<String>,
}

/// The same as a stack would read them: keys marked `local` only where its stage is.
pub(crate) async fn on(
    source: &Source,
    config: &Config,
    document: &str,
    allow_local: bool,
) -> Result<Read, Failure> {
    let held = Held { document, complaints: Mutex::default() };
    let keyring = Keyring::new(allow_local);
    keyring.load(&held, config).await;
    let keys = keyring.keys(&held, config, source).await.to_vec();
    let complaints = held.complaints.into_inner().unwrap_or_else(PoisonError::into_inner);
    let secret = format!("{:?}", source.secret);
    let refused: Vec<String> = complaints
        .into_iter()
        .filter(|line| line.contains(&secret) || line.contains("no JSON"))
        .collect();
    if !keys.is_empty() || !source.preset.needs_key() {
        return Ok(Read { keys, refused });
    }
    let found = if refused.is_empty() {
        format!("the signing secret has no entry {secret}")
    } else {
        refused.join("\n")
    };
    let shape = format!("{{{secret}: [{{\"kid\": \"2026-11\", \"key\": \"...\"}}]}}");
    Err(Failure::usage(format!("no usable key for source `{}`: {found}", source.name))
        .with_next(format!("store the key that {} shows as {shape}", source.preset.title())))
}

/// A secret that was read before, and what the keyring says of it.
struct Held<'d> {
    document: &'d str,
    complaints: Mutex<Vec<String>>,
}

impl SecretStore for Held<'_> {
    async fn fetch(&self, _secret: Secret) -> Result<String, PortError> {
        Ok(self.document.to_owned())
    }
}

impl Clock for Held<'_> {
    /// The keyring asks for the age of what it read a moment ago.
    fn now(&self) -> Millis {
        Millis(0)
    }

    async fn sleep(&self, _ms: u64) {}
}

impl Telemetry for Held<'_> {
    fn emit(&self, line: &Line) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        complaints.push(line.message.clone());
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::testing;

    async fn read(document: &str) -> Result<Vec<Key>, Failure> {
        let config = testing::config();
        of(config.source("stripe-live").unwrap(), &config, document).await
    }

    #[tokio::test]
    async fn the_published_secrets_have_a_key_for_every_shipped_source() {
        let config = testing::config();
        for source in config.sources() {
            let keys = of(source, &config, testing::SECRETS).await.unwrap();
            assert!(!keys.is_empty(), "{}", source.name);
        }
    }

    #[tokio::test]
    async fn a_refused_key_is_named_and_never_shown() {
        let failure =
            read(r#"{"stripe-live":[{"kid":"old","key":" whsec_canary "}]}"#).await.unwrap_err();
        let said = format!("{failure}{:?}", failure.next());
        assert!(said.contains("old") && said.contains("white space"), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }

    #[tokio::test]
    async fn a_missing_entry_is_answered_with_its_shape() {
        let failure = read("{}").await.unwrap_err();
        assert!(failure.to_string().contains("no entry \"stripe-live\""));
        assert!(failure.next().unwrap().contains("\"kid\""));
        let failure = read("{whsec_canary").await.unwrap_err();
        assert!(failure.to_string().contains("no JSON"), "{failure}");
        assert!(!failure.to_string().contains("canary"));
    }
}
