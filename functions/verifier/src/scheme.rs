//! The ways in which a provider proves that a request is its own.
//!
//! One variant per family; whatever needs code of its own lives in a small module of its own.

pub(crate) mod adyen;
pub(crate) mod basic;
pub(crate) mod braintree;
pub(crate) mod canonical;
pub(crate) mod jwt;
pub(crate) mod paypal;
pub(crate) mod signature;
pub(crate) mod token;
pub(crate) mod twilio;

use std::borrow::Cow;

use crate::key::{KeyForm, Material};
use crate::preset::section::{PresetDefect, Section};
use crate::{CannotSign, Key, Rejection, Request, Verified};

use canonical::Canonical;
use jwt::Jwt;
use paypal::PayPal;
use signature::Signature;
use token::Token;

/// A provider's proof, described.
#[derive(Clone, Debug)]
pub(crate) enum Scheme {
    /// A signature header over a template of request parts.
    Signature(Box<Signature>),
    /// A JSON Web Token with a claim that holds the body's hash.
    Jwt(Box<Jwt>),
    /// A signature header over a canonical form of the request.
    Canonical(Box<Canonical>),
    /// A shared secret in a header; the body is not covered.
    Token(Token),
    /// HTTP Basic credentials; the body is not covered.
    Basic,
    /// A signature inside each item of an Adyen batch.
    AdyenItems,
    /// `PayPal`'s certificate scheme.
    PayPal(PayPal),
    /// Twilio's URL and parameters.
    Twilio,
    /// Braintree's signed form.
    Braintree,
    /// Nothing at all: the event is a hint, to be fetched back from the provider.
    Unsigned,
}

#[derive(Clone, Copy)]
enum Kind {
    Signature,
    Jwt,
    Canonical,
    Token,
    Basic,
    AdyenItems,
    PayPal,
    Twilio,
    Braintree,
    Unsigned,
}

impl Kind {
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("signature", Self::Signature),
        ("jwt", Self::Jwt),
        ("canonical", Self::Canonical),
        ("token", Self::Token),
        ("basic", Self::Basic),
        ("adyen-items", Self::AdyenItems),
        ("paypal", Self::PayPal),
        ("twilio", Self::Twilio),
        ("braintree", Self::Braintree),
        ("unsigned", Self::Unsigned),
    ];
}

impl Scheme {
    /// Reads the `verify` table.
    pub(crate) fn read(section: Section<'_>) -> Result<Self, PresetDefect> {
        let scheme = match section.required_choice("scheme", Kind::CHOICES)? {
            Kind::Signature => Self::Signature(Box::new(Signature::read(&section)?)),
            Kind::Jwt => Self::Jwt(Box::new(Jwt::read(&section)?)),
            Kind::Canonical => Self::Canonical(Box::new(Canonical::read(&section)?)),
            Kind::Token => Self::Token(Token::read(&section)?),
            Kind::Basic => Self::Basic,
            Kind::AdyenItems => Self::AdyenItems,
            Kind::PayPal => Self::PayPal(PayPal::default()),
            Kind::Twilio => Self::Twilio,
            Kind::Braintree => Self::Braintree,
            Kind::Unsigned => Self::Unsigned,
        };
        section.finish()?;
        Ok(scheme)
    }

    /// The form in which this scheme's keys are handed out; `None` when it has none.
    pub(crate) const fn key_form(&self) -> Option<KeyForm> {
        match self {
            Self::Signature(signature) => Some(signature.key_form()),
            Self::Jwt(jwt) => Some(jwt.key_form()),
            Self::Canonical(_) | Self::Token(_) | Self::PayPal(_) | Self::Twilio => {
                Some(KeyForm::Text)
            }
            Self::Basic | Self::Braintree => Some(KeyForm::Pair),
            Self::AdyenItems => Some(KeyForm::Hex),
            Self::Unsigned => None,
        }
    }

    /// Decides whether the request is authentic.
    pub(crate) fn verify(
        &self,
        request: &Request<'_>,
        keys: &[Key],
        now_ms: u64,
    ) -> Result<Verified, Rejection> {
        match self {
            Self::Signature(signature) => signature.verify(request, keys, now_ms),
            Self::Jwt(jwt) => jwt.verify(request, keys, now_ms),
            Self::Canonical(canonical) => canonical.verify(request, keys, now_ms),
            Self::Token(token) => token.verify(request, keys),
            Self::Basic => basic::verify(request, keys),
            Self::AdyenItems => adyen::verify(request, keys),
            Self::PayPal(paypal) => paypal.verify(request, keys),
            Self::Twilio => twilio::verify(request, keys),
            Self::Braintree => braintree::verify(request, keys),
            Self::Unsigned => Ok(Verified { kid: "none".to_owned(), signed_at_ms: None }),
        }
    }

    /// The headers that make `unsigned` authentic.
    pub(crate) fn sign(
        &self,
        unsigned: &Request<'_>,
        key: &Key,
        now_ms: u64,
    ) -> Result<Vec<(String, String)>, CannotSign> {
        match self {
            Self::Signature(signature) => signature.sign(unsigned, key, now_ms),
            Self::Jwt(jwt) => jwt.sign(unsigned, key, now_ms),
            Self::Canonical(canonical) => canonical.sign(unsigned, key, now_ms),
            Self::Token(token) => token.sign(key),
            Self::Basic => basic::sign(key),
            Self::Twilio => twilio::sign(unsigned, key),
            Self::PayPal(_) => Err(CannotSign::PublicKeyOnly),
            Self::AdyenItems | Self::Braintree | Self::Unsigned => Ok(Vec::new()),
        }
    }

    /// The body that `sign` must be given: signed inside where the scheme signs there.
    pub(crate) fn sign_body<'b>(
        &self,
        body: &'b [u8],
        key: &Key,
    ) -> Result<Cow<'b, [u8]>, CannotSign> {
        match self {
            Self::AdyenItems => adyen::sign_body(body, key).map(Cow::Owned),
            Self::Braintree => braintree::sign_body(body, key).map(Cow::Owned),
            Self::Signature(_)
            | Self::Jwt(_)
            | Self::Canonical(_)
            | Self::Token(_)
            | Self::Basic
            | Self::PayPal(_)
            | Self::Twilio
            | Self::Unsigned => Ok(Cow::Borrowed(body)),
        }
    }

    /// Headers that carry signatures or credentials.
    pub(crate) fn secret_headers(&self) -> Vec<String> {
        match self {
            Self::Signature(signature) => signature.headers(),
            Self::Jwt(jwt) => jwt.headers(),
            Self::Canonical(canonical) => canonical.headers(),
            Self::Token(token) => token.headers(),
            Self::Basic => vec![basic::HEADER.to_owned()],
            Self::PayPal(_) => paypal::headers(),
            Self::Twilio => twilio::headers(),
            Self::AdyenItems | Self::Braintree | Self::Unsigned => Vec::new(),
        }
    }
}

/// The keys among `keys` that `usable` takes.
pub(crate) fn usable_keys(
    keys: &[Key],
    usable: impl Fn(&Material) -> bool,
) -> Result<Vec<&Key>, Rejection> {
    let usable: Vec<&Key> = keys.iter().filter(|key| usable(&key.material)).collect();
    if usable.is_empty() { Err(Rejection::NoUsableKey) } else { Ok(usable) }
}
