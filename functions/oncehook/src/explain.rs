//! A row, explained: what happened to it, why it stands where it stands, and what comes next.
//!
//! Pure functions from a row, the time and the policy to sentences. An operator reads them at
//! night: each says whose turn it is and, where it is the operator's, the command.

use crate::{
    output::{Fact, Tone, quoted, shown},
    time::{relative, utc, when},
};
use ledger::{
    Bucket, Codec, EffectOutcome, EventKey, FailureClass, Life, Millis, Origin, Outcome, Policy,
    ROW_FORMAT, Row, Status,
};
use serde_json::{Value, json};

/// Rows under this prefix are second bodies of a known id.
const CONFLICT: &str = "_c#";

/// Whether the key is that of a second body.
pub(crate) fn is_conflict(key: &EventKey) -> bool {
    key.as_str().starts_with(CONFLICT)
}

/// The key of the event that a second body's key speaks of.
pub(crate) fn conflict_of(key: &EventKey) -> Option<&str> {
    key.as_str().strip_prefix(CONFLICT)?.split_once('#').map(|(_, pk)| pk)
}

/// Where a row stands, in one word: the outcome of a settled row, else its status.
pub(crate) fn standing(life: &Life) -> &'static str {
    life.outcome.map_or(life.status.as_str(), Outcome::as_str)
}

/// How that looks.
pub(crate) fn tone(life: &Life) -> Tone {
    match life.status {
        Status::Settled => match life.outcome {
            Some(Outcome::Ignored) => Tone::Dim,
            Some(Outcome::Applied | Outcome::Superseded | Outcome::Resolved) | None => Tone::Good,
        },
        Status::Dead => Tone::Bad,
        Status::Failed | Status::Waiting => Tone::Warn,
        Status::Claimed | Status::Processing => Tone::Plain,
    }
}

/// Whether a worker holds the row and may still run.
pub(crate) fn is_at_work(life: &Life, now: Millis) -> bool {
    life.status == Status::Processing && life.lease.is_some_and(|lease| lease.until >= now)
}

/// Whether the row should have moved by now.
pub(crate) fn is_overdue(life: &Life, now: Millis) -> bool {
    let is_due = life.open.is_some_and(|open| open.due_at <= now);
    life.status.is_pending() && is_due && !is_at_work(life, now)
}

/// Whether a person should look at it.
pub(crate) fn needs_attention(life: &Life, now: Millis) -> bool {
    life.format != ROW_FORMAT || life.status == Status::Dead || is_overdue(life, now)
}

/// The life of a row so far, as labelled sentences.
pub(crate) fn facts(row: &Row, now: Millis, policy: &Policy) -> Vec<Fact> {
    let (evidence, life) = (&row.evidence, &row.life);
    let mut facts = vec![
        Fact::new("status", status(life, now)).in_tone(tone(life)),
        Fact::new("type", shown(&evidence.event_type)),
        Fact::new("received", received(row, now)),
        Fact::data("body", body(row)),
    ];
    if !evidence.headers.is_empty() {
        let lines = evidence.headers.iter().map(|(name, value)| shown(&format!("{name}: {value}")));
        facts.push(Fact::data("headers", lines.collect::<Vec<_>>().join("\n")).in_tone(Tone::Dim));
    }
    facts.push(Fact::new("attempts", attempts(life, policy)));
    if let Some(failure) = &life.failure {
        let at = when(failure.at, now);
        let text = format!("{}\n{}, {at}", shown(&failure.error), class(failure.class));
        let is_past = life.status == Status::Settled;
        facts.push(Fact::new("last error", text).in_tone(if is_past {
            Tone::Dim
        } else {
            Tone::Bad
        }));
    }
    if let Some(at) = life.redriven_at {
        facts.push(Fact::new("redriven", redriven(life, at, now)));
    }
    if let Some(by) = &life.resolved_by {
        let note = life.note.as_deref().unwrap_or("without a reason");
        facts.push(Fact::new("closed by", format!("{}: {}", shown(by), shown(note))));
    }
    if !row.effects.is_empty() {
        let effects = row.effects.iter().map(|effect| {
            let what = match effect.outcome {
                EffectOutcome::Applied => "changed",
                EffectOutcome::Superseded => "left a newer",
            };
            let version = effect.version.map(|version| format!(" (version {version})"));
            format!("{what} {}{}", shown(&effect.entity), version.unwrap_or_default())
        });
        facts.push(Fact::data("effects", effects.collect::<Vec<_>>().join("\n")));
    }
    facts
}

fn status(life: &Life, now: Millis) -> String {
    match (life.status, life.settled_at) {
        (Status::Settled, Some(at)) => format!("settled: {}, {}", standing(life), when(at, now)),
        (Status::Dead, _) => match life.open.map(|open| open.bucket) {
            Some(Bucket::Parked(_)) => "dead, waits for a person".to_owned(),
            Some(Bucket::Dead(_) | Bucket::Pending(_)) | None => "dead".to_owned(),
        },
        (status, _) => status.as_str().to_owned(),
    }
}

fn received(row: &Row, now: Millis) -> String {
    let evidence = &row.evidence;
    let how = match evidence.origin {
        Origin::Delivery => format!("verified with key {}", shown(&evidence.kid)),
        Origin::Replay => "replayed".to_owned(),
        Origin::Reconcile => "found missing and fetched".to_owned(),
    };
    let note = evidence.origin_note.as_deref().map(|note| format!(": {}", shown(note)));
    let at = when(evidence.received_at, now);
    format!("{at} by {}, {how}{}", evidence.source, note.unwrap_or_default())
}

fn body(row: &Row) -> String {
    let body = &row.evidence.body;
    let place = match (&body.inline, body.codec) {
        (Some(_), Codec::Plain) => "in the row".to_owned(),
        (Some(_), Codec::Zstd) => "in the row, compressed".to_owned(),
        (None, _) => format!(
            "in {} beside it",
            crate::output::count(body.chunks as usize, "chunk", "chunks")
        ),
    };
    format!("{} bytes {place}\nsha256 {}", body.len, hex::encode(body.sha256))
}

fn attempts(life: &Life, policy: &Policy) -> String {
    let mut text = format!("{} of {}", life.attempts, policy.attempts_max);
    if life.redrives > 0 {
        text = format!(
            "{text}, after {} of {} automatic redrives",
            life.redrives, policy.redrives_max
        );
    }
    if life.sweeps > 0 {
        let times = crate::output::count(life.sweeps as usize, "time", "times");
        text = format!("{text}, sent again {times} by the steward");
    }
    if let Some(release) = &life.release {
        text = format!("{text}, last by build {}", shown(release));
    }
    text
}

/// The last redrive, and the last one by a person who left a name.
fn redriven(life: &Life, at: Millis, now: Millis) -> String {
    match &life.by_hand {
        None => when(at, now),
        Some(hand) => {
            let who = format!("by {}: {}", shown(&hand.by), shown(&hand.reason));
            if hand.at == at {
                format!("{}, {who}", when(at, now))
            } else {
                format!("{}\nbefore that {}, {who}", when(at, now), when(hand.at, now))
            }
        }
    }
}

/// A failure's class in words.
pub(crate) const fn class(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Permanent => "permanent: trying again cannot help",
        FailureClass::RateLimited => "rate limited",
        FailureClass::Transient => "transient",
    }
}

/// What happens next, and the command where it is a person's turn.
pub(crate) fn next(row: &Row, now: Millis) -> String {
    let life = &row.life;
    if life.format != ROW_FORMAT {
        return format!(
            "written by another build (row format {}, this one knows {ROW_FORMAT}): use that build's oncehook",
            life.format
        );
    }
    let due = life.open.map_or(now, |open| open.due_at);
    let overdue = is_overdue(life, now);
    match life.status {
        Status::Settled => match life.expires_at {
            Some(at) => {
                format!("nothing: it is kept until {}", utc(Millis(at.0.saturating_mul(1_000))))
            }
            None => "nothing: it is kept".to_owned(),
        },
        Status::Dead => dead(row, now),
        Status::Processing if is_at_work(life, now) => {
            let until = life.lease.map_or(now, |lease| lease.until);
            format!("a consumer works on it now; its lease ends {}", relative(until, now))
        }
        Status::Claimed | Status::Processing | Status::Failed | Status::Waiting if overdue => {
            format!(
                "overdue since {}: the steward's next run, within a minute, sends it again; \
                 if it does not:\n  oncehook stuck",
                when(due, now)
            )
        }
        Status::Claimed => format!(
            "its message is in the queue; should no consumer take it, the steward sends it again {}",
            relative(due, now)
        ),
        Status::Processing => format!(
            "its worker died; the message comes back, or the steward sends it again {}",
            relative(due, now)
        ),
        Status::Failed => match life.retry_at {
            Some(at) if at > now => format!("tried again {}", relative(at, now)),
            Some(_) | None => format!(
                "its next try is due: its message is in the queue; should no consumer take it, the \
                 steward sends it again {}",
                relative(due, now)
            ),
        },
        Status::Waiting => {
            let since =
                life.waiting_since.map(|since| format!(", waiting since {}", when(since, now)));
            let at = relative(life.retry_at.unwrap_or(due), now);
            format!("given back without fault{}; tried again {at}", since.unwrap_or_default())
        }
    }
}

fn dead(row: &Row, now: Millis) -> String {
    let (key, life) = (&row.evidence.key, &row.life);
    let word = quoted(key.as_str());
    let redrive = format!("  oncehook dead redrive {word} --by YOU --reason WHY");
    let resolve = format!("  oncehook dead resolve {word} --by YOU --reason WHY");
    if let Some(first) = conflict_of(key) {
        let first = quoted(first);
        return format!(
            "decide which body counts, then close this one:\n  oncehook events show {first} --body\n  \
             oncehook events show {word} --body\n{resolve}"
        );
    }
    let is_permanent = is_permanent(life);
    match life.open {
        Some(open) if matches!(open.bucket, Bucket::Dead(_)) => {
            let at = relative(open.due_at, now);
            format!("redriven by itself {at}, with a fresh budget; sooner:\n{redrive}")
        }
        Some(_) | None if is_permanent => {
            format!("mend the cause and deploy, then\n{redrive}\nor close it:\n{resolve}")
        }
        Some(_) | None => format!(
            "its automatic redrives are spent; when the cause is gone:\n{redrive}\nor close it:\n{resolve}"
        ),
    }
}

/// Whether the last failure was one that trying again cannot help.
pub(crate) fn is_permanent(life: &Life) -> bool {
    life.failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Permanent)
}

/// A row for programs. Without the body.
pub(crate) fn json(row: &Row, now: Millis) -> Value {
    let (evidence, life) = (&row.evidence, &row.life);
    let time = |at: Option<Millis>| at.map(crate::time::rfc3339);
    json!({
        "key": evidence.key,
        "source": evidence.source,
        "type": evidence.event_type,
        "status": life.status,
        "outcome": life.outcome,
        "received_at": time(Some(evidence.received_at)),
        "settled_at": time(life.settled_at),
        "expires_at": time(life.expires_at.map(|at| Millis(at.0.saturating_mul(1_000)))),
        "origin": evidence.origin,
        "origin_note": evidence.origin_note,
        "kid": evidence.kid,
        "body_bytes": evidence.body.len,
        "body_sha256": hex::encode(evidence.body.sha256),
        "headers": evidence.headers,
        "attempts": life.attempts,
        "failure": life.failure.as_ref().map(|failure| json!({
            "error": failure.error, "class": failure.class, "at": time(Some(failure.at)),
        })),
        "retry_at": time(life.retry_at),
        "lease_until": time(life.lease.map(|lease| lease.until)),
        "bucket": life.open.map(|open| open.bucket.to_string()),
        "due_at": time(life.open.map(|open| open.due_at)),
        "redrives": life.redrives,
        "redriven_at": time(life.redriven_at),
        "redriven_by": life.by_hand.as_ref().map(|hand| json!({
            "by": hand.by, "reason": hand.reason, "at": time(Some(hand.at)),
        })),
        "waiting_since": time(life.waiting_since),
        "sweeps": life.sweeps,
        "release": life.release,
        "resolved_by": life.resolved_by,
        "note": life.note,
        "effects": row.effects,
        "format": life.format,
        "overdue": is_overdue(life, now),
        "next": next(row, now),
    })
}
