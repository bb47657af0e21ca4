//! Amounts: added exactly, once, or refused.
#![expect(clippy::unwrap_used, reason = "a panic is a failed test")]

use super::{Rows, adding, delta, project, refusal, source};
use ledger::{GuardRefusal, Millis};
use serde_json::{Value, json};

const TRANSFER: &str = "[[sources.s.projections]]\non = [\"t\"]\n\
     entity = { type = \"account\", id = \"/from\" }\norder = { strategy = \"none\" }\n\
     add = { sent = \"/amount\" }\n\
     [[sources.s.projections]]\non = [\"t\"]\n\
     entity = { type = \"account\", id = \"/to\" }\norder = { strategy = \"none\" }\n\
     add = { got = \"/amount\" }\n";

#[test]
fn one_event_may_change_two_entities() {
    let source = source(TRANSFER);
    let mut rows = Rows::default();
    rows.apply(&source, "t", "e1", &json!({ "from": "a", "to": "b", "amount": "10.50" }));
    rows.apply(&source, "t", "e2", &json!({ "from": "b", "to": "a", "amount": 0.25 }));
    assert_eq!(rows.state("s#account#a").to_string(), r#"{"got":0.25,"sent":10.5}"#);
    assert_eq!(rows.state("s#account#b").to_string(), r#"{"got":10.5,"sent":0.25}"#);
}

#[test]
fn two_changes_of_one_entity_in_one_event_are_refused_and_both_are_named() {
    let source = source(TRANSFER);
    let body = json!({ "from": "a", "to": "a", "amount": 1 }).to_string();
    assert_eq!(
        refusal(project(&source, "t", "e", body.as_bytes())),
        "account: the ids at /from and /to are the same, and one event changes an entity once"
    );
}

#[test]
fn a_delta_counts_once_on_the_revision_it_read_and_keeps_other_fields() {
    let source = adding();
    let delta = delta(&source, r#"{"id":"a","amount":0.1}"#).unwrap();
    let first = delta.change(None).unwrap();
    let mut entity = first.make(None, Millis(1)).unwrap();
    entity.state.insert("owner".to_owned(), json!("x"));
    // A second worker that read nothing meets the row and must read again.
    assert_eq!(first.make(Some(&entity), Millis(2)), Err(GuardRefusal::RevisionMoved));
    let second = delta.change(Some(&entity)).unwrap().make(Some(&entity), Millis(2)).unwrap();
    let expected = json!({ "owner": "x" });
    assert_eq!(second.state.get("owner"), expected.get("owner"));
    assert_eq!(second.state.get("total").unwrap().to_string(), "0.2");
    assert_eq!(second.revision, 2);
}

#[test]
fn what_is_no_amount_is_refused_with_its_place_and_never_counts_as_zero() {
    let source = adding();
    let message = |amount: &str| {
        let message = refusal(delta(&source, &format!(r#"{{"id":1{amount}}}"#)));
        let rest = message.strip_prefix("account: the amount at /amount, for the field total, ");
        rest.unwrap().to_owned()
    };
    assert_eq!(message(""), "is missing, expected a number");
    assert_eq!(message(r#","amount":null"#), "is null, expected a number");
    assert_eq!(message(r#","amount":true"#), "is a boolean, expected a number");
    assert_eq!(message(r#","amount":{"value":1}"#), "is an object, expected a number");
    assert_eq!(message(r#","amount":"1,50""#), "is a text that is no number");
    assert_eq!(message(r#","amount":"""#), "is a text that is no number");
    assert_eq!(message(r#","amount":1e400"#), "is outside 1e-130 to 9.99e125");
    assert_eq!(
        message(&format!(r#","amount":1.{}"#, "1".repeat(38))),
        "has more than 38 significant digits"
    );
}

#[test]
fn a_sum_that_cannot_be_stored_exactly_is_refused() {
    let source = adding();
    let delta = delta(&source, r#"{"id":"a","amount":2}"#).unwrap();
    let mut entity = delta.change(None).unwrap().make(None, Millis(1)).unwrap();
    let at = "account: the amount at /amount cannot be added to the field total: ";
    for (stored, why) in [
        ("9".repeat(38), "the sum has more than 38 significant digits"),
        ("\"text\"".to_owned(), "it is a text, expected a number"),
        ("1e400".to_owned(), "it is no number it could hold, expected a number"),
    ] {
        entity.state.insert("total".to_owned(), serde_json::from_str(&stored).unwrap());
        assert_eq!(refusal(delta.change(Some(&entity))), format!("{at}{why}"));
    }
    entity.state.insert("total".to_owned(), Value::Null);
    let state = delta.change(Some(&entity)).unwrap().state;
    assert_eq!(state.get("total").unwrap().to_string(), "2", "null counts as zero");
}
