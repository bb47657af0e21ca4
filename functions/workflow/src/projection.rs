//! How an event becomes changes of state: the pure half of the consumer.
//!
//! A [`Projection`] looks at one event and says which entities it changes and how. [`Declarative`]
//! does what `sources.toml` says; a team whose mapping is no table of pointers implements the
//! trait beside it. Nothing is read or written here: a change by version carries its guard, and every
//! other [`Plan`] is turned into a change once its entity has been read, as often as it takes.
//!
//! Values keep the digits they were written in. What a state row cannot hold exactly is refused,
//! never rounded, and refused for good: the same event would fail the same way tomorrow. A
//! repeated key in an object means its last value, as `serde_json` reads it.

mod decimal;
mod delta;
mod error;
mod facts;
mod fetched;
mod plan;
mod sequenced;
#[cfg(test)]
mod tests;
pub mod trial;
mod values;

pub use decimal::{Decimal, NumberDefect};
pub use delta::{Addend, Appendix, Delta};
pub use error::{ProjectionError, StateDefect, StoredDefect, Unstorable, VersionProblem};
pub use fetched::{Fetched, Tied};
pub use plan::{Plan, Step, Told};
pub use sequenced::Sequenced;
pub use values::check_state;

use config::{Order, Source, Tie};
use facts::Facts;
use ledger::{Change, Guard, Stamp};
use std::collections::BTreeSet;

/// One event, as projections see it. Not `Debug`: bodies do not belong in logs.
#[derive(Clone, Copy)]
pub struct EventView<'a> {
    /// The source it came through.
    pub source: &'a Source,
    /// Its type, exactly as the provider writes it.
    pub event_type: &'a str,
    /// Its id.
    pub event_id: &'a str,
    /// Its bytes, as delivered.
    pub body: &'a [u8],
}

/// Maps events to changes. Implementations are pure: one event gives one answer, whenever and
/// however often it is asked.
pub trait Projection {
    /// The plans of an event, at most one per entity; none where nothing is to be done, and the
    /// event settles as ignored.
    fn project(&self, event: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError>;
}

/// The projections of `sources.toml`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Declarative;

impl Projection for Declarative {
    fn project(&self, event: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError> {
        let matching: Vec<&config::Projection> =
            event.source.projections_on(event.event_type).collect();
        if matching.is_empty() {
            return Ok(Vec::new());
        }
        let document = event.source.preset.document(event.body).map_err(ProjectionError::Body)?;
        let wanted = matching.iter().flat_map(|projection| values::pointers(projection));
        let facts = Facts::read(&document, wanted)?;
        let mut plans: Vec<Plan> = Vec::with_capacity(matching.len());
        for projection in &matching {
            let plan = plan(projection, event, &facts)?;
            let twin = plans.iter().position(|earlier| earlier.entity() == plan.entity());
            if let Some(earlier) = twin.and_then(|index| matching.get(index)) {
                return Err(ProjectionError::SameEntity {
                    entity_type: projection.entity_type.clone(),
                    first: earlier.id.clone(),
                    second: projection.id.clone(),
                });
            }
            plans.push(plan);
        }
        Ok(plans)
    }
}

fn plan(
    projection: &config::Projection,
    event: &EventView<'_>,
    facts: &Facts<'_, '_>,
) -> Result<Plan, ProjectionError> {
    let (entity, id) = values::entity(projection, facts)?;
    let event_id = event.event_id.to_owned();
    let entity_type = projection.entity_type.as_str();
    let state = || values::state(&projection.set, entity_type, facts);
    match (&projection.order, &projection.fetch) {
        (Order::Fetch, Some(fetch)) => {
            let fetch = fetch.clone();
            Ok(Plan::Fetched(Fetched { entity, id, event_id, fetch, tied: None }))
        }
        // The configuration gives every such projection a way to ask.
        (Order::Fetch, None) => Err(ProjectionError::NoFetch { entity_type: entity_type.into() }),
        (Order::Version { by, unit, tie }, fetch) => {
            let version = values::version(projection, facts, by, *unit)?;
            let state = state()?;
            let tie = match (tie, fetch) {
                // Of two tombstones of one version the provider says nothing: both are its end.
                (Tie::Fetch, Some(fetch)) if !projection.is_final => {
                    let (fetch, tied) = (fetch.clone(), Some(Tied { version, state }));
                    return Ok(Plan::Fetched(Fetched { entity, id, event_id, fetch, tied }));
                }
                (Tie::Rank | Tie::Fetch, _) => ledger::Tie::Rank,
                (Tie::Skip, _) => ledger::Tie::Skip,
            };
            let rank = projection.rank_of(event.event_type).unwrap_or_default();
            Ok(Plan::Versioned(Change {
                entity,
                guard: Guard::Newer { stamp: Stamp { version, rank, event_id }, tie },
                state,
                is_final: projection.is_final,
                leaves: BTreeSet::new(),
            }))
        }
        (Order::Sequence { by, start, timeout_ms, on_gap }, fetch) => {
            Ok(Plan::Sequenced(Sequenced {
                entity,
                id,
                event_id,
                number: values::version(projection, facts, by, ledger::Unit::Integer)?,
                start: *start,
                timeout_ms: *timeout_ms,
                on_gap: *on_gap,
                state: state()?,
                is_final: projection.is_final,
                fetch: fetch.clone(),
            }))
        }
        (Order::None, _) => {
            let (adds, appends) = values::differences(projection, facts)?;
            Ok(Plan::Delta(Delta { entity, event_id, adds, appends }))
        }
    }
}
