//! PayPal on the deployed stack: the receiver fetches the certificate that a delivery points to.
//!
//! The certificate is made for the run and lies on this machine, where a stack whose stage is
//! `local` may look for one beside PayPal's own addresses.

use crate::suite::Suite;
use ledger::{Millis, Outcome, Status};
use serde_json::json;
use support::{Call, now_ms, prove};

const SOURCE: &str = "paypal";

/// A capture event of one's own.
fn capture(event: &str, capture: &str, status: &str) -> String {
    json!({"id": event, "event_type": "PAYMENT.CAPTURE.COMPLETED", "resource_type": "capture",
        "create_time": "2026-11-30T12:00:00.000Z", "resource": {"id": capture, "status": status,
        "amount": {"currency_code": "EUR", "value": "9.00"}}})
    .to_string()
}

/// The deliveries, signed under these transmission ids with one key, whose certificate lies in
/// `file` from now on.
fn signed(suite: &Suite, file: &str, deliveries: &[(String, String)]) -> Vec<Call> {
    let url = suite.certificates.put(file, "");
    let proven = prove(suite.stack.signer.key_text(SOURCE), &url, deliveries).unwrap();
    suite.certificates.put(file, &proven.certificate);
    let call = |(headers, (_, body)): (Vec<_>, &(String, String))| {
        Call::to_source(SOURCE, headers, body.clone().into_bytes())
    };
    proven.headers.into_iter().zip(deliveries).map(call).collect()
}

pub(crate) async fn a_paypal_delivery_is_proven_by_the_certificate_it_points_to(suite: &Suite) {
    let since = now_ms();
    let (first, second) = (suite.id("WH"), suite.id("WH"));
    let (one, other) = (suite.id("CAP"), suite.id("CAP"));
    let transmission = suite.id("transmission");
    let file = format!("v1/notifications/certs/{}", suite.id("CERT"));
    let bodies = [capture(&first, &one, "COMPLETED"), capture(&second, &other, "COMPLETED")];
    let calls =
        signed(suite, &file, &bodies.each_ref().map(|body| (transmission.clone(), body.clone())));

    let mut altered = calls[0].clone();
    let at = bodies[0].find("9.00").unwrap();
    altered.body[at] ^= 1;
    assert_eq!(suite.stack.http.post(altered).await.status, 401, "one bit of the amount");
    let key = format!("{SOURCE}#{first}");
    assert!(suite.stack.row(&key).await.is_none());

    for _ in 0..2 {
        let answer = suite.stack.http.post(calls[0].clone()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let row = suite.stack.row_in(&key, Status::Settled).await;
    assert_eq!(row.life.outcome, Some(Outcome::Applied));
    let entity = suite.stack.entity(&format!("{SOURCE}#capture#{one}")).await.unwrap();
    assert_eq!(entity.state.get("amount"), Some(&json!("9.00")));
    let asked = suite.certificates.times_asked(&file);
    assert!(asked >= 1, "the certificate was never fetched");

    // The scheme proves a transmission; another event under it is not worked.
    assert_eq!(suite.stack.http.post(calls[1].clone()).await.status, 200);
    assert!(suite.stack.row(&format!("{SOURCE}#{second}")).await.is_none());
    let rows = suite.stack.rows(Millis(since), Millis(now_ms())).await.unwrap();
    let beside = format!("#{SOURCE}#{second}");
    let kept = rows.iter().find(|row| row.evidence.key.as_str().ends_with(&beside)).unwrap();
    assert!(kept.evidence.key.as_str().starts_with("_c#"), "{}", kept.evidence.key);
    assert_eq!(kept.life.status, Status::Dead);
    let failure = kept.life.failure.as_ref().unwrap();
    assert_eq!(failure.error, "the same signed transmission brought another event before");
    assert_eq!(suite.stack.body(kept).await, bodies[1].as_bytes());
    assert!(suite.stack.entity(&format!("{SOURCE}#capture#{other}")).await.is_none());

    let mut elsewhere = calls[0].clone();
    for (name, value) in &mut elsewhere.headers {
        if name == "paypal-cert-url" {
            *value = format!("http://localhost:1/{file}").into_bytes();
        }
    }
    assert_eq!(suite.stack.http.post(elsewhere).await.status, 401, "a foreign address");
}
