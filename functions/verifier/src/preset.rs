//! A provider, described.

use crate::{
    Answer, CannotSign, Event, Key, KeyDefect, Rejection, Request, Unusable, UnusableReason,
    Verified,
};

/// A validated description of a provider: how it signs, names and batches its events, and what it
/// wants to hear.
#[derive(Clone, Debug)]
pub struct Preset {
    name: String,
    methods: Vec<String>,
    kept_headers: Vec<String>,
    signature_headers: Vec<String>,
    retries: bool,
    answer: Answer,
}

/// What is wrong in a preset's table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: found {found}; allowed: {allowed}{}", .nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
#[must_use]
pub struct PresetDefect {
    /// Dotted path of the key.
    pub at: String,
    /// What stands there.
    pub found: String,
    /// What may stand there.
    pub allowed: String,
    /// The nearest name that is known.
    pub nearest: Option<String>,
}

impl Preset {
    /// Reads and validates a preset's table.
    pub fn from_table(_table: &toml::Table) -> Result<Self, PresetDefect> {
        Err(PresetDefect {
            at: String::new(),
            found: String::new(),
            allowed: String::new(),
            nearest: None,
        })
    }
    /// Makes a key of the form this provider hands out.
    pub fn key(&self, _kid: &str, _text: &str) -> Result<Key, KeyDefect> {
        Err(KeyDefect::Empty)
    }
    /// Decides whether the request is authentic at `now_ms`.
    pub fn verify(
        &self,
        _request: &Request<'_>,
        _keys: &[Key],
        _now_ms: u64,
    ) -> Result<Verified, Rejection> {
        Err(Rejection::NoUsableKey)
    }
    /// The events of a verified request.
    pub fn events<'b>(&self, _request: &Request<'b>) -> Result<Vec<Event<'b>>, Unusable> {
        Err(UnusableReason::NotUtf8.untyped())
    }
    /// The headers that make `unsigned` authentic.
    pub fn sign(
        &self,
        _unsigned: &Request<'_>,
        _key: &Key,
        _now_ms: u64,
    ) -> Result<Vec<(String, String)>, CannotSign> {
        Err(CannotSign::TimeOutOfRange)
    }
    /// The answer to a setup handshake, if this is one.
    #[must_use]
    pub fn handshake(
        &self,
        _request: &Request<'_>,
        _keys: &[Key],
        _now_ms: u64,
    ) -> Option<Answer> {
        None
    }
    /// What an accepted delivery is answered.
    #[must_use]
    pub fn answer(&self) -> &Answer {
        &self.answer
    }
    /// The methods deliveries arrive with.
    #[must_use]
    pub fn methods(&self) -> &[String] {
        &self.methods
    }
    /// Headers worth keeping with a row.
    #[must_use]
    pub fn kept_headers(&self) -> &[String] {
        &self.kept_headers
    }
    /// The preset's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Whether the provider retries failed deliveries by itself.
    #[must_use]
    pub const fn retries(&self) -> bool {
        self.retries
    }
    /// Headers that carry signatures or credentials.
    #[must_use]
    pub fn signature_headers(&self) -> &[String] {
        &self.signature_headers
    }
}

/// Names of the presets that are compiled in.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}

/// The table of a compiled-in preset.
#[must_use]
pub fn preset_table(_name: &str) -> Option<toml::Table> {
    None
}
