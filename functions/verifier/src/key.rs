//! A signing key and the checks its text must pass before it is one.
//!
//! A key can only be made by a preset, which knows the form its provider hands out. The text is
//! never trimmed, repaired or guessed: a padded secret is the most frequent reason why "the
//! signature never matches", so it is refused where it is loaded, by name and never by value.

use p256::pkcs8::DecodePublicKey as _;
use zeroize::Zeroizing;

use crate::encoding::decode_key_base64;

/// A named secret or public key, usable with the preset that made it.
#[derive(Clone)]
pub struct Key {
    pub(crate) kid: String,
    pub(crate) material: Material,
}

/// What a key consists of.
#[derive(Clone)]
pub(crate) enum Material {
    /// The bytes of a shared secret.
    Secret(Zeroizing<Vec<u8>>),
    /// An Ed25519 public key, and the private half where a test signs with it.
    Ed25519 { public: ed25519_dalek::VerifyingKey, signing: Option<Box<ed25519_dalek::SigningKey>> },
    /// A P-256 public key.
    P256 { public: p256::ecdsa::VerifyingKey },
    /// An RSA public key.
    Rsa { public: Box<rsa::PublicKey> },
    /// An RSA key that a certificate vouches for, and the URL it came from.
    Certificate { url: String, public: Box<rsa::PublicKey> },
    /// A public name and a private secret, both handed out by the provider.
    Pair { name: String, secret: Zeroizing<Vec<u8>> },
    /// A word that a provider repeats when it asks for a handshake. It proves no delivery: it is
    /// sent in URLs, and URLs are logged.
    HandshakeToken(Zeroizing<Vec<u8>>),
}

/// The form in which a provider hands out its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// The text itself is the secret.
    Text,
    /// Hexadecimal of the secret's bytes.
    Hex,
    /// Base64 of the secret's bytes.
    Base64,
    /// `whsec_` and base64 of 16 to 64 bytes, or an Ed25519 key as `whpk_` or `whsk_`.
    StandardWebhooks,
    /// 64 hexadecimal digits of an Ed25519 public key.
    Ed25519,
    /// A P-256 public key: base64 of its SPKI form, PEM, or a JSON Web Key.
    P256,
    /// An RSA public key as PEM.
    Rsa,
    /// `name:secret`; the secret may contain colons.
    Pair,
}

impl KeyForm {
    pub(crate) const CHOICES: &'static [(&'static str, Self)] = &[
        ("text", Self::Text),
        ("hex", Self::Hex),
        ("base64", Self::Base64),
        ("standard-webhooks", Self::StandardWebhooks),
        ("ed25519", Self::Ed25519),
        ("p256", Self::P256),
        ("rsa", Self::Rsa),
        ("pair", Self::Pair),
    ];

    const fn expected(self) -> &'static str {
        match self {
            Self::Text => "printable text",
            Self::Hex => "an even number of hexadecimal digits",
            Self::Base64 => "base64",
            Self::StandardWebhooks => {
                "`whsec_` and base64 of 16 to 64 bytes, or `whpk_` and a public key"
            }
            Self::Ed25519 => "64 hexadecimal digits of an Ed25519 public key",
            Self::P256 => "a P-256 public key as PEM, base64 or JWK",
            Self::Rsa => "an RSA public key as PEM",
            Self::Pair => "a name, a colon, and a secret",
        }
    }

    /// Makes the key, or says what is wrong with the text.
    pub(crate) fn read(self, kid: &str, text: &str) -> Result<Key, KeyDefect> {
        if text.trim().is_empty() {
            return Err(KeyDefect::Empty);
        }
        let text = match self {
            // PEM files end in a newline, and no byte of it belongs to the key.
            Self::P256 | Self::Rsa if text.starts_with("-----BEGIN ") => text.trim_end(),
            Self::Text
            | Self::Hex
            | Self::Base64
            | Self::StandardWebhooks
            | Self::Ed25519
            | Self::P256
            | Self::Rsa
            | Self::Pair => text,
        };
        if text.trim() != text || text.starts_with('\u{feff}') {
            return Err(KeyDefect::Padded);
        }
        if is_placeholder(text) {
            return Err(KeyDefect::Placeholder);
        }
        let material =
            self.material(text).ok_or(KeyDefect::Malformed { expected: self.expected() })?;
        Ok(Key { kid: kid.to_owned(), material })
    }

    /// Makes the token of a handshake, with the same care.
    pub(crate) fn read_handshake_token(kid: &str, text: &str) -> Result<Key, KeyDefect> {
        let token = Self::Text.read(kid, text)?;
        let material = match token.material {
            Material::Secret(bytes) => Material::HandshakeToken(bytes),
            other @ (Material::Ed25519 { .. }
            | Material::P256 { .. }
            | Material::Rsa { .. }
            | Material::Certificate { .. }
            | Material::Pair { .. }
            | Material::HandshakeToken(_)) => other,
        };
        Ok(Key { kid: token.kid, material })
    }

    fn material(self, text: &str) -> Option<Material> {
        match self {
            Self::Text => (!text.contains(char::is_control)).then(|| secret(text.into())),
            Self::Hex => hex::decode(text).ok().map(secret),
            Self::Base64 => decode_key_base64(text).map(secret),
            Self::StandardWebhooks => standard_webhooks(text),
            Self::Ed25519 => ed25519_public(&hex::decode(text).ok()?),
            Self::P256 => {
                let public = if text.starts_with("-----BEGIN ") {
                    p256::ecdsa::VerifyingKey::from_public_key_pem(text).ok()?
                } else if text.starts_with('{') {
                    p256_from_jwk(text)?
                } else {
                    p256::ecdsa::VerifyingKey::from_public_key_der(&decode_key_base64(text)?)
                        .ok()?
                };
                Some(Material::P256 { public })
            }
            Self::Rsa => {
                let public = rsa::PublicKey::from_public_key_pem(text).ok()?;
                Some(Material::Rsa { public: Box::new(public) })
            }
            Self::Pair => {
                let (name, value) = text.split_once(':')?;
                let whole = !name.is_empty() && !value.is_empty();
                (whole && !text.contains(char::is_control)).then(|| Material::Pair {
                    name: name.to_owned(),
                    secret: Zeroizing::new(value.as_bytes().to_vec()),
                })
            }
        }
    }
}

impl Key {
    /// The name under which this key verifies.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("kid", &self.kid).finish_non_exhaustive()
    }
}

/// Checks a secret that is shown to others rather than verified with, such as an API key: not empty,
/// not padded, no placeholder, printable.
pub fn check_secret(text: &str) -> Result<(), KeyDefect> {
    KeyForm::Text.read("", text).map(drop)
}

/// Why a text is not a key. The text itself never appears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[must_use]
pub enum KeyDefect {
    /// Nothing there.
    #[error("the key is empty")]
    Empty,
    /// White space before or after the key.
    #[error("the key begins or ends with white space; store it without")]
    Padded,
    /// A text that stands for a key still to come.
    #[error("the key is a placeholder; store the one the provider shows")]
    Placeholder,
    /// Not in the form this provider hands out.
    #[error("the key is malformed: expected {expected}")]
    Malformed {
        /// The form it should have.
        expected: &'static str,
    },
}

fn secret(bytes: Vec<u8>) -> Material {
    Material::Secret(Zeroizing::new(bytes))
}

fn ed25519_public(bytes: &[u8]) -> Option<Material> {
    let bytes: &[u8; 32] = bytes.try_into().ok()?;
    let public = ed25519_dalek::VerifyingKey::from_bytes(bytes).ok()?;
    (!public.is_weak()).then_some(Material::Ed25519 { public, signing: None })
}

/// A JSON Web Key (RFC 7518, section 6.2.1) on the curve P-256.
fn p256_from_jwk(text: &str) -> Option<p256::ecdsa::VerifyingKey> {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let jwk: serde_json::Value = serde_json::from_str(text).ok()?;
    if jwk.get("kty")?.as_str()? != "EC" || jwk.get("crv")?.as_str()? != "P-256" {
        return None;
    }
    let coordinate = |name| URL_SAFE_NO_PAD.decode(jwk.get(name)?.as_str()?).ok();
    let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
    p256::ecdsa::VerifyingKey::from_sec1_bytes(&point).ok()
}

/// The three key forms of the Standard Webhooks specification. The prefix `whsec_` is optional
/// there; shorter secrets than the 24 bytes it asks for exist and are taken down to 16.
fn standard_webhooks(text: &str) -> Option<Material> {
    if let Some(public) = text.strip_prefix("whpk_") {
        return ed25519_public(&decode_key_base64(public)?);
    }
    if let Some(pair) = text.strip_prefix("whsk_") {
        let bytes = Zeroizing::new(decode_key_base64(pair)?);
        let seed: &[u8; 32] = bytes.get(..32)?.try_into().ok()?;
        let signing = ed25519_dalek::SigningKey::from_bytes(seed);
        let public = signing.verifying_key();
        let declared = bytes.get(32..)?;
        return (declared == public.as_bytes())
            .then_some(Material::Ed25519 { public, signing: Some(Box::new(signing)) });
    }
    let bytes = decode_key_base64(text.strip_prefix("whsec_").unwrap_or(text))?;
    (16..=64).contains(&bytes.len()).then(|| secret(bytes))
}

/// Whether the text stands for a key instead of being one.
fn is_placeholder(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "changeme",
        "changethis",
        "replaceme",
        "replacethis",
        "placeholder",
        "todo",
        "tbd",
        "fixme",
        "null",
        "none",
        "undefined",
        "nil",
        "xxx",
        "whsecxxx",
        "mysecret",
        "insertsecrethere",
    ];
    let lower = text.to_ascii_lowercase();
    let bare: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    let template = (text.starts_with('<') && text.ends_with('>'))
        || text.contains("${")
        || text.contains("{{")
        || text.contains("...");
    let filler = bare.is_empty()
        || bare.chars().all(|character| character == 'x')
        || bare
            .strip_prefix("whsec")
            .is_some_and(|rest| rest.chars().all(|character| character == 'x'));
    let asks = lower.starts_with("your")
        && lower.contains(['-', '_', ' '])
        && (lower.contains("secret") || lower.contains("key") || lower.contains("token"));
    template || filler || asks || WORDS.contains(&bare.as_str())
}
