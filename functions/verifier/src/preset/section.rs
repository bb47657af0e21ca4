//! Reads one table of a preset: typed, complete, and with errors a person can act on.
//!
//! Every key that is present must be asked for: `finish` refuses what nobody read, and offers the
//! nearest name it knows. Line numbers are absent on purpose: the caller that owns the file adds
//! them from the dotted path.

use std::cell::RefCell;

use toml::{Table, Value};

/// What is wrong in a preset's table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: found {found}, allowed {allowed}{}", did_you_mean(.nearest.as_deref()))]
#[must_use]
pub struct PresetDefect {
    /// Dotted path of the key.
    pub at: String,
    /// What stands there.
    pub found: String,
    /// What may stand there.
    pub allowed: String,
    /// The nearest name that is known, where one is near.
    pub nearest: Option<String>,
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// One table, its dotted path, and the keys that were asked for.
pub(crate) struct Section<'t> {
    path: String,
    table: &'t Table,
    asked: RefCell<Vec<&'static str>>,
}

impl<'t> Section<'t> {
    pub(crate) fn root(table: &'t Table) -> Self {
        Self { path: String::new(), table, asked: RefCell::default() }
    }

    /// The dotted path of `key`.
    pub(crate) fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn defect(
        &self,
        key: &str,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> PresetDefect {
        PresetDefect {
            at: self.at(key),
            found: found.into(),
            allowed: allowed.into(),
            nearest: None,
        }
    }

    /// The raw value of a key.
    pub(crate) fn value(&self, key: &'static str) -> Option<&'t Value> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    /// A table below this one.
    pub(crate) fn section(&self, key: &'static str) -> Result<Option<Section<'t>>, PresetDefect> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Table(table)) => {
                Ok(Some(Section { path: self.at(key), table, asked: RefCell::default() }))
            }
            Some(other) => Err(self.defect(key, describe(other), "a table")),
        }
    }

    pub(crate) fn required_section(&self, key: &'static str) -> Result<Section<'t>, PresetDefect> {
        self.section(key)?.ok_or_else(|| self.defect(key, "nothing", "a table"))
    }

    pub(crate) fn string(&self, key: &'static str) -> Result<Option<&'t str>, PresetDefect> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.is_empty() => {
                Err(self.defect(key, "an empty string", "a text"))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.defect(key, describe(other), "a string")),
        }
    }

    pub(crate) fn required_string(&self, key: &'static str) -> Result<&'t str, PresetDefect> {
        self.string(key)?.ok_or_else(|| self.defect(key, "nothing", "a string"))
    }

    /// A string that may be empty.
    pub(crate) fn text(&self, key: &'static str) -> Result<Option<&'t str>, PresetDefect> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.defect(key, describe(other), "a string")),
        }
    }

    /// A header name, in lower case.
    pub(crate) fn header(&self, key: &'static str) -> Result<Option<String>, PresetDefect> {
        match self.string(key)? {
            None => Ok(None),
            Some(name) => self.header_name(key, name).map(Some),
        }
    }

    fn header_name(&self, key: &str, name: &str) -> Result<String, PresetDefect> {
        let token = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if token {
            Ok(name.to_ascii_lowercase())
        } else {
            Err(self.defect(key, format!("`{name}`"), "a header name"))
        }
    }

    /// A list of header names, in lower case.
    pub(crate) fn headers(&self, key: &'static str) -> Result<Vec<String>, PresetDefect> {
        self.strings(key)?.into_iter().map(|name| self.header_name(key, name)).collect()
    }

    /// A list of strings; a missing key is an empty list.
    pub(crate) fn strings(&self, key: &'static str) -> Result<Vec<&'t str>, PresetDefect> {
        match self.value(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item.as_str() {
                    Some(text) if !text.is_empty() => Ok(text),
                    Some(_) | None => Err(self.defect(key, describe(item), "a list of texts")),
                })
                .collect(),
            Some(other) => Err(self.defect(key, describe(other), "a list of strings")),
        }
    }

    pub(crate) fn boolean(&self, key: &'static str) -> Result<Option<bool>, PresetDefect> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Boolean(value)) => Ok(Some(*value)),
            Some(other) => Err(self.defect(key, describe(other), "true or false")),
        }
    }

    /// A whole number within `min..=max`.
    pub(crate) fn number(
        &self,
        key: &'static str,
        min: u64,
        max: u64,
    ) -> Result<Option<u64>, PresetDefect> {
        let allowed = || format!("a whole number from {min} to {max}");
        match self.value(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => match u64::try_from(*number) {
                Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
                Ok(_) | Err(_) => Err(self.defect(key, number.to_string(), allowed())),
            },
            Some(other) => Err(self.defect(key, describe(other), allowed())),
        }
    }

    /// One character.
    pub(crate) fn character(&self, key: &'static str) -> Result<Option<char>, PresetDefect> {
        match self.text(key)? {
            None => Ok(None),
            Some(text) => {
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(character), None) => Ok(Some(character)),
                    (_, _) => Err(self.defect(key, format!("`{text}`"), "one character")),
                }
            }
        }
    }

    /// One of a fixed set of names.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<T>, PresetDefect> {
        match self.string(key)? {
            None => Ok(None),
            Some(text) => self.choose(key, text, choices).map(Some),
        }
    }

    pub(crate) fn required_choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<T, PresetDefect> {
        self.choice(key, choices)?.ok_or_else(|| self.defect(key, "nothing", names(choices)))
    }

    /// The choice that `text` names.
    pub(crate) fn choose<T: Copy>(
        &self,
        key: &str,
        text: &str,
        choices: &[(&'static str, T)],
    ) -> Result<T, PresetDefect> {
        choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice).ok_or_else(|| {
            PresetDefect {
                at: self.at(key),
                found: format!("`{text}`"),
                allowed: names(choices),
                nearest: nearest(text, choices.iter().map(|(name, _)| *name)),
            }
        })
    }

    /// Keys and values of this table, for tables whose keys are free.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'t str, &'t Value)> {
        self.table.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Refuses keys that nobody asked for.
    pub(crate) fn finish(self) -> Result<(), PresetDefect> {
        let mut asked = self.asked.borrow().clone();
        asked.sort_unstable();
        asked.dedup();
        match self.table.keys().find(|key| !asked.contains(&key.as_str())) {
            None => Ok(()),
            Some(unknown) => Err(PresetDefect {
                at: self.at(unknown),
                found: "an unknown key".to_owned(),
                allowed: asked.join(", "),
                nearest: nearest(unknown, asked.iter().copied()),
            }),
        }
    }
}

/// What a value is, in words.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(_) => "a date".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

fn names<T>(choices: &[(&'static str, T)]) -> String {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// The name closest to `text`, when it is close enough to be a slip.
pub(crate) fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    names
        .map(|name| (strsim::damerau_levenshtein(text, name), name))
        .filter(|(distance, name)| *distance <= 3 && *distance < name.len())
        .min()
        .map(|(_, name)| name.to_owned())
}
