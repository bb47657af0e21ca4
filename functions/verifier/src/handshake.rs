//! Setup handshakes: requests that ask the endpoint to prove itself before any event is sent.
//!
//! An answer is never computed over text the asker chose, except where the provider's own protocol
//! demands it (Braintree), and there the text is held to a form that no delivery can have. An echo
//! is given only to a request that passed the same verification as every event.

use memchr::memmem;

use crate::extract::document::Format;
use crate::extract::pick::Picker;
use crate::extract::pointer::Pointer;
use crate::extract::scalar::scalar;
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
        section.finish()?;
        Ok(Self { probe, echo, braintree })
    }

    /// Methods that only handshakes use.
    pub(crate) fn methods(&self) -> Vec<String> {
        let mut methods = self.probe.clone();
        if self.braintree && !methods.iter().any(|method| method == "GET") {
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
        let plain = value.len() <= ECHO_BYTES_MAX && !value.contains(char::is_control);
        (kind == echo.is && plain).then(|| Answer::text(value.as_bytes()))
    }
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
