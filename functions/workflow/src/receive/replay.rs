//! The replay route: a person feeds an event in again, under the source's token.
//!
//! `POST /replay/<source>` takes the event's bytes and the provider's own headers where it has any.
//! The token stands in for the signature here and nowhere else, and opens its own source alone;
//! everything behind it is what happens to a delivery, except that content is not compared. Who
//! feeds it in and why is required, and stands in the row.
//!
//! The answer says of each event whether it was new, as JSON:
//! `{"events":[{"key":"stripe-live#evt_1","outcome":"new"}]}`. An outcome is `new`, `duplicate`,
//! `unusable` (kept, dead) or `wrong_mode` (kept, ignored); `"own":true` marks a duplicate of what
//! this same run fed in before.

use super::{
    Delivery, Receiver, accept, accept::Accepted, accept::AcceptedEvent, accept::Entrance,
    rejected, sentence,
};
use crate::{
    keyring::Keyring,
    ports::ReceiverPorts,
    telemetry::{Level, Line, shown},
};
use config::Source;
use ledger::{Millis, Origin};
use serde_json::{Value, json};
use verifier::{Answer, Headers, Rejection, SharedToken, Verified};

/// Where events are fed in again: `/replay/<source>`.
pub const ROUTE: &str = "/replay/";
/// The header with the token.
pub const TOKEN: &str = "x-replay-token";
/// The header that says who.
pub const BY: &str = "x-replay-by";
/// The header that says why.
pub const REASON: &str = "x-replay-reason";
/// The header that names the run, so that one which was broken off knows its own events.
pub const RUN: &str = "x-replay-run";

/// Longest text of a person that a row keeps.
const WORDS_CHARS_MAX: usize = 500;
const RUN_CHARS_MAX: usize = 64;

/// An empty ring of replay tokens. `allow_local` as for signing keys.
#[must_use]
pub fn tokens(allow_local: bool) -> Keyring {
    Keyring::of_tokens(SharedToken::in_header(TOKEN), allow_local)
}

impl<P: ReceiverPorts> Receiver<P> {
    /// Feeds in one delivery again.
    pub(super) async fn replayed(
        &self,
        source: &Source,
        tokens: &Keyring,
        delivery: &Delivery,
        now: Millis,
    ) -> (Answer, Line) {
        let verified = match self.opened(source, tokens, delivery).await {
            Ok(verified) => verified,
            Err(rejection) => return rejected(&rejection),
        };
        let who_and_why = match who_and_why(&delivery.headers) {
            Ok(who_and_why) => who_and_why,
            Err(missing) => {
                let line = Line::new(Level::Warn, format!("replay refused: {missing}"))
                    .with("rejection.cause", "replay_words");
                return (sentence(400, &missing), line.count("Rejected"));
            }
        };
        let line = Line::new(Level::Info, "replay accepted")
            .with("key.kid", verified.kid.as_str())
            .with("replay.by", shown(&who_and_why.by));
        let entrance =
            Entrance { origin: Origin::Replay, note: Some(who_and_why.note()), verified };
        let admitted = self.admit(source, delivery, &entrance, now).await;
        let line = admitted.told(line).count("Replayed");
        match &admitted.failure {
            None => (answer(&admitted.events, who_and_why.run.is_some()), line),
            Some(error) => accept::not_stored(line, error),
        }
    }

    /// Whether the request carries a live token of this source. One that is not known yet may have
    /// been stored a moment ago.
    async fn opened(
        &self,
        source: &Source,
        tokens: &Keyring,
        delivery: &Delivery,
    ) -> Result<Verified, Rejection> {
        let scheme = SharedToken::in_header(TOKEN);
        let request = Self::request(delivery, None);
        let known = tokens.keys(&*self.ports, &self.config, source).await;
        let mut verdict = scheme.verify(&request, &known);
        let heals = verdict.as_ref().is_err_and(Rejection::may_heal_with_newer_keys);
        if heals && tokens.refresh(&*self.ports, &self.config).await {
            let known = tokens.keys(&*self.ports, &self.config, source).await;
            verdict = scheme.verify(&request, &known);
        }
        // A source without a token is closed, and says so to a stranger as any other does. That the
        // tokens could not be read at all is a fault on this side.
        match verdict {
            Err(Rejection::NoUsableKey) if tokens.is_loaded(&*self.ports).await => {
                Err(Rejection::KeyUnknown)
            }
            verdict => verdict,
        }
    }
}

struct WhoAndWhy {
    by: String,
    reason: String,
    run: Option<String>,
}

impl WhoAndWhy {
    /// As the row keeps it.
    fn note(&self) -> String {
        who_and_why_of(&self.by, self.run.as_deref(), &self.reason)
    }
}

/// How a row says who fed it in, in which run, and why.
#[must_use]
pub fn who_and_why_of(by: &str, run: Option<&str>, reason: &str) -> String {
    match run {
        Some(run) => format!("{by}, run {run}: {reason}"),
        None => format!("{by}: {reason}"),
    }
}

fn who_and_why(headers: &Headers) -> Result<WhoAndWhy, String> {
    Ok(WhoAndWhy {
        by: words(headers, BY, WORDS_CHARS_MAX)?
            .ok_or_else(|| format!("say who replays in the header {BY}"))?,
        reason: words(headers, REASON, WORDS_CHARS_MAX)?
            .ok_or_else(|| format!("say why in the header {REASON}"))?,
        run: words(headers, RUN, RUN_CHARS_MAX)?,
    })
}

/// A person's words in a header, percent-encoded where HTTP needs it; none where it is absent or
/// blank.
fn words(headers: &Headers, name: &str, chars_max: usize) -> Result<Option<String>, String> {
    let found = headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.trim());
    let Some(text) = found.filter(|text| !text.is_empty()) else { return Ok(None) };
    let text = percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| format!("the header {name} is no percent-encoded text"))?;
    if text.chars().any(char::is_control) || text.chars().count() > chars_max {
        return Err(format!("the header {name} takes at most {chars_max} characters on one line"));
    }
    Ok(Some(text.into_owned()))
}

fn answer(events: &[AcceptedEvent], has_run: bool) -> Answer {
    let events: Vec<Value> = events
        .iter()
        .map(|event| {
            let outcome = match event.accepted {
                Accepted::New { .. } => "new",
                // Content is not compared here, so what would conflict is the row that is there.
                Accepted::Duplicate { .. } | Accepted::DuplicateOfDead | Accepted::Conflict => {
                    "duplicate"
                }
                Accepted::Unusable => "unusable",
                Accepted::WrongMode => "wrong_mode",
            };
            let mut said = json!({ "key": event.key.as_str(), "outcome": outcome });
            if event.is_own
                && has_run
                && let Some(said) = said.as_object_mut()
            {
                said.insert("own".to_owned(), true.into());
            }
            said
        })
        .collect();
    let mut answer = Answer::text(json!({ "events": events }).to_string());
    answer.content_type = Some("application/json".to_owned());
    answer
}
