//! What a person reads about requests that were captured from providers with schemes of their own.

use super::{Case, Verdict, judge};
use crate::{
    sample::Sample,
    testing::{self, NOW, SECRETS},
};
use serde_json::json;

async fn judged(source: &str, request: &serde_json::Value) -> Verdict {
    let config = testing::config();
    let sample = Sample::parse(&request.to_string()).unwrap();
    let case = Case { sample: &sample, url: Some(testing::URL), certificate: None };
    judge(&config, config.source(source).unwrap(), &case, SECRETS, NOW).await.unwrap()
}

#[tokio::test]
async fn a_foreign_key_a_refused_scheme_and_another_body_are_told_apart() {
    let form = "bt_signature=another_public_key%7C0000000000000000000000000000000000000000&bt_payload=PG4%2FPg%3D%3D";
    let braintree = judged("braintree", &json!({"body": form})).await;
    assert_eq!(braintree.cause, Some("key_unknown"));
    assert!(braintree.why.unwrap().contains("a key that this source does not have"));

    let decoy = json!({"headers": {"stripe-signature": "t=1796040060,v0=00"}, "body": "{}"});
    let stripe = judged("stripe-live", &decoy).await;
    assert_eq!(stripe.cause, Some("scheme_refused"));
    assert!(stripe.why.unwrap().contains("no signature of an accepted scheme"));
    assert!(stripe.next.unwrap().contains("a version this preset does not accept"));
}

#[tokio::test]
async fn a_handshake_is_no_event_and_says_so() {
    let challenge =
        json!({"method": "GET", "query": "bt_challenge=20f9f8ed05f77439fe955c977e4c8a53"});
    let verdict = judged("braintree", &challenge).await;
    assert!(verdict.authentic && verdict.events.is_empty());
    assert_eq!((verdict.answer, verdict.cause), (Some(200), None));
    assert!(verdict.notes[0].contains("a handshake"), "{:?}", verdict.notes);
}
