//! Rows of another format: read just far enough to be recognised.
//!
//! Nobody acts on such a row, so a guess at its attributes can do no harm, while an error would
//! hide what it is. Only the key and the format number can be relied on.

use super::{DecodeError, Reader, needed};
use ledger::{
    Body, Codec, EventKey, Evidence, Life, Millis, Origin, Row, SourceName, Status, Token,
};
use std::collections::BTreeMap;

/// The row of `key`, as far as it can be read.
pub(super) fn read(reader: Reader<'_>, key: EventKey, format: u32) -> Result<Row, DecodeError> {
    let text = |name: &str| reader.0.get(name).and_then(|value| value.as_s().ok());
    let at = |name| reader.number(name).ok().flatten().map(Millis);
    // Every event's key names its source; internal rows name it in the attribute.
    let stored = text("source").map(String::as_str);
    let mut source = stored.into_iter().chain(key.as_str().split('#'));
    let source = source.find_map(|name| SourceName::new(name).ok());
    let status = text("status").and_then(|word| Status::parse(word));
    Ok(Row {
        life: Life {
            format,
            status: status.unwrap_or(Status::Claimed),
            epoch: reader.number("epoch").ok().flatten().unwrap_or(0),
            attempts: reader.number("attempts").ok().flatten().unwrap_or(0),
            retry_at: at("retry_at"),
            settled_at: at("settled_at"),
            ..Life::claimed(Token(0))
        },
        evidence: Evidence {
            source: needed(source, "source", "a source name")?,
            event_type: text("event_type").cloned().unwrap_or_default(),
            received_at: at("received_at").unwrap_or_default(),
            body: Body { codec: Codec::Plain, inline: None, chunks: 0, sha256: [0; 32], len: 0 },
            identity_hash: None,
            headers: BTreeMap::new(),
            kid: String::new(),
            origin: Origin::Delivery,
            origin_note: None,
            key,
        },
        effects: Vec::new(),
    })
}
