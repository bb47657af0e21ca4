//! Accept: the events of a proven delivery become rows, and their messages go to the queue.
//!
//! The same for what a provider delivers, what a person feeds in again, and what the scheduled
//! comparison found missing: the [`Entrance`] says which, and what follows from it.

use super::{Delivery, Receiver, unavailable};
use crate::{
    body::{self, Encoded},
    ports::{Conditional, PortError, ReceiverPorts, Refused, Trouble},
    projection::{Declarative, EventView, Projection},
    telemetry::{Level, Line},
};
use config::Source;
use futures::{StreamExt, stream};
use ledger::{
    EventKey, Evidence, Message, Millis, Origin, Row,
    verbs::{Birth, Claim, ClaimRefusal, claim_refusal},
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use verifier::{Answer, Headers, Verified};

/// Events of one delivery that are claimed at the same time.
const CLAIMS_AT_ONCE: usize = 16;

/// A proof this much short of its mark's life is not taken: clocks differ.
const MARK_MARGIN_MS: u64 = 86_400_000;

/// Which of a source's keys verified, by its place in the list: three names at most, where one for
/// each `kid` would be a metric without end. Which `kid` that is stands in the line.
const VERIFIED_BY: [&str; 3] = ["VerifiedByKey1", "VerifiedByKey2", "VerifiedByKey3"];

/// How a delivery came in.
pub(crate) struct Entrance {
    /// Stands in the row. Only what a provider delivers is compared by its content with an earlier
    /// event of the same id: a provider's API renders an event differently from its webhook.
    pub(crate) origin: Origin,
    /// Who fed it in and why.
    pub(crate) note: Option<String>,
    /// What vouched for it, and when that was signed.
    pub(crate) verified: Verified,
}

/// What became of a delivery.
pub(crate) struct Admitted {
    /// Its events, in no order. Not all of them where `failure` says so.
    pub(crate) events: Vec<AcceptedEvent>,
    /// Why nothing but the whole of it could be kept.
    pub(crate) unusable: Option<verifier::Unusable>,
    /// Why some event is not durable.
    pub(crate) failure: Option<PortError>,
}

/// One event of a delivery, durable.
pub(crate) struct AcceptedEvent {
    pub(crate) key: EventKey,
    pub(crate) accepted: Accepted,
    /// Whether the row that was there came in by this very entrance: a replay that was broken off
    /// meets what it fed in before.
    pub(crate) is_own: bool,
}

/// What became of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// A new row; `sent` says whether its message is in the queue.
    New { sent: bool },
    /// A known event; `resent` says whether its message was sent again.
    Duplicate { resent: bool },
    /// A known event that is dead for good.
    DuplicateOfDead,
    /// A known id with other content, or a known proof with another event.
    Conflict,
    /// Kept, of no use.
    Unusable,
    /// Kept, of another mode.
    WrongMode,
}

/// One event of a delivery, ready to be claimed.
struct Arrival<'a> {
    id: String,
    event_type: String,
    identity: Option<[u8; 32]>,
    proof: Option<&'a str>,
    bytes: &'a [u8],
    birth: Birth,
}

impl<P: ReceiverPorts> Receiver<P> {
    /// Accepts what a provider delivered.
    pub(super) async fn accept_all(
        &self,
        source: &Source,
        delivery: &Delivery,
        verified: Verified,
        position: Option<usize>,
        now: Millis,
    ) -> (Answer, Line) {
        let mut line =
            Line::new(Level::Info, "delivery accepted").with("key.kid", verified.kid.as_str());
        if let Some(metric) = position.and_then(|position| VERIFIED_BY.get(position)) {
            line = line.count(metric);
        }
        let entrance = Entrance { origin: Origin::Delivery, note: None, verified };
        let admitted = self.admit(source, delivery, &entrance, now).await;
        let line = admitted.told(line);
        match admitted.failure {
            None => (source.preset.answer().clone(), line.count("Accepted")),
            Some(error) => not_stored(line, &error),
        }
    }

    /// Makes every event of a delivery durable, and sends what is new.
    pub(crate) async fn admit(
        &self,
        source: &Source,
        delivery: &Delivery,
        entrance: &Entrance,
        now: Millis,
    ) -> Admitted {
        let request = Self::request(delivery, None);
        let events = source.preset.events(&request);
        let mut arrivals: Vec<Arrival<'_>> = match &events {
            Ok(events) => events.iter().map(|event| arrival(source, event)).collect(),
            Err(unusable) => vec![unusable_arrival(unusable, delivery)],
        };
        if entrance.origin != Origin::Delivery {
            for arrival in &mut arrivals {
                (arrival.identity, arrival.proof) = (None, None);
            }
        }
        let headers = kept_headers(source, &delivery.headers);
        // Collected first: a closure in the stream hides from the compiler that the future is `Send`.
        let claims: Vec<_> = arrivals
            .into_iter()
            .map(|arrival| self.accept(source, arrival, &headers, entrance, now))
            .collect();
        let mut claims = stream::iter(claims).buffer_unordered(CLAIMS_AT_ONCE);
        let mut admitted = Admitted { events: Vec::new(), unusable: None, failure: None };
        while let Some(outcome) = claims.next().await {
            match outcome {
                Ok(event) => admitted.events.push(event),
                Err(error) => admitted.failure = Some(error),
            }
        }
        drop(claims);
        admitted.unusable = events.err();
        admitted
    }

    /// Claims one event and sends its message.
    async fn accept(
        &self,
        source: &Source,
        arrival: Arrival<'_>,
        headers: &BTreeMap<String, String>,
        entrance: &Entrance,
        now: Millis,
    ) -> Result<AcceptedEvent, PortError> {
        // An id that is no key cannot be: the verifier hands out none that is empty.
        let key = EventKey::new(&source.name, &arrival.id).map_err(|error| PortError {
            step: "key",
            trouble: Trouble::Invalid,
            source: error.into(),
        })?;
        let encoded = body::encode(arrival.bytes, &self.policy);
        let claim =
            Claim { birth: arrival.birth.clone(), nonce: self.ports.token(), received_at: now };
        let mut row = Row {
            life: claim.life(&key, &self.policy),
            effects: Vec::new(),
            evidence: Evidence {
                key: key.clone(),
                source: source.name.clone(),
                event_type: arrival.event_type.clone(),
                received_at: now,
                body: encoded.body.clone(),
                identity_hash: arrival.identity,
                headers: headers.clone(),
                kid: entrance.verified.kid.clone(),
                origin: entrance.origin,
                origin_note: entrance.note.clone(),
            },
        };
        if let Some(error) = self.spent_proof(source, &row, &arrival, &entrance.verified).await? {
            let identity = arrival.identity.unwrap_or(row.evidence.body.sha256);
            self.keep_conflict(&mut row, identity, error, &encoded, now).await?;
            return Ok(AcceptedEvent { key, accepted: Accepted::Conflict, is_own: false });
        }
        let claimed = self.claim(&row, &claim, &encoded).await?;
        let is_own =
            claimed.as_ref().err().and_then(|refused| refused.row.as_ref()).is_some_and(|found| {
                entrance.note.is_some()
                    && found.evidence.origin == entrance.origin
                    && found.evidence.origin_note == entrance.note
            });
        let accepted = match claimed.map_err(|refused| refused.why) {
            Ok(()) | Err(ClaimRefusal::Mine) => match arrival.birth {
                Birth::Claimed => Accepted::New { sent: self.send(source, &key, &arrival).await },
                Birth::Dead { .. } => Accepted::Unusable,
                Birth::Ignored => Accepted::WrongMode,
            },
            Err(ClaimRefusal::Overdue | ClaimRefusal::Dead | ClaimRefusal::UnknownFormat) => {
                Accepted::Duplicate { resent: self.send(source, &key, &arrival).await }
            }
            Err(ClaimRefusal::Settled | ClaimRefusal::Pending) => {
                Accepted::Duplicate { resent: false }
            }
            Err(ClaimRefusal::DeadPermanent) => Accepted::DuplicateOfDead,
            Err(ClaimRefusal::Conflict) => {
                let identity = arrival.identity.unwrap_or_default();
                let error = "the same event id arrived before with other content";
                self.keep_conflict(&mut row, identity, error, &encoded, now).await?;
                Accepted::Conflict
            }
        };
        Ok(AcceptedEvent { key, accepted, is_own })
    }

    /// Stores the chunks a large body needs, then the row.
    async fn claim(
        &self,
        row: &Row,
        claim: &Claim,
        encoded: &Encoded,
    ) -> Conditional<(), ClaimRefusal> {
        let evidence = &row.evidence;
        if !encoded.chunked.is_empty() {
            // A duplicate of a large event costs half a read unit, not its chunks again.
            if let Some(found) = self.ports.row(&evidence.key).await? {
                let identity = evidence.identity_hash.as_ref();
                let why = claim_refusal(&found, identity, claim, &self.policy);
                return Ok(Err(Refused { why, row: Some(Box::new(found)) }));
            }
            let expires_at = match claim.birth {
                Birth::Dead { .. } => None,
                Birth::Claimed | Birth::Ignored => {
                    Some(claim.received_at.seconds_after(self.policy.chunk_seconds()))
                }
            };
            body::store(&*self.ports, &evidence.key, encoded, &self.policy, expires_at).await?;
        }
        self.ports.claim(row, claim).await
    }

    /// Where a proof may serve one event: why this event is not the one. The proof is bound to the
    /// first event that comes under it, before that event is claimed; a retry of it finds its own
    /// mark. A mark is kept as long as chunks are, and so an older proof is not taken any more.
    async fn spent_proof(
        &self,
        source: &Source,
        row: &Row,
        arrival: &Arrival<'_>,
        verified: &Verified,
    ) -> Result<Option<&'static str>, PortError> {
        let Some(proof) = arrival.proof else { return Ok(None) };
        let now = row.evidence.received_at;
        let remembered_ms = self.policy.chunk_seconds().saturating_mul(1_000);
        let age_ms = verified.signed_at_ms.map_or(0, |at| now.since(Millis(at)));
        if age_ms.saturating_add(MARK_MARGIN_MS) > remembered_ms {
            return Ok(Some("signed so long ago that nobody remembers whether the proof was used"));
        }
        let pk = EventKey::proof(&source.name, proof).map_err(|error| PortError {
            step: "key",
            trouble: Trouble::Invalid,
            source: error.into(),
        })?;
        let content = arrival.identity.unwrap_or(row.evidence.body.sha256);
        let event: [u8; 32] = Sha256::new()
            .chain_update(row.evidence.key.as_str())
            .chain_update(content)
            .finalize()
            .into();
        let expires_at = now.seconds_after(self.policy.chunk_seconds());
        let is_its_own = self.ports.bind(&pk, &event, expires_at).await?;
        Ok((!is_its_own).then_some("the same signed transmission brought another event before"))
    }

    /// Keeps what contradicts an earlier event as a dead row of its own.
    async fn keep_conflict(
        &self,
        row: &mut Row,
        identity: [u8; 32],
        error: &str,
        encoded: &Encoded,
        now: Millis,
    ) -> Result<(), PortError> {
        let birth = Birth::Dead { error: error.to_owned() };
        let claim = Claim { birth, nonce: self.ports.token(), received_at: now };
        row.evidence.key = row.evidence.key.conflict(&identity);
        row.life = claim.life(&row.evidence.key, &self.policy);
        // Whatever refuses this claim is this very content, kept before.
        let _kept: Result<(), Refused<ClaimRefusal>> = self.claim(row, &claim, encoded).await?;
        Ok(())
    }

    /// Sends the row's message. A failure is not the provider's concern: the row is durable and
    /// the sweeper sends what is overdue.
    async fn send(&self, source: &Source, key: &EventKey, arrival: &Arrival<'_>) -> bool {
        let message = Message::new(key.clone(), &arrival.event_type, entity_hint(source, arrival));
        match self.ports.send(&message, source.name.as_str()).await {
            Ok(()) => true,
            Err(error) => {
                let line =
                    Line::new(Level::Warn, format!("message not sent, the sweeper will: {error}"));
                self.ports.emit(&line.with_key(key));
                false
            }
        }
    }
}

fn arrival<'a>(source: &Source, event: &'a verifier::Event<'_>) -> Arrival<'a> {
    let wrong_mode =
        matches!((source.live, event.live), (Some(wanted), Some(found)) if wanted != found);
    let birth = match &event.unusable {
        Some(reason) => Birth::Dead { error: reason.to_string() },
        None if wrong_mode => Birth::Ignored,
        None => Birth::Claimed,
    };
    Arrival {
        id: event.id.clone(),
        event_type: event.event_type.clone(),
        identity: event.identity,
        proof: event.proof.as_deref(),
        bytes: &event.body,
        birth,
    }
}

/// An authentic delivery that holds no usable event is kept whole, under its hash.
fn unusable_arrival<'a>(unusable: &verifier::Unusable, delivery: &'a Delivery) -> Arrival<'a> {
    Arrival {
        id: format!("sha256:{}", hex::encode(Sha256::digest(&delivery.body))),
        event_type: unusable.event_type.clone().unwrap_or_default(),
        identity: None,
        proof: None,
        bytes: &delivery.body,
        birth: Birth::Dead { error: unusable.to_string() },
    }
}

/// The entity the event will change, where that can be told: a hint that keeps records of one
/// entity in order within a batch. What cannot be projected has none; the consumer says why.
fn entity_hint(source: &Source, arrival: &Arrival<'_>) -> Option<String> {
    let event = EventView {
        source,
        event_type: &arrival.event_type,
        event_id: &arrival.id,
        body: arrival.bytes,
    };
    let plans = Declarative.project(&event).ok()?;
    plans.first().map(|plan| plan.entity().as_str().to_owned())
}

fn kept_headers(source: &Source, headers: &Headers) -> BTreeMap<String, String> {
    let kept = source.preset.kept_headers();
    headers
        .iter()
        .filter(|(name, _)| kept.iter().any(|keep| keep == name))
        .map(|(name, value)| (name.to_owned(), value.chars().take(1_024).collect()))
        .collect()
}

impl Admitted {
    /// Adds to a line what became of the events.
    pub(super) fn told(&self, line: Line) -> Line {
        let told =
            |line: Line, event: &AcceptedEvent| counted(line.with_key(&event.key), event.accepted);
        let mut line = self.events.iter().fold(line, told);
        if let Some(unusable) = &self.unusable {
            line.message = format!("delivery kept but unusable: {unusable}");
            line = line.with("unusable.cause", unusable.reason.cause());
        }
        line
    }
}

/// The answer while some event is not durable: all of it comes again.
pub(super) fn not_stored(mut line: Line, error: &PortError) -> (Answer, Line) {
    line.level = Level::Error;
    line.message = format!("delivery not stored: {error}");
    unavailable(line, "ClaimFailed")
}

fn counted(line: Line, accepted: Accepted) -> Line {
    match accepted {
        Accepted::New { sent: true } => line.count("New"),
        Accepted::New { sent: false } => line.count("New").count("SendFailed"),
        Accepted::Duplicate { resent: false } => line.count("Duplicate"),
        Accepted::Duplicate { resent: true } => line.count("Duplicate").count("Resent"),
        Accepted::DuplicateOfDead => line.count("Duplicate").count("DuplicateOfDead"),
        Accepted::Conflict => line.count("Conflict"),
        Accepted::Unusable => line.count("Unusable"),
        Accepted::WrongMode => line.count("WrongMode"),
    }
}
