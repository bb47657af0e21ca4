//! `${x}`: a value the deployment decides, read from `ONCEHOOK_PARAM_X`.
//!
//! Allowed where a stack rightly differs from the next one: `mode` and `live`. Anywhere else the
//! file says what happens, without looking at a stack.

use crate::{
    error::{Report, nearest, quote},
    section::{Section, describe, is_parameter},
};
use std::collections::BTreeSet;
use toml::de::DeValue;

/// What a variable that answers for `${x}` is called.
const PREFIX: &str = "ONCEHOOK_PARAM_";

/// The names, in upper case, for which a deployment's template sets a variable: each line
/// `ONCEHOOK_PARAM_X: ...` of its text. Whoever builds knows by them which `${x}` will be answered.
#[must_use]
pub fn parameters_set_by(template: &str) -> BTreeSet<String> {
    let names = template.lines().filter_map(|line| {
        let (name, _value) = line.trim_start().strip_prefix(PREFIX)?.split_once(':')?;
        Some(name.to_owned())
    });
    names.collect()
}

/// Answers a parameter's name in upper case with its value.
pub(crate) type Param<'p> = &'p dyn Fn(&str) -> Option<String>;

/// A key whose value is one of `choices`: as text, as a boolean, or through a parameter.
pub(crate) fn choice<T: Copy>(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    key: &'static str,
    choices: &[(&'static str, T)],
    param: Param<'_>,
) -> Option<T> {
    let value = section.value(key)?;
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let allowed =
        format!("{}, or ${{x}} where ONCEHOOK_PARAM_X is one of them", names.join(" or "));
    let mut refuse = |found: String, near| {
        report.refuse_near(value.span(), section.key(key), found, allowed.as_str(), near);
        None
    };
    let (text, from) = match value.get_ref() {
        DeValue::String(text) if is_parameter(text) => {
            let Some(name) = variable(text) else {
                let found = format!("{} (a name has a-z, 0-9 and `_` only)", quote(text));
                return refuse(found, None);
            };
            let Some(set) = param(&name) else {
                let found = format!("{}, but ONCEHOOK_PARAM_{name} is not set", quote(text));
                return refuse(found, None);
            };
            (set, format!(" (from ONCEHOOK_PARAM_{name})"))
        }
        DeValue::String(text) => (text.to_string(), String::new()),
        DeValue::Boolean(boolean) => (boolean.to_string(), String::new()),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => return refuse(describe(value), None),
    };
    match choices.iter().find(|(name, _)| *name == text) {
        Some((_, choice)) => Some(*choice),
        None => refuse(format!("{}{from}", quote(&text)), nearest(&text, names)),
    }
}

/// The parameter that a key is read from, in upper case.
pub(crate) fn read_from(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    match section.value(key)?.get_ref() {
        DeValue::String(text) if is_parameter(text) => variable(text),
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => None,
    }
}

/// `${some_name}` as `SOME_NAME`.
fn variable(text: &str) -> Option<String> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let good = !name.is_empty() && name.bytes().all(plain);
    good.then(|| name.to_ascii_uppercase())
}
