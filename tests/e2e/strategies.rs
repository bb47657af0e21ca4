//! The strategies that look before they write, on the deployed stack: fetched state against a Stripe
//! that answers, sequences with and without a gap, sums and lists. Samples of what the twin goes
//! through in every order.

use crate::suite::Suite;
use futures::{StreamExt, stream};
use ledger::{Entity, Millis, Open, Outcome, Status};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use support::{Call, Letterbox, Sample, now_ms, until};

/// Where fetched subscriptions live.
const FETCHED: &str = "stripe-fetched";
/// Where numbered orders live.
const NUMBERED: &str = "standard-webhooks";

/// A list in an order of its own for each seed.
fn shuffled<T>(mut list: Vec<T>, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..list.len()).rev() {
        // xorshift: any spread will do.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        list.swap(last, usize::try_from(state % (last as u64 + 1)).unwrap());
    }
    list
}

pub(crate) async fn a_real_stripes_own_webhooks_shuffled_and_doubled_end_in_what_its_api_says(
    suite: &Suite,
) {
    let stripe = &suite.stripe;
    let letterbox = Letterbox::start().await;
    let key = suite.stack.signer.key_text(FETCHED);
    stripe.send_webhooks_to(&letterbox.url(), key).await.unwrap();
    let (gold, silver) = (suite.id("gold"), suite.id("silver"));
    for plan in [&gold, &silver] {
        stripe.create_plan(plan).await.unwrap();
    }
    let mut subscriptions = Vec::new();
    for n in 0..8 {
        let email = format!("{}@example.com", suite.id("c"));
        let id = stripe.subscribe(&email, &gold).await.unwrap();
        if n % 2 == 0 {
            stripe.cancel(&id).await.unwrap();
        }
        if n % 4 == 1 {
            stripe.change_plan(&id, &silver).await.unwrap();
        }
        subscriptions.push(id);
    }
    let letters = until("twelve webhooks", Duration::from_secs(30), async || {
        // Other cases subscribe at the same Stripe.
        let of_ours = |call: &Call| {
            let event = body(call);
            let about = event.pointer("/data/object/id").and_then(Value::as_str);
            kind(call).starts_with("customer.subscription.")
                && subscriptions.iter().any(|id| about == Some(id))
        };
        let letters: Vec<Call> = letterbox.letters().into_iter().filter(of_ours).collect();
        if letters.len() == 12 { Ok(letters) } else { Err(format!("{}", letters.len())) }
    })
    .await;

    let twice = shuffled([letters.clone(), letters.clone()].concat(), now_ms());
    let posts = twice.into_iter().map(|letter| {
        let path = format!("/webhooks/{FETCHED}");
        suite.stack.http.post(Call { path, ..letter })
    });
    let answers: Vec<_> = stream::iter(posts).buffered(4).collect().await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    for letter in &letters {
        let id = body(letter)["id"].as_str().unwrap().to_owned();
        let row = suite.stack.row_in(&format!("{FETCHED}#{id}"), Status::Settled).await;
        assert_eq!(row.life.outcome, Some(Outcome::Applied));
    }
    let mut seen = BTreeSet::new();
    for id in subscriptions {
        let entity = suite.stack.entity(&format!("{FETCHED}#subscription#{id}")).await.unwrap();
        let says = stripe.subscription(&id).await.unwrap();
        let says =
            json!({"plan": says["items"]["data"][0]["plan"]["id"], "status": says["status"]});
        assert_eq!(json!(entity.state), says, "{id}");
        seen.insert((says["plan"] == json!(gold), says["status"] == "canceled"));
    }
    assert!(seen.len() >= 3, "subscriptions ended in several ways: {seen:?}");
}

fn body(call: &Call) -> Value {
    serde_json::from_slice(&call.body).unwrap()
}

fn kind(call: &Call) -> String {
    body(call)["type"].as_str().unwrap_or_default().to_owned()
}

/// An event about a subscription that says nothing true but its id.
fn hint(suite: &Suite, subscription: &str) -> (String, Sample) {
    let id = suite.id("evt");
    let sample = Sample::read("stripe_subscription_updated").unwrap().with("/id", id.as_str());
    (id, sample.with("/data/object/id", subscription).with("/data/object/status", "invented"))
}

pub(crate) async fn fetched_state_is_the_providers_whatever_events_say_and_who_it_does_not_know_waits(
    suite: &Suite,
) {
    let (stripe, plan) = (&suite.stripe, suite.id("plan"));
    stripe.create_plan(&plan).await.unwrap();
    let known = stripe.subscribe(&format!("{plan}@example.com"), &plan).await.unwrap();
    let unknown = suite.id("sub");
    for subscription in [&known, &unknown] {
        let mut events: Vec<_> = (0..5).map(|_| hint(suite, subscription)).collect();
        events.push(events[2].clone());
        for (_, sample) in &events {
            assert_eq!(suite.post(FETCHED, sample).await.status, 200);
        }
        let end = if subscription == &known { Status::Settled } else { Status::Dead };
        for (id, _) in &events {
            suite.stack.row_in(&format!("{FETCHED}#{id}"), end).await;
        }
    }
    let at = async |id: &str| suite.stack.entity(&format!("{FETCHED}#subscription#{id}")).await;
    let entity = at(&known).await.unwrap();
    let says = stripe.subscription(&known).await.unwrap();
    assert_eq!(json!(entity.state), json!({"plan": plan, "status": says["status"]}));
    assert!(!entity.is_final);
    assert!(at(&unknown).await.is_none(), "another account's is no subscription that ended");
}

pub(crate) async fn events_of_one_second_end_in_what_the_provider_says_and_others_ask_nobody(
    suite: &Suite,
) {
    let real = format!("{}@example.com", suite.id("real"));
    let customer = suite.stripe.create_customer(&real).await.unwrap();
    let key = format!("{FETCHED}#customer#{customer}");
    let post = async |at: u64, email: &str| {
        let id = suite.id("evt");
        let event = json!({
            "id": id, "object": "event", "type": "customer.updated", "created": at, "livemode": false,
            "data": {"object": {"id": customer, "email": email, "name": null}},
        });
        let headers = [("content-type", "application/json")];
        let answer = suite.post_bytes(FETCHED, &headers, event.to_string().into_bytes()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        suite.stack.row_in(&format!("{FETCHED}#{id}"), Status::Settled).await;
        let entity = suite.stack.entity(&key).await.unwrap();
        entity.state["email"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(post(1_000, "a@example.com").await, "a@example.com");
    assert_eq!(post(2_000, "b@example.com").await, "b@example.com", "newer: as the event says");
    assert_eq!(post(1_500, "c@example.com").await, "b@example.com", "older: superseded");
    assert_eq!(post(2_000, "d@example.com").await, real, "of one second: as Stripe says");
    assert_eq!(post(3_000, "e@example.com").await, "e@example.com");
}

/// Posts one number of an order.
async fn move_order(suite: &Suite, order: &str, n: u64) -> String {
    let id = format!("msg_{order}_{n}");
    let body = json!({
        "type": "order.moved", "timestamp": "2026-11-30T12:00:00Z",
        "data": {"id": order, "sequence": n, "place": format!("p{n}")},
    });
    let headers = [("webhook-id", id.as_str()), ("content-type", "application/json")];
    let answer = suite.post_bytes(NUMBERED, &headers, body.to_string().into_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    format!("{NUMBERED}#{id}")
}

/// Delivers numbers in this order, each followed to where it rests.
async fn deliver(suite: &Suite, order: &str, numbers: Vec<u64>) -> Vec<String> {
    let mut keys = Vec::new();
    for n in numbers {
        let key = move_order(suite, order, n).await;
        let rests =
            |row: &ledger::Row| matches!(row.life.status, Status::Settled | Status::Waiting);
        suite.stack.row_when("the number rests", &key, rests).await;
        keys.push(key);
    }
    keys
}

async fn order_of(suite: &Suite, order: &str) -> Entity {
    suite.stack.entity(&format!("{NUMBERED}#order#{order}")).await.unwrap()
}

pub(crate) async fn numbers_end_in_their_own_order_and_go_on_behind_a_gap(suite: &Suite) {
    let runs: Vec<(String, Vec<u64>)> = (0..12)
        .map(|seed| {
            let numbers = if seed % 3 == 0 { vec![1, 2, 4, 5] } else { vec![1, 2, 3, 4, 5] };
            let twice = numbers[usize::try_from(seed).unwrap() % numbers.len()];
            (suite.id("order"), shuffled([numbers, vec![twice]].concat(), seed + 1))
        })
        .collect();
    let delivered = runs.iter().map(|(order, numbers)| deliver(suite, order, numbers.clone()));
    let keys: Vec<Vec<String>> = stream::iter(delivered).buffered(6).collect().await;
    suite.stack.queue_is_empty().await;

    for ((order, numbers), keys) in runs.iter().zip(&keys) {
        if numbers.contains(&3) {
            continue;
        }
        let entity = order_of(suite, order).await;
        assert_eq!(entity.version.map(ledger::Version::get), Some(2), "{numbers:?}");
        assert_eq!(entity.waiting.len(), 2, "4 and 5 wait for 3: {numbers:?}");
        // Their hour passes.
        for key in keys {
            let mut row = suite.stack.row(key).await.unwrap();
            if row.life.status != Status::Waiting {
                continue;
            }
            assert_eq!(row.life.attempts, 0, "who waits has spent nothing");
            let now = Millis(now_ms());
            row.life.waiting_since = Some(now.minus(3_600_000));
            row.life.open = row.life.open.map(|open| Open { due_at: now, ..open });
            suite.plant(&row).await;
        }
    }
    suite.steward();
    for ((order, numbers), keys) in runs.iter().zip(&keys) {
        for key in keys {
            suite.stack.row_in(key, Status::Settled).await;
        }
        let entity = order_of(suite, order).await;
        assert_eq!(entity.version.map(ledger::Version::get), Some(5), "{numbers:?}");
        assert_eq!(json!(entity.state), json!({"place": "p5", "sequence": 5}), "{numbers:?}");
        assert!(entity.waiting.is_empty(), "{numbers:?}");
    }
}

pub(crate) async fn payments_are_added_and_listed_once_in_any_order(suite: &Suite) {
    let runs = (0..6_u64).map(|seed| async move {
        let order = 7_000_000_000 + now_ms() % 1_000_000_000 * 10 + seed;
        let events = shuffled(vec![1_u64, 2, 3, 4, 5, 1 + seed % 5], seed + 7);
        for n in &events {
            let sample = Sample::read("shopify_payment_received").unwrap();
            let sample = sample.with("/id", *n).with("/order_id", order).with("/amount", "1.10");
            let sample = sample.with_header("x-shopify-event-id", &format!("{order}-{n}"));
            assert_eq!(suite.post("shopify", &sample).await.status, 200);
        }
        let key = format!("shopify#order-payments#{order}");
        let entity = until("five payments", Duration::from_mins(1), async || {
            let entity = suite.stack.entity(&key).await.ok_or("no such entity")?;
            let revision = entity.revision;
            if revision >= 5 { Ok(entity) } else { Err(format!("{revision} payments")) }
        })
        .await;
        assert_eq!(entity.state["received"].to_string(), "5.5", "{events:?}");
        let mut listed: Vec<u64> = entity.state["transactions"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_u64)
            .collect();
        listed.sort_unstable();
        assert_eq!(listed, [1, 2, 3, 4, 5], "{events:?}");
    });
    stream::iter(runs).buffered(3).collect::<Vec<()>>().await;
}
