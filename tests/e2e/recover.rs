//! The operator's command line on the deployed stack, where a runbook's day does not lead.

use crate::{
    revive::{dead, row_with},
    suite::{POLICY, STRIPE, Suite},
};
use ledger::{FailureClass, Outcome, Status};
use serde_json::{Value, json};
use std::process::Command;

/// Runs `oncehook --json`: its exit code and what it printed.
fn oncehook(suite: &Suite, words: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(suite.binaries().join("oncehook"))
        .args(words)
        .arg("--json")
        .env_clear()
        .envs(suite.stack.env.iter())
        // As `--stack` reads them from the stack's parameters.
        .env("ONCEHOOK_POLICY_OVERRIDES", POLICY)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&printed)
        .unwrap_or_else(|_| panic!("{printed}{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

pub(crate) async fn all_the_dead_come_back_with_their_messages_and_the_rows_name_the_person(
    suite: &Suite,
) {
    let (row, _) = row_with(suite, |life| dead(life, FailureClass::Transient));
    // Another whose message is in no queue any more.
    let (bare, _) = row_with(suite, |life| dead(life, FailureClass::Transient));
    suite.plant(&row).await;
    suite.plant(&bare).await;
    suite.to_dead_letters(&row).await;
    let words = ["dead", "redrive", "--all", "--by", "anna", "--reason", "the service is back"];
    let (_, preview) = oncehook(suite, &words);
    assert!(preview["selected"].as_u64() >= Some(2) && preview["redriven"] == 0, "{preview}");
    assert_eq!(suite.stack.row(row.evidence.key.as_str()).await.unwrap(), row, "a preview writes");

    let (_, done) = oncehook(suite, &[&words[..], &["--execute", "--rate", "100"]].concat());
    assert!(done["redriven"].as_u64() >= Some(2), "{done}");
    // The emulator has no task for it; on AWS it would be the task's.
    assert!(done["moved"].as_str().unwrap().contains("one by one"), "{done}");
    let key = row.evidence.key.as_str();
    let settled = suite.stack.row_in(key, Status::Settled).await;
    assert_eq!((settled.life.outcome, settled.life.attempts), (Some(Outcome::Applied), 1));
    let hand = settled.life.by_hand.unwrap();
    assert_eq!((hand.by.as_str(), hand.reason.as_str()), ("anna", "the service is back"));
    // Nobody sent a message for the other: it is under the steward's eye.
    let bare = bare.evidence.key.as_str();
    let overdue =
        |row: &ledger::Row| row.life.open.is_none_or(|open| open.due_at.0 < support::now_ms());
    suite.stack.row_when("it is overdue", bare, overdue).await;
    suite.steward();
    suite.stack.row_in(bare, Status::Settled).await;
    suite.stack.queue_is_empty().await;
}

pub(crate) async fn a_replay_from_the_ledger_gives_back_what_the_state_lost_and_refuses_sums(
    suite: &Suite,
) {
    let (sample, id, subscription) = suite.subscription("stripe_subscription_created");
    assert_eq!(suite.post(STRIPE, &sample).await.status, 200);
    let key = format!("{STRIPE}#{id}");
    let original = suite.stack.row_in(&key, Status::Settled).await;
    let entity = Suite::subscription_key(&subscription);
    let state = suite.stack.entity(&entity).await.unwrap().state;
    let table = suite.stack.env.get("ONCEHOOK_STATE_TABLE").unwrap();
    let pk = aws_sdk_dynamodb::types::AttributeValue::S(entity.clone());
    suite.stack.aws.dynamodb().delete_item().table_name(table).key("pk", pk).send().await.unwrap();

    let tender = suite.id("tender");
    let payment = support::Sample::read("shopify_payment_received").unwrap();
    let payment = payment.with_header("x-shopify-event-id", &tender);
    assert_eq!(suite.post("shopify", &payment).await.status, 200);
    let sum = format!(
        "shopify#atelier-nord.myshopify.com:tender_transactions/create:{tender}:2470318866477"
    );
    suite.stack.row_in(&sum, Status::Settled).await;

    let run = suite.id("run");
    let words = ["replay", "--from-ledger", "--by", "anna", "--reason", "state lost", "--run"];
    let words = [&words[..], &[run.as_str(), key.as_str(), sum.as_str(), "--execute"]].concat();
    let (code, ran) = oncehook(suite, &words);
    assert_eq!((&ran["replayed"], &ran["refused"], code), (&json!(1), &json!(1), Some(1)), "{ran}");
    let why = ran["refusals"][0]["why"].as_str().unwrap();
    assert!(why.contains("counted a second time"), "{why}");

    let made = suite.stack.row_in(&format!("_r#{run}#{key}"), Status::Settled).await;
    assert_eq!(made.life.outcome, Some(Outcome::Applied));
    let note = made.evidence.origin_note.clone().unwrap();
    assert_eq!(note, format!("by anna: state lost (run {run})"));
    assert_eq!(suite.stack.body(&made).await, suite.stack.body(&original).await);
    assert_eq!(suite.stack.entity(&entity).await.unwrap().state, state);
    assert_eq!(suite.stack.row(&key).await.unwrap(), original, "the original stays as it is");
    let (_, again) = oncehook(suite, &words);
    assert_eq!((&again["replayed"], &again["before"]), (&json!(0), &json!(1)), "{again}");
    suite.stack.queue_is_empty().await;
}

pub(crate) async fn doctor_names_a_setting_that_a_hand_changed(suite: &Suite) {
    let failed = |report: &Value| -> Vec<String> {
        let checks = report["checks"].as_array().unwrap().iter();
        let failed = checks.filter(|check| check["grade"] == "fail");
        failed.map(|check| check["what"].as_str().unwrap().to_owned()).collect()
    };
    let before = failed(&oncehook(suite, &["doctor"]).1);
    let url = suite.stack.env.get("ONCEHOOK_QUEUE_URL").unwrap();
    let name = aws_sdk_sqs::types::QueueAttributeName::VisibilityTimeout;
    let set = |seconds: &str| {
        let call = suite.stack.aws.sqs().set_queue_attributes().queue_url(url);
        call.attributes(name.clone(), seconds).send()
    };
    set("30").await.unwrap();
    let (code, report) = oncehook(suite, &["doctor"]);
    set("180").await.unwrap();
    let wanted = "queue: visibility timeout";
    assert!(!before.contains(&wanted.to_owned()), "{before:?}");
    assert_eq!(code, Some(1));
    assert!(failed(&report).contains(&wanted.to_owned()), "{report}");
    let checks = report["checks"].as_array().unwrap();
    let missed = checks.iter().find(|check| check["what"] == "missed events of github").unwrap();
    assert_eq!(missed["grade"], "warn", "the key is stored, the hook's address is not configured");
    assert!(missed["found"].as_str().unwrap().contains("the address of its list"), "{missed}");
    let text = report.to_string();
    assert!(
        !text.contains("whsec_") && text.contains("usable key"),
        "secrets are counted, not shown"
    );
}
