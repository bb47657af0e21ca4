//! Events as API Gateway sends them, and as only a stranger would.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use verifier::HeaderLookup;

/// A request as API Gateway passes it on; fields that nothing reads are left out.
fn event() -> Value {
    json!({
        "version": "2.0",
        "routeKey": "ANY /webhooks/{source}",
        "rawPath": "/webhooks/stripe-live",
        "rawQueryString": "a=%20b&a=c+d",
        "headers": {
            "content-type": "application/json",
            "stripe-signature": "t=1,v1=aa",
            "x-twice": "1, 2"
        },
        "queryStringParameters": { "a": " b,c d" },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abc",
            "domainName": "abc.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "abc",
            "http": {
                "method": "POST",
                "path": "/webhooks/stripe-live",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "Stripe/1.0"
            },
            "requestId": "id",
            "routeKey": "ANY /webhooks/{source}",
            "stage": "$default",
            "time": "30/Nov/2026:13:00:00 +0000",
            "timeEpoch": 1_796_043_600_000_u64
        },
        "pathParameters": { "source": "stripe-live" },
        "body": "{\"id\": \"evt_1\"}",
        "isBase64Encoded": false
    })
}

fn read_json(event: &Value) -> Result<Delivery, Unreadable> {
    let raw = RawValue::from_string(event.to_string()).unwrap();
    read(&raw, Millis(7))
}

#[test]
fn a_request_is_read_as_it_was_signed() {
    let delivery = read_json(&event()).unwrap();
    assert_eq!(delivery.method, "POST");
    assert_eq!(delivery.path, "/webhooks/stripe-live");
    assert_eq!(delivery.query, "a=%20b&a=c+d");
    assert_eq!(delivery.body, br#"{"id": "evt_1"}"#);
    assert_eq!(delivery.headers.get("Stripe-Signature"), HeaderLookup::Once("t=1,v1=aa"));
    assert_eq!(delivery.headers.get("x-twice"), HeaderLookup::Once("1, 2"));
    assert_eq!(delivery.deadline, Millis(7));
}

#[test]
fn a_body_in_base64_is_decoded_to_the_very_bytes() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut event = event();
    event["body"] = BASE64_STANDARD.encode(&bytes).into();
    event["isBase64Encoded"] = true.into();
    assert_eq!(read_json(&event).unwrap().body, bytes);
}

#[test]
fn a_request_without_body_query_or_headers_is_a_request() {
    let mut bare = event();
    for field in ["body", "rawQueryString", "headers", "queryStringParameters", "isBase64Encoded"] {
        bare.as_object_mut().unwrap().remove(field);
    }
    let delivery = read_json(&bare).unwrap();
    assert!(delivery.body.is_empty() && delivery.query.is_empty());
}

#[test]
fn bad_base64_is_the_senders_mistake_and_no_panic() {
    for bad in ["*", "YQ", "YQ=", "YR==", "Y Q=", "YQ==\n", "_-__"] {
        let mut event = event();
        event["body"] = bad.into();
        event["isBase64Encoded"] = true.into();
        assert_eq!(read_json(&event).err(), Some(Unreadable::Base64), "{bad:?}");
    }
}

#[test]
fn text_in_a_header_is_kept_and_a_control_character_is_refused() {
    let mut named = event();
    named["headers"]["x-shop-name"] = "Café \u{1f956}".into();
    let delivery = read_json(&named).unwrap();
    assert_eq!(delivery.headers.get("x-shop-name"), HeaderLookup::Once("Café \u{1f956}"));
    for control in ["\0", "a\nb", "a\rb", "\u{1b}[0m", "\u{7f}"] {
        named["headers"]["x-shop-name"] = control.into();
        assert_eq!(read_json(&named).err(), Some(Unreadable::Request), "{control:?}");
    }
}

#[test]
fn an_odd_path_or_host_reaches_the_route_check_and_not_a_panic() {
    for path in ["", "/", "no slash", "/webhooks/a b", "/webhooks/\u{fffd}", "//host/..//", "/\0"] {
        let mut event = event();
        event["rawPath"] = path.into();
        event["headers"]["host"] = "[::1 a b".into();
        event["rawQueryString"] = "\0 ?#[]".into();
        assert_eq!(read_json(&event).unwrap().path, path);
    }
}

#[test]
fn an_event_of_another_kind_is_refused() {
    let others = [json!(null), json!({}), json!([1]), json!("x"), json!({"Records": []})];
    for other in others {
        assert_eq!(read_json(&other).err(), Some(Unreadable::Request), "{other}");
    }
    let mut no_method = event();
    no_method["requestContext"]["http"]["method"] = "NO SUCH".into();
    assert_eq!(read_json(&no_method).err(), Some(Unreadable::Request));
}

proptest! {
    #[test]
    fn whatever_a_stranger_sends_is_read_or_refused(
        path in ".{0,30}",
        query in ".{0,30}",
        name in ".{0,12}",
        value in ".{0,30}",
        body in ".{0,60}",
        is_base64 in any::<bool>(),
    ) {
        let mut event = event();
        event["rawPath"] = path.into();
        event["rawQueryString"] = query.into();
        event["headers"][name.as_str()] = value.into();
        event["body"] = body.clone().into();
        event["isBase64Encoded"] = is_base64.into();
        if let Ok(delivery) = read_json(&event) {
            prop_assert!(is_base64 || delivery.body == body.as_bytes());
        }
    }
}

#[test]
fn an_answer_is_written_as_api_gateway_wants_it() {
    let mut answer = sentence(503, "not stored");
    answer.headers.push(("retry-after".to_owned(), "5".to_owned()));
    answer.headers.push(("x-bad".to_owned(), "a\nb".to_owned()));
    let response = serde_json::to_value(write(answer)).unwrap();
    assert_eq!(response["statusCode"], 503);
    assert_eq!(response["body"], "not stored\n");
    assert_eq!(response["isBase64Encoded"], false);
    assert_eq!(response["headers"]["retry-after"], "5");
    assert_eq!(response["headers"]["content-type"], "text/plain; charset=utf-8");
    assert!(response["headers"].get("x-bad").is_none());

    let mut bytes = Answer::text(vec![0xff, 0x00]);
    bytes.content_type = None;
    let response = serde_json::to_value(write(bytes)).unwrap();
    assert_eq!((&response["body"], &response["isBase64Encoded"]), (&json!("/wA="), &json!(true)));
}
