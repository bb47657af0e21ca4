//! Where a value stands: a pointer into the event, into the envelope of a batch, or a header.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::pointer::Pointer;
use super::scalar::{scalar, scalar_or_bool};
use crate::preset::section::{PresetDefect, Section};
use crate::{HeaderLookup, Headers};

/// What a preset's places are written like.
const ALLOWED: &str = "`/pointer`, `envelope:/pointer` or `header:name`, alternatives cut by ` | `";

/// The longest value that is read as text; a longer one is nobody's id, type or time. Beyond 1,024
/// bytes the ledger keeps an id as its hash.
const TEXT_BYTES_MAX: usize = 16 * 1_024;

/// One place, or several of which the first with a usable value counts.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    text: String,
    alternatives: Vec<Spot>,
}

/// Pointers stand in `Picks` and are known here by their number.
#[derive(Clone, Debug)]
enum Spot {
    Item(usize),
    Envelope(usize),
    Header(String),
}

/// Every pointer a preset needs, so that one pass finds them all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picks {
    /// Whether events stand in a batch; otherwise an event is its own envelope.
    pub(crate) in_batch: bool,
    pub(crate) item: Vec<Pointer>,
    pub(crate) envelope: Vec<Pointer>,
}

/// What was found at the picks, and the headers beside it.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'s, 'd> {
    pub(crate) item: &'s [Option<&'d RawValue>],
    pub(crate) envelope: &'s [Option<&'d RawValue>],
    pub(crate) headers: &'s Headers,
}

impl Place {
    /// Reads a place and notes its pointers in `picks`.
    pub(crate) fn read(
        section: &Section<'_>,
        key: &str,
        text: &str,
        picks: &mut Picks,
    ) -> Result<Self, PresetDefect> {
        let defect = || section.defect(key, format!("`{text}`"), ALLOWED);
        let alternatives = text
            .split(" | ")
            .map(|spot| Spot::parse(spot.trim(), picks).ok_or_else(defect))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { text: text.to_owned(), alternatives })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The first usable identifier: a string, or a number other than zero.
    pub(crate) fn identifier<'s>(&'s self, sight: &Sight<'s, '_>) -> Option<Cow<'s, str>> {
        self.alternatives
            .iter()
            .filter_map(|spot| spot.text(sight, scalar))
            .find(|text| is_identifier(text))
    }

    /// The first value that is a string, number or boolean, as text.
    pub(crate) fn text<'s>(&'s self, sight: &Sight<'s, '_>) -> Option<Cow<'s, str>> {
        self.alternatives.iter().find_map(|spot| spot.text(sight, scalar_or_bool))
    }

    /// The first value as it is written, for hashing.
    pub(crate) fn raw<'s>(&'s self, sight: &Sight<'s, '_>) -> Option<&'s str> {
        self.alternatives.iter().find_map(|spot| match spot {
            Spot::Item(index) => sight.item.get(*index)?.map(RawValue::get),
            Spot::Envelope(index) => sight.envelope.get(*index)?.map(RawValue::get),
            Spot::Header(name) => header(sight, name),
        })
    }
}

impl Spot {
    fn parse(text: &str, picks: &mut Picks) -> Option<Self> {
        if let Some(name) = text.strip_prefix("header:") {
            return (!name.is_empty()).then(|| Self::Header(name.to_ascii_lowercase()));
        }
        if let Some(pointer) = text.strip_prefix("envelope:") {
            let pointer = Pointer::parse(pointer)?;
            return Some(if picks.in_batch {
                Self::Envelope(number(&mut picks.envelope, pointer))
            } else {
                Self::Item(number(&mut picks.item, pointer))
            });
        }
        let pointer = Pointer::parse(text)?;
        Some(Self::Item(number(&mut picks.item, pointer)))
    }

    fn text<'s>(
        &'s self,
        sight: &Sight<'s, '_>,
        read: impl Fn(&'s RawValue) -> Option<Cow<'s, str>>,
    ) -> Option<Cow<'s, str>> {
        let read = |values: &[Option<&'s RawValue>], index: usize| {
            let value = values.get(index).copied()??;
            if value.get().len() <= TEXT_BYTES_MAX { read(value) } else { None }
        };
        match self {
            Self::Item(index) => read(sight.item, *index),
            Self::Envelope(index) => read(sight.envelope, *index),
            Self::Header(name) => header(sight, name).map(Cow::Borrowed),
        }
    }
}

/// A header's value. A comma is what a gateway puts between the values of a repeated header, and no
/// provider writes one into an id, a topic or a time.
fn header<'s>(sight: &Sight<'s, '_>, name: &str) -> Option<&'s str> {
    match sight.headers.get(name) {
        HeaderLookup::Once(value) if !value.contains(',') => Some(value),
        HeaderLookup::Once(_) | HeaderLookup::Missing | HeaderLookup::Repeated => None,
    }
}

fn number(pointers: &mut Vec<Pointer>, pointer: Pointer) -> usize {
    let known = pointers.iter().position(|known| *known == pointer);
    known.unwrap_or_else(|| {
        let next = pointers.len();
        pointers.push(pointer);
        next
    })
}

/// Whether a text can name something: not blank, no control characters, and none of the words that
/// stand for "nothing" when a sender's code went wrong.
fn is_identifier(text: &str) -> bool {
    !text.trim().is_empty()
        && !text.contains(char::is_control)
        && !matches!(text, "null" | "undefined" | "0" | "-0")
}
