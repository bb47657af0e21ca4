//! The pager: from a provider's description to the request for a page, and from an answer to its
//! events and the next request. No clock, no network, no key.
//!
//! A page is asked for by a cursor of the provider's own, never by a time, so that events that share
//! a second, or a second that fills several pages, lose nothing. The window's end is fixed before
//! the first page; what arrives while the pages are read lies behind it, above the first page, and
//! moves no cursor.
//!
//! Both ends of the window are included, in whole seconds: windows that touch overlap by a second
//! rather than miss one.

mod cursor;

pub use cursor::Cursor;
pub(super) use cursor::origin;

use super::raw::{at, place, text};
use crate::http::{HttpAnswer, HttpAsk, Method};
use ledger::Millis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use thiserror::Error;
use verifier::{EventList, NextPage};

/// Longest page that is read. Stripe sends a hundred events at once, and some hold long lists.
const PAGE_BYTES_MAX: usize = 48 * 1_024 * 1_024;
const PATIENCE_MS: u64 = 30_000;

/// From when until when, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The first millisecond, at the beginning of a second.
    pub since: Millis,
    /// The last millisecond, at the end of a second.
    pub until: Millis,
}

impl Window {
    /// The whole seconds that hold both points.
    #[must_use]
    pub const fn new(since: Millis, until: Millis) -> Self {
        Self {
            since: Millis(since.0 - since.0 % 1_000),
            until: Millis((until.0 - until.0 % 1_000).saturating_add(999)),
        }
    }

    /// Whether a point lies in it.
    #[must_use]
    pub fn holds(&self, at: Millis) -> bool {
        self.since <= at && at <= self.until
    }

    /// Its length.
    #[must_use]
    pub fn ms(&self) -> u64 {
        self.until.since(self.since)
    }
}

/// An event of a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its type, as the preset writes it in a row.
    pub event_type: String,
    /// When it happened.
    pub at: Millis,
    /// The name under which its details are read, where the list leaves out the body.
    pub detail: Option<String>,
    item: Box<RawValue>,
}

/// An item of a list that names no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlisted {
    /// Its id, as far as it has one.
    pub id: String,
    /// What is wrong.
    pub why: String,
}

/// One page.
#[derive(Debug, Default)]
pub struct Page {
    /// The events in the window, as listed.
    pub events: Vec<Listed>,
    /// Items that cannot be read.
    pub unlisted: Vec<Unlisted>,
    /// The oldest time on the page.
    pub oldest: Option<Millis>,
    /// The next page; `None` where the window ends.
    pub next: Option<Cursor>,
}

/// The bytes and headers of a delivery.
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    /// The bytes.
    pub body: Vec<u8>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}

/// An answer that is no page.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoPage {
    /// Not the JSON that the description says.
    #[error("its answer is not the list that is expected: {0}")]
    NotAList(String),
    /// The next page is the one just read.
    #[error("its cursor does not move: the next page is the one just read")]
    Stuck,
    /// The next page is on another host, where the key does not belong.
    #[error("its next page is on another host")]
    Elsewhere,
}

/// Reads one list in one window.
#[derive(Debug, Clone)]
pub struct Pager {
    list: EventList,
    address: String,
    window: Window,
}

impl Pager {
    /// For the list at `address`.
    #[must_use]
    pub const fn new(list: EventList, address: String, window: Window) -> Self {
        Self { list, address, window }
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// Whether the page that a cursor names lies where the key belongs.
    #[must_use]
    pub fn holds(&self, cursor: &Cursor) -> bool {
        cursor.lies_at(&self.address)
    }

    /// The types that the endpoint is sent; all where it is empty.
    #[must_use]
    pub fn types(&self) -> &[String] {
        &self.list.types
    }

    /// Whether a body is read with a request of its own.
    #[must_use]
    pub const fn needs_details(&self) -> bool {
        self.list.event.detail.is_some()
    }

    /// The request for a page, without the key.
    #[must_use]
    pub fn ask(&self, cursor: &Cursor) -> HttpAsk {
        let mut url = match cursor {
            Cursor::Address(address) => address.clone(),
            Cursor::First | Cursor::After(_) => self.first_address(),
        };
        let mut body = self.list.post.as_deref().map(|post| self.filled(post));
        if let (Cursor::After(after), Some(name)) = (cursor, self.cursor_name()) {
            match &mut body {
                Some(body) => *body = with_field(body, name, after),
                None => url = with_query(&url, [(name, after.as_str())]),
            }
        }
        HttpAsk {
            method: if body.is_some() { Method::Post } else { Method::Get },
            body: body.unwrap_or_default().into_bytes(),
            patience_ms: PATIENCE_MS,
            answer_bytes_max: PAGE_BYTES_MAX,
            headers: self.list.headers.clone(),
            ..HttpAsk::get(url)
        }
    }

    /// The request for the details of an event, without the key.
    #[must_use]
    pub fn ask_details(&self, name: &str) -> HttpAsk {
        let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        HttpAsk {
            patience_ms: PATIENCE_MS,
            answer_bytes_max: PAGE_BYTES_MAX,
            headers: self.list.headers.clone(),
            ..HttpAsk::get(format!("{}/{name}", self.address))
        }
    }

    /// The page in an answer to the request for `asked`.
    pub fn read(&self, asked: &Cursor, answer: &HttpAnswer) -> Result<Page, NoPage> {
        let whole: &RawValue = serde_json::from_slice(&answer.body)
            .map_err(|error| NoPage::NotAList(place(&error)))?;
        let items = at(whole, &self.list.items)
            .ok_or_else(|| NoPage::NotAList(format!("nothing at {:?}", self.list.items)))?;
        let items: Vec<&RawValue> =
            serde_json::from_str(items.get()).map_err(|error| NoPage::NotAList(place(&error)))?;
        let mut page = Page::default();
        let mut newest = None;
        for item in &items {
            match self.listed(item) {
                Ok(event) => {
                    page.oldest = Some(page.oldest.map_or(event.at, |at| at.min(event.at)));
                    newest = newest.max(Some(event.at));
                    if self.window.holds(event.at) {
                        page.events.push(event);
                    }
                }
                Err(unlisted) => page.unlisted.push(unlisted),
            }
        }
        // Only a page that lies before the window as a whole ends it: neighbours may swap places.
        let is_before =
            self.list.newest_first && newest.is_some_and(|newest| newest < self.window.since);
        if !is_before {
            page.next = self.next(whole, items.last().copied(), answer)?;
        }
        match &page.next {
            Some(next) if next == asked => Err(NoPage::Stuck),
            Some(next) if !next.lies_at(&self.address) => Err(NoPage::Elsewhere),
            Some(_) | None => Ok(page),
        }
    }

    /// What a delivery of the event would carry. `details` is the answer to
    /// [`Pager::ask_details`], where the list leaves the body out.
    pub fn content(&self, event: &Listed, details: Option<&[u8]>) -> Result<Content, String> {
        let read: Option<&RawValue> = details
            .map(serde_json::from_slice)
            .transpose()
            .map_err(|error| format!("its details are no JSON ({})", place(&error)))?;
        let holder = read.unwrap_or(&event.item);
        let body = at(holder, &self.list.event.body)
            .ok_or_else(|| format!("it has no body at {:?}", self.list.event.body))?;
        let body = match &self.list.event.wrap {
            Some(name) => format!("{{{}:[{}]}}", serde_json::json!(name), body.get()),
            None => body.get().to_owned(),
        };
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        if let Some(pointer) = &self.list.event.headers {
            let kept: BTreeMap<String, &RawValue> = at(holder, pointer)
                .and_then(|found| serde_json::from_str(found.get()).ok())
                .ok_or_else(|| format!("it has no headers at {pointer:?}"))?;
            let named = kept.into_iter().filter_map(|(name, value)| {
                let name = name.to_ascii_lowercase();
                // What speaks of the first request's bytes is wrong for these.
                let is_kept = name.starts_with("x-") && !name.contains("signature");
                Some((name, text(value)?)).filter(|_| is_kept)
            });
            headers.extend(named);
        }
        headers.extend(self.list.event.with.iter().cloned());
        Ok(Content { body: body.into_bytes(), headers })
    }

    fn listed(&self, item: &RawValue) -> Result<Listed, Unlisted> {
        let event = &self.list.event;
        let word = |pointer: &str| at(item, pointer).and_then(text);
        let id = word(&event.id).unwrap_or_default();
        let unlisted = |why: String| Unlisted { id: id.clone(), why };
        if id.is_empty() {
            return Err(unlisted(format!("it has no id at {:?}", event.id)));
        }
        let time = word(&event.time.at)
            .and_then(|text| event.time.parse_ms(&text))
            .ok_or_else(|| unlisted(format!("it has no readable time at {:?}", event.time.at)))?;
        let detail = match &event.detail {
            None => None,
            Some(pointer) => Some(
                word(pointer).ok_or_else(|| unlisted(format!("it has no name at {pointer:?}")))?,
            ),
        };
        let pieces: Vec<String> = event.event_type.iter().filter_map(|at| word(at)).collect();
        Ok(Listed {
            event_type: pieces.join("."),
            at: Millis(time),
            detail,
            item: item.to_owned(),
            id,
        })
    }

    fn next(
        &self,
        whole: &RawValue,
        last: Option<&RawValue>,
        answer: &HttpAnswer,
    ) -> Result<Option<Cursor>, NoPage> {
        let word =
            |pointer: &str| at(whole, pointer).and_then(text).filter(|text| !text.is_empty());
        let has_more = |pointer: &str| word(pointer).is_some_and(|more| more == "true");
        Ok(match &self.list.next {
            NextPage::LastId { at: pointer, more, .. } if has_more(more) => {
                let id = last.and_then(|item| at(item, pointer)).and_then(text);
                let id = id.ok_or_else(|| {
                    NoPage::NotAList("it says that there are more, behind no item".to_owned())
                })?;
                Some(Cursor::After(id))
            }
            NextPage::LastId { .. } => None,
            NextPage::LinkHeader => answer.header("link").and_then(next_link).map(Cursor::Address),
            NextPage::Url { at: pointer, more } => {
                let goes_on = more.as_deref().is_none_or(has_more);
                word(pointer).filter(|_| goes_on).map(Cursor::Address)
            }
            NextPage::Links { at: pointer } => at(whole, pointer)
                .and_then(|links| serde_json::from_str::<Vec<Link>>(links.get()).ok())
                .and_then(|links| links.into_iter().find(|link| link.rel == "next"))
                .map(|link| Cursor::Address(link.href)),
            NextPage::Cursor { at: pointer, .. } => word(pointer).map(Cursor::After),
        })
    }

    fn cursor_name(&self) -> Option<&str> {
        match &self.list.next {
            NextPage::LastId { query, .. } => Some(query),
            NextPage::Cursor { name, .. } => Some(name),
            NextPage::LinkHeader | NextPage::Url { .. } | NextPage::Links { .. } => None,
        }
    }

    fn first_address(&self) -> String {
        let query: Vec<(&str, String)> = self
            .list
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), self.filled(value)))
            .collect();
        with_query(&self.address, query.iter().map(|(name, value)| (*name, value.as_str())))
    }

    fn filled(&self, text: &str) -> String {
        let Window { since, until } = self.window;
        text.replace("{since.s}", &(since.0 / 1_000).to_string())
            .replace("{until.s}", &(until.0 / 1_000).to_string())
            .replace("{since.iso}", &iso(since))
            .replace("{until.iso}", &iso(until))
    }
}

/// A link among an answer's links.
#[derive(Deserialize)]
struct Link {
    #[serde(default)]
    href: String,
    #[serde(default)]
    rel: String,
}

/// The address of `rel="next"` in a `Link` header.
fn next_link(header: &str) -> Option<String> {
    header.split(',').find_map(|link| {
        let (address, parameters) = link.split_once(';')?;
        let is_next = parameters.split(';').any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            name.trim().eq_ignore_ascii_case("rel") && value.trim().trim_matches('"') == "next"
        });
        let address = address.trim().strip_prefix('<')?.strip_suffix('>')?;
        is_next.then(|| address.to_owned())
    })
}

fn with_query<'q>(address: &str, pairs: impl IntoIterator<Item = (&'q str, &'q str)>) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    match (query.is_empty(), address.contains('?')) {
        (true, _) => address.to_owned(),
        (false, true) => format!("{address}&{query}"),
        (false, false) => format!("{address}?{query}"),
    }
}

fn with_field(body: &str, name: &str, value: &str) -> String {
    let mut fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(body).unwrap_or_default();
    fields.insert(name.to_owned(), value.into());
    serde_json::Value::Object(fields).to_string()
}

fn iso(at: Millis) -> String {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    stamp.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[cfg(test)]
mod tests;
