//! PayPal: an RSA signature over the transmission's id and time, the webhook's id, and the CRC-32
//! of the body.
//!
//! Two weaknesses are part of the scheme, and this module cannot mend them:
//! - the key is in a certificate that the *request* points to, so the URL is checked to be
//!   PayPal's own before anybody fetches it, and the certificate must carry PayPal's name and be
//!   valid now. That it came from that URL over TLS, without a redirect, is the fetcher's part. The
//!   chain to a public root cannot be checked again: PayPal serves the leaf alone, and has changed
//!   the authority above it before, so an intermediate kept here would one day refuse what is
//!   authentic. TLS to the same host proves the same chain, with the roots of the system;
//! - CRC-32 is no hash: whoever holds one delivery can craft another body with the same sum. The
//!   event is therefore a hint: confirm what has value through PayPal's API.
//!
//! Where a certificate is not at hand the answer is `NeedsCertificate`. Fetch it, pass it through
//! [`PayPal::fetched`] and add the result to the keys.
//!
//! <https://developer.paypal.com/api/rest/webhooks/rest/>

use rsa::pkcs8::DecodePublicKey as _;
use rsa::traits::PublicKeyParts as _;
use sha2::{Digest as _, Sha256};
use x509_cert::Certificate;
use x509_cert::der::{DecodePem as _, Encode as _};

use crate::algorithm::rsa_sha256_matches;
use crate::encoding::Encoding;
use crate::key::Material;
use crate::scheme::usable_keys;
use crate::template::{PartDefect, required_header};
use crate::time::TimeUnit;
use crate::{Key, Rejection, Request, Verified};

const ID: &str = "paypal-transmission-id";
const TIME: &str = "paypal-transmission-time";
const SIGNATURE: &str = "paypal-transmission-sig";
const ALGORITHM: &str = "paypal-auth-algo";
const CERTIFICATE: &str = "paypal-cert-url";

/// The longest certificate URL.
const URL_BYTES_MAX: usize = 512;

/// The names that PayPal's signing certificates carry.
const LIVE_NAME: &str = "messageverificationcerts.paypal.com";
const SANDBOX_NAME: &str = "messageverificationcerts.sandbox.paypal.com";

/// `PayPal`'s scheme, and where else than at PayPal's a certificate may lie.
#[derive(Clone, Debug, Default)]
pub(crate) struct PayPal {
    /// An address on this machine, for a local stack.
    local: Option<String>,
}

/// Headers that carry the signature.
pub(crate) fn headers() -> Vec<String> {
    [SIGNATURE, CERTIFICATE, ALGORITHM].map(str::to_owned).to_vec()
}

impl PayPal {
    /// Takes certificates from `base` as well.
    pub(crate) fn trust_local(&mut self, base: &str) {
        self.local = Some(base.to_owned());
    }

    fn may_lie_at(&self, url: &str) -> bool {
        let local = self.local.as_deref().and_then(|base| url.strip_prefix(base));
        url.len() <= URL_BYTES_MAX && (local.is_some_and(is_plain_path) || is_paypal_url(url))
    }

    pub(crate) fn verify(
        &self,
        request: &Request<'_>,
        keys: &[Key],
    ) -> Result<Verified, Rejection> {
        let id = required_header(request, ID)?;
        let time = required_header(request, TIME)?;
        let signature = required_header(request, SIGNATURE)?;
        let url = required_header(request, CERTIFICATE)?;
        if required_header(request, ALGORITHM)? != "SHA256withRSA" {
            return Err(Rejection::SchemeRefused { header: ALGORITHM.to_owned() });
        }
        if !self.may_lie_at(url) {
            return Err(Rejection::CertificateUrlRefused);
        }
        let malformed = |header: &str, expected: &str| {
            Rejection::from(PartDefect::Malformed {
                header: header.to_owned(),
                expected: expected.to_owned(),
            })
        };
        if id.contains('|') {
            return Err(malformed(ID, "a value without `|`"));
        }
        let signed_at_ms = TimeUnit::Iso
            .parse_ms(time)
            .ok_or_else(|| malformed(TIME, TimeUnit::Iso.describe()))?;
        let signature = Encoding::Base64
            .decode(signature)
            .filter(|bytes| bytes.len() >= 128)
            .ok_or_else(|| malformed(SIGNATURE, "an RSA signature in canonical base64"))?;
        let webhook_ids = usable_keys(keys, |material| matches!(material, Material::Secret(_)))?;
        let public = certificate_for(keys, url)
            .ok_or_else(|| Rejection::NeedsCertificate { url: url.to_owned() })?;
        let sum = crc32fast::hash(request.body).to_string();
        for key in webhook_ids {
            let Material::Secret(webhook_id) = &key.material else {
                continue;
            };
            let message =
                [id.as_bytes(), b"|", time.as_bytes(), b"|", webhook_id, b"|", sum.as_bytes()]
                    .concat();
            if rsa_sha256_matches(public, &Sha256::digest(message).into(), &signature) {
                return Ok(Verified { kid: key.kid.clone(), signed_at_ms: Some(signed_at_ms) });
            }
        }
        Err(Rejection::NoSignatureMatched)
    }

    /// A key from a certificate that was fetched from `url` a moment ago.
    pub(crate) fn fetched(&self, url: &str, pem: &[u8], now_ms: u64) -> Result<Key, Rejection> {
        if !self.may_lie_at(url) {
            return Err(Rejection::CertificateUrlRefused);
        }
        let certificate = leaf(pem).ok_or_else(|| refused("not an X.509 certificate in PEM"))?;
        let inner = certificate.tbs_certificate();
        let expected = if url.contains("sandbox") { SANDBOX_NAME } else { LIVE_NAME };
        let name = inner.subject().common_name().ok().flatten();
        if name.is_none_or(|name| name.value() != expected) {
            return Err(refused("its name is not PayPal's"));
        }
        let today = now_ms.checked_div(1_000).unwrap_or_default();
        let validity = inner.validity();
        let begins = validity.not_before.to_unix_duration().as_secs();
        let ends = validity.not_after.to_unix_duration().as_secs();
        if today < begins || today > ends {
            return Err(refused("it is not valid now"));
        }
        let public = public_key(&certificate).ok_or_else(|| refused("it holds no RSA key"))?;
        if public.size() < 256 {
            return Err(refused("its key is shorter than 2048 bits"));
        }
        Ok(key(url, public))
    }
}

fn certificate_for<'k>(keys: &'k [Key], wanted: &str) -> Option<&'k rsa::PublicKey> {
    keys.iter().find_map(|key| match &key.material {
        Material::Certificate { url, public } if url == wanted => Some(public.as_ref()),
        Material::Certificate { .. }
        | Material::Secret(_)
        | Material::Ed25519 { .. }
        | Material::P256 { .. }
        | Material::Rsa { .. }
        | Material::Pair { .. }
        | Material::HandshakeToken(_) => None,
    })
}

/// A key that an operator vouches for: a certificate or a bare public key, taken as it is.
pub(crate) fn pinned(url: &str, pem: &[u8]) -> Result<Key, Rejection> {
    let unreadable = || refused("neither a certificate nor an RSA public key in PEM");
    let public = match leaf(pem) {
        Some(certificate) => public_key(&certificate),
        None => std::str::from_utf8(pem)
            .ok()
            .and_then(|text| rsa::PublicKey::from_public_key_pem(text.trim()).ok()),
    };
    public.map(|public| key(url, public)).ok_or_else(unreadable)
}

fn key(url: &str, public: rsa::PublicKey) -> Key {
    Key {
        kid: url.to_owned(),
        material: Material::Certificate { url: url.to_owned(), public: Box::new(public) },
    }
}

/// The first certificate of a PEM file.
fn leaf(pem: &[u8]) -> Option<Certificate> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let text = std::str::from_utf8(pem).ok()?;
    let (_, rest) = text.split_once(BEGIN)?;
    let (inside, _) = rest.split_once(END)?;
    Certificate::from_pem(format!("{BEGIN}{inside}{END}\n")).ok()
}

fn public_key(certificate: &Certificate) -> Option<rsa::PublicKey> {
    let info = certificate.tbs_certificate().subject_public_key_info();
    rsa::PublicKey::from_public_key_der(&info.to_der().ok()?).ok()
}

fn refused(why: &str) -> Rejection {
    Rejection::CertificateRefused { why: why.to_owned() }
}

/// Whether a base address is `http://127.0.0.1:<port>/`.
pub(crate) fn is_on_this_machine(base: &str) -> bool {
    let port = base.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix('/'));
    port.is_some_and(|port| port.parse::<u16>().is_ok_and(|number| number.to_string() == port))
}

/// Whether a certificate URL can be PayPal's: https, a host below `paypal.com`, no user, no port,
/// no query, a plain path.
fn is_paypal_url(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://") else {
        return false;
    };
    let Some((host, path)) = rest.split_once('/') else {
        return false;
    };
    let host_is_plain = host
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
    host_is_plain
        && host.ends_with(".paypal.com")
        && !host.starts_with('.')
        && !host.contains("..")
        && is_plain_path(path)
}

fn is_plain_path(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
        && !path.contains("..")
}
