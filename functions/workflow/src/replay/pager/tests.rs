//! Every provider's list in the shape of its documentation: the requests, the pages, and that what is
//! listed is the event that a delivery would bring.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use serde_json::{Value, json};
use verifier::{Headers, History, Preset, Request, preset_names, preset_table};

/// 2026-11-30 12:00:00 UTC, and an hour of it.
const NOON: Millis = Millis(1_796_040_000_000);
const WINDOW: Window = Window::new(Millis(NOON.0 + 123), Millis(NOON.0 + 3_600_000));

fn preset(name: &str) -> Preset {
    Preset::from_table(&preset_table(name).unwrap()).unwrap()
}

fn pager(name: &str) -> Pager {
    let History::Listed(list) = preset(name).history().clone() else {
        panic!("{name} has no list")
    };
    let own = "https://api.example/deliveries".to_owned();
    Pager::new((*list).clone(), list.address.clone().unwrap_or(own), WINDOW)
}

fn answer(body: &Value) -> HttpAnswer {
    HttpAnswer { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }
}

/// The ids that the preset finds in what would be delivered.
fn delivered(name: &str, content: &Content) -> Vec<(String, String)> {
    let headers: Headers =
        content.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let request = Request {
        method: "POST",
        path: "/",
        query: "",
        public_url: None,
        headers: &headers,
        body: &content.body,
    };
    let events = preset(name).events(&request).unwrap();
    events.into_iter().map(|event| (event.id, event.event_type)).collect()
}

/// An answer of each provider with one event in the window, and what says that there is more.
fn listed(name: &str) -> Value {
    match name {
        "stripe" => json!({"object": "list", "has_more": true, "data": [
            {"id": "e1", "type": "invoice.paid", "created": 1_796_040_007, "data": {"object": {}}}]}),
        "github" => json!([{"id": 12_345_678_901_234_567_u64, "guid": "e1", "event": "issues",
            "action": "opened", "delivered_at": "2026-11-30T12:00:07Z", "status_code": 500}]),
        "paddle" => json!({"data": [{"id": "ntf_1", "type": "subscription.updated",
            "occurred_at": "2026-11-30T12:00:07.123456Z", "payload": {"event_id": "e1",
            "event_type": "subscription.updated", "occurred_at": "2026-11-30T12:00:07.123456Z",
            "data": {"id": "sub_1"}}}], "meta": {"pagination": {"has_more": true,
            "next": "https://api.paddle.com/notifications?after=ntf_1"}}}),
        "square" => json!({"cursor": "c2", "events": [{"event_id": "e1", "type": "payment.updated",
            "created_at": "2026-11-30T12:00:07.45", "data": {"id": "p"}}]}),
        "paypal" => {
            json!({"count": 1, "events": [{"id": "e1", "event_type": "PAYMENT.CAPTURE.COMPLETED",
            "create_time": "2026-11-30T12:00:07.000Z", "resource": {"id": "r"}}], "links": [
            {"href": "https://api-m.paypal.com/self", "rel": "self", "method": "GET"},
            {"href": "https://api-m.paypal.com/v1/notifications/webhooks-events?index_id=2", "rel": "next"}]})
        }
        "gocardless" => json!({"events": [{"id": "e1", "created_at": "2026-11-30T12:00:07.000Z",
            "resource_type": "payments", "action": "confirmed", "links": {"payment": "PM1"}}],
            "meta": {"cursors": {"before": null, "after": "EV1"}, "limit": 500}}),
        "chargebee" => json!({"next_offset": "[\"1\",\"2\"]", "list": [{"event": {"id": "e1",
            "occurred_at": 1_796_040_007, "event_type": "subscription_changed", "content": {}}}]}),
        other => panic!("no answer of {other} is known"),
    }
}

fn with_list() -> impl Iterator<Item = &'static str> {
    preset_names().filter(|name| matches!(preset(name).history(), History::Listed(_)))
}

#[test]
fn what_every_provider_lists_is_the_event_that_a_delivery_brings() {
    for name in with_list() {
        let pager = pager(name);
        let page = pager.read(&Cursor::First, &answer(&listed(name))).unwrap();
        let [event] = page.events.as_slice() else { panic!("{name}: {:?}", page.unlisted) };
        assert_eq!((event.id.as_str(), event.at.0 / 1_000), ("e1", 1_796_040_007), "{name}");
        let details = json!({"request": {"headers": {"X-GitHub-Event": "issues",
            "X-GitHub-Delivery": "e1", "X-Hub-Signature-256": "sha256=0", "Accept": "*/*"},
            "payload": {"action": "opened"}}});
        let details = event.detail.as_ref().map(|_| details.to_string().into_bytes());
        let content = pager.content(event, details.as_deref()).unwrap();
        assert!(content.headers.iter().all(|(name, _)| !name.contains("signature")), "{name}");
        let expected = ("e1".to_owned(), event.event_type.clone());
        assert_eq!(delivered(name, &content), [expected], "{name}");
    }
}

#[test]
fn every_provider_is_asked_as_it_documents_for_the_first_page_and_the_next() {
    let asked = |name: &str| {
        let (pager, mut answer) = (pager(name), answer(&listed(name)));
        let link = "<https://api.example/deliveries?cursor=v1_2>; rel=\"next\"";
        answer.headers.push(("link".to_owned(), link.to_owned()));
        let next = pager.read(&Cursor::First, &answer).unwrap().next.unwrap();
        [Cursor::First, next].map(|cursor| {
            let ask = pager.ask(&cursor);
            format!("{} {}", ask.url, String::from_utf8(ask.body).unwrap()).trim_end().to_owned()
        })
    };
    let stripe = "https://api.stripe.com/v1/events?\
        created%5Bgte%5D=1796040000&created%5Blte%5D=1796043600&limit=100";
    assert_eq!(asked("stripe"), [stripe.to_owned(), format!("{stripe}&starting_after=e1")]);
    let github = "https://api.example/deliveries";
    assert_eq!(
        asked("github"),
        [format!("{github}?per_page=100"), format!("{github}?cursor=v1_2")]
    );
    let [first, next] = asked("paddle");
    assert_eq!(
        first,
        "https://api.paddle.com/notifications?from=2026-11-30T12%3A00%3A00.000Z&\
         order_by=id%5BDESC%5D&per_page=200&to=2026-11-30T13%3A00%3A00.999Z"
    );
    assert_eq!(next, "https://api.paddle.com/notifications?after=ntf_1");
    let [first, next] = asked("square");
    assert!(first.starts_with("https://connect.squareup.com/v2/events {\"limit\":100,"), "{first}");
    assert!(first.contains("\"start_at\":\"2026-11-30T12:00:00.000Z\""), "{first}");
    assert!(next.contains("\"cursor\":\"c2\"") && next.contains("start_at"), "{next}");
    let [_, next] = asked("paypal");
    assert_eq!(next, "https://api-m.paypal.com/v1/notifications/webhooks-events?index_id=2");
    let [first, next] = asked("gocardless");
    assert_eq!(next, format!("{first}&after=EV1"));
    let [first, next] = asked("chargebee");
    assert!(first.contains("occurred_at%5Bbetween%5D=%5B1796040000%2C1796043600%5D"), "{first}");
    assert_eq!(next, format!("{first}&offset=%5B%221%22%2C%222%22%5D"));
}

#[test]
fn without_a_sign_of_more_a_page_is_the_last() {
    for (name, place, end) in [
        ("stripe", "/has_more", json!(false)),
        ("paddle", "/meta/pagination/has_more", json!(false)),
        ("square", "/cursor", json!("")),
        ("paypal", "/links", json!([])),
        ("gocardless", "/meta/cursors/after", Value::Null),
        ("chargebee", "/next_offset", Value::Null),
    ] {
        let mut body = listed(name);
        *body.pointer_mut(place).unwrap() = end;
        let page = pager(name).read(&Cursor::First, &answer(&body)).unwrap();
        assert_eq!((page.events.len(), page.next), (1, None), "{name}");
    }
    assert_eq!(
        pager("github").read(&Cursor::First, &answer(&listed("github"))).unwrap().next,
        None
    );
}

#[test]
fn bytes_are_those_of_the_list_to_the_last_digit() {
    let body = br#"{"has_more":false,"data":[{"id":"e1","type":"t","created":1796040007,
        "amount":10.50,"big":123456789012345678901234567890,"id_again":1}]}"#;
    let answer = HttpAnswer { status: 200, headers: Vec::new(), body: body.to_vec() };
    let pager = pager("stripe");
    let page = pager.read(&Cursor::First, &answer).unwrap();
    let content = pager.content(page.events.first().unwrap(), None).unwrap();
    let text = String::from_utf8(content.body).unwrap();
    assert!(
        text.contains(":10.50,") && text.contains(":123456789012345678901234567890,"),
        "{text}"
    );
    assert!(text.starts_with("{\"id\":\"e1\"") && text.ends_with("\"id_again\":1}"), "{text}");
}

#[test]
fn a_page_that_lies_before_the_window_ends_it_and_one_that_straddles_it_does_not() {
    let item = |id: u64, at: &str| json!({"id": id, "guid": format!("g{id}"), "event": "push", "delivered_at": at});
    let link =
        ("link".to_owned(), "<https://api.example/deliveries?cursor=2>; rel=next".to_owned());
    let read = |items: Value| {
        let answer = HttpAnswer { headers: vec![link.clone()], ..answer(&items) };
        pager("github").read(&Cursor::First, &answer).unwrap()
    };
    let page = read(json!([item(2, "2026-11-30T12:00:00Z"), item(1, "2026-11-30T11:59:59Z")]));
    assert_eq!((page.events.len(), page.next.is_some()), (1, true));
    let page = read(json!([item(2, "2026-11-30T13:00:01Z")]));
    assert_eq!((page.events.len(), page.next.is_some()), (0, true), "not there yet");
    let page = read(json!([item(2, "2026-11-30T11:59:59Z"), item(1, "2026-11-30T11:59:00Z")]));
    assert_eq!((page.events.len(), page.next), (0, None));
    assert_eq!(
        read(json!([])).next,
        Some(Cursor::Address("https://api.example/deliveries?cursor=2".to_owned()))
    );
}

#[test]
fn a_next_page_elsewhere_is_refused_for_the_key_belongs_here() {
    for elsewhere in [
        "https://api.paddle.com.evil.example/notifications",
        "http://api.paddle.com/notifications",
        "https://api.paddle.com:8443/notifications",
        "/notifications",
    ] {
        let mut body = listed("paddle");
        *body.pointer_mut("/meta/pagination/next").unwrap() = json!(elsewhere);
        let read = pager("paddle").read(&Cursor::First, &answer(&body));
        assert_eq!(read.unwrap_err(), NoPage::Elsewhere, "{elsewhere}");
    }
}

#[test]
fn what_is_no_list_is_said_without_its_text() {
    for body in
        ["", "<html>secret</html>", "[]", "{\"data\": \"secret\"}", "{\"error\": \"secret\"}"]
    {
        let answer =
            HttpAnswer { status: 200, headers: Vec::new(), body: body.as_bytes().to_vec() };
        let said = pager("stripe").read(&Cursor::First, &answer).unwrap_err().to_string();
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn an_item_that_cannot_be_read_is_named_and_its_neighbours_are_not_lost() {
    let mut body = listed("stripe");
    let items = body["data"].as_array_mut().unwrap();
    items.push(json!({"id": "e2", "type": "t", "created": "soon"}));
    items.push(json!({"type": "t", "created": 1_796_040_007}));
    items.push(json!("what"));
    body["has_more"] = json!(false);
    let page = pager("stripe").read(&Cursor::First, &answer(&body)).unwrap();
    assert_eq!(page.events.len(), 1);
    let ids: Vec<&str> = page.unlisted.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids, ["e2", "", ""]);
}

#[test]
fn a_window_is_whole_seconds_with_both_ends() {
    assert_eq!((WINDOW.since, WINDOW.until), (NOON, NOON.plus(3_600_999)));
    assert!(WINDOW.holds(NOON) && WINDOW.holds(NOON.plus(3_600_999)));
    assert!(!WINDOW.holds(NOON.minus(1)) && !WINDOW.holds(NOON.plus(3_601_000)));
}
