//! How a delivery becomes events by what its preset says.
//!
//! An event is never given an id that the provider did not send unless the preset declares which
//! fields make one. An element of a batch that has no usable id is returned with its reason, so
//! that its neighbours are not held up by it.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::place::{Place, Sight};
use super::spec::{Batch, EventSpec, IdSpec, Identity};
use crate::{Event, Headers, Request, Unusable, UnusableReason};

impl EventSpec {
    /// The JSON document in a stored body.
    pub(crate) fn document<'b>(&self, body: &'b [u8]) -> Result<Cow<'b, str>, UnusableReason> {
        self.format.document(body)
    }

    /// The events of a verified request.
    pub(crate) fn events<'b>(&self, request: &Request<'b>) -> Result<Vec<Event<'b>>, Unusable> {
        let document = self.format.document_of(request.body, &self.members);
        match (&self.batch, document) {
            (_, Err(reason)) => Err(self.unreadable(reason, request)),
            (None, Ok(text)) => self.single(&text, request).map(|event| vec![event]),
            (Some(batch), Ok(Cow::Borrowed(text))) => self.elements(batch, text, request),
            (Some(batch), Ok(Cow::Owned(text))) => {
                let events = self.elements(batch, &text, request)?;
                Ok(events.into_iter().map(Event::into_owned).collect())
            }
        }
    }

    /// The event that the whole body is.
    fn single<'b>(&self, text: &str, request: &Request<'b>) -> Result<Event<'b>, Unusable> {
        let item = self.item.pick(text).map_err(|reason| self.unreadable(reason, request))?;
        let sight = Sight { item: &item, envelope: &[], headers: request.headers };
        let event = self.event(&sight, Cow::Borrowed(request.body));
        match event.unusable {
            None => Ok(event),
            Some(reason) => {
                let event_type = Some(event.event_type).filter(|name| !name.is_empty());
                Err(Unusable { reason, event_type })
            }
        }
    }

    /// The elements of a batch, each usable or not.
    fn elements<'d>(
        &self,
        batch: &Batch,
        text: &'d str,
        request: &Request<'_>,
    ) -> Result<Vec<Event<'d>>, Unusable> {
        let mut items = Vec::new();
        let (envelope, found) = self
            .envelope
            .pick_each(text, &mut |item| {
                items.push(item);
                if items.len() < batch.max {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })
            .map_err(|reason| self.unreadable(reason, request))?;
        match found {
            None => {
                let reason = UnusableReason::NoBatch { at: batch.at.as_str().to_owned() };
                Err(self.unreadable(reason, request))
            }
            Some(found) if found > batch.max => {
                let reason = UnusableReason::TooManyEvents { found, max: batch.max };
                Err(self.unreadable(reason, request))
            }
            Some(_) => {
                let events =
                    items.into_iter().map(|item| self.element(item, &envelope, request.headers));
                Ok(events.collect())
            }
        }
    }

    /// One element of a batch, usable or not.
    fn element<'d>(
        &self,
        item: &'d RawValue,
        envelope: &[Option<&'d RawValue>],
        headers: &Headers,
    ) -> Event<'d> {
        let (values, defect) = match self.item.pick(item.get()) {
            Ok(values) => (values, None),
            Err(reason) => (vec![None; self.item.len()], Some(reason)),
        };
        let sight = Sight { item: &values, envelope, headers };
        let mut event = self.event(&sight, Cow::Borrowed(item.get().as_bytes()));
        if let Some(reason) = defect {
            event.unusable = Some(reason);
        }
        if event.unusable.is_some() {
            event.id = format!("sha256:{}", hex::encode(Sha256::digest(&event.body)));
        }
        event
    }

    fn event<'d>(&self, sight: &Sight<'_, '_>, body: Cow<'d, [u8]>) -> Event<'d> {
        let (id, unusable) = match self.id(sight) {
            Ok(id) => (id, self.missing(sight)),
            Err(reason) => (String::new(), Some(reason)),
        };
        Event {
            id,
            event_type: self.event_type(sight),
            live: self
                .live
                .as_ref()
                .and_then(|(place, word)| place.text(sight).map(|text| text == *word)),
            identity: self.identity(sight, &body),
            proof: self
                .proof
                .as_ref()
                .and_then(|place| Some(place.identifier(sight)?.into_owned())),
            occurred_at_ms: self
                .time
                .as_ref()
                .and_then(|(place, unit)| unit.parse_ms(&place.text(sight)?)),
            body,
            unusable,
        }
    }

    fn id(&self, sight: &Sight<'_, '_>) -> Result<String, UnusableReason> {
        match &self.id {
            IdSpec::Composed(places) => {
                let mut pieces = Vec::with_capacity(places.len());
                for place in places {
                    let piece = place.identifier(sight).ok_or_else(|| {
                        UnusableReason::NoEventId { at: place.as_str().to_owned() }
                    })?;
                    pieces.push(piece);
                }
                Ok(match pieces.as_slice() {
                    [single] => single.clone().into_owned(),
                    many => many
                        .iter()
                        .map(|piece| piece.replace('%', "%25").replace(':', "%3A"))
                        .collect::<Vec<_>>()
                        .join(":"),
                })
            }
            IdSpec::Hash(places) => {
                if places.iter().all(|place| place.raw(sight).is_none()) {
                    let names: Vec<&str> = places.iter().map(Place::as_str).collect();
                    return Err(UnusableReason::NoEventId { at: names.join(", ") });
                }
                Ok(format!("sha256:{}", hex::encode(hash(places, sight))))
            }
        }
    }

    fn missing(&self, sight: &Sight<'_, '_>) -> Option<UnusableReason> {
        self.require
            .iter()
            .chain(&self.proof)
            .find(|place| place.identifier(sight).is_none())
            .map(|place| UnusableReason::RequiredMissing { at: place.as_str().to_owned() })
    }

    /// The declared pieces that are there, joined by dots.
    fn event_type(&self, sight: &Sight<'_, '_>) -> String {
        let pieces: Vec<Cow<'_, str>> =
            self.event_type.iter().filter_map(|place| place.identifier(sight)).collect();
        pieces.join(".")
    }

    fn identity(&self, sight: &Sight<'_, '_>, body: &[u8]) -> Option<[u8; 32]> {
        match &self.identity {
            Identity::None => None,
            Identity::Body => Some(Sha256::digest(body).into()),
            Identity::Fields(places) => Some(hash(places, sight)),
        }
    }

    /// What could not be read, with the event type that the headers alone give away.
    fn unreadable(&self, reason: UnusableReason, request: &Request<'_>) -> Unusable {
        let name = self.event_type(&Sight { item: &[], envelope: &[], headers: request.headers });
        Unusable { reason, event_type: Some(name).filter(|name| !name.is_empty()) }
    }
}

/// SHA-256 over the values as written, each with its presence and length, so that no two different
/// lists of values feed the same bytes.
fn hash(places: &[Place], sight: &Sight<'_, '_>) -> [u8; 32] {
    let mut digest = Sha256::new();
    for place in places {
        match place.raw(sight) {
            None => digest.update([0]),
            Some(text) => {
                digest.update([1]);
                digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
                digest.update(text.as_bytes());
            }
        }
    }
    digest.finalize().into()
}
