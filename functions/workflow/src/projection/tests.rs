//! What projections do with events, good and bad: sources, events and state rows for the tests.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

mod deltas;
mod field_reports;
mod shipped;
mod values;

use super::{
    Declarative, Delta, EventView, Plan, Projection, ProjectionError, Step, trial::orders,
};
use config::{Config, Source};
use ledger::{Change, Entity, EntityKey, FailureClass, GuardRefusal, Millis};
use serde_json::Value;
use std::collections::BTreeMap;

/// A source without a preset whose projections follow.
fn source(projections: &str) -> Source {
    let text = format!(
        "[sources.s]\nsecret = \"s\"\n\
         [sources.s.verify]\nscheme = \"signature\"\nheader = \"x-signature\"\nlayout = \"plain\"\n\
         algorithm = \"hmac-sha256\"\nencoding = \"hex\"\nkey = \"text\"\n\
         [sources.s.event]\nid = \"/id\"\ntype = \"/type\"\nidentity = \"body\"\n{projections}"
    );
    parsed(&text, "s")
}

/// A source of a configuration text.
fn parsed(text: &str, name: &str) -> Source {
    let param = |name: &str| (name == "MODE").then(|| "enforce".to_owned());
    match Config::parse("sources.toml", text, &param) {
        Ok(config) => config.source(name).unwrap().clone(),
        Err(errors) => panic!("{errors:#?}"),
    }
}

/// One projection on `t` by `/v` with these fields.
pub(super) fn versioned(unit: &str, set: &str) -> Source {
    source(&format!(
        "[[sources.s.projections]]\non = [\"t\"]\nentity = {{ type = \"thing\", id = \"/id\" }}\n\
         order = {{ strategy = \"version\", by = \"/v\", unit = \"{unit}\" }}\nset = {{ {set} }}\n"
    ))
}

/// One projection on `t` that adds `/amount` to `total`.
fn adding() -> Source {
    source(
        "[[sources.s.projections]]\non = [\"t\"]\nentity = { type = \"account\", id = \"/id\" }\n\
         order = { strategy = \"none\" }\nadd = { total = \"/amount\" }\n",
    )
}

fn project(
    source: &Source,
    event_type: &str,
    event_id: &str,
    body: &[u8],
) -> Result<Vec<Plan>, ProjectionError> {
    Declarative.project(&EventView { source, event_type, event_id, body })
}

/// The only plan of an event of type `t`.
fn plan(source: &Source, body: &str) -> Result<Plan, ProjectionError> {
    let mut plans = project(source, "t", "e", body.as_bytes())?;
    assert_eq!(plans.len(), 1);
    Ok(plans.remove(0))
}

fn change(source: &Source, body: &str) -> Result<Change, ProjectionError> {
    match plan(source, body)? {
        Plan::Versioned(change) => Ok(change),
        other => panic!("no version: {other:?}"),
    }
}

fn delta(source: &Source, body: &str) -> Result<Delta, ProjectionError> {
    match plan(source, body)? {
        Plan::Delta(delta) => Ok(delta),
        other => panic!("no delta: {other:?}"),
    }
}

/// The message of a failure, which must be permanent.
fn refusal<T: std::fmt::Debug>(result: Result<T, ProjectionError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.class(), FailureClass::Permanent);
    error.to_string()
}

/// State rows, changed the way the ledger's guard allows.
#[derive(Default)]
struct Rows(BTreeMap<EntityKey, Entity>);

impl Rows {
    /// Makes every plan of an event; answers what the guards refused.
    fn apply(
        &mut self,
        source: &Source,
        event_type: &str,
        event_id: &str,
        body: &Value,
    ) -> Vec<GuardRefusal> {
        let plans = project(source, event_type, event_id, body.to_string().as_bytes()).unwrap();
        let mut refused = Vec::new();
        for plan in plans {
            let found = self.0.get(plan.entity());
            let change = match plan.step(found, None).unwrap() {
                Step::Write { change, .. } => change,
                other => panic!("nothing to write: {other:?}"),
            };
            match change.make(found, Millis(1)) {
                Ok(entity) => _ = self.0.insert(change.entity, entity),
                Err(refusal) => refused.push(refusal),
            }
        }
        refused
    }

    fn state(&self, key: &str) -> Value {
        let entity = self.0.iter().find(|(known, _)| known.as_str() == key);
        entity.map_or(Value::Null, |(_, entity)| Value::Object(entity.state.clone()))
    }
}

const SHIPPED: &str = include_str!("../../../../infra/sources.toml");

#[test]
fn a_projection_of_a_teams_own_chooses_its_class() {
    struct Patient;
    impl Projection for Patient {
        fn project(&self, _: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError> {
            let reason = "the price list is not loaded yet".to_owned();
            Err(ProjectionError::Custom {
                reason,
                class: FailureClass::Transient,
                retry_after_ms: None,
            })
        }
    }
    let source = adding();
    let event = EventView { source: &source, event_type: "t", event_id: "e", body: b"{}" };
    let error = Patient.project(&event).unwrap_err();
    assert_eq!(
        (error.class(), error.to_string().as_str()),
        (FailureClass::Transient, "the price list is not loaded yet")
    );
}
