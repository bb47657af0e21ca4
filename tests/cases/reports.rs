//! The reports, and where each of them is answered.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::{collections::BTreeMap, sync::LazyLock};
use support::World;
use verifier::Answer;

static REPORTS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let reports: Vec<Value> = serde_json::from_str(include_str!("field-reports.json")).unwrap();
    let named = |report: Value| (report["id"].as_str().unwrap().to_owned(), report);
    reports.into_iter().map(named).collect()
});

/// The input of a report.
pub(crate) fn input(id: &str) -> &'static Value {
    &REPORTS[id]["minimal_input"]
}

/// A text of a report's input.
pub(crate) fn text(input: &'static Value, pointer: &str) -> &'static str {
    input.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer}"))
}

/// The bytes of a gateway event, as its flag says: the edge's decoding, which the end-to-end suite
/// proves on the deployed function.
pub(crate) fn bytes(event: &Value) -> Vec<u8> {
    let body = event.get("body").and_then(Value::as_str).unwrap_or_default();
    if event["isBase64Encoded"] == true {
        STANDARD.decode(body).unwrap()
    } else {
        body.as_bytes().to_vec()
    }
}

/// The headers of a gateway event.
pub(crate) fn headers(event: &Value) -> Vec<(&str, &str)> {
    let headers = event["headers"].as_object().unwrap();
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect()
}

/// Posts a report's gateway event to the source its path ends with.
pub(crate) fn post(world: &World, event: &Value) -> Answer {
    let source = event["rawPath"].as_str().unwrap().rsplit('/').next().unwrap();
    world.post(source, &headers(event), &bytes(event))
}

/// Reports of the kinds answered here that another suite answers, or that do not apply.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "d17",
        "the contract suite runs every verb against every status on the table the template defines",
    ),
    ("j06", "the tests of the replay's patience hold it, among the use cases"),
    (
        "j12",
        "events a provider has lost are in no list of its; entities are read from it where a projection \
         fetches, and a gap that its list still shows is the reconciler's",
    ),
    ("e10", "nothing polls with a cursor: each event is applied from its own bytes"),
];

/// What the files of this suite say, to find the tests in; and those of the command line and of the
/// deployed stack that answer reports too.
const FILES: [&str; 14] = [
    include_str!("answers.rs"),
    include_str!("bytes.rs"),
    include_str!("consumer.rs"),
    include_str!("durability.rs"),
    include_str!("handshakes.rs"),
    include_str!("identity.rs"),
    include_str!("operator.rs"),
    include_str!("payload.rs"),
    include_str!("replay.rs"),
    include_str!("secrets.rs"),
    include_str!("../e2e/alarms.rs"),
    include_str!("../../functions/oncehook/src/commands/tests/reports.rs"),
    include_str!("../../functions/oncehook/src/commands/backfill/tests.rs"),
    include_str!("../../functions/workflow/src/projection/tests/field_reports.rs"),
];

#[test]
fn every_report_has_a_test_or_a_reason() {
    let mut unanswered = Vec::new();
    for id in REPORTS.keys() {
        let has_test = FILES.iter().any(|file| file.contains(&format!("fn {id}_")));
        let has_reason = ELSEWHERE.iter().any(|(known, _)| known == id);
        assert!(!(has_test && has_reason), "{id} has a test and is said to have none");
        if !has_test && !has_reason {
            unanswered.push(id);
        }
    }
    assert!(unanswered.is_empty(), "no test is named after {unanswered:?}");
}
