//! Reads one table: typed, complete, and with errors a person can act on.
//!
//! Every key that is present must be asked for: [`Section::finish`] refuses what nobody read.
//! Readers answer `None` where a key is absent or wrong; what is wrong has been reported by then,
//! so reading goes on and one run finds every mistake.

use crate::error::{Report, nearest, quote};
use std::{
    borrow::Cow,
    ops::{Range, RangeInclusive},
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A value and its place in the file.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// A key and its place in the file.
pub(crate) type Key<'t> = Spanned<Cow<'t, str>>;

/// One table, its dotted path, its place, and the keys that were asked for.
pub(crate) struct Section<'t> {
    path: String,
    at: Range<usize>,
    table: &'t DeTable<'t>,
    asked: Vec<&'static str>,
}

impl<'t> Section<'t> {
    pub(crate) fn root(table: &'t DeTable<'t>) -> Self {
        Self { path: String::new(), at: 0..0, table, asked: Vec::new() }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The dotted path of `key`.
    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Where the table stands: its header, or its key.
    pub(crate) fn line_at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Where `key` stands; the table's own place where it is absent.
    pub(crate) fn at(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or_else(|| self.line_at(), Value::span)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn table(&self) -> &'t DeTable<'t> {
        self.table
    }

    /// Keys and values of a table whose keys are free.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'t Key<'t>, &'t Value<'t>)> + use<'t> {
        self.table.iter()
    }

    /// Entries that nobody has asked for yet.
    pub(crate) fn rest(&mut self) -> Vec<(&'t Key<'t>, &'t Value<'t>)> {
        let asked = std::mem::take(&mut self.asked);
        self.table.iter().filter(|(key, _)| !asked.contains(&key.get_ref().as_ref())).collect()
    }

    /// A free entry as a table of its own.
    pub(crate) fn entry(
        &self,
        report: &mut Report<'_>,
        key: &Key<'t>,
        value: &'t Value<'t>,
    ) -> Option<Self> {
        as_table(report, self.key(key.get_ref()), key.span(), value)
    }

    /// The raw value of a key.
    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'t Value<'t>> {
        self.asked.push(key);
        self.table.get(key)
    }

    pub(crate) fn section(&mut self, report: &mut Report<'_>, key: &'static str) -> Option<Self> {
        let value = self.value(key)?;
        let place = self.table.get_key_value(key).map(|(key, _)| key.span());
        let at = place.unwrap_or_else(|| value.span());
        as_table(report, self.key(key), at, value)
    }

    pub(crate) fn required_section(
        &mut self,
        report: &mut Report<'_>,
        key: &'static str,
        allowed: &str,
    ) -> Option<Self> {
        self.required(report, key, allowed)?;
        self.section(report, key)
    }

    /// The tables of an array of tables; none where the key is absent.
    pub(crate) fn sections(&mut self, report: &mut Report<'_>, key: &'static str) -> Vec<Self> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let Some(items) = value.get_ref().as_array() else {
            let allowed = format!("tables, each under its own header [[{}]]", self.key(key));
            report.refuse(value.span(), self.key(key), describe(value), allowed);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.key(key));
            sections.extend(as_table(report, path, item.span(), item));
        }
        sections
    }

    pub(crate) fn string(
        &mut self,
        report: &mut Report<'_>,
        key: &'static str,
        allowed: &str,
    ) -> Option<&'t str> {
        let value = self.value(key)?;
        match value.get_ref().as_str() {
            Some(text) if !is_parameter(text) => Some(text),
            Some(text) => {
                let found = format!("the parameter {}", quote(text));
                let allowed = "parameters for `mode` and `live` only";
                report.refuse(value.span(), self.key(key), found, allowed);
                None
            }
            None => {
                report.refuse(value.span(), self.key(key), describe(value), allowed);
                None
            }
        }
    }

    pub(crate) fn required_string(
        &mut self,
        report: &mut Report<'_>,
        key: &'static str,
        allowed: &str,
    ) -> Option<&'t str> {
        self.required(report, key, allowed)?;
        self.string(report, key, allowed)
    }

    /// One of a fixed set of names.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        report: &mut Report<'_>,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let allowed = names(choices);
        let text = self.string(report, key, &allowed)?;
        let choice = choices.iter().find(|(name, _)| *name == text);
        if choice.is_none() {
            let near = nearest(text, choices.iter().map(|(name, _)| *name));
            report.refuse_near(self.at(key), self.key(key), quote(text), allowed, near);
        }
        choice.map(|(_, choice)| *choice)
    }

    /// A whole number in a range.
    pub(crate) fn whole(
        &mut self,
        report: &mut Report<'_>,
        key: &'static str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let value = self.value(key)?;
        let number = value.get_ref().as_integer();
        let number = number.and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let allowed = format!("a whole number from {} to {}", range.start(), range.end());
            report.refuse(value.span(), self.key(key), describe(value), allowed);
        }
        number
    }

    pub(crate) fn boolean(&mut self, report: &mut Report<'_>, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            report.refuse(value.span(), self.key(key), describe(value), "true or false");
        }
        boolean
    }

    /// Reports an absent key.
    pub(crate) fn required(
        &mut self,
        report: &mut Report<'_>,
        key: &'static str,
        allowed: &str,
    ) -> Option<()> {
        if self.value(key).is_none() {
            report.refuse(self.line_at(), self.key(key), "nothing", allowed);
            return None;
        }
        Some(())
    }

    /// Refuses keys that nobody asked for.
    pub(crate) fn finish(mut self, report: &mut Report<'_>) {
        self.asked.sort_unstable();
        self.asked.dedup();
        let asked = self.asked.clone();
        for (key, _) in self.rest() {
            let name = key.get_ref();
            let allowed = asked.join(", ");
            let near = nearest(name, asked.iter().copied());
            report.refuse_near(key.span(), self.key(name), "an unknown key", allowed, near);
        }
    }
}

fn as_table<'t>(
    report: &mut Report<'_>,
    path: String,
    at: Range<usize>,
    value: &'t Value<'t>,
) -> Option<Section<'t>> {
    let Some(table) = value.get_ref().as_table() else {
        report.refuse(value.span(), path, describe(value), "a table");
        return None;
    };
    Some(Section { path, at, table, asked: Vec::new() })
}

/// What entity types, namespaces and entries of the outbound secret are named by.
pub(crate) const NAME: &str = "1 to 64 of a-z, 0-9, `_` and `-`";

/// Whether a text is such a name.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-'
    };
    !text.is_empty() && text.len() <= 64 && text.bytes().all(plain)
}

/// Whether a text is `${x}` and nothing else.
pub(crate) fn is_parameter(text: &str) -> bool {
    text.starts_with("${") && text.ends_with('}')
}

/// What a value is, in words.
pub(crate) fn describe(value: &Value<'_>) -> String {
    match value.get_ref() {
        DeValue::String(text) if text.is_empty() => "an empty text".to_owned(),
        DeValue::String(text) => quote(text),
        DeValue::Integer(number) => quote(&number.to_string()),
        DeValue::Float(number) => quote(&number.to_string()),
        DeValue::Boolean(value) => quote(&value.to_string()),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn names<T>(choices: &[(&'static str, T)]) -> String {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}
