//! Failures that other receivers had with ids, retries, handshakes, answers and rotation, as tests
//! of this one.

use verifier::preset_names;

use crate::support::{Delivery, NOW_MS, overridden, preset};

#[test]
fn two_endpoints_at_one_url_deliver_one_event() {
    let stripe = preset("stripe");
    let keys = ["a", "b"].map(|kid| {
        let text = format!("whsec_endpoint_{}", kid.to_uppercase());
        stripe.key(kid, &text).unwrap()
    });
    let body = r#"{"id":"evt_b02","object":"event","type":"invoice.paid","created":1700000000,"livemode":false,"data":{"object":{"id":"in_1"}}}"#;
    let deliveries = [
        "t=1700000000,v1=583696d85c844f21c046718d2375cdc02fac5cec3c4e828e966f51c1a25455b9",
        "t=1700000000,v1=1b0af23598204ed2e703489e9392132562659029d42f3731bc48d198382939ac",
    ]
    .map(|header| Delivery::post(body).header("stripe-signature", header));
    assert_eq!(deliveries[0].verify(&stripe, &keys).unwrap().kid, "a");
    assert_eq!(deliveries[1].verify(&stripe, &keys).unwrap().kid, "b");
    let (one, two) = (deliveries[0].event(&stripe), deliveries[1].event(&stripe));
    assert_eq!(one.id, two.id);
    assert_eq!(one.identity, two.identity);
}

#[test]
fn every_live_secret_is_tried() {
    let stripe = preset("stripe");
    let keys = ["A", "B"].map(|kid| stripe.key(kid, &format!("whsec_endpoint_{kid}")).unwrap());
    let body = r#"{"id":"evt_rot","type":"x"}"#;
    for (digest, cause) in [
        ("643b07d230f423bf0d2b07d84efa546540e3696630e2d3b00b88c1df9039ba53", "verified"),
        ("2858213adf2db04b2ccc8685b6bebea43ea2cfff40ffc47706a230fa76218779", "verified"),
        (
            "75dc2866169285f6de59fbdc45e58bba6d815a9c874dca83ca68a6b73718e9f2",
            "no_signature_matched",
        ),
    ] {
        let header = format!("t=1700000000,v1={digest}");
        let delivery = Delivery::post(body).header("stripe-signature", &header);
        assert_eq!(delivery.cause(&stripe, &keys), cause);
    }
}

#[test]
fn a_connect_endpoint_does_not_speak_for_the_platform() {
    let connect = overridden("stripe", "[event]\nrequire = [\"/account\"]");
    let body = r#"{"id":"evt_b03","object":"event","type":"account.updated","created":1700000000,"livemode":false,"data":{"object":{"id":"acct_X"}},"account":"acct_X"}"#;
    let platform_view = Delivery::post(body);
    assert_eq!(platform_view.event(&connect).id, "evt_b03");
    assert_eq!(
        platform_view.event(&connect).identity,
        platform_view.event(&preset("stripe")).identity
    );
    let without = Delivery::post(r#"{"id":"evt_b03b","type":"account.updated"}"#);
    assert_eq!(without.unusable(&connect), "required_missing");
}

fn github(guid: &str, body: &str) -> Delivery {
    Delivery::post(body).header("x-github-event", "push").header("x-github-delivery", guid)
}

#[test]
fn a_github_redelivery_is_the_same_event() {
    let preset = preset("github");
    let body = r#"{"action":"opened","number":1}"#;
    let (first, again) = (github("guid-b04", body), github("guid-b04", body));
    assert_eq!(first.event(&preset).id, again.event(&preset).id);
    assert_eq!(first.event(&preset).identity, again.event(&preset).identity);
}

/// Each app is a source of its own, with its own secret; where two share one, the second payload
/// is a conflict, which the ledger keeps beside the first.
#[test]
fn one_github_guid_with_two_payloads_is_a_conflict_within_a_source() {
    let preset = preset("github");
    let (one, two) = (
        github("g-b05", r#"{"installation":{"id":1}}"#),
        github("g-b05", r#"{"installation":{"id":2}}"#),
    );
    assert_eq!(one.event(&preset).id, two.event(&preset).id);
    assert_ne!(one.event(&preset).identity, two.event(&preset).identity);
}

#[test]
fn an_id_depends_on_the_request_and_on_nothing_else() {
    let preset = preset("github");
    let delivery = github("g-b06", "{}");
    let ids: Vec<String> = (0..3).map(|_| delivery.event(&preset).id).collect();
    assert_eq!(ids, ["g-b06", "g-b06", "g-b06"]);
}

#[test]
fn the_event_id_counts_and_the_delivery_id_does_not() {
    let paddle = preset("paddle");
    let delivery = |notification: &str| {
        Delivery::post(format!(r#"{{"event_id":"E","notification_id":"{notification}"}}"#))
    };
    assert_eq!(delivery("d1").event(&paddle).id, delivery("d2").event(&paddle).id);
    assert_eq!(delivery("d1").event(&paddle).identity, delivery("d2").event(&paddle).identity);
}

#[test]
fn a_shopify_event_is_its_shop_its_topic_and_its_id() {
    let preset = preset("shopify");
    let id = |shop: &str, topic: &str, event: Option<&str>, webhook: &str| {
        let mut delivery = Delivery::post("{}")
            .header("x-shopify-shop-domain", shop)
            .header("x-shopify-topic", topic)
            .header("x-shopify-webhook-id", webhook);
        if let Some(event) = event {
            delivery = delivery.header("x-shopify-event-id", event);
        }
        delivery.event(&preset).id
    };
    let first = id("one.example", "orders/create", Some("E1"), "W1");
    assert_eq!(first, id("one.example", "orders/create", Some("E1"), "W1"), "a retry");
    assert_eq!(first, id("one.example", "orders/create", Some("E1"), "W9"), "a retry, renumbered");
    assert_ne!(first, id("one.example", "orders/paid", Some("E1"), "W2"), "another topic");
    assert_ne!(first, id("two.example", "orders/create", Some("E1"), "W3"), "another shop");
    let fallback = id("one.example", "orders/create", None, "W1");
    assert_eq!(fallback, "one.example:orders/create:W1:orders/create");
}

#[test]
fn a_shopify_event_is_one_for_each_thing_it_touched() {
    let preset = preset("shopify");
    let id = |body: &str| {
        let delivery = Delivery::post(body)
            .header("x-shopify-shop-domain", "one.example")
            .header("x-shopify-topic", "products/update")
            .header("x-shopify-event-id", "E1");
        delivery.event(&preset).id
    };
    let [first, second] = [7, 8].map(|n| id(&format!(r#"{{"id":{n},"title":"t"}}"#)));
    assert_eq!([first.as_str(), second.as_str()].map(|id| id.ends_with(":7")), [true, false]);
    assert_eq!(
        first,
        id(r#"{"title":"another content","id":7}"#),
        "the second of them is a conflict"
    );
}

#[test]
fn a_shopify_events_type_says_what_was_done_and_its_delivery_id_is_its_id() {
    let preset = preset("shopify-events");
    let event = Delivery::post(r#"{"topic":"Product","action":"delete"}"#)
        .header("shopify-shop-domain", "one.example")
        .header("shopify-topic", "Product")
        .header("shopify-action", "delete")
        .header("shopify-webhook-id", "W1");
    let event = event.event(&preset);
    assert_eq!(
        (event.id.as_str(), event.event_type.as_str()),
        ("one.example:Product:W1", "Product.delete")
    );
}

#[test]
fn a_subscriptions_id_is_not_an_events_id() {
    let linear = overridden(
        "github",
        "[event]\nid = { hash = [\"/webhookId\", \"/data/id\", \"/createdAt\"] }\ntype = \"/type\"",
    );
    let id = |data: u8, at: &str| {
        let body = format!(r#"{{"webhookId":"W","data":{{"id":{data}}},"createdAt":"{at}"}}"#);
        Delivery::post(body).event(&linear).id
    };
    let first = id(1, "t1");
    assert_ne!(first, id(2, "t1"));
    assert_ne!(first, id(1, "t2"));
    assert_eq!(first, id(1, "t1"));
}

#[test]
fn a_body_without_an_id_is_never_keyed_by_its_bytes_unasked() {
    let preset = preset("stripe");
    for body in [r#"{"status":"on"}"#, r#"{"status":"off"}"#, r#"{"status":"on"}"#] {
        assert_eq!(Delivery::post(body).unusable(&preset), "no_event_id");
    }
}

#[test]
fn events_without_ids_share_no_key() {
    let preset = preset("stripe");
    for body in [
        r#"{"type":"a"}"#,
        r#"{"type":"b"}"#,
        r#"{"id":null}"#,
        r#"{"id":""}"#,
        r#"{"id":{}}"#,
        r#"{"id":0}"#,
    ] {
        assert_eq!(Delivery::post(body).unusable(&preset), "no_event_id", "{body}");
    }
}

#[test]
fn a_slack_handshake_is_verified_over_all_of_its_bytes() {
    let slack = preset("slack");
    let keys = [slack.key("k", "slack-secret-01").unwrap()];
    let body = r#"{"token":"t","challenge":"challenge-0123456789","type":"url_verification"}"#;
    let delivery = Delivery::post(body).header("x-slack-request-timestamp", "1700000000").header(
        "x-slack-signature",
        "v0=7037ca2d11a88b2c2a85f891d0b9f5005edde59d2c3ee2d9c3378a6ea27a9ca2",
    );
    let answer = slack.handshake(&delivery.request(), &keys, NOW_MS).unwrap();
    assert_eq!(answer.body, b"challenge-0123456789");
    let mut altered = delivery.clone();
    altered.body.push(b' ');
    assert_eq!(slack.handshake(&altered.request(), &keys, NOW_MS), None);
    assert_eq!(altered.cause(&slack, &keys), "no_signature_matched");

    let spaced = r#" {"type" : "url_verification", "x": [1], "challenge":"c-1", "token":"t"} "#;
    let signed = Delivery::post(spaced).signed(&slack, &keys[0], NOW_MS);
    assert_eq!(slack.handshake(&signed.request(), &keys, NOW_MS).unwrap().body, b"c-1");
}

#[test]
fn each_provider_gets_the_answer_it_wants_and_never_410() {
    let adyen = preset("adyen");
    assert_eq!(adyen.answer().body, b"[accepted]");
    let twilio = preset("twilio");
    assert_eq!(twilio.answer().content_type.as_deref(), Some("text/xml"));
    assert_eq!(twilio.answer().body, b"<Response></Response>");
    for name in preset_names() {
        let status = preset(name).answer().status;
        assert!((200..=299).contains(&status), "{name} answers {status}");
    }
}

#[test]
fn a_github_ping_is_an_event_like_any_other() {
    let github = preset("github");
    let keys = [github.key("k", "gh-secret-01").unwrap()];
    let ping = Delivery::post(r#"{"zen":"zen text","hook_id":1}"#)
        .header("x-github-event", "ping")
        .header("x-github-delivery", "g09")
        .header(
            "x-hub-signature-256",
            "sha256=2961283f1ec449eb256764ad24ff1cf073133916300c8ed2745b3cbf0a999042",
        );
    assert_eq!(ping.cause(&github, &keys), "verified");
    assert_eq!(ping.event(&github).event_type, "ping");
}

#[test]
fn shopify_privacy_topics_are_refused_like_everything_badly_signed() {
    let shopify = preset("shopify");
    let keys = [shopify.key("k", "shop-secret-01").unwrap()];
    let redact = Delivery::post("{}")
        .header("x-shopify-topic", "shop/redact")
        .header("x-shopify-shop-domain", "one.example")
        .header("x-shopify-event-id", "E1");
    assert_eq!(redact.cause(&shopify, &keys), "header_missing");
    let bad = redact
        .clone()
        .header("x-shopify-hmac-sha256", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert_eq!(bad.cause(&shopify, &keys), "no_signature_matched");
    let good = redact.signed(&shopify, &keys[0], NOW_MS);
    assert_eq!(good.cause(&shopify, &keys), "verified");
}

#[test]
fn unknown_event_types_and_accounts_are_usable_events() {
    let stripe = preset("stripe");
    for (body, event_type) in [
        (
            r#"{"id":"evt_h01","type":"billing_portal.session.created"}"#,
            "billing_portal.session.created",
        ),
        (r#"{"id":"evt_h01b","type":"brand.new.type.v9"}"#, "brand.new.type.v9"),
        (
            r#"{"id":"evt_h02","type":"account.updated","account":"acct_unknown"}"#,
            "account.updated",
        ),
    ] {
        assert_eq!(Delivery::post(body).event(&stripe).event_type, event_type);
    }
}

#[test]
fn only_github_is_known_not_to_retry() {
    for name in preset_names() {
        assert_eq!(preset(name).retries(), name != "github", "{name}");
    }
}

#[test]
fn an_event_says_which_mode_it_is_of() {
    let stripe = preset("stripe");
    let live = |body: &str| Delivery::post(body).event(&stripe).live;
    assert_eq!(live(r#"{"id":"e","livemode":true}"#), Some(true));
    assert_eq!(live(r#"{"id":"e","livemode":false}"#), Some(false));
    assert_eq!(live(r#"{"id":"e","livemode":null}"#), None);
    assert_eq!(live(r#"{"id":"e"}"#), None);
}

#[test]
fn a_key_stored_after_a_rotation_verifies_the_next_request() {
    let stripe = preset("stripe");
    let [old, new] = ["old", "new"].map(|kid| stripe.key(kid, &format!("whsec_{kid}")).unwrap());
    let delivery = Delivery::post("{}").signed(&stripe, &new, NOW_MS);
    let stale = delivery.verify(&stripe, std::slice::from_ref(&old)).unwrap_err();
    assert!(stale.may_heal_with_newer_keys());
    assert_eq!(delivery.verify(&stripe, &[new, old]).unwrap().kid, "new");
}
