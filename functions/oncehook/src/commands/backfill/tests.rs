//! Backfills on the stack in memory.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use super::*;
use crate::{
    args::Command,
    testing::{self, Stack},
};
use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};
use workflow::twin::Fault;

/// A file that lives as long as its test.
struct Written(PathBuf);

impl Written {
    fn new(end: &str, text: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "oncehook-backfill-{}-{}.{end}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

async fn run_on(stack: &Stack, file: &Written, options: &str) -> Result<Done, Failure> {
    let line = format!("oncehook backfill-versions {} --rate 10000 {options}", file.0.display());
    let Command::BackfillVersions(args) = testing::command(&line) else { panic!("{line}") };
    run(&*stack.twin, &testing::config(), &args, &Operator::typing(&line)).await
}

fn told(done: &Done) -> String {
    let mut page = Page::default();
    done.write(&mut page);
    anstream::adapter::strip_str(page.text()).to_string()
}

const MIXED: &str = r#"{"entity": "stripe-live#subscription#a", "version": 1796040000, "state": {"plan": "p"}}
{"entity": "stripe-live#subscription#b", "version": "1796040000"}

{"entity": "stripe-live#subscription#c", "version": null}
{"entity": "stripe-live#subscription#d", "version": "soon"}
{"entity": "stripe-live#subscription", "version": 1}
{"entity": "nobody#thing#1", "version": 1}
{"entity": "shopify#order-payments#1", "version": 1}
{"entity": "stripe-live#subscription#e", "version": 1, "state": {"n": 1e400}}
{"entity": "stripe-live#subscription#f", "version": 1, "stat": {}}
not json, canary
"#;

#[tokio::test]
async fn each_line_is_set_or_named_with_its_reason() {
    let stack = Stack::new();
    let file = Written::new("jsonl", MIXED);
    let done = run_on(&stack, &file, "").await.unwrap();
    assert_eq!((done.lines, done.set, done.malformed), (10, 2, 8));
    assert!(done.needs_attention());
    let said: Vec<(u64, &str)> =
        done.problems.iter().map(|problem| (problem.line, problem.what.as_str())).collect();
    for (line, what) in [
        (4, "version is missing"),
        (5, "\"soon\" is no Unix time in seconds"),
        (6, "<namespace>#<entity type>#<entity id>"),
        (7, "add --unit"),
        (8, "sums, which have no version"),
        (9, "holds a number that"),
        (10, "expected {\"entity\""),
        (11, "is no JSON, at column"),
    ] {
        let found = said.iter().find(|(number, _)| *number == line).unwrap().1;
        assert!(found.contains(what), "line {line}: {found}");
    }
    assert!(!told(&done).contains("canary"));
    let a = stack.twin.state("stripe-live#subscription#a").unwrap();
    assert_eq!(a.version.unwrap().get(), 1_796_040_000_000_000, "as events write it, in seconds");
    assert_eq!(a.state["plan"], "p");
    assert!(stack.twin.state("stripe-live#subscription#b").unwrap().state.is_empty());
}

#[tokio::test]
async fn a_second_run_finds_its_own_work_and_nothing_newer_is_taken_back() {
    let stack = Stack::new();
    let line = |version: u64| {
        format!(r#"{{"entity": "stripe-live#subscription#a", "version": {version}}}"#)
    };
    for (version, expected) in [(50, (1, 0, 0)), (50, (0, 1, 0)), (49, (0, 0, 1)), (51, (1, 0, 0))]
    {
        let done = run_on(&stack, &Written::new("jsonl", &line(version)), "").await.unwrap();
        assert_eq!((done.set, done.already, done.newer), expected, "{version}");
        assert!(!done.needs_attention());
    }
    assert_eq!(stack.twin.state("stripe-live#subscription#a").unwrap().revision, 2);
}

#[tokio::test]
async fn a_dry_run_says_the_same_and_writes_nothing() {
    let stack = Stack::new();
    let file = Written::new("jsonl", MIXED);
    let done = run_on(&stack, &file, "--dry-run").await.unwrap();
    assert_eq!((done.set, done.malformed), (2, 8));
    assert!(told(&done).contains("would be set") && told(&done).contains("nothing written"));
    assert!(stack.twin.state("stripe-live#subscription#a").is_none());
    assert_eq!(stack.twin.counts().get("backfill"), None);
}

#[tokio::test]
async fn csv_says_the_same_as_json() {
    let stack = Stack::new();
    let text = "entity,version,state\n\
        stripe-live#subscription#a,1796040000,\"{\"\"plan\"\": \"\"p\"\"}\"\n\
        stripe-live#subscription#b, 1796040000 ,\n\
        stripe-live#subscription#c,,\n\
        stripe-live#subscription#d,1,[1]\n\
        too,few\n";
    let done = run_on(&stack, &Written::new("csv", text), "").await.unwrap();
    assert_eq!((done.lines, done.set, done.malformed), (5, 2, 3));
    let lines: Vec<u64> = done.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [4, 5, 6]);
    assert_eq!(stack.twin.state("stripe-live#subscription#a").unwrap().state["plan"], "p");
    let failure = run_on(&stack, &Written::new("csv", "id,version\n"), "").await.unwrap_err();
    assert!(failure.to_string().contains("id,version"), "{failure}");
}

#[tokio::test]
async fn an_interruption_names_the_line_to_go_on_from_and_the_rest_completes_it() {
    let stack = Stack::new();
    let lines: Vec<String> = (1..=60)
        .map(|n| format!(r#"{{"entity": "stripe-live#subscription#n{n}", "version": {n}}}"#))
        .collect();
    let file = Written::new("jsonl", &lines.join("\n"));
    let mut calls = 0;
    stack.twin.set_faults(move |_, _| {
        calls += 1;
        (calls > 30).then_some(Fault::Before(workflow::ports::Trouble::Throttled))
    });
    let failure = run_on(&stack, &file, "").await.unwrap_err();
    stack.twin.clear_faults();
    assert_eq!(failure.code(), 3);
    let next = failure.next().unwrap();
    let from: u64 = next.rsplit(' ').next().unwrap().parse().unwrap();
    for n in 1..from {
        assert!(stack.twin.state(&format!("stripe-live#subscription#n{n}")).is_some(), "{n}");
    }
    let done = run_on(&stack, &file, &format!("--from-line {from}")).await.unwrap();
    assert_eq!(done.lines, 61 - from);
    assert_eq!(done.set + done.already, done.lines);
    assert!(stack.twin.state("stripe-live#subscription#n60").is_some());
}

#[tokio::test]
async fn who_leaves_is_told_the_line_and_the_command_that_does_the_rest() {
    let stack = Stack::new();
    let lines: Vec<String> = (1..=60)
        .map(|n| format!(r#"{{"entity": "stripe-live#subscription#n{n}", "version": {n}}}"#))
        .collect();
    let file = Written::new("jsonl", &lines.join("\n"));
    let line = format!("oncehook backfill-versions {} --rate 500", file.0.display());
    let Command::BackfillVersions(args) = testing::command(&line) else { panic!("{line}") };
    let twin = std::sync::Arc::clone(&stack.twin);
    let terminal = indicatif::InMemoryTerm::new(5, 80);
    let seen = terminal.clone();
    let operator = Operator::typing(&line).looking_at(&terminal).leaving_when(move || {
        let is_half = twin.state("stripe-live#subscription#n30").is_some();
        is_half && seen.contents().contains(" of 60: ")
    });
    let done = run(&*stack.twin, &testing::config(), &args, &operator).await.unwrap();
    let failure = done.stopped().unwrap();
    assert_eq!((failure.code(), terminal.contents()), (130, String::new()));
    let said = failure.to_string();
    assert!(said.contains(&format!("interrupted at line {}, everything before", done.lines + 1)));
    assert!(done.lines < 60 && !done.complete);
    for n in 1..=done.lines {
        assert!(stack.twin.state(&format!("stripe-live#subscription#n{n}")).is_some(), "{n}");
    }
    let next = failure.next().unwrap();
    assert!(next.starts_with(&line), "{next}");
    let Command::BackfillVersions(args) = testing::command(next) else { panic!("{next}") };
    let rest = run(&*stack.twin, &testing::config(), &args, &Operator::typing(next)).await.unwrap();
    assert!(rest.complete);
    assert_eq!(done.lines + rest.lines, 60);
    let revisions = (1..=60).map(|n| stack.twin.state(&format!("stripe-live#subscription#n{n}")));
    assert!(revisions.into_iter().all(|entity| entity.unwrap().revision == 1));
}

#[test]
fn lines_are_counted_with_the_last_that_has_no_end_and_a_pipe_is_left_alone() {
    for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\n\nb", 3)] {
        assert_eq!(lines::count(&Written::new("jsonl", text).0), lines, "{text:?}");
    }
    assert_eq!(lines::count(std::path::Path::new("/dev/null")), 0);
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_done() {
    let stack = Stack::new();
    stack.twin.set_faults(|_, _| Some(Fault::AnswerLost));
    let text = r#"{"entity": "stripe-live#subscription#a", "version": 5}"#;
    let done = run_on(&stack, &Written::new("jsonl", text), "").await.unwrap();
    assert_eq!((done.set, done.already), (0, 1));
    assert_eq!(stack.twin.state("stripe-live#subscription#a").unwrap().revision, 1);
}

#[tokio::test]
async fn c11_a_row_from_before_versions_gets_a_floor_and_no_older_event_wins_once() {
    let stack = Stack::new();
    let entity = "stripe-live#subscription#sub_1TgQ3vKZ8mWcYbR2xN7dLpHa";
    let status = [("status".to_owned(), serde_json::Value::from("canceled"))];
    let legacy = ledger::Entity {
        version: None,
        rank: 0,
        last_event: String::new(),
        revision: 1,
        state: serde_json::Map::from_iter(status),
        updated_at: Millis(1),
        is_final: false,
        waiting: std::collections::BTreeSet::new(),
    };
    stack.twin.plant_state(entity, legacy);
    let text = format!(r#"{{"entity": "{entity}", "version": 1999999999}}"#);
    run_on(&stack, &Written::new("jsonl", &text), "").await.unwrap();
    stack.send("stripe_subscription_created").await.unwrap();
    stack.consume().await;
    assert_eq!(stack.twin.state(entity).unwrap().state["status"], "canceled");
    let outcomes: Vec<_> = stack.twin.rows().iter().map(|row| row.life.outcome).collect();
    assert_eq!(outcomes, [Some(ledger::Outcome::Superseded)]);
}

#[tokio::test]
async fn who_waited_for_the_number_that_is_filled_in_is_worked_at_once() {
    let stack = Stack::new();
    let moved = |n: u64| {
        format!(
            "standard-webhooks_order_moved --id msg_w{n} --set /data/id=ord_w \
             --set /data/sequence={n}"
        )
    };
    for n in [58, 57] {
        stack.send(&moved(n)).await.unwrap();
        stack.consume().await;
    }
    let reached = || {
        let entity = stack.twin.state("standard-webhooks#order#ord_w").unwrap();
        entity.version.map(Version::get)
    };
    assert_eq!((reached(), stack.twin.queue_len()), (None, 0), "both wait, for 56");
    let text = r#"{"entity": "standard-webhooks#order#ord_w", "version": 56}"#;
    let file = Written::new("jsonl", text);
    assert_eq!(run_on(&stack, &file, "").await.unwrap().set, 1);
    stack.consume().await;
    assert_eq!(reached(), Some(58));
}
