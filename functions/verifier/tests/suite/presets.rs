//! The tables: what the compiled-in ones promise, and what is said about a mistake in one.

use verifier::{Preset, PresetDefect, preset_names, preset_table};

use crate::support::{overridden, preset};

fn defect(overrides: &str) -> PresetDefect {
    let text = format!("{WHOLE}\n{overrides}");
    Preset::from_table(&text.parse().unwrap()).unwrap_err()
}

const WHOLE: &str = "name = \"custom\"";
const VERIFY: &str = r#"
[verify]
scheme = "signature"
header = "x-signature"
algorithm = "hmac-sha256"
encoding = "hex"
key = "text"
"#;
const EVENT: &str = r#"
[event]
id = "/id"
identity = "body"
"#;

#[track_caller]
fn assert_defect(overrides: &str, at: &str, nearest: Option<&str>) {
    let defect = defect(overrides);
    assert_eq!(defect.at, at, "{defect}");
    assert_eq!(defect.nearest.as_deref(), nearest, "{defect}");
}

#[test]
fn every_compiled_in_preset_is_valid_and_bears_its_own_name() {
    let names: Vec<&str> = preset_names().collect();
    assert_eq!(names.len(), 20);
    assert!(names.is_sorted());
    for name in names {
        let preset = preset(name);
        assert_eq!(preset.name(), name);
        assert!(!preset.title().is_empty());
        assert!(preset.methods().contains(&"POST".to_owned()));
    }
    assert!(preset_table("unknown").is_none());
}

#[test]
fn no_preset_keeps_a_header_that_proves_something() {
    for name in preset_names() {
        let preset = preset(name);
        for header in preset.signature_headers() {
            assert!(!preset.kept_headers().contains(&header), "{name} keeps {header}");
        }
        for kept in preset.kept_headers() {
            let telling = ["signature", "authorization", "hmac", "token", "cookie", "-sig"];
            let idempotency = kept == "i-twilio-idempotency-token";
            assert!(
                idempotency || !telling.iter().any(|word| kept.contains(word)),
                "{name} keeps {kept}"
            );
        }
    }
}

#[test]
fn a_preset_says_what_it_does_not_authenticate() {
    for name in ["github", "shopify", "chargebee", "paypal", "adyen", "mollie-classic", "twilio"] {
        assert!(!preset(name).unauthenticated().is_empty(), "{name}");
    }
    assert!(preset("stripe").unauthenticated().is_empty());
    assert!(preset("standard-webhooks").unauthenticated().is_empty());
}

#[test]
fn what_a_source_must_configure_is_known_from_its_preset() {
    for name in preset_names() {
        let preset = preset(name);
        assert_eq!(preset.needs_key(), name != "mollie-classic", "{name}");
    }
}

#[test]
fn a_whole_description_of_its_own_is_six_lines_of_verification_and_two_of_events() {
    let text = format!("{WHOLE}\n{VERIFY}\n{EVENT}");
    let preset = Preset::from_table(&text.parse().unwrap()).unwrap();
    assert_eq!(preset.methods(), ["POST"]);
    assert_eq!(preset.answer().status, 200);
    assert!(preset.retries());
}

#[test]
fn slips_are_named_with_the_nearest_word() {
    let slip = |from: &str, to: &str| format!("{VERIFY}{EVENT}").replace(from, to);
    assert_defect(&slip("\"hex\"", "\"hexx\""), "verify.encoding", Some("hex"));
    assert_defect(&slip("hmac-sha256", "hmac-sha265"), "verify.algorithm", Some("hmac-sha256"));
    assert_defect(
        &slip("scheme = \"signature\"", "scheme = \"signatur\""),
        "verify.scheme",
        Some("signature"),
    );
    assert_defect(&slip("encoding =", "encodng ="), "verify.encoding", None);
    assert_defect(&slip("identity = \"body\"", "identiy = \"body\""), "event.identity", None);
    assert_defect(&format!("retrys = true\n{VERIFY}{EVENT}"), "retrys", Some("retries"));
    let defect = defect(&slip("\"hex\"", "\"hexx\""));
    assert_eq!(
        defect.to_string(),
        "verify.encoding: found `hexx`, allowed hex, base64; did you mean `hex`?"
    );
}

#[test]
fn missing_and_mistyped_keys_are_named() {
    for (overrides, at) in [
        (EVENT.to_owned(), "verify"),
        (VERIFY.to_owned(), "event"),
        (format!("{VERIFY}{EVENT}").replace("header = \"x-signature\"\n", ""), "verify.header"),
        (format!("{VERIFY}{EVENT}").replace("\"x-signature\"", "\"x signature\""), "verify.header"),
        (format!("{VERIFY}{EVENT}").replace("\"x-signature\"", "7"), "verify.header"),
        (format!("{VERIFY}{EVENT}").replace("\"x-signature\"", "\"\""), "verify.header"),
        (format!("{VERIFY}{EVENT}").replace("\"/id\"", "\"id\""), "event.id"),
        (format!("{VERIFY}{EVENT}").replace("\"/id\"", "[]"), "event.id"),
        (format!("{VERIFY}{EVENT}").replace("\"/id\"", "[1]"), "event.id"),
        (format!("{VERIFY}{EVENT}").replace("\"/id\"", "{ hash = [] }"), "event.id.hash"),
        (format!("{VERIFY}{EVENT}").replace("\"/id\"", "\"/a~2b\""), "event.id"),
        (format!("{VERIFY}{EVENT}").replace("\"body\"", "\"bytes\""), "event.identity"),
        (format!("methods = [\"SEND\"]\n{VERIFY}{EVENT}"), "methods"),
        (format!("kept_headers = [\"x-signature\"]\n{VERIFY}{EVENT}"), "kept_headers"),
        (format!("kept_headers = [\"Authorization\"]\n{VERIFY}{EVENT}"), "kept_headers"),
        (format!("{VERIFY}{EVENT}[answer]\nstatus = 410\n"), "answer.status"),
        (format!("{VERIFY}{EVENT}[answer]\nstatus = 199\n"), "answer.status"),
        (format!("{VERIFY}{EVENT}batch = {{ at = \"/x\", max = 501 }}\n"), "event.batch.max"),
        (format!("{VERIFY}{EVENT}batch = {{ at = \"x\" }}\n"), "event.batch.at"),
        (format!("{VERIFY}{EVENT}[handshake]\nprobe = [\"POST\"]\n"), "handshake.probe"),
        (
            format!("{VERIFY}{EVENT}[handshake.echo]\nat = \"/t\"\nis = \"x\"\n"),
            "handshake.echo.value",
        ),
    ] {
        assert_defect(&overrides, at, None);
    }
}

#[test]
fn a_description_that_cannot_hold_is_refused() {
    let signed = |text: &str| format!("{VERIFY}signed = \"{text}\"\n{EVENT}");
    for (overrides, at) in [
        (signed("{header.x-id}"), "verify.signed"),
        (signed("{header.x-id}{body}"), "verify.signed"),
        (signed("{field.t}.{body}"), "verify.signed"),
        (signed("{body"), "verify.signed"),
        (signed("body}"), "verify.signed"),
        (signed("{host}.{body}"), "verify.signed"),
        (signed("{header.}.{body}"), "verify.signed"),
        (
            format!("{VERIFY}time = {{ at = \"header.x-time\", unit = \"s\" }}\n{EVENT}"),
            "verify.time",
        ),
        (format!("{VERIFY}time = {{ at = \"body\", unit = \"s\" }}\n{EVENT}"), "verify.time.at"),
        (
            format!("{VERIFY}time = {{ at = \"header.x\", unit = \"s\", past_s = 0 }}\n{EVENT}"),
            "verify.time.past_s",
        ),
    ] {
        assert_eq!(defect(&overrides).at, at, "{overrides}");
    }
}

#[test]
fn a_time_without_a_separator_is_pinned_by_its_length() {
    let text = format!(
        "{WHOLE}\n{VERIFY}signed = \"{{header.x-time}}{{body}}\"\ntime = {{ at = \"header.x-time\", unit = \"s\" }}\n{EVENT}"
    );
    assert!(Preset::from_table(&text.parse().unwrap()).is_ok());
}

#[test]
fn any_key_of_a_preset_can_be_overridden() {
    let preset = overridden(
        "paddle",
        "retries = false\n[verify.time]\npast_s = 5\n[answer]\nstatus = 202\nbody = \"ok\"",
    );
    assert!(!preset.retries());
    assert_eq!((preset.answer().status, preset.answer().body.as_slice()), (202, &b"ok"[..]));
}

#[test]
fn entities_are_suggested_where_a_provider_has_them() {
    let stripe = preset("stripe");
    let facts = stripe.entity().unwrap();
    assert_eq!(facts.id, "/data/object/id");
    assert_eq!(facts.version, Some(("/created".to_owned(), "s".to_owned())));
}

#[test]
fn the_example_in_the_reference_is_a_whole_description() {
    let reference = include_str!("../../presets/README.md");
    let (_, rest) = reference.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let preset = Preset::from_table(&example.parse().unwrap()).unwrap();
    assert_eq!(preset.name(), "acme");
    assert_eq!(preset.answer().body, b"ok");
}
