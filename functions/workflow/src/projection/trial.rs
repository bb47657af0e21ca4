//! A trial of a projection by version: what must hold of every one, whoever wrote it.
//!
//! One event gives one answer however often it is asked, changes an entity once, and a history ends
//! the same in whatever order it arrives, each event twice. Plans that read first (deltas, fetched
//! and numbered state) are tried on the [`crate::twin`], where there is something to read.

use super::{EventView, Plan, Projection, ProjectionError};
use ledger::{Entity, EntityKey, Millis};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Events of one history: more have too many orders to try.
const EVENTS_MAX: usize = 6;

/// What does not hold.
#[derive(Debug, Error)]
pub enum TrialError {
    /// More events than orders can be tried of.
    #[error("{found} events, at most {EVENTS_MAX} can be tried in every order")]
    TooLong {
        /// How many.
        found: usize,
    },
    /// The projection refused an event.
    #[error("event {event_id}: {why}")]
    Refused {
        /// Which.
        event_id: String,
        /// Why.
        #[source]
        why: Box<ProjectionError>,
    },
    /// It answered differently the second time.
    #[error("event {event_id} is projected differently when asked again")]
    Impure {
        /// Which event.
        event_id: String,
    },
    /// One event changes one entity twice.
    #[error("event {event_id} has two plans for {entity}")]
    SameEntity {
        /// Which event.
        event_id: String,
        /// Which entity.
        entity: EntityKey,
    },
    /// The plan reads before it writes.
    #[error("event {event_id}: the plan for {entity} reads first; try it on the twin")]
    ReadsFirst {
        /// Which event.
        event_id: String,
        /// Which entity.
        entity: EntityKey,
    },
    /// Two orders end differently.
    #[error("arriving as {one} and as {other}, the history ends differently")]
    OrderMatters {
        /// Event ids.
        one: String,
        /// Event ids.
        other: String,
    },
}

/// Projects a history and lets it arrive in every order; the entities it ends in.
pub fn every_order(
    projection: &dyn Projection,
    history: &[EventView<'_>],
) -> Result<BTreeMap<EntityKey, Entity>, TrialError> {
    if history.len() > EVENTS_MAX {
        return Err(TrialError::TooLong { found: history.len() });
    }
    let plans = history.iter().map(|event| plans(projection, event));
    let plans = plans.collect::<Result<Vec<_>, TrialError>>()?;
    let mut ended: Option<(Vec<usize>, BTreeMap<EntityKey, Entity>)> = None;
    for order in orders(history.len()) {
        let end = arrive(&plans, &order);
        match &ended {
            None => ended = Some((order, end)),
            Some((first, known)) if *known != end => {
                let ids = |order: &[usize]| {
                    let ids = order.iter().filter_map(|at| history.get(*at));
                    ids.map(|event| event.event_id).collect::<Vec<_>>().join(", ")
                };
                return Err(TrialError::OrderMatters { one: ids(first), other: ids(&order) });
            }
            Some(_) => {}
        }
    }
    Ok(ended.map(|(_, end)| end).unwrap_or_default())
}

fn plans(
    projection: &dyn Projection,
    event: &EventView<'_>,
) -> Result<Vec<ledger::Change>, TrialError> {
    let event_id = event.event_id.to_owned();
    let once = projection.project(event);
    if once != projection.project(event) {
        return Err(TrialError::Impure { event_id });
    }
    let mut seen = BTreeSet::new();
    let mut changes = Vec::new();
    let refused = |why| TrialError::Refused { event_id: event_id.clone(), why: Box::new(why) };
    for plan in once.map_err(refused)? {
        let entity = plan.entity().clone();
        if !seen.insert(entity.clone()) {
            return Err(TrialError::SameEntity { event_id, entity });
        }
        match plan {
            Plan::Versioned(change) => changes.push(change),
            Plan::Delta(_) | Plan::Fetched(_) | Plan::Sequenced(_) => {
                return Err(TrialError::ReadsFirst { event_id, entity });
            }
        }
    }
    Ok(changes)
}

/// The entities after the events arrived in this order, and all of them once more.
fn arrive(plans: &[Vec<ledger::Change>], order: &[usize]) -> BTreeMap<EntityKey, Entity> {
    let mut entities: BTreeMap<EntityKey, Entity> = BTreeMap::new();
    let arriving = order.iter().chain(order).filter_map(|at| plans.get(*at));
    for change in arriving.flatten() {
        if let Ok(entity) = change.make(entities.get(&change.entity), Millis(0)) {
            entities.insert(change.entity.clone(), entity);
        }
    }
    // How often an entity was written is the one thing that may differ.
    for entity in entities.values_mut() {
        entity.revision = 0;
    }
    entities
}

/// Every order of `count` things.
pub(super) fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for next in 0..count {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..=order.len()).map(move |place| {
                    let mut longer = order.clone();
                    longer.insert(place, next);
                    longer
                })
            })
            .collect();
    }
    orders
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::projection::{Declarative, tests::versioned};
    use ledger::{Stamp, Version};
    use serde_json::json;

    const BODIES: [(&str, &[u8]); 4] = [
        ("e1", br#"{"id":1,"v":1,"status":"new"}"#),
        ("e2", br#"{"id":1,"v":2,"status":"open"}"#),
        ("e3", br#"{"id":1,"v":2,"status":"paid"}"#),
        ("e4", br#"{"id":2,"v":1,"status":"new"}"#),
    ];

    fn tried(projection: &dyn Projection) -> Result<BTreeMap<EntityKey, Entity>, TrialError> {
        let source = versioned("integer", "status = \"/status\"");
        let view = |(event_id, body): &(&'static str, &'static [u8])| (*event_id, *body);
        let history: Vec<EventView<'_>> = BODIES
            .iter()
            .map(view)
            .map(|(event_id, body)| EventView { source: &source, event_type: "t", event_id, body })
            .collect();
        every_order(projection, &history)
    }

    /// A projection that is a function.
    struct By<F>(F);

    impl<F: Fn(&EventView<'_>) -> Result<Vec<Plan>, ProjectionError>> Projection for By<F> {
        fn project(&self, event: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError> {
            (self.0)(event)
        }
    }

    fn newer(event: &EventView<'_>, version: i128) -> Result<Vec<Plan>, ProjectionError> {
        let stamp = Stamp {
            version: Version::new(version).unwrap(),
            rank: 0,
            event_id: event.event_id.to_owned(),
        };
        Ok(vec![Plan::newer(event.source, "thing", "1", stamp, json!({ "by": event.event_id }))?])
    }

    #[test]
    fn declared_projections_and_written_ones_end_alike_in_every_order() {
        let ended = tried(&Declarative).unwrap();
        let statuses: Vec<_> =
            ended.values().map(|entity| entity.state["status"].clone()).collect();
        assert_eq!(statuses, ["paid", "new"]);
        assert_eq!(tried(&By(|event: &EventView<'_>| newer(event, 7))).unwrap().len(), 1);
    }

    #[test]
    fn what_depends_on_the_order_or_on_the_asking_is_found_out() {
        let first_wins = By(|event: &EventView<'_>| {
            let mut plans = newer(event, 7)?;
            for plan in &mut plans {
                if let Plan::Versioned(change) = plan
                    && let ledger::Guard::Newer { tie, .. } = &mut change.guard
                {
                    *tie = ledger::Tie::Skip;
                }
            }
            Ok(plans)
        });
        assert!(matches!(tried(&first_wins), Err(TrialError::OrderMatters { .. })));
        let calls = std::cell::Cell::new(0);
        let moody = By(|event: &EventView<'_>| newer(event, calls.replace(calls.get() + 1)));
        assert!(matches!(tried(&moody), Err(TrialError::Impure { .. })));
        let twice = By(|event: &EventView<'_>| Ok([newer(event, 1)?, newer(event, 2)?].concat()));
        assert!(matches!(tried(&twice), Err(TrialError::SameEntity { .. })));
        let refuses = By(|_: &EventView<'_>| Err(ProjectionError::permanent("no")));
        assert!(matches!(tried(&refuses), Err(TrialError::Refused { .. })));
    }

    #[test]
    fn a_state_that_no_row_holds_is_refused_where_it_is_made() {
        let source = versioned("integer", "status = \"/status\"");
        let stamp =
            || Stamp { version: Version::new(1).unwrap(), rank: 0, event_id: "e".to_owned() };
        for (id, state) in [("", json!({})), ("1", json!([])), ("1", json!({ "": 1 }))] {
            let error = Plan::newer(&source, "thing", id, stamp(), state).unwrap_err();
            assert_eq!(error.class(), ledger::FailureClass::Permanent);
        }
    }
}
