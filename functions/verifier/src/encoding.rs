//! Strict text encodings of signatures: one spelling per value.
//!
//! No vendor sends upper-case hex or loose base64, and every tolerated spelling is one more way to
//! present the same signature, so anything but the canonical form is not a signature at all.

use base64::{Engine as _, engine::general_purpose};

/// How a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Lower-case hexadecimal.
    Hex,
    /// Base64 (RFC 4648, section 4) with padding and zero trailing bits.
    Base64,
}

impl Encoding {
    pub(crate) const CHOICES: &'static [(&'static str, Self)] =
        &[("hex", Self::Hex), ("base64", Self::Base64)];

    /// The bytes that `text` spells, if it spells them canonically.
    pub(crate) fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => {
                let canonical =
                    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
                if canonical { hex::decode(text).ok() } else { None }
            }
            Self::Base64 => general_purpose::STANDARD.decode(text).ok(),
        }
    }

    /// The canonical spelling of `bytes`.
    pub(crate) fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Hex => hex::encode(bytes),
            Self::Base64 => general_purpose::STANDARD.encode(bytes),
        }
    }

    /// The name operators know it by.
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Hex => "lower-case hex",
            Self::Base64 => "canonical base64",
        }
    }
}

/// Decodes the base64 of a key: padding optional, trailing bits ignored, as the vendors' own
/// libraries do. Keys are typed in once by a person; signatures never take this path.
pub(crate) fn decode_key_base64(text: &str) -> Option<Vec<u8>> {
    let lenient = general_purpose::GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        general_purpose::GeneralPurposeConfig::new()
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    lenient.decode(text).ok()
}
