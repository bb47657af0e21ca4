//! `events show` and `dead show`: one event, explained.

use crate::{
    args::Show,
    explain,
    failure::Failure,
    output::{Fact, Page, Report, Tone, shown, shown_lines},
    rows,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ledger::{Bucket, EventKey, Millis, Policy, Row, Status};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use workflow::{
    body,
    ports::{Clock, Ledger},
};

/// Open conflicts of one event that are named.
const CONFLICTS_MAX: usize = 100;
/// Said where the ledger has no row.
const ABSENT: &str = "the ledger has no such event: it never came, it was refused, it is settled \
                      and past its retention, or the key is another";

/// One event, or its absence.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    key: EventKey,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Value>,
    /// Keys of other bodies that came under the same id and are still open.
    conflicts: Vec<EventKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_to: Option<String>,
    #[serde(skip)]
    row: Option<Row>,
    /// What is said instead of a missing or unexpected row.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// What to do where there is no row; one that is there says it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip)]
    now: Millis,
    #[serde(skip)]
    policy: Policy,
}

/// Explains an event.
pub(crate) async fn run(
    ports: &(impl Ledger + Clock),
    policy: &Policy,
    args: &Show,
) -> Result<Shown, Failure> {
    let now = ports.now();
    let row = ports.row(&args.key).await?;
    let mut report = Shown {
        key: args.key.clone(),
        found: row.is_some(),
        event: row.as_ref().map(|row| explain::json(row, now)),
        conflicts: Vec::new(),
        body: None,
        body_base64: None,
        saved_to: None,
        note: None,
        next: None,
        row,
        now,
        policy: policy.clone(),
    };
    match &report.row {
        None => {
            report.note = Some(ABSENT.to_owned());
            report.next = Some(format!("  oncehook events list --source {}", args.key.source()));
        }
        Some(row) => {
            if args.body || args.save_body.is_some() {
                let bytes = body::read(ports, row).await.map_err(unreadable)?;
                report.saved_to =
                    args.save_body.as_deref().map(|path| save(path, &bytes)).transpose()?;
                if args.body {
                    report.keep(bytes);
                }
            }
            report.conflicts = conflicts(ports, &args.key).await?;
        }
    }
    Ok(report)
}

/// The same for a dead event: one that is not says so.
pub(crate) async fn run_dead(
    ports: &(impl Ledger + Clock),
    policy: &Policy,
    args: &Show,
) -> Result<Shown, Failure> {
    let mut report = run(ports, policy, args).await?;
    if let Some(row) = &report.row
        && row.life.status != Status::Dead
    {
        report.note = Some(format!("it is not dead but {}", explain::standing(&row.life)));
    }
    Ok(report)
}

fn unreadable(error: body::BodyError) -> Failure {
    match error {
        body::BodyError::Port(error) => error.into(),
        error @ (body::BodyError::ChunkMissing { .. }
        | body::BodyError::Garbled(_)
        | body::BodyError::Altered) => {
            Failure::unreachable(format!("the body cannot be read: {error}"))
                .with_next("the row is there without --body; replay the event from its provider")
        }
    }
}

fn save(path: &Path, bytes: &[u8]) -> Result<String, Failure> {
    std::fs::write(path, bytes).map_err(|error| {
        Failure::usage(format!("{} cannot be written: {error}", path.display()))
    })?;
    Ok(path.display().to_string())
}

/// Open second bodies of `key`. They are dead rows that wait for a person, so the few parked
/// partitions hold them all.
async fn conflicts(ports: &impl Ledger, key: &EventKey) -> Result<Vec<EventKey>, Failure> {
    if explain::is_conflict(key) {
        return Ok(Vec::new());
    }
    let wanted = |parked: &EventKey| explain::conflict_of(parked) == Some(key.as_str());
    let (ever, most) = (Millis::END_OF_TIME, CONFLICTS_MAX);
    let found = rows::choose(ports, &[Bucket::Parked], ever, most, &wanted).await?;
    Ok(found.entries.into_iter().map(|entry| entry.key).collect())
}

impl Shown {
    fn keep(&mut self, bytes: Vec<u8>) {
        match String::from_utf8(bytes) {
            Ok(text) => self.body = Some(text),
            Err(error) => self.body_base64 = Some(STANDARD.encode(error.as_bytes())),
        }
    }
}

impl Report for Shown {
    fn needs_attention(&self) -> bool {
        let row = self.row.as_ref();
        !self.conflicts.is_empty()
            || row.is_none_or(|row| explain::needs_attention(&row.life, self.now))
    }

    fn write(&self, page: &mut Page) {
        page.heading(shown(self.key.as_str()));
        let mut facts = Vec::new();
        if let Some(note) = &self.note {
            facts.push(Fact::new("note", note.clone()).in_tone(Tone::Warn));
        }
        if let Some(row) = &self.row {
            facts.extend(explain::facts(row, self.now, &self.policy));
            if !self.conflicts.is_empty() {
                let keys = self.conflicts.iter().map(|key| shown(key.as_str()));
                let text = format!(
                    "other bodies came under this id:\n{}",
                    keys.collect::<Vec<_>>().join("\n")
                );
                facts.push(Fact::data("conflicts", text).in_tone(Tone::Bad));
            }
            if let Some(path) = &self.saved_to {
                facts.push(Fact::new("saved", format!("the body, byte for byte, to {path}")));
            }
            facts.push(Fact::new("next", explain::next(row, self.now)));
        }
        facts.extend(self.next.as_deref().map(|next| Fact::new("next", next)));
        page.facts(&facts);
        if let Some(text) = &self.body {
            page.blank();
            page.line(shown_lines(text));
        }
        if let Some(text) = &self.body_base64 {
            page.blank();
            page.toned(Tone::Dim, "the body is not text; in base64:");
            page.line(text);
        }
    }
}
