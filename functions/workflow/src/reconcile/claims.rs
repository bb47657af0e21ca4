//! Claims: what a comparison found missing becomes rows, through the receiver's own use case. There is
//! no request and no signature: the provider's own list, read under the team's key, vouches for it.

use crate::{
    ports::ReceiverPorts,
    receive::{
        Delivery, Receiver,
        accept::{Accepted, Entrance},
    },
    replay::{Fed, Feed, Stop, pager::Content},
};
use config::Source;
use ledger::{EventKey, Origin};
use verifier::Verified;

/// What vouches for a claimed event in its row: the provider's own list, read under the team's key.
const KID: &str = "provider-api";

/// Claims, under the origin `reconcile`.
pub struct Claims<'r, P> {
    receiver: &'r Receiver<P>,
    source: &'r Source,
    note: String,
}

impl<'r, P> Claims<'r, P> {
    /// For one source; `note` says who and why.
    #[must_use]
    pub const fn new(receiver: &'r Receiver<P>, source: &'r Source, note: String) -> Self {
        Self { receiver, source, note }
    }
}

impl<P: ReceiverPorts> Feed for Claims<'_, P> {
    fn looks_first(&self) -> bool {
        true
    }

    fn needs_content(&self) -> bool {
        true
    }

    fn mark(&self) -> Option<(Origin, &str)> {
        Some((Origin::Reconcile, &self.note))
    }

    async fn feed(&self, _key: &EventKey, content: Content) -> Result<Fed, Stop> {
        let now = self.receiver.ports.now();
        let headers = content.headers.iter();
        let delivery = Delivery {
            method: "POST".to_owned(),
            path: String::new(),
            query: String::new(),
            headers: headers.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            body: content.body,
            deadline: now,
        };
        let verified = Verified { kid: KID.to_owned(), signed_at_ms: None };
        let entrance =
            Entrance { origin: Origin::Reconcile, note: Some(self.note.clone()), verified };
        let admitted = self.receiver.admit(self.source, &delivery, &entrance, now).await;
        if let Some(error) = admitted.failure {
            return Err(Stop::Unreachable(error.to_string()));
        }
        let mut fed = admitted.events.iter().map(|event| match event.accepted {
            // What is of no use is in the ledger all the same: a dead row that says why.
            Accepted::New { .. } | Accepted::Unusable => Fed::New,
            Accepted::WrongMode => Fed::WrongMode,
            Accepted::Duplicate { .. } | Accepted::DuplicateOfDead | Accepted::Conflict => {
                Fed::Duplicate { is_own: event.is_own }
            }
        });
        // One event was posted; a provider's batch of one has one.
        Ok(fed.next().unwrap_or_else(|| Fed::Failed("no event was found in it".to_owned())))
    }
}
