//! `verify --vectors`: a file of test vectors against the presets that are compiled in.
//!
//! A vector is a request with its secret, a time, and the verdict it must get. One whose provider
//! has no preset, or that asks for what the engine refuses to offer, is skipped, and the reason is
//! counted: nothing is passed over in silence.

use crate::{
    context::read_file,
    failure::Failure,
    output::{Fact, Page, Report, Table, Tone, shown},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path};
use verifier::{Headers, Key, Preset, Rejection, Request, preset_table};

/// A test vector. Fields that only describe where it comes from are not read.
#[derive(Debug, Deserialize)]
struct Vector {
    id: String,
    provider: String,
    secret: Secret,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    body_base64: Option<String>,
    body_hex: Option<String>,
    /// Unix seconds.
    now: u64,
    expect: Expected,
    #[serde(default)]
    note: String,
    method: Option<String>,
    url: Option<String>,
    path: Option<String>,
    public_key_pem: Option<String>,
    #[serde(default)]
    allow_legacy: bool,
    #[serde(default)]
    skip_ts: bool,
    tolerance_s: Option<u64>,
    #[serde(default)]
    policy: bool,
}

/// One secret, or those of a rotation.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Secret {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Accept,
    Reject,
}

/// What came of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    passed: usize,
    failed: usize,
    skipped: usize,
    providers: BTreeMap<String, Counts>,
    failures: Vec<Miss>,
    /// How many vectors were skipped for which reason.
    skips: BTreeMap<String, usize>,
}

#[derive(Debug, Default, Serialize)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// A vector with another verdict than it expects.
#[derive(Debug, Serialize)]
struct Miss {
    id: String,
    expected: Expected,
    verdict: String,
    /// Providers' own libraries differ here: the preset chooses.
    policy: bool,
    note: String,
}

enum Judged {
    Passed,
    Missed(String),
    Skipped(String),
}

/// Runs every vector of a file.
pub(crate) fn run(path: &Path) -> Result<Outcome, Failure> {
    let vectors: Vec<Vector> = serde_json::from_str(&read_file(path)?).map_err(|error| {
        Failure::usage(format!("{} is no list of test vectors: {error}", path.display()))
            .with_next("tests/vectors/signatures.json is one")
    })?;
    let mut outcome = Outcome {
        passed: 0,
        failed: 0,
        skipped: 0,
        providers: BTreeMap::new(),
        failures: Vec::new(),
        skips: BTreeMap::new(),
    };
    for vector in &vectors {
        let judged = judge(vector);
        outcome.note(vector, judged);
    }
    Ok(outcome)
}

impl Outcome {
    fn note(&mut self, vector: &Vector, judged: Judged) {
        let counts = self.providers.entry(vector.provider.clone()).or_default();
        match judged {
            Judged::Passed => {
                counts.passed += 1;
                self.passed += 1;
            }
            Judged::Missed(verdict) => {
                counts.failed += 1;
                self.failed += 1;
                self.failures.push(Miss {
                    id: vector.id.clone(),
                    expected: vector.expect,
                    verdict,
                    policy: vector.policy,
                    note: vector.note.clone(),
                });
            }
            Judged::Skipped(reason) => {
                counts.skipped += 1;
                self.skipped += 1;
                *self.skips.entry(reason).or_default() += 1;
            }
        }
    }
}

fn judge(vector: &Vector) -> Judged {
    let preset = match preset(vector) {
        Ok(preset) => preset,
        Err(reason) => return Judged::Skipped(reason),
    };
    let body = match body(vector) {
        Ok(body) => body,
        Err(said) => return Judged::Missed(said),
    };
    let verdict = match keys(&preset, vector) {
        // A key that cannot be loaded verifies nothing, as in the receiver.
        Err(defect) => Err(defect),
        Ok(keys) => {
            verify(&preset, vector, &keys, &body).map_err(|rejection| rejection.to_string())
        }
    };
    match (vector.expect, verdict) {
        (Expected::Accept, Ok(())) | (Expected::Reject, Err(_)) => Judged::Passed,
        (Expected::Accept, Err(said)) => Judged::Missed(said),
        (Expected::Reject, Ok(())) => Judged::Missed("accepted".to_owned()),
    }
}

/// The provider's preset, with the vector's own tolerance; or why there is none to judge by.
fn preset(vector: &Vector) -> Result<Preset, String> {
    let mut table = preset_table(&vector.provider).ok_or("no preset for this provider")?;
    if vector.skip_ts {
        return Err("asks to leave out the time check, which no preset does".to_owned());
    }
    if vector.allow_legacy {
        return Err("asks for a legacy signature, which no preset accepts".to_owned());
    }
    if let Some(seconds) = vector.tolerance_s {
        let time = table.get_mut("verify").and_then(|verify| verify.get_mut("time"));
        let time = time.and_then(|time| time.as_table_mut());
        let time = time.ok_or("asks for a tolerance where no time is signed")?;
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        time.insert("past_s".to_owned(), seconds.into());
        time.insert("future_s".to_owned(), seconds.into());
    }
    Preset::from_table(&table).map_err(|defect| defect.to_string())
}

fn keys(preset: &Preset, vector: &Vector) -> Result<Vec<Key>, String> {
    let secrets = match &vector.secret {
        Secret::One(secret) => std::slice::from_ref(secret),
        Secret::Several(secrets) => secrets,
    };
    let keys = secrets.iter().enumerate().map(|(n, text)| preset.key(&format!("k{n}"), text));
    keys.collect::<Result<_, _>>().map_err(|defect| defect.to_string())
}

/// Verifies, as the receiver does: a certificate that is asked for is handed in, and the same
/// request judged again.
fn verify(preset: &Preset, vector: &Vector, keys: &[Key], body: &[u8]) -> Result<(), Rejection> {
    let headers: Headers =
        vector.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let url = vector.url.as_deref().unwrap_or_default();
    let (public_url, query) = url.split_once('?').unwrap_or((url, ""));
    let request = Request {
        method: vector.method.as_deref().unwrap_or("POST"),
        path: vector.path.as_deref().unwrap_or("/"),
        query,
        public_url: Some(public_url).filter(|url| !url.is_empty()),
        headers: &headers,
        body,
    };
    let now_ms = vector.now.saturating_mul(1_000);
    let verdict = match (preset.verify(&request, keys, now_ms), &vector.public_key_pem) {
        (Err(Rejection::NeedsCertificate { url }), Some(pem)) => {
            let pinned = preset.pinned_certificate(&url, pem.as_bytes())?;
            preset.verify(&request, &[keys, &[pinned]].concat(), now_ms)
        }
        (verdict, _) => verdict,
    };
    verdict.map(drop)
}

fn body(vector: &Vector) -> Result<Vec<u8>, String> {
    match (&vector.body_base64, &vector.body_hex) {
        (Some(text), _) => STANDARD.decode(text).map_err(|error| format!("body_base64: {error}")),
        (None, Some(text)) => hex::decode(text).map_err(|error| format!("body_hex: {error}")),
        (None, None) => Ok(vector.body.as_bytes().to_vec()),
    }
}

impl Report for Outcome {
    fn needs_attention(&self) -> bool {
        self.failed > 0
    }

    fn write(&self, page: &mut Page) {
        let mut table = Table::new(&["PROVIDER", "PASSED", "FAILED", "SKIPPED"]);
        let judged = self.providers.iter().filter(|(_, counts)| counts.passed + counts.failed > 0);
        for (provider, counts) in judged {
            let tone = if counts.failed > 0 { Tone::Bad } else { Tone::Good };
            let numbers =
                [counts.passed, counts.failed, counts.skipped].map(|number| number.to_string());
            table.row(tone, std::iter::once(shown(provider)).chain(numbers));
        }
        page.table(&table);
        for miss in &self.failures {
            page.blank();
            let policy = if miss.policy { " (libraries differ; the preset chooses)" } else { "" };
            page.toned(Tone::Bad, format!("{}{policy}", shown(&miss.id)));
            let expected = match miss.expected {
                Expected::Accept => "accepted",
                Expected::Reject => "refused",
            };
            page.facts(&[
                Fact::new("expected", expected),
                Fact::new("verdict", shown(&miss.verdict)),
                Fact::new("note", shown(&miss.note)),
            ]);
        }
        page.blank();
        for (reason, number) in &self.skips {
            page.toned(Tone::Dim, format!("{number} skipped: {reason}"));
        }
        page.line(format!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        ));
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_vector_of_a_provider_with_a_preset_passes() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/signatures.json");
        let outcome = run(Path::new(file)).unwrap();
        assert_eq!(outcome.failed, 0, "{:#?}", outcome.failures);
        assert!(outcome.passed >= 57, "only {} passed", outcome.passed);
        let mut page = Page::default();
        outcome.write(&mut page);
        let last = page.text().lines().last().unwrap().to_owned();
        assert_eq!(
            last,
            format!("{} passed, 0 failed, {} skipped", outcome.passed, outcome.skipped)
        );
    }

    #[test]
    fn a_wrong_verdict_is_a_failure_and_an_unknown_provider_is_none() {
        let vector = |provider: &str, expect: &str| {
            let text = format!(
                r#"{{"id":"v","provider":"{provider}","secret":"s3cr3t-key","now":1,"expect":"{expect}"}}"#
            );
            judge(&serde_json::from_str(&text).unwrap())
        };
        assert!(
            matches!(vector("github", "accept"), Judged::Missed(said) if said.contains("x-hub-signature-256"))
        );
        assert!(matches!(vector("github", "reject"), Judged::Passed));
        assert!(matches!(vector("nobody", "accept"), Judged::Skipped(_)));
    }
}
