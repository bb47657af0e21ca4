//! HTTP Basic credentials in `Authorization` (RFC 7617).
//!
//! Like a token they travel with every request and cover nothing of it. The password may contain
//! colons, the user name may not.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::key::Material;
use crate::scheme::token::unsigned_time;
use crate::scheme::usable_keys;
use crate::template::required_header;
use crate::{CannotSign, Key, Rejection, Request, Verified};

pub(crate) const HEADER: &str = "authorization";

pub(crate) fn verify(request: &Request<'_>, keys: &[Key]) -> Result<Verified, Rejection> {
    let value = required_header(request, HEADER)?;
    let malformed = || Rejection::HeaderMalformed {
        header: HEADER.to_owned(),
        expected: "`Basic` and canonical base64 of user:password".to_owned(),
    };
    let (scheme, encoded) = value.split_once(' ').ok_or_else(malformed)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(Rejection::SchemeRefused { header: HEADER.to_owned() });
    }
    let credentials = STANDARD.decode(encoded).map_err(|_| malformed())?;
    let keys = usable_keys(keys, |material| matches!(material, Material::Pair { .. }))?;
    let mut kid = None;
    for key in keys {
        if let Material::Pair { name, secret } = &key.material {
            let expected = Zeroizing::new([name.as_bytes(), b":", secret].concat());
            if bool::from(expected.ct_eq(&credentials)) && kid.is_none() {
                kid = Some(key.kid.clone());
            }
        }
    }
    kid.map(unsigned_time).ok_or(Rejection::NoSignatureMatched)
}

pub(crate) fn sign(key: &Key) -> Result<Vec<(String, String)>, CannotSign> {
    let Material::Pair { name, secret } = &key.material else {
        return Err(CannotSign::PublicKeyOnly);
    };
    let credentials = [name.as_bytes(), b":", secret].concat();
    Ok(vec![(HEADER.to_owned(), format!("Basic {}", STANDARD.encode(credentials)))])
}
