//! The file of a backfill, read line by line: a month of entities must not need a month of memory.

use crate::failure::Failure;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};

/// One line: where it stands, and what it says or why it says nothing.
pub(crate) struct Line {
    /// Counted from 1, a CSV's header among them.
    pub(crate) number: u64,
    /// What it says.
    pub(crate) read: Result<Said, String>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// The state key.
    pub(crate) entity: String,
    /// As the provider writes it.
    pub(crate) version: Option<Value>,
    /// The state, whole.
    #[serde(default)]
    pub(crate) state: Option<Map<String, Value>>,
}

/// Opens a file: CSV where its name ends so, else lines of JSON. Blank lines say nothing.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Iterator<Item = Line>>, Failure> {
    let file = File::open(path)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", path.display())))?;
    let is_csv = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    if is_csv { csv(file) } else { Ok(Box::new(json(file))) }
}

/// How many lines a file has. What is no file, such as a pipe, is not read for it: none.
pub(crate) fn count(path: &Path) -> u64 {
    let counted = || -> io::Result<u64> {
        if !path.metadata()?.is_file() {
            return Ok(0);
        }
        let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
        let (mut lines, mut last) = (0, b'\n');
        loop {
            let bytes = reader.fill_buf()?;
            let Some(end) = bytes.last() else { break };
            last = *end;
            lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
            let read = bytes.len();
            reader.consume(read);
        }
        // The last one may end without a line end.
        Ok(lines + u64::from(last != b'\n'))
    };
    // Only a bar is drawn by it.
    counted().unwrap_or(0)
}

fn json(file: File) -> impl Iterator<Item = Line> {
    let lines = BufReader::new(file).lines().zip(1_u64..);
    lines.filter_map(|(text, number)| {
        let text = match text {
            Ok(text) if text.trim().is_empty() => return None,
            Ok(text) => text,
            Err(error) => return Some(Line { number, read: Err(error.to_string()) }),
        };
        // The parser's own words may quote the line, which holds a customer's state.
        let read = serde_json::from_str(&text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => {
                "expected {\"entity\": text, \"version\": ..., \"state\": {...} or nothing}"
                    .to_owned()
            }
            _ => format!("is no JSON, at column {}", error.column()),
        });
        Some(Line { number, read })
    })
}

fn csv(file: File) -> Result<Box<dyn Iterator<Item = Line>>, Failure> {
    let mut reader = ::csv::ReaderBuilder::new().trim(::csv::Trim::All).from_reader(file);
    let header = reader
        .headers()
        .map_err(|error| Failure::usage(format!("the header cannot be read: {error}")))?;
    let names: Vec<&str> = header.iter().collect();
    if !matches!(names.as_slice(), ["entity", "version"] | ["entity", "version", "state"]) {
        return Err(Failure::usage(format!("the header is {:?}", names.join(",")))
            .with_next("the first line must read entity,version or entity,version,state"));
    }
    Ok(Box::new(reader.into_records().map(|record| match record {
        Ok(record) => {
            let number = record.position().map_or(0, ::csv::Position::line);
            Line { number, read: said(&record) }
        }
        Err(error) => {
            let number = error.position().map_or(0, ::csv::Position::line);
            Line {
                number,
                read: Err(
                    "has another number of columns than the header, or is no UTF-8".to_owned()
                ),
            }
        }
    })))
}

fn said(record: &::csv::StringRecord) -> Result<Said, String> {
    let cell = |index| record.get(index).filter(|text: &&str| !text.is_empty());
    let state = cell(2).map(serde_json::from_str).transpose();
    Ok(Said {
        entity: cell(0).unwrap_or_default().to_owned(),
        version: cell(1).map(Value::from),
        state: state.map_err(|_| "the state is no JSON object".to_owned())?,
    })
}
