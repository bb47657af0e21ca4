//! Kind b: which deliveries are one event, and which only look so.

use crate::{
    reports::{input, post, text},
    shop::{at, github, shop, thing, world},
};
use ledger::{Outcome, Status};
use serde_json::{Value, json};
use support::{World, WorldBuilder};

#[test]
fn b02_one_event_through_two_endpoints_of_the_provider_is_one_event() {
    let (world, report) = (world(), input("b02"));
    for step in report["steps"].as_array().unwrap() {
        let signature = step.as_str().unwrap().rsplit(' ').next().unwrap();
        let answer = world.post(
            "stripe",
            &[("stripe-signature", signature)],
            text(report, "/body").as_bytes(),
        );
        assert_eq!(answer.status, 200);
    }
    world.work();
    assert_eq!(world.keys(), ["stripe#evt_b02"]);
    assert_eq!(world.entity("stripe#invoice#in_1").revision, 1);
}

/// One source for each endpoint, each with its own secret, and their state shared by `namespace`.
const PLATFORM: &str = r#"
[sources.platform]
preset = "stripe"
secret = "platform"
[[sources.platform.projections]]
on = ["account.updated"]
entity = { type = "account", id = "/account", namespace = "accounts" }
order = { strategy = "version", by = "/created", unit = "s" }
set = { of = "/account" }

[sources.connect]
preset = "stripe"
secret = "connect"
[[sources.connect.projections]]
on = ["account.updated"]
entity = { type = "account", id = "/account", namespace = "accounts" }
order = { strategy = "version", by = "/created", unit = "s" }
set = { of = "/account" }
"#;

#[test]
fn b03_a_connect_secret_speaks_for_no_platform_account() {
    let world = WorldBuilder::new(PLATFORM)
        .keys("platform", &["whsec_endpoint_A"])
        .keys("connect", &["whsec_endpoint_B"])
        .build();
    let event = json!({"id": "evt_b03", "type": "account.updated", "created": 1_700_000_000,
        "livemode": false, "data": {"object": {"id": "acct_X"}}, "account": "acct_X"});
    let body = event.to_string();
    let foreign = world.signer.call_at("connect", &[], body.clone().into_bytes(), world.now().0);
    let (name, value) = foreign.headers.last().unwrap();
    let header = [(name.as_str(), std::str::from_utf8(value).unwrap())];
    assert_eq!(world.post("platform", &header, body.as_bytes()).status, 401);

    assert_eq!(world.deliver("platform", &[], body.as_bytes()).status, 200);
    assert_eq!(world.deliver("connect", &[], body.as_bytes()).status, 200);
    world.work();
    assert_eq!(
        world.entity("accounts#account#acct_X").revision,
        1,
        "one effect, the copy is superseded"
    );
    assert_eq!(world.row("connect#evt_b03").life.outcome, Some(Outcome::Superseded));

    let mut without = event;
    without["id"] = json!("evt_b03b");
    without.as_object_mut().unwrap().remove("account");
    assert_eq!(world.deliver("connect", &[], without.to_string().as_bytes()).status, 200);
    world.work();
    assert_eq!(world.status("connect#evt_b03b"), Status::Dead, "kept, and filed under no account");
}

#[test]
fn b04_a_redelivery_is_a_duplicate_of_finished_work_and_a_cure_for_stuck_work() {
    let (world, steps) = (world(), &input("b04")["steps"]);
    let event: Value =
        serde_json::from_str(steps[0].as_str().unwrap().strip_prefix("POST ").unwrap()).unwrap();
    assert_eq!(post(&world, &event).status, 200);
    world.work();
    let settled = world.row("github#guid-b04");
    assert_eq!(post(&world, &event).status, 200);
    assert_eq!(world.twin.queue_len(), 0);
    assert!((world.twin.metric("Duplicate") - 1.0).abs() < f64::EPSILON);
    assert_eq!(world.row("github#guid-b04"), settled);

    // Its message is lost: the button in the provider's dashboard brings it back.
    assert_eq!(thing(&world, "stuck", "t1", 1), 200);
    world.twin.lose_queue();
    world.twin.advance(31_000);
    assert_eq!(thing(&world, "stuck", "t1", 1), 200);
    world.work();
    assert_eq!(world.status("things#stuck"), Status::Settled);
}

/// Two apps are two sources, and neither hides the other's event. Within one source the second
/// payload under a GUID is a conflict: reported, and both are kept.
#[test]
fn b05_one_guid_on_two_payloads_loses_neither() {
    let two = r#"
        [sources.app1]
        preset = "github"
        secret = "app1"
        [sources.app2]
        preset = "github"
        secret = "app2"
    "#;
    let world = WorldBuilder::new(two)
        .keys("app1", &["gh-secret-01"])
        .keys("app2", &["gh-secret-02"])
        .build();
    let headers = [("x-github-event", "push"), ("x-github-delivery", "g-b05")];
    assert_eq!(world.deliver("app1", &headers, br#"{"installation":{"id":1}}"#).status, 200);
    assert_eq!(world.deliver("app2", &headers, br#"{"installation":{"id":2}}"#).status, 200);
    world.work();
    for key in ["app1#g-b05", "app2#g-b05"] {
        assert_eq!(world.status(key), Status::Settled);
    }

    assert_eq!(world.deliver("app1", &headers, br#"{"installation":{"id":2}}"#).status, 200);
    assert!((world.twin.metric("Conflict") - 1.0).abs() < f64::EPSILON);
    let beside = world.keys().into_iter().find(|key| key.starts_with("_c#")).unwrap();
    assert!(beside.ends_with("#app1#g-b05"), "{beside}");
    assert_eq!(world.body(&beside), br#"{"installation":{"id":2}}"#);
    assert_eq!(world.body("app1#g-b05"), br#"{"installation":{"id":1}}"#);
}

#[test]
fn b06_the_key_knows_nothing_of_the_time() {
    let world = world();
    assert_eq!(github(&world, "g-b06", b"{}"), 200);
    world.twin.advance(1);
    assert_eq!(github(&world, "g-b06", b"{}"), 200);
    assert_eq!(world.keys(), ["github#g-b06"]);
}

/// A provider whose id stands in the body.
fn with_id(places: &str) -> World {
    let sources = format!(
        r#"
        [sources.acme]
        preset = "github"
        secret = "github"
        [sources.acme.event]
        id = {places}
        identity = "body"
        "#
    );
    WorldBuilder::new(&sources).keys("github", &["gh-secret-01"]).build()
}

fn acme(world: &World, delivery: &str, body: &Value) -> u16 {
    let headers = [("x-github-event", "x"), ("x-github-delivery", delivery)];
    world.deliver("acme", &headers, body.to_string().as_bytes()).status
}

#[test]
fn b07_where_the_id_stands_is_said_for_each_provider() {
    let world = with_id("\"/event_id\"");
    assert_eq!(
        [
            acme(&world, "d1", &json!({"event_id": "E"})),
            acme(&world, "d2", &json!({"event_id": "E"}))
        ],
        [200, 200]
    );
    assert_eq!(world.keys(), ["acme#E"]);
}

#[test]
fn b08_a_shopify_event_is_its_shop_its_topic_and_its_event_id() {
    let world = world();
    let send_of = |thing: u32, shop: &str, topic: &str, webhook: &str| {
        let headers = [
            ("x-shopify-shop-domain", shop),
            ("x-shopify-topic", topic),
            ("x-shopify-event-id", "E1"),
            ("x-shopify-webhook-id", webhook),
        ];
        let body = json!({ "id": thing }).to_string();
        assert_eq!(world.deliver("shopify", &headers, body.as_bytes()).status, 200);
        world.keys().len()
    };
    let send = |shop: &str, topic: &str, webhook: &str| send_of(1, shop, topic, webhook);
    let rows = [
        send("shop-one.example", "orders/create", "W1"),
        send("shop-one.example", "orders/create", "W1"),
        send("shop-one.example", "orders/paid", "W2"),
        send("shop-two.example", "orders/create", "W3"),
        send("shop-one.example", "orders/create", "W9"),
    ];
    assert_eq!(rows, [1, 1, 2, 3, 3]);
    assert_eq!(send_of(2, "shop-one.example", "orders/create", "W4"), 4, "another order");
    // Without an event id the webhook id serves.
    let older =
        [("x-shopify-shop-domain", "s"), ("x-shopify-topic", "t"), ("x-shopify-webhook-id", "W1")];
    assert_eq!(world.deliver("shopify", &older, b"{}").status, 200);
    assert!(world.keys().contains(&"shopify#s:t:W1:t".to_owned()), "{:?}", world.keys());
}

#[test]
fn b10_what_names_the_subscription_names_no_event() {
    let world = with_id(r#"["/data/id", "/createdAt"]"#);
    let event = |id: u32, created: &str| json!({"webhookId": "W", "data": {"id": id}, "createdAt": created});
    for (id, created) in [(1, "t1"), (2, "t1"), (1, "t2")] {
        assert_eq!(acme(&world, "d", &event(id, created)), 200);
    }
    world.work();
    world.twin.advance(6 * 3_600_000);
    assert_eq!(acme(&world, "d", &event(1, "t1")), 200);
    assert_eq!(world.keys().len(), 3);
    assert_eq!(world.twin.queue_len(), 0, "the retry does no work");
}

/// Without an id nothing is worked: each is kept as a dead row with its reason, and the third,
/// whose bytes are there already, is counted. None is lost in silence.
#[test]
fn b12_events_without_an_id_are_kept_and_counted_never_merged_into_work() {
    let world = with_id("\"/id\"");
    for status in ["on", "off", "on"] {
        assert_eq!(acme(&world, "d", &json!({"status": status})), 200);
        world.twin.advance(600_000);
    }
    assert_eq!(world.keys().len(), 2);
    assert!(world.twin.rows().iter().all(|row| row.life.status == Status::Dead));
    let counted = [world.twin.metric("Unusable"), world.twin.metric("DuplicateOfDead")];
    assert_eq!(counted.map(|n| n.to_string()), ["2", "1"]);
}

/// The report would answer 4xx. Each is authentic, so it is kept under its own hash and answered
/// 2xx, where its reason is seen.
#[test]
fn b13_a_missing_id_is_never_an_empty_key() {
    let world = with_id("\"/id\"");
    let ids = [json!(null), json!(""), json!({}), json!(0)];
    let bodies = ids
        .map(|id| json!({"id": id}))
        .into_iter()
        .chain(["a", "b"].map(|name| json!({"type": name})));
    for body in bodies {
        assert_eq!(acme(&world, "d", &body), 200);
    }
    let keys = world.keys();
    assert_eq!(keys.len(), 6, "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("acme#sha256:")), "{keys:?}");
    assert!(world.twin.rows().iter().all(|row| row.life.status == Status::Dead));
}

/// Test and live mode have a source each, as they have a secret each.
#[test]
fn b14_equal_ids_of_different_senders_are_different_events() {
    let sources = r#"
        [sources.live]
        preset = "stripe"
        secret = "stripe"
        live = true
        [sources.test]
        preset = "stripe"
        secret = "stripe"
        live = false
        [sources.github]
        preset = "github"
        secret = "github"
        [sources.shopify]
        preset = "shopify"
        secret = "shopify"
    "#;
    let world = WorldBuilder::new(sources)
        .keys("stripe", &["whsec_endpoint_A"])
        .keys("github", &["gh-secret-01"])
        .keys("shopify", &["shop-secret-01"])
        .build();
    assert_eq!(github(&world, "100", b"{}"), 200);
    for shop in ["shop-one.example", "shop-two.example"] {
        let headers = [
            ("x-shopify-shop-domain", shop),
            ("x-shopify-topic", "t"),
            ("x-shopify-event-id", "100"),
        ];
        assert_eq!(world.deliver("shopify", &headers, b"{}").status, 200);
    }
    for (source, live) in [("test", false), ("live", true)] {
        let event = json!({"id": "evt_1", "type": "x", "created": 1, "livemode": live, "data": {}});
        assert_eq!(world.deliver(source, &[], event.to_string().as_bytes()).status, 200);
    }
    assert_eq!(world.keys().len(), 5, "{:?}", world.keys());
    world.work();
    assert!(
        world
            .twin
            .rows()
            .iter()
            .all(|row| row.life.status == Status::Settled && row.life.attempts == 1)
    );
}

#[test]
fn b16_forty_six_copies_over_a_day_are_one_row_and_one_effect() {
    let world = shop().at(at(1_700_000_000)).build();
    for copy in 0_u64..46 {
        assert_eq!(thing(&world, "b16", "t1", 1), 200);
        // Gaps from seconds to an hour and a half; every fifth copy finds its consumer restarted.
        world.twin.advance(1_000 + copy * copy * 2_500);
        if copy % 5 != 0 {
            world.work();
        }
    }
    world.work();
    assert_eq!(world.keys(), ["things#b16"]);
    assert_eq!(world.entity("things#thing#t1").revision, 1);
}

#[test]
fn b18_a_retry_with_another_body_and_the_old_signature_is_refused_and_overwrites_nothing() {
    let world = world();
    let first = br#"{"total":1}"#;
    let headers = [
        ("x-github-event".to_owned(), "push".to_owned()),
        ("x-github-delivery".to_owned(), "b18".to_owned()),
    ];
    let call = world.signer.call_at("github", &headers, first.to_vec(), world.now().0);
    let headers: Vec<(String, String)> = call
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), String::from_utf8(value.clone()).unwrap()))
        .collect();
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(world.post("github", &headers, first).status, 200);
    assert_eq!(world.post("github", &headers, br#"{"total":2}"#).status, 401);
    assert!((world.twin.metric("Rejected") - 1.0).abs() < f64::EPSILON);
    assert_eq!(world.body("github#b18"), first);
}
