//! Ctrl-C: the command says how far it is and which command goes on, and that one does the rest, of
//! which nothing is lost and nothing done twice.

use crate::{
    command::{self, Ran},
    replay::{applied_once, born, deliver, figures, list, place, settled},
    suite::{STRIPE, Suite},
};
use ledger::{Outcome, Row, Status};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader},
    process::Child,
    time::{Duration, Instant},
};
use support::{ListAnswer, now_ms, until};

const INTERRUPTED: Option<i32> = Some(130);

/// Waits for a row, then presses Ctrl-C.
async fn interrupted_once_there_is(suite: &Suite, key: &str, child: Child) -> Ran {
    until("the work is in its middle", Duration::from_mins(1), async || {
        let found = suite.stack.row(key).await;
        found.map(|_| ()).ok_or_else(|| format!("not yet {key}"))
    })
    .await;
    command::press_ctrl_c(&child);
    command::end(child).await
}

/// A minute apart from one another, the last of them now.
fn subscriptions(suite: &Suite, stem: &str, count: usize, apart_ms: u64) -> Vec<Value> {
    let run = suite.id(stem);
    let begin = now_ms() - count as u64 * apart_ms;
    (0..count).map(|n| born(&run, n, begin + n as u64 * apart_ms)).collect()
}

fn key(event: &Value) -> String {
    format!("{STRIPE}#{}", event["id"].as_str().unwrap())
}

pub(crate) async fn a_replay_from_a_provider_goes_on_by_the_command_it_names(suite: &Suite) {
    let all = subscriptions(suite, "left", 340, 9_000);
    let known: Vec<Value> = all.iter().step_by(4).cloned().collect();
    deliver(suite, &known).await;
    list(suite, &all);
    let (_dir, checkpoint) = place(suite);
    // An age, which is another time when the rest is asked for; and an order to forget what was.
    let what = ["replay", "--source", STRIPE, "--since", "2h", "--checkpoint", &checkpoint];
    let words = ["--by", "anna", "--reason", "outage of the morning", "--rate", "40", "--fresh"];
    let child = command::start(suite, &[&what[..], &words].concat());
    // The newest come first, a hundred a page; of a page, in the order of their keys.
    let ran = interrupted_once_there_is(suite, &key(&all[141]), child).await;
    assert_eq!(ran.code, INTERRUPTED, "{ran:?}");
    assert!(ran.err.starts_with("interrupted in the window, which is read back to 20"), "{ran:?}");
    // Whole pages, each fourth event of which was there.
    let far = |pages: &u64| {
        let (fetched, new, known) = (pages * 100, pages * 75, pages * 25);
        let far = format!("so far {fetched} fetched, {new} new, {known} duplicate, 0 failed");
        ran.err.contains(&far)
    };
    let pages = (1..=3).find(far).unwrap_or_else(|| panic!("{ran:?}"));
    assert!(!ran.err.contains('\u{1b}') && !ran.err.contains('█'), "no terminal, no bar: {ran:?}");
    let new = format!("new        {:>7}", pages * 75);
    assert!(ran.out.contains(&new), "what is certain is reported: {}", ran.out);
    let next = ran.next();
    assert!(!next.contains("--fresh"), "{next}");

    let rest = command::paste(suite, &format!("{next} --json")).await;
    assert_eq!((figures(&rest), rest.code), ([340, 255, 85, 0], Some(0)), "{}", rest.err);
    assert!(!std::path::Path::new(&checkpoint).exists(), "there is nothing to go on with");
    suite.stack.queue_is_empty().await;
    applied_once(suite, &all).await;
}

pub(crate) async fn a_replay_from_the_ledger_goes_on_with_its_run_in_its_window(suite: &Suite) {
    let begun = now_ms().to_string();
    let all = subscriptions(suite, "again", 80, 1_000);
    // The twenty-first comes in as that.
    for some in [&all[..20], &all[20..21], &all[21..]] {
        deliver(suite, some).await;
    }
    applied_once(suite, &all).await;
    let run = suite.id("run");
    let what = ["replay", "--from-ledger", "--source", STRIPE, "--since", &begun, "--run", &run];
    let words = ["--by", "anna", "--reason", "state lost", "--rate", "10", "--execute", "--json"];
    let child = command::start(suite, &[&what[..], &words].concat());
    let made = |event: &Value| format!("_r#{run}#{}", key(event));
    let ran = interrupted_once_there_is(suite, &made(&all[20]), child).await;
    assert_eq!(ran.code, INTERRUPTED, "{ran:?}");
    let first = ran.json();
    let replayed = first["replayed"].as_u64().unwrap();
    assert!((20..80).contains(&replayed) && first["complete"] == false, "{first}");
    let said: Value = serde_json::from_str(ran.err.lines().last().unwrap()).unwrap();
    assert_eq!(said["exit"], 130);
    let far = format!(
        ": {replayed} replayed, 0 there before, 0 refused, 0 failed; one more may be under way; run {run}"
    );
    assert!(said["error"].as_str().unwrap().ends_with(&far), "{said}");

    // What comes in meanwhile is in no window that ended before.
    let later = subscriptions(suite, "later", 1, 1_000);
    deliver(suite, &later).await;
    let rest = command::paste(suite, said["next"].as_str().unwrap()).await;
    assert_eq!(rest.code, Some(0), "{rest:?}");
    let second = rest.json();
    // One may have been under way.
    let new = second["replayed"].as_u64().unwrap();
    assert!((79..=80).contains(&(replayed + new)), "{first} {second}");
    assert_eq!((&second["failed"], &second["complete"]), (&0.into(), &true.into()));
    // What was claimed and not yet sent when it was let go of is the steward's.
    let is_overdue = |row: &Row| row.life.open.is_some_and(|open| open.due_at.0 < now_ms());
    let is_settled = |row: &Row| row.life.status == Status::Settled;
    for event in &all {
        let wanted = |row: &Row| is_settled(row) || is_overdue(row);
        let row = suite.stack.row_when("it is settled or overdue", &made(event), wanted).await;
        if !is_settled(&row) {
            suite.steward();
        }
        let row = suite.stack.row_in(&made(event), Status::Settled).await;
        assert_eq!(row.life.outcome, Some(Outcome::Superseded));
    }
    assert!(suite.stack.row(&made(&later[0])).await.is_none(), "the window is the first one's");
    suite.stack.queue_is_empty().await;
    applied_once(suite, &all).await;
    settled(suite, &later[0]).await;
}

pub(crate) async fn a_backfill_goes_on_at_its_line_and_sets_nothing_twice(suite: &Suite) {
    const LINES: usize = 400;
    let run = suite.id("floor");
    let entity = |n: usize| Suite::subscription_key(&format!("{run}-{n}"));
    let line = |n| format!(r#"{{"entity": "{}", "version": 1796040000}}"#, entity(n));
    let lines: Vec<String> = (1..=LINES).map(line).collect();
    let (dir, _) = place(suite);
    // A name that a shell would take apart.
    let file = dir.path().join("old customers.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let words = ["backfill-versions", file.to_str().unwrap(), "--rate", "60"];
    let child = command::start(suite, &words);
    until("the file is in its middle", Duration::from_mins(1), async || {
        let found = suite.stack.entity(&entity(90)).await;
        found.map(|_| ()).ok_or_else(|| "not yet".to_owned())
    })
    .await;
    command::press_ctrl_c(&child);
    let ran = command::end(child).await;
    assert_eq!(ran.code, INTERRUPTED, "{ran:?}");
    let next = ran.next();
    let from: usize = next.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((50..LINES).contains(&from), "{ran:?}");
    let said = format!("interrupted at line {from}, everything before it is done\n");
    assert!(ran.err.starts_with(&said), "{ran:?}");
    assert!(ran.out.starts_with(&format!("{} lines of ", from - 1)), "{}", ran.out);
    assert!(suite.stack.entity(&entity(from - 1)).await.is_some());

    let rest = command::paste(suite, &format!("{next} --json")).await;
    assert_eq!(rest.code, Some(0), "{rest:?}");
    assert_eq!(rest.json()["lines"], LINES + 1 - from);
    for n in 1..=LINES {
        let set = suite.stack.entity(&entity(n)).await.unwrap();
        assert_eq!(set.revision, 1, "line {n}");
    }
}

pub(crate) async fn a_comparison_that_waits_for_the_provider_does_not_keep_the_operator(
    suite: &Suite,
) {
    suite.providers.stripe.with(|api| {
        (api.items, api.requests) = (Vec::new(), 0);
        let patience = |_| Some(ListAnswer::status(429, &[("retry-after", "600")]));
        api.trouble = Some(Box::new(patience));
    });
    let mut child = command::start(suite, &["reconcile", "--source", STRIPE]);
    let (first, said) = command::first_line(child.stderr.take().unwrap()).await;
    assert_eq!(first, "Stripe asks to slow down (429); waiting 10m");
    command::press_ctrl_c(&child);
    let ran = command::end(child).await;
    let rest: Vec<String> = said.lines().map(Result::unwrap).collect();
    suite.providers.stripe.with(|api| api.trouble = None);
    assert_eq!(ran.code, INTERRUPTED, "{ran:?}");
    assert!(rest[0].starts_with("interrupted in the comparison: so far 0 fetched"), "{rest:?}");
    assert!(rest[1].ends_with(&format!("reconcile --source {STRIPE}")), "{rest:?}");
}

pub(crate) async fn a_stream_is_left_with_every_line_whole_and_no_complaint(suite: &Suite) {
    let words = ["tail", "--source", STRIPE, "--since", "0s", "--every", "100", "--json"];
    let mut child = command::start(suite, &words);
    let event = subscriptions(suite, "seen", 1, 0);
    let printed = child.stdout.take().unwrap();
    // It begins with what comes in from now on, and nobody says when that is.
    let line = tokio::task::spawn_blocking(move || {
        let mut printed = BufReader::new(printed);
        let mut line = String::new();
        printed.read_line(&mut line).map(|_| (line, printed))
    });
    let (mut sent, begun) = (event.clone(), Instant::now());
    for n in 0.. {
        if line.is_finished() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "nothing is shown");
        sent[0]["id"] = format!("{}_{n}", event[0]["id"].as_str().unwrap()).into();
        deliver(suite, &sent).await;
    }
    let (line, rest) = line.await.unwrap().unwrap();
    let shown: Value = serde_json::from_str(&line).unwrap();
    assert!(shown["key"].as_str().unwrap().starts_with(&key(&event[0])), "{line}");
    command::press_ctrl_c(&child);
    let ran = command::end(child).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "to leave is how following ends");
    for line in rest.lines() {
        serde_json::from_str::<Value>(&line.unwrap()).unwrap();
    }
    suite.stack.queue_is_empty().await;
}
