//! Configuration files for the tests: one source `s`, its projections, a fetch table.
#![allow(dead_code, reason = "each suite uses its own part")]

use config::{Config, Projection, Source};

pub(crate) fn parse(text: &str) -> Result<Source, Vec<String>> {
    let config = Config::parse("sources.toml", text, &|_| None);
    let config =
        config.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(config.source("s").unwrap().clone())
}

pub(crate) fn accepted(text: &str) -> Source {
    parse(text).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"))
}

pub(crate) fn errors(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors,
    }
}

/// A projection of five lines, the first in line 4.
pub(crate) fn projection(on: &str, entity: &str, order: &str, fields: &str) -> String {
    format!(
        "[[sources.s.projections]]\non = [\"{on}\"]\n\
         entity = {{ type = \"{entity}\", id = \"/id\" }}\norder = {{ {order} }}\n{fields}\n"
    )
}

pub(crate) fn source(tables: &str) -> String {
    format!("[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\n{tables}")
}

/// A fetch table at `path`, of which one line is replaced.
pub(crate) fn table(path: &str, replaced: &str, by: &str) -> String {
    let whole = "url = \"https://api.example/v1/things/{id}\"\nsecret = \"api\"\n\
                 on_404 = \"tombstone\"\nrate_per_s = 5\nset = { x = \"/x\" }\n";
    let replace =
        |line| if !replaced.is_empty() && str::starts_with(line, replaced) { by } else { line };
    let lines: Vec<&str> = whole.lines().map(replace).collect();
    format!("[{path}]\n{}\n", lines.join("\n"))
}

pub(crate) const FETCH: &str = "strategy = \"fetch\"";
pub(crate) const SEQUENCE: &str = "strategy = \"sequence\", by = \"/n\", on_gap = \"apply\"";
pub(crate) const SET: &str = "set = { x = \"/x\" }";

pub(crate) fn only(source: &Source) -> &Projection {
    assert_eq!(source.projections.len(), 1);
    source.projections.first().unwrap()
}
