//! The data language describes providers that have no preset, and their vectors agree.
//!
//! These tables are what a team writes for a source of its own.

use verifier::Preset;

use crate::support::{Delivery, NOW_MS};
use crate::vectors::check;

const EVENT: &str = r#"
[event]
id = { hash = ["/id"] }
identity = "body"
"#;

fn custom(verify: &str) -> Preset {
    let text = format!("name = \"custom\"\n[verify]\n{verify}\n{EVENT}");
    Preset::from_table(&text.parse().unwrap()).unwrap()
}

/// A plain-body HMAC: header, prefix, algorithm, encoding.
fn plain(header: &str, prefix: &str, algorithm: &str, encoding: &str) -> Preset {
    custom(&format!(
        "scheme = \"signature\"\nheader = \"{header}\"\nprefix = \"{prefix}\"\n\
         algorithm = \"{algorithm}\"\nencoding = \"{encoding}\"\nkey = \"text\""
    ))
}

#[track_caller]
fn agrees(preset: &Preset, provider: &str) {
    match check(preset, provider) {
        Ok(count) => assert!(count > 0, "{provider} has vectors"),
        Err(failures) => panic!("{provider}: {failures:#?}"),
    }
}

#[test]
fn plain_body_schemes_are_four_words() {
    for (provider, header, prefix, algorithm, encoding) in [
        ("asana", "x-hook-signature", "", "hmac-sha256", "hex"),
        ("bitbucket", "x-hub-signature", "sha256=", "hmac-sha256", "hex"),
        ("bitbucket-server", "x-hub-signature", "sha256=", "hmac-sha256", "hex"),
        ("coinbase-commerce", "x-cc-webhook-signature", "", "hmac-sha256", "hex"),
        ("dropbox", "x-dropbox-signature", "", "hmac-sha256", "hex"),
        ("intercom", "x-hub-signature", "sha1=", "hmac-sha1", "hex"),
        ("jira", "x-hub-signature", "sha256=", "hmac-sha256", "hex"),
        ("lemonsqueezy", "x-signature", "", "hmac-sha256", "hex"),
        ("meta", "x-hub-signature-256", "sha256=", "hmac-sha256", "hex"),
        ("notion", "x-notion-signature", "sha256=", "hmac-sha256", "hex"),
        ("quickbooks", "intuit-signature", "", "hmac-sha256", "base64"),
        ("sentry", "sentry-hook-signature", "", "hmac-sha256", "hex"),
        ("typeform", "typeform-signature", "sha256=", "hmac-sha256", "base64"),
        ("vercel", "x-vercel-signature", "", "hmac-sha1", "hex"),
        ("woocommerce", "x-wc-webhook-signature", "", "hmac-sha256", "base64"),
        ("x-twitter", "x-twitter-webhooks-signature", "sha256=", "hmac-sha256", "base64"),
        ("xero", "x-xero-signature", "", "hmac-sha256", "base64"),
    ] {
        agrees(&plain(header, prefix, algorithm, encoding), provider);
    }
}

#[test]
fn templates_with_a_signed_time() {
    agrees(
        &custom(
            r#"
scheme = "signature"
header = "calendly-webhook-signature"
layout = "pairs"
signatures = { v1 = "hmac-sha256" }
encoding = "hex"
signed = "{field.t}.{body}"
time = { at = "field.t", unit = "s", past_s = 180 }
key = "text"
"#,
        ),
        "calendly",
    );
    agrees(
        &custom(
            r#"
scheme = "signature"
header = "x-buildkite-signature"
layout = "pairs"
signatures = { signature = "hmac-sha256" }
encoding = "hex"
signed = "{field.timestamp}.{body}"
time = { at = "field.timestamp", unit = "s" }
key = "text"
"#,
        ),
        "buildkite",
    );
    agrees(
        &custom(
            r#"
scheme = "signature"
header = "x-zm-signature"
prefix = "v0="
algorithm = "hmac-sha256"
encoding = "hex"
signed = "v0:{header.x-zm-request-timestamp}:{body}"
time = { at = "header.x-zm-request-timestamp", unit = "s" }
key = "text"
"#,
        ),
        "zoom",
    );
}

#[test]
fn versioned_lists_over_the_body() {
    for (provider, header) in
        [("circleci", "circleci-signature"), ("pagerduty", "x-pagerduty-signature")]
    {
        agrees(
            &custom(&format!(
                r#"
scheme = "signature"
header = "{header}"
layout = "pairs"
signatures = {{ v1 = "hmac-sha256" }}
encoding = "hex"
key = "text"
"#
            )),
            provider,
        );
    }
}

#[test]
fn public_keys_over_the_same_templates() {
    agrees(
        &custom(
            r#"
scheme = "signature"
header = "x-signature-ed25519"
algorithm = "ed25519"
encoding = "hex"
signed = "{header.x-signature-timestamp}{body}"
time = { at = "header.x-signature-timestamp", unit = "s", past_s = 300 }
key = "ed25519"
"#,
        ),
        "discord",
    );
    agrees(
        &custom(
            r#"
scheme = "signature"
header = "x-twilio-email-event-webhook-signature"
algorithm = "ecdsa-p256-sha256"
encoding = "base64"
signed = "{header.x-twilio-email-event-webhook-timestamp}{body}"
time = { at = "header.x-twilio-email-event-webhook-timestamp", unit = "s", past_s = 86400 }
key = "p256"
"#,
        ),
        "sendgrid",
    );
}

#[test]
fn tokens_that_carry_a_hash_of_the_body() {
    agrees(
        &custom(
            r#"
scheme = "jwt"
header = "plaid-verification"
algorithm = "ES256"
body_hash = "request_body_sha256"
past_s = 300
match_kid = true
"#,
        ),
        "plaid",
    );
    agrees(
        &custom(
            r#"
scheme = "jwt"
header = "x-webhook-signature"
algorithm = "HS256"
body_hash = "sha256"
issuer = "netlify"
"#,
        ),
        "netlify",
    );
}

#[test]
fn a_canonical_request() {
    agrees(
        &custom(
            r#"
scheme = "canonical"
header = "x-contentful-signature"
signed_headers = "x-contentful-signed-headers"
time_header = "x-contentful-timestamp"
past_s = 30
"#,
        ),
        "contentful",
    );
}

#[test]
fn shared_tokens() {
    for (provider, header) in
        [("gitlab", "x-gitlab-token"), ("okta", "authorization"), ("auth0", "authorization")]
    {
        agrees(&custom(&format!("scheme = \"token\"\nheader = \"{header}\"")), provider);
    }
}

#[test]
fn a_signed_field_that_stands_twice_is_no_field_of_the_signature() {
    let bare = plain("x-sig", "", "hmac-sha256", "hex");
    let paired = custom(
        r#"
scheme = "signature"
header = "x-sig"
layout = "pairs"
signatures = { v1 = "hmac-sha256" }
encoding = "hex"
signed = "{field.id}.{body}"
key = "text"
"#,
    );
    let key = bare.key("k1", "a secret of some length").unwrap();
    let signed = Delivery::post("one.{}").signed(&bare, &key, NOW_MS);
    let mac = signed.headers.iter().next().unwrap().1.to_owned();
    let sent = |fields: &str| Delivery::post("{}").header("x-sig", &format!("{fields},v1={mac}"));
    assert_eq!(sent("id=one").cause(&paired, std::slice::from_ref(&key)), "verified");
    for fields in ["id=one,id=two", "id=two,id=one", "id=one,id=one"] {
        assert_ne!(sent(fields).cause(&paired, std::slice::from_ref(&key)), "verified", "{fields}");
    }
}
