//! Signature algorithms, each a thin wrapper over a `RustCrypto` primitive.
//!
//! MACs are compared in constant time against every candidate without an early exit. Public-key
//! checks have no secret to leak and may return early.

use hmac::{Hmac, KeyInit as _, Mac as _};
use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use subtle::{Choice, ConstantTimeEq as _};

use crate::key::Material;

/// How the signed text becomes a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    HmacSha1,
    HmacSha256,
    HmacSha512,
    Ed25519,
    EcdsaP256,
    RsaSha256,
}

impl Algorithm {
    pub(crate) const CHOICES: &'static [(&'static str, Self)] = &[
        ("hmac-sha256", Self::HmacSha256),
        ("hmac-sha1", Self::HmacSha1),
        ("hmac-sha512", Self::HmacSha512),
        ("ed25519", Self::Ed25519),
        ("ecdsa-p256-sha256", Self::EcdsaP256),
        ("rsa-sha256", Self::RsaSha256),
    ];

    /// Whether `material` is a key for this algorithm.
    pub(crate) const fn fits(self, material: &Material) -> bool {
        match self {
            Self::HmacSha1 | Self::HmacSha256 | Self::HmacSha512 => {
                matches!(material, Material::Secret(_))
            }
            Self::Ed25519 => matches!(material, Material::Ed25519 { .. }),
            Self::EcdsaP256 => matches!(material, Material::P256 { .. }),
            Self::RsaSha256 => matches!(material, Material::Rsa { .. }),
        }
    }

    /// Whether who verifies cannot sign.
    pub(crate) const fn has_public_keys(self) -> bool {
        match self {
            Self::HmacSha1 | Self::HmacSha256 | Self::HmacSha512 => false,
            Self::Ed25519 | Self::EcdsaP256 | Self::RsaSha256 => true,
        }
    }

    /// Whether `bytes` could be a signature of this algorithm at all.
    pub(crate) const fn plausible_length(self, bytes: usize) -> bool {
        match self {
            Self::HmacSha1 => bytes == 20,
            Self::HmacSha256 => bytes == 32,
            Self::HmacSha512 | Self::Ed25519 => bytes == 64,
            Self::EcdsaP256 => bytes >= 8 && bytes <= 72,
            Self::RsaSha256 => bytes >= 128 && bytes <= 1_024,
        }
    }

    /// Whether `material` made any of `candidates` over the joined `pieces`.
    pub(crate) fn matches(
        self,
        material: &Material,
        pieces: &[&[u8]],
        candidates: &[&[u8]],
    ) -> Choice {
        match material {
            Material::Secret(secret) => match self.mac(secret, pieces) {
                Some(mac) => candidates
                    .iter()
                    .fold(Choice::from(0), |any, candidate| any | mac.ct_eq(candidate)),
                None => Choice::from(0),
            },
            Material::Ed25519 { .. } | Material::P256 { .. } | Material::Rsa { .. } => {
                let digest = Digested::of(self, pieces);
                let any = candidates.iter().any(|candidate| digest.is_signed(material, candidate));
                Choice::from(u8::from(any))
            }
            Material::Certificate { .. } | Material::Pair { .. } | Material::HandshakeToken(_) => {
                Choice::from(0)
            }
        }
    }

    /// The MAC of the joined `pieces`, for the HMAC family.
    pub(crate) fn mac(self, secret: &[u8], pieces: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            Self::HmacSha1 => {
                let mut mac = Hmac::<Sha1>::new_from_slice(secret).ok()?;
                for piece in pieces {
                    mac.update(piece);
                }
                Some(mac.finalize().into_bytes().to_vec())
            }
            Self::HmacSha256 => {
                let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
                for piece in pieces {
                    mac.update(piece);
                }
                Some(mac.finalize().into_bytes().to_vec())
            }
            Self::HmacSha512 => {
                let mut mac = Hmac::<Sha512>::new_from_slice(secret).ok()?;
                for piece in pieces {
                    mac.update(piece);
                }
                Some(mac.finalize().into_bytes().to_vec())
            }
            Self::Ed25519 | Self::EcdsaP256 | Self::RsaSha256 => None,
        }
    }

    /// Signs the joined `pieces`; `None` when the private half is not here.
    pub(crate) fn sign(self, material: &Material, pieces: &[&[u8]]) -> Option<Vec<u8>> {
        match material {
            Material::Secret(secret) => self.mac(secret, pieces),
            Material::Ed25519 { signing, .. } => {
                use ed25519_dalek::Signer as _;
                let signing = signing.as_ref()?;
                Some(signing.sign(&pieces.concat()).to_bytes().to_vec())
            }
            Material::P256 { .. }
            | Material::Rsa { .. }
            | Material::Certificate { .. }
            | Material::Pair { .. }
            | Material::HandshakeToken(_) => None,
        }
    }
}

/// A message, as far as it can be digested before a signature is looked at.
enum Digested {
    /// Ed25519 hashes the message behind a part of the signature (RFC 8032, section 5.1.7), so each
    /// signature costs another pass over it.
    Whole(Vec<u8>),
    EcdsaP256([u8; 32]),
    RsaSha256([u8; 32]),
    /// The algorithm has no public keys.
    Nothing,
}

impl Digested {
    fn of(algorithm: Algorithm, pieces: &[&[u8]]) -> Self {
        let sha256 = || {
            let digest = pieces.iter().fold(Sha256::new(), sha2::Digest::chain_update);
            digest.finalize().into()
        };
        match algorithm {
            Algorithm::Ed25519 => Self::Whole(pieces.concat()),
            Algorithm::EcdsaP256 => Self::EcdsaP256(sha256()),
            Algorithm::RsaSha256 => Self::RsaSha256(sha256()),
            Algorithm::HmacSha1 | Algorithm::HmacSha256 | Algorithm::HmacSha512 => Self::Nothing,
        }
    }

    fn is_signed(&self, material: &Material, signature: &[u8]) -> bool {
        match (self, material) {
            (Self::Whole(message), Material::Ed25519 { public, .. }) => {
                ed25519_dalek::Signature::from_slice(signature)
                    .is_ok_and(|signature| public.verify_strict(message, &signature).is_ok())
            }
            (Self::EcdsaP256(digest), Material::P256 { public }) => {
                p256::ecdsa::Signature::from_der(signature)
                    .is_ok_and(|signature| public.verify_prehash(digest, &signature).is_ok())
            }
            (Self::RsaSha256(digest), Material::Rsa { public }) => {
                rsa_sha256_matches(public, digest, signature)
            }
            (_, _) => false,
        }
    }
}

/// RSASSA-PKCS1-v1_5 over a SHA-256 (RFC 8017, section 8.2).
pub(crate) fn rsa_sha256_matches(
    public: &rsa::PublicKey,
    digest: &[u8; 32],
    signature: &[u8],
) -> bool {
    public.verify(rsa::Pkcs1v15Sign::new::<Sha256>(), digest, signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_has_a_length_that_its_algorithm_makes() {
        for (algorithm, shortest, longest) in [
            (Algorithm::HmacSha1, 20, 20),
            (Algorithm::HmacSha256, 32, 32),
            (Algorithm::HmacSha512, 64, 64),
            (Algorithm::Ed25519, 64, 64),
            (Algorithm::EcdsaP256, 8, 72),
            (Algorithm::RsaSha256, 128, 1_024),
        ] {
            let taken = [shortest - 1, shortest, longest, longest + 1];
            let taken = taken.map(|bytes| algorithm.plausible_length(bytes));
            assert_eq!(taken, [false, true, true, false], "{algorithm:?}");
        }
    }
}
