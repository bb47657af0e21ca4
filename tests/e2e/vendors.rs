//! The providers' own packages against the deployed stack, in one table.
//!
//! Where a package signs, what it signs is accepted. Where it only verifies (GoCardless, Razorpay,
//! Square), it is used the other way round: what the product signs, the package accepts. Either
//! way the delivery is answered 200 with what that provider wants to hear, changes state, and is
//! refused with 401 when one byte of it is another.

use crate::suite::{Suite, script};
use ledger::{Outcome, Status};
use serde_json::{Value, json};
use support::{Call, Sample, now_ms, run_python};
use verifier::{Headers, Request};

/// Who signs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signs {
    Package,
    Product,
}

/// One row of the table.
struct Vendor {
    package: &'static str,
    signs: Signs,
    source: &'static str,
    headers: Vec<(&'static str, String)>,
    /// What the package is to sign, or the body.
    payload: String,
    id: String,
    /// One byte behind this text is flipped.
    flip_behind: &'static str,
    /// What the answer says, and as what.
    answer: (&'static str, &'static str),
}

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

fn vendor(package: &'static str, signs: Signs, source: &'static str, payload: String) -> Vendor {
    Vendor {
        package,
        signs,
        source,
        headers: vec![("content-type", JSON.to_owned())],
        payload,
        id: String::new(),
        flip_behind: "id\":",
        answer: ("", ""),
    }
}

fn table(suite: &Suite) -> Vec<Vendor> {
    use Signs::{Package, Product};
    let id = |stem: &str| suite.id(stem);
    let invoice = Sample::read("standard-webhooks_invoice_paid").unwrap();
    let invoice = || invoice.clone().with("/data/id", id("inv"));
    let text = |sample: Sample| String::from_utf8(sample.bytes()).unwrap();
    let (subscription, ..) = suite.subscription("stripe_subscription_created");
    let at = "2026-11-30T12:00:00Z";
    let adyen = json!({"live": "false", "notificationItems": [{"NotificationRequestItem": {
        "pspReference": id("psp"), "merchantAccountCode": "TestMerchant", "merchantReference": "order-1",
        "amount": {"value": 1130, "currency": "EUR"}, "eventCode": "AUTHORISATION",
        "eventDate": "2026-11-30T12:00:00+01:00", "success": "true"}}]});
    let transfer = json!({"type": "balancePlatform.transfer.created", "environment": "test",
        "timestamp": at, "data": {"id": id("transfer"), "sequenceNumber": 2, "status": "authorised",
        "amount": {"value": 9, "currency": "EUR"}}});
    let channel = json!({"type": "event_callback", "event_id": id("Ev"), "event_time": 1_796_040_000,
        "event": {"type": "channel_created", "channel": {"id": id("C"), "name": "fun"}}});
    let twilio = "&SmsStatus=received&To=%2B1&NumSegments=1&NumMedia=0&Body=caf%C3%A9+%26+more";
    let twilio = format!("MessageSid={}{twilio}", id("SM"));
    let paddle = json!({"event_id": id("evt"), "event_type": "subscription.activated", "occurred_at": at,
        "data": {"id": id("sub"), "status": "active", "customer_id": "ctm_1"}});
    let mollie = json!({"resource": "event", "id": id("event"), "type": "sales-invoice.paid",
        "entityId": id("invoice"), "createdAt": at});
    let square = json!({"merchant_id": "M1", "type": "payment.updated", "event_id": id("evt"), "created_at": at,
        "data": {"type": "payment", "id": id("pay"), "object": {"payment": {"id": id("pay"), "updated_at": at,
        "status": "COMPLETED", "amount_money": {"amount": 900, "currency": "EUR"}}}}});
    let gocardless = json!({"events": [{"id": id("EV"), "created_at": at, "resource_type": "payments",
        "action": "confirmed", "links": {"payment": id("PM")}, "details": {"cause": "payment_confirmed"}}]});
    let razorpay = json!({"entity": "event", "event": "payment.captured", "created_at": 1_796_040_000,
        "payload": {"payment": {"entity": {"id": id("pay"), "status": "captured", "amount": 100}}}});
    vec![
        vendor("stripe", Package, "stripe-live", text(subscription)),
        Vendor {
            id: id("msg"),
            ..vendor("standardwebhooks", Package, "standard-webhooks", text(invoice()))
        },
        Vendor { id: id("msg"), ..vendor("svix", Package, "svix", text(invoice())) },
        vendor("slack", Package, "slack", channel.to_string()),
        Vendor {
            headers: vec![("content-type", FORM.to_owned())],
            flip_behind: "MessageSid=",
            answer: ("<Response></Response>", "text/xml"),
            ..vendor("twilio", Package, "twilio", twilio)
        },
        Vendor {
            headers: vec![("content-type", FORM.to_owned())],
            id: id("sub"),
            flip_behind: "bt_payload=",
            ..vendor("braintree", Package, "braintree", "subscription_went_active".to_owned())
        },
        Vendor {
            flip_behind: "\"value\": ",
            answer: ("[accepted]", "text/plain"),
            ..vendor("adyen", Package, "adyen", adyen.to_string())
        },
        Vendor {
            answer: ("[accepted]", "text/plain"),
            ..vendor("adyen_platform", Package, "adyen-platform", transfer.to_string())
        },
        vendor("paddle", Package, "paddle", paddle.to_string()),
        vendor("mollie", Package, "mollie", mollie.to_string()),
        vendor("gocardless", Product, "gocardless", gocardless.to_string()),
        vendor("square", Product, "square", square.to_string()),
        Vendor {
            headers: vec![("content-type", JSON.to_owned()), ("x-razorpay-event-id", id("evt"))],
            ..vendor("razorpay", Product, "razorpay", razorpay.to_string())
        },
    ]
}

impl Vendor {
    /// The delivery, signed.
    fn call(&self, suite: &Suite) -> Call {
        let own = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone());
        let headers: Vec<(String, String)> = self.headers.iter().map(own).collect();
        if self.signs == Signs::Product {
            let body = self.payload.clone().into_bytes();
            return suite.stack.signer.call_at(self.source, &headers, body, now_ms());
        }
        let wish = json!({"do": "sign", "id": self.id});
        signed_call(self.source, headers, &self.ask(suite, &wish, &self.payload))
    }

    /// Whether the package itself accepts a delivery.
    fn is_accepted_by_package(&self, suite: &Suite, call: &Call) -> bool {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let headers: serde_json::Map<String, Value> =
            call.headers.iter().map(|(name, value)| (name.clone(), text(value).into())).collect();
        let said = self.ask(suite, &json!({"do": "verify", "headers": headers}), &text(&call.body));
        said["accepted"].as_bool().unwrap()
    }

    fn ask(&self, suite: &Suite, wish: &Value, payload: &str) -> Value {
        ask(suite, self.package, self.source, wish, payload)
    }

    fn flipped(&self, call: &Call) -> Call {
        let text = String::from_utf8(call.body.clone()).unwrap();
        let at = text.find(self.flip_behind).unwrap() + self.flip_behind.len() + 1;
        let mut flipped = call.clone();
        flipped.body[at] ^= 1;
        flipped
    }
}

/// Has a provider's package sign or verify `payload` with a source's key: see `vendors.py`.
pub(crate) fn ask(
    suite: &Suite,
    package: &str,
    source: &str,
    wish: &Value,
    payload: &str,
) -> Value {
    let mut wish = wish.clone();
    wish["by"] = package.into();
    wish["secret"] = suite.stack.signer.key_text(source).into();
    wish["url"] = format!("{}/webhooks/{source}", suite.stack.http.base()).into();
    wish["payload"] = payload.into();
    let printed = run_python(&script("vendors.py"), &wish.to_string(), &[]).unwrap();
    serde_json::from_str(&printed).unwrap()
}

/// The delivery that a package signed, with its headers behind these.
pub(crate) fn signed_call(source: &str, mut headers: Vec<(String, String)>, said: &Value) -> Call {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let signed = said["headers"].as_object().unwrap().iter();
    headers.extend(signed.map(|(name, value)| (name.clone(), text(value))));
    Call::to_source(source, headers, text(&said["body"]).into_bytes())
}

/// The key of the one event of a delivery.
pub(crate) fn key_of(suite: &Suite, source: &str, call: &Call) -> String {
    let headers: Headers = call
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), String::from_utf8(value.clone()).unwrap()))
        .collect();
    let request = Request {
        method: "POST",
        path: &call.path,
        query: "",
        public_url: None,
        headers: &headers,
        body: &call.body,
    };
    let events = suite.stack.config.source(source).unwrap().preset.events(&request).unwrap();
    assert_eq!(events.len(), 1, "{source}");
    format!("{source}#{}", events[0].id)
}

pub(crate) async fn every_vendors_own_package_agrees_to_the_byte(suite: &Suite) {
    for vendor in table(suite) {
        let name = vendor.package;
        let call = vendor.call(suite);
        let flipped = vendor.flipped(&call);
        if vendor.signs == Signs::Product {
            assert!(vendor.is_accepted_by_package(suite, &call), "{name} refuses what we sign");
            assert!(!vendor.is_accepted_by_package(suite, &flipped), "{name} accepts anything");
        }
        assert_eq!(suite.stack.http.post(flipped).await.status, 401, "{name}: one byte");
        let key = key_of(suite, vendor.source, &call);
        assert!(suite.stack.row(&key).await.is_none(), "{name}: a refused event has a row");

        let answer = suite.stack.http.post(call).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text);
        let (text, content_type) = vendor.answer;
        assert_eq!(answer.text, text, "{name}");
        assert!(answer.content_type.starts_with(content_type), "{name}: {}", answer.content_type);
        let row = suite.stack.row_in(&key, Status::Settled).await;
        assert_eq!(row.life.outcome, Some(Outcome::Applied), "{name}: {key}");
    }
}
