//! Where a provider lists its past events, and how the list is read: what replay and reconciliation
//! ask it for.
//!
//! Data like the rest of a preset. Nothing is asked here: a pager turns these facts into requests.
//! Every way of paging is a cursor of the provider's own. None is a time: more events may share one
//! than a page holds.

use crate::preset::section::{PresetDefect, Section, describe};
use crate::time::TimeUnit;

/// What a provider can tell of its past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum History {
    /// It lists events.
    Listed(Box<EventList>),
    /// It does not.
    None {
        /// What there is instead, in a sentence.
        why: String,
    },
}

/// A list of past events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventList {
    /// How many days back it goes; `None` where the provider publishes no limit.
    pub days: Option<u32>,
    /// The list's address, without a query. `None` where it is the team's own and not yet given.
    pub address: Option<String>,
    /// What such an address looks like.
    pub address_form: Option<String>,
    /// The entry of the outbound secret that holds the key; the source's own where there is none.
    pub secret: Option<String>,
    /// How the key is shown.
    pub auth: ApiAuth,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// The query: names, and values that may hold `{since.s}`, `{since.iso}`, `{until.s}` and
    /// `{until.iso}`, both ends included.
    pub query: Vec<(String, String)>,
    /// The JSON body of a `POST`, with the same places; `None` for a `GET`.
    pub post: Option<String>,
    /// The event types that the endpoint is sent, where the list holds more; a name is also what begins
    /// with it and a dot. Empty for all.
    pub types: Vec<String>,
    /// Pointer to the list in an answer.
    pub items: String,
    /// Whether the newest comes first, so that a page older than the window ends it. Needed where
    /// the query cannot name the window.
    pub newest_first: bool,
    /// How the next page is asked for.
    pub next: NextPage,
    /// What an item says.
    pub event: ListedEvent,
}

/// How a key is shown to an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiAuth {
    /// `Authorization: Bearer <key>`.
    Bearer,
    /// `Authorization: Basic` of `<key>`, which is `user:password`, or a user alone.
    Basic,
    /// The key is `id:secret`; it buys a bearer token at this path of the same host (RFC 6749,
    /// section 4.4).
    ClientCredentials {
        /// The path of the token endpoint.
        token_path: String,
    },
}

/// How the next page is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextPage {
    /// The last item's id goes into the query, while the answer says that there are more.
    LastId {
        /// Pointer to the id in an item.
        at: String,
        /// The name in the query.
        query: String,
        /// Pointer to `true` in the answer.
        more: String,
    },
    /// A `Link` header with `rel="next"` (RFC 8288).
    LinkHeader,
    /// The answer holds the next address.
    Url {
        /// Pointer to it.
        at: String,
        /// Pointer to `true` in the answer, where the address alone does not say it.
        more: Option<String>,
    },
    /// The answer holds a list of links, `{"href": ..., "rel": "next"}` among them.
    Links {
        /// Pointer to the list.
        at: String,
    },
    /// The answer holds a cursor, which goes into the query, or into the posted body.
    Cursor {
        /// Pointer to it.
        at: String,
        /// Its name in the query or the body.
        name: String,
    },
}

/// What an item of the list says, as pointers into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEvent {
    /// The event id, as the preset's `[event]` finds it in a delivery.
    pub id: String,
    /// Pieces of the event type, joined by dots.
    pub event_type: Vec<String>,
    /// When it happened.
    pub time: ListedTime,
    /// The bytes that a delivery would carry: in the item, or in its details.
    pub body: String,
    /// The list of a delivery that the event is put into, for providers that deliver in batches.
    pub wrap: Option<String>,
    /// Pointer to the name under which the item's details are read, at `<address>/<name>`.
    pub detail: Option<String>,
    /// Pointer to the headers of the delivery, in the item or its details.
    pub headers: Option<String>,
    /// Headers that a delivery has, that the list does not tell, and that the preset requires.
    pub with: Vec<(String, String)>,
}

/// Where an item keeps its time, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTime {
    /// Pointer to it.
    pub at: String,
    unit: TimeUnit,
}

impl ListedTime {
    /// Milliseconds since the Unix epoch. A time without a zone is UTC.
    #[must_use]
    pub fn parse_ms(&self, text: &str) -> Option<u64> {
        let read = |text: &str| self.unit.parse_ms(text);
        read(text).or_else(|| read(&format!("{text}Z")))
    }
}

const AUTHS: &[(&str, &str)] =
    &[("bearer", "bearer"), ("basic", "basic"), ("client-credentials", "client-credentials")];
const WAYS: &[(&str, &str)] = &[
    ("last-id", "last-id"),
    ("link-header", "link-header"),
    ("url", "url"),
    ("links", "links"),
    ("cursor", "cursor"),
];

impl History {
    /// Without a table nobody has looked.
    pub(crate) fn unknown() -> Self {
        Self::None {
            why: "nothing is known of a list of its past events; describe one in a table `replay`"
                .to_owned(),
        }
    }

    pub(crate) fn read(section: Section<'_>) -> Result<Self, PresetDefect> {
        // A source may add a list to a preset that has none.
        let none = section.string("none")?;
        if let (Some(why), None) = (none, section.text("items")?) {
            let why = why.to_owned();
            section.finish()?;
            return Ok(Self::None { why });
        }
        EventList::read(section).map(|list| Self::Listed(Box::new(list)))
    }
}

impl EventList {
    fn read(section: Section<'_>) -> Result<Self, PresetDefect> {
        let days = section.number("days", 1, 3_650)?.and_then(|days| u32::try_from(days).ok());
        let list = Self {
            days,
            address: section.string("address")?.map(str::to_owned),
            address_form: section.string("address_form")?.map(str::to_owned),
            secret: section.string("secret")?.map(str::to_owned),
            auth: read_auth(&section)?,
            headers: read_pairs(&section, "headers")?,
            query: read_pairs(&section, "query")?,
            post: section.string("post")?.map(str::to_owned),
            types: section.strings("types")?.into_iter().map(str::to_owned).collect(),
            items: pointer(&section, "items")?.unwrap_or_default(),
            newest_first: section.boolean("newest_first")?.unwrap_or(false),
            next: read_next(section.required_section("next")?)?,
            event: read_event(section.required_section("event")?)?,
        };
        if let Some(address) = &list.address
            && !is_address(address)
        {
            let allowed = "an https address without a query (http on this machine only)";
            return Err(section.defect("address", format!("`{address}`"), allowed));
        }
        section.finish()?;
        Ok(list)
    }
}

/// Whether a key may be sent there.
fn is_address(text: &str) -> bool {
    let local = ["http://127.0.0.1", "http://localhost"]
        .iter()
        .filter_map(|host| text.strip_prefix(host))
        .any(|rest| rest.is_empty() || rest.starts_with([':', '/']));
    let plain = !text.contains(['?', '#', ' ', '@']) && !text.chars().any(char::is_control);
    plain && (local || text.strip_prefix("https://").is_some_and(|rest| rest.len() > 3))
}

fn read_auth(section: &Section<'_>) -> Result<ApiAuth, PresetDefect> {
    let token_path = section.string("token_path")?;
    match (section.required_choice("auth", AUTHS)?, token_path) {
        ("basic", _) => Ok(ApiAuth::Basic),
        ("client-credentials", Some(path)) => {
            Ok(ApiAuth::ClientCredentials { token_path: path.to_owned() })
        }
        ("client-credentials", None) => {
            Err(section.defect("token_path", "nothing", "the path of the token endpoint"))
        }
        _ => Ok(ApiAuth::Bearer),
    }
}

fn read_next(section: Section<'_>) -> Result<NextPage, PresetDefect> {
    let required =
        |key| pointer(&section, key)?.ok_or_else(|| section.defect(key, "nothing", POINTER));
    let next = match section.required_choice("by", WAYS)? {
        "last-id" => NextPage::LastId {
            at: required("at")?,
            query: section.required_string("query")?.to_owned(),
            more: required("more")?,
        },
        "link-header" => NextPage::LinkHeader,
        "url" => NextPage::Url { at: required("at")?, more: pointer(&section, "more")? },
        "links" => NextPage::Links { at: required("at")? },
        _ => NextPage::Cursor {
            at: required("at")?,
            name: section.required_string("name")?.to_owned(),
        },
    };
    section.finish()?;
    Ok(next)
}

fn read_event(section: Section<'_>) -> Result<ListedEvent, PresetDefect> {
    let time = section.required_section("time")?;
    let unit = time.required_choice("unit", TimeUnit::CHOICES)?;
    let at = pointer(&time, "at")?.ok_or_else(|| time.defect("at", "nothing", POINTER))?;
    time.finish()?;
    let event = ListedEvent {
        id: pointer(&section, "id")?.ok_or_else(|| section.defect("id", "nothing", POINTER))?,
        event_type: section.strings("type")?.into_iter().map(str::to_owned).collect(),
        time: ListedTime { at, unit },
        body: pointer(&section, "body")?.unwrap_or_default(),
        wrap: section.string("wrap")?.map(str::to_owned),
        detail: pointer(&section, "detail")?,
        headers: pointer(&section, "headers")?,
        with: read_pairs(&section, "with")?,
    };
    section.finish()?;
    Ok(event)
}

const POINTER: &str = "a JSON Pointer, such as `/data`, or nothing for the whole";

fn pointer(section: &Section<'_>, key: &'static str) -> Result<Option<String>, PresetDefect> {
    let Some(text) = section.text(key)? else { return Ok(None) };
    if text.is_empty() || text.starts_with('/') {
        Ok(Some(text.to_owned()))
    } else {
        Err(section.defect(key, format!("`{text}`"), POINTER))
    }
}

/// A table of texts, in the order of their names.
fn read_pairs(
    section: &Section<'_>,
    key: &'static str,
) -> Result<Vec<(String, String)>, PresetDefect> {
    let Some(table) = section.section(key)? else { return Ok(Vec::new()) };
    let pairs = table.entries().map(|(name, value)| match value.as_str() {
        Some(text) => Ok((name.to_owned(), text.to_owned())),
        None => Err(table.defect(name, describe(value), "a string")),
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_time_without_a_zone_is_utc() {
        let time = ListedTime { at: "/at".to_owned(), unit: TimeUnit::Iso };
        for text in ["2026-11-30T12:00:00Z", "2026-11-30T12:00:00", "2026-11-30T13:00:00+01:00"] {
            assert_eq!(time.parse_ms(text), Some(1_796_040_000_000), "{text}");
        }
        assert_eq!(time.parse_ms("yesterday"), None);
    }

    #[test]
    fn a_key_is_sent_encrypted_or_to_this_machine() {
        for good in ["https://a.b/", "http://localhost:80/x", "http://127.0.0.1", "https://h:1/v1"]
        {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "http://a.b/",
            "https://",
            "https://a/?x",
            "https://a/#x",
            "https://u:p@a.b/",
            "https://a b/",
            "https://a.b/\u{7}",
            "http://localhost.evil.example/",
            "http://127.0.0.1@evil.example/",
        ] {
            assert!(!is_address(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_token_is_exchanged_at_the_path_the_preset_names() {
        let table = crate::preset_table("paypal").unwrap();
        let preset = crate::Preset::from_table(&table).unwrap();
        let History::Listed(list) = preset.history() else { panic!("no list") };
        let token_path = "/v1/oauth2/token".to_owned();
        assert_eq!(list.auth, ApiAuth::ClientCredentials { token_path });
    }
}
