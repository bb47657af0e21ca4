//! The projections of `infra/sources.toml`, in every order of arrival.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

use super::{Rows, SHIPPED, orders, parsed, project};
use crate::projection::Plan;
use config::Source;
use ledger::GuardRefusal;
use serde_json::{Value, json};

/// The four events of a subscription's life: type, id, time, status.
type Life = [(&'static str, &'static str, u64, &'static str); 4];

fn end_of(source: &Source, life: &Life, order: &[usize]) -> (Value, bool) {
    let mut rows = Rows::default();
    for index in order {
        let (kind, id, created, status) = life.get(*index).unwrap();
        let price = json!({ "price": { "id": format!("price_{id}") } });
        let object =
            json!({ "id": "sub_1", "status": status, "created": 1, "items": { "data": [price] } });
        let event_type = format!("customer.subscription.{kind}");
        let body = json!({ "id": id, "created": created, "data": { "object": object } });
        rows.apply(source, &event_type, id, &body);
        let again = rows.apply(source, &event_type, id, &body);
        assert_eq!(again, [GuardRefusal::Superseded], "a duplicate changes nothing");
    }
    let row = rows.0.values().next().unwrap();
    assert_eq!(rows.0.len(), 1);
    (Value::Object(row.state.clone()), row.is_final)
}

#[test]
fn all_24_orders_of_a_subscriptions_life_end_in_its_tombstone() {
    let lives: [Life; 3] = [
        [
            ("created", "evt_1", 100, "incomplete"),
            ("updated", "evt_2", 101, "active"),
            ("updated", "evt_3", 102, "past_due"),
            ("deleted", "evt_4", 103, "canceled"),
        ],
        // One second for all of it.
        [
            ("created", "evt_9", 100, "incomplete"),
            ("updated", "evt_2", 100, "active"),
            ("updated", "evt_3", 100, "past_due"),
            ("deleted", "evt_1", 100, "canceled"),
        ],
        // A tombstone that claims to be older than the changes before it.
        [
            ("created", "evt_1", 100, "incomplete"),
            ("updated", "evt_2", 100, "active"),
            ("updated", "evt_3", 105, "past_due"),
            ("deleted", "evt_4", 101, "canceled"),
        ],
    ];
    for name in ["stripe-live", "stripe-test"] {
        let source = parsed(SHIPPED, name);
        for life in &lives {
            let ends: Vec<_> = orders(4).iter().map(|order| end_of(&source, life, order)).collect();
            assert_eq!(ends.len(), 24);
            let tombstone = (json!({ "plan": null, "status": "canceled" }), true);
            assert!(ends.iter().all(|end| *end == tombstone), "{life:?}: {ends:?}");
        }
    }
}

#[test]
fn within_one_second_the_later_type_wins_and_then_the_greater_event_id() {
    let source = parsed(SHIPPED, "stripe-live");
    let life: Life = [
        ("created", "evt_9", 100, "incomplete"),
        ("updated", "evt_2", 100, "active"),
        ("updated", "evt_3", 100, "past_due"),
        ("created", "evt_8", 100, "incomplete"),
    ];
    for order in orders(4) {
        let end = end_of(&source, &life, &order);
        assert_eq!(end, (json!({ "plan": "price_evt_3", "status": "past_due" }), false));
    }
}

#[test]
fn a_form_that_carries_json_is_projected_like_the_json() {
    let source = parsed(SHIPPED, "github");
    let json = r#"{"ref":"refs/heads/main","after":"abc","repository":{"id":1296269,"full_name":"o/r","pushed_at":1767225600},"pusher":{"name":"n"}}"#;
    let escaped: Vec<String> = json.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let form = format!("payload={}", escaped.concat());
    let plain = project(&source, "push", "g1", json.as_bytes()).unwrap();
    assert_eq!(project(&source, "push", "g1", form.as_bytes()).unwrap(), plain);
    let Some(Plan::Versioned(change)) = plain.first() else { panic!("{plain:?}") };
    assert_eq!(change.entity.as_str(), "github#repository#1296269");
    assert_eq!(change.version().unwrap().get(), 1_767_225_600_000_000);
}

#[test]
fn the_shipped_payments_add_up_in_any_order_refunds_included() {
    let source = parsed(SHIPPED, "shopify");
    let amounts = ["31.95", "-10.00", "0.05"];
    for order in orders(3) {
        let mut rows = Rows::default();
        for index in order {
            let amount = amounts.get(index).unwrap();
            let body = json!({ "id": index, "order_id": 820_982_911_u64, "amount": amount });
            rows.apply(&source, "tender_transactions/create", &format!("e{index}"), &body);
        }
        let state = rows.state("shopify#order-payments#820982911");
        assert_eq!(state.get("received").unwrap().to_string(), "22");
        let listed = state.get("transactions").and_then(Value::as_array).unwrap();
        let listed: std::collections::BTreeSet<_> = listed.iter().map(Value::to_string).collect();
        assert_eq!(listed.into_iter().collect::<String>(), "012", "in the order of arrival");
    }
}
