//! The replay route, deployed: a token in place of a signature.

use crate::suite::{STRIPE, Suite};
use ledger::{Origin, Outcome, Status};
use serde_json::{Value, json};
use support::{Answered, Call, other_secret};

/// Posts bytes to a source's replay route, with who and why.
pub(crate) async fn post(
    suite: &Suite,
    source: &str,
    token: Option<&str>,
    body: Vec<u8>,
) -> Answered {
    let mut headers = vec![
        ("content-type", "application/json"),
        ("x-replay-by", "anna"),
        ("x-replay-reason", "outage of the morning"),
    ];
    headers.extend(token.map(|token| ("x-replay-token", token)));
    let headers = headers.into_iter();
    let call = Call {
        method: "POST".to_owned(),
        path: format!("/replay/{source}"),
        headers: headers.map(|(name, value)| (name.to_owned(), value.into())).collect(),
        body,
    };
    suite.stack.http.post(call).await
}

fn said(answer: &Answered) -> (u16, String) {
    let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    let outcome = body.pointer("/events/0/outcome").and_then(Value::as_str);
    (answer.status, outcome.unwrap_or(&answer.text).to_owned())
}

pub(crate) async fn a_token_opens_its_own_source_and_says_new_or_duplicate(suite: &Suite) {
    let (sample, id, subscription) = suite.subscription("stripe_subscription_created");
    let token = other_secret("replay", STRIPE);
    let other = other_secret("replay", "stripe-test");
    let refused = post(suite, STRIPE, None, sample.bytes()).await;
    assert_eq!(refused.status, 401);
    for wrong in ["", "nonsense", other.as_str(), &token[1..]] {
        assert_eq!(post(suite, STRIPE, Some(wrong), sample.bytes()).await, refused, "{wrong}");
    }
    // A token is no signature, and an unknown source and one without a token are closed.
    let mut delivered = suite.stack.signer.call(STRIPE, &sample);
    delivered.headers = vec![("x-replay-token".to_owned(), token.clone().into_bytes())];
    assert_eq!(suite.stack.http.post(delivered).await, refused);
    assert_eq!(post(suite, "shopify", Some(&token), sample.bytes()).await, refused);
    assert_eq!(post(suite, "nobody", Some(&token), sample.bytes()).await.status, 404);
    let key = format!("{STRIPE}#{id}");
    assert!(suite.stack.row(&key).await.is_none(), "a refused replay has a row");

    let fed = post(suite, STRIPE, Some(&token), sample.bytes()).await;
    assert_eq!(said(&fed), (200, "new".to_owned()));
    let row = suite.stack.row_in(&key, Status::Settled).await;
    assert_eq!(row.life.outcome, Some(Outcome::Applied));
    assert_eq!((row.evidence.origin, row.evidence.identity_hash), (Origin::Replay, None));
    assert_eq!(row.evidence.origin_note.as_deref(), Some("anna: outage of the morning"));
    let again = post(suite, STRIPE, Some(&token), sample.bytes()).await;
    assert_eq!(said(&again), (200, "duplicate".to_owned()));
    // The provider renders it differently: no conflict, no second change.
    let rendered = sample.with("/data/object/status", "past_due");
    assert_eq!(suite.post(STRIPE, &rendered).await.status, 200);
    let entity = suite.stack.entity(&Suite::subscription_key(&subscription)).await.unwrap();
    assert_eq!(entity.revision, 1);
}

pub(crate) async fn a_closed_route_is_no_route(suite: &Suite) {
    let (sample, id, _) = suite.subscription("stripe_subscription_created");
    let token = other_secret("replay", STRIPE);
    let function = suite.stack.env.get("ONCEHOOK_RECEIVER_FUNCTION").unwrap();
    let switch = |word: &str| {
        let set = json!({"ONCEHOOK_REPLAY_ROUTE": word});
        suite.operator(&json!({"do": "environment", "function": function, "set": set}))
    };
    switch("off");
    let closed = post(suite, STRIPE, Some(&token), sample.bytes()).await;
    switch("on");
    let nowhere = Call {
        method: "POST".to_owned(),
        path: "/webhooks/nobody".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    assert_eq!(closed, suite.stack.http.post(nowhere).await);
    assert_eq!(closed.status, 404);
    assert!(suite.stack.row(&format!("{STRIPE}#{id}")).await.is_none());
}
