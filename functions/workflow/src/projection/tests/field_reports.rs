//! Failures that teams met elsewhere, one test each, named by case.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::{
    Rows, SHIPPED, adding, change, orders, parsed, plan, project, refusal, source, versioned,
};
use ledger::GuardRefusal;
use serde_json::{Value, json};

/// Delivers `(event type, event id, body)` in every order; all must end in `expected`.
fn every_order(
    source: &config::Source,
    events: &[(&str, &str, Value)],
    key: &str,
    expected: &Value,
) {
    for order in orders(events.len()) {
        let mut rows = Rows::default();
        for index in &order {
            let (event_type, id, body) = events.get(*index).unwrap();
            rows.apply(source, event_type, id, body);
        }
        assert_eq!(rows.state(key), *expected, "order {order:?}");
    }
}

/// The state of `s#thing#1` after versions of it came in this order.
fn after(unit: &str, versions: &[Value]) -> String {
    let source = versioned(unit, "v = \"/v\"");
    let mut rows = Rows::default();
    for (index, version) in versions.iter().enumerate() {
        rows.apply(&source, "t", &format!("e{index}"), &json!({ "id": 1, "v": version }));
    }
    let state = rows.state("s#thing#1");
    state.get("v").unwrap().to_string()
}

/// Both orders of two versions end in the second.
fn second_wins(unit: &str, first: &Value, second: &Value) {
    for pair in [[first.clone(), second.clone()], [second.clone(), first.clone()]] {
        assert_eq!(after(unit, &pair), second.to_string(), "{unit}: {pair:?}");
    }
}

const LIFE: &str = "[[sources.s.projections]]\non = [\"created\", \"active\", \"updated\"]\n\
     entity = { type = \"thing\", id = \"/id\" }\n\
     order = { strategy = \"version\", by = \"/at\", unit = \"UNIT\" }\n\
     set = { status = \"/status\" }\n";

#[test]
fn c02_three_events_of_one_second_end_the_same_in_all_six_orders() {
    let event = |kind: &'static str, at: &str, status: &str| {
        (kind, kind, json!({ "id": 1, "at": at, "status": status }))
    };
    let events = [
        event("created", "1700000000.90", "incomplete"),
        event("active", "1700000000.50", "active"),
        event("updated", "1700000000.70", "active"),
    ];
    // The provider's word counts: by its sub-second times `created` is the newest.
    let by_time = source(&LIFE.replace("UNIT", "s"));
    every_order(&by_time, &events, "s#thing#1", &json!({ "status": "incomplete" }));
    // Where its times are whole seconds, the place in `on` decides, and `created` never wins.
    let events = events.map(|(kind, id, mut body)| {
        body.as_object_mut().unwrap().insert("at".to_owned(), json!(1_700_000_000));
        (kind, id, body)
    });
    every_order(&by_time, &events, "s#thing#1", &json!({ "status": "active" }));
}

#[test]
fn c03_two_events_of_one_second_end_paid_in_every_order_redeliveries_included() {
    let source = source(&LIFE.replace("UNIT", "s"));
    let a = ("updated", "evt_c03a", json!({ "id": 1, "at": 1, "status": "open" }));
    let b = ("updated", "evt_c03b", json!({ "id": 1, "at": 1, "status": "paid" }));
    every_order(&source, &[a.clone(), b, a], "s#thing#1", &json!({ "status": "paid" }));
}

#[test]
fn c04_event_ids_are_no_clock() {
    let source = source(&LIFE.replace("UNIT", "s"));
    let events = [
        ("updated", "evt_zzz", json!({ "id": 1, "at": 100, "status": "trial" })),
        ("updated", "evt_aaa", json!({ "id": 1, "at": 105, "status": "active" })),
    ];
    every_order(&source, &events, "s#thing#1", &json!({ "status": "active" }));
}

#[test]
fn c06_what_was_generated_first_and_sent_last_does_not_win() {
    let source = source(&LIFE.replace("UNIT", "iso"));
    let event = |id: &'static str, at: &str, status: &str| {
        ("updated", id, json!({ "id": 1, "at": at, "status": status }))
    };
    let events = [
        event("e1", "2026-01-01T17:27:00Z", "VERIFIED"),
        event("e2", "2026-01-01T17:25:00Z", "REQUIRED"),
    ];
    every_order(&source, &events, "s#thing#1", &json!({ "status": "VERIFIED" }));
}

#[test]
fn c07_an_update_before_its_create_makes_the_row_and_the_create_is_superseded() {
    let source = parsed(SHIPPED, "shopify");
    let body = |at: &str, status: &str| json!({ "id": 1001, "updated_at": at, "financial_status": status });
    let mut rows = Rows::default();
    let updated = body("2026-02-01T09:00:01-05:00", "paid");
    assert_eq!(rows.apply(&source, "orders/updated", "e1", &updated), []);
    let created = body("2026-02-01T09:00:00-05:00", "pending");
    let refused = rows.apply(&source, "orders/create", "e2", &created);
    assert_eq!(refused, [GuardRefusal::Superseded]);
    let state = rows.state("shopify#order#1001");
    assert_eq!(state.get("financial_status"), Some(&json!("paid")));
}

#[test]
fn c08_times_are_compared_as_instants_whatever_their_spelling() {
    let version = |at: &str| {
        change(&versioned("iso", "v = \"/v\""), &json!({ "id": 1, "v": at }).to_string())
            .unwrap()
            .version()
    };
    assert_eq!(version("2026-04-01T10:00:00Z"), version("2026-04-01T10:00:00+00:00"));
    for (first, second) in [
        ("2026-04-01T12:00:00+02:00", "2026-04-01T10:00:01Z"),
        ("2024-03-10T01:59:59-05:00", "2024-03-10T03:00:00-04:00"),
    ] {
        second_wins("iso", &json!(first), &json!(second));
    }
    assert_eq!(version("2026-04-01T10:00:00-0000"), version("2026-04-01T10:00:00Z"));
}

#[test]
fn c09_fractions_with_trimmed_zeros_are_numbers_not_text() {
    for (first, second) in [
        ("2026-05-01T08:00:00.7Z", "2026-05-01T08:00:00.710000Z"),
        ("2026-02-28T11:00:00Z", "2026-02-28T11:00:00.500Z"),
        ("2026-02-28T11:00:00.999999999Z", "2026-02-28T11:00:01Z"),
    ] {
        second_wins("iso", &json!(first), &json!(second));
    }
    // A leap second is read as the second before it, or refused; either way nothing panics.
    let leap = json!({ "id": 1, "v": "2026-06-30T23:59:60Z" }).to_string();
    if let Ok(leap) = change(&versioned("iso", "v = \"/v\""), &leap) {
        let next = json!({ "id": 1, "v": "2026-07-01T00:00:00Z" }).to_string();
        let next = change(&versioned("iso", "v = \"/v\""), &next).unwrap();
        assert!(leap.version() <= next.version());
    }
}

#[test]
fn c10_a_coarser_time_behind_a_finer_one_is_superseded_and_said_to_be() {
    let source = versioned("iso", "x = \"/x\"");
    let mut rows = Rows::default();
    let fine = json!({ "id": 1, "v": "2026-01-01T00:00:05.900Z", "x": "old" });
    assert_eq!(rows.apply(&source, "t", "e1", &fine), []);
    let coarse = json!({ "id": 1, "v": "2026-01-01T00:00:05Z", "x": "new" });
    assert_eq!(rows.apply(&source, "t", "e2", &coarse), [GuardRefusal::Superseded]);
}

#[test]
fn c12_an_event_without_its_version_is_never_applied_blindly() {
    let source = versioned("integer", "x = \"/x\"");
    for version in ["", r#","v":null"#, r#","v":"""#, r#","v":"n/a""#] {
        let message = refusal(change(&source, &format!(r#"{{"id":1{version}}}"#)));
        assert!(message.starts_with("thing: the version "), "{message}");
    }
    // Zero is a version, older than all that follow.
    second_wins("integer", &json!(0), &json!(1));
}

#[test]
fn c12_every_shipped_projection_by_version_refuses_an_event_without_one() {
    for name in ["github", "shopify", "standard-webhooks", "stripe-live", "stripe-test"] {
        let source = parsed(SHIPPED, name);
        let mut checked = 0;
        for projection in &source.projections {
            if projection.order == config::Order::None {
                continue;
            }
            for event_type in &projection.on {
                // An id at every place that a shipped projection looks for one.
                let body = json!({
                    "id": 1,
                    "order_id": 1,
                    "repository": { "id": 1 },
                    "data": { "id": 1, "object": { "id": 1 } },
                });
                let plans = project(&source, event_type, "e", body.to_string().as_bytes());
                assert!(refusal(plans).contains("the version is missing"));
                checked += 1;
            }
        }
        assert!(checked > 0, "{name}");
    }
}

#[test]
fn c13_every_spelling_of_a_version_is_one_number() {
    let version = |spelling: &str| {
        let body = format!(r#"{{"id":1,"v":{spelling}}}"#);
        change(&versioned("integer", "x = \"/x\""), &body).unwrap().version().unwrap().get()
    };
    for ten in ["10", "\"10\"", "10.0", "\"010\"", "\"1e1\""] {
        assert_eq!(version(ten), 10, "{ten}");
    }
    second_wins("integer", &json!("9"), &json!(10));
}

#[test]
fn c14_ten_is_more_than_nine_and_a_hundred_more_than_ninety_nine() {
    assert_eq!(after("integer", &[json!("9"), json!("10"), json!("9")]), "\"10\"");
    second_wins("integer", &json!("99"), &json!("100"));
}

#[test]
fn c15_large_ids_and_versions_keep_their_last_digits() {
    let source = versioned("integer", "v = \"/v\"");
    let mut rows = Rows::default();
    let body = |version: u64| json!({ "id": 1_234_567_890_123_456_789_u64, "v": version });
    assert_eq!(rows.apply(&source, "t", "e1", &body(9_007_199_254_740_993)), []);
    let older = rows.apply(&source, "t", "e2", &body(9_007_199_254_740_992));
    assert_eq!(older, [GuardRefusal::Superseded]);
    let state = rows.state("s#thing#1234567890123456789");
    assert_eq!(state.to_string(), r#"{"v":9007199254740993}"#);
}

#[test]
fn c16_versions_are_exact_to_38_digits_and_refused_beyond() {
    let source = versioned("integer", "x = \"/x\"");
    let version = |text: &str| {
        let found = change(&source, &format!(r#"{{"id":1,"v":{text}}}"#));
        found.map(|change| change.version().unwrap().get())
    };
    for text in [
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-1",
        "1e3",
        "1.0",
        "99999999999999999999999999999999999999",
    ] {
        let number = version(text).unwrap();
        let before = version(&(number - 1).to_string()).unwrap();
        assert!(before < number, "{text}");
    }
    assert_eq!(
        refusal(version("100000000000000000000000000000000000000")),
        "thing: the version has more than 38 digits (at /v)"
    );
}

#[test]
fn c17_what_an_event_does_not_carry_is_null_and_never_zero() {
    let source = versioned("integer", "reactions = \"/reactions\", assignee = \"/assignee\"");
    let assigned = change(&source, r#"{"id":1,"v":1,"assignee":"ada"}"#).unwrap();
    // A version replaces the state whole, so a field that only other events carry belongs to an
    // entity type of its own; what is missing is said to be missing.
    assert_eq!(json!(assigned.state), json!({ "assignee": "ada", "reactions": null }));
}

#[test]
fn c19_late_arrival_after_an_outage_does_not_reorder_by_our_clock() {
    let source = source(&LIFE.replace("UNIT", "s"));
    let events = [
        ("updated", "b", json!({ "id": 1, "at": 60, "status": "second" })),
        ("updated", "a", json!({ "id": 1, "at": 0, "status": "first" })),
    ];
    every_order(&source, &events, "s#thing#1", &json!({ "status": "second" }));
}

#[test]
fn c20_a_child_does_not_wait_for_its_parent() {
    let source = source(
        "[[sources.s.projections]]\non = [\"subscription.created\"]\n\
         entity = { type = \"subscription\", id = \"/id\" }\n\
         order = { strategy = \"version\", by = \"/v\" }\nset = { customer = \"/customer\" }\n\
         [[sources.s.projections]]\non = [\"customer.created\"]\n\
         entity = { type = \"customer\", id = \"/id\" }\n\
         order = { strategy = \"version\", by = \"/v\" }\nset = { name = \"/name\" }\n",
    );
    let child =
        ("subscription.created", "e1", json!({ "id": "sub", "v": 1, "customer": "cus_unknown" }));
    let parent = ("customer.created", "e2", json!({ "id": "cus_unknown", "v": 1, "name": "n" }));
    let events = [child, parent];
    every_order(&source, &events, "s#subscription#sub", &json!({ "customer": "cus_unknown" }));
    every_order(&source, &events, "s#customer#cus_unknown", &json!({ "name": "n" }));
}

#[test]
fn c21_the_newest_of_a_batch_stays_wherever_it_stood() {
    let source = versioned("integer", "status = \"/status\"");
    let job = |v: u32, status: &str| json!({ "id": "job-1", "v": v, "status": status });
    let mut rows = Rows::default();
    assert_eq!(rows.apply(&source, "t", "e3", &job(3, "completed")), []);
    for (id, body) in [("e1", job(1, "queued")), ("e2", job(2, "in_progress"))] {
        assert_eq!(rows.apply(&source, "t", id, &body), [GuardRefusal::Superseded]);
    }
    assert_eq!(rows.state("s#thing#job-1"), json!({ "status": "completed" }));
}

#[test]
fn f05_a_number_beyond_floats_is_exact_or_refused_and_never_null() {
    let unused = versioned("integer", "x = \"/x\"");
    let used = versioned("integer", "amount = \"/amount\"");
    for amount in ["1e400", "-1e400", "1e-400"] {
        let body = format!(r#"{{"id":"evt_f05","v":1,"amount":{amount}}}"#);
        assert!(change(&unused, &body).is_ok(), "{amount} in a field nobody reads");
        assert_eq!(
            refusal(change(&used, &body)),
            "thing: the value at /amount, for the field amount, is or holds a number that \
             is outside 1e-130 to 9.99e125"
        );
        assert_eq!(
            refusal(plan(&adding(), &body)),
            "account: the amount at /amount, for the field total, is outside 1e-130 to 9.99e125"
        );
    }
    assert_eq!(
        refusal(change(&unused, r#"{"id":"evt_f05d","v":1E400}"#)),
        "thing: the version has more than 38 digits (at /v)"
    );
}

#[test]
fn f06_long_decimals_are_applied_digit_for_digit() {
    let source = versioned(
        "integer",
        "amount = \"/amount\", price = \"/price\", qty = \"/qty\", neg = \"/neg\"",
    );
    let body = r#"{"id":"evt_f06","v":1,"amount":0.1234567890123456789,"total":100000000000000000000000000000000000001,"price":10.10,"qty":1.0,"neg":-0}"#;
    let state = Value::Object(change(&source, body).unwrap().state);
    assert_eq!(
        state.to_string(),
        r#"{"amount":0.1234567890123456789,"neg":-0,"price":10.10,"qty":1.0}"#
    );
    assert_eq!(
        refusal(change(&versioned("integer", "total = \"/total\""), body)),
        "thing: the value at /total, for the field total, is or holds a number that \
         has more than 38 significant digits"
    );
}

#[test]
fn f07_duplicate_keys_mean_their_last_value_everywhere() {
    let source = versioned("integer", "status = \"/data/status\"");
    let body = r#"{"id":"evt_f07","id":"evt_f07b","v":1,"type":"a","data":{"status":"paid","status":"failed"}}"#;
    let change = change(&source, body).unwrap();
    assert_eq!(change.entity.as_str(), "s#thing#evt_f07b");
    assert_eq!(change.state.get("status"), Some(&json!("failed")));
    // The rule is serde_json's own.
    let whole: Value = serde_json::from_str(body).unwrap();
    assert_eq!(whole.pointer("/data/status"), Some(&json!("failed")));
}

#[test]
fn f08_a_null_character_in_a_text_is_kept_and_in_an_id_is_hashed() {
    let source = versioned("integer", "text = \"/text\"");
    let kept = change(&source, r#"{"id":"evt_f08","v":1,"text":"ab\u0000cd"}"#).unwrap();
    assert_eq!(kept.state.get("text"), Some(&json!("ab\u{0}cd")));
    let hashed = change(&source, r#"{"id":"evt\u0000_f08b","v":1}"#).unwrap();
    assert!(hashed.entity.as_str().starts_with("s#thing#sha256:"));
    let raw = refusal(change(&source, "{\"id\":\"evt_f08\",\"v\":1,\"other\":\"a\u{0}b\"}"));
    assert!(raw.starts_with("the event body is no JSON"), "{raw}");
}

#[test]
fn f11_an_empty_object_id_is_a_permanent_failure_with_its_place() {
    let source = parsed(SHIPPED, "stripe-live");
    for id in ["", " "] {
        let body = json!({ "id": "evt_f11", "created": 1, "data": { "object": { "id": id } } });
        let plans = project(
            &source,
            "customer.subscription.updated",
            "evt_f11",
            body.to_string().as_bytes(),
        );
        assert_eq!(
            refusal(plans),
            "subscription: the id at /data/object/id is blank, expected a text or a whole number"
        );
    }
}
