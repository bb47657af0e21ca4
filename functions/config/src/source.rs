//! A source: one configured endpoint.

use crate::{
    Projection,
    error::{Report, quote},
    param::{self, Param},
    preset,
    projection::read,
    section::Section,
};
use ledger::SourceName;
use std::collections::BTreeMap;

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
pub(crate) const KEYS: &[&str] = &["preset", "secret", "live", "mode", "projections"];

/// Reads one table `[sources.<name>]`.
pub(crate) fn read(
    mut section: Section<'_>,
    report: &mut Report<'_>,
    name: &str,
    param: Param<'_>,
) -> Draft {
    let tables = section.sections(report, "projections");
    let mut projections: Vec<read::Draft> =
        tables.into_iter().filter_map(|table| read::read(table, report, name)).collect();
    rank(&mut projections);
    let mut source = read_source(&mut section, report, name, param);
    if let Some(source) = &mut source {
        source.projections = projections.iter().map(|draft| draft.projection.clone()).collect();
    }
    Draft { source, projections }
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

/// Numbers the event types of a source through all its lists. An entity type that names an event
/// type twice (with two id pointers) gives it the first number, so that it has one rank there.
fn rank(drafts: &mut [read::Draft]) {
    let mut next = 0_u32;
    let mut first = BTreeMap::new();
    for draft in drafts {
        let projection = &mut draft.projection;
        for event_type in &projection.on {
            let entity = (projection.namespace.clone(), projection.entity_type.clone());
            let rank = *first.entry((entity, event_type.clone())).or_insert(next);
            projection.ranks.push(rank);
            next = next.saturating_add(1);
        }
    }
}
