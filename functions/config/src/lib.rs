//! `sources.toml` as validated configuration.
//!
//! Text goes in, a [`Config`] comes out, or every mistake at once: each names its file, line and
//! key, what was found, what is allowed, and the nearest name that is known. What is accepted
//! here works; nothing is left to be found out by the first event.
//!
//! The file is read in three steps. [`toml`] keeps the place of each key and value; a `Section`
//! reads one table, key by key, and refuses what nobody asked for; `rules` then judges what no
//! single table can show, such as two projections that write one entity. A source's tables are
//! laid over its preset's by key and handed to `verifier`, which owns their meaning.
//!
//! Deliberately absent: reading the file, the environment and the clock. The caller passes the
//! text, and `${x}` parameters through a function.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions
)]

mod error;
mod expr;
mod fetch;
mod param;
mod pointer;
mod preset;
mod projection;
mod rules;
mod section;
mod source;

pub use error::ConfigError;
pub use expr::Expr;
pub use fetch::{Address, Auth, Fetch, OnMissing, UrlTemplate};
pub use param::parameters_set_by;
pub use pointer::{Pointer, PointerDefect};
pub use projection::{OnGap, Order, Projection, Tie};
pub use source::{Mode, NotReplayable, Source};

use error::Report;
use param::Param;
use section::Section;
use std::collections::BTreeMap;
use toml::de::DeTable;

/// The sources of one deployment.
#[derive(Debug, Clone)]
pub struct Config {
    sources: BTreeMap<String, Source>,
}

impl Config {
    /// Reads and validates a configuration.
    ///
    /// `file` is named in errors and otherwise unused. `param` answers `${x}` (written in lower
    /// case) for the name in upper case, `X`: the value of `ONCEHOOK_PARAM_X`, where it is set.
    /// Errors come all at once, in the order of their lines.
    pub fn parse(
        file: &str,
        text: &str,
        param: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<ConfigError>> {
        let mut report = Report::new(file, text);
        let (root, syntax_errors) = DeTable::parse_recoverable(text);
        if !syntax_errors.is_empty() {
            // What a broken file says elsewhere is guesswork: report the syntax alone.
            for error in &syntax_errors {
                report.syntax(error);
            }
            return Err(report.finish());
        }
        let mut root = Section::root(root.get_ref());
        let found = read_sources(&mut root, &mut report, param);
        root.finish(&mut report);
        rules::check(&found, &mut report);
        let errors = report.finish();
        if !errors.is_empty() {
            return Err(errors);
        }
        let sources = found
            .into_iter()
            .filter_map(|draft| draft.source)
            .map(|source| (source.name.as_str().to_owned(), source))
            .collect();
        Ok(Self { sources })
    }

    /// The same, with certificates taken from `base` as well: see
    /// [`verifier::Preset::trust_local_certificates`]. `None` where `base` is not on this machine.
    #[must_use]
    pub fn trusting_local_certificates(mut self, base: &str) -> Option<Self> {
        let mut sources = self.sources.values_mut();
        sources.all(|source| source.preset.trust_local_certificates(base)).then_some(self)
    }

    /// The source of this name.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.get(name)
    }

    /// Every source, in the order of their names.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.sources.values()
    }
}

fn read_sources(
    root: &mut Section<'_>,
    report: &mut Report<'_>,
    param: Param<'_>,
) -> Vec<source::Draft> {
    let mut shared = fetch::read(root, report);
    let allowed = "at least one table [sources.<name>]";
    let Some(sources) = root.required_section(report, "sources", allowed) else {
        return Vec::new();
    };
    if sources.is_empty() {
        report.refuse(sources.line_at(), sources.path(), "no source", allowed);
    }
    let mut drafts = Vec::new();
    for (key, value) in sources.entries() {
        if let Some(section) = sources.entry(report, key, value) {
            drafts.push(source::read(section, report, key.get_ref(), param, &mut shared));
        }
    }
    fetch::refuse_unused(&shared, report);
    drafts
}
