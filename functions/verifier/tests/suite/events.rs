//! What a verified delivery contains: ids, types, modes, batches and the identity of resends.

use verifier::UnusableReason;

use crate::support::{Delivery, overridden, preset};

fn stripe(body: &str) -> Delivery {
    Delivery::post(body)
}

#[test]
fn a_stripe_event_is_read_whole() {
    let delivery = stripe(
        r#"{"id":"evt_1","type":"invoice.paid","created":1700000000,"livemode":false,"data":{"object":{"id":"in_1"}}}"#,
    );
    let event = delivery.event(&preset("stripe"));
    assert_eq!(event.id, "evt_1");
    assert_eq!(event.event_type, "invoice.paid");
    assert_eq!(event.live, Some(false));
    assert_eq!(event.occurred_at_ms, Some(1_700_000_000_000));
    assert_eq!(event.body.as_ref(), delivery.body.as_slice());
    assert!(event.identity.is_some());
}

#[test]
fn a_missing_empty_or_unreadable_id_is_no_event_id() {
    let preset = preset("stripe");
    for body in [
        r#"{"type":"a"}"#,
        r#"{"id":null}"#,
        r#"{"id":""}"#,
        r#"{"id":"   "}"#,
        r#"{"id":{}}"#,
        r#"{"id":[]}"#,
        r#"{"id":0}"#,
        r#"{"id":true}"#,
        r#"{"id":"null"}"#,
        r#"{"id":"undefined"}"#,
        r#"{"id":"a\u0000b"}"#,
        r#"{"id":"a\nb"}"#,
        r#"{"id":"\ud800"}"#,
        r#""text""#,
        "[]",
        "7",
        "true",
        "null",
    ] {
        assert_eq!(stripe(body).unusable(&preset), "no_event_id", "{body}");
    }
}

#[test]
fn ids_are_bytes_and_numbers_keep_their_digits() {
    let preset = preset("stripe");
    for (body, id) in [
        (r#"{"id":" evt_1 "}"#, " evt_1 "),
        (r#"{"id":"EVT_1"}"#, "EVT_1"),
        (r#"{"id":12345678901234567890123}"#, "12345678901234567890123"),
        (r#"{"id":1.0}"#, "1.0"),
        (r#"{"id":"\u00e9"}"#, "é"),
    ] {
        assert_eq!(stripe(body).event(&preset).id, id);
    }
}

#[test]
fn a_body_that_is_not_usable_says_why() {
    let preset = preset("stripe");
    for (body, cause) in [
        (&b""[..], "not_json"),
        (b"{", "not_json"),
        (b"{} {}", "not_json"),
        (b"{\"id\":\"a\"", "not_json"),
        (b"\xff\xfe", "not_utf8"),
        (b"{\"id\":\"a\xff\"}", "not_utf8"),
    ] {
        assert_eq!(Delivery::post(body).unusable(&preset), cause);
    }
}

#[test]
fn an_unusable_delivery_keeps_the_type_it_still_shows() {
    let unusable = stripe(r#"{"type":"invoice.paid"}"#).events(&preset("stripe")).unwrap_err();
    assert_eq!(unusable.event_type.as_deref(), Some("invoice.paid"));
    let unusable = Delivery::post("")
        .header("x-github-event", "push")
        .header("x-github-delivery", "g-1")
        .events(&preset("github"))
        .unwrap_err();
    assert_eq!(unusable.event_type.as_deref(), Some("push"));
}

#[test]
fn a_key_that_leads_to_the_id_must_not_repeat() {
    let preset = preset("stripe");
    for body in [
        r#"{"id":"a","id":"b"}"#,
        r#"{"id":"a","\u0069d":"b"}"#,
        r#"{"id":"a","type":"x","type":"y"}"#,
        r#"{"id":"a","data":{},"data":{}}"#,
    ] {
        assert_eq!(stripe(body).unusable(&preset), "duplicate_key", "{body}");
    }
    let elsewhere = r#"{"id":"a","metadata":{"x":1,"x":2},"note":1,"note":2}"#;
    assert_eq!(stripe(elsewhere).event(&preset).id, "a");
}

#[test]
fn nesting_deeper_than_any_stack_is_only_skipped() {
    let deep = format!(r#"{{"id":"a","x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(stripe(&deep).event(&preset("stripe")).id, "a");
}

#[test]
fn a_resend_has_the_identity_of_the_first_send_although_its_bytes_differ() {
    let preset = preset("stripe");
    let body = |pending: u32, amount: u32| {
        format!(
            r#"{{"id":"evt_1","type":"t","created":1700000000,"livemode":true,"pending_webhooks":{pending},"data":{{"object":{{"id":"x","amount":{amount}}}}}}}"#
        )
    };
    let identity = |body: &str| stripe(body).event(&preset).identity.unwrap();
    let first = identity(&body(2, 100));
    assert_eq!(first, identity(&body(1, 100)), "a retry");
    assert_ne!(first, identity(&body(2, 999)), "another payload");
}

#[test]
fn one_id_in_two_modes_or_accounts_is_a_conflict_and_never_a_duplicate() {
    let preset = preset("stripe");
    let identity = |body: &str| stripe(body).event(&preset).identity.unwrap();
    let test = identity(r#"{"id":"evt_1","livemode":false}"#);
    let live = identity(r#"{"id":"evt_1","livemode":true}"#);
    let other = identity(r#"{"id":"evt_1","livemode":true,"account":"acct_2"}"#);
    assert_ne!(test, live);
    assert_ne!(live, other);
}

#[test]
fn absent_and_empty_values_do_not_share_an_identity() {
    let preset = overridden("stripe", "[event]\nidentity = [\"/a\", \"/b\"]");
    let identity = |body: &str| stripe(body).event(&preset).identity.unwrap();
    let all = [
        r#"{"id":"e"}"#,
        r#"{"id":"e","a":null}"#,
        r#"{"id":"e","a":""}"#,
        r#"{"id":"e","b":""}"#,
        r#"{"id":"e","a":"x"}"#,
        r#"{"id":"e","b":"x"}"#,
        r#"{"id":"e","a":12,"b":3}"#,
        r#"{"id":"e","a":1,"b":23}"#,
    ]
    .map(identity);
    for (index, one) in all.iter().enumerate() {
        assert!(!all[index + 1..].contains(one), "case {index} is unique");
    }
}

#[test]
fn github_names_its_type_by_event_and_action() {
    let preset = preset("github");
    let delivery = |event: &str, body: &str| {
        Delivery::post(body).header("x-github-event", event).header("x-github-delivery", "guid-1")
    };
    let opened = delivery("issues", r#"{"action":"opened"}"#);
    assert_eq!(opened.event(&preset).event_type, "issues.opened");
    assert_eq!(opened.event(&preset).id, "guid-1");
    let push = delivery("push", r#"{"ref":"refs/heads/main"}"#);
    assert_eq!(push.event(&preset).event_type, "push");
}

#[test]
fn an_id_header_that_repeats_or_was_joined_names_nothing() {
    let preset = preset("github");
    let twice =
        Delivery::post("{}").header("x-github-delivery", "a").header("x-github-delivery", "b");
    assert_eq!(twice.unusable(&preset), "no_event_id");
    let joined = Delivery::post("{}").header("x-github-delivery", "a,b");
    assert_eq!(joined.unusable(&preset), "no_event_id");
}

#[test]
fn pieces_of_a_composed_id_cannot_run_into_each_other() {
    let preset = preset("shopify");
    let id = |shop: &str, topic: &str, event: &str| {
        Delivery::post("{}")
            .header("x-shopify-shop-domain", shop)
            .header("x-shopify-topic", topic)
            .header("x-shopify-event-id", event)
            .event(&preset)
            .id
    };
    assert_eq!(id("a.example", "orders/create", "E1"), "a.example:orders/create:E1:orders/create");
    assert_ne!(id("a", "b:c", "d"), id("a:b", "c", "d"));
    assert_ne!(id("a", "b%3Ac", "d"), id("a", "b:c", "d"));
}

#[test]
fn an_adyen_batch_becomes_an_event_per_item_with_its_own_slice() {
    let preset = preset("adyen");
    let item = |reference: &str| {
        format!(
            r#"{{ "NotificationRequestItem":{{"pspReference":"{reference}","eventCode":"CAPTURE","success":"true","eventDate":"2024-05-01T10:00:00+02:00"}}}}"#
        )
    };
    let body = format!(r#"{{"live":"true","notificationItems":[{}, {}]}}"#, item("A"), item("B"));
    let delivery = Delivery::post(&body);
    let events = delivery.events(&preset).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].id, "A:CAPTURE:true");
    assert_eq!(events[1].id, "B:CAPTURE:true");
    assert_eq!(events[0].event_type, "CAPTURE");
    assert_eq!(events[0].live, Some(true));
    assert_eq!(events[0].occurred_at_ms, Some(1_714_550_400_000));
    assert_eq!(events[0].body.as_ref(), item("A").as_bytes());
}

#[test]
fn a_bad_element_of_a_batch_does_not_hold_up_its_neighbours() {
    let body = r#"{"events":[{"id":"EV1","resource_type":"payments","action":"paid"},{"action":"x"},7,{"id":"EV2","id":"EV3"}]}"#;
    let delivery = Delivery::post(body);
    let events = delivery.events(&preset("gocardless")).unwrap();
    assert_eq!(events.len(), 4);
    assert_eq!(events[0].id, "EV1");
    assert_eq!(events[0].event_type, "payments.paid");
    assert_eq!(events[0].unusable, None);
    assert!(events[1].id.starts_with("sha256:"));
    assert!(matches!(events[1].unusable, Some(UnusableReason::NoEventId { .. })));
    assert!(matches!(events[2].unusable, Some(UnusableReason::NoEventId { .. })));
    assert!(matches!(events[3].unusable, Some(UnusableReason::DuplicateKey { .. })));
}

#[test]
fn batches_are_bounded_empty_ones_are_fine_and_other_shapes_are_not() {
    let preset = preset("gocardless");
    let many = |count: usize| {
        let items: Vec<String> = (0..count).map(|n| format!(r#"{{"id":"E{n}"}}"#)).collect();
        Delivery::post(format!(r#"{{"events":[{}]}}"#, items.join(",")))
    };
    assert_eq!(many(0).events(&preset).unwrap().len(), 0);
    assert_eq!(many(500).events(&preset).unwrap().len(), 500);
    assert_eq!(
        many(501).events(&preset).unwrap_err().reason,
        UnusableReason::TooManyEvents { found: 501, max: 500 }
    );
    for body in ["{}", r#"{"events":{}}"#, r#"{"events":null}"#] {
        assert_eq!(Delivery::post(body).unusable(&preset), "no_batch", "{body}");
    }
}

#[test]
fn an_event_without_an_id_is_named_by_its_declared_fields() {
    let preset = preset("adyen-platform");
    let id = |body: &str| Delivery::post(body).event(&preset).id;
    let one = id(r#"{"type":"t","timestamp":"2024-01-01T00:00:00Z","data":{"id":"x"}}"#);
    let spaced = id(r#"{ "data":{"id":"x"}, "timestamp":"2024-01-01T00:00:00Z", "type":"t" }"#);
    let later = id(r#"{"type":"t","timestamp":"2024-01-01T00:00:01Z","data":{"id":"x"}}"#);
    assert!(one.starts_with("sha256:"));
    assert_eq!(one, spaced, "the same fields, written in another order");
    assert_ne!(one, later);
    assert_eq!(Delivery::post("{}").unusable(&preset), "no_event_id");
}

#[test]
fn a_braintree_payload_is_read_as_json() {
    let preset = preset("braintree");
    let key = preset.key("k", "public:private").unwrap();
    let xml = r#"<notification><timestamp type="datetime">2024-05-01T10:00:00Z</timestamp><kind>subscription_canceled</kind><subject><subscription><id>sub_1</id><price nil="true"/><add_ons type="array"><add_on><id>a</id></add_on></add_ons></subscription></subject></notification>"#;
    let body = preset.sign_body(xml.as_bytes(), &key).unwrap();
    let delivery = Delivery::post(body);
    let event = delivery.event(&preset);
    assert_eq!(event.event_type, "subscription_canceled");
    assert_eq!(event.occurred_at_ms, Some(1_714_557_600_000));
    let document: serde_json::Value =
        serde_json::from_str(&preset.document(&delivery.body).unwrap()).unwrap();
    let subscription = &document["notification"]["subject"]["subscription"];
    assert_eq!(subscription["id"], "sub_1");
    assert!(subscription["price"].is_null());
    assert_eq!(subscription["add_ons"][0]["id"], "a");
}

#[test]
fn xml_that_tries_to_hurt_is_refused() {
    let preset = preset("braintree");
    let key = preset.key("k", "public:private").unwrap();
    let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>"#;
    let deep = format!("{}{}", "<a>".repeat(2_000), "</a>".repeat(2_000));
    for xml in [bomb, deep.as_str(), "<a>", ""] {
        let body = preset.sign_body(xml.as_bytes(), &key).unwrap();
        assert_eq!(Delivery::post(body).unusable(&preset), "not_form", "{xml:.40}");
    }
}

#[test]
fn a_mollie_payment_changes_more_than_once() {
    let preset = preset("mollie-classic");
    let id =
        |trace: &str| Delivery::post("id=tr_1").header("x-amzn-trace-id", trace).event(&preset).id;
    assert_ne!(id("Root=1-a"), id("Root=1-b"));
    assert_eq!(Delivery::post("id=tr_1").unusable(&preset), "no_event_id");
}

#[test]
fn a_twilio_status_is_an_event_of_its_own() {
    let preset = preset("twilio");
    let delivery = Delivery::post("MessageSid=SM1&MessageStatus=delivered&SmsSid=SM1");
    let event = delivery.event(&preset);
    assert_eq!(event.id, "SM1:delivered");
    assert_eq!(event.event_type, "delivered");
    let call = Delivery::post("CallSid=CA1&CallStatus=completed");
    assert_eq!(call.event(&preset).id, "CA1:completed");
}

#[test]
fn slack_speaks_json_forms_and_json_in_forms() {
    let preset = preset("slack");
    let event =
        Delivery::post(r#"{"event_id":"Ev1","type":"event_callback","event":{"type":"message"}}"#);
    assert_eq!(event.event(&preset).id, "Ev1");
    assert_eq!(event.event(&preset).event_type, "message");
    let command = Delivery::post("command=%2Fdeploy&trigger_id=13.5.x&text=a+b");
    assert_eq!(command.event(&preset).id, "13.5.x");
    assert_eq!(command.event(&preset).event_type, "/deploy");
    let action = Delivery::post(
        "payload=%7B%22type%22%3A%22block_actions%22%2C%22trigger_id%22%3A%22t1%22%7D",
    );
    assert_eq!(action.event(&preset).id, "t1");
    assert_eq!(action.event(&preset).event_type, "block_actions");
    assert_eq!(action.event(&preset).body.as_ref(), action.body.as_slice());
}

#[test]
fn a_source_can_require_a_field_of_every_event() {
    let connect = overridden("stripe", "[event]\nrequire = \"/account\"");
    let platform = stripe(r#"{"id":"evt_1","type":"t"}"#);
    assert_eq!(platform.unusable(&connect), "required_missing");
    let account = stripe(r#"{"id":"evt_1","type":"t","account":"acct_1"}"#);
    assert_eq!(account.event(&connect).id, "evt_1");
}

#[test]
fn an_event_outside_a_batch_is_its_own_envelope() {
    let preset = overridden(
        "stripe",
        "[event]\ntype = \"/kind\"\nlive = { at = \"envelope:/mode\", is = \"live\" }",
    );
    let delivery = stripe(r#"{"mode":"live","id":"evt_1","kind":"a"}"#);
    let event = delivery.event(&preset);
    assert_eq!((event.id.as_str(), event.event_type.as_str()), ("evt_1", "a"));
    assert_eq!(event.live, Some(true));
}

#[test]
fn kilobytes_are_nobodys_id() {
    let stripe_preset = preset("stripe");
    let body = |bytes| format!(r#"{{"id":"{}"}}"#, "x".repeat(bytes));
    let long = Delivery::post(body(16_000));
    assert_eq!(long.event(&stripe_preset).id.len(), 16_000);
    assert_eq!(Delivery::post(body(17_000)).unusable(&stripe_preset), "no_event_id");
    let form = format!("MessageSid={}&MessageStatus=sent", "%00".repeat(100_000));
    assert_eq!(Delivery::post(form).unusable(&preset("twilio")), "no_event_id");
}

#[test]
fn what_else_a_form_holds_does_not_change_its_event() {
    let twilio = preset("twilio");
    let form = "MessageSid=SM1&MessageStatus=sent";
    let padded = Delivery::post(format!("a=%00&{form}&b=1&b=2&%ff=%ff"));
    assert_eq!(padded.event(&twilio).id, Delivery::post(form).event(&twilio).id);
    let document: serde_json::Value =
        serde_json::from_str(&twilio.document(&padded.body).unwrap()).unwrap();
    let expected = serde_json::json!({"a": "\0", "b": ["1", "2"], "\u{fffd}": "\u{fffd}",
        "MessageSid": "SM1", "MessageStatus": "sent"});
    assert_eq!(document, expected);
}

#[test]
fn a_braintree_document_of_too_many_parts_is_unusable() {
    let preset = preset("braintree");
    let key = preset.key("k", "public:private").unwrap();
    for (elements, verdict) in [(20_000, "usable"), (60_000, "not_form")] {
        let xml = format!("<n><timestamp>t</timestamp>{}</n>", "<a>1</a>".repeat(elements));
        let body = preset.sign_body(xml.as_bytes(), &key).unwrap().into_owned();
        let found = Delivery::post(body)
            .unusable(&overridden("braintree", "[event]\nid = \"/n/timestamp\""));
        assert_eq!(found, verdict);
    }
}
