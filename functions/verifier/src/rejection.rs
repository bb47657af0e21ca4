//! The verdict: who signed a request, or the one reason why it was refused.
//!
//! A refusal names a cause an operator can act on and never carries a secret, a signature, or text
//! the sender chose, so it can be logged as it stands. What the stranger is told is not decided
//! here: every refusal looks the same from outside.

use std::fmt;

/// Proof that a request is authentic, and what the proof itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Verified {
    /// Which key verified it. `none` when the provider signs nothing.
    pub kid: String,
    /// The signed time in milliseconds since the Unix epoch, where the scheme signs one.
    pub signed_at_ms: Option<u64>,
}

/// Why a request was not accepted as authentic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[must_use]
pub enum Rejection {
    /// No key that this scheme can use is loaded. Our fault, not the sender's.
    #[error("no usable key is loaded for this source; store its signing secret")]
    NoUsableKey,
    /// The scheme signs the public URL and none is configured. Our fault, not the sender's.
    #[error("this provider signs the URL and the source has no public URL configured")]
    NoPublicUrl,
    /// The scheme needs a certificate that the caller must fetch and pass in as a key.
    #[error("the signing certificate at {url} is not loaded")]
    NeedsCertificate {
        /// Where to fetch it. Already checked: https, the provider's host, no user, no odd port.
        url: String,
    },
    /// A header the scheme needs is absent or empty.
    #[error("the header {header} is missing or empty")]
    HeaderMissing {
        /// Its name in lower case.
        header: String,
    },
    /// A header that must appear once appears more often, or was joined from several.
    #[error("the header {header} appears more than once")]
    HeaderRepeated {
        /// Its name in lower case.
        header: String,
    },
    /// A header does not have the form that the scheme prescribes.
    #[error("the header {header} is malformed: expected {expected}")]
    HeaderMalformed {
        /// Its name in lower case.
        header: String,
        /// The form it should have.
        expected: String,
    },
    /// The header carries signatures, but none of an accepted version or algorithm.
    #[error("the header {header} carries no signature of an accepted scheme")]
    SchemeRefused {
        /// Its name in lower case.
        header: String,
    },
    /// More signatures than any provider sends.
    #[error("the header {header} carries more than {max} signatures")]
    TooManySignatures {
        /// Its name in lower case.
        header: String,
        /// The limit.
        max: usize,
    },
    /// The body does not have the form from which the scheme reads what was signed.
    #[error("the body is malformed: expected {expected}")]
    BodyMalformed {
        /// The form it should have.
        expected: String,
    },
    /// A field of the body that carries or feeds the signature is absent.
    #[error("the body has no usable {at}")]
    FieldMissing {
        /// Where it should be.
        at: String,
    },
    /// The request names a signing key that is not among the live keys.
    #[error("the request is signed with a key that this source does not have")]
    KeyUnknown,
    /// No live key produces this signature: another secret, or altered content.
    #[error("no live key of this source produces this signature: wrong secret, or altered content")]
    NoSignatureMatched,
    /// The signature is right but the body is not the one it speaks of.
    #[error("the body was altered: its hash differs from the signed one")]
    BodyAltered,
    /// The signature is right but does not cover this body.
    #[error("the signature does not cover this body")]
    BodyNotCovered,
    /// A signed statement about the request (issuer, request hash) does not fit.
    #[error("the signed {claim} does not fit this request")]
    ClaimRefused {
        /// Which statement.
        claim: String,
    },
    /// Signed too long ago.
    #[error("too old: signed {by_s} s before the allowed window")]
    TooOld {
        /// Whole seconds beyond the limit, rounded up.
        by_s: u64,
    },
    /// Signed too far in the future.
    #[error("too new: signed {by_s} s after the allowed window")]
    TooNew {
        /// Whole seconds beyond the limit, rounded up.
        by_s: u64,
    },
    /// The request points to a certificate that this provider cannot have issued.
    #[error("the certificate URL is not one of this provider's")]
    CertificateUrlRefused,
    /// The certificate that was fetched is not one to trust.
    #[error("the signing certificate is refused: {why}")]
    CertificateRefused {
        /// What is wrong with it.
        why: String,
    },
}

impl Rejection {
    /// A stable `snake_case` name for metrics and logs.
    #[must_use]
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::NoUsableKey => "no_usable_key",
            Self::NoPublicUrl => "no_public_url",
            Self::NeedsCertificate { .. } => "needs_certificate",
            Self::HeaderMissing { .. } => "header_missing",
            Self::HeaderRepeated { .. } => "header_repeated",
            Self::HeaderMalformed { .. } => "header_malformed",
            Self::SchemeRefused { .. } => "scheme_refused",
            Self::TooManySignatures { .. } => "too_many_signatures",
            Self::BodyMalformed { .. } => "body_malformed",
            Self::FieldMissing { .. } => "field_missing",
            Self::KeyUnknown => "key_unknown",
            Self::NoSignatureMatched => "no_signature_matched",
            Self::BodyAltered => "body_altered",
            Self::BodyNotCovered => "body_not_covered",
            Self::ClaimRefused { .. } => "claim_refused",
            Self::TooOld { .. } => "too_old",
            Self::TooNew { .. } => "too_new",
            Self::CertificateUrlRefused => "certificate_url_refused",
            Self::CertificateRefused { .. } => "certificate_refused",
        }
    }

    /// Whether the cause is on this side (answer 503 so that the provider tries again), rather
    /// than in the request (answer 401).
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::NoUsableKey | Self::NoPublicUrl | Self::NeedsCertificate { .. })
    }

    /// Whether the request carries a signature, token or password of this source's kind, and it does
    /// not hold. The internet's noise carries none: whoever is refused like this again and again is
    /// most likely the provider, signing with a secret that is not stored here.
    #[must_use]
    pub const fn is_of_a_signature(&self) -> bool {
        match self {
            Self::KeyUnknown
            | Self::NoSignatureMatched
            | Self::BodyAltered
            | Self::BodyNotCovered
            | Self::ClaimRefused { .. }
            | Self::TooOld { .. }
            | Self::TooNew { .. }
            | Self::CertificateRefused { .. } => true,
            Self::NoUsableKey
            | Self::NoPublicUrl
            | Self::NeedsCertificate { .. }
            | Self::HeaderMissing { .. }
            | Self::HeaderRepeated { .. }
            | Self::HeaderMalformed { .. }
            | Self::SchemeRefused { .. }
            | Self::TooManySignatures { .. }
            | Self::BodyMalformed { .. }
            | Self::FieldMissing { .. }
            | Self::CertificateUrlRefused => false,
        }
    }

    /// Whether another secret could make this request pass, so that fetching the secrets again is
    /// worth one network call.
    #[must_use]
    pub const fn may_heal_with_newer_keys(&self) -> bool {
        matches!(self, Self::NoUsableKey | Self::KeyUnknown | Self::NoSignatureMatched)
    }
}

/// Why a request could not be signed (`oncehook send` and tests).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotSign {
    /// The key can only verify: the provider keeps the private half.
    #[error("this key can only verify: the provider keeps the private half")]
    PublicKeyOnly,
    /// A header that is part of the signed text is absent.
    #[error("the header {header} is part of what is signed and must be set first")]
    HeaderMissing {
        /// Its name in lower case.
        header: String,
    },
    /// The scheme signs the public URL and none is configured.
    #[error("this provider signs the URL and none is configured")]
    NoPublicUrl,
    /// The signature lives inside the body, so no header can carry it.
    #[error("this provider's signature is not carried by headers: {hint}")]
    NotInHeaders {
        /// What to do instead.
        hint: &'static str,
    },
    /// The body does not have the form that this provider's signature is computed over.
    #[error("the body does not have the form that this provider signs")]
    BodyUnreadable,
    /// The time cannot be written in the scheme's format.
    #[error("the time cannot be written in this scheme's format")]
    TimeOutOfRange,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "verified with key {}", self.kid)
    }
}
