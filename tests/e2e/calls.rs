//! What a delivery costs: every call a function makes is seen by the proxy in front of AWS.

use crate::suite::{STRIPE, Suite};
use ledger::Status;
use serde_json::json;
use support::{Call, Sample, Seen};

const EVENTS: usize = 5;

/// What went through the proxy, without the steward's calls: it runs every minute, under a role of
/// its own, and is the only one that reads the index of open rows.
fn window(suite: &Suite) -> Vec<Seen> {
    let seen = suite.proxy.take();
    let steward: Vec<String> = seen
        .iter()
        .filter(|call| call.target.ends_with(".Query"))
        .map(|call| call.access_key.clone())
        .collect();
    seen.into_iter().filter(|call| !steward.contains(&call.access_key)).collect()
}

fn operations(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|call| call.target.rsplit('.').next().unwrap_or_default()).collect()
}

pub(crate) async fn two_calls_a_new_event_one_a_duplicate_none_a_refusal(suite: &Suite) {
    // Each process loads the keys and opens its connections when it starts.
    let (sample, id, _) = suite.subscription("stripe_subscription_created");
    assert_eq!(suite.post(STRIPE, &sample).await.status, 200);
    suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Settled).await;
    suite.stack.queue_is_empty().await;

    suite.operator(&json!({"do": "polling", "enabled": false}));
    let events: Vec<(Sample, String)> = (0..EVENTS)
        .map(|_| suite.subscription("stripe_subscription_created"))
        .map(|(sample, id, _)| (sample, id))
        .collect();
    _ = suite.proxy.take();
    for (sample, id) in &events {
        assert_eq!(suite.post(STRIPE, sample).await.status, 200);
        let seen = window(suite);
        assert_eq!(without_key_reads(&seen), ["PutItem", "SendMessage"], "a new event");
        assert!(
            seen.iter()
                .all(|call| call.body.contains(id) || call.target.ends_with("GetSecretValue"))
        );
    }
    suite.operator(&json!({"do": "polling", "enabled": true}));
    for (_, id) in &events {
        suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Settled).await;
    }
    suite.stack.queue_is_empty().await;

    _ = suite.proxy.take();
    for (sample, _) in &events {
        assert_eq!(suite.post(STRIPE, sample).await.status, 200);
        assert_eq!(
            without_key_reads(&window(suite)),
            ["PutItem"],
            "a duplicate of a settled event"
        );
    }
    for call in refused(suite) {
        let answer = suite.stack.http.post(call).await;
        assert!((400..500).contains(&answer.status), "{}", answer.status);
    }
    let seen = window(suite);
    assert!(without_key_reads(&seen).is_empty(), "refusals called {:?}", operations(&seen));
    assert!(seen.len() <= 1, "the keys were read {} times within a minute", seen.len());
}

/// Keys are read again after five minutes, and once a minute after a signature failed.
fn without_key_reads(seen: &[Seen]) -> Vec<&str> {
    let mut operations = operations(seen);
    operations.retain(|operation| *operation != "GetSecretValue");
    operations
}

fn refused(suite: &Suite) -> Vec<Call> {
    let (sample, ..) = suite.subscription("stripe_subscription_created");
    let good = suite.stack.signer.call(STRIPE, &sample);
    let mut forged = good.clone();
    forged.body.push(b' ');
    let mut bare = good.clone();
    bare.headers.clear();
    vec![
        Call { path: "/webhooks/nobody".to_owned(), ..good.clone() },
        Call { method: "GET".to_owned(), ..good },
        bare,
        forged.clone(),
        forged,
    ]
}
