//! Rows made by hand, for states that no delivery brings about at will.

use ledger::{
    Body, Codec, EventKey, Evidence, Millis, Origin, Policy, Row, SourceName, Token,
    verbs::{Birth, Claim},
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A claimed row with an inline body, as the receiver writes it, and the claim that makes it.
#[must_use]
pub fn claimed_row(
    source: &str,
    event_id: &str,
    event_type: &str,
    body: &[u8],
    received_at: Millis,
) -> (Row, Claim) {
    let source = SourceName::new(source).unwrap();
    let key = EventKey::new(&source, event_id).unwrap();
    let claim =
        Claim { birth: Birth::Claimed, nonce: Token(u128::from(received_at.0)), received_at };
    let sha256: [u8; 32] = Sha256::digest(body).into();
    let row = Row {
        life: claim.life(&key, &Policy::default()),
        effects: Vec::new(),
        evidence: Evidence {
            key,
            source,
            event_type: event_type.to_owned(),
            received_at,
            body: Body {
                codec: Codec::Plain,
                inline: Some(body.to_vec()),
                chunks: 0,
                sha256,
                len: u64::try_from(body.len()).unwrap(),
            },
            identity_hash: Some(sha256),
            headers: BTreeMap::new(),
            kid: "test".to_owned(),
            origin: Origin::Delivery,
            origin_note: None,
        },
    };
    (row, claim)
}
