//! Judgements of tables and queues against the design's settings. Pure: facts in, checks out.

use super::{Check, Grade};
use aws::TableFacts;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the template sets; see the comments there for the reasons.
const VISIBILITY_S: u64 = 180;
const RECEIVES_MAX: u64 = 10;
const QUEUE_DAYS: u64 = 4;
const DEAD_LETTER_DAYS: u64 = 14;
const DAY_S: u64 = 86_400;
const TEMPLATE: &str = "somebody changed it by hand: deploy the template again";

type Attributes = BTreeMap<String, String>;

/// Active, its rows expire, both indexes answer.
pub(super) fn ledger_table(facts: &TableFacts) -> Vec<Check> {
    let mut checks = vec![active("ledger table", &facts.status)];
    checks.push(match facts.expires_by.as_deref() {
        Some("expires_at") => Check::ok("ledger: expiry", "settled rows go by expires_at"),
        found => Check::bad(
            Grade::Fail,
            "ledger: expiry",
            found.map_or_else(|| "off".to_owned(), |name| format!("by {name}")),
            "time to live by expires_at, or the table only grows",
            "deploy the template again; after a restore switch it on by hand, a restore leaves it off",
        ),
    });
    for name in ["open", "by_day"] {
        let what = format!("ledger: index {name}");
        let status = facts.indexes.get(name).map_or("missing", String::as_str);
        checks.push(active(&what, status));
    }
    checks
}

/// Active, and its changes streamed.
pub(super) fn state_table(facts: &TableFacts) -> Vec<Check> {
    let stream = if facts.is_streamed {
        Check::ok("state: stream", "on")
    } else {
        Check::bad(
            Grade::Warn,
            "state: stream",
            "off",
            "on: the team's own subscribers hear of changes by it",
            "deploy the template again; after a restore switch it on by hand, a restore leaves it off",
        )
    };
    vec![active("state table", &facts.status), stream]
}

fn active(what: &str, status: &str) -> Check {
    match status {
        "ACTIVE" => Check::ok(what, "active"),
        "" => Check::ok(what, "there"),
        // It can be read and written meanwhile.
        "UPDATING" => Check::bad(Grade::Warn, what, "updating", "active", "wait for it to end"),
        other => Check::bad(
            Grade::Fail,
            what,
            other.to_lowercase(),
            "active",
            "is this the right stack, and has its deployment finished?",
        ),
    }
}

/// The queue and its dead-letter queue, which must fit one another.
pub(super) fn queues(queue: &Attributes, dead: &Attributes) -> Vec<Check> {
    let redrive = json(queue, "RedrivePolicy");
    let allow = json(dead, "RedriveAllowPolicy");
    let arn = |attributes: &Attributes| attributes.get("QueueArn").cloned().unwrap_or_default();
    // AWS answers with a number here, others with its digits.
    let receives = &redrive["maxReceiveCount"];
    let receives = receives.as_u64().or_else(|| receives.as_str()?.parse().ok());
    let leads = redrive["deadLetterTargetArn"].as_str() == Some(arn(dead).as_str());
    let sources = allow["sourceQueueArns"].as_array();
    let admits = allow["redrivePermission"] == "byQueue"
        && sources.is_some_and(|arns| arns.iter().any(|one| one.as_str() == Some(&arn(queue))));
    vec![
        equal("queue: visibility timeout", number(queue, "VisibilityTimeout"), VISIBILITY_S, " s"),
        days("queue: retention", number(queue, "MessageRetentionPeriod"), QUEUE_DAYS),
        equal("queue: receives before it gives up", receives, RECEIVES_MAX, ""),
        so("queue: gives up to", leads, "this stack's dead-letter queue"),
        days("dead letters: retention", number(dead, "MessageRetentionPeriod"), DEAD_LETTER_DAYS),
        so("dead letters: redrive", admits, "allowed from this stack's queue"),
    ]
}

fn json(attributes: &Attributes, name: &str) -> Value {
    attributes.get(name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn number(attributes: &Attributes, name: &str) -> Option<u64> {
    attributes.get(name)?.parse().ok()
}

fn equal(what: &str, found: Option<u64>, expected: u64, unit: &str) -> Check {
    let said = |number: u64| format!("{number}{unit}");
    match found {
        Some(number) if number == expected => Check::ok(what, said(number)),
        found => {
            let found = found.map_or_else(|| "not set".to_owned(), said);
            Check::bad(Grade::Fail, what, found, &said(expected), TEMPLATE)
        }
    }
}

fn days(what: &str, seconds: Option<u64>, expected: u64) -> Check {
    match seconds {
        Some(seconds) if seconds == expected * DAY_S => Check::ok(what, format!("{expected} days")),
        found => {
            let found = found.map_or_else(|| "not set".to_owned(), |s| format!("{s} s"));
            Check::bad(Grade::Fail, what, found, &format!("{expected} days"), TEMPLATE)
        }
    }
}

fn so(what: &str, is_so: bool, expected: &str) -> Check {
    if is_so {
        Check::ok(what, expected)
    } else {
        Check::bad(Grade::Fail, what, "something else", expected, TEMPLATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableFacts {
        let indexes = [("open", "ACTIVE"), ("by_day", "ACTIVE")];
        TableFacts {
            status: "ACTIVE".to_owned(),
            expires_by: Some("expires_at".to_owned()),
            is_streamed: true,
            indexes: indexes.map(|(name, status)| (name.to_owned(), status.to_owned())).into(),
        }
    }

    fn attributes(pairs: &[(&str, &str)]) -> Attributes {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn queue() -> Attributes {
        attributes(&[
            ("QueueArn", "arn:q"),
            ("VisibilityTimeout", "180"),
            ("MessageRetentionPeriod", "345600"),
            ("RedrivePolicy", r#"{"deadLetterTargetArn":"arn:d","maxReceiveCount":10}"#),
        ])
    }

    fn dead() -> Attributes {
        let allow = r#"{"redrivePermission":"byQueue","sourceQueueArns":["arn:q"]}"#;
        attributes(&[
            ("QueueArn", "arn:d"),
            ("MessageRetentionPeriod", "1209600"),
            ("RedriveAllowPolicy", allow),
        ])
    }

    fn faults(checks: Vec<Check>) -> Vec<String> {
        let bad = checks.into_iter().filter(|check| check.grade != Grade::Ok);
        bad.map(|check| check.what).collect()
    }

    #[test]
    fn a_stack_as_the_template_makes_it_has_no_fault() {
        assert!(faults(ledger_table(&table())).is_empty());
        assert!(faults(state_table(&table())).is_empty());
        assert!(faults(queues(&queue(), &dead())).is_empty());
        let mut digits = queue();
        let policy = r#"{"deadLetterTargetArn":"arn:d","maxReceiveCount":"10"}"#;
        digits.insert("RedrivePolicy".to_owned(), policy.to_owned());
        assert!(faults(queues(&digits, &dead())).is_empty());
    }

    #[test]
    fn each_setting_that_a_hand_or_a_restore_changed_is_found_by_name() {
        let restored = TableFacts { expires_by: None, is_streamed: false, ..table() };
        assert_eq!(faults(ledger_table(&restored)), ["ledger: expiry"]);
        assert_eq!(faults(state_table(&restored)), ["state: stream"]);
        let mut without = table();
        without.indexes.remove("by_day");
        assert_eq!(faults(ledger_table(&without)), ["ledger: index by_day"]);
        for (name, value, what) in [
            ("VisibilityTimeout", "30", "queue: visibility timeout"),
            ("MessageRetentionPeriod", "60", "queue: retention"),
            (
                "RedrivePolicy",
                r#"{"deadLetterTargetArn":"arn:d","maxReceiveCount":3}"#,
                "queue: receives before it gives up",
            ),
            (
                "RedrivePolicy",
                r#"{"deadLetterTargetArn":"arn:x","maxReceiveCount":10}"#,
                "queue: gives up to",
            ),
        ] {
            let mut changed = queue();
            changed.insert(name.to_owned(), value.to_owned());
            assert_eq!(faults(queues(&changed, &dead())), [what]);
        }
        for (name, value, what) in [
            ("MessageRetentionPeriod", "345600", "dead letters: retention"),
            ("RedriveAllowPolicy", r#"{"redrivePermission":"denyAll"}"#, "dead letters: redrive"),
        ] {
            let mut changed = dead();
            changed.insert(name.to_owned(), value.to_owned());
            assert_eq!(faults(queues(&queue(), &changed)), [what]);
        }
    }
}
