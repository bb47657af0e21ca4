//! What each strategy needs and refuses. Error texts are compared whole: they are what a person
//! reads.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic is a failed test")]

mod file;

use config::{OnGap, Order};
use file::{FETCH, SEQUENCE, SET, accepted, errors, only, projection, source, table};

#[test]
fn strategies_ties_and_units_are_accepted_only_when_they_work() {
    let order = |order: &str| {
        let mut found = errors(&source(&projection("a", "thing", order, SET)));
        assert_eq!(found.len(), 1, "{found:#?}");
        found.pop().unwrap()
    };
    let at = "sources.toml:7: sources.s.projections[0].order";
    assert_eq!(
        order("strategy = \"versions\""),
        format!(
            "{at}.strategy: found `versions`, allowed version, fetch, sequence, none; \
             did you mean `version`?"
        )
    );
    assert_eq!(
        order("strategy = \"version\", by = \"/v\", tie = \"first\""),
        format!("{at}.tie: found `first`, allowed rank, fetch, skip")
    );
    assert_eq!(
        order("strategy = \"version\", by = \"/v\", unit = \"seconds\""),
        format!("{at}.unit: found `seconds`, allowed s, ms, us, iso, integer")
    );
    assert_eq!(
        order("strategy = \"version\""),
        format!("{at}.by: found nothing, allowed a JSON Pointer to the version")
    );
}

#[test]
fn a_sequence_begins_with_one_and_waits_an_hour_unless_it_says_otherwise() {
    let read = |order: &str| {
        let source = accepted(&source(&projection("a", "thing", order, SET)));
        match &only(&source).order {
            Order::Sequence { start, timeout_ms, on_gap, .. } => {
                (start.get(), *timeout_ms, *on_gap)
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read(SEQUENCE), (1, 3_600_000, OnGap::Apply));
    let dead = "strategy = \"sequence\", by = \"/n\", on_gap = \"dead\"";
    for (said, start, timeout_ms) in [
        ("start = 0, timeout = \"90s\"", 0, 90_000),
        ("start = -5, timeout = \"15m\"", -5, 900_000),
        ("start = 100, timeout = \"7d\"", 100, 604_800_000),
    ] {
        assert_eq!(read(&format!("{dead}, {said}")), (start, timeout_ms, OnGap::Dead));
    }
}

#[test]
fn every_mistake_in_a_sequence_is_named() {
    let told = |order: &str| {
        let mut found = errors(&source(&projection("a", "thing", order, SET)));
        assert_eq!(found.len(), 1, "{found:#?}");
        found.pop().unwrap()
    };
    let at = "sources.toml:7: sources.s.projections[0].order";
    assert_eq!(
        told("strategy = \"sequence\", by = \"/n\""),
        format!("{at}.on_gap: found nothing, allowed fetch, apply, dead")
    );
    assert_eq!(
        told("strategy = \"sequence\", on_gap = \"dead\""),
        format!("{at}.by: found nothing, allowed a JSON Pointer to the number")
    );
    for timeout in ["\"1w\"", "\"8d\"", "\"0s\"", "\"1 h\"", "\"h\"", "\"+1h\"", "3600"] {
        let shown = timeout.trim_matches('"');
        assert_eq!(
            told(&format!("{SEQUENCE}, timeout = {timeout}")),
            format!(
                "{at}.timeout: found `{shown}`, allowed a time from 1s to 7d, such as 90s, 15m or 1h"
            )
        );
    }
    assert_eq!(
        told(&format!("{SEQUENCE}, start = 1.5")),
        format!("{at}.start: found `1.5`, allowed the whole number that the sequence begins with")
    );
    assert_eq!(
        told(&format!("{SEQUENCE}, unit = \"s\"")),
        format!(
            "{at}.unit: found `unit` with strategy = \"sequence\", allowed `unit` with strategy = \"version\" only"
        )
    );
    assert_eq!(
        told("strategy = \"version\", by = \"/n\", timeout = \"1h\""),
        format!(
            "{at}.timeout: found `timeout` with strategy = \"version\", allowed `timeout` with strategy = \"sequence\" only"
        )
    );
}

#[test]
fn an_event_waits_in_one_sequence_since_it_is_one_transaction() {
    let text = format!(
        "{}{}{}",
        projection("a", "thing", SEQUENCE, SET),
        projection("b", "other", SEQUENCE, SET),
        projection("a", "more", SEQUENCE, SET),
    );
    assert_eq!(
        errors(&source(&text)),
        ["sources.toml:15: sources.s.projections[2].on: found a second sequence for `a`, beside \
          sources.s.projections[0] (line 4), allowed one sequence for an event type: an event is \
          applied in one transaction, and two that wait in two sequences may wait for each other"]
    );
    // Beside every other strategy it may stand.
    let mixed = format!(
        "{}{}{}{}{}",
        projection("a", "thing", SEQUENCE, SET),
        projection("a", "count", "strategy = \"none\"", "add = { x = \"/x\" }"),
        projection("a", "seen", "strategy = \"version\", by = \"/v\"", SET),
        projection("a", "fetched", FETCH, ""),
        table("fetch.fetched", "", ""),
    );
    assert_eq!(accepted(&source(&mixed)).projections_on("a").count(), 4);
}

#[test]
fn more_changes_than_a_transaction_holds_are_refused() {
    let text: String = (0..99)
        .map(|n| projection("a", &format!("t{n}"), "strategy = \"version\", by = \"/v\"", SET))
        .collect();
    assert_eq!(
        errors(&source(&text)),
        [
            "sources.toml:495: sources.s.projections[98].on: found projection 99 of `a`, allowed 98 of \
          an event type: they are one transaction"
        ]
    );
}

#[test]
fn lists_have_a_bound_and_no_field_is_added_to_twice() {
    let none = "strategy = \"none\"";
    let append = "append = { items = \"/item\", names = \"/name\", max = 100 }";
    let source_of = |fields: &str| source(&projection("a", "thing", none, fields));
    let read = accepted(&source_of(append));
    let fields: Vec<&str> = only(&read).append.keys().map(String::as_str).collect();
    assert_eq!((fields, only(&read).append_max), (vec!["items", "names"], 100));
    assert!(
        only(&accepted(&source_of(&format!("{append}\nadd = {{ n = \"/n\" }}")))).add.len() == 1
    );
    let told = |fields: &str| errors(&source_of(fields));
    let at = "sources.toml:8: sources.s.projections[0]";
    assert_eq!(
        told(""),
        ["sources.toml:4: sources.s.projections[0].add: found nothing, allowed a table \
             { field = \"/...\" } of numbers to add"]
    );
    assert_eq!(
        told("append = { items = \"/item\" }"),
        [format!("{at}.append.max: found nothing, allowed how long the lists may be, 1 to 1000")]
    );
    assert_eq!(
        told("append = { items = \"/item\", max = 1001 }"),
        [format!("{at}.append.max: found `1001`, allowed a whole number from 1 to 1000")]
    );
    assert_eq!(
        told("append = { max = 10 }"),
        [format!(
            "{at}.append: found no field, allowed a table {{ field = \"/...\", max = 100 }} of lists to append to"
        )]
    );
    assert_eq!(
        told("append = { x = \"/item\", max = 10 }\nadd = { x = \"/n\" }"),
        [format!(
            "{at}.append: found `x`, which `add` has too, allowed a field in `add` or in `append`"
        )]
    );
}

#[test]
fn an_entity_type_has_one_strategy_and_a_sequence_one_beginning() {
    let text = format!(
        "{}{}{}",
        projection("a", "thing", SEQUENCE, SET),
        projection("b", "thing", FETCH, ""),
        table("fetch.thing", "", ""),
    );
    assert_eq!(
        errors(&source(&text)),
        [
            "sources.toml:12: sources.s.projections[1].order.strategy: found fetch, allowed sequence, as \
          sources.s.projections[0] (line 4) has it: one strategy for every change of s#thing"
        ]
    );
    let text = format!(
        "{}{}",
        projection("a", "thing", SEQUENCE, SET),
        projection("b", "thing", &format!("{SEQUENCE}, start = 0"), SET),
    );
    assert_eq!(
        errors(&source(&text)),
        ["sources.toml:12: sources.s.projections[1].order.start: found 0, allowed 1, as \
          sources.s.projections[0] (line 4) has it: one beginning for every change of s#thing"]
    );
}

#[test]
fn only_what_adds_is_not_worked_again_from_the_ledger() {
    let text = format!(
        "{}{}{}{}",
        projection("paid", "balance", "strategy = \"none\"", "add = { x = \"/x\" }"),
        projection("paid", "invoice", "strategy = \"version\", by = \"/v\"", SET),
        projection("moved", "thing", SEQUENCE, SET),
        projection("listed", "items", "strategy = \"none\"", "append = { x = \"/x\", max = 5 }"),
    );
    let source = accepted(&source(&text));
    assert_eq!(source.is_replayable("moved"), Ok(()));
    assert_eq!(source.is_replayable("nobody's"), Ok(()));
    for (event_type, entity_type) in [("paid", "balance"), ("listed", "items")] {
        assert_eq!(
            source.is_replayable(event_type).unwrap_err().to_string(),
            format!(
                "an event of type {event_type} adds to {entity_type} (strategy = \"none\"): worked \
                 again, it would count twice"
            )
        );
    }
}

#[test]
fn a_tombstone_is_true_or_false() {
    let version = "strategy = \"version\", by = \"/v\"";
    let with = |said: &str| source(&projection("a", "thing", version, &format!("{SET}\n{said}")));
    assert_eq!(
        errors(&with("final = \"yes\"")),
        ["sources.toml:9: sources.s.projections[0].final: found `yes`, allowed true or false"]
    );
    for (said, is_final) in [("", false), ("final = false", false), ("final = true", true)] {
        assert_eq!(only(&accepted(&with(said))).is_final, is_final, "{said:?}");
    }
}
