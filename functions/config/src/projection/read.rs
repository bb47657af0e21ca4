//! Reads one table `[[sources.<name>.projections]]`.
//!
//! Every value is read before it is asked whether it belongs beside the strategy, so that one run
//! finds every mistake.

use super::{Projection, order};
use crate::{
    Expr, Pointer,
    error::{Report, quote},
    expr,
    section::{Key, NAME, Section, Value, describe, is_name},
};
use std::{collections::BTreeMap, ops::Range};

/// A projection and where it stands.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) projection: Projection,
    /// `sources.<name>.projections[<n>]`
    pub(crate) path: String,
    pub(crate) at: Range<usize>,
    pub(crate) on_at: Range<usize>,
    pub(crate) order_at: Range<usize>,
    pub(crate) set_at: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Version,
    Fetch,
    Sequence,
    None,
}

impl Strategy {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Fetch => "fetch",
            Self::Sequence => "sequence",
            Self::None => "none",
        }
    }
}

/// Reads one projection; `None` where something was reported.
pub(crate) fn read(
    mut section: Section<'_>,
    report: &mut Report<'_>,
    source_name: &str,
) -> Option<Draft> {
    let on = read_on(&mut section, report);
    let entity = section
        .required_section(report, "entity", "a table { type = \"...\", id = \"/...\" }")
        .and_then(|entity| read_entity(entity, report, source_name));
    let (strategy, order) = section
        .required_section(report, "order", "a table { strategy = \"...\" }")
        .map_or((None, None), |order| order::read(order, report));
    let fields = read_fields(&mut section, report, strategy);
    let path = section.path().to_owned();
    let at = section.line_at();
    let [on_at, order_at, set_at] = ["on", "order", "set"].map(|key| section.at(key));
    section.finish(report);
    let ((entity_type, namespace, id), fields) = (entity?, fields?);
    Some(Draft {
        projection: Projection {
            on: on?,
            entity_type,
            namespace,
            id,
            order: order?,
            set: fields.set,
            add: fields.add,
            append: fields.append,
            append_max: fields.append_max,
            is_final: fields.is_final,
            fetch: None,
            ranks: Vec::new(),
        },
        path,
        at,
        on_at,
        order_at,
        set_at,
    })
}

fn read_on(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<Vec<String>> {
    let allowed = "a list of event types, each exactly as the provider writes it";
    section.required(report, "on", allowed)?;
    let value = section.value("on")?;
    let path = section.key("on");
    let Some(items) = value.get_ref().as_array() else {
        report.refuse(value.span(), path, describe(value), allowed);
        return None;
    };
    if items.is_empty() {
        report.refuse(value.span(), path, "an empty list", allowed);
        return None;
    }
    let mut on: Vec<String> = Vec::new();
    let mut good = true;
    for item in items {
        let problem = match item.get_ref().as_str() {
            None | Some("") => Some(describe(item)),
            Some(text) if text.contains('*') => Some(format!("the wildcard {}", quote(text))),
            Some(text) if text.trim() != text || text.chars().any(char::is_control) => {
                Some(format!("{} with blanks around it", quote(text)))
            }
            Some(text) if on.iter().any(|known| known == text) => {
                Some(format!("{} a second time", quote(text)))
            }
            Some(text) => {
                on.push(text.to_owned());
                None
            }
        };
        if let Some(found) = problem {
            let allowed = "exact event types, each once, without wildcards";
            report.refuse(item.span(), path.as_str(), found, allowed);
            good = false;
        }
    }
    good.then_some(on)
}

fn read_entity(
    mut section: Section<'_>,
    report: &mut Report<'_>,
    source_name: &str,
) -> Option<(String, String, Pointer)> {
    section.required(report, "type", NAME);
    let entity_type = read_name(&mut section, report, "type");
    let namespace = if section.value("namespace").is_some() {
        read_name(&mut section, report, "namespace")
    } else {
        Some(source_name.to_owned())
    };
    section.required(report, "id", "a JSON Pointer to the entity's id");
    let id = read_at(&mut section, report, "id");
    section.finish(report);
    Some((entity_type?, namespace?, id?))
}

/// A part of a state row's key, in which `#` separates the parts.
fn read_name(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    key: &'static str,
) -> Option<String> {
    let text = section.string(report, key, NAME)?;
    if !is_name(text) {
        report.refuse(section.at(key), section.key(key), quote(text), NAME);
        return None;
    }
    Some(text.to_owned())
}

pub(super) fn read_at(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    key: &'static str,
) -> Option<Pointer> {
    let path = section.key(key);
    let value = section.value(key)?;
    expr::read_pointer(report, path, value)
}

/// Refuses `keys`, which belong beside other strategies, named in quotes.
pub(super) fn belong(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    keys: &[&'static str],
    strategy: &str,
    other: &str,
) -> bool {
    let mut good = true;
    for key in keys {
        if section.value(key).is_some() {
            let found = format!("`{key}` with strategy = \"{strategy}\"");
            let allowed = format!("`{key}` with strategy = {other} only");
            report.refuse(section.at(key), section.key(key), found, allowed);
            good = false;
        }
    }
    good
}

/// What a change does to the state.
#[derive(Default)]
struct Fields {
    set: BTreeMap<String, Expr>,
    add: BTreeMap<String, Pointer>,
    append: BTreeMap<String, Pointer>,
    append_max: usize,
    is_final: bool,
}

/// The strategies under which an event is a whole state.
pub(super) const STATES: &str = "\"version\" or \"sequence\"";

const SET: &str = "a table { field = \"/...\" }, the state after the change";
const ADD: &str = "a table { field = \"/...\" } of numbers to add";

fn read_fields(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    strategy: Option<Strategy>,
) -> Option<Fields> {
    match strategy {
        Some(Strategy::Version | Strategy::Sequence) => section.required(report, "set", SET),
        Some(Strategy::None) if section.value("append").is_none() => {
            section.required(report, "add", ADD)
        }
        Some(Strategy::Fetch | Strategy::None) | None => None,
    };
    let set =
        section.section(report, "set").and_then(|set| read_map(&set, report, SET, expr::read));
    let add = section.section(report, "add");
    let add = add.map(|add| read_map(&add, report, ADD, expr::read_pointer));
    let append = section.section(report, "append").map(|append| read_append(append, report));
    let is_final = match section.value("final") {
        None => Some(false),
        Some(_) => section.boolean(report, "final"),
    };
    let mut alone = |keys: &[&'static str], strategy: &str, other: &str| {
        belong(section, report, keys, strategy, other)
    };
    match strategy? {
        strategy @ (Strategy::Version | Strategy::Sequence) => {
            let good = alone(&["add", "append"], strategy.as_str(), "\"none\"");
            let fields = Fields { set: set?, is_final: is_final?, ..Fields::default() };
            good.then_some(fields)
        }
        Strategy::Fetch => {
            // The answer is read by the fetch table's own `set`, and says itself what is gone.
            let good = alone(&["add", "append"], "fetch", "\"none\"");
            let good = alone(&["final"], "fetch", STATES) && good;
            if section.value("set").is_some() {
                let (at, key) = (section.at("set"), section.key("set"));
                let allowed = "`set` in the table [fetch.<entity type>], where it reads the answer";
                report.refuse(at, key, "`set` with strategy = \"fetch\"", allowed);
                return None;
            }
            good.then(Fields::default)
        }
        Strategy::None => {
            let good = alone(&["set", "final"], "none", STATES);
            let add = add.unwrap_or_else(|| Some(BTreeMap::new()))?;
            let (append, append_max) = append.unwrap_or_else(|| Some((BTreeMap::new(), 0)))?;
            if let Some(field) = add.keys().find(|field| append.contains_key(*field)) {
                let (at, key) = (section.at("append"), section.key("append"));
                let found = format!("{}, which `add` has too", quote(field));
                report.refuse(at, key, found, "a field in `add` or in `append`");
                return None;
            }
            good.then(|| Fields { add, append, append_max, ..Fields::default() })
        }
    }
}

/// `{ items = "/x", max = 100 }`: lists that grow, and how long they may be.
fn read_append(
    mut section: Section<'_>,
    report: &mut Report<'_>,
) -> Option<(BTreeMap<String, Pointer>, usize)> {
    let allowed = "a table { field = \"/...\", max = 100 } of lists to append to";
    section.required(report, "max", "how long the lists may be, 1 to 1000");
    let max = section.whole(report, "max", 1..=1_000);
    let fields = section.rest();
    if fields.is_empty() {
        report.refuse(section.line_at(), section.path(), "no field", allowed);
        return None;
    }
    let fields = read_entries(fields, &section, report, expr::read_pointer)?;
    Some((fields, usize::try_from(max?).ok()?))
}

/// A table whose keys are fields of the state.
pub(crate) fn read_map<T>(
    section: &Section<'_>,
    report: &mut Report<'_>,
    allowed: &str,
    read: impl Fn(&mut Report<'_>, String, &Value<'_>) -> Option<T>,
) -> Option<BTreeMap<String, T>> {
    if section.is_empty() {
        report.refuse(section.line_at(), section.path(), "an empty table", allowed);
        return None;
    }
    read_entries(section.entries(), section, report, read)
}

fn read_entries<'t, T>(
    entries: impl IntoIterator<Item = (&'t Key<'t>, &'t Value<'t>)>,
    section: &Section<'_>,
    report: &mut Report<'_>,
    read: impl Fn(&mut Report<'_>, String, &Value<'_>) -> Option<T>,
) -> Option<BTreeMap<String, T>> {
    let mut map = BTreeMap::new();
    let mut good = true;
    for (key, value) in entries {
        let name = key.get_ref();
        if name.trim().is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
            let found = format!("the field name {}", quote(name));
            let allowed = "names of 1 to 255 bytes without control characters";
            report.refuse(key.span(), section.path(), found, allowed);
            good = false;
            continue;
        }
        match read(report, section.key(name), value) {
            Some(read) => _ = map.insert(name.to_string(), read),
            None => good = false,
        }
    }
    good.then_some(map)
}
