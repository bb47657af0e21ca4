//! A JSON Web Signature in a header, with a claim that holds the SHA-256 of the body.
//!
//! The algorithm is the preset's, never the token's: a token that names another one is refused
//! before any key is touched. Claims are read after the signature holds.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::algorithm::Algorithm;
use crate::extract::pick::Picker;
use crate::extract::pointer::Pointer;
use crate::extract::scalar::scalar;
use crate::key::{KeyForm, Material};
use crate::preset::section::{PresetDefect, Section};
use crate::scheme::usable_keys;
use crate::template::required_header;
use crate::time::{TimeUnit, Window};
use crate::{CannotSign, Key, Rejection, Request, Verified};

/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 8_192;
/// The longest window a preset may ask for.
const WINDOW_S_MAX: u64 = 86_400;

/// A token header, described.
#[derive(Clone, Debug)]
pub(crate) struct Jwt {
    header: String,
    prefix: String,
    algorithm: JwtAlgorithm,
    body_hash: String,
    issuer: Option<String>,
    window: Option<Window>,
    match_kid: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JwtAlgorithm {
    Hs256,
    Es256,
}

impl JwtAlgorithm {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("HS256", Self::Hs256), ("ES256", Self::Es256)];

    const fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Es256 => "ES256",
        }
    }

    const fn fits(self, material: &Material) -> bool {
        match self {
            Self::Hs256 => matches!(material, Material::Secret(_)),
            Self::Es256 => matches!(material, Material::P256 { .. }),
        }
    }

    fn matches(self, material: &Material, message: &str, signature: &[u8]) -> bool {
        match (self, material) {
            (Self::Hs256, Material::Secret(secret)) => Algorithm::HmacSha256
                .mac(secret, &[message.as_bytes()])
                .is_some_and(|mac| bool::from(mac.ct_eq(signature))),
            (Self::Es256, Material::P256 { public }) => {
                use p256::ecdsa::signature::Verifier as _;
                p256::ecdsa::Signature::from_slice(signature)
                    .is_ok_and(|signature| public.verify(message.as_bytes(), &signature).is_ok())
            }
            (_, _) => false,
        }
    }
}

impl Jwt {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, PresetDefect> {
        let past_s = section.number("past_s", 1, WINDOW_S_MAX)?;
        let future_s = section.number("future_s", 0, WINDOW_S_MAX)?;
        Ok(Self {
            header: section
                .header("header")?
                .ok_or_else(|| section.defect("header", "nothing", "a header name"))?,
            prefix: section.text("prefix")?.unwrap_or_default().to_owned(),
            algorithm: section.required_choice("algorithm", JwtAlgorithm::CHOICES)?,
            body_hash: section.required_string("body_hash")?.to_owned(),
            issuer: section.string("issuer")?.map(str::to_owned),
            window: past_s.map(|past_s| Window { past_s, future_s: future_s.unwrap_or(past_s) }),
            match_kid: section.boolean("match_kid")?.unwrap_or(false),
        })
    }

    pub(crate) const fn key_form(&self) -> KeyForm {
        match self.algorithm {
            JwtAlgorithm::Hs256 => KeyForm::Text,
            JwtAlgorithm::Es256 => KeyForm::P256,
        }
    }

    pub(crate) fn headers(&self) -> Vec<String> {
        vec![self.header.clone()]
    }

    pub(crate) fn verify(
        &self,
        request: &Request<'_>,
        keys: &[Key],
        now_ms: u64,
    ) -> Result<Verified, Rejection> {
        let value = required_header(request, &self.header)?;
        let malformed = || Rejection::HeaderMalformed {
            header: self.header.clone(),
            expected: "a signed JSON Web Token".to_owned(),
        };
        let refused = || Rejection::SchemeRefused { header: self.header.clone() };
        let token = value.strip_prefix(self.prefix.as_str()).ok_or_else(refused)?;
        if token.len() > TOKEN_BYTES_MAX {
            return Err(malformed());
        }
        let (message, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
        let (head, claims) = message.split_once('.').ok_or_else(malformed)?;
        let head = decode(head).ok_or_else(malformed)?;
        let [algorithm, kid] = texts(&head, ["/alg", "/kid"]).ok_or_else(malformed)?;
        if algorithm.as_deref() != Some(self.algorithm.name()) {
            return Err(refused());
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed())?;
        let usable = usable_keys(keys, |material| self.algorithm.fits(material))?;
        let named: Vec<&&Key> = usable
            .iter()
            .filter(|key| !self.match_kid || kid.as_deref() == Some(key.kid.as_str()))
            .collect();
        if named.is_empty() {
            return Err(Rejection::KeyUnknown);
        }
        let mut matched = None;
        for key in named {
            if self.algorithm.matches(&key.material, message, &signature) && matched.is_none() {
                matched = Some(key.kid.clone());
            }
        }
        let kid = matched.ok_or(Rejection::NoSignatureMatched)?;
        let claims = decode(claims).ok_or_else(malformed)?;
        let signed_at_ms = self.check_claims(&claims, request.body, now_ms)?;
        Ok(Verified { kid, signed_at_ms })
    }

    fn check_claims(
        &self,
        claims: &str,
        body: &[u8],
        now_ms: u64,
    ) -> Result<Option<u64>, Rejection> {
        let refused = |claim: &str| Rejection::ClaimRefused { claim: claim.to_owned() };
        let hash_at = format!("/{}", self.body_hash);
        let [issuer, time, hash] =
            texts(claims, ["/iss", "/iat", &hash_at]).ok_or_else(|| refused("claims"))?;
        if self.issuer.is_some() && self.issuer != issuer {
            return Err(refused("iss"));
        }
        let hash = hash.ok_or_else(|| refused(&self.body_hash))?;
        if hash != hex::encode(Sha256::digest(body)) {
            return Err(Rejection::BodyAltered);
        }
        let signed_at_ms = time.and_then(|text| TimeUnit::S.parse_ms(&text));
        if let Some(window) = self.window {
            let signed_at_ms = signed_at_ms.ok_or_else(|| refused("iat"))?;
            window.check(signed_at_ms, now_ms, TimeUnit::S)?;
        }
        Ok(signed_at_ms)
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
        let issued_at = now_ms.checked_div(1_000).unwrap_or_default();
        let head = serde_json::json!({ "alg": self.algorithm.name(), "kid": key.kid });
        let mut claims = serde_json::json!({ "iat": issued_at, "iss": self.issuer });
        if let Some(claims) = claims.as_object_mut() {
            let hash = hex::encode(Sha256::digest(unsigned.body));
            claims.insert(self.body_hash.clone(), hash.into());
        }
        let message = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(head.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let mac = Algorithm::HmacSha256
            .mac(secret, &[message.as_bytes()])
            .ok_or(CannotSign::PublicKeyOnly)?;
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac));
        Ok(vec![(self.header.clone(), format!("{}{token}", self.prefix))])
    }
}

fn decode(part: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// The texts at some pointers of a JSON object; `None` when it is no usable object.
fn texts<const N: usize>(json: &str, at: [&str; N]) -> Option<[Option<String>; N]> {
    let pointers: Vec<Pointer> =
        at.iter().map(|text| Pointer::parse(text)).collect::<Option<_>>()?;
    let texts: Vec<Option<String>> = Picker::new(pointers)
        .pick(json)
        .ok()?
        .into_iter()
        .map(|value| value.and_then(scalar).map(std::borrow::Cow::into_owned))
        .collect();
    texts.try_into().ok()
}
