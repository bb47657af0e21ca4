//! Back to work: an operator's redrive, the steward's sweep, and the ends that need neither.

use crate::suite::{STRIPE, Suite};
use ledger::{
    Bucket, Failure, FailureClass, Lease, Life, Message, Millis, Open, Outcome, Row, Status, Token,
};
use serde_json::json;
use std::time::Duration;
use support::{claimed_row, now_ms, until};
use workflow::ports::{Ledger, StewardNotes};

/// A row of a subscription event with a life of the case's choice, and its subscription.
pub(crate) fn row_with(suite: &Suite, change: impl FnOnce(Life) -> Life) -> (Row, String) {
    let (sample, id, subscription) = suite.subscription("stripe_subscription_created");
    let received_at = Millis(now_ms()).minus(120_000);
    let (row, _) =
        claimed_row(STRIPE, &id, "customer.subscription.created", &sample.bytes(), received_at);
    let life = change(row.life.clone());
    (Row { life, ..row }, subscription)
}

pub(crate) fn dead(life: Life, class: FailureClass) -> Life {
    let at = Millis(now_ms()).minus(60_000);
    Life {
        status: Status::Dead,
        attempts: 6,
        epoch: 6,
        failure: Some(Failure { error: "the database was away".to_owned(), class, at }),
        // Parked, so that the scheduled steward leaves it to the operator.
        open: life.open.map(|open| Open { bucket: parked(open), due_at: at }),
        ..life
    }
}

fn parked(open: Open) -> Bucket {
    Bucket::Parked(shard(open))
}

fn shard(open: Open) -> u8 {
    match open.bucket {
        Bucket::Pending(n) | Bucket::Dead(n) | Bucket::Parked(n) => n,
    }
}

fn redrive(suite: &Suite) {
    let [dlq, queue] =
        ["ONCEHOOK_DLQ_URL", "ONCEHOOK_QUEUE_URL"].map(|name| suite.stack.env.get(name).unwrap());
    let moved = suite.operator(&json!({"do": "redrive", "dlq": dlq, "queue": queue}));
    assert!(moved.as_u64() >= Some(1), "nothing was there to move: {moved}");
}

pub(crate) async fn a_redrive_from_the_dead_letters_grants_one_fresh_budget(suite: &Suite) {
    // One whose cause is gone, and one that will fail again.
    let (cured, subscription) = row_with(suite, |life| dead(life, FailureClass::Transient));
    let (poison, poison_id, _) = suite.subscription("stripe_poison");
    assert_eq!(suite.post(STRIPE, &poison).await.status, 200);
    let poison_key = format!("{STRIPE}#{poison_id}");
    let buried = suite.stack.row_in(&poison_key, Status::Dead).await;
    suite.plant(&cured).await;
    suite.to_dead_letters(&cured).await;
    suite.stack.queue_is_empty().await;

    redrive(suite);
    let row = suite.stack.row_in(cured.evidence.key.as_str(), Status::Settled).await;
    assert_eq!(
        (row.life.outcome, row.life.attempts),
        (Some(Outcome::Applied), 1),
        "a fresh budget"
    );
    assert!(row.life.redriven_at.is_some());
    assert_eq!(
        suite.stack.entity(&Suite::subscription_key(&subscription)).await.unwrap().revision,
        1
    );

    let failed_at = |row: &Row| row.life.failure.as_ref().map(|failure| failure.at);
    let again = suite
        .stack
        .row_when("the poison event is dead again, by a later failure", &poison_key, |row| {
            row.life.status == Status::Dead && failed_at(row) > failed_at(&buried)
        })
        .await;
    assert_eq!(again.life.attempts, 1, "the count is the new budget's");
    assert!(again.life.redriven_at > failed_at(&buried));
    suite.stack.queue_is_empty().await;
}

pub(crate) async fn a_redriven_message_of_a_settled_row_changes_nothing(suite: &Suite) {
    let (sample, id, subscription) = suite.subscription("stripe_subscription_created");
    assert_eq!(suite.post(STRIPE, &sample).await.status, 200);
    let row = suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Settled).await;
    let entity = suite.stack.entity(&Suite::subscription_key(&subscription)).await.unwrap();
    let dead = suite.stack.dead_letters().await.total();
    suite.to_dead_letters(&row).await;
    redrive(suite);
    suite.stack.queue_is_empty().await;
    assert_eq!(suite.stack.row(row.evidence.key.as_str()).await.unwrap(), row);
    assert_eq!(suite.stack.entity(&Suite::subscription_key(&subscription)).await.unwrap(), entity);
    // Earlier cases' poison is back; this message is not.
    assert_eq!(suite.stack.dead_letters().await.total(), dead);
}

pub(crate) async fn a_claim_whose_message_was_lost_is_sent_by_the_steward(suite: &Suite) {
    let (row, subscription) = row_with(suite, |life| life);
    suite.plant(&row).await;
    let key = row.evidence.key.as_str();
    suite.steward();
    let row = suite.stack.row_in(key, Status::Settled).await;
    assert_eq!((row.life.outcome, row.life.attempts), (Some(Outcome::Applied), 1));
    assert!(row.life.sweeps >= 1, "swept {} times", row.life.sweeps);
    assert_eq!(
        suite.stack.entity(&Suite::subscription_key(&subscription)).await.unwrap().revision,
        1
    );
}

/// What the steward remembers, so that its next run does only what a case is about.
fn notes(release: &str, redriven_at: Millis) -> StewardNotes {
    StewardNotes {
        redriven_at,
        cleared_at: Millis(now_ms()),
        walked_release: release.to_owned(),
        ..StewardNotes::default()
    }
}

/// The build that runs: every lease names it.
async fn release(suite: &Suite) -> String {
    let (sample, id, _) = suite.subscription("stripe_subscription_created");
    assert_eq!(suite.post(STRIPE, &sample).await.status, 200);
    let row = suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Settled).await;
    row.life.release.unwrap()
}

pub(crate) async fn a_dead_row_is_redriven_by_itself_when_it_is_due(suite: &Suite) {
    let release = release(suite).await;
    let (row, subscription) = row_with(suite, |life| {
        let open = life.open.map(|open| Open { bucket: Bucket::Dead(shard(open)), ..open });
        Life { open, ..dead(life, FailureClass::Transient) }
    });
    suite.stack.aws.write_notes(&notes(&release, Millis(0))).await.unwrap();
    suite.plant(&row).await;
    suite.steward();
    let row = suite.stack.row_in(row.evidence.key.as_str(), Status::Settled).await;
    assert_eq!((row.life.outcome, row.life.redrives), (Some(Outcome::Applied), 1));
    assert_eq!((row.life.attempts, row.life.budget_release), (1, None), "a fresh budget");
    let entity = suite.stack.entity(&Suite::subscription_key(&subscription)).await.unwrap();
    assert_eq!(entity.revision, 1);
}

pub(crate) async fn a_new_build_gives_what_died_before_it_one_fresh_budget(suite: &Suite) {
    let release = release(suite).await;
    let earlier = || Some("an earlier build".to_owned());
    let (cured, _) = row_with(suite, |life| Life {
        release: earlier(),
        redrives: 5,
        ..dead(life, FailureClass::Transient)
    });
    let (permanent, _) =
        row_with(suite, |life| Life { release: earlier(), ..dead(life, FailureClass::Permanent) });
    suite.stack.aws.write_notes(&notes("an earlier build", Millis(now_ms()))).await.unwrap();
    suite.plant(&cured).await;
    suite.plant(&permanent).await;
    suite.steward();
    let row = suite.stack.row_in(cured.evidence.key.as_str(), Status::Settled).await;
    assert_eq!((row.life.outcome, row.life.attempts), (Some(Outcome::Applied), 1));
    assert_eq!(row.life.budget_release.as_deref(), Some(release.as_str()));
    let left = suite.stack.row(permanent.evidence.key.as_str()).await.unwrap();
    assert_eq!(left.life, permanent.life, "only a person revives what no run can help");
    assert_eq!(suite.stack.aws.notes().await.unwrap().walked_release, release);
}

pub(crate) async fn a_row_whose_workers_died_is_buried_by_force(suite: &Suite) {
    let lease_ended = Millis(now_ms()).minus(10_000);
    let (row, subscription) = row_with(suite, |life| Life {
        status: Status::Processing,
        attempts: 6,
        epoch: 6,
        lease: Some(Lease { owner: Token(6), until: lease_ended }),
        ..life
    });
    let before = suite.stack.dead_letters().await.total();
    suite.plant(&row).await;
    suite.steward();
    let row = suite.stack.row_in(row.evidence.key.as_str(), Status::Dead).await;
    let error = row.life.failure.map(|failure| failure.error).unwrap_or_default();
    assert_eq!(error, "the worker died 6 times");
    assert!(suite.stack.entity(&Suite::subscription_key(&subscription)).await.is_none());
    shown_to_the_operator(suite, before).await;
}

pub(crate) async fn a_message_without_a_row_ends_with_the_dead_letters(suite: &Suite) {
    let before = suite.stack.dead_letters().await.total();
    let key = ledger::EventKey::parse(&format!("github#{}", suite.id("nobody"))).unwrap();
    suite.send("ONCEHOOK_QUEUE_URL", &Message::new(key.clone(), "push", None)).await;
    shown_to_the_operator(suite, before).await;
    assert!(suite.stack.row(key.as_str()).await.is_none(), "a message made a row");
}

async fn shown_to_the_operator(suite: &Suite, before: u64) {
    until("one more dead letter", Duration::from_secs(30), async || {
        match suite.stack.dead_letters().await.total() {
            now if now == before + 1 => Ok(()),
            now => Err(format!("{now} where there were {before}")),
        }
    })
    .await;
}
