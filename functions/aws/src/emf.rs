//! Telemetry as CloudWatch's embedded metric format: one line of JSON is log entry and metrics at
//! once (Amazon CloudWatch User Guide, "Specification: Embedded metric format").
//!
//! Lines go to standard output as they are. Sent through a logging layer they would be nested in
//! another object, and CloudWatch would silently extract nothing.
//!
//! Each metric is counted by function and, where the line has a source, by function and source;
//! everything else is a field, which costs nothing until it is searched for.

use crate::{Aws, clock};
use ledger::Millis;
use serde_json::{Map, Value, json};
use std::io::Write;
use workflow::telemetry::{Level, Line, MetricUnit, Telemetry};

const NAMESPACE: &str = "Oncehook";
/// The dimension that AWS's own function metrics have too.
const FUNCTION: &str = "FunctionName";
const SOURCE: &str = "source";
/// Metrics one line may define, and values one metric may have in it.
const MANY_MAX: usize = 100;

impl Telemetry for Aws {
    fn emit(&self, line: &Line) {
        let mut text = render(line, &self.settings().function, clock::now()).to_string();
        text.push('\n');
        // One write under the lock: lines of concurrent records never mix. Nobody is left to be
        // told when standard output is gone.
        let mut out = std::io::stdout().lock();
        let _gone = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// The line as JSON.
fn render(line: &Line, function: &str, now: Millis) -> Value {
    let mut object = line.fields.clone();
    object.insert("level".to_owned(), level(line.level).into());
    object.insert("message".to_owned(), line.message.as_str().into());
    object.insert("timestamp".to_owned(), timestamp(now).into());
    let source = line.source.as_deref().filter(|source| !source.is_empty());
    if let Some(source) = source {
        object.insert(SOURCE.to_owned(), source.into());
    }
    let definitions = measure(line, &mut object);
    if !definitions.is_empty() {
        object.insert(FUNCTION.to_owned(), function.into());
        let dimensions = match source {
            None => json!([[FUNCTION]]),
            Some(_) => json!([[FUNCTION], [FUNCTION, SOURCE]]),
        };
        let directive = json!({
            "Timestamp": now.0,
            "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": dimensions,
                "Metrics": definitions,
            }],
        });
        object.insert("_aws".to_owned(), directive);
    }
    Value::Object(object)
}

/// Writes the values and returns their definitions. What a line counts several times is added
/// up; what it measures several times is a list.
fn measure(line: &Line, object: &mut Map<String, Value>) -> Vec<Value> {
    let mut definitions = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for metric in &line.metrics {
        if names.contains(&metric.name) || names.len() == MANY_MAX {
            continue;
        }
        // JSON has no infinity, and CloudWatch wants none.
        let values = line.metrics.iter().filter(|other| other.name == metric.name);
        let mut values: Vec<f64> =
            values.map(|other| other.value).filter(|value| value.is_finite()).collect();
        let value = match (metric.unit, values.len()) {
            (_, 0) => continue,
            (MetricUnit::Count, _) => values.iter().sum::<f64>().into(),
            (MetricUnit::Milliseconds | MetricUnit::Seconds, 1) => values.swap_remove(0).into(),
            (MetricUnit::Milliseconds | MetricUnit::Seconds, _) => {
                values.truncate(MANY_MAX);
                Value::from(values)
            }
        };
        names.push(metric.name);
        object.insert(metric.name.to_owned(), value);
        definitions.push(json!({ "Name": metric.name, "Unit": unit(metric.unit) }));
    }
    definitions
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Info => "INFO",
        Level::Warn => "WARN",
        Level::Error => "ERROR",
    }
}

const fn unit(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::Count => "Count",
        MetricUnit::Milliseconds => "Milliseconds",
        MetricUnit::Seconds => "Seconds",
    }
}

fn timestamp(now: Millis) -> String {
    let ms = i64::try_from(now.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms)
        .unwrap_or(jiff::Timestamp::MAX)
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_796_040_000_123);

    fn rendered(line: &Line) -> Value {
        let text = render(line, "oncehook-receiver", NOW).to_string();
        assert!(!text.contains('\n'), "one line");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_counted_line_is_log_entry_and_metrics_at_once() {
        let line = Line::new(Level::Warn, "delivery \"refused\"\nfor a reason")
            .of_source("stripe-live")
            .with("rejection.cause", "mismatch")
            .count("Rejected")
            .measure("AnswerTime", 12.5, MetricUnit::Milliseconds);
        let json = rendered(&line);
        assert_eq!(json["level"], "WARN");
        assert_eq!(json["message"], "delivery \"refused\"\nfor a reason");
        assert_eq!(json["timestamp"], "2026-11-30T12:00:00.123Z");
        assert_eq!(json["rejection.cause"], "mismatch");
        assert_eq!((&json["Rejected"], &json["AnswerTime"]), (&json!(1.0), &json!(12.5)));
        let directive = &json["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(json["_aws"]["Timestamp"], json!(NOW.0));
        assert_eq!(directive["Namespace"], "Oncehook");
        assert_eq!(directive["Dimensions"], json!([["FunctionName"], ["FunctionName", "source"]]));
        assert_eq!(
            directive["Metrics"],
            json!([
                {"Name": "Rejected", "Unit": "Count"},
                {"Name": "AnswerTime", "Unit": "Milliseconds"},
            ])
        );
        // Every dimension and metric that is announced stands at the top level.
        for name in ["FunctionName", "source", "Rejected", "AnswerTime"] {
            assert!(json.get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_line_without_metrics_is_a_plain_log_entry() {
        let json = rendered(&Line::new(Level::Info, "handshake answered").of_source("slack"));
        assert!(json.get("_aws").is_none());
        assert_eq!(json["source"], "slack");
    }

    #[test]
    fn a_line_without_a_source_has_the_function_as_its_only_dimension() {
        let json = rendered(&Line::new(Level::Info, "swept").count("Swept").of_source(""));
        assert_eq!(json["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["FunctionName"]]));
        assert!(json.get("source").is_none());
    }

    #[test]
    fn counts_add_up_and_measurements_keep_every_value_but_infinity() {
        let line = Line::new(Level::Info, "delivery accepted").count("New").count("New");
        let line = line.measure("Age", f64::INFINITY, MetricUnit::Seconds);
        let line = line.measure("Wait", 1.0, MetricUnit::Seconds);
        let line = line.measure("Wait", 2.0, MetricUnit::Seconds);
        let json = rendered(&line);
        assert_eq!(json["New"], json!(2.0));
        assert_eq!(json["Wait"], json!([1.0, 2.0]));
        assert!(json.get("Age").is_none());
        let metrics = json["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
        assert_eq!(metrics.len(), 2);
    }
}
