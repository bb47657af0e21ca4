//! A call that is wrong, in the shape of every other failure.
//!
//! People are shown what clap has to say, with its colours and its tip. A program that asked for JSON
//! gets the same as an object, like any other error.

use crate::failure::Failure;
use std::ffi::OsString;

/// Whether these words ask for JSON. They could not be parsed, so this is all that is read of them.
pub(crate) fn asks_for_json(words: impl IntoIterator<Item = OsString>) -> bool {
    words.into_iter().take_while(|word| word != "--").any(|word| word == "--json")
}

/// What clap found, as a failure with its next step.
pub(crate) fn failure(error: &clap::Error) -> Failure {
    let said = error.render().to_string();
    let mut paragraphs = said.split("\n\n").map(in_one_line);
    let found = paragraphs.next().unwrap_or_default();
    let found = found.strip_prefix("error: ").unwrap_or(&found).to_owned();
    let rest: Vec<String> = paragraphs.collect();
    let tip = rest.iter().find_map(|text| text.strip_prefix("tip: "));
    let usage = rest.iter().find_map(|text| text.strip_prefix("Usage: "));
    Failure::usage(found).with_next(tip.map_or_else(|| next(usage), str::to_owned))
}

fn next(usage: Option<&str>) -> String {
    let usage = usage.map(|usage| format!("write {usage}; ")).unwrap_or_default();
    format!("{usage}--help explains it")
}

fn in_one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<&str>>().join(" ")
}
