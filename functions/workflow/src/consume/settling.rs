//! Settling a leased row: project the event, make every change the guards let through, settle.

use super::{record::Work, trip::Trip};
use crate::{
    body,
    ports::{ConsumerPorts, Refused},
    projection::{EventView, Plan},
};
use ledger::{
    Change, Effect, EffectOutcome, FailureClass, Outcome, Row,
    verbs::{Apply, ApplyRefusal, FenceRefusal, Settle},
};

/// Reads of one entity under contention before the row is given back.
const REREADS_MAX: u32 = 5;

impl<P: ConsumerPorts> Work<'_, P> {
    /// Projects the event and settles the row with every change the guards let through.
    pub(super) async fn settle(&self, row: &Row) -> Result<Outcome, Trip> {
        let bytes = body::read(self.ports(), row, &self.consumer.policy).await?;
        let Some(source) = self.consumer.config.source(row.evidence.source.as_str()) else {
            let error = format!("source {} is not configured in this build", row.evidence.source);
            return Err(Trip::failed(error, FailureClass::Transient));
        };
        let event = EventView {
            source,
            event_type: &row.evidence.event_type,
            event_id: row.evidence.key.event_id(),
            body: &bytes,
        };
        let mut plans = self.consumer.projection.project(&event)?;
        let mut dropped: Vec<Effect> = Vec::new();
        // One time for every write of this attempt: a retried transaction is the same transaction.
        let settled_at = self.ports().now();
        let mut rereads = 0;
        while !plans.is_empty() {
            let changes = self.changes(&plans).await?;
            let mut effects = dropped.clone();
            effects.extend(changes.iter().map(|change| effect(change, EffectOutcome::Applied)));
            let ask = Apply::new(row.life.epoch, settled_at, changes);
            match self.ports().apply(self.key(), &ask, &effects).await? {
                Ok(()) => return Ok(Outcome::Applied),
                Err(Refused { why: ApplyRefusal::Fence(FenceRefusal::Mine), .. }) => {
                    return Ok(Outcome::Applied);
                }
                Err(Refused { why: ApplyRefusal::Fence(why), .. }) => {
                    return Err(Trip::Fenced(why));
                }
                Err(Refused { why: ApplyRefusal::Superseded(indexes), .. }) => {
                    for index in indexes.into_iter().rev() {
                        if let Some(change) = ask.changes.get(index) {
                            dropped.push(effect(change, EffectOutcome::Superseded));
                            plans.remove(index);
                        }
                    }
                }
                // Nothing is woken here, so a refused wake cannot be; reading again is harmless.
                Err(Refused {
                    why: ApplyRefusal::RevisionMoved(_) | ApplyRefusal::NotWaiting,
                    ..
                }) => {
                    rereads += 1;
                    if rereads > REREADS_MAX {
                        let error = "the entity is written to by too many at once".to_owned();
                        return Err(Trip::Throttled { error });
                    }
                }
            }
        }
        let outcome = if dropped.is_empty() { Outcome::Ignored } else { Outcome::Superseded };
        let ask = Settle { epoch: row.life.epoch, outcome, settled_at };
        match self.ports().settle(self.key(), &ask, &dropped).await? {
            Ok(()) | Err(Refused { why: FenceRefusal::Mine, .. }) => Ok(outcome),
            Err(refused) => Err(Trip::Fenced(refused.why)),
        }
    }

    /// The writes that the plans ask for now; plans that stand on the present state read it.
    async fn changes(&self, plans: &[Plan]) -> Result<Vec<Change>, Trip> {
        let mut changes = Vec::with_capacity(plans.len());
        for plan in plans {
            changes.push(match plan {
                Plan::Versioned(change) => change.clone(),
                Plan::Delta(delta) => {
                    let found = self.ports().entity(&delta.entity).await?;
                    delta.change(found.as_ref())?
                }
            });
        }
        Ok(changes)
    }
}

fn effect(change: &Change, outcome: EffectOutcome) -> Effect {
    Effect { entity: change.entity.as_str().to_owned(), outcome, version: change.version() }
}
