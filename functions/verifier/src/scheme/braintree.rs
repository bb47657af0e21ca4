//! Braintree: a form with a base64 XML payload and an HMAC-SHA1 over the base64 text.
//!
//! The signature names the public key it belongs to, so only that pair is looked at. Braintree
//! signs the text with its final newline, which some clients strip: the text is tried as it came
//! and with a newline.
//!
//! The setup challenge is signed with the same key. A challenge is hexadecimal, and so could be a
//! payload; a payload that looks like a challenge is refused, or the handshake would sign
//! deliveries for whoever asks.
//!
//! <https://developer.paypal.com/braintree/docs/guides/webhooks/overview>

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::{Digest as _, Sha1};
use subtle::{Choice, ConstantTimeEq as _};

use crate::algorithm::Algorithm;
use crate::encoding::Encoding;
use crate::extract::form::fields;
use crate::key::Material;
use crate::layout::ENTRIES_MAX;
use crate::scheme::usable_keys;
use crate::{Answer, CannotSign, Key, Rejection, Request, Verified};

const SIGNATURE: &str = "bt_signature";
const PAYLOAD: &str = "bt_payload";
const CHALLENGE: &str = "bt_challenge";
/// How far into a form the two fields are looked for; Braintree sends nothing else.
const FIELDS_MAX: usize = 16;

pub(crate) fn verify(request: &Request<'_>, keys: &[Key]) -> Result<Verified, Rejection> {
    let signature = field(request.body, SIGNATURE)?;
    let signature = String::from_utf8_lossy(&signature);
    let payload = field(request.body, PAYLOAD)?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\n".contains(byte);
    if payload.is_empty() || !payload.iter().all(is_plain) || is_challenge(payload.trim_ascii_end())
    {
        return Err(Rejection::BodyMalformed { expected: format!("{PAYLOAD} as base64") });
    }
    let pairs: Vec<(&str, &str)> =
        signature.split('&').take(ENTRIES_MAX).filter_map(|pair| pair.split_once('|')).collect();
    let keys = usable_keys(keys, |material| matches!(material, Material::Pair { .. }))?;
    let mut known = false;
    let mut kid = None;
    for key in keys {
        let Material::Pair { name, secret } = &key.material else {
            continue;
        };
        let own = || pairs.iter().filter(|(public, _)| public == name);
        if own().next().is_none() {
            continue;
        }
        known = true;
        let Some(macs) = macs(secret, &payload) else {
            continue;
        };
        let digests = own().filter_map(|(_, digest)| Encoding::Hex.decode(digest));
        let matches = digests.fold(Choice::from(0), |any, digest| {
            macs.iter().fold(any, |any, mac| any | mac.ct_eq(&digest))
        });
        if bool::from(matches) && kid.is_none() {
            kid = Some(key.kid.clone());
        }
    }
    match kid {
        Some(kid) => Ok(Verified { kid, signed_at_ms: None }),
        None if known => Err(Rejection::NoSignatureMatched),
        None => Err(Rejection::KeyUnknown),
    }
}

/// The answer to `GET ?bt_challenge=...`: the public key and the signed challenge.
pub(crate) fn handshake(request: &Request<'_>, keys: &[Key]) -> Option<Answer> {
    if request.method != "GET" {
        return None;
    }
    let mut challenges = form_urlencoded::parse(request.query.as_bytes())
        .filter(|(name, _)| name == CHALLENGE)
        .map(|(_, value)| value);
    let challenge = match (challenges.next(), challenges.next()) {
        (Some(challenge), None) if is_challenge(challenge.as_bytes()) => challenge,
        (_, _) => return None,
    };
    keys.iter().find_map(|key| {
        let Material::Pair { name, secret } = &key.material else {
            return None;
        };
        let digest = hex::encode(mac(secret, challenge.as_bytes()));
        Some(Answer::text(format!("{name}|{digest}")))
    })
}

/// A form that `verify` accepts, from an XML document.
pub(crate) fn sign_body(xml: &[u8], key: &Key) -> Result<Vec<u8>, CannotSign> {
    let Material::Pair { name, secret } = &key.material else {
        return Err(CannotSign::PublicKeyOnly);
    };
    let payload = format!("{}\n", STANDARD.encode(xml));
    let digest = hex::encode(mac(secret, payload.as_bytes()));
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair(SIGNATURE, &format!("{name}|{digest}"))
        .append_pair(PAYLOAD, &payload)
        .finish();
    Ok(form.into_bytes())
}

/// The XML in a delivery's body.
pub(crate) fn payload_xml(body: &[u8]) -> Option<String> {
    let payload = field(body, PAYLOAD).ok()?;
    let mut text = payload.into_owned();
    text.retain(|byte| *byte != b'\n');
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}

/// Twenty to thirty-two lower-case hexadecimal digits.
fn is_challenge(text: &[u8]) -> bool {
    (20..=32).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
}

/// The value of a form field that is there exactly once.
fn field<'b>(body: &'b [u8], name: &str) -> Result<Cow<'b, [u8]>, Rejection> {
    let mut values =
        fields(body).take(FIELDS_MAX).filter(|field| *field.name() == *name.as_bytes());
    match (values.next(), values.next()) {
        (Some(field), None) => Ok(field.value()),
        (None, _) => Err(Rejection::FieldMissing { at: name.to_owned() }),
        (Some(_), Some(_)) => Err(Rejection::BodyMalformed { expected: format!("{name} once") }),
    }
}

/// HMAC-SHA1 keyed with the SHA-1 of the private key.
fn mac(private: &[u8], text: &[u8]) -> Vec<u8> {
    Algorithm::HmacSha1.mac(&Sha1::digest(private), &[text]).unwrap_or_default()
}

/// The MAC of a text, and of the same with a newline behind it, in one pass over the text.
fn macs(private: &[u8], text: &[u8]) -> Option<[Vec<u8>; 2]> {
    let mac = Hmac::<Sha1>::new_from_slice(&Sha1::digest(private)).ok()?.chain_update(text);
    let ended = mac.clone().chain_update(b"\n");
    Some([mac, ended].map(|mac| mac.finalize().into_bytes().to_vec()))
}
