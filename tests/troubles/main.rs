//! Every way AWS can fail a delivery, through the real adapters: the receiver talks to a stub that
//! answers as AWS does in trouble, and the provider must get a sensible answer in time.
//!
//! A claim that cannot be made is 503, whatever the cause: the provider sends again. A send that
//! fails is no concern of the provider's. Nothing panics, and nothing takes longer than the
//! receiver's own deadlines allow.
#![allow(clippy::unwrap_used, reason = "test code: a failed unwrap is a failed test")]

mod moving;

use aws::{Aws, Settings, Timeouts};
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;
use ledger::{Millis, Policy};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use support::{AwsStub, Call, Sample, Signer, StubAnswer, now_ms};
use verifier::Headers;
use workflow::{CertificateCache, Keyring, Receiver, receive::Delivery};

const SOURCE: &str = "stripe-live";
const DYNAMODB: &str = "com.amazonaws.dynamodb.v20120810#";
const SECRETS: &str =
    r#"{"stripe-live":[{"kid":"k1","key":"whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH"}]}"#;

/// The receiver as deployed, pointed at the stub.
async fn receiver(stub: &AwsStub) -> Receiver<Aws> {
    let variables = [
        ("ONCEHOOK_LEDGER_TABLE", "ledger"),
        ("ONCEHOOK_STATE_TABLE", "state"),
        ("ONCEHOOK_QUEUE_URL", "http://127.0.0.1/queue"),
        ("ONCEHOOK_SECRET_ID", "signing"),
        ("ONCEHOOK_PARAM_MODE", "enforce"),
    ];
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let settings = Settings::from_variables(variables.map(own)).unwrap();
    let sdk = aws_config::defaults(BehaviorVersion::latest())
        .endpoint_url(stub.url())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "stub"))
        .load()
        .await;
    Receiver {
        config: aws::config(&settings).unwrap(),
        policy: Policy::default(),
        keyring: Keyring::new(false),
        certificates: CertificateCache::default(),
        replay: None,
        public_url: None,
        ports: Arc::new(Aws::new(&sdk, settings, Timeouts::receiver(&Policy::default()))),
    }
}

fn delivery(receiver: &Receiver<Aws>, sample: &Sample) -> Delivery {
    let signer = Signer::new(receiver.config.clone(), SECRETS).unwrap();
    let call: Call = signer.call(SOURCE, sample);
    let mut headers = Headers::new();
    for (name, value) in call.headers {
        headers.push(&name, String::from_utf8(value).unwrap());
    }
    Delivery {
        method: call.method,
        path: call.path,
        query: String::new(),
        headers,
        body: call.body,
        deadline: Millis(now_ms()).plus(8_000),
    }
}

fn secrets() -> StubAnswer {
    StubAnswer::Json(200, json!({"SecretString": SECRETS}))
}

fn error(status: u16, code: &str) -> StubAnswer {
    StubAnswer::Json(status, json!({"__type": code, "message": "in trouble"}))
}

/// The answer's status, and how long it took.
async fn answer(claim: &StubAnswer, send: &StubAnswer) -> (u16, Duration) {
    let (claim, send) = (claim.clone(), send.clone());
    let stub = AwsStub::start(move |target| match target.rsplit('.').next() {
        Some("PutItem") => claim.clone(),
        Some("SendMessage") => send.clone(),
        Some("GetSecretValue") => secrets(),
        _ => StubAnswer::Close,
    })
    .await;
    let receiver = receiver(&stub).await;
    let sample = Sample::read("stripe_subscription_created").unwrap();
    let delivery = delivery(&receiver, &sample);
    let began = Instant::now();
    let answer = receiver.receive(delivery).await;
    (answer.status, began.elapsed())
}

fn done() -> StubAnswer {
    StubAnswer::Json(200, json!({}))
}

#[tokio::test]
async fn a_claim_that_cannot_be_made_is_503_within_its_deadline_whatever_the_cause() {
    let of_dynamodb = |status, code: &str| error(status, &format!("{DYNAMODB}{code}"));
    let troubles = [
        ("throttled", of_dynamodb(400, "ProvisionedThroughputExceededException")),
        ("throttled by the account", of_dynamodb(400, "RequestLimitExceeded")),
        ("a transaction in the way", of_dynamodb(400, "TransactionConflictException")),
        ("no such table", of_dynamodb(400, "ResourceNotFoundException")),
        ("an impossible request", error(400, "com.amazon.coral.validate#ValidationException")),
        ("not allowed", error(400, "com.amazon.coral.service#AccessDeniedException")),
        ("expired credentials", error(400, "com.amazon.coral.service#ExpiredTokenException")),
        ("an internal error", of_dynamodb(500, "InternalServerError")),
        ("unavailable", StubAnswer::Json(503, json!({}))),
        ("an error nobody documented", error(418, "com.example#Teapot")),
        ("a connection that is closed", StubAnswer::Close),
        ("an answer that never comes", StubAnswer::Hang),
    ];
    for (name, trouble) in troubles {
        let (status, took) = answer(&trouble, &done()).await;
        assert_eq!(status, 503, "{name}");
        // All tries have 1.5 s; the rest is this machine's.
        assert!(took < Duration::from_secs(4), "{name} took {took:?}");
    }
}

#[tokio::test]
async fn a_send_that_fails_is_no_concern_of_the_providers() {
    for (name, trouble) in [
        ("throttled", error(400, "com.amazonaws.sqs#RequestThrottled")),
        ("no such queue", error(400, "com.amazonaws.sqs#QueueDoesNotExist")),
        ("not allowed", error(403, "AccessDeniedException")),
        ("an internal error", StubAnswer::Json(500, json!({}))),
        ("a connection that is closed", StubAnswer::Close),
        ("an answer that never comes", StubAnswer::Hang),
    ] {
        let (status, took) = answer(&done(), &trouble).await;
        assert_eq!(status, 200, "{name}: the claim is durable and the sweeper sends");
        assert!(took < Duration::from_secs(3), "{name} took {took:?}");
    }
}

#[tokio::test]
async fn a_refused_claim_without_the_row_that_refused_it_is_durable_and_sent_again() {
    let refused = error(400, &format!("{DYNAMODB}ConditionalCheckFailedException"));
    assert_eq!(answer(&refused, &done()).await.0, 200);
}

#[tokio::test]
async fn without_its_keys_the_receiver_is_not_ready_and_refuses_nobody() {
    for trouble in [
        StubAnswer::Close,
        error(400, "AccessDeniedException"),
        error(400, "ResourceNotFoundException"),
        StubAnswer::Json(200, json!({"SecretString": "not json"})),
        StubAnswer::Json(200, json!({"SecretString": "{}"})),
        StubAnswer::Json(200, json!({})),
    ] {
        let shown = format!("{trouble:?}");
        let stub = AwsStub::start(move |_| trouble.clone()).await;
        let receiver = receiver(&stub).await;
        let sample = Sample::read("stripe_subscription_created").unwrap();
        let answer = receiver.receive(delivery(&receiver, &sample)).await;
        assert_eq!(answer.status, 503, "{shown}");
    }
}
