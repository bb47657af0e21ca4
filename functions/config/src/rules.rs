//! What no single table can show: projections that meet in one entity.
//!
//! A state row is shared by every projection of its namespace and entity type, in this source or
//! another. They must agree on what makes a change newer, and on the fields: a change by version
//! replaces the state whole, so a field that only some projections set would come and go with the
//! order of arrival.

use crate::{
    Order, Projection, Tie,
    error::{Report, quote},
    projection::read,
    source,
};
use ledger::Unit;
use std::collections::BTreeMap;

/// Judges all projections together.
pub(crate) fn check(sources: &[source::Draft], report: &mut Report<'_>) {
    for source in sources {
        refuse_twins(&source.projections, report);
        refuse_two_waits(&source.projections, report);
        refuse_too_many(&source.projections, report);
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

/// An event that waits in two sequences at once: it cannot be applied in one transaction before
/// both turns have come, and two such events may wait for each other.
fn refuse_two_waits(drafts: &[read::Draft], report: &mut Report<'_>) {
    let is_sequence =
        |draft: &&read::Draft| matches!(draft.projection.order, Order::Sequence { .. });
    let sequences: Vec<&read::Draft> = drafts.iter().filter(is_sequence).collect();
    for (index, draft) in sequences.iter().enumerate() {
        for earlier in sequences.iter().take(index) {
            let shared = draft.projection.on.iter().find(|on| earlier.projection.is_on(on));
            if let Some(event_type) = shared {
                let found = format!(
                    "a second sequence for {}, beside {} (line {})",
                    quote(event_type),
                    earlier.path,
                    report.line(&earlier.at)
                );
                let allowed = "one sequence for an event type: an event is applied in one \
                               transaction, and two that wait in two sequences may wait for each \
                               other";
                report.refuse(draft.on_at.clone(), format!("{}.on", draft.path), found, allowed);
            }
        }
    }
}

/// DynamoDB's transaction takes 100 writes: the entities', the row's own, and a waiter's.
const CHANGES_MAX: usize = 98;

fn refuse_too_many(drafts: &[read::Draft], report: &mut Report<'_>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for draft in drafts {
        for event_type in &draft.projection.on {
            let count = counts.entry(event_type).or_default();
            *count = count.saturating_add(1);
            if *count == CHANGES_MAX.saturating_add(1) {
                let found = format!("projection {count} of {}", quote(event_type));
                let allowed = format!("{CHANGES_MAX} of an event type: they are one transaction");
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
        (Order::None, Order::None) | (Order::Fetch, Order::Fetch) => {}
        (Order::Version { unit: unit_one, tie: tie_one, .. }, Order::Version { unit, tie, .. }) => {
            if kind(*unit_one) != kind(*unit) {
                let why = "one kind of version for every change";
                refuse("order.unit", kind(*unit), kind(*unit_one), why);
            }
            if tie_one != tie {
                let why = "one rule among equals for every change";
                refuse("order.tie", word(*tie), word(*tie_one), why);
            }
        }
        (Order::Sequence { start: start_one, .. }, Order::Sequence { start, .. }) => {
            if start_one != start {
                let why = "one beginning for every change";
                refuse("order.start", &start.to_string(), &start_one.to_string(), why);
            }
        }
        (one, other) => {
            let why = "one strategy for every change";
            refuse("order.strategy", strategy(other), strategy(one), why);
            return;
        }
    }
    if names(one) != names(other) {
        refuse("set", &names(other), &names(one), "the same fields in every change");
    }
    if let Some(fetch) = other.fetch.as_ref().filter(|_| other.order != Order::Fetch)
        && !fetch.set.keys().eq(other.set.keys())
    {
        let (found, wanted) = (braced(fetch.set.keys()), braced(other.set.keys()));
        let why =
            format!("{wanted}, as the projection's own `set` has it: the same fields of {entity}");
        let found = format!("{found} in {}.set", fetch.path);
        report.refuse(draft.order_at.clone(), format!("{}.order", draft.path), found, why);
    }
}

const fn strategy(order: &Order) -> &'static str {
    match order {
        Order::Version { .. } => "version",
        Order::Fetch => "fetch",
        Order::Sequence { .. } => "sequence",
        Order::None => "none",
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
        Tie::Fetch => "fetch",
        Tie::Skip => "skip",
    }
}

/// The fields that a change replaces; none where it adds.
fn names(projection: &Projection) -> String {
    match (&projection.order, &projection.fetch) {
        (Order::Fetch, Some(fetch)) => braced(fetch.set.keys()),
        (Order::Fetch | Order::Version { .. } | Order::Sequence { .. } | Order::None, _) => {
            braced(projection.set.keys())
        }
    }
}

fn braced<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    format!("{{ {} }}", names.join(", "))
}
