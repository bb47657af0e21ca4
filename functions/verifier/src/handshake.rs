//! Setup handshakes: requests that ask the endpoint to prove itself before any event is sent.
//!
//! An answer is never computed over text the asker chose, except where the provider's own protocol
//! demands it (Braintree), and there the text is held to a form that no delivery can have. An echo
//! of something in the body is given only to a request that passed the same verification as every
//! event; an echo of the query only to one without a body, which can be no delivery. What is echoed
//! is plain text that no browser may take for anything else.

use memchr::memmem;
use subtle::{Choice, ConstantTimeEq as _};

use crate::extract::document::Format;
use crate::extract::form::fields;
use crate::extract::pick::Picker;
use crate::extract::pointer::Pointer;
use crate::extract::scalar::scalar;
use crate::key::Material;
use crate::preset::section::{PresetDefect, Section};
use crate::scheme::{Scheme, braintree};
use crate::{Answer, Key, Request};

/// The longest text that is echoed.
const ECHO_BYTES_MAX: usize = 1_024;
/// The longest body that asks for an echo. It holds little beside the text; what is longer is a
/// delivery.
const ASKING_BYTES_MAX: usize = 16 * 1_024;

/// The `handshake` table of a preset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshake {
    probe: Vec<String>,
    echo: Option<Echo>,
    braintree: bool,
    subscribe: bool,
    echo_query: Option<String>,
}

#[derive(Clone, Debug)]
struct Echo {
    picker: Picker,
    is: String,
}

impl Handshake {
    pub(crate) fn read(section: Section<'_>) -> Result<Self, PresetDefect> {
        let mut probe = Vec::new();
        for method in section.strings("probe")? {
            if !matches!(method, "HEAD" | "GET" | "OPTIONS") {
                return Err(section.defect("probe", format!("`{method}`"), "HEAD, GET, OPTIONS"));
            }
            probe.push(method.to_owned());
        }
        let echo = section.section("echo")?.map(read_echo).transpose()?;
        let braintree = section.choice("challenge", &[("braintree", true)])?.unwrap_or(false);
        let subscribe = section.boolean("subscribe")?.unwrap_or(false);
        let echo_query = section.string("echo_query")?.map(str::to_owned);
        section.finish()?;
        Ok(Self { probe, echo, braintree, subscribe, echo_query })
    }

    /// Methods that only handshakes use.
    pub(crate) fn methods(&self) -> Vec<String> {
        let mut methods = self.probe.clone();
        let asks_by_get = self.braintree || self.subscribe || self.echo_query.is_some();
        if asks_by_get && !methods.iter().any(|method| method == "GET") {
            methods.push("GET".to_owned());
        }
        methods
    }

    /// The answer, if the request is a handshake.
    pub(crate) fn answer(
        &self,
        scheme: &Scheme,
        format: &Format,
        request: &Request<'_>,
        keys: &[Key],
        now_ms: u64,
    ) -> Option<Answer> {
        if self.braintree
            && let Some(answer) = braintree::handshake(request, keys)
        {
            return Some(answer);
        }
        if self.probe.iter().any(|method| method == request.method) {
            return Some(Answer::empty(200));
        }
        if self.subscribe && request.method == "GET" {
            return Some(subscription(request, keys));
        }
        if let Some(name) = &self.echo_query
            && request.body.is_empty()
            && let Some(text) = only_value(request.query, name)
        {
            return Some(echoed(&text).unwrap_or_else(|| Answer::empty(403)));
        }
        let echo = self.echo.as_ref()?;
        // Most deliveries are told apart without a second verification or a parse.
        if request.body.len() > ASKING_BYTES_MAX
            || memmem::find(request.body, echo.is.as_bytes()).is_none()
            || scheme.verify(request, keys, now_ms).is_err()
        {
            return None;
        }
        let document = format.document(request.body).ok()?;
        let values = echo.picker.pick(&document).ok()?;
        let mut values = values.into_iter().map(|value| value.and_then(scalar));
        let (kind, value) = (values.next()??, values.next()??);
        if kind == echo.is { echoed(&value) } else { None }
    }
}

/// The answer to `GET ?hub.mode=subscribe&hub.verify_token=...&hub.challenge=...`: the challenge,
/// for whoever knows the token.
fn subscription(request: &Request<'_>, keys: &[Key]) -> Answer {
    let value = |name| only_value(request.query, name);
    let knows = |token: &str| {
        let is_token = |key: &Key| match &key.material {
            Material::HandshakeToken(known) => known.as_slice().ct_eq(token.as_bytes()),
            Material::Secret(_)
            | Material::Ed25519 { .. }
            | Material::P256 { .. }
            | Material::Rsa { .. }
            | Material::Certificate { .. }
            | Material::Pair { .. } => Choice::from(0),
        };
        bool::from(keys.iter().fold(Choice::from(0), |any, key| any | is_token(key)))
    };
    let asks = value("hub.mode").as_deref() == Some("subscribe");
    let proven = value("hub.verify_token").is_some_and(|token| knows(&token));
    let challenge = value("hub.challenge").filter(|_| asks && proven);
    challenge.and_then(|challenge| echoed(&challenge)).unwrap_or_else(|| Answer::empty(403))
}

/// The decoded value of a query parameter that is there once.
fn only_value(query: &str, name: &str) -> Option<String> {
    let mut values = fields(query.as_bytes()).filter(|field| *field.name() == *name.as_bytes());
    match (values.next(), values.next()) {
        (Some(field), None) => String::from_utf8(field.value().into_owned()).ok(),
        (_, _) => None,
    }
}

/// A text as the asker sent it, unless it is too long or holds what no provider sends.
fn echoed(text: &str) -> Option<Answer> {
    let plain = text.len() <= ECHO_BYTES_MAX && !text.contains(char::is_control);
    plain.then(|| {
        let mut answer = Answer::text(text.as_bytes());
        answer.headers.push(("x-content-type-options".to_owned(), "nosniff".to_owned()));
        answer
    })
}

fn read_echo(section: Section<'_>) -> Result<Echo, PresetDefect> {
    let pointer = |key| {
        let text = section.required_string(key)?;
        Pointer::parse(text)
            .ok_or_else(|| section.defect(key, format!("`{text}`"), "a JSON Pointer"))
    };
    let echo = Echo {
        picker: Picker::new(vec![pointer("at")?, pointer("value")?]),
        is: section.required_string("is")?.to_owned(),
    };
    section.finish()?;
    Ok(echo)
}
