//! A shared secret that travels in a header.
//!
//! It does not cover the body: whoever sees one request can make another. TLS is all that protects
//! it, so a preset of this kind says that the body is not authenticated.

use subtle::ConstantTimeEq as _;

use crate::key::Material;
use crate::preset::section::{PresetDefect, Section};
use crate::scheme::usable_keys;
use crate::template::required_header;
use crate::{CannotSign, Key, Rejection, Request, Verified};

/// A header whose value is the secret.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    header: String,
}

impl Token {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, PresetDefect> {
        let header = section
            .header("header")?
            .ok_or_else(|| section.defect("header", "nothing", "a header name"))?;
        Ok(Self { header })
    }

    pub(crate) fn at(header: &str) -> Self {
        Self { header: header.to_ascii_lowercase() }
    }

    pub(crate) fn headers(&self) -> Vec<String> {
        vec![self.header.clone()]
    }

    pub(crate) fn verify(
        &self,
        request: &Request<'_>,
        keys: &[Key],
    ) -> Result<Verified, Rejection> {
        let value = required_header(request, &self.header)?;
        let keys = usable_keys(keys, |material| matches!(material, Material::Secret(_)))?;
        let mut kid = None;
        for key in keys {
            if let Material::Secret(secret) = &key.material
                && bool::from(secret.ct_eq(value.as_bytes()))
                && kid.is_none()
            {
                kid = Some(key.kid.clone());
            }
        }
        kid.map(unsigned_time).ok_or(Rejection::NoSignatureMatched)
    }

    pub(crate) fn sign(&self, key: &Key) -> Result<Vec<(String, String)>, CannotSign> {
        let Material::Secret(secret) = &key.material else {
            return Err(CannotSign::PublicKeyOnly);
        };
        let value = String::from_utf8_lossy(secret).into_owned();
        Ok(vec![(self.header.clone(), value)])
    }
}

pub(super) const fn unsigned_time(kid: String) -> Verified {
    Verified { kid, signed_at_ms: None }
}
