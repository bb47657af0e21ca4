//! Anything at all as a request: an answer that blames the sender, and nothing kept.

use crate::suite::{STRIPE, Suite};
use futures::{StreamExt, stream};
use ledger::Status;
use proptest::{
    collection::vec,
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, RngSeed, TestRng, TestRunner},
};
use serde_json::Value;
use support::{Call, other_secret};

const REQUESTS: usize = 400;

pub(crate) async fn random_requests_are_never_a_5xx_and_write_nothing(suite: &Suite) {
    suite.stack.queue_is_empty().await;
    let before = suite.items().await;
    let calls = random_calls();
    let answers: Vec<_> = stream::iter(calls)
        .map(|call| async {
            let answer = suite.stack.http.send(call.clone()).await;
            (call, answer)
        })
        .buffer_unordered(16)
        .collect()
        .await;
    let mut sent = 0;
    for (call, answer) in answers {
        // What the client itself has no form for never left this machine.
        let Ok(answer) = answer else { continue };
        sent += 1;
        let named: Vec<&String> = call.headers.iter().map(|(name, _)| name).collect();
        assert!(
            (400..500).contains(&answer.status),
            "{} {:?} with headers {named:?} and {} bytes: {}",
            call.method,
            call.path,
            call.body.len(),
            answer.status
        );
    }
    assert!(
        sent * 2 > REQUESTS,
        "only {sent} of {REQUESTS} requests had a form that HTTP can carry"
    );
    assert_eq!(suite.items().await, before, "rows and entities after {sent} random requests");
}

fn random_calls() -> Vec<Call> {
    let methods =
        ["POST", "POST", "POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PURGE"];
    let paths = [
        "stripe-live",
        "github",
        "shopify",
        "standard-webhooks",
        "",
        "nobody",
        "../x",
        "stripe-live/x",
    ];
    let names = [
        "stripe-signature",
        "x-hub-signature-256",
        "x-shopify-hmac-sha256",
        "webhook-signature",
        "webhook-id",
        "webhook-timestamp",
        "content-type",
        "x-github-delivery",
        "x-github-event",
        "x-anything",
    ];
    let values = prop_oneof![
        vec(any::<u8>(), 0..80),
        "t=[0-9]{0,20},v1=[0-9a-f]{0,70}".prop_map(String::into_bytes),
        "sha256=[0-9a-f]{64}".prop_map(String::into_bytes),
        "(v1,[A-Za-z0-9+/]{0,44}={0,2} ?){0,40}".prop_map(String::into_bytes),
    ];
    let path = prop_oneof![
        4 => proptest::sample::select(paths.to_vec()).prop_map(|name| format!("/webhooks/{name}")),
        1 => "(/|%[0-9a-f]{2}|[a-z.~-]){1,30}".prop_map(|tail| format!("/webhooks/{tail}")),
        1 => "/[ -~]{0,40}",
    ];
    let body = prop_oneof![
        vec(any::<u8>(), 0..600),
        "\\PC{0,200}".prop_map(String::into_bytes),
        Just(br#"{"id":"evt_1","type":"x"}"#.to_vec()),
    ];
    let headers = vec((proptest::sample::select(names.to_vec()), values), 0..6);
    let call = (proptest::sample::select(methods.to_vec()), path, headers, body).prop_map(
        |(method, path, headers, body)| Call {
            method: method.to_owned(),
            path,
            headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            body,
        },
    );
    // The same requests in every run: a failure is found again.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let config = Config { rng_seed: RngSeed::Fixed(7), ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, rng);
    (0..REQUESTS).map(|_| call.new_tree(&mut runner).unwrap().current()).collect()
}

/// Plants marks where secrets and payloads are, then searches every line that a function wrote.
pub(crate) async fn logs_hold_no_body_no_signature_and_no_secret(suite: &Suite) {
    let mark = suite.id("canary");
    let (good, id, _) = suite.subscription("stripe_subscription_created");
    let (poison, poison_id, _) = suite.subscription("stripe_poison");
    let (refed, ..) = suite.subscription("stripe_subscription_created");
    let marked = |sample: support::Sample| sample.with("/data/object/status", mark.as_str());
    let good = suite.stack.signer.call(STRIPE, &marked(good));
    let mut forged = good.clone();
    forged.body.push(b' ');
    forged.headers.push(("x-anything".to_owned(), mark.clone().into_bytes()));
    assert_eq!(suite.stack.http.post(forged).await.status, 401);
    assert_eq!(suite.stack.http.post(good.clone()).await.status, 200);
    assert_eq!(suite.post(STRIPE, &marked(poison)).await.status, 200);
    suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Settled).await;
    suite.stack.row_in(&format!("{STRIPE}#{poison_id}"), Status::Dead).await;
    suite.stack.queue_is_empty().await;
    suite.steward();
    suite.invoke("ONCEHOOK_RECONCILER_FUNCTION", &serde_json::json!({}));
    let tokens = [other_secret("replay", STRIPE), other_secret("replay", "stripe-test")];
    for token in &tokens {
        // Once its own, once another source's.
        crate::replay_route::post(suite, STRIPE, Some(token), marked(refed.clone()).bytes()).await;
    }
    let keys = ["stripe-live", "github", "paddle"].map(|source| other_secret("outbound", source));

    let (_, signature) = good.headers.iter().find(|(name, _)| name == "stripe-signature").unwrap();
    let signature = String::from_utf8_lossy(signature);
    let (_, digest) = signature.split_once("v1=").unwrap();
    let mut secrets = vec![mark.as_str(), digest];
    secrets.extend(tokens.iter().chain(&keys).map(String::as_str));
    secrets.extend(
        suite
            .stack
            .config
            .sources()
            .map(|source| suite.stack.signer.key_text(source.name.as_str())),
    );
    let mut lines = 0;
    for function in ["receiver", "consumer", "steward", "reconciler"] {
        let found = suite.logs(function);
        assert!(!found.is_empty(), "{function} wrote nothing");
        lines += found.len();
        for line in found {
            assert!(
                !secrets.iter().any(|secret| line.contains(secret)),
                "{function} wrote a secret or a body"
            );
            let is_metric = line.contains("\"_aws\"");
            assert!(
                !is_metric || serde_json::from_str::<Value>(&line).is_ok(),
                "{function}: a metric line is no JSON"
            );
        }
    }
    assert!(lines > 5, "only {lines} lines");
}
