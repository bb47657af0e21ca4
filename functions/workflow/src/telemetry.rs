//! What is reported: one line for each delivery, record and steward run.
//!
//! The line is a sentence for people, stable dotted fields for searches, and counts that become
//! metrics. It never holds a body, a signature or a secret: fields are ids, words and numbers, and
//! ids are shortened and escaped.

use ledger::EventKey;
use serde_json::{Map, Value};

/// How loud a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Normal work.
    Info,
    /// Somebody should look when there are many.
    Warn,
    /// Somebody should look.
    Error,
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetricUnit {
    /// A number of things.
    Count,
    /// A duration.
    Milliseconds,
    /// A duration.
    Seconds,
}

/// One measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The metric's name, in the namespace `Oncehook`.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: MetricUnit,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// How loud.
    pub level: Level,
    /// A sentence.
    pub message: String,
    /// The metrics' one dimension beside the function; empty for none.
    pub source: Option<String>,
    /// Stable dotted fields.
    pub fields: Map<String, Value>,
    /// What to count.
    pub metrics: Vec<Metric>,
}

impl Line {
    /// A line with a sentence.
    #[must_use]
    pub fn new(level: Level, message: impl Into<String>) -> Self {
        Self {
            level,
            message: message.into(),
            source: None,
            fields: Map::new(),
            metrics: Vec::new(),
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a row's key, escaped and shortened.
    #[must_use]
    pub fn with_key(self, key: &EventKey) -> Self {
        self.with("event.key", shown(key.as_str()))
    }

    /// Names the source.
    #[must_use]
    pub fn of_source(mut self, source: &str) -> Self {
        self.source = Some(source.to_owned());
        self
    }

    /// Counts `name` once.
    #[must_use]
    pub fn count(self, name: &'static str) -> Self {
        self.measure(name, 1.0, MetricUnit::Count)
    }

    /// Adds a measured value.
    #[must_use]
    pub fn measure(mut self, name: &'static str, value: f64, unit: MetricUnit) -> Self {
        self.metrics.push(Metric { name, value, unit });
        self
    }
}

/// Where lines go.
pub trait Telemetry: Send + Sync {
    /// Writes one line.
    fn emit(&self, line: &Line);
}

/// A provider's text for people: invisible characters escaped, at most 200 characters.
#[must_use]
pub fn shown(text: &str) -> String {
    text.chars()
        .take(200)
        .flat_map(|c| {
            let visible =
                c.is_ascii_graphic() || c == ' ' || (!c.is_ascii() && c.is_alphanumeric());
            let (plain, escaped) =
                if visible { (Some(c), None) } else { (None, Some(c.escape_default())) };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}
