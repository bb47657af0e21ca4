//! A source's own tables over its preset's.
//!
//! Tables are joined key by key; anything else replaces what the preset says. One exception: a
//! source that names `verify.scheme` describes verification itself, since what else the preset's
//! table holds belongs to the preset's scheme. Without `preset` the source describes everything.
//!
//! `verifier` owns the meaning of these keys and names a mistake by its dotted path; the line is
//! found here.

use crate::{
    error::{Report, nearest, quote},
    section::{Section, Value, describe, is_parameter},
    source::KEYS,
};
use std::ops::Range;
use toml::{
    Table,
    de::{DeTable, DeValue},
};
use verifier::{Preset, PresetDefect};

/// Reads what a source says about its provider: the preset's name, and the whole description.
pub(crate) fn read(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    source_name: &str,
) -> Option<(String, Preset)> {
    let names: Vec<&str> = verifier::preset_names().collect();
    // `None`: not named. `Some(None)`: named wrongly, and reported.
    let base = section.value("preset").map(|_| read_name(section, report, &names));
    let own = read_own(section, report, base.as_ref().and_then(Option::as_ref));
    let (preset_name, base) = match base {
        Some(None) => return None,
        Some(Some((name, table))) => (Some(name), table),
        None => (None, Table::new()),
    };
    let own = own?;
    if preset_name.is_none() && !own.contains_key("verify") {
        let allowed = format!(
            "one of {}, or a table [{}.verify] and what else describes the provider",
            names.join(", "),
            section.path()
        );
        let near = names.contains(&source_name).then(|| source_name.to_owned());
        report.refuse_near(section.line_at(), section.key("preset"), "nothing", allowed, near);
        return None;
    }
    let mut merged = base.clone();
    if own.get("verify").is_some_and(|verify| verify.get("scheme").is_some()) {
        merged.remove("verify");
    }
    lay_over(&mut merged, own);
    if preset_name.is_none() {
        merged.entry("name").or_insert_with(|| source_name.to_owned().into());
    }
    match Preset::from_table(&merged) {
        Ok(preset) => Some((preset_name.unwrap_or_else(|| source_name.to_owned()), preset)),
        Err(defect) => {
            refuse(section, report, &base, defect);
            None
        }
    }
}

fn read_name(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    names: &[&str],
) -> Option<(String, Table)> {
    let allowed = names.join(", ");
    let name = section.string(report, "preset", &allowed)?;
    let table = verifier::preset_table(name);
    if table.is_none() {
        let near = nearest(name, names.iter().copied());
        let (at, key) = (section.at("preset"), section.key("preset"));
        report.refuse_near(at, key, quote(name), allowed, near);
    }
    table.map(|table| (name.to_owned(), table))
}

/// The source's own tables, without the keys that only look like the preset's.
fn read_own(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    base: Option<&(String, Table)>,
) -> Option<Table> {
    let mut own = Table::new();
    let mut good = true;
    for (key, value) in section.rest() {
        let name = key.get_ref().as_ref();
        let is_known = base.is_some_and(|(_, base)| base.contains_key(name));
        match nearest(name, KEYS.iter().copied()) {
            Some(meant) if !is_known => {
                let (path, allowed) = (section.key(name), KEYS.join(", "));
                let found = "an unknown key";
                report.refuse_near(key.span(), path, found, allowed, Some(meant));
                good = false;
            }
            Some(_) | None => match plain(report, &section.key(name), value) {
                Some(value) => _ = own.insert(name.to_owned(), value),
                None => good = false,
            },
        }
    }
    good.then_some(own)
}

/// A value without its place.
fn plain(report: &mut Report<'_>, path: &str, value: &Value<'_>) -> Option<toml::Value> {
    match value.get_ref() {
        DeValue::String(text) if is_parameter(text) => {
            let allowed = "parameters for `mode` and `live` only";
            report.refuse(value.span(), path, format!("the parameter {}", quote(text)), allowed);
            None
        }
        DeValue::String(text) => Some(toml::Value::String(text.to_string())),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix()).ok();
            if whole.is_none() {
                report.refuse(value.span(), path, describe(value), "a 64-bit whole number");
            }
            whole.map(toml::Value::Integer)
        }
        DeValue::Float(number) => number.as_str().parse().ok().map(toml::Value::Float),
        DeValue::Boolean(boolean) => Some(toml::Value::Boolean(*boolean)),
        DeValue::Datetime(time) => Some(toml::Value::Datetime(*time)),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| plain(report, path, item));
            items.collect::<Option<Vec<_>>>().map(toml::Value::Array)
        }
        DeValue::Table(table) => {
            let mut plain_table = Table::new();
            for (key, value) in table {
                let name = key.get_ref().as_ref();
                plain_table
                    .insert(name.to_owned(), plain(report, &format!("{path}.{name}"), value)?);
            }
            Some(toml::Value::Table(plain_table))
        }
    }
}

fn lay_over(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => lay_over(below, above),
            (_, value) => _ = base.insert(key, value),
        }
    }
}

fn refuse(section: &Section<'_>, report: &mut Report<'_>, base: &Table, defect: PresetDefect) {
    let PresetDefect { at, found, allowed, nearest } = defect;
    let steps: Vec<&str> = at
        .split(['.', '['])
        .map(|step| step.trim_end_matches(']'))
        .filter(|step| !step.is_empty())
        .collect();
    let (place, depth) = locate(section.table(), &steps);
    let at_line = place.unwrap_or_else(|| match section.table().get("preset") {
        Some(preset) => preset.span(),
        None => section.line_at(),
    });
    let is_top = !at.contains('.') && found == "an unknown key";
    let allowed = if is_top { format!("{}, {allowed}", KEYS.join(", ")) } else { allowed };
    let inherited = depth < steps.len() && holds(base, &steps);
    let found = if inherited { format!("{found} (as the preset has it)") } else { found };
    report.refuse_near(at_line, section.key(&at), found, allowed, nearest);
}

/// Where the deepest of `steps` that the source itself has stands, and how many it has.
fn locate(table: &DeTable<'_>, steps: &[&str]) -> (Option<Range<usize>>, usize) {
    let Some((first, mut rest)) = steps.split_first() else {
        return (None, 0);
    };
    let Some((key, mut value)) = table.get_key_value(*first) else {
        return (None, 0);
    };
    let mut place = if rest.is_empty() { value.span() } else { key.span() };
    let mut depth = 1_usize;
    while let Some((step, further)) = rest.split_first() {
        let next = match value.get_ref() {
            DeValue::Table(table) => table.get(*step),
            DeValue::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => None,
        };
        let Some(next) = next else { break };
        (value, rest) = (next, further);
        place = value.span();
        depth = depth.saturating_add(1);
    }
    (Some(place), depth)
}

fn holds(base: &Table, steps: &[&str]) -> bool {
    let Some((first, rest)) = steps.split_first() else {
        return false;
    };
    let mut value = base.get(*first);
    for step in rest {
        value = value.and_then(|value| match value.as_array() {
            Some(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
            None => value.get(step),
        });
    }
    value.is_some()
}
