//! The row's item: one event in the ledger table.
//!
//! Attribute names are those of the design, one to one. `redriven_by`, `redrive_reason` and
//! `redriven_by_at` say who last brought the row back by hand, why and when: absent where that was
//! nobody who left a name, as in the SQS console. Rows of another format are [`foreign`].

use super::{DecodeError, Item, Reader, bytes, foreign, needed, number, text};
use aws_sdk_dynamodb::types::AttributeValue;
use ledger::{
    Body, Bucket, ByHand, Codec, Effect, EffectOutcome, EventKey, Evidence, Failure, FailureClass,
    Lease, Life, Millis, Open, Origin, Outcome, ROW_FORMAT, Row, Seconds, SourceName, Status,
    Token, Unit, Version,
};
use std::collections::BTreeMap;

/// A row as stored.
#[must_use]
pub fn encode(row: &Row) -> Item {
    let mut fields = Fields(Item::new());
    evidence(&mut fields, &row.evidence);
    life(&mut fields, &row.life);
    if !row.effects.is_empty() {
        fields.put("effects", effects(&row.effects));
    }
    fields.0
}

/// Collects attributes, leaving out what is absent or empty.
struct Fields(Item);

impl Fields {
    fn put(&mut self, name: &'static str, value: AttributeValue) {
        self.0.insert(name.to_owned(), value);
    }

    fn text(&mut self, name: &'static str, value: &(impl ToString + ?Sized)) {
        let value = value.to_string();
        if !value.is_empty() {
            self.put(name, AttributeValue::S(value));
        }
    }

    fn optional(&mut self, name: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.put(name, AttributeValue::S(value.to_string()));
        }
    }

    fn number(&mut self, name: &'static str, value: Option<u64>) {
        if let Some(value) = value {
            self.put(name, number(value));
        }
    }

    fn time(&mut self, name: &'static str, at: Option<Millis>) {
        self.number(name, at.map(|at| at.0));
    }
}

fn evidence(fields: &mut Fields, evidence: &Evidence) {
    fields.put("pk", text(evidence.key.as_str()));
    fields.text("source", &evidence.source);
    fields.text("event_type", &evidence.event_type);
    fields.time("received_at", Some(evidence.received_at));
    fields.text("day", &evidence.day());
    let body = &evidence.body;
    if let Some(inline) = body.inline.as_ref().filter(|inline| !inline.is_empty()) {
        fields.put("body", bytes(inline.as_slice()));
    }
    fields.text("body_codec", &body.codec);
    fields.number("body_chunks", (body.chunks > 0).then_some(body.chunks.into()));
    fields.text("body_sha256", &hex::encode(body.sha256));
    fields.number("body_len", Some(body.len));
    fields.optional("identity_hash", evidence.identity_hash.map(hex::encode));
    if !evidence.headers.is_empty() {
        let headers = evidence.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), text(value.as_str())));
        fields.put("headers", AttributeValue::M(headers.collect()));
    }
    fields.text("kid", &evidence.kid);
    fields.text("origin", &evidence.origin);
    fields.optional("origin_note", evidence.origin_note.as_ref());
}

fn life(fields: &mut Fields, life: &Life) {
    fields.number("format", Some(life.format.into()));
    fields.text("status", &life.status);
    fields.optional("outcome", life.outcome);
    fields.text("claim_nonce", &life.claim_nonce);
    fields.number("epoch", Some(life.epoch));
    fields.number("attempts", Some(life.attempts.into()));
    fields.optional("lease_owner", life.lease.map(|lease| lease.owner));
    fields.time("lease_until", life.lease.map(|lease| lease.until));
    if let Some(failure) = &life.failure {
        fields.text("error", &failure.error);
        fields.text("failure_class", &failure.class);
        fields.time("failed_at", Some(failure.at));
    }
    fields.time("retry_at", life.retry_at);
    fields.optional("release", life.release.as_ref());
    fields.number("redrives", (life.redrives > 0).then_some(life.redrives.into()));
    fields.time("redriven_at", life.redriven_at);
    if let Some(hand) = &life.by_hand {
        fields.text("redriven_by", &hand.by);
        fields.text("redrive_reason", &hand.reason);
        fields.time("redriven_by_at", Some(hand.at));
    }
    fields.optional("budget_release", life.budget_release.as_ref());
    fields.time("waiting_since", life.waiting_since);
    fields.number("sweeps", (life.sweeps > 0).then_some(life.sweeps.into()));
    fields.optional("bucket", life.open.map(|open| open.bucket));
    fields.time("due_at", life.open.map(|open| open.due_at));
    fields.time("settled_at", life.settled_at);
    fields.number("expires_at", life.expires_at.map(|at| at.0));
    fields.optional("resolved_by", life.resolved_by.as_ref());
    fields.optional("note", life.note.as_ref());
}

/// What an event changed, as the settled row lists it.
pub(crate) fn effects(effects: &[Effect]) -> AttributeValue {
    let effects = effects.iter().map(|effect| {
        let mut fields = Fields(Item::new());
        fields.text("entity", &effect.entity);
        fields.text("outcome", &effect.outcome);
        if let Some(version) = effect.version {
            fields.put("version", number(version));
        }
        AttributeValue::M(fields.0)
    });
    AttributeValue::L(effects.collect())
}

/// Reads a row. Of a row of another format only the key and [`Life::format`] can be relied on; a
/// format that is no number reads as zero, which no build writes.
pub fn decode(item: &Item) -> Result<Row, DecodeError> {
    let reader = Reader(item);
    let key = reader.parsed("pk", "<source>#<event id>", |text| EventKey::parse(text).ok())?;
    let key = needed(key, "pk", "<source>#<event id>")?;
    let format = reader.number("format").unwrap_or_default().unwrap_or(0);
    if format != ROW_FORMAT {
        return foreign::read(reader, key, format);
    }
    Ok(Row {
        evidence: read_evidence(reader, key)?,
        life: read_life(reader)?,
        effects: read_effects(reader)?,
    })
}

fn read_evidence(reader: Reader<'_>, key: EventKey) -> Result<Evidence, DecodeError> {
    let source = reader.parsed("source", "a source name", |text| SourceName::new(text).ok())?;
    let text_of = |name| Ok(reader.text(name)?.unwrap_or_default().to_owned());
    Ok(Evidence {
        key,
        source: needed(source, "source", "a source name")?,
        event_type: text_of("event_type")?,
        received_at: needed(time(reader, "received_at")?, "received_at", "a time in ms")?,
        body: read_body(reader)?,
        identity_hash: reader.hash("identity_hash")?,
        headers: read_headers(reader)?,
        kid: text_of("kid")?,
        origin: needed(word(reader, "origin", Origin::parse)?, "origin", "an origin")?,
        origin_note: reader.text("origin_note")?.map(str::to_owned),
    })
}

fn read_body(reader: Reader<'_>) -> Result<Body, DecodeError> {
    let chunks = reader.number("body_chunks")?.unwrap_or(0);
    let inline = reader.bytes("body")?.unwrap_or_default().to_vec();
    Ok(Body {
        codec: needed(word(reader, "body_codec", Codec::parse)?, "body_codec", "a codec")?,
        inline: (chunks == 0).then_some(inline),
        chunks,
        sha256: needed(reader.hash("body_sha256")?, "body_sha256", "a hash")?,
        len: needed(reader.number("body_len")?, "body_len", "a number of bytes")?,
    })
}

fn read_headers(reader: Reader<'_>) -> Result<BTreeMap<String, String>, DecodeError> {
    let Some(headers) = reader.map("headers")? else {
        return Ok(BTreeMap::new());
    };
    let readable = |(name, value): (&String, &AttributeValue)| {
        let value = value.as_s().ok()?;
        Some((name.clone(), value.clone()))
    };
    let headers: Option<_> = headers.iter().map(readable).collect();
    headers.ok_or(DecodeError {
        attribute: "headers",
        found: "unreadable",
        expected: "a map of texts",
    })
}

fn read_life(reader: Reader<'_>) -> Result<Life, DecodeError> {
    let token = |name| reader.parsed(name, "32 hexadecimal digits", Token::parse);
    let owned = |name| Ok(reader.text(name)?.map(str::to_owned));
    let class = word(reader, "failure_class", FailureClass::parse)?;
    let lease = token("lease_owner")?.zip(time(reader, "lease_until")?);
    let open = word(reader, "bucket", Bucket::parse)?.zip(time(reader, "due_at")?);
    let error = reader.text("error")?.unwrap_or_default();
    Ok(Life {
        format: ROW_FORMAT,
        status: needed(word(reader, "status", Status::parse)?, "status", "a status")?,
        outcome: word(reader, "outcome", Outcome::parse)?,
        claim_nonce: needed(token("claim_nonce")?, "claim_nonce", "32 hexadecimal digits")?,
        epoch: needed(reader.number("epoch")?, "epoch", "a whole number")?,
        attempts: needed(reader.number("attempts")?, "attempts", "a whole number")?,
        lease: lease.map(|(owner, until)| Lease { owner, until }),
        failure: class.zip(time(reader, "failed_at")?).map(|(class, at)| Failure {
            error: error.to_owned(),
            class,
            at,
        }),
        retry_at: time(reader, "retry_at")?,
        release: owned("release")?,
        redrives: reader.number("redrives")?.unwrap_or(0),
        redriven_at: time(reader, "redriven_at")?,
        by_hand: read_by_hand(reader)?,
        budget_release: owned("budget_release")?,
        waiting_since: time(reader, "waiting_since")?,
        sweeps: reader.number("sweeps")?.unwrap_or(0),
        open: open.map(|(bucket, due_at)| Open { bucket, due_at }),
        settled_at: time(reader, "settled_at")?,
        expires_at: reader.number("expires_at")?.map(Seconds),
        resolved_by: owned("resolved_by")?,
        note: owned("note")?,
    })
}

fn read_by_hand(reader: Reader<'_>) -> Result<Option<ByHand>, DecodeError> {
    let Some(at) = time(reader, "redriven_by_at")? else { return Ok(None) };
    let text_of = |name| Ok(reader.text(name)?.unwrap_or_default().to_owned());
    Ok(Some(ByHand { by: text_of("redriven_by")?, reason: text_of("redrive_reason")?, at }))
}

fn read_effects(reader: Reader<'_>) -> Result<Vec<Effect>, DecodeError> {
    let bad = DecodeError {
        attribute: "effects",
        found: "unreadable",
        expected: "a list of entity, outcome and version",
    };
    let read = |value: &AttributeValue| {
        let effect = Reader(value.as_m().map_err(|_| bad)?);
        let version = effect.read("version", "a version", |value| {
            Version::from_text(value.as_n().ok()?, Unit::Integer).ok()
        })?;
        Ok(Effect {
            entity: effect.text("entity")?.ok_or(bad)?.to_owned(),
            outcome: word(effect, "outcome", EffectOutcome::parse)?.ok_or(bad)?,
            version,
        })
    };
    reader.list("effects")?.iter().map(read).collect()
}

fn time(reader: Reader<'_>, attribute: &'static str) -> Result<Option<Millis>, DecodeError> {
    Ok(reader.number(attribute)?.map(Millis))
}

fn word<T>(
    reader: Reader<'_>,
    attribute: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, DecodeError> {
    reader.parsed(attribute, "a word of this row format", parse)
}

#[cfg(test)]
mod tests;
