//! What a preset says about its events: the table `event`, read and validated.

use toml::Value;

use super::document::Format;
use super::pick::Picker;
use super::place::{Picks, Place};
use super::pointer::Pointer;
use crate::preset::section::{PresetDefect, Section, describe};
use crate::time::TimeUnit;

/// The most events one delivery may carry.
const EVENTS_MAX: u64 = 500;

/// The `event` table of a preset.
#[derive(Clone, Debug)]
pub(crate) struct EventSpec {
    pub(super) format: Format,
    pub(super) batch: Option<Batch>,
    /// What is read of an event.
    pub(super) item: Picker,
    /// What is read around the events of a batch, and the batch.
    pub(super) envelope: Picker,
    /// The outermost members of a document that anything is read of.
    pub(super) members: Vec<String>,
    pub(super) id: IdSpec,
    pub(super) event_type: Vec<Place>,
    pub(super) live: Option<(Place, String)>,
    pub(super) time: Option<(Place, TimeUnit)>,
    pub(super) identity: Identity,
    pub(super) require: Vec<Place>,
    pub(super) proof: Option<Place>,
}

#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) at: Pointer,
    pub(super) max: usize,
}

#[derive(Clone, Debug)]
pub(super) enum IdSpec {
    /// Pieces joined by colons; one piece stands as it is.
    Composed(Vec<Place>),
    /// A hash over declared fields, for providers that send no id.
    Hash(Vec<Place>),
}

#[derive(Clone, Debug)]
pub(super) enum Identity {
    Body,
    Fields(Vec<Place>),
    None,
}

#[derive(Clone, Copy)]
enum FormatKind {
    Json,
    Form,
    JsonOrForm,
    Braintree,
}

impl EventSpec {
    pub(crate) fn read(section: Section<'_>) -> Result<Self, PresetDefect> {
        let batch = section.section("batch")?.map(read_batch).transpose()?;
        let mut picks = Picks { in_batch: batch.is_some(), ..Picks::default() };
        let mut read = Self {
            format: read_format(&section)?,
            id: read_id(&section, &mut picks)?,
            event_type: places(&section, "type", section.value("type"), &mut picks)?,
            live: read_live(&section, &mut picks)?,
            time: read_time(&section, &mut picks)?,
            identity: read_identity(&section, &mut picks)?,
            require: places(&section, "require", section.value("require"), &mut picks)?,
            proof: read_proof(&section, batch.is_some(), &mut picks)?,
            item: Picker::new(picks.item),
            envelope: match &batch {
                None => Picker::new(picks.envelope),
                Some(batch) => Picker::with_list(picks.envelope, batch.at.clone()),
            },
            members: Vec::new(),
            batch,
        };
        let document = if read.batch.is_some() { &read.envelope } else { &read.item };
        read.members = document.members().map(str::to_owned).collect();
        section.finish()?;
        Ok(read)
    }

    /// How bodies wrap their documents.
    pub(crate) const fn format(&self) -> &Format {
        &self.format
    }
}

/// What says that an event is a live-mode one.
fn read_live(
    section: &Section<'_>,
    picks: &mut Picks,
) -> Result<Option<(Place, String)>, PresetDefect> {
    let Some(live) = section.section("live")? else { return Ok(None) };
    let place = Place::read(&live, "at", live.required_string("at")?, picks)?;
    let word = live.required_string("is")?.to_owned();
    live.finish()?;
    Ok(Some((place, word)))
}

/// When an event happened.
fn read_time(
    section: &Section<'_>,
    picks: &mut Picks,
) -> Result<Option<(Place, TimeUnit)>, PresetDefect> {
    let Some(time) = section.section("time")? else { return Ok(None) };
    let place = Place::read(&time, "at", time.required_string("at")?, picks)?;
    let unit = time.required_choice("unit", TimeUnit::CHOICES)?;
    time.finish()?;
    Ok(Some((place, unit)))
}

fn read_batch(section: Section<'_>) -> Result<Batch, PresetDefect> {
    let text = section.required_string("at")?;
    let at = Pointer::parse(text)
        .ok_or_else(|| section.defect("at", format!("`{text}`"), "a JSON Pointer"))?;
    let max = section.number("max", 1, EVENTS_MAX)?.unwrap_or(EVENTS_MAX);
    section.finish()?;
    Ok(Batch { at, max: usize::try_from(max).unwrap_or(usize::MAX) })
}

fn read_format(section: &Section<'_>) -> Result<Format, PresetDefect> {
    const KINDS: &[(&str, FormatKind)] = &[
        ("json", FormatKind::Json),
        ("form", FormatKind::Form),
        ("json-or-form", FormatKind::JsonOrForm),
        ("braintree", FormatKind::Braintree),
    ];
    let kind = section.choice("format", KINDS)?.unwrap_or(FormatKind::Json);
    Ok(match kind {
        FormatKind::Form => Format::Form,
        FormatKind::Braintree => Format::Braintree,
        FormatKind::Json => {
            Format::Json { form_field: section.string("form_field")?.map(str::to_owned) }
        }
        FormatKind::JsonOrForm => {
            Format::JsonOrForm { form_field: section.string("form_field")?.map(str::to_owned) }
        }
    })
}

fn read_id(section: &Section<'_>, picks: &mut Picks) -> Result<IdSpec, PresetDefect> {
    let allowed = "a place, a list of places, or { hash = [places] }";
    match section.value("id") {
        Some(Value::Table(_)) => {
            let table = section.required_section("id")?;
            let fields = places(&table, "hash", table.value("hash"), picks)?;
            if fields.is_empty() {
                return Err(table.defect("hash", "nothing", "a list of places"));
            }
            table.finish()?;
            Ok(IdSpec::Hash(fields))
        }
        value => {
            let pieces = places(section, "id", value, picks)?;
            if pieces.is_empty() {
                return Err(section.defect("id", "nothing", allowed));
            }
            Ok(IdSpec::Composed(pieces))
        }
    }
}

fn read_identity(section: &Section<'_>, picks: &mut Picks) -> Result<Identity, PresetDefect> {
    match section.value("identity") {
        Some(Value::String(word)) => match word.as_str() {
            "body" => Ok(Identity::Body),
            "none" => Ok(Identity::None),
            other => Err(section.defect(
                "identity",
                format!("`{other}`"),
                "`body`, `none`, or a list of places",
            )),
        },
        None => Err(section.defect("identity", "nothing", "`body`, `none`, or a list of places")),
        value => {
            let fields = places(section, "identity", value, picks)?;
            if fields.is_empty() {
                return Err(section.defect("identity", "an empty list", "a list of places"));
            }
            Ok(Identity::Fields(fields))
        }
    }
}

/// What a delivery is proven by, where that may serve one event only.
fn read_proof(
    section: &Section<'_>,
    in_batch: bool,
    picks: &mut Picks,
) -> Result<Option<Place>, PresetDefect> {
    let Some(text) = section.string("one_event_per")? else { return Ok(None) };
    if in_batch {
        let allowed = "nothing beside `batch`: a delivery of many events has one proof";
        return Err(section.defect("one_event_per", format!("`{text}`"), allowed));
    }
    Place::read(section, "one_event_per", text, picks).map(Some)
}

/// One place or a list of places; nothing is an empty list.
fn places(
    section: &Section<'_>,
    key: &str,
    value: Option<&Value>,
    picks: &mut Picks,
) -> Result<Vec<Place>, PresetDefect> {
    let allowed = "a place or a list of places";
    match value {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Place::read(section, key, text, picks)?]),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| match item.as_str() {
                Some(text) => Place::read(section, key, text, picks),
                None => Err(section.defect(key, describe(item), allowed)),
            })
            .collect(),
        Some(other) => Err(section.defect(key, describe(other), allowed)),
    }
}
