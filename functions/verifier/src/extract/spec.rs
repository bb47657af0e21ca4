//! What a preset says about its events, and how a delivery becomes events by it.
//!
//! An event is never given an id that the provider did not send unless the preset declares which
//! fields make one. An element of a batch that has no usable id is returned with its reason, so
//! that its neighbours are not held up by it.

use std::borrow::Cow;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use toml::Value;

use super::document::Format;
use super::pick::{Pointer, elements, pick};
use super::place::{Picks, Place, Sight};
use crate::preset::section::{PresetDefect, Section, describe};
use crate::time::TimeUnit;
use crate::{Event, Headers, Request, Unusable, UnusableReason};

/// The most events one delivery may carry.
const EVENTS_MAX: u64 = 500;

/// The `event` table of a preset.
#[derive(Clone, Debug)]
pub(crate) struct EventSpec {
    format: Format,
    batch: Option<Batch>,
    picks: Picks,
    id: IdSpec,
    event_type: Vec<Place>,
    live: Option<(Place, String)>,
    time: Option<(Place, TimeUnit)>,
    identity: Identity,
    require: Vec<Place>,
    proof: Option<Place>,
}

#[derive(Clone, Debug)]
struct Batch {
    at: Pointer,
    max: usize,
}

#[derive(Clone, Debug)]
enum IdSpec {
    /// Pieces joined by colons; one piece stands as it is.
    Composed(Vec<Place>),
    /// A hash over declared fields, for providers that send no id.
    Hash(Vec<Place>),
}

#[derive(Clone, Debug)]
enum Identity {
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
        let mut picks = Picks::default();
        let batch = section.section("batch")?.map(read_batch).transpose()?;
        let read = Self {
            format: read_format(&section)?,
            id: read_id(&section, &mut picks)?,
            event_type: places(&section, "type", section.value("type"), &mut picks)?,
            live: match section.section("live")? {
                None => None,
                Some(live) => {
                    let place = Place::read(&live, "at", live.required_string("at")?, &mut picks)?;
                    let word = live.required_string("is")?.to_owned();
                    live.finish()?;
                    Some((place, word))
                }
            },
            time: match section.section("time")? {
                None => None,
                Some(time) => {
                    let place = Place::read(&time, "at", time.required_string("at")?, &mut picks)?;
                    let unit = time.required_choice("unit", TimeUnit::CHOICES)?;
                    time.finish()?;
                    Some((place, unit))
                }
            },
            identity: read_identity(&section, &mut picks)?,
            require: places(&section, "require", section.value("require"), &mut picks)?,
            proof: read_proof(&section, batch.is_some(), &mut picks)?,
            batch,
            picks,
        };
        section.finish()?;
        Ok(read)
    }

    /// How bodies wrap their documents.
    pub(crate) const fn format(&self) -> &Format {
        &self.format
    }

    /// The JSON document in a stored body.
    pub(crate) fn document<'b>(&self, body: &'b [u8]) -> Result<Cow<'b, str>, UnusableReason> {
        self.format.document(body)
    }

    /// The events of a verified request.
    pub(crate) fn events<'b>(&self, request: &Request<'b>) -> Result<Vec<Event<'b>>, Unusable> {
        match self.format.document(request.body) {
            Err(reason) => Err(self.unreadable(reason, request)),
            Ok(Cow::Borrowed(text)) => self.read_events(text, request),
            Ok(Cow::Owned(text)) => self
                .read_events(&text, request)
                .map(|events| events.into_iter().map(Event::into_owned).collect()),
        }
    }

    fn read_events<'d>(
        &self,
        text: &'d str,
        request: &Request<'d>,
    ) -> Result<Vec<Event<'d>>, Unusable> {
        let read = match &self.batch {
            None => self.single(text, request).map(|event| vec![event]),
            Some(batch) => self.elements(batch, text, request),
        };
        let mut events = read.map_err(|reason| self.unreadable(reason, request))?;
        if self.batch.is_none()
            && let Some(event) = events.first_mut()
            && let Some(reason) = event.unusable.take()
        {
            let event_type = Some(std::mem::take(&mut event.event_type));
            return Err(Unusable {
                reason,
                event_type: event_type.filter(|name| !name.is_empty()),
            });
        }
        Ok(events)
    }

    /// The event that the whole body is, usable or not.
    fn single<'d>(&self, text: &str, request: &Request<'d>) -> Result<Event<'d>, UnusableReason> {
        let values = pick(text, &self.picks.item)?;
        let sight = Sight { item: &values, envelope: &values, headers: request.headers };
        Ok(self.event(&sight, Cow::Borrowed(request.body)))
    }

    /// The elements of a batch.
    fn elements<'d>(
        &self,
        batch: &Batch,
        text: &'d str,
        request: &Request<'_>,
    ) -> Result<Vec<Event<'d>>, UnusableReason> {
        let wanted: Vec<Pointer> =
            std::iter::once(&batch.at).chain(&self.picks.envelope).cloned().collect();
        let values = pick(text, &wanted)?;
        let no_batch = || UnusableReason::NoBatch { at: batch.at.as_str().to_owned() };
        let (list, envelope) = values.split_first().ok_or_else(no_batch)?;
        let (items, found) =
            list.and_then(|list| elements(list, batch.max)).ok_or_else(no_batch)?;
        if found > batch.max {
            return Err(UnusableReason::TooManyEvents { found, max: batch.max });
        }
        Ok(items.into_iter().map(|item| self.element(item, envelope, request.headers)).collect())
    }

    /// One element of a batch, usable or not.
    fn element<'d>(
        &self,
        item: &'d RawValue,
        envelope: &[Option<&'d RawValue>],
        headers: &Headers,
    ) -> Event<'d> {
        let nothing = vec![None; self.picks.item.len()];
        let (values, defect) = match pick(item.get(), &self.picks.item) {
            Ok(values) => (values, None),
            Err(reason) => (nothing, Some(reason)),
        };
        let sight = Sight { item: &values, envelope, headers };
        let mut event = self.event(&sight, Cow::Borrowed(item.get().as_bytes()));
        if let Some(reason) = defect {
            event.unusable = Some(reason);
        }
        if event.unusable.is_some() {
            event.id = format!("sha256:{}", hex::encode(Sha256::digest(&event.body)));
        }
        event
    }

    fn event<'d>(&self, sight: &Sight<'_, '_>, body: Cow<'d, [u8]>) -> Event<'d> {
        let (id, unusable) = match self.id(sight) {
            Ok(id) => (id, self.missing(sight)),
            Err(reason) => (String::new(), Some(reason)),
        };
        Event {
            id,
            event_type: self.event_type(sight),
            live: self
                .live
                .as_ref()
                .and_then(|(place, word)| place.text(sight).map(|text| text == *word)),
            identity: self.identity(sight, &body),
            proof: self
                .proof
                .as_ref()
                .and_then(|place| Some(place.identifier(sight)?.into_owned())),
            occurred_at_ms: self
                .time
                .as_ref()
                .and_then(|(place, unit)| unit.parse_ms(&place.text(sight)?)),
            body,
            unusable,
        }
    }

    fn id(&self, sight: &Sight<'_, '_>) -> Result<String, UnusableReason> {
        match &self.id {
            IdSpec::Composed(places) => {
                let mut pieces = Vec::with_capacity(places.len());
                for place in places {
                    let piece = place.identifier(sight).ok_or_else(|| {
                        UnusableReason::NoEventId { at: place.as_str().to_owned() }
                    })?;
                    pieces.push(piece);
                }
                Ok(match pieces.as_slice() {
                    [single] => single.clone().into_owned(),
                    many => many
                        .iter()
                        .map(|piece| piece.replace('%', "%25").replace(':', "%3A"))
                        .collect::<Vec<_>>()
                        .join(":"),
                })
            }
            IdSpec::Hash(places) => {
                if places.iter().all(|place| place.raw(sight).is_none()) {
                    let names: Vec<&str> = places.iter().map(Place::as_str).collect();
                    return Err(UnusableReason::NoEventId { at: names.join(", ") });
                }
                Ok(format!("sha256:{}", hex::encode(hash(places, sight))))
            }
        }
    }

    fn missing(&self, sight: &Sight<'_, '_>) -> Option<UnusableReason> {
        self.require
            .iter()
            .chain(&self.proof)
            .find(|place| place.identifier(sight).is_none())
            .map(|place| UnusableReason::RequiredMissing { at: place.as_str().to_owned() })
    }

    /// The declared pieces that are there, joined by dots.
    fn event_type(&self, sight: &Sight<'_, '_>) -> String {
        let pieces: Vec<Cow<'_, str>> =
            self.event_type.iter().filter_map(|place| place.identifier(sight)).collect();
        pieces.join(".")
    }

    fn identity(&self, sight: &Sight<'_, '_>, body: &[u8]) -> Option<[u8; 32]> {
        match &self.identity {
            Identity::None => None,
            Identity::Body => Some(Sha256::digest(body).into()),
            Identity::Fields(places) => Some(hash(places, sight)),
        }
    }

    /// What could not be read, with the event type that the headers alone give away.
    fn unreadable(&self, reason: UnusableReason, request: &Request<'_>) -> Unusable {
        let name = self.event_type(&Sight { item: &[], envelope: &[], headers: request.headers });
        Unusable { reason, event_type: Some(name).filter(|name| !name.is_empty()) }
    }
}

/// SHA-256 over the values as written, each with its presence and length, so that no two different
/// lists of values feed the same bytes.
fn hash(places: &[Place], sight: &Sight<'_, '_>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for place in places {
        match place.raw(sight) {
            None => digest.update([0]),
            Some(text) => {
                digest.update([1]);
                digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
                digest.update(text.as_bytes());
            }
        }
    }
    digest.finalize().into()
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
