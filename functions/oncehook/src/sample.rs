//! Request files: the samples of `events/`, and requests captured in the wild.
//!
//! One JSON object with method, headers and body. A body that is JSON is sent as its text stands
//! in the file, less the indentation of the whole; a string is sent as its characters; `body_base64` is for every
//! other byte. Only a change (`--set`, `--id`) writes the JSON anew, and then compactly.

use crate::{args::Set, context::read_file, failure::Failure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{collections::BTreeMap, path::Path};
use verifier::Headers;

const README: &str = "events/README.md describes the file";

/// A request file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFile {
    source: Option<String>,
    method: Option<String>,
    url: Option<String>,
    query: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, HeaderValue>,
    body: Option<Box<RawValue>>,
    body_base64: Option<String>,
}

/// A header that appears once, or several times.
#[derive(Deserialize)]
#[serde(untagged)]
enum HeaderValue {
    Once(String),
    Repeated(Vec<String>),
}

/// A request from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The source it is meant for, where the file names one.
    pub(crate) source: Option<String>,
    /// The method, `POST` unless the file says otherwise.
    pub(crate) method: String,
    /// The public URL it was sent to, where the file says it.
    pub(crate) url: Option<String>,
    /// The raw query, without `?`.
    pub(crate) query: String,
    /// The headers as written.
    pub(crate) headers: Headers,
    /// The bytes.
    pub(crate) body: Vec<u8>,
}

impl Sample {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        Self::parse(&read_file(path)?)
            .map_err(|said| Failure::usage(format!("{}: {said}", path.display())).with_next(README))
    }

    /// Reads a file's text; what is wrong with it, in words.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let file: RequestFile =
            serde_json::from_str(text).map_err(|error| format!("no request file: {error}"))?;
        let mut headers = Headers::new();
        for (name, value) in file.headers {
            let values = match value {
                HeaderValue::Once(value) => vec![value],
                HeaderValue::Repeated(values) => values,
            };
            for value in values {
                headers.push(&name, value);
            }
        }
        let body = match (file.body, file.body_base64) {
            (Some(_), Some(_)) => {
                return Err("`body` and `body_base64` exclude each other".to_owned());
            }
            (Some(body), None) => bytes(&body)?,
            (None, Some(text)) => {
                STANDARD.decode(text).map_err(|error| format!("`body_base64`: {error}"))?
            }
            (None, None) => Vec::new(),
        };
        let (url, query) = match file.url {
            Some(url) => {
                let (url, query) = url.split_once('?').unwrap_or((&url, ""));
                (Some(url.to_owned()), file.query.unwrap_or_else(|| query.to_owned()))
            }
            None => (None, file.query.unwrap_or_default()),
        };
        let method = file.method.unwrap_or_else(|| "POST".to_owned());
        Ok(Self { source: file.source, method, url, query, headers, body })
    }

    /// Replaces a header, or adds it.
    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        let kept = self.headers.iter().filter(|(known, _)| !known.eq_ignore_ascii_case(name));
        let mut headers: Headers = kept.collect();
        headers.push(name, value);
        self.headers = headers;
    }

    /// Changes values of a JSON body. Members of an object are added, everything else must exist.
    pub(crate) fn set(&mut self, changes: &[Set]) -> Result<(), Failure> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut body: Value = serde_json::from_slice(&self.body)
            .map_err(|_| Failure::usage("the body is no JSON, so no value of it can be set"))?;
        for change in changes {
            put(&mut body, change).ok_or_else(|| {
                Failure::usage(format!("the body has no place {}", change.pointer))
                    .with_next("the object or list that holds the value must be there")
            })?;
        }
        self.body = body.to_string().into_bytes();
        Ok(())
    }
}

/// The bytes a body stands for.
fn bytes(body: &RawValue) -> Result<Vec<u8>, String> {
    if body.get().starts_with('"') {
        let text: String =
            serde_json::from_str(body.get()).map_err(|error| format!("`body`: {error}"))?;
        return Ok(text.into_bytes());
    }
    Ok(dedented(body.get()).into_bytes())
}

/// JSON text without the indentation it has in the file: as far as its last line is indented. A
/// line break inside a string of JSON is written `\\n`, so no string is touched.
fn dedented(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    let indent = last.len() - last.trim_start_matches(' ').len();
    let lines = text.split('\n').enumerate().map(|(n, line)| {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let (_, rest) = line.split_at(if n == 0 { 0 } else { blanks.min(indent) });
        rest
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Puts a value in place; `None` where there is no such place.
fn put(body: &mut Value, change: &Set) -> Option<()> {
    if let Some(found) = body.pointer_mut(&change.pointer) {
        *found = change.value.clone();
        return Some(());
    }
    let (parent, member) = change.pointer.rsplit_once('/')?;
    let member = member.replace("~1", "/").replace("~0", "~");
    let members = body.pointer_mut(parent)?.as_object_mut()?;
    members.insert(member, change.value.clone());
    Some(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use verifier::HeaderLookup;

    fn set(pointer: &str, value: Value) -> Set {
        Set { pointer: pointer.to_owned(), value }
    }

    #[test]
    fn a_json_body_is_taken_as_it_stands_and_a_string_as_its_characters() {
        let body = |text: &str| Sample::parse(text).unwrap().body;
        assert_eq!(body(r#"{"body": {"b": 1.50,  "a": 2}}"#), br#"{"b": 1.50,  "a": 2}"#);
        assert_eq!(body(r#"{"body": "a=1&b=%20"}"#), b"a=1&b=%20");
        assert_eq!(body(r#"{"body_base64": "AP8="}"#), [0, 255]);
        assert!(body("{}").is_empty());
        let nested = "{\n  \"body\": {\n    \"a\": [\n      1\n    ]\n  }\n}";
        assert_eq!(body(nested), b"{\n  \"a\": [\n    1\n  ]\n}");
    }

    #[test]
    fn headers_may_repeat_and_a_url_brings_its_query() {
        let text = r#"{"url": "https://x.test/a?b=1", "headers": {"A": ["1", "2"], "C": "3"}}"#;
        let sample = Sample::parse(text).unwrap();
        assert_eq!(sample.headers.get("a"), HeaderLookup::Repeated);
        assert_eq!(sample.headers.get("c"), HeaderLookup::Once("3"));
        assert_eq!(
            (sample.url.as_deref(), sample.query.as_str()),
            (Some("https://x.test/a"), "b=1")
        );
        assert_eq!(sample.method, "POST");
    }

    #[test]
    fn a_file_that_is_something_else_is_told_why() {
        let refusals = [
            (r#"{"bdy": 1}"#, "bdy"),
            (r#"{"body": 1, "body_base64": "AA=="}"#, "exclude"),
            (r#"{"body_base64": "?"}"#, "body_base64"),
            ("[]", "no request file"),
        ];
        for (text, says) in refusals {
            let said = Sample::parse(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }

    #[test]
    fn values_are_changed_and_members_added_but_no_structure_is_made_up() {
        let mut sample = Sample::parse(r#"{"body": {"a": {"x": 1}, "l": [1]}}"#).unwrap();
        let changes =
            [set("/a/x", 2.into()), set("/a/y~1z", "new".into()), set("/l/0", Value::Null)];
        sample.set(&changes).unwrap();
        assert_eq!(sample.body, br#"{"a":{"x":2,"y/z":"new"},"l":[null]}"#);
        let failure = sample.set(&[set("/b/c", 1.into())]).unwrap_err();
        assert!(failure.to_string().contains("/b/c"));
    }

    #[test]
    fn every_shipped_sample_reads_and_is_named_after_its_source() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let sample = Sample::read(&path).unwrap();
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                let provider = name.split('_').next().unwrap();
                assert!(sample.source.unwrap().starts_with(provider), "{name}");
                seen += 1;
            }
        }
        assert!(seen >= 14, "only {seen} samples");
    }
}
