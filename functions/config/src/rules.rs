//! What no single table can show: projections that meet in one entity.
//!
//! A state row is shared by every projection of its namespace and entity type, in this source or
//! another. They must agree on what makes a change newer, and on the fields: a change by version
//! replaces the state whole, so a field that only some projections set would come and go with the
//! order of arrival.

use crate::{
    Order, Projection,
    error::{Report, quote},
    projection::read,
    source,
};
use ledger::{Tie, Unit};
use std::collections::BTreeMap;

/// Judges all projections together.
pub(crate) fn check(sources: &[source::Draft], report: &mut Report<'_>) {
    for source in sources {
        refuse_twins(&source.projections, report);
    }
    let mut all: Vec<&read::Draft> =
        sources.iter().flat_map(|source| &source.projections).collect();
    all.sort_by_key(|draft| draft.at.start);
    let mut first_of: BTreeMap<(&str, &str), &read::Draft> = BTreeMap::new();
    for draft in all {
        let Projection { namespace, entity_type, .. } = &draft.projection;
        let first = *first_of.entry((namespace, entity_type)).or_insert(draft);
        compare(first, draft, report);
    }
}

/// Two projections of one source that would change one entity in one event.
fn refuse_twins(drafts: &[read::Draft], report: &mut Report<'_>) {
    for (index, draft) in drafts.iter().enumerate() {
        let this = &draft.projection;
        for earlier in drafts.iter().take(index) {
            let that = &earlier.projection;
            let one_entity = (&this.namespace, &this.entity_type, &this.id)
                == (&that.namespace, &that.entity_type, &that.id);
            let shared = this.on.iter().find(|event_type| that.is_on(event_type));
            if let Some(event_type) = shared.filter(|_| one_entity) {
                let found = format!(
                    "{}, which {} (line {}) takes for the same entity",
                    quote(event_type),
                    earlier.path,
                    report.line(&earlier.at)
                );
                let allowed = "each event type once per namespace, entity type and id pointer";
                report.refuse(draft.on_at.clone(), format!("{}.on", draft.path), found, allowed);
            }
        }
    }
}

/// What the projections of one entity type must have in common.
fn compare(first: &read::Draft, draft: &read::Draft, report: &mut Report<'_>) {
    let (one, other) = (&first.projection, &draft.projection);
    let entity = format!("{}#{}", other.namespace, other.entity_type);
    let like = format!("as {} (line {}) has it", first.path, report.line(&first.at));
    let mut refuse = |key: &str, found: &str, wanted: &str, why: &str| {
        let at = if key == "set" { &draft.set_at } else { &draft.order_at };
        let allowed = format!("{wanted}, {like}: {why} of {entity}");
        report.refuse(at.clone(), format!("{}.{key}", draft.path), found, allowed);
    };
    match (&one.order, &other.order) {
        (Order::None, Order::None) => {}
        (Order::Version { .. }, Order::None) => {
            refuse("order.strategy", "none", "version", "one strategy for every change");
        }
        (Order::None, Order::Version { .. }) => {
            refuse("order.strategy", "version", "none", "one strategy for every change");
        }
        (Order::Version { unit: unit_one, tie: tie_one, .. }, Order::Version { unit, tie, .. }) => {
            if kind(*unit_one) != kind(*unit) {
                refuse(
                    "order.unit",
                    kind(*unit),
                    kind(*unit_one),
                    "one kind of version for every change",
                );
            }
            if tie_one != tie {
                refuse(
                    "order.tie",
                    word(*tie),
                    word(*tie_one),
                    "one rule among equals for every change",
                );
            }
            if !one.set.keys().eq(other.set.keys()) {
                refuse("set", &names(other), &names(one), "the same fields in every change");
            }
        }
    }
}

/// Counters and times have no common order; times of any unit have.
const fn kind(unit: Unit) -> &'static str {
    match unit {
        Unit::Integer => "integer",
        Unit::S | Unit::Ms | Unit::Us | Unit::Iso => "a unit of time",
    }
}

const fn word(tie: Tie) -> &'static str {
    match tie {
        Tie::Rank => "rank",
        Tie::Skip => "skip",
    }
}

fn names(projection: &Projection) -> String {
    let names: Vec<&str> = projection.set.keys().map(String::as_str).collect();
    format!("{{ {} }}", names.join(", "))
}
