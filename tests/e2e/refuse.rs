//! What is not authentic is refused, cheaply, alike, and without a word that helps a forger.

use crate::{
    accept::gateway_event,
    suite::{STRIPE, Suite},
};
use serde_json::{Value, json};
use support::{Call, now_ms};

pub(crate) async fn what_is_not_authentic_is_refused_and_not_explained(suite: &Suite) {
    let (sample, event, _) = suite.subscription("stripe_subscription_created");
    let good = suite.stack.signer.call(STRIPE, &sample);

    let elsewhere = Call { path: "/webhooks/nobody".to_owned(), ..good.clone() };
    assert_eq!(suite.stack.http.post(elsewhere).await.status, 404, "unknown source");
    let got = Call { method: "GET".to_owned(), ..good.clone() };
    assert_eq!(suite.stack.http.post(got).await.status, 405, "wrong method");

    let answers = join(suite, forgeries(suite, &good)).await;
    let (_, first) = &answers[0];
    for (what, answer) in &answers {
        assert_eq!(answer.status, 401, "{what}: {}", answer.text);
        assert_eq!(answer.text, first.text, "{what} is told something else");
    }
    assert!(
        suite.stack.row(&format!("{STRIPE}#{event}")).await.is_none(),
        "a refused event has a row"
    );
}

async fn join(
    suite: &Suite,
    calls: Vec<(&'static str, Call)>,
) -> Vec<(&'static str, support::Answered)> {
    let mut answers = Vec::new();
    for (what, call) in calls {
        answers.push((what, suite.stack.http.post(call).await));
    }
    answers
}

/// One request for each reason to refuse.
fn forgeries(suite: &Suite, good: &Call) -> Vec<(&'static str, Call)> {
    let with_signature = |value: Option<&str>| {
        let mut call = good.clone();
        call.headers.retain(|(name, _)| name != "stripe-signature");
        call.headers
            .extend(value.map(|value| ("stripe-signature".to_owned(), value.as_bytes().to_vec())));
        call
    };
    let signed_at = |at_ms: u64| suite.stack.signer.call_at(STRIPE, &[], good.body.clone(), at_ms);
    let now = now_ms();
    let mut altered = good.clone();
    altered.body.push(b' ');
    let zeros = format!("t={},v1={}", now / 1_000, "0".repeat(64));
    let v0 = String::from_utf8(
        good.headers.iter().find(|(name, _)| name == "stripe-signature").unwrap().1.clone(),
    );
    vec![
        ("no signature", with_signature(None)),
        ("an empty one", with_signature(Some(""))),
        ("no form", with_signature(Some("%%%"))),
        ("a wrong one", with_signature(Some(&zeros))),
        ("the decoy scheme", with_signature(Some(&v0.unwrap().replace("v1=", "v0=")))),
        ("one byte more", altered),
        ("too old", signed_at(now - 400_000)),
        ("too new", signed_at(now + 400_000)),
        ("another source's key", suite.signed("stripe-test", &[], good.body.clone()).to(STRIPE)),
    ]
}

trait Redirected {
    fn to(self, source: &str) -> Self;
}

impl Redirected for Call {
    fn to(mut self, source: &str) -> Self {
        self.path = format!("/webhooks/{source}");
        self
    }
}

/// Events no gateway should send, but which a misconfigured one or a test console does.
pub(crate) async fn a_malformed_gateway_event_is_answered_and_never_a_function_error(
    suite: &Suite,
) {
    let id = suite.id("guid");
    let headers = [
        ("x-github-event", "ping"),
        ("x-github-delivery", id.as_str()),
        ("content-type", "application/json"),
    ];
    let good = gateway_event(&suite.signed("github", &headers, b"{}".to_vec()), false);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut event = good.clone();
        change(&mut event);
        event
    };
    let refused = 400..=499;
    // The body is authentic, so what is odd beside it is kept, never refused.
    let accepted = 200..=299;
    let events = [
        (
            "base64 that is none",
            &refused,
            with(&|event| {
                event["isBase64Encoded"] = json!(true);
                event["body"] = json!("%%% not base64 %%%");
            }),
        ),
        (
            "base64 with more behind its end",
            &refused,
            with(&|event| {
                event["isBase64Encoded"] = json!(true);
                event["body"] = json!("e30=e");
            }),
        ),
        ("no body", &refused, with(&|event| _ = event.as_object_mut().unwrap().remove("body"))),
        ("body null", &refused, with(&|event| event["body"] = json!(null))),
        ("no headers", &refused, with(&|event| event["headers"] = json!({}))),
        (
            "a path with a null",
            &refused,
            with(&|event| event["rawPath"] = json!("/webhooks/git\u{0}hub")),
        ),
        ("a path of nothing", &refused, with(&|event| event["rawPath"] = json!(""))),
        (
            "an event name beyond ASCII",
            &accepted,
            with(&|event| {
                event["headers"]["x-github-delivery"] = json!(suite.id("guid"));
                event["headers"]["x-github-event"] = json!("\u{e9}\u{202e}");
            }),
        ),
    ];
    let function = suite.stack.env.get("ONCEHOOK_RECEIVER_FUNCTION").unwrap();
    let commands: Vec<Value> = events
        .iter()
        .map(|(_, _, event)| json!({"do": "invoke", "function": function, "payload": event}))
        .collect();
    for ((what, wanted, _), said) in events.iter().zip(suite.operators(&commands)) {
        let status = said.get("statusCode").and_then(Value::as_u64);
        assert!(status.is_some_and(|status| wanted.contains(&status)), "{what}: answered {said}");
    }
    assert!(
        suite.stack.row(&format!("github#{id}")).await.is_none(),
        "a malformed request has a row"
    );
}
