//! Signing as the provider does: with the source's own preset and one of its live keys.

use crate::{Call, Sample, now_ms};
use config::Config;
use std::{borrow::Cow, collections::BTreeMap};
use verifier::{Headers, Key, Request};

/// Signs deliveries for the sources of one configuration.
#[derive(Clone)]
pub struct Signer {
    config: Config,
    secrets: BTreeMap<String, Vec<(String, String)>>,
    base: Option<String>,
}

impl Signer {
    /// `document` is the signing secret as stored:
    /// `{"stripe-live": [{"kid": "2026-11", "key": "..."}]}`.
    pub fn new(config: Config, document: &str) -> Result<Self, String> {
        // serde_json's own message may quote the document.
        let bad = || "the signing secret is not {\"name\": [{\"kid\", \"key\"}]}".to_owned();
        let entries: BTreeMap<String, Vec<BTreeMap<String, serde_json::Value>>> =
            serde_json::from_str(document).map_err(|_| bad())?;
        let mut secrets = BTreeMap::new();
        for (name, list) in entries {
            let text = |entry: &BTreeMap<String, serde_json::Value>, field: &str| {
                Some(entry.get(field)?.as_str()?.to_owned())
            };
            let keys = list.iter().map(|entry| text(entry, "kid").zip(text(entry, "key")));
            secrets.insert(name, keys.collect::<Option<Vec<_>>>().ok_or_else(bad)?);
        }
        Ok(Self { config, secrets, base: None })
    }

    /// Signs for an API at this public address, for the providers that sign the URL.
    #[must_use]
    pub fn at(mut self, base: &str) -> Self {
        self.base = Some(base.to_owned());
        self
    }

    /// A source's key of this name.
    #[must_use]
    pub fn key(&self, source: &str, kid: &str) -> Key {
        let known = self.config.source(source).unwrap();
        let mut keys = self.secrets.get(&known.secret).into_iter().flatten();
        let found = keys.find(|(known, _)| known == kid);
        let (kid, text) = found.unwrap_or_else(|| panic!("{source} has no key {kid}"));
        known.preset.key(kid, text).unwrap()
    }

    /// The text of a source's first key, for those who sign by themselves.
    #[must_use]
    pub fn key_text(&self, source: &str) -> &str {
        &self.first_key(source).1
    }

    fn first_key(&self, source: &str) -> &(String, String) {
        let known = self.config.source(source);
        let keys = known.and_then(|known| self.secrets.get(&known.secret));
        keys.and_then(|keys| keys.first())
            .unwrap_or_else(|| panic!("no key is stored for {source}"))
    }

    /// The sample as `source` gets it, signed now.
    #[must_use]
    pub fn call(&self, source: &str, sample: &Sample) -> Call {
        let mut call = self.call_at(source, &sample.headers, sample.bytes(), now_ms());
        call.method.clone_from(&sample.method);
        call
    }

    /// These headers and bytes as `source` gets them, signed at `at_ms`.
    #[must_use]
    pub fn call_at(
        &self,
        source: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
        at_ms: u64,
    ) -> Call {
        let (kid, text) = self.first_key(source);
        let preset = &self.config.source(source).unwrap().preset;
        let key = preset.key(kid, text).unwrap();
        self.call_with(source, &key, headers, body, at_ms)
    }

    /// The same with a key of the caller's choice.
    #[must_use]
    pub fn call_with(
        &self,
        source: &str,
        key: &Key,
        headers: &[(String, String)],
        body: Vec<u8>,
        at_ms: u64,
    ) -> Call {
        let preset = &self.config.source(source).unwrap().preset;
        let path = format!("/webhooks/{source}");
        let url = self.base.as_ref().map(|base| format!("{base}{path}"));
        let signed_inside = match preset.sign_body(&body, key).unwrap() {
            Cow::Owned(signed) => Some(signed),
            Cow::Borrowed(_) => None,
        };
        let body = signed_inside.unwrap_or(body);
        let sign = |headers: &Headers| {
            let request = Request {
                method: "POST",
                path: &path,
                query: "",
                public_url: url.as_deref(),
                headers,
                body: &body,
            };
            preset.sign(&request, key, at_ms).unwrap()
        };
        // What the signature brings replaces what the sample shows of it.
        let brought: Vec<String> =
            sign(&headers.iter().cloned().collect()).into_iter().map(|(name, _)| name).collect();
        let mut headers = headers.to_vec();
        headers.retain(|(name, _)| !brought.iter().any(|other| other.eq_ignore_ascii_case(name)));
        let signed = sign(&headers.iter().cloned().collect());
        headers.extend(signed);
        Call::to_source(source, headers, body)
    }
}
