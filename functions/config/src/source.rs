//! A source: one configured endpoint.

use crate::{
    Order, Projection,
    error::{Report, quote},
    fetch,
    param::{self, Param},
    preset,
    projection::read,
    section::Section,
};
use ledger::SourceName;
use std::{collections::BTreeMap, sync::Arc};
use thiserror::Error;

/// One configured endpoint: who signs, with which secret, and what its events change.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name, which is part of its URL and of each of its ledger keys.
    pub name: SourceName,
    /// The preset it is based on; the source's own name where it describes everything itself.
    pub preset_name: String,
    /// The provider's description, the source's own tables laid over the preset's.
    pub preset: verifier::Preset,
    /// The name under which the signing secret keeps this source's keys. Never a key.
    pub secret: String,
    /// `Some(true)`: only live-mode events are worked; `Some(false)`: only test-mode ones;
    /// `None`: both, or the provider knows no modes.
    pub live: Option<bool>,
    /// The parameter that `live` was read from: `X` of `ONCEHOOK_PARAM_X`.
    pub live_from: Option<String>,
    /// What is done with verified events.
    pub mode: Mode,
    /// What events change, in the order of the file.
    pub projections: Vec<Projection>,
}

/// What a source does with verified events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each is worked once.
    #[default]
    Enforce,
}

impl Source {
    /// The projections that events of this type go through.
    pub fn projections_on(&self, event_type: &str) -> impl Iterator<Item = &Projection> {
        self.projections.iter().filter(move |projection| projection.is_on(event_type))
    }

    /// Whether an event of this type may be worked again from the ledger: not where it adds to
    /// something, since what it added is there already and nothing tells it from the first time.
    /// Everything else is kept from repeating itself by its version, its number or the provider.
    pub fn is_replayable(&self, event_type: &str) -> Result<(), NotReplayable> {
        match self.projections_on(event_type).find(|projection| projection.order == Order::None) {
            None => Ok(()),
            Some(projection) => Err(NotReplayable {
                event_type: event_type.to_owned(),
                entity_type: projection.entity_type.clone(),
            }),
        }
    }
}

/// Why an event is not worked a second time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "an event of type {event_type} adds to {entity_type} (strategy = \"none\"): worked again, it \
     would count twice"
)]
pub struct NotReplayable {
    /// The event's type.
    pub event_type: String,
    /// What it adds to.
    pub entity_type: String,
}

/// What was read of a source: the source, unless something was reported, and the projections that
/// are good in themselves.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) source: Option<Source>,
    pub(crate) projections: Vec<read::Draft>,
}

const MODES: &[(&str, Mode)] = &[("enforce", Mode::Enforce)];
const LIVE: &[(&str, bool)] = &[("true", true), ("false", false)];

/// The keys of a source that are not its preset's.
pub(crate) const KEYS: &[&str] = &["preset", "secret", "live", "mode", "projections", "fetch"];

/// Reads one table `[sources.<name>]`.
pub(crate) fn read(
    mut section: Section<'_>,
    report: &mut Report<'_>,
    name: &str,
    param: Param<'_>,
    shared: &mut fetch::Drafts,
) -> Draft {
    let tables = section.sections(report, "projections");
    let mut projections: Vec<read::Draft> =
        tables.into_iter().filter_map(|table| read::read(table, report, name)).collect();
    rank(&mut projections);
    let mut own = fetch::read(&mut section, report);
    for draft in &mut projections {
        find_fetch(draft, &mut own, shared, report);
    }
    fetch::refuse_unused(&own, report);
    let mut source = read_source(&mut section, report, name, param);
    if let Some(source) = &mut source {
        source.projections = projections.iter().map(|draft| draft.projection.clone()).collect();
    }
    Draft { source, projections }
}

/// Gives a projection that has the provider asked the table that says how.
fn find_fetch(
    draft: &mut read::Draft,
    own: &mut fetch::Drafts,
    shared: &mut fetch::Drafts,
    report: &mut Report<'_>,
) {
    let Some(key) = draft.projection.order.fetches() else {
        return;
    };
    let entity_type = draft.projection.entity_type.as_str();
    let table = match own.get_mut(entity_type) {
        Some(table) => Some(table),
        None => shared.get_mut(entity_type),
    };
    match table {
        Some(Some(table)) => {
            table.is_used = true;
            draft.projection.fetch = Some(Arc::clone(&table.fetch));
        }
        // It is there, and what is wrong with it has been said.
        Some(None) => {}
        None => {
            let source = draft.path.split(".projections").next().unwrap_or_default();
            let allowed = format!(
                "`fetch` beside a table [{source}.fetch.{entity_type}] or [fetch.{entity_type}]"
            );
            let (at, path) = (draft.order_at.clone(), format!("{}.order.{key}", draft.path));
            report.refuse(at, path, "`fetch` without a table that says how", allowed);
        }
    }
}

fn read_source(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    name: &str,
    param: Param<'_>,
) -> Option<Source> {
    let source_name = SourceName::new(name);
    if source_name.is_err() {
        let allowed = "1 to 64 of a-z, 0-9 and `-`, beginning with a letter or digit";
        let found = format!("the source name {}", quote(name));
        report.refuse(section.line_at(), "sources", found, allowed);
    }
    let secret = read_secret(section, report);
    let live = match section.value("live") {
        None => Some(None),
        Some(_) => param::choice(section, report, "live", LIVE, param).map(Some),
    };
    let live_from = param::read_from(section, "live");
    let mode = match section.value("mode") {
        None => Some(Mode::default()),
        Some(_) => param::choice(section, report, "mode", MODES, param),
    };
    let (preset_name, preset) = preset::read(section, report, name)?;
    Some(Source {
        name: source_name.ok()?,
        preset_name,
        preset,
        secret: secret?,
        live: live?,
        live_from,
        mode: mode?,
        projections: Vec::new(),
    })
}

/// The name of a secret. What is refused is not repeated: it may be a key pasted by mistake.
fn read_secret(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<String> {
    let allowed = "the name of an entry of the signing secret (never a key): \
                   1 to 64 of a-z, 0-9 and `-`";
    let text = section.required_string(report, "secret", allowed)?;
    if SourceName::new(text).is_err() {
        let found = format!("a text of {} bytes that is no name", text.len());
        report.refuse(section.at("secret"), section.key("secret"), found, allowed);
        return None;
    }
    Some(text.to_owned())
}

/// Bits of a rank that say which place in its list a type has; above them stands which list.
const PLACE_BITS: u32 = 16;

/// Ranks the event types of each entity type: by the list among the lists of that entity type, then
/// by the place in the list. So a list may grow at its end, wherever it stands, and lists of other
/// entity types may come and go: the ranks that state rows hold keep their meaning. The first list
/// has the ranks 0, 1, 2, ... An entity type that names an event type twice (with two id pointers)
/// gives it its first rank, so that it has one rank there.
fn rank(drafts: &mut [read::Draft]) {
    // A list too long to be true ends in equal ranks, which the event id decides.
    let bounded = |place: usize| u32::from(u16::try_from(place).unwrap_or(u16::MAX));
    let mut lists: BTreeMap<_, usize> = BTreeMap::new();
    let mut first = BTreeMap::new();
    for draft in drafts {
        let projection = &mut draft.projection;
        let entity = (projection.namespace.clone(), projection.entity_type.clone());
        let list = lists.entry(entity.clone()).or_default();
        let base = bounded(*list) << PLACE_BITS;
        *list = list.saturating_add(1);
        for (place, event_type) in projection.on.iter().enumerate() {
            let rank = base | bounded(place);
            let rank = *first.entry((entity.clone(), event_type.clone())).or_insert(rank);
            projection.ranks.push(rank);
        }
    }
}
