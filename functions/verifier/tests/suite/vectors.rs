//! Every vector of a provider that has a preset, with the verdict and the cause it names.

use std::collections::BTreeMap;

use serde_json::Value;
use verifier::{Headers, Key, Preset, Rejection, Request, Verified, preset_names};

use crate::support::preset;

const VECTORS: &str = include_str!("../../../../tests/vectors/signatures.json");

/// The vectors of one provider.
pub(crate) fn of(provider: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    vectors.into_iter().filter(|vector| vector["provider"] == provider).collect()
}

/// The verdict on one vector.
pub(crate) fn verdict(preset: &Preset, vector: &Value) -> Result<Verified, Rejection> {
    let headers: Headers = vector["headers"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let url = vector.get("url").and_then(Value::as_str).unwrap_or("");
    let (public_url, query) = url.split_once('?').unwrap_or((url, ""));
    let path = public_url
        .split_once("://")
        .and_then(|(_, rest)| rest.find('/').map(|slash| &rest[slash..]))
        .unwrap_or("/");
    let request = Request {
        method: vector.get("method").and_then(Value::as_str).unwrap_or("POST"),
        path,
        query,
        public_url: Some(public_url).filter(|url| !url.is_empty()),
        headers: &headers,
        body: vector["body"].as_str().unwrap().as_bytes(),
    };
    let now_ms = vector["now"].as_u64().unwrap() * 1_000;
    preset.verify(&request, &keys(preset, vector), now_ms)
}

fn keys(preset: &Preset, vector: &Value) -> Vec<Key> {
    if let Some(jwk) = vector.get("jwk") {
        let kid = jwk["kid"].as_str().unwrap();
        return vec![preset.key(kid, &jwk.to_string()).unwrap()];
    }
    let texts: Vec<&str> = match &vector["secret"] {
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap()).collect(),
        other => vec![other.as_str().unwrap()],
    };
    let keys = texts
        .iter()
        .enumerate()
        .map(|(index, text)| preset.key(&format!("k{index}"), text).unwrap());
    keys.chain(certificate(preset, vector)).collect()
}

/// The certificate that a vector brings along, vouched for at the URL its request points to. URLs
/// that no certificate may come from are refused before any is looked for.
fn certificate(preset: &Preset, vector: &Value) -> Option<Key> {
    let pem = vector.get("public_key_pem")?.as_str()?;
    let url = vector["headers"]["PAYPAL-CERT-URL"].as_str()?;
    Some(preset.pinned_certificate(url, pem.as_bytes()).unwrap())
}

/// Whether a cause is what the vector's reason describes.
fn fits(reason: &str, rejection: &Rejection) -> bool {
    let cause = rejection.cause();
    if reason.starts_with("missing") || reason.starts_with("empty") {
        return matches!(cause, "header_missing" | "field_missing");
    }
    match reason {
        "mismatch" | "signature" | "creds" => matches!(
            cause,
            "no_signature_matched"
                | "header_malformed"
                | "body_malformed"
                | "scheme_refused"
                | "header_repeated"
        ),
        "timestamp outside tolerance" | "old" => {
            matches!(cause, "too_old" | "too_new" | "header_malformed")
        }
        "prefix" | "scheme" | "alg" | "algorithm" | "no usable signature version" => {
            cause == "scheme_refused"
        }
        "cert url" => cause == "certificate_url_refused",
        "no matching public key" | "kid" => cause == "key_unknown",
        "bodySHA256" | "body hash" => cause == "body_altered",
        "unsigned body" => cause == "body_not_covered",
        "iss" => cause == "claim_refused",
        "bad timestamp" => matches!(cause, "header_malformed" | "header_repeated"),
        "need exactly one timestamp" | "own headers must be signed" => cause == "header_malformed",
        _ => true,
    }
}

/// Checks the vectors of a provider against a preset; returns how many there are.
pub(crate) fn check(preset: &Preset, provider: &str) -> Result<usize, Vec<String>> {
    let vectors = of(provider);
    let mut failures = Vec::new();
    for vector in &vectors {
        let verdict = verdict(preset, vector);
        let expected = vector["expect"] == "accept";
        let reason = vector.get("reject_reason").and_then(Value::as_str);
        let explained = match (&verdict, reason) {
            (Err(rejection), Some(reason)) => fits(reason, rejection),
            (_, _) => true,
        };
        if verdict.is_ok() != expected || !explained {
            failures.push(format!("{} ({reason:?}): {verdict:?}", vector["id"]));
        }
    }
    if failures.is_empty() { Ok(vectors.len()) } else { Err(failures) }
}

#[test]
fn every_vector_of_a_known_provider_has_its_verdict_and_its_cause() {
    let mut failures = Vec::new();
    let mut passed = BTreeMap::new();
    for name in preset_names() {
        match check(&preset(name), name) {
            Ok(count) => {
                passed.insert(name, count);
            }
            Err(failed) => failures.extend(failed),
        }
    }
    let all: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let known: usize = passed.values().sum();
    for (name, count) in &passed {
        println!("{name}: {count} passed");
    }
    println!("{known} passed, {} skipped for want of a preset", all.len() - known);
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(known, 167, "no vector was lost on the way");
}
