//! What is wrong with a configuration, and the list that collects it.

use std::ops::Range;
use thiserror::Error;

/// Text of a file that is quoted in an error is cut to this many characters.
const QUOTE_CHARS_MAX: usize = 60;

/// One mistake in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {key}: found {found}, allowed {allowed}{}", did_you_mean(.nearest.as_deref()))]
pub struct ConfigError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// Dotted path of the key, such as `sources.stripe-live.projections[0].order.by`.
    pub key: String,
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

/// Collects the mistakes of one file.
pub(crate) struct Report<'f> {
    file: &'f str,
    text: &'f str,
    errors: Vec<ConfigError>,
}

impl<'f> Report<'f> {
    pub(crate) const fn new(file: &'f str, text: &'f str) -> Self {
        Self { file, text, errors: Vec::new() }
    }

    /// The line, counted from 1, in which a span begins.
    pub(crate) fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.bytes().take(span.start);
        before.filter(|byte| *byte == b'\n').count().saturating_add(1)
    }

    pub(crate) fn refuse(
        &mut self,
        at: Range<usize>,
        key: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) {
        self.refuse_near(at, key, found, allowed, None);
    }

    pub(crate) fn refuse_near(
        &mut self,
        at: Range<usize>,
        key: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
        nearest: Option<String>,
    ) {
        self.errors.push(ConfigError {
            file: self.file.to_owned(),
            line: self.line(&at),
            key: key.into(),
            found: found.into(),
            allowed: allowed.into(),
            nearest,
        });
    }

    /// Text that is no TOML.
    pub(crate) fn syntax(&mut self, error: &toml::de::Error) {
        let at = error.span().unwrap_or(0..0);
        let line = self.line(&at);
        let text = self.text.lines().nth(line.saturating_sub(1)).unwrap_or("");
        let found = format!("{} ({})", quote(text.trim()), error.message());
        self.refuse(at, "syntax", found, "TOML 1.1");
    }

    /// Whether nothing was reported yet.
    pub(crate) const fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// The mistakes, in the order of their lines.
    pub(crate) fn finish(mut self) -> Vec<ConfigError> {
        self.errors.sort_by_key(|error| error.line);
        self.errors
    }
}

/// A text as it is quoted in errors.
pub(crate) fn quote(text: &str) -> String {
    let mut characters = text.chars();
    let kept: String = characters
        .by_ref()
        .take(QUOTE_CHARS_MAX)
        .map(|character| if character.is_control() { '\u{fffd}' } else { character })
        .collect();
    if characters.next().is_some() { format!("`{kept}...`") } else { format!("`{kept}`") }
}

/// The name closest to `text`, when it is close enough to be a slip: the shorter the name, the
/// fewer letters may differ.
pub(crate) fn nearest<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(text, name), name))
        .filter(|(distance, name)| *distance <= slips_max(name))
        .min()
        .map(|(_, name)| name.to_owned())
}

const fn slips_max(name: &str) -> usize {
    match name.len() {
        0 | 1 => 0,
        2..=4 => 1,
        5..=7 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_a_name_the_fewer_letters_may_differ() {
        for (name, near, far) in [
            ("ms", "mz", "zz"),
            ("unit", "uni", "un"),
            ("order", "orderly", "orderless"),
            ("replays", "repla", "repl"),
            ("strategy", "strat", "stra"),
        ] {
            assert_eq!(nearest(near, [name]).as_deref(), Some(name), "{near}");
            assert_eq!(nearest(far, [name]), None, "{far} for {name}");
        }
        assert_eq!(nearest("t", ["s"]), None);
        assert_eq!(
            nearest("fitch", ["match", "fetch"]).as_deref(),
            Some("fetch"),
            "the nearer one"
        );
    }
}
