//! A canonical request: method, path, a declared list of headers and the body, joined by newlines.
//!
//! The request says which headers it signed, so the list itself and the time must be on it: a
//! shorter list under the same signature is impossible then. Contentful is the model. Its SDK
//! signs the path as it is sent, and the query decoded, escaped as one component and escaped again.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use subtle::{Choice, ConstantTimeEq as _};

use crate::algorithm::Algorithm;
use crate::encoding::Encoding;
use crate::key::Material;
use crate::preset::section::{PresetDefect, Section};
use crate::scheme::usable_keys;
use crate::template::required_header;
use crate::time::{TimeUnit, Window};
use crate::{CannotSign, Key, Rejection, Request, Verified};

/// Most headers that a request may list as signed.
const SIGNED_HEADERS_MAX: usize = 64;
/// The longest window a preset may ask for.
const WINDOW_S_MAX: u64 = 86_400;

/// The three headers of a canonical request, described.
#[derive(Clone, Debug)]
pub(crate) struct Canonical {
    signature: String,
    list: String,
    time: String,
    window: Window,
}

impl Canonical {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, PresetDefect> {
        let header = |key| {
            section.header(key)?.ok_or_else(|| section.defect(key, "nothing", "a header name"))
        };
        let past_s = section.number("past_s", 1, WINDOW_S_MAX)?.unwrap_or(30);
        let future_s = section.number("future_s", 0, WINDOW_S_MAX)?;
        Ok(Self {
            signature: header("header")?,
            list: header("signed_headers")?,
            time: header("time_header")?,
            window: Window { past_s, future_s: future_s.unwrap_or(past_s) },
        })
    }

    pub(crate) fn headers(&self) -> Vec<String> {
        vec![self.signature.clone(), self.list.clone()]
    }

    pub(crate) fn verify(
        &self,
        request: &Request<'_>,
        keys: &[Key],
        now_ms: u64,
    ) -> Result<Verified, Rejection> {
        let malformed = |header: &str, expected: &str| Rejection::HeaderMalformed {
            header: header.to_owned(),
            expected: expected.to_owned(),
        };
        let signature = Encoding::Hex
            .decode(required_header(request, &self.signature)?)
            .filter(|bytes| Algorithm::HmacSha256.plausible_length(bytes.len()))
            .ok_or_else(|| malformed(&self.signature, "64 lower-case hex digits"))?;
        let list = required_header(request, &self.list)?;
        let names: Vec<&str> = list.split(',').take(SIGNED_HEADERS_MAX).collect();
        let own = [&self.list, &self.time];
        if !own.iter().all(|name| names.contains(&name.as_str())) {
            return Err(malformed(&self.list, "a list that contains itself and the time header"));
        }
        let signed_at_ms = TimeUnit::Ms
            .parse_ms(required_header(request, &self.time)?)
            .ok_or_else(|| malformed(&self.time, TimeUnit::Ms.describe()))?;
        let text = Self::signed_text(request, &names)?;
        let keys = usable_keys(keys, |material| matches!(material, Material::Secret(_)))?;
        let mut kid = None;
        for key in keys {
            let matches = match &key.material {
                Material::Secret(secret) => Algorithm::HmacSha256
                    .mac(secret, &[text.as_bytes(), request.body])
                    .map_or(Choice::from(0), |mac| mac.ct_eq(&signature)),
                Material::Ed25519 { .. }
                | Material::P256 { .. }
                | Material::Rsa { .. }
                | Material::Certificate { .. }
                | Material::Pair { .. }
                | Material::HandshakeToken(_) => Choice::from(0),
            };
            if bool::from(matches) && kid.is_none() {
                kid = Some(key.kid.clone());
            }
        }
        let kid = kid.ok_or(Rejection::NoSignatureMatched)?;
        self.window.check(signed_at_ms, now_ms, TimeUnit::Ms)?;
        Ok(Verified { kid, signed_at_ms: Some(signed_at_ms) })
    }

    /// Everything before the body.
    fn signed_text(request: &Request<'_>, names: &[&str]) -> Result<String, Rejection> {
        let mut lines = Vec::with_capacity(names.len());
        for name in names {
            let value = required_header(request, name)?;
            lines.push(format!("{name}:{}", value.trim()));
        }
        lines.sort_unstable();
        let query = escaped_twice(request.query);
        let question = if query.is_empty() { "" } else { "?" };
        Ok(format!("{}\n{}{question}{query}\n{}\n", request.method, request.path, lines.join(";")))
    }

    pub(crate) fn sign(
        &self,
        unsigned: &Request<'_>,
        key: &Key,
        now_ms: u64,
    ) -> Result<Vec<(String, String)>, CannotSign> {
        let Material::Secret(secret) = &key.material else {
            return Err(CannotSign::PublicKeyOnly);
        };
        let mut names = [self.list.as_str(), self.time.as_str()];
        names.sort_unstable();
        let time = TimeUnit::Ms.write(now_ms).ok_or(CannotSign::TimeOutOfRange)?;
        let mut added = vec![(self.list.clone(), names.join(",")), (self.time.clone(), time)];
        let mut headers = unsigned.headers.clone();
        for (name, value) in &added {
            headers = headers.replacing(name, value);
        }
        let request = Request { headers: &headers, ..*unsigned };
        let text = Self::signed_text(&request, &names)
            .map_err(|_| CannotSign::HeaderMissing { header: self.time.clone() })?;
        let mac = Algorithm::HmacSha256
            .mac(secret, &[text.as_bytes(), unsigned.body])
            .ok_or(CannotSign::PublicKeyOnly)?;
        added.push((self.signature.clone(), Encoding::Hex.encode(&mac)));
        Ok(added)
    }
}

/// The query as a JavaScript `encodeURI(querystring.escape(decoded))` writes it.
fn escaped_twice(query: &str) -> String {
    const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'!')
        .remove(b'~')
        .remove(b'*')
        .remove(b'\'')
        .remove(b'(')
        .remove(b')');
    let decoded = percent_decode_str(query).decode_utf8_lossy();
    let once = utf8_percent_encode(&decoded, COMPONENT).to_string();
    once.replace('%', "%25")
}
