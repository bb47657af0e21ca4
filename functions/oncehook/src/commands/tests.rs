//! The commands on a stack in memory: what a person reads, and what a program does.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod floods;
mod recovery;
mod reports;

use super::{dead_by_hand, dead_list, events_list, events_show, send, state_show, stuck, verify};
use crate::{
    args::{Command, Dead, Events, State},
    failure::Failure,
    keys,
    output::{Page, Report},
    sample::Sample,
    testing::{self, NOW, SECRETS, Stack, URL},
};
use serde_json::Value;
use workflow::ports::Clock as _;

const CREATED: &str = "stripe-live#evt_1TgQ3wKZ8mWcYbR2k5Rv9sQa";
const POISON: &str = "stripe-live#evt_1TgQEfKZ8mWcYbR2PoisonNull";
const SUBSCRIPTION: &str = "stripe-live#subscription#sub_1TgQ3vKZ8mWcYbR2xN7dLpHa";

/// What a person reads, without colour, and what a program reads, which must be JSON.
fn read(report: &impl Report) -> (String, Value) {
    let mut page = Page::default();
    report.write(&mut page);
    let text = anstream::adapter::strip_str(page.text()).to_string();
    assert!(!text.contains("whsec_"), "a secret in {text}");
    let document = serde_json::to_string(report).unwrap();
    assert!(!document.contains("whsec_"), "a secret in {document}");
    (text, serde_json::from_str(&document).unwrap())
}

async fn post(stack: &Stack, line: &str) -> Result<send::Sent, Failure> {
    stack.send(line).await
}

async fn list(stack: &Stack, line: &str) -> events_list::Listed {
    let line = format!("oncehook events list {line}");
    let Command::Events(Events::List(args)) = testing::command(&line) else { panic!("{line}") };
    events_list::run(&*stack.twin, &testing::config(), &args).await.unwrap()
}

async fn show(stack: &Stack, key: &str, options: &str) -> events_show::Shown {
    let line = format!("oncehook events show {key} {options}");
    let Command::Events(Events::Show(args)) = testing::command(&line) else { panic!("{line}") };
    events_show::run(&*stack.twin, &stack.policy, &args).await.unwrap()
}

async fn state(stack: &Stack, key: &str) -> state_show::Shown {
    let line = format!("oncehook state show {key}");
    let Command::State(State::Show { key }) = testing::command(&line) else { panic!("{line}") };
    state_show::run(&*stack.twin, &key).await.unwrap()
}

async fn dead(stack: &Stack) -> dead_list::Listed {
    dead_of(stack, "").await
}

async fn dead_of(stack: &Stack, line: &str) -> dead_list::Listed {
    let line = format!("oncehook dead list {line}");
    let Command::Dead(Dead::List(args)) = testing::command(&line) else { panic!("{line}") };
    dead_list::run(&*stack.twin, &args).await.unwrap()
}

async fn look_for_stuck(stack: &Stack) -> stuck::Found {
    stuck_of(stack, "").await
}

async fn stuck_of(stack: &Stack, line: &str) -> stuck::Found {
    let line = format!("oncehook stuck {line}");
    let Command::Stuck(args) = testing::command(&line) else { panic!("{line}") };
    stuck::run(&*stack.twin, &stack.policy, &args).await.unwrap()
}

#[tokio::test]
async fn every_sample_is_accepted_and_settles_as_its_case_says() {
    let stack = Stack::new();
    for name in testing::sample_names() {
        let sent = post(&stack, &name).await.unwrap();
        assert!(!sent.needs_attention(), "{name}: {}", read(&sent).0);
        stack.consume().await;
    }
    let (_, listed) = read(&list(&stack, "--limit 100").await);
    let standings: Vec<(String, String)> = listed["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            let outcome = event["outcome"].as_str().unwrap_or(event["status"].as_str().unwrap());
            (event["type"].as_str().unwrap().to_owned(), outcome.to_owned())
        })
        .collect();
    let count = |outcome: &str| standings.iter().filter(|(_, found)| found == outcome).count();
    assert_eq!(count("dead"), 1, "the poison alone: {standings:?}");
    assert_eq!(count("ignored"), 3, "ping, unconfigured, Stripe's invoice: {standings:?}");
    assert_eq!(count("applied") + count("superseded"), standings.len() - 4, "{standings:?}");
    let (text, _) = read(&state(&stack, SUBSCRIPTION).await);
    assert!(text.contains("\"status\": \"canceled\""), "{text}");
}

#[tokio::test]
async fn send_shows_each_delivery_and_names_the_event() {
    let stack = Stack::new();
    let (text, json) = read(&post(&stack, "stripe_subscription_created --times 3").await.unwrap());
    assert_eq!(text.matches(CREATED).count(), 4, "{text}");
    assert!(text.contains(&format!("oncehook events show {CREATED}")), "{text}");
    assert_eq!(json["deliveries"].as_array().unwrap().len(), 3);
    assert_eq!(json["deliveries"][2]["status"], 200);
    assert_eq!(stack.twin.rows().len(), 1, "three deliveries of one event are one row");
}

#[tokio::test]
async fn many_deliveries_are_summed_up_and_numbered_ids_are_different_events() {
    let stack = Stack::new();
    let line = "github_push --id load-{n} --set /after=c{n} --times 40 --parallel 8";
    let (text, json) = read(&post(&stack, line).await.unwrap());
    assert!(text.contains("40 deliveries to") && text.contains("MEDIAN"), "{text}");
    assert!(text.lines().count() < 12, "{text}");
    assert_eq!(json["keys"].as_array().unwrap().len(), 40);
    assert_eq!(stack.twin.rows().len(), 40);
}

#[tokio::test]
async fn a_forged_delivery_that_is_refused_is_fine_and_stores_nothing() {
    let stack = Stack::new();
    let sent = post(&stack, "stripe_subscription_created --forge").await.unwrap();
    let (text, _) = read(&sent);
    assert!(text.contains("401") && text.contains("as it should be"), "{text}");
    assert!(!sent.needs_attention());
    assert!(stack.twin.rows().is_empty());
}

#[tokio::test]
async fn a_refused_delivery_needs_attention() {
    let stack = Stack::new();
    let sent = post(&stack, "stripe_subscription_created --at 2020-01-01T00:00:00Z").await.unwrap();
    assert!(sent.needs_attention(), "signed six years ago: {}", read(&sent).0);
}

#[tokio::test]
async fn a_settled_event_is_explained_with_what_it_changed() {
    let stack = Stack::new();
    post(&stack, "stripe_subscription_created").await.unwrap();
    let waiting = show(&stack, CREATED, "").await;
    let (text, json) = read(&waiting);
    assert!(text.contains("its message is in the queue"), "{text}");
    assert!(!waiting.needs_attention());
    assert_eq!(json["event"]["status"], "claimed");
    stack.consume().await;
    let (text, json) = read(&show(&stack, CREATED, "").await);
    assert!(text.contains("settled: applied"), "{text}");
    assert!(text.contains(&format!("changed {SUBSCRIPTION} (version 1796040000000000)")), "{text}");
    assert!(text.contains("kept until 2027-02-28"), "{text}");
    assert!(text.contains("verified with key 2026-11"), "{text}");
    assert!(!text.contains("atelier-nord"), "no body unless asked for: {text}");
    assert_eq!(json["event"]["outcome"], "applied");
    assert!(json.get("body").is_none());
}

#[tokio::test]
async fn a_body_is_shown_when_asked_for_and_saved_byte_for_byte() {
    let stack = Stack::new();
    post(&stack, "stripe_subscription_created").await.unwrap();
    let file = std::env::temp_dir().join(format!("oncehook-body-{}", std::process::id()));
    let options = format!("--body --save-body {}", file.display());
    let (text, json) = read(&show(&stack, CREATED, &options).await);
    assert!(text.contains("atelier-nord"), "{text}");
    let sent = testing::sample("stripe_subscription_created").body;
    assert_eq!(json["body"].as_str().unwrap().as_bytes(), sent);
    assert_eq!(std::fs::read(&file).unwrap(), sent);
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn an_absent_event_or_entity_needs_attention_and_says_where_to_look() {
    let stack = Stack::new();
    let shown = show(&stack, "stripe-live#evt_none", "").await;
    assert!(shown.needs_attention());
    let (text, json) = read(&shown);
    assert!(text.contains("oncehook events list --source stripe-live"), "{text}");
    assert_eq!(json["found"], false);
    let entity = state(&stack, "stripe-live#subscription#none").await;
    assert!(entity.needs_attention());
    assert_eq!(read(&entity).1["found"], false);
}

#[tokio::test]
async fn a_second_body_under_a_known_id_is_named_with_the_event() {
    let stack = Stack::new();
    post(&stack, "github_push").await.unwrap();
    post(&stack, "github_push --set /ref=refs/heads/other").await.unwrap();
    stack.consume().await;
    let key = "github#3f0c7a52-cdf2-11f1-8a41-5d2e9b64c0aa";
    let shown = show(&stack, key, "").await;
    let (text, json) = read(&shown);
    assert!(shown.needs_attention());
    let conflict = json["conflicts"][0].as_str().unwrap();
    assert!(conflict.starts_with("_c#") && text.contains(conflict), "{text}");
    let (text, _) = read(&show(&stack, conflict, "").await);
    assert!(
        text.contains("decide which body counts") && text.contains(&format!("show {key} --body")),
        "{text}"
    );
    let (text, _) = read(&dead(&stack).await);
    assert!(text.contains("compare the bodies"), "{text}");
}

#[tokio::test]
async fn events_are_listed_newest_first_over_days_sources_and_pages() {
    let stack = Stack::new();
    for (line, later) in [
        ("github_push --id a-{n} --times 130", 86_400_000),
        ("stripe_subscription_created", 3_600_000),
        ("github_push --id b-{n} --times 30 --parallel 4", 60_000),
    ] {
        post(&stack, line).await.unwrap();
        stack.twin.advance(later);
    }
    let (_, all) = read(&list(&stack, "--since 3d --limit 1000").await);
    let events = all["events"].as_array().unwrap();
    assert_eq!(events.len(), 161);
    assert!(all.get("more").is_none());
    let times: Vec<&str> =
        events.iter().map(|event| event["received_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "newest first");
    let (text, _) = read(&list(&stack, "--since 3d --limit 31").await);
    assert!(text.contains(CREATED) && !text.contains("a-1"), "{text}");
    assert!(text.contains("the newest 31"), "{text}");
    let (_, hour) = read(&list(&stack, "--since 30m").await);
    assert_eq!(hour["events"].as_array().unwrap().len(), 30);
    let (_, source) = read(&list(&stack, "--source stripe-live --since 2d").await);
    assert_eq!(source["events"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn more_events_in_one_millisecond_than_a_page_holds_are_all_listed_once() {
    let stack = Stack::new();
    post(&stack, "github_push --id same-{n} --times 1500 --parallel 16").await.unwrap();
    let (_, all) = read(&list(&stack, "--limit 10000").await);
    let events = all["events"].as_array().unwrap();
    let keys: std::collections::BTreeSet<&str> =
        events.iter().map(|event| event["key"].as_str().unwrap()).collect();
    assert_eq!((events.len(), keys.len()), (1_500, 1_500));
}

#[tokio::test]
async fn a_filter_finds_what_matches_and_reads_no_more_of_the_table_than_the_window() {
    let stack = Stack::new();
    post(&stack, "github_push --id p-{n} --times 20").await.unwrap();
    post(&stack, "stripe_poison").await.unwrap();
    stack.consume().await;
    stack.consume().await;
    stack.consume().await;
    let (_, dead) = read(&list(&stack, "--status dead").await);
    assert_eq!(dead["events"][0]["key"], POISON);
    assert_eq!(dead["events"].as_array().unwrap().len(), 1);
    let (_, typed) = read(&list(&stack, "--type push --status settled --limit 5").await);
    assert_eq!(typed["events"].as_array().unwrap().len(), 5);
    let (text, _) = read(&list(&stack, "--type nothing.of.this").await);
    assert_eq!(text, "no events in this window\n");
}

#[tokio::test]
async fn dead_events_are_grouped_explained_redriven_and_closed() {
    let stack = Stack::new();
    post(&stack, "stripe_poison --id evt_p{n} --times 7").await.unwrap();
    stack.consume().await;
    let listed = dead(&stack).await;
    assert!(listed.needs_attention());
    let (text, json) = read(&listed);
    assert_eq!(json["groups"].as_array().unwrap().len(), 1, "{text}");
    assert_eq!(json["groups"][0]["count"], 7);
    assert!(text.starts_with("7 x ") && text.contains("and 2 more"), "{text}");
    assert!(text.contains("permanent"), "{text}");

    let key = "stripe-live#evt_p1";
    let (text, _) = read(&show(&stack, key, "").await);
    assert!(text.contains("dead, waits for a person"), "{text}");
    assert!(text.contains(&format!("oncehook dead redrive {key} --by YOU")), "{text}");

    let line =
        format!("oncehook dead redrive {key} stripe-live#evt_none --by anna --reason mended");
    let Command::Dead(Dead::Redrive(args)) = testing::command(&line) else { panic!() };
    let done = dead_by_hand::redrive(&*stack.twin, &args).await.unwrap();
    let (text, json) = read(&done);
    assert!(done.needs_attention(), "one key did not exist");
    assert_eq!(json["results"][0]["done"], true);
    assert!(text.contains("sent to the queue") && text.contains("no such event"), "{text}");
    assert_eq!(json["by"], "anna");
    let (_, json) = read(&show(&stack, key, "").await);
    assert_eq!(
        (&json["event"]["status"], &json["event"]["attempts"]),
        (&"failed".into(), &0.into())
    );

    let line =
        "oncehook dead resolve stripe-live#evt_p2 stripe-live#evt_p1 --by anna --reason refunded";
    let Command::Dead(Dead::Resolve(args)) = testing::command(line) else { panic!() };
    let done = dead_by_hand::resolve(&*stack.twin, &stack.policy, &args).await.unwrap();
    let (text, _) = read(&done);
    assert!(text.contains("closed") && text.contains("not dead but failed"), "{text}");
    let (text, json) = read(&show(&stack, "stripe-live#evt_p2", "").await);
    assert!(text.contains("anna: refunded"), "{text}");
    assert_eq!(json["event"]["outcome"], "resolved");
    assert_eq!(read(&dead(&stack).await).1["dead"], 5);
}

#[tokio::test]
async fn nothing_is_stuck_until_it_is_overdue_and_then_the_cause_is_named() {
    let stack = Stack::new();
    post(&stack, "github_push").await.unwrap();
    let fine = look_for_stuck(&stack).await;
    assert!(!fine.needs_attention());
    assert!(read(&fine).0.contains("1 event, the oldest"), "{}", read(&fine).0);
    stack.twin.advance(61_000);
    let late = look_for_stuck(&stack).await;
    let (text, json) = read(&late);
    assert!(late.needs_attention());
    assert!(text.contains("no consumer took it") && text.contains("within a minute"), "{text}");
    assert_eq!(json["stuck"][0]["status"], "claimed");
    stack.twin.advance(600_000);
    let (text, _) = read(&look_for_stuck(&stack).await);
    assert!(text.contains("the steward passed it over"), "{text}");
    let mut row = stack.twin.rows().remove(0);
    row.life.sweeps = 3;
    row.life.open =
        row.life.open.map(|open| ledger::Open { due_at: stack.twin.now().plus(9), ..open });
    stack.twin.plant(row);
    let (text, _) = read(&look_for_stuck(&stack).await);
    assert!(text.contains("sent again 3 times, and no consumer ever took it"), "{text}");
    assert!(text.contains("event source mapping"), "{text}");
}

async fn judged(sample: &Sample, source: &str, now: ledger::Millis) -> (String, Value) {
    let config = testing::config();
    let source = config.source(source).unwrap();
    let case = verify::Case { sample, url: None, certificate: None };
    read(&verify::judge(&config, source, &case, SECRETS, now).await.unwrap())
}

/// A sample as its source would receive it.
async fn captured(name: &str) -> Sample {
    let mut sample = testing::sample(name);
    let config = testing::config();
    let source = config.source(sample.source.as_deref().unwrap()).unwrap();
    let keys = keys::of(source, &config, SECRETS).await.unwrap();
    let draft = crate::delivery::Draft { url: URL, source, keys: &keys, forge: false };
    let outgoing = draft.sign(&sample, NOW).unwrap().outgoing;
    sample.headers = outgoing.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    sample
}

#[tokio::test]
async fn an_authentic_request_is_told_its_key_time_and_events() {
    let sample = captured("stripe_subscription_created").await;
    let (text, json) = judged(&sample, "stripe-live", NOW.plus(12_000)).await;
    assert!(
        text.contains("authentic") && text.contains("2026-11-30 12:01:00Z (12s ago)"),
        "{text}"
    );
    assert!(text.contains(CREATED), "{text}");
    assert_eq!(json["kid"], "2026-11");
}

#[tokio::test]
async fn each_cause_of_a_refusal_is_said_in_words_with_a_next_step() {
    let sample = captured("stripe_subscription_created").await;
    let late = judged(&sample, "stripe-live", NOW.plus(900_000)).await;
    assert_eq!(late.1["cause"], "too_old");
    assert!(late.0.contains("signed 600 s before") && late.0.contains("--now"), "{}", late.0);

    let early = judged(&sample, "stripe-live", NOW.minus(900_000)).await;
    assert_eq!(early.1["cause"], "too_new");

    let other = judged(&sample, "stripe-test", NOW).await;
    assert_eq!(other.1["cause"], "no_signature_matched");
    assert!(other.0.contains("a key of source `stripe-live`"), "{}", other.0);

    let mut altered = sample.clone();
    altered.body.push(b'\n');
    let altered = judged(&altered, "stripe-live", NOW).await;
    assert!(altered.0.contains("a line break too many"), "{}", altered.0);

    let mut changed = sample.clone();
    changed.set_header("content-type", "x");
    changed.body = b"{}".to_vec();
    let changed = judged(&changed, "stripe-live", NOW).await;
    assert!(changed.0.contains("compare the stored secret"), "{}", changed.0);

    let bare = judged(&testing::sample("github_push"), "github", NOW).await;
    assert_eq!(bare.1["cause"], "header_missing");
    assert!(bare.0.contains("x-hub-signature-256"), "{}", bare.0);
}
