//! Where the events of a run go: posted to the replay route, or only looked up.

use super::{
    Stop,
    pager::Content,
    patience::{self, Watch},
};
use crate::{
    http::{HttpAnswer, HttpAsk, Method},
    outbound::ApiKey,
    ports::{Clock, Entropy, Http},
    receive::{BY, REASON, RUN, TOKEN, who_and_why_of},
};
use ledger::{EventKey, Origin};
use serde::Deserialize;
use std::future::Future;

/// What became of an event that was fed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fed {
    /// The ledger did not have it.
    New,
    /// The same, and it belongs to the other mode.
    WrongMode,
    /// The ledger had it.
    Duplicate {
        /// From this same run.
        is_own: bool,
    },
    /// It is kept and of no use, or was not taken.
    Failed(String),
}

/// Where events go.
pub trait Feed: Sync {
    /// Whether the ledger is asked first, so that only what it lacks is fed in.
    fn looks_first(&self) -> bool;
    /// Whether bodies are needed. Where they are not, `content` is empty.
    fn needs_content(&self) -> bool;
    /// How this run's own rows came in: origin, and the note in the row.
    fn mark(&self) -> Option<(Origin, &str)>;
    /// Feeds one event in.
    fn feed(
        &self,
        key: &EventKey,
        content: Content,
    ) -> impl Future<Output = Result<Fed, Stop>> + Send;
}

/// Feeds nothing in: a dry run. What the ledger lacks would be new.
pub struct Look;

impl Feed for Look {
    fn looks_first(&self) -> bool {
        true
    }

    fn needs_content(&self) -> bool {
        false
    }

    fn mark(&self) -> Option<(Origin, &str)> {
        None
    }

    async fn feed(&self, _key: &EventKey, _content: Content) -> Result<Fed, Stop> {
        Ok(Fed::New)
    }
}

/// Posts to the replay route.
pub struct Posts<'r, P, W> {
    ports: &'r P,
    watch: &'r W,
    address: String,
    headers: Vec<(String, String)>,
    note: String,
}

/// Who replays, why, and in which run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Names the run.
    pub run: String,
}

impl<'r, P, W> Posts<'r, P, W> {
    /// To the route of `source` on the stack at `url`, under the source's token.
    #[must_use]
    pub fn new(
        ports: &'r P,
        watch: &'r W,
        url: &str,
        source: &str,
        token: &ApiKey,
        words: &Words,
    ) -> Self {
        let headers = [
            (TOKEN, token.text().to_owned()),
            (BY, in_header(&words.by)),
            (REASON, in_header(&words.reason)),
            (RUN, in_header(&words.run)),
        ];
        Self {
            ports,
            watch,
            address: format!("{url}{}{source}", crate::receive::REPLAY_ROUTE),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            note: who_and_why_of(&words.by, Some(&words.run), &words.reason),
        }
    }
}

/// Text for a header: what HTTP does not allow there is percent-encoded, and `%` itself.
fn in_header(text: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS.add(b'%');
    percent_encoding::utf8_percent_encode(text, KEPT).to_string()
}

impl<P: Http + Clock + Entropy, W: Watch> Feed for Posts<'_, P, W> {
    fn looks_first(&self) -> bool {
        false
    }

    fn needs_content(&self) -> bool {
        true
    }

    fn mark(&self) -> Option<(Origin, &str)> {
        Some((Origin::Replay, &self.note))
    }

    async fn feed(&self, _key: &EventKey, content: Content) -> Result<Fed, Stop> {
        let ask = HttpAsk {
            method: Method::Post,
            body: content.body,
            headers: content.headers.into_iter().chain(self.headers.clone()).collect(),
            ..HttpAsk::get(&self.address)
        };
        let answer = patience::call(self.ports, self.watch, "the receiver", &ask).await;
        read(&answer.map_err(Stop::Unreachable)?)
    }
}

/// The replay route's answer.
#[derive(Deserialize)]
struct Answered {
    events: Vec<AnsweredEvent>,
}

#[derive(Deserialize)]
struct AnsweredEvent {
    key: String,
    outcome: String,
    #[serde(default)]
    own: bool,
}

/// What the receiver says of one post. A post holds one event; of several, the least good counts.
fn read(answer: &HttpAnswer) -> Result<Fed, Stop> {
    match answer.status {
        200 => {}
        401 => {
            let said = "the receiver refuses the replay token of this source";
            return Err(Stop::Refused(said.to_owned()));
        }
        404 => {
            let said = "the stack's replay route is closed, or its receiver knows no such source";
            return Err(Stop::Refused(said.to_owned()));
        }
        413 => return Ok(Fed::Failed("it is larger than the receiver takes".to_owned())),
        status => return Ok(Fed::Failed(format!("the receiver refuses it ({status})"))),
    }
    let Ok(answered) = serde_json::from_slice::<Answered>(&answer.body) else {
        let said = "the receiver's answer is not the replay route's; is this the stack's address?";
        return Err(Stop::Refused(said.to_owned()));
    };
    let read = |event: &AnsweredEvent| match event.outcome.as_str() {
        "new" => Fed::New,
        "wrong_mode" => Fed::WrongMode,
        "duplicate" => Fed::Duplicate { is_own: event.own },
        other => Fed::Failed(format!("it is kept as {}, and {other}", event.key)),
    };
    let rank = |fed: &Fed| match fed {
        Fed::Failed(_) => 0,
        Fed::New => 1,
        Fed::WrongMode => 2,
        Fed::Duplicate { .. } => 3,
    };
    let least = answered.events.iter().map(read).min_by_key(rank);
    Ok(least.unwrap_or_else(|| Fed::Failed("the receiver found no event in it".to_owned())))
}
