//! What is authentic and cannot be used is kept, shown, and keeps nobody else from being worked.

use crate::suite::{STRIPE, Suite};
use futures::future::join_all;
use ledger::{FailureClass, Millis, Outcome, Row, Status};
use serde_json::json;
use std::time::Duration;
use support::{Sample, now_ms, sha256_hex, until};

pub(crate) async fn an_event_nobody_configured_settles_as_ignored(suite: &Suite) {
    let id = suite.id("evt");
    let sample = Sample::read("stripe_unconfigured").unwrap().with("/id", id.as_str());
    assert_eq!(suite.post(STRIPE, &sample).await.status, 200);
    let row = suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Settled).await;
    assert_eq!((row.life.outcome, row.life.attempts), (Some(Outcome::Ignored), 1));
    assert!(row.effects.is_empty());
}

pub(crate) async fn an_event_of_the_other_mode_settles_as_ignored(suite: &Suite) {
    let (sample, id, subscription) = suite.subscription("stripe_subscription_created");
    assert_eq!(suite.post(STRIPE, &sample.with("/livemode", false)).await.status, 200);
    let row = suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Settled).await;
    assert_eq!((row.life.outcome, row.life.attempts), (Some(Outcome::Ignored), 0), "never worked");
    assert!(suite.stack.entity(&Suite::subscription_key(&subscription)).await.is_none());
}

pub(crate) async fn the_same_id_with_other_bytes_is_kept_beside_the_first(suite: &Suite) {
    let since = now_ms();
    let (first, id, subscription) = suite.subscription("stripe_subscription_created");
    let second = first.clone().with("/data/object/status", "past_due");
    // A resend differs in what Stripe counts, and in nothing that matters.
    let resend = first.clone().with("/pending_webhooks", 7);
    for sample in [&first, &second, &resend, &second] {
        assert_eq!(suite.post(STRIPE, sample).await.status, 200);
    }
    let key = format!("{STRIPE}#{id}");
    let row = suite.stack.row_in(&key, Status::Settled).await;
    assert!(suite.stack.body(&row).await == first.bytes(), "the first body was overwritten");
    let state = suite.stack.entity(&Suite::subscription_key(&subscription)).await.unwrap().state;
    assert_eq!(state.get("status"), first.at("/data/object/status"));

    let rows = suite.stack.rows(Millis(since), Millis(now_ms())).await.unwrap();
    let beside: Vec<&Row> =
        rows.iter().filter(|row| row.evidence.key.as_str().ends_with(&format!("#{key}"))).collect();
    let [conflict] = beside.as_slice() else {
        panic!("{} rows beside {key}, expected one", beside.len())
    };
    assert!(conflict.evidence.key.as_str().starts_with("_c#"), "{}", conflict.evidence.key);
    is_dead_for_good(conflict);
    assert!(
        suite.stack.body(conflict).await == second.bytes(),
        "the second body is not the one sent"
    );
    let conflicts = metric(suite, "receiver", "Conflict", &key);
    assert_eq!(conflicts, 2, "each of the two deliveries is counted");
}

/// How often a function counted `name` in a line about `key`.
fn metric(suite: &Suite, function: &str, name: &str, key: &str) -> usize {
    let lines = suite.logs(function);
    lines
        .iter()
        .filter(|line| line.contains(&format!("\"{name}\":1")) && line.contains(key))
        .count()
}

fn is_dead_for_good(row: &Row) {
    let class = row.life.failure.as_ref().map(|failure| failure.class);
    assert_eq!(
        (row.life.status, class),
        (Status::Dead, Some(FailureClass::Permanent)),
        "{}",
        row.evidence.key
    );
    let bucket = row.life.open.map(|open| open.bucket.to_string()).unwrap_or_default();
    assert!(bucket.starts_with("parked#"), "{} lies in {bucket:?}", row.evidence.key);
}

pub(crate) async fn what_is_signed_but_unreadable_is_kept_dead_and_answered_2xx(suite: &Suite) {
    let mark = suite.id("unusable");
    let bodies: [Vec<u8>; 6] = [
        format!("{{not json {mark}").into_bytes(),
        [mark.as_bytes(), b"\xff\xfe\x00"].concat(),
        json!({"type": "x", "mark": mark}).to_string().into_bytes(),
        json!({"id": null, "mark": mark}).to_string().into_bytes(),
        json!({"id": "", "mark": mark}).to_string().into_bytes(),
        format!("{{\"id\":\"a\",\"id\":\"b\",\"mark\":\"{mark}\"}}").into_bytes(),
    ];
    for body in bodies {
        let answer = suite
            .post_bytes(STRIPE, &[("content-type", "application/octet-stream")], body.clone())
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let row = suite.stack.row(&format!("{STRIPE}#sha256:{}", sha256_hex(&body))).await;
        let row = row.unwrap_or_else(|| panic!("a body of {} bytes was not kept", body.len()));
        is_dead_for_good(&row);
        assert_eq!(row.life.attempts, 0);
        assert!(
            suite.stack.body(&row).await == body,
            "{}: the body is not the one sent",
            row.evidence.key
        );
    }
}

pub(crate) async fn a_poison_event_goes_to_the_dead_letters_alone(suite: &Suite) {
    let before = suite.stack.dead_letters().await.total();
    let (poison, id, _) = suite.subscription("stripe_poison");
    let neighbours: Vec<_> =
        (0..9).map(|_| suite.subscription("stripe_subscription_created")).collect();
    let all = neighbours.iter().map(|(sample, ..)| sample).chain([&poison]);
    let answers = join_all(all.map(|sample| suite.post(STRIPE, sample))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    for (_, neighbour, _) in &neighbours {
        let row = suite.stack.row_in(&format!("{STRIPE}#{neighbour}"), Status::Settled).await;
        assert_eq!(row.life.outcome, Some(Outcome::Applied));
    }
    let row = suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Dead).await;
    is_dead_for_good(&row);
    assert_eq!(row.life.attempts, 1, "a permanent failure is not tried again");
    until("one more dead letter", Duration::from_secs(30), async || {
        match suite.stack.dead_letters().await.total() {
            now if now == before + 1 => Ok(()),
            now => Err(format!("{now} where there were {before}")),
        }
    })
    .await;
    suite.stack.queue_is_empty().await;
    assert_eq!(suite.stack.dead_letters().await.total(), before + 1, "and no other");
}
