//! Twilio: HMAC over the public URL and the form's parameters in a canonical order.
//!
//! Each parameter is signed as name and value, decoded, sorted by name, equal values once, with no
//! separators: two spellings of one form verify alike, and so would a byte moved from the end of a
//! name to the start of its value. A JSON body is covered only by the hash `bodySHA256` in the
//! signed URL; without it the body is refused as not covered.
//!
//! Twilio signs the URL with or without its default port, depending on the product, so both
//! spellings are tried. The query is taken as it arrived: nothing is decoded or encoded again.
//!
//! <https://www.twilio.com/docs/usage/security>

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::algorithm::Algorithm;
use crate::encoding::Encoding;
use crate::extract::form::{fields, has_more_fields_than};
use crate::key::Material;
use crate::scheme::usable_keys;
use crate::template::required_header;
use crate::{CannotSign, HeaderLookup, Key, Rejection, Request, Verified};

const SIGNATURE: &str = "x-twilio-signature";
const SETTINGS: &str = "x-twilio-webhooks-signature-settings";
const BODY_HASH: &str = "bodySHA256";
/// More form parameters than any Twilio product sends.
const PARAMETERS_MAX: usize = 1_000;
/// A key text with this prefix verifies SHA-256 signatures only.
const BOUND_TO_SHA256: &[u8] = b"HMAC_SHA256:";

/// Headers that carry the signature.
pub(crate) fn headers() -> Vec<String> {
    vec![SIGNATURE.to_owned(), SETTINGS.to_owned()]
}

pub(crate) fn verify(request: &Request<'_>, keys: &[Key]) -> Result<Verified, Rejection> {
    let value = required_header(request, SIGNATURE)?;
    let algorithm = announced_algorithm(request)?;
    let signature = Encoding::Base64
        .decode(value)
        .filter(|bytes| algorithm.plausible_length(bytes.len()))
        .ok_or_else(|| Rejection::HeaderMalformed {
            header: SIGNATURE.to_owned(),
            expected: "a signature in canonical base64".to_owned(),
        })?;
    let coverage = Coverage::of(request)?;
    let urls = urls(request).ok_or(Rejection::NoPublicUrl)?;
    let keys = usable_keys(keys, |material| secret_for(algorithm, material).is_some())?;
    let mut kid = None;
    for key in keys {
        let mut any = Choice::from(0);
        if let Some(secret) = secret_for(algorithm, &key.material) {
            for url in &urls {
                if let Some(mac) = algorithm.mac(secret, &coverage.pieces(url)) {
                    any |= mac.ct_eq(&signature);
                }
            }
        }
        if bool::from(any) && kid.is_none() {
            kid = Some(key.kid.clone());
        }
    }
    let kid = kid.ok_or(Rejection::NoSignatureMatched)?;
    if coverage.body_hash.is_some_and(|hash| hash != hex_sha256(request.body)) {
        return Err(Rejection::BodyAltered);
    }
    Ok(Verified { kid, signed_at_ms: None })
}

/// The headers that make `unsigned` authentic.
pub(crate) fn sign(unsigned: &Request<'_>, key: &Key) -> Result<Vec<(String, String)>, CannotSign> {
    let Material::Secret(secret) = &key.material else {
        return Err(CannotSign::PublicKeyOnly);
    };
    let (algorithm, secret) = match secret.strip_prefix(BOUND_TO_SHA256) {
        Some(secret) => (Algorithm::HmacSha256, secret),
        None => (Algorithm::HmacSha1, secret.as_slice()),
    };
    let coverage = Coverage::of(unsigned).map_err(|_| CannotSign::NotInHeaders {
        hint: "a JSON body needs bodySHA256 in the query of its URL",
    })?;
    let urls = urls(unsigned).ok_or(CannotSign::NoPublicUrl)?;
    let url = urls.first().ok_or(CannotSign::NoPublicUrl)?;
    let mac = algorithm.mac(secret, &coverage.pieces(url)).ok_or(CannotSign::PublicKeyOnly)?;
    let mut headers = vec![(SIGNATURE.to_owned(), Encoding::Base64.encode(&mac))];
    if algorithm == Algorithm::HmacSha256 {
        headers.push((SETTINGS.to_owned(), "key=oncehook,algorithm=HMAC_SHA256".to_owned()));
    }
    Ok(headers)
}

/// SHA-1 unless the settings header announces SHA-256; anything else is refused.
fn announced_algorithm(request: &Request<'_>) -> Result<Algorithm, Rejection> {
    match request.headers.get(SETTINGS) {
        HeaderLookup::Missing => Ok(Algorithm::HmacSha1),
        HeaderLookup::Repeated => Err(Rejection::HeaderRepeated { header: SETTINGS.to_owned() }),
        HeaderLookup::Once(settings) => {
            let mut named =
                settings.split(',').filter_map(|entry| entry.trim().strip_prefix("algorithm="));
            match (named.next(), named.next()) {
                (Some("HMAC_SHA256"), None) => Ok(Algorithm::HmacSha256),
                (_, _) => Err(Rejection::SchemeRefused { header: SETTINGS.to_owned() }),
            }
        }
    }
}

fn secret_for(algorithm: Algorithm, material: &Material) -> Option<&[u8]> {
    let Material::Secret(secret) = material else {
        return None;
    };
    match secret.strip_prefix(BOUND_TO_SHA256) {
        Some(bound) => (algorithm == Algorithm::HmacSha256).then_some(bound),
        None => Some(secret),
    }
}

/// What the signature covers of the body.
struct Coverage<'a> {
    parameters: Vec<Parameter<'a>>,
    body_hash: Option<&'a str>,
}

/// Name and value, decoded.
type Parameter<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

impl<'a> Coverage<'a> {
    fn of(request: &Request<'a>) -> Result<Self, Rejection> {
        let mut hashes = request.query.split('&').filter_map(|pair| {
            pair.strip_prefix(BODY_HASH).and_then(|rest| rest.strip_prefix('='))
        });
        match (hashes.next(), hashes.next()) {
            (Some(hash), None) => Ok(Self { parameters: Vec::new(), body_hash: Some(hash) }),
            (Some(_), Some(_)) => Err(Rejection::BodyNotCovered),
            (None, _) => Ok(Self { parameters: parameters(request.body)?, body_hash: None }),
        }
    }

    /// The signed text: the URL, then each parameter's name and value.
    fn pieces<'c>(&'c self, url: &'c str) -> Vec<&'c [u8]> {
        let parameters = self.parameters.iter().flat_map(|(name, value)| [&**name, &**value]);
        std::iter::once(url.as_bytes()).chain(parameters).collect()
    }
}

/// The parameters sorted by name, then value, equal ones once.
fn parameters(body: &[u8]) -> Result<Vec<Parameter<'_>>, Rejection> {
    if body.trim_ascii_start().starts_with(b"{") || body.trim_ascii_start().starts_with(b"[") {
        return Err(Rejection::BodyNotCovered);
    }
    if has_more_fields_than(body, PARAMETERS_MAX) {
        return Err(Rejection::BodyMalformed {
            expected: format!("a form of at most {PARAMETERS_MAX} parameters"),
        });
    }
    let mut parameters: Vec<Parameter<'_>> =
        fields(body).map(|field| (field.name(), field.value())).collect();
    parameters.sort_unstable();
    parameters.dedup();
    Ok(parameters)
}

/// The public URL as configured, and with its default port added or taken away.
fn urls(request: &Request<'_>) -> Option<Vec<String>> {
    let base = request.public_url?;
    let mut spellings = vec![base.to_owned()];
    for (scheme, port) in [("https://", ":443"), ("http://", ":80")] {
        let Some(rest) = base.strip_prefix(scheme) else {
            continue;
        };
        let (authority, path) =
            rest.find('/').and_then(|slash| rest.split_at_checked(slash)).unwrap_or((rest, ""));
        let host = authority.rsplit('@').next().unwrap_or(authority);
        if let Some(bare) = authority.strip_suffix(port) {
            spellings.push(format!("{scheme}{bare}{path}"));
        } else if !host.contains(':') {
            spellings.push(format!("{scheme}{authority}{port}{path}"));
        }
    }
    if !request.query.is_empty() {
        for spelling in &mut spellings {
            spelling.push('?');
            spelling.push_str(request.query);
        }
    }
    Some(spellings)
}

fn hex_sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
