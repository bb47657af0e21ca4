//! The reconciler, deployed: what never arrived is claimed, said and counted.

use crate::{
    command,
    suite::{STRIPE, Suite},
};
use ledger::{Origin, Status};
use serde_json::{Value, json};
use support::now_ms;

fn event(id: &str, at_ms: u64) -> Value {
    json!({"id": id, "object": "event", "type": "charge.succeeded", "created": at_ms / 1_000,
        "livemode": true, "data": {"object": {"id": "ch_1"}}})
}

/// Lists `count` events of an hour ago, of which each fifth was never delivered.
async fn with_a_gap(suite: &Suite, count: usize) -> Vec<String> {
    let run = suite.id("gap");
    let begin = now_ms() - 3_600_000;
    let events: Vec<Value> =
        (0..count).map(|n| event(&format!("{run}_{n}"), begin + n as u64 * 1_000)).collect();
    for (_, event) in events.iter().enumerate().filter(|(n, _)| n % 5 != 0) {
        let answer = suite.post_bytes(STRIPE, &[], event.to_string().into_bytes()).await;
        assert_eq!(answer.status, 200);
    }
    suite.providers.stripe.with(|api| {
        api.items = events.iter().rev().cloned().collect();
        api.trouble = None;
    });
    (0..count).step_by(5).map(|n| format!("{STRIPE}#{run}_{n}")).collect()
}

pub(crate) async fn a_gap_is_claimed_said_and_counted(suite: &Suite) {
    let missing = with_a_gap(suite, 150).await;
    let said = suite.invoke("ONCEHOOK_RECONCILER_FUNCTION", &json!({}));
    assert!(said.is_null(), "the reconciler failed: {said}");
    for key in &missing {
        let row = suite.stack.row_in(key, Status::Settled).await;
        assert_eq!(row.evidence.origin, Origin::Reconcile);
    }
    let lines = suite.logs("reconciler");
    let sentence = "Stripe says 150, ledger holds 120, 30 missing, ";
    let line = lines.iter().find(|line| line.contains(sentence));
    let line = line.unwrap_or_else(|| panic!("no {sentence:?} in {lines:#?}"));
    let line: Value = serde_json::from_str(line).unwrap();
    let metrics = ["ReconcileMissing", "ReconcileHeld"].map(|name| line[name].as_f64());
    assert_eq!(metrics, [Some(30.0), Some(120.0)]);
    assert_eq!((&line["level"], &line["source"]), (&json!("ERROR"), &json!(STRIPE)));
    let left_out = "adyen (Adyen lists no past events";
    assert!(lines.iter().any(|line| line.contains(left_out)), "{lines:#?}");

    let said = suite.invoke("ONCEHOOK_RECONCILER_FUNCTION", &json!({}));
    assert!(said.is_null(), "the reconciler failed: {said}");
    let lines = suite.logs("reconciler");
    let sentence = "Stripe says 150, ledger holds 150, 0 missing, ";
    assert!(lines.iter().any(|line| line.contains(sentence)), "{lines:#?}");
    suite.stack.queue_is_empty().await;
}

pub(crate) async fn a_person_compares_one_source_now(suite: &Suite) {
    let missing = with_a_gap(suite, 50).await;
    let arguments = ["reconcile", "--source", STRIPE, "--since", "2h"];
    let looked = command::run(suite, &[arguments.as_slice(), &["--dry-run"]].concat()).await;
    assert!(looked.out.contains("Stripe says 50, ledger holds 40, 10 missing"), "{looked:?}");
    assert_eq!(looked.code, Some(1));
    assert!(suite.stack.row(&missing[0]).await.is_none(), "a dry run claims nothing");
    let claimed = command::run(suite, &[arguments.as_slice(), &["--json"]].concat()).await;
    assert_eq!((&claimed.json()["missing"], claimed.code), (&json!(10), Some(1)), "{claimed:?}");
    let again = command::run(suite, &arguments).await;
    assert!(again.out.contains("Stripe says 50, ledger holds 50, 0 missing"), "{again:?}");
    assert_eq!(again.code, Some(0));
    let none = command::run(suite, &["reconcile", "--source", "adyen"]).await;
    assert!(none.err.contains("Adyen lists no past events"), "{none:?}");
    assert_eq!(none.code, Some(2));
    suite.stack.queue_is_empty().await;
}
