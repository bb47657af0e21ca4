//! What is authentic is accepted, whoever signed it and whatever its bytes, and comes back whole.

use crate::{
    suite::{STRIPE, Suite},
    vendors::{ask, signed_call},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use ledger::{Outcome, Row, Status};
use serde_json::{Value, json};
use support::{Call, Sample, sha256_hex};

/// A payload to be signed by a provider's own package.
struct Foreign {
    sdk: &'static str,
    source: &'static str,
    id: String,
    payload: String,
}

/// Signed by the provider's own package: what a server of theirs would send.
fn signed_by_sdk(suite: &Suite, foreign: &Foreign) -> Call {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let wish = json!({"do": "sign", "id": foreign.id});
    let said = ask(suite, foreign.sdk, foreign.source, &wish, &foreign.payload);
    signed_call(foreign.source, headers, &said)
}

pub(crate) async fn official_sdks_are_accepted_and_their_bytes_kept(suite: &Suite) {
    let (stripe, stripe_id, _) = suite.subscription("stripe_subscription_created");
    let message = suite.id("msg");
    let invoice =
        Sample::read("standard-webhooks_invoice_paid").unwrap().with("/data/id", suite.id("inv"));
    // Spaces, line ends and characters of every width, which no re-serialisation would keep.
    let padded = |sample: &Sample| {
        let json: Value = serde_json::from_slice(&sample.bytes()).unwrap();
        format!("{}\n ", serde_json::to_string_pretty(&json).unwrap())
            .replace("EUR", "\u{20ac}\u{1f680}\\u00e9")
    };
    let events = [
        Foreign { sdk: "stripe", source: STRIPE, payload: padded(&stripe), id: stripe_id },
        Foreign {
            sdk: "standardwebhooks",
            source: "standard-webhooks",
            payload: padded(&invoice),
            id: message,
        },
    ];
    for foreign in events {
        let call = signed_by_sdk(suite, &foreign);
        let mut flipped = call.clone();
        let middle = flipped.body.len() / 2;
        flipped.body[middle] ^= 1;
        let answer = suite.stack.http.post(flipped).await;
        assert_eq!(answer.status, 401, "{}: one flipped bit", foreign.sdk);

        let answer = suite.stack.http.post(call).await;
        assert_eq!(answer.status, 200, "{}: {}", foreign.sdk, answer.text);
        let key = format!("{}#{}", foreign.source, foreign.id);
        let row = suite.stack.row_in(&key, Status::Settled).await;
        assert_eq!(row.life.outcome, Some(Outcome::Applied), "{key}");
        same_bytes(suite, &row, foreign.payload.as_bytes()).await;
        assert!(
            row.evidence.headers.keys().all(|name| !name.contains("signature")),
            "{key} keeps a signature"
        );
    }
}

async fn same_bytes(suite: &Suite, row: &Row, sent: &[u8]) {
    let key = &row.evidence.key;
    assert_eq!(row.evidence.body.len, sent.len() as u64, "{key}");
    assert_eq!(hex::encode(row.evidence.body.sha256), sha256_hex(sent), "{key}");
    assert!(suite.stack.body(row).await == sent, "{key}: the body read back is not the body sent");
}

/// The gateway hands `text/*`, JSON, XML and JavaScript over as text and all else in base64; only
/// its flag says which.
pub(crate) async fn the_base64_flag_decides_how_a_body_is_read(suite: &Suite) {
    let form = "payload=%7B%22zen%22%3A%22x%22%2C%22repository%22%3A%7B%22id%22%3A7%7D%7D";
    let json = r#"{"zen":"x","repository":{"id":7}}"#;
    let kinds = [
        (Some("application/x-www-form-urlencoded"), form),
        (None, json),
        (Some("application/vnd.provider+json"), json),
        (Some("application/json"), json),
        (Some("text/plain"), json),
    ];
    for (content_type, body) in kinds {
        for base64 in [true, false] {
            let id = suite.id("guid");
            let mut headers = vec![("x-github-event", "ping"), ("x-github-delivery", id.as_str())];
            headers.extend(content_type.map(|kind| ("content-type", kind)));
            let call = suite.signed("github", &headers, body.as_bytes().to_vec());
            let answer = suite.invoke("ONCEHOOK_RECEIVER_FUNCTION", &gateway_event(&call, base64));
            assert_eq!(
                answer.get("statusCode"),
                Some(&json!(200)),
                "{content_type:?}, base64 {base64}: {answer}"
            );
            let row = suite.stack.row_in(&format!("github#{id}"), Status::Settled).await;
            same_bytes(suite, &row, body.as_bytes()).await;

            // The same over HTTP, where the gateway chooses.
            let id = suite.id("guid");
            headers[1].1 = id.as_str();
            let answer = suite.post_bytes("github", &headers, body.as_bytes().to_vec()).await;
            assert_eq!(answer.status, 200, "{content_type:?}: {}", answer.text);
            let row = suite.stack.row_in(&format!("github#{id}"), Status::Settled).await;
            same_bytes(suite, &row, body.as_bytes()).await;
        }
    }
}

/// A request as API Gateway hands it to the function, payload format 2.0.
pub(crate) fn gateway_event(call: &Call, base64: bool) -> Value {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let headers: serde_json::Map<String, Value> =
        call.headers.iter().map(|(name, value)| (name.clone(), text(value).into())).collect();
    json!({
        "version": "2.0",
        "routeKey": "ANY /webhooks/{source}",
        "rawPath": call.path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "000000000000", "apiId": "test", "domainName": "test", "domainPrefix": "test",
            "http": {
                "method": call.method, "path": call.path, "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1", "userAgent": "test",
            },
            "requestId": "test", "routeKey": "ANY /webhooks/{source}", "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000", "timeEpoch": 1_767_225_600_000_u64,
        },
        "isBase64Encoded": base64,
        "body": if base64 { STANDARD.encode(&call.body) } else { text(&call.body) },
    })
}

/// 1 MB; 4.5 MiB, the promise; and 4.4 MB of bytes that travel as base64, 5.9 MB of it.
pub(crate) async fn megabytes_come_back_byte_for_byte(suite: &Suite) {
    for (bytes, content_type) in [
        (1_000_000, "application/json"),
        (1_000_000, "application/octet-stream"),
        (4_718_592, "application/json"),
        (4_400_000, "application/octet-stream"),
    ] {
        let id = suite.id("big");
        let headers = [
            ("x-github-event", "big"),
            ("x-github-delivery", id.as_str()),
            ("content-type", content_type),
        ];
        let body = incompressible_json(bytes);
        let answer = suite.post_bytes("github", &headers, body.clone()).await;
        assert_eq!(answer.status, 200, "{bytes} bytes of {content_type}: {}", answer.text);
        let row = suite.stack.row_in(&format!("github#{id}"), Status::Settled).await;
        assert!(
            row.evidence.body.chunks > 1,
            "{bytes} bytes lie in {} chunks",
            row.evidence.body.chunks
        );
        same_bytes(suite, &row, &body).await;
    }
}

/// JSON of about this size that hardly compresses, so that it needs chunks.
fn incompressible_json(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = Vec::with_capacity(bytes);
    while noise.len() < bytes / 4 * 3 {
        // xorshift64: noise that is the same in every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    json!({"blob": STANDARD.encode(noise)}).to_string().into_bytes()
}
