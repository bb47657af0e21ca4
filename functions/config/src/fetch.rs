//! Fetching: where the present state of an entity type is asked for, how, and how often.
//!
//! A table `[fetch.<entity type>]` serves every source; `[sources.<name>.fetch.<entity type>]` is
//! that source's own and comes first there. What the provider answers is read by the table's `set`,
//! since an answer is shaped like the object and not like the event about it.

use crate::{
    Expr,
    error::{Report, quote},
    projection::read::read_map,
    section::{Section, describe, is_name},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::{collections::BTreeMap, ops::Range, sync::Arc};
use toml::de::DeValue;

/// Everything but the characters that need no escape in any part of a URL (RFC 3986, 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const PLACE: &str = "{id}";
const URL: &str = "an https address with `{id}` once behind its host, such as \
                   https://api.example.com/v1/things/{id}";
const TOKEN_URL: &str = "an https address";
const SET: &str = "a table { field = \"/...\" }, the state as the provider's answer has it";
const SECRET: &str = "the name of an entry of the outbound secret (never a key): \
                      1 to 64 of a-z, 0-9, `_` and `-`";

/// How the provider is asked for the present state of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The table's place in the file, such as `sources.stripe-live.fetch.subscription`: what its
    /// limits are counted under.
    pub path: String,
    /// The address.
    pub url: UrlTemplate,
    /// The entry of the outbound secret that holds the key. Never a key.
    pub secret: String,
    /// How the key is shown.
    pub auth: Auth,
    /// What an answer 404 means.
    pub on_404: OnMissing,
    /// Calls a second, of all processes together.
    pub rate_per_s: u32,
    /// Calls at the same time, of all processes together; `None` leaves it to how many events are
    /// worked at the same time.
    pub concurrency: Option<u32>,
    /// How an answer becomes the state, field by field.
    pub set: BTreeMap<String, Expr>,
}

/// How a key is shown to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer <key>`.
    Bearer,
    /// `Authorization: Basic <key>`, where the key is `user:password`.
    Basic,
    /// The key in a header of its own.
    Header(String),
    /// The key is `client:secret`, which this address gives a bearer token for (OAuth 2.0 client
    /// credentials, RFC 6749, 4.4).
    ClientCredentials(Address),
}

/// What it means that the provider does not know an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// It is gone for good: every field becomes null, and the entity final.
    Tombstone,
    /// It is not there now: every field becomes null.
    Empty,
    /// It is not there yet: the event is tried again.
    Retry,
    /// It should be there: the event is dead, for a person to look at.
    Dead,
}

const ON_MISSING: &[(&str, OnMissing)] = &[
    ("tombstone", OnMissing::Tombstone),
    ("empty", OnMissing::Empty),
    ("retry", OnMissing::Retry),
    ("dead", OnMissing::Dead),
];

/// An address: `https`, or `http` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    origin: String,
    rest: String,
}

impl Address {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, after) = text.split_once("://")?;
        let (host, rest) = after.split_at(after.find('/').unwrap_or(after.len()));
        let name = host.split(':').next().unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
        let is_safe = scheme == "https" || (scheme == "http" && is_loopback(name));
        let is_host = !name.is_empty() && host.bytes().all(plain);
        let is_graphic = rest.bytes().all(|byte| byte.is_ascii_graphic());
        (is_safe && is_host && is_graphic && !rest.contains('#'))
            .then(|| Self { origin: format!("{scheme}://{host}"), rest: rest.to_owned() })
    }

    /// The whole address; with another origin in the place of its own where one is given.
    #[must_use]
    pub fn at(&self, origin: Option<&str>) -> String {
        format!("{}{}", origin.unwrap_or(&self.origin), self.rest)
    }
}

fn is_loopback(name: &str) -> bool {
    name == "127.0.0.1" || name == "localhost"
}

/// An address with a place for the entity's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate(Address);

impl UrlTemplate {
    fn parse(text: &str) -> Option<Self> {
        let address = Address::parse(text)?;
        let around = address.rest.replacen(PLACE, "", 1);
        let is_one_place = around.len() < address.rest.len() && !around.contains(['{', '}']);
        is_one_place.then_some(Self(address))
    }

    /// The address of one entity, its id percent-encoded; with another origin in the place of the
    /// template's own where one is given. `None` for an id that a URL would take for a step to
    /// another folder.
    #[must_use]
    pub fn of(&self, id: &str, origin: Option<&str>) -> Option<String> {
        if matches!(id, "" | "." | "..") {
            return None;
        }
        let id = utf8_percent_encode(id, ESCAPED).to_string();
        Some(self.0.at(origin).replacen(PLACE, &id, 1))
    }
}

/// A table and where it stands.
pub(crate) struct Draft {
    pub(crate) fetch: Arc<Fetch>,
    pub(crate) at: Range<usize>,
    pub(crate) is_used: bool,
}

/// Tables by entity type. `None` stands for one that something was reported about.
pub(crate) type Drafts = BTreeMap<String, Option<Draft>>;

/// Reads the table `fetch` of a source, or of the file.
pub(crate) fn read(section: &mut Section<'_>, report: &mut Report<'_>) -> Drafts {
    let Some(tables) = section.section(report, "fetch") else {
        return Drafts::new();
    };
    let mut drafts = Drafts::new();
    for (key, value) in tables.entries() {
        let name = key.get_ref();
        if !is_name(name) {
            let found = format!("the entity type {}", quote(name));
            report.refuse(key.span(), tables.path(), found, crate::section::NAME);
            continue;
        }
        let table = tables.entry(report, key, value);
        let draft = table.and_then(|table| read_one(table, report));
        drafts.insert(name.to_string(), draft);
    }
    drafts
}

fn read_one(mut section: Section<'_>, report: &mut Report<'_>) -> Option<Draft> {
    let path = section.path().to_owned();
    let at = section.line_at();
    let url = read_url(&mut section, report);
    let secret = read_secret(&mut section, report);
    let auth = match section.value("auth") {
        None => Some(Auth::Bearer),
        Some(_) => read_auth(&mut section, report),
    };
    section.required(report, "on_404", "tombstone, empty, retry, dead");
    let on_404 = section.choice(report, "on_404", ON_MISSING);
    section.required(report, "rate_per_s", "calls a second, 1 to 10000");
    let rate_per_s = section.whole(report, "rate_per_s", 1..=10_000);
    let concurrency = match section.value("concurrency") {
        None => Some(None),
        Some(_) => section.whole(report, "concurrency", 1..=10_000).map(Some),
    };
    section.required(report, "set", SET);
    let set = section
        .section(report, "set")
        .and_then(|set| read_map(&set, report, SET, crate::expr::read));
    section.finish(report);
    let fetch = Fetch {
        path,
        url: url?,
        secret: secret?,
        auth: auth?,
        on_404: on_404?,
        rate_per_s: rate_per_s?,
        concurrency: concurrency?,
        set: set?,
    };
    Some(Draft { fetch: Arc::new(fetch), at, is_used: false })
}

fn read_url(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<UrlTemplate> {
    let text = section.required_string(report, "url", URL)?;
    let url = UrlTemplate::parse(text);
    if url.is_none() {
        report.refuse(section.at("url"), section.key("url"), quote(text), URL);
    }
    url
}

/// The name of a secret. What is refused is not repeated: it may be a key pasted by mistake.
fn read_secret(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<String> {
    let text = section.required_string(report, "secret", SECRET)?;
    if !is_name(text) {
        let found = format!("a text of {} bytes that is no name", text.len());
        report.refuse(section.at("secret"), section.key("secret"), found, SECRET);
        return None;
    }
    Some(text.to_owned())
}

fn read_auth(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<Auth> {
    let allowed = "bearer, basic, { header = \"x-api-key\" }, or { token_url = \"https://...\" }";
    let value = section.value("auth")?;
    let found = match value.get_ref() {
        DeValue::String(text) => match text.as_ref() {
            "bearer" => return Some(Auth::Bearer),
            "basic" => return Some(Auth::Basic),
            _ => describe(value),
        },
        DeValue::Table(table) if table.len() == 1 => {
            let mut table = section.section(report, "auth")?;
            let header = table.string(report, "header", "the name of a header");
            let token_url = table.string(report, "token_url", TOKEN_URL);
            let read = match (header, token_url) {
                (Some(name), _) => read_header(&table, report, name),
                (None, Some(text)) => {
                    let address = Address::parse(text);
                    if address.is_none() {
                        let (at, key) = (table.at("token_url"), table.key("token_url"));
                        report.refuse(at, key, quote(text), TOKEN_URL);
                    }
                    address.map(Auth::ClientCredentials)
                }
                (None, None) => None,
            };
            table.finish(report);
            return read;
        }
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => describe(value),
    };
    report.refuse(value.span(), section.key("auth"), found, allowed);
    None
}

fn read_header(table: &Section<'_>, report: &mut Report<'_>, name: &str) -> Option<Auth> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(plain) {
        let allowed = "the name of a header in lower case: a-z, 0-9 and `-`";
        report.refuse(table.at("header"), table.key("header"), quote(name), allowed);
        return None;
    }
    Some(Auth::Header(name.to_owned()))
}

/// Refuses tables that no projection asks through: their type is probably misspelt. Beside other
/// mistakes it would be guesswork: the projection may be the one that is wrong.
pub(crate) fn refuse_unused(drafts: &Drafts, report: &mut Report<'_>) {
    if !report.is_clean() {
        return;
    }
    for (entity_type, draft) in drafts {
        let Some(draft) = draft.as_ref().filter(|draft| !draft.is_used) else {
            continue;
        };
        let found = format!("no projection of {} that fetches", quote(entity_type));
        let allowed = "the entity type of a projection with strategy, tie or on_gap = \"fetch\"";
        report.refuse(draft.at.clone(), draft.fetch.path.as_str(), found, allowed);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_its_place_in_the_address() {
        let url = UrlTemplate::parse("https://api.example.com/v1/things/{id}?expand=a").unwrap();
        let of = |id| url.of(id, None);
        let at = |id: &str| Some(format!("https://api.example.com/v1/things/{id}?expand=a"));
        assert_eq!(of("sub_1-2.3~4"), at("sub_1-2.3~4"));
        assert_eq!(of("a/../b?c=d#e&f%20"), at("a%2F..%2Fb%3Fc%3Dd%23e%26f%2520"));
        assert_eq!(of("\u{e9} \r\n"), at("%C3%A9%20%0D%0A"));
        assert_eq!(of("{id}"), at("%7Bid%7D"));
        for step in ["", ".", ".."] {
            assert_eq!(of(step), None, "{step:?}");
        }
    }

    #[test]
    fn another_origin_keeps_the_rest_of_the_address() {
        let url = UrlTemplate::parse("https://api.example.com/v1/{id}").unwrap();
        let local = url.of("x", Some("http://127.0.0.1:8420"));
        assert_eq!(local.as_deref(), Some("http://127.0.0.1:8420/v1/x"));
        let address = Address::parse("https://api.example.com").unwrap();
        assert_eq!(address.at(None), "https://api.example.com");
    }

    #[test]
    fn an_address_is_encrypted_names_a_host_and_has_one_place_behind_it() {
        for good in ["https://a.example/{id}", "http://127.0.0.1:80/{id}", "https://h:1/?q={id}"] {
            assert!(UrlTemplate::parse(good).is_some(), "{good}");
        }
        for bad in [
            "http://a.example/{id}",
            "http://127.0.0.1.evil.example/{id}",
            "https://{id}.example/",
            "https://a.example/",
            "https://a.example/{id}/{id}",
            "https://a.example/{id}/{other}",
            "https://user:key@a.example/{id}",
            "https://a.example/{id} x",
            "https://a.example/{id}#part",
            "https:///{id}",
            "a.example/{id}",
        ] {
            assert!(UrlTemplate::parse(bad).is_none(), "{bad}");
        }
    }
}
