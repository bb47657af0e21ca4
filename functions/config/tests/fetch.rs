//! Fetch tables: what they say, where they are found, and every mistake in them.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic is a failed test")]

mod file;

use config::{Auth, OnMissing, Order, Tie};
use file::{FETCH, SEQUENCE, SET, accepted, errors, only, projection, source, table};

#[test]
fn a_fetched_entity_type_finds_its_table_the_sources_own_first() {
    let fetched = projection("a", "thing", FETCH, "");
    let shared = table("fetch.thing", "rate", "rate_per_s = 7");
    let own = table("sources.s.fetch.thing", "", "");
    let rate = |text: &str| only(&accepted(text)).fetch.as_ref().unwrap().rate_per_s;
    assert_eq!(rate(&source(&format!("{fetched}{shared}"))), 7);
    assert_eq!(rate(&source(&format!("{fetched}{own}"))), 5);
    // The other source uses the shared one, so that it is used.
    let other = "[sources.t]\npreset = \"stripe\"\nsecret = \"t\"\n";
    let other = format!("{other}{}", fetched.replace("sources.s", "sources.t"));
    assert_eq!(rate(&source(&format!("{fetched}{own}{other}{shared}"))), 5);
}

#[test]
fn a_fetch_table_says_everything_about_the_question() {
    let extra = "concurrency = 3\nauth = { header = \"x-api-key\" }\n";
    let text =
        format!("{}{}{extra}", projection("a", "thing", FETCH, ""), table("fetch.thing", "", ""));
    let source = accepted(&source(&text));
    let fetch = only(&source).fetch.as_ref().unwrap();
    assert_eq!(fetch.path, "fetch.thing");
    assert_eq!(fetch.url.of("a b", None).unwrap(), "https://api.example/v1/things/a%20b");
    assert_eq!((fetch.secret.as_str(), fetch.rate_per_s, fetch.concurrency), ("api", 5, Some(3)));
    assert_eq!(
        (&fetch.auth, fetch.on_404),
        (&Auth::Header("x-api-key".into()), OnMissing::Tombstone)
    );
    assert_eq!(only(&source).order, Order::Fetch);
    for (auth, is_read) in [("\"bearer\"", Auth::Bearer), ("\"basic\"", Auth::Basic)] {
        let table = table("fetch.thing", "rate", &format!("rate_per_s = 5\nauth = {auth}"));
        let text = format!("{}{table}", projection("a", "thing", FETCH, ""));
        let source = accepted(&file::source(&text));
        assert_eq!(only(&source).fetch.as_ref().unwrap().auth, is_read);
    }
}

#[test]
fn every_mistake_in_a_fetch_table_is_named() {
    let told = |replaced: &str, by: &str| {
        let fetched = projection("a", "thing", FETCH, "");
        let mut found =
            errors(&source(&format!("{fetched}{}", table("fetch.thing", replaced, by))));
        assert_eq!(found.len(), 1, "{found:#?}");
        found.pop().unwrap()
    };
    let url = "allowed an https address with `{id}` once behind its host, such as \
               https://api.example.com/v1/things/{id}";
    for bad in ["http://api.example/{id}", "https://api.example/things", "things/{id}"] {
        assert_eq!(
            told("url", &format!("url = \"{bad}\"")),
            format!("sources.toml:10: fetch.thing.url: found `{bad}`, {url}")
        );
    }
    assert_eq!(told("url", ""), format!("sources.toml:9: fetch.thing.url: found nothing, {url}"));
    assert_eq!(
        told("secret", "secret = \"sk_live_51Hq7Rv2eZ\""),
        "sources.toml:11: fetch.thing.secret: found a text of 18 bytes that is no name, allowed the \
         name of an entry of the outbound secret (never a key): 1 to 64 of a-z, 0-9, `_` and `-`"
    );
    assert_eq!(
        told("on_404", "on_404 = \"tombston\""),
        "sources.toml:12: fetch.thing.on_404: found `tombston`, allowed tombstone, empty, retry, \
         dead; did you mean `tombstone`?"
    );
    let two = told(
        "set",
        "set = { x = \"/x\" }\nauth = { header = \"x\", token_url = \"https://a.example/\" }",
    );
    assert!(
        two.starts_with("sources.toml:15: fetch.thing.auth: found a table, allowed bearer, "),
        "{two}"
    );
    assert_eq!(
        told("rate", "rate_per_s = 0"),
        "sources.toml:13: fetch.thing.rate_per_s: found `0`, allowed a whole number from 1 to 10000"
    );
    assert_eq!(
        told("rate", "rate_per_s = 5\nconcurrency = \"all\""),
        "sources.toml:14: fetch.thing.concurrency: found `all`, allowed a whole number from 1 to 10000"
    );
    assert_eq!(
        told("rate", "rate_per_s = 5\nauth = \"digest\""),
        "sources.toml:14: fetch.thing.auth: found `digest`, allowed bearer, basic, \
         { header = \"x-api-key\" }, or { token_url = \"https://...\" }"
    );
    assert_eq!(
        told("rate", "rate_per_s = 5\nauth = { token_url = \"http://a.example\" }"),
        "sources.toml:14: fetch.thing.auth.token_url: found `http://a.example`, allowed an https address"
    );
    assert_eq!(
        told("rate", "rate_per_s = 5\nauth = { header = \"X-Key\" }"),
        "sources.toml:14: fetch.thing.auth.header: found `X-Key`, allowed the name of a header in \
         lower case: a-z, 0-9 and `-`"
    );
    assert_eq!(
        told("set", "set = {}"),
        "sources.toml:14: fetch.thing.set: found an empty table, allowed a table \
         { field = \"/...\" }, the state as the provider's answer has it"
    );
    assert_eq!(
        told("set", "set = { x = \"/x\" }\nretries = 3"),
        "sources.toml:15: fetch.thing.retries: found an unknown key, allowed auth, concurrency, \
         on_404, rate_per_s, secret, set, url"
    );
}

#[test]
fn fetching_without_a_table_and_a_table_without_fetching_are_refused() {
    let tie = "strategy = \"version\", by = \"/v\", tie = \"fetch\"";
    let gap = "strategy = \"sequence\", by = \"/n\", on_gap = \"fetch\"";
    for (key, order, fields) in [("strategy", FETCH, ""), ("tie", tie, SET), ("on_gap", gap, SET)] {
        assert_eq!(
            errors(&source(&projection("a", "thing", order, fields))),
            [format!(
                "sources.toml:7: sources.s.projections[0].order.{key}: found `fetch` without a \
                 table that says how, allowed `fetch` beside a table [sources.s.fetch.thing] or \
                 [fetch.thing]"
            )]
        );
    }
    for path in ["fetch.think", "sources.s.fetch.think"] {
        let text = format!("{}{}", projection("a", "thing", SEQUENCE, SET), table(path, "", ""));
        assert_eq!(
            errors(&source(&text)),
            [format!(
                "sources.toml:9: {path}: found no projection of `think` that fetches, allowed the \
                 entity type of a projection with strategy, tie or on_gap = \"fetch\""
            )]
        );
    }
}

#[test]
fn what_a_fetched_state_holds_is_said_in_one_place() {
    let text = format!("{}{}", projection("a", "thing", FETCH, SET), table("fetch.thing", "", ""));
    assert_eq!(
        errors(&source(&text)),
        ["sources.toml:8: sources.s.projections[0].set: found `set` with strategy = \"fetch\", \
          allowed `set` in the table [fetch.<entity type>], where it reads the answer"]
    );
    let tie = "strategy = \"version\", by = \"/v\", tie = \"fetch\"";
    let text = format!(
        "{}{}",
        projection("a", "thing", tie, "set = { y = \"/x\" }"),
        table("fetch.thing", "", "")
    );
    assert_eq!(
        errors(&source(&text)),
        [
            "sources.toml:7: sources.s.projections[0].order: found { x } in fetch.thing.set, allowed \
          { y }, as the projection's own `set` has it: the same fields of s#thing"
        ]
    );
    let text = format!("{}{}", projection("a", "thing", tie, SET), table("fetch.thing", "", ""));
    let source = accepted(&source(&text));
    let is_tie = |order: &Order| matches!(order, Order::Version { tie: Tie::Fetch, .. });
    assert!(is_tie(&only(&source).order));
}
