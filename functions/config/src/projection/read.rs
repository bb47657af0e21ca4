//! Reads one table `[[sources.<name>.projections]]`.
//!
//! Every value is read before it is asked whether it belongs beside the strategy, so that one run
//! finds every mistake.

use super::{Order, Projection};
use crate::{
    Expr, Pointer,
    error::{Report, quote},
    expr,
    section::{Section, Value, describe},
};
use ledger::{Tie, Unit};
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
enum Strategy {
    Version,
    None,
}

// A strategy, a tie or a key stands here when it works: what is accepted does what it says.
const STRATEGIES: &[(&str, Strategy)] = &[("version", Strategy::Version), ("none", Strategy::None)];

const UNITS: &[(&str, Unit)] = &[
    ("s", Unit::S),
    ("ms", Unit::Ms),
    ("us", Unit::Us),
    ("iso", Unit::Iso),
    ("integer", Unit::Integer),
];

const TIES: &[(&str, Tie)] = &[("rank", Tie::Rank), ("skip", Tie::Skip)];

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
        .map_or((None, None), |order| read_order(order, report));
    let fields = read_fields(&mut section, report, strategy);
    let path = section.path().to_owned();
    let at = section.line_at();
    let [on_at, order_at, set_at] = ["on", "order", "set"].map(|key| section.at(key));
    section.finish(report);
    let ((entity_type, namespace, id), (set, add, is_final)) = (entity?, fields?);
    Some(Draft {
        projection: Projection {
            on: on?,
            entity_type,
            namespace,
            id,
            order: order?,
            set,
            add,
            is_final,
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

const NAME: &str = "1 to 64 of a-z, 0-9, `_` and `-`";

/// A part of a state row's key, in which `#` separates the parts.
fn read_name(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    key: &'static str,
) -> Option<String> {
    let text = section.string(report, key, NAME)?;
    let plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-'
    };
    if text.is_empty() || text.len() > 64 || !text.bytes().all(plain) {
        report.refuse(section.at(key), section.key(key), quote(text), NAME);
        return None;
    }
    Some(text.to_owned())
}

fn read_at(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    key: &'static str,
) -> Option<Pointer> {
    let path = section.key(key);
    let value = section.value(key)?;
    expr::read_pointer(report, path, value)
}

fn read_order(
    mut section: Section<'_>,
    report: &mut Report<'_>,
) -> (Option<Strategy>, Option<Order>) {
    section.required(report, "strategy", "version, none");
    let strategy = section.choice(report, "strategy", STRATEGIES);
    if strategy == Some(Strategy::Version) {
        section.required(report, "by", "a JSON Pointer to the version");
    }
    let by = read_at(&mut section, report, "by");
    let unit = read_or(&mut section, report, "unit", UNITS, Unit::Integer);
    let tie = read_or(&mut section, report, "tie", TIES, Tie::Rank);
    let order = match strategy {
        Some(Strategy::Version) => {
            by.zip(unit.zip(tie)).map(|(by, (unit, tie))| Order::Version { by, unit, tie })
        }
        Some(Strategy::None) => {
            belong(&mut section, report, &["by", "unit", "tie"], "none", "version")
                .then_some(Order::None)
        }
        None => None,
    };
    section.finish(report);
    (strategy, order)
}

/// A choice with a default: `None` only where a wrong one was reported.
fn read_or<T: Copy>(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    key: &'static str,
    choices: &[(&'static str, T)],
    default: T,
) -> Option<T> {
    match section.value(key) {
        None => Some(default),
        Some(_) => section.choice(report, key, choices),
    }
}

/// Refuses `keys`, which belong beside another strategy.
fn belong(
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
            let allowed = format!("`{key}` with strategy = \"{other}\" only");
            report.refuse(section.at(key), section.key(key), found, allowed);
            good = false;
        }
    }
    good
}

type Fields = (BTreeMap<String, Expr>, BTreeMap<String, Pointer>, bool);

fn read_fields(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    strategy: Option<Strategy>,
) -> Option<Fields> {
    let set_form = "a table { field = \"/...\" }, the state after the change";
    let add_form = "a table { field = \"/...\" } of numbers to add";
    match strategy {
        Some(Strategy::Version) => section.required(report, "set", set_form),
        Some(Strategy::None) => section.required(report, "add", add_form),
        None => None,
    };
    let set =
        section.section(report, "set").and_then(|set| read_map(&set, report, set_form, expr::read));
    let add = section
        .section(report, "add")
        .and_then(|add| read_map(&add, report, add_form, expr::read_pointer));
    let is_final = match section.value("final") {
        None => Some(false),
        Some(_) => section.boolean(report, "final"),
    };
    match strategy? {
        Strategy::Version => {
            let good = belong(section, report, &["add"], "version", "none");
            good.then_some((set?, BTreeMap::new(), is_final?))
        }
        Strategy::None => {
            let good = belong(section, report, &["set", "final"], "none", "version");
            good.then_some((BTreeMap::new(), add?, false))
        }
    }
}

/// A table whose keys are fields of the state.
fn read_map<T>(
    section: &Section<'_>,
    report: &mut Report<'_>,
    allowed: &str,
    read: impl Fn(&mut Report<'_>, String, &Value<'_>) -> Option<T>,
) -> Option<BTreeMap<String, T>> {
    if section.is_empty() {
        report.refuse(section.line_at(), section.path(), "an empty table", allowed);
        return None;
    }
    let mut map = BTreeMap::new();
    let mut good = true;
    for (key, value) in section.entries() {
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
