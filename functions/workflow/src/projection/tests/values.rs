//! Ids, versions and values: what is taken, and what is refused in which words.
#![expect(clippy::unwrap_used, reason = "a panic is a failed test")]

use super::{adding, change, delta, project, refusal, versioned};
use serde_json::{Value, json};

#[test]
fn an_event_type_that_no_projection_names_has_no_plans_whatever_its_body() {
    let source = versioned("integer", "x = \"/x\"");
    assert_eq!(project(&source, "other", "e", b"not json \xff"), Ok(Vec::new()));
}

#[test]
fn a_place_that_the_event_does_not_have_becomes_null_and_constants_stay() {
    let source = versioned("integer", "x = \"/a/b/0/c\", y = \"=/text\", z = 7, n = \"=null\"");
    let expected = json!({ "x": null, "y": "/text", "z": 7, "n": null });
    for body in [
        r#"{"id":"1","v":1}"#,
        r#"{"id":"1","v":1,"a":null}"#,
        r#"{"id":"1","v":1,"a":{"b":[]}}"#,
        r#"{"id":"1","v":1,"a":{"b":{"0":3}}}"#,
        r#"{"id":"1","v":1,"a":5}"#,
        r#"{"id":"1","v":1,"a":{"b":[{"c":null}]}}"#,
    ] {
        assert_eq!(Value::Object(change(&source, body).unwrap().state), expected, "{body}");
    }
}

#[test]
fn pointers_reach_list_items_escaped_names_and_the_whole_event() {
    let source = versioned("integer", "a = \"/l/1/x\", b = \"/m~1n/~0\", c = \"/l/1\", d = \"\"");
    let body = json!({ "id": "1", "v": 1, "l": [0, { "x": 5 }], "m/n": { "~": true } });
    let state = change(&source, &body.to_string()).unwrap().state;
    let expected = json!({ "a": 5, "b": true, "c": { "x": 5 }, "d": body });
    assert_eq!(Value::Object(state), expected);
}

#[test]
fn an_id_is_a_text_or_a_whole_number_and_both_spell_one_entity() {
    let source = versioned("integer", "x = \"/x\"");
    let key = |id: &str| change(&source, &format!(r#"{{"id":{id},"v":1}}"#)).unwrap().entity;
    assert_eq!(key("12").as_str(), "s#thing#12");
    assert_eq!(key("\"12\""), key("12"));
    assert_eq!(key("\"a#b c\"").as_str(), "s#thing#a#b c");
    for (id, found) in [
        ("\"\"", "blank"),
        ("\"  \\t\"", "blank"),
        ("null", "null"),
        ("true", "a boolean"),
        ("[1]", "a list"),
        ("{}", "an object"),
        ("1.0", "a number with a fraction or an exponent"),
        ("1e3", "a number with a fraction or an exponent"),
        ("\"\\ud800\"", "unreadable"),
    ] {
        assert_eq!(
            refusal(change(&source, &format!(r#"{{"id":{id},"v":1}}"#))),
            format!("thing: the id at /id is {found}, expected a text or a whole number")
        );
    }
    assert_eq!(
        refusal(change(&source, r#"{"v":1}"#)),
        "thing: the id at /id is missing, expected a text or a whole number"
    );
}

#[test]
fn a_version_that_is_missing_null_or_unreadable_is_refused_for_good_and_named() {
    let source = versioned("iso", "x = \"/x\"");
    for (body, message) in [
        (r#"{"id":1}"#, "thing: the version is missing (at /v)"),
        (r#"{"id":1,"v":null}"#, "thing: the version is null (at /v)"),
        (
            r#"{"id":1,"v":{"x":[[1]]}}"#,
            "thing: the version is an object, expected a number or text (at /v)",
        ),
        (
            r#"{"id":1,"v":"n/a"}"#,
            "thing: the version \"n/a\" is no RFC 3339 timestamp with a zone, \
             such as 2026-01-31T09:30:00Z (at /v)",
        ),
    ] {
        assert_eq!(refusal(change(&source, body)), message);
    }
    assert!(
        refusal(change(&source, r#"{"id":1,"v":"\udc00"}"#)).starts_with("thing: the version ")
    );
}

#[test]
fn messages_never_hold_payload() {
    let canary = "CANARY-4242";
    let source = versioned("integer", "x = \"/x\"");
    let add = adding();
    for message in [
        refusal(change(&source, &format!(r#"{{"id":{{"{canary}":1}},"v":1}}"#))),
        refusal(change(&source, &format!(r#"{{"id":1,"v":1,"x":["{canary}",1e400]}}"#))),
        refusal(change(&source, &format!(r#"{{"id":1,"v":1,"x":{{"":"{canary}"}}}}"#))),
        refusal(change(&source, &format!(r#"{{"id":1,"v":1,"{canary}"#))),
        refusal(delta(&add, &format!(r#"{{"id":1,"amount":"{canary}"}}"#))),
        refusal(delta(&add, &format!(r#"{{"id":1,"amount":["{canary}"]}}"#))),
    ] {
        assert!(!message.contains(canary), "{message}");
    }
}

#[test]
fn numbers_keep_every_digit_or_are_refused_with_their_place() {
    let source = versioned("integer", "x = \"/x\"");
    let state = |x: &str| change(&source, &format!(r#"{{"id":1,"v":1,"x":{x}}}"#));
    for x in ["10.10", "1.0", "-0", "9007199254740993", "0.1234567890123456789", "1e+5", "[1e-7]"] {
        let state = state(x).unwrap().state;
        assert_eq!(state.get("x").unwrap().to_string(), x);
    }
    let digits = "9".repeat(38);
    assert_eq!(state(&digits).unwrap().state.get("x").unwrap().to_string(), digits);
    let at = "thing: the value at /x, for the field x, is or holds a number that";
    assert_eq!(
        refusal(state(&format!("[{{\"y\":1{digits}}}]"))),
        format!("{at} has more than 38 significant digits")
    );
    for x in ["1e400", "-1e400", "1e-400", "[[1e126]]"] {
        assert_eq!(refusal(state(x)), format!("{at} is outside 1e-130 to 9.99e125"));
    }
}

#[test]
fn what_a_state_row_cannot_hold_is_refused_with_its_place() {
    let source = versioned("integer", "x = \"/x\"");
    let state = |x: &str| change(&source, &format!(r#"{{"id":1,"v":1,"x":{x}}}"#));
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let at = "thing: the value at /x, for the field x,";
    assert!(state(&nested(30)).is_ok());
    assert_eq!(refusal(state(&nested(31))), format!("{at} is nested deeper than 30 levels"));
    assert!(refusal(state(&nested(100_000))).starts_with(&format!("{at} cannot be read (")));
    assert_eq!(
        refusal(state(r#"{"a":[{"":1}]}"#)),
        format!("{at} holds an object with an empty key")
    );
    assert!(refusal(state(r#""\ud800""#)).starts_with(&format!("{at} cannot be read (")));
    assert_eq!(
        refusal(state(&format!("\"{}\"", "x".repeat(256_000)))),
        "thing: the state is 256008 bytes long, at most 256000 can be stored: set fewer fields"
    );
}

#[test]
fn what_no_projection_looks_at_cannot_fail_it() {
    let source = versioned("integer", "x = \"/x\"");
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for unused in ["1e400", "-1e-400", "\"\\ud800\"", deep.as_str(), "{\"\":{\"\":1}}"] {
        let body = format!(r#"{{"unused":{unused},"id":1,"v":2,"x":"y","more":[{unused}]}}"#);
        let change = change(&source, &body).unwrap();
        assert_eq!(change.state.get("x"), Some(&json!("y")));
    }
}

#[test]
fn a_repeated_key_means_its_last_value_with_all_that_is_in_it() {
    let source = versioned("integer", "x = \"/d/x\", y = \"/d/y\", d = \"/d\"");
    let body = r#"{"id":1,"v":1,"d":{"x":1,"y":2},"d":{"x":3,"x":4},"v":9}"#;
    let change = change(&source, body).unwrap();
    assert_eq!(change.version().unwrap().get(), 9);
    let expected = json!({ "x": 4, "y": null, "d": { "x": 4 } });
    assert_eq!(Value::Object(change.state), expected);
}

#[test]
fn a_body_that_is_no_json_is_refused_where_it_breaks() {
    let source = versioned("integer", "x = \"/x\"");
    let message = |body: &[u8]| refusal(project(&source, "t", "e", body));
    assert_eq!(message(b"{\"id\":1,\n}"), "the event body is no JSON: line 2, column 1");
    assert_eq!(message(b"{\"id\":1,\"v\":1} x"), "the event body is no JSON: line 1, column 16");
    assert!(message(b"").starts_with("the event body is no JSON"));
    assert!(message(b"{\"id\":\"\xff\"}").starts_with("the event body cannot be read"));
    assert_eq!(
        message(b"[1, 2]"),
        "thing: the id at /id is missing, expected a text or a whole number"
    );
}
