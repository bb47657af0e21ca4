//! A provider, described: a validated table of facts that verifies, names and answers deliveries.
//!
//! The table is the whole truth about a provider. A source may override any key of it, so the same
//! checks run for a preset that is compiled in and for one that a team writes for itself.

pub(crate) mod builtin;
pub(crate) mod section;

use std::borrow::Cow;

use crate::extract::spec::EventSpec;
use crate::handshake::Handshake;
use crate::history::History;
use crate::key::KeyForm;
use crate::scheme::{Scheme, paypal};
use crate::time::TimeUnit;
use crate::{
    Answer, CannotSign, Event, Key, KeyDefect, Rejection, Request, Unusable, UnusableReason,
    Verified,
};
use section::{PresetDefect, Section, describe};

/// A validated description of a provider: how it signs, names and batches its events, and what it
/// wants to hear.
#[derive(Clone, Debug)]
pub struct Preset {
    name: String,
    title: String,
    methods: Vec<String>,
    retries: bool,
    kept_headers: Vec<String>,
    unsigned: Vec<String>,
    scheme: Scheme,
    events: EventSpec,
    handshake: Handshake,
    entity: Option<EntityFacts>,
    answer: Answer,
    history: History,
}

/// Where this provider's events usually keep the object they speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityFacts {
    /// JSON Pointer to the entity's id.
    pub id: String,
    /// JSON Pointer to what orders the events of one entity, and its unit (`s`, `ms`, `iso` or
    /// `integer`), where the provider has such a value.
    pub version: Option<(String, String)>,
}

impl Preset {
    /// Reads and validates a preset's table: a compiled-in one with a source's overrides merged
    /// over it, or a whole one of a team's own.
    pub fn from_table(table: &toml::Table) -> Result<Self, PresetDefect> {
        let root = Section::root(table);
        let name = root.required_string("name")?.to_owned();
        let scheme = Scheme::read(root.required_section("verify")?)?;
        let kept_headers = root.headers("kept_headers")?;
        let secret_headers = scheme.secret_headers();
        if let Some(secret) = kept_headers.iter().find(|kept| {
            secret_headers.contains(kept) || kept.as_str() == "authorization" || *kept == "cookie"
        }) {
            return Err(root.defect(
                "kept_headers",
                format!("`{secret}`"),
                "headers that carry no signature and no credential",
            ));
        }
        let handshake = match root.section("handshake")? {
            None => Handshake::default(),
            Some(section) => Handshake::read(section)?,
        };
        let mut methods = read_methods(&root)?;
        for method in handshake.methods() {
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        let preset = Self {
            title: root.string("title")?.unwrap_or(&name).to_owned(),
            methods,
            handshake,
            retries: root.boolean("retries")?.unwrap_or(true),
            unsigned: root.strings("unsigned")?.into_iter().map(str::to_owned).collect(),
            kept_headers,
            scheme,
            events: EventSpec::read(root.required_section("event")?)?,
            entity: root.section("entity")?.map(read_entity).transpose()?,
            answer: match root.section("answer")? {
                None => Answer::empty(200),
                Some(section) => read_answer(section)?,
            },
            history: match root.section("replay")? {
                None => History::unknown(),
                Some(section) => History::read(section)?,
            },
            name,
        };
        root.finish()?;
        Ok(preset)
    }

    /// Makes a key of the form this provider hands out.
    pub fn key(&self, kid: &str, text: &str) -> Result<Key, KeyDefect> {
        match self.scheme.key_form() {
            Some(form) => form.read(kid, text),
            None => {
                Err(KeyDefect::Malformed { expected: "no key at all: this provider signs nothing" })
            }
        }
    }

    /// Makes the token that this provider repeats in its handshake (`subscribe`). It verifies no
    /// delivery.
    pub fn handshake_token(&self, kid: &str, text: &str) -> Result<Key, KeyDefect> {
        KeyForm::read_handshake_token(kid, text)
    }

    /// Decides whether the request is authentic at `now_ms`.
    ///
    /// The bytes are taken as they are; no JSON is parsed before the proof holds, except where the
    /// proof stands inside the JSON.
    pub fn verify(
        &self,
        request: &Request<'_>,
        keys: &[Key],
        now_ms: u64,
    ) -> Result<Verified, Rejection> {
        self.scheme.verify(request, keys, now_ms)
    }

    /// The events of a request that `verify` accepted: one, or the elements of a batch (possibly
    /// none).
    pub fn events<'b>(&self, request: &Request<'b>) -> Result<Vec<Event<'b>>, Unusable> {
        self.events.events(request)
    }

    /// The JSON document in a stored event body: what pointers point into. Borrowed when the body
    /// is JSON itself; a form or another wrapping is turned into JSON.
    pub fn document<'b>(&self, body: &'b [u8]) -> Result<Cow<'b, str>, UnusableReason> {
        self.events.document(body)
    }

    /// The headers that make `unsigned` authentic: the inverse of `verify`.
    pub fn sign(
        &self,
        unsigned: &Request<'_>,
        key: &Key,
        now_ms: u64,
    ) -> Result<Vec<(String, String)>, CannotSign> {
        self.scheme.sign(unsigned, key, now_ms)
    }

    /// The body that a signed request carries. The same bytes, except where the signature stands
    /// in the body: an Adyen batch gets its items signed, a Braintree XML document becomes a
    /// signed form. Call it before `sign`.
    pub fn sign_body<'b>(&self, body: &'b [u8], key: &Key) -> Result<Cow<'b, [u8]>, CannotSign> {
        self.scheme.sign_body(body, key)
    }

    /// A key from a certificate that was fetched from `url` after `verify` said
    /// `NeedsCertificate`. Its name, its validity at `now_ms` and its strength are checked here;
    /// that it came from that URL over TLS without a redirect is the caller's word. Add it to the
    /// keys, cache it by URL, and verify the same request again.
    pub fn fetched_certificate(
        &self,
        url: &str,
        pem: &[u8],
        now_ms: u64,
    ) -> Result<Key, Rejection> {
        if let Scheme::PayPal(paypal) = &self.scheme {
            paypal.fetched(url, pem, now_ms)
        } else {
            Err(no_certificates())
        }
    }

    /// Takes certificates from `base` as well, which must be `http://127.0.0.1:<port>/`; says whether
    /// it is. For the stage `local` alone: whoever can answer there can sign.
    #[must_use]
    pub fn trust_local_certificates(&mut self, base: &str) -> bool {
        let is_local = paypal::is_on_this_machine(base);
        if is_local && let Scheme::PayPal(paypal) = &mut self.scheme {
            paypal.trust_local(base);
        }
        is_local
    }

    /// A key that an operator vouches for, from a certificate or a bare public key in PEM, for
    /// requests that point to `url`. Nothing is checked.
    pub fn pinned_certificate(&self, url: &str, pem: &[u8]) -> Result<Key, Rejection> {
        if matches!(self.scheme, Scheme::PayPal(_)) {
            paypal::pinned(url, pem)
        } else {
            Err(no_certificates())
        }
    }

    /// The answer to a setup handshake, if this request is one. Ask before `verify`; `None` means
    /// that the request is to be treated as a delivery.
    #[must_use]
    pub fn handshake(&self, request: &Request<'_>, keys: &[Key], now_ms: u64) -> Option<Answer> {
        let format = self.events.format();
        self.handshake.answer(&self.scheme, format, request, keys, now_ms)
    }

    /// What an accepted delivery is answered.
    #[must_use]
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// The methods that deliveries and handshakes arrive with, in upper case.
    #[must_use]
    pub fn methods(&self) -> &[String] {
        &self.methods
    }

    /// Headers that a row keeps, in lower case. Never one that carries a signature or credential.
    #[must_use]
    pub fn kept_headers(&self) -> &[String] {
        &self.kept_headers
    }

    /// The preset's name, as in `preset = "stripe"`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The provider's name as people write it.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether the provider sends a failed delivery again by itself.
    #[must_use]
    pub const fn retries(&self) -> bool {
        self.retries
    }

    /// Headers that carry signatures or credentials, in lower case.
    #[must_use]
    pub fn signature_headers(&self) -> Vec<String> {
        self.scheme.secret_headers()
    }

    /// What the scheme does not authenticate, in words.
    #[must_use]
    pub fn unauthenticated(&self) -> &[String] {
        &self.unsigned
    }

    /// Whether a source with this preset needs at least one key.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        self.scheme.key_form().is_some()
    }

    /// Where this provider lists its past events, if it does.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// Where events usually keep their entity, as a starting point for a projection.
    #[must_use]
    pub const fn entity(&self) -> Option<&EntityFacts> {
        self.entity.as_ref()
    }
}

fn no_certificates() -> Rejection {
    Rejection::CertificateRefused { why: "this provider uses no certificates".to_owned() }
}

fn read_methods(root: &Section<'_>) -> Result<Vec<String>, PresetDefect> {
    let methods = root.strings("methods")?;
    if methods.is_empty() {
        return Ok(vec!["POST".to_owned()]);
    }
    methods
        .into_iter()
        .map(|method| match method {
            "POST" | "PUT" | "PATCH" | "GET" | "HEAD" | "DELETE" => Ok(method.to_owned()),
            other => Err(root.defect(
                "methods",
                format!("`{other}`"),
                "POST, PUT, PATCH, GET, HEAD, DELETE",
            )),
        })
        .collect()
}

fn read_entity(section: Section<'_>) -> Result<EntityFacts, PresetDefect> {
    let id = section.required_string("id")?.to_owned();
    let version = match section.section("version")? {
        None => None,
        Some(version) => {
            let at = version.required_string("at")?.to_owned();
            let unit = match version.required_string("unit")? {
                "integer" => "integer".to_owned(),
                other => {
                    version.choose("unit", other, TimeUnit::CHOICES)?;
                    other.to_owned()
                }
            };
            version.finish()?;
            Some((at, unit))
        }
    };
    section.finish()?;
    Ok(EntityFacts { id, version })
}

fn read_answer(section: Section<'_>) -> Result<Answer, PresetDefect> {
    let status = section.number("status", 200, 299)?.unwrap_or(200);
    let mut headers = Vec::new();
    if let Some(table) = section.section("headers")? {
        for (name, value) in table.entries() {
            let Some(text) = value.as_str() else {
                return Err(table.defect(name, describe(value), "a string"));
            };
            let token = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            if !token || text.contains(char::is_control) {
                return Err(table.defect(name, format!("`{text}`"), "a header name and one line"));
            }
            headers.push((name.to_ascii_lowercase(), text.to_owned()));
        }
    }
    let answer = Answer {
        status: u16::try_from(status).unwrap_or(200),
        content_type: section.string("content_type")?.map(str::to_owned),
        body: section.text("body")?.unwrap_or_default().as_bytes().to_vec(),
        headers,
    };
    section.finish()?;
    Ok(answer)
}
