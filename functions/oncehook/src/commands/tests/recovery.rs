//! What feeds events in again and what follows them, on a stack in memory.

use super::*;
use crate::{
    commands::{dead_redrive, replay_ledger, tail},
    http::{Answered, Outgoing, Wire},
    operator::Operator,
};
use aws::Moved;
use ledger::Status;
use std::sync::Mutex;
use workflow::{
    ports::{Ledger as _, PortError, Trouble},
    twin::{Fault, Twin},
};

impl dead_redrive::Letters for Twin {
    async fn letters(&self) -> Result<u64, PortError> {
        Ok(self.dead_letter_bodies().len() as u64)
    }

    async fn move_back(&self, _per_second: u32) -> Result<Moved, PortError> {
        // A call of the twin's, so that a fault can be planned for the move.
        self.notes().await?;
        let count = self.letters().await?;
        self.redrive_dead_letters();
        Ok(Moved::OneByOne(count))
    }
}

const WHO: &str = "--by ada --reason restored --rate 1000";

pub(super) async fn replay(stack: &Stack, line: &str) -> replay_ledger::Ran {
    let line = format!("oncehook replay --from-ledger {WHO} {line}");
    replay_by(stack, &line, &Operator::typing(&line)).await
}

async fn replay_by(stack: &Stack, line: &str, operator: &Operator) -> replay_ledger::Ran {
    let Command::Replay(args) = testing::command(line) else { panic!("{line}") };
    let (config, args) = (testing::config(), args.into());
    replay_ledger::run(&*stack.twin, &config, &stack.policy, &args, operator).await.unwrap()
}

async fn redrive(stack: &Stack, line: &str) -> dead_redrive::Done {
    let line = format!("oncehook dead redrive --by ada --reason mended {line}");
    let Command::Dead(Dead::Redrive(args)) = testing::command(&line) else { panic!("{line}") };
    dead_redrive::run(&*stack.twin, &args, &Operator::typing(&line)).await.unwrap()
}

/// A stack with forty settled pushes, a dead event, and one that nobody works yet.
async fn filled() -> Stack {
    let stack = Stack::new();
    post(&stack, "github_push --id p-{n} --set /after=c{n} --times 40").await.unwrap();
    post(&stack, "stripe_poison").await.unwrap();
    for _ in 0..6 {
        stack.consume().await;
    }
    post(&stack, "stripe_subscription_created").await.unwrap();
    stack.twin.advance(1_000);
    stack
}

fn made(stack: &Stack) -> usize {
    let rows = stack.twin.rows();
    rows.iter().filter(|row| row.evidence.key.replay_of().is_some()).count()
}

#[tokio::test]
async fn a_preview_counts_by_type_and_reason_and_writes_nothing() {
    let stack = filled().await;
    let before = stack.twin.rows();
    let ran = replay(&stack, "--since 1h").await;
    let (text, json) = read(&ran);
    assert_eq!(stack.twin.rows(), before);
    let numbers = ["selected", "replayed", "before", "refused", "failed"].map(|name| &json[name]);
    assert_eq!(numbers, [42, 40, 0, 2, 0], "{text}");
    assert!(text.contains("40     to replay  push"), "{text}");
    assert!(text.contains("dead: a redrive") && text.contains("not finished yet"), "{text}");
    assert!(text.contains("nothing is written yet; the same with --execute"), "{text}");
    assert!(!ran.needs_attention(), "what a window holds besides is no mistake");
}

#[tokio::test]
async fn a_run_makes_each_row_once_however_often_it_is_interrupted_and_its_numbers_add_up() {
    let stack = filled().await;
    let first = replay(&stack, "--since 1h --run r1 --limit 15 --execute").await;
    let (text, json) = read(&first);
    assert_eq!((&json["selected"], &json["more"]), (&15.into(), &true.into()), "{text}");
    let next = json["next"].as_str().unwrap();
    assert!(next.contains("--run r1 --limit 15 --execute"), "{next}");
    // The store fails for one event: it is named, and the next is done all the same.
    let mut claims = 0;
    stack.twin.set_faults(move |step, _| {
        claims += u32::from(step == "claim");
        (step == "claim" && claims == 20).then_some(Fault::Before(Trouble::Unavailable))
    });
    let second = replay(&stack, "--since 1h --run r1 --execute").await;
    stack.twin.clear_faults();
    let (text, json) = read(&second);
    let number = |name: &str| json[name].as_u64().unwrap();
    assert_eq!(number("failed"), 1, "{text}");
    assert!(json["failures"][0]["key"].as_str().unwrap().starts_with("github#p-"), "{text}");
    assert!(second.needs_attention());
    let sum = ["replayed", "before", "refused", "failed"].map(number).iter().sum::<u64>();
    assert_eq!(sum, number("selected"));
    let third = replay(&stack, "--since 1h --run r1 --execute").await;
    let (text, json) = read(&third);
    assert_eq!((&json["replayed"], &json["before"]), (&1.into(), &39.into()), "{text}");
    assert_eq!(made(&stack), 40);
    assert_eq!(read(&replay(&stack, "--since 1h --run r1").await).1["before"], 40, "a preview");
}

#[tokio::test]
async fn an_interrupted_run_names_the_command_that_does_the_rest_however_late_it_is_typed() {
    let stack = filled().await;
    let line = format!("oncehook replay --from-ledger {WHO} --since 1h --limit 30 --execute");
    let twin = std::sync::Arc::clone(&stack.twin);
    let terminal = indicatif::InMemoryTerm::new(5, 80);
    let seen = terminal.clone();
    let operator = Operator::typing(&line).looking_at(&terminal).leaving_when(move || {
        let made = twin.rows().iter().filter(|row| row.evidence.key.replay_of().is_some()).count();
        made > 10 && seen.contents().contains(" replayed, 0 refused, 0 failed")
    });
    let ran = replay_by(&stack, &line, &operator).await;
    let failure = ran.stopped().unwrap();
    assert_eq!(failure.code(), 130);
    let (text, json) = read(&ran);
    let replayed = json["replayed"].as_u64().unwrap();
    assert!((10..30).contains(&replayed) && json["complete"] == false, "{text}");
    assert!(failure.to_string().contains(&format!("{replayed} replayed, 0 there")), "{failure}");
    assert_eq!(terminal.contents(), "", "the bar is gone");
    // An hour later `--since 1h` would be another window; and the clock of the run's name, another run.
    stack.twin.advance(3_600_000);
    let next = failure.next().unwrap();
    let went_on = replay_by(&stack, next, &Operator::typing(next)).await;
    let (text, json) = read(&went_on);
    assert!(went_on.stopped().is_none() && json["more"] == true, "{text}");
    assert_eq!(made(&stack), 30, "as many as were asked for, each once: {next}");
    let next = json["next"].as_str().unwrap().trim_start_matches("go on:").trim();
    let next = next.replace("--limit 30", "");
    let last = replay_by(&stack, &next, &Operator::typing(&next)).await;
    assert!(last.stopped().is_none() && read(&last).1["complete"] == true);
    assert_eq!(made(&stack), 40);
}

#[tokio::test]
async fn a_preview_that_is_interrupted_says_that_nothing_is_written() {
    let stack = filled().await;
    let line = format!("oncehook replay --from-ledger {WHO} --since 1h");
    let operator = Operator::typing(&line).leaving_when(|| true);
    let ran = replay_by(&stack, &line, &operator).await;
    let failure = ran.stopped().unwrap();
    assert!(failure.to_string().contains("nothing is written"), "{failure}");
    assert_eq!(failure.next(), Some(line.as_str()));
}

#[tokio::test]
async fn a_window_does_not_replay_what_replays_made_and_a_key_that_is_one_is_refused() {
    let stack = filled().await;
    replay(&stack, "--since 1h --type push --run r1 --execute").await;
    let again = read(&replay(&stack, "--since 1h --type push --run r2").await).1;
    assert_eq!(again["selected"], 40, "and not eighty");
    let named = replay(&stack, "_r#r1#github#p-1 github#nobody --execute").await;
    let (text, _) = read(&named);
    assert!(named.needs_attention() && text.contains("it is a replay itself"), "{text}");
    assert!(text.contains("missing") && text.contains("github#nobody"), "{text}");
}

#[tokio::test]
async fn a_replayed_event_says_who_and_why_and_is_applied_through_the_guard() {
    let stack = filled().await;
    let ran = replay(&stack, "github#p-7 --run r1 --execute").await;
    let (text, _) = read(&ran);
    assert!(text.contains("oncehook events show _r#r1#github#p-7"), "{text}");
    stack.consume().await;
    let (text, json) = read(&show(&stack, "_r#r1#github#p-7", "").await);
    assert!(text.contains("replayed: by ada: restored (run r1)"), "{text}");
    assert_eq!(json["event"]["outcome"], "superseded", "{text}");
    let (_, original) = read(&show(&stack, "github#p-7", "").await);
    assert_eq!(original["event"]["origin"], "delivery");
}

#[tokio::test]
async fn a_build_s_dead_come_back_together_permanent_ones_too_and_say_by_whom() {
    let stack = Stack::new();
    post(&stack, "stripe_poison --id evt_p{n} --times 7").await.unwrap();
    stack.consume().await;
    // A second body of a known id is dead as well, and no build cures that.
    post(&stack, "github_push").await.unwrap();
    post(&stack, "github_push --set /ref=refs/heads/other").await.unwrap();
    let nothing = read(&redrive(&stack, "--release build-0").await).0;
    assert!(nothing.contains("nothing died under build build-0"), "{nothing}");
    let preview = redrive(&stack, "--release build-1").await;
    let (text, json) = read(&preview);
    assert_eq!(
        (&json["selected"], &json["permanent"], &json["redriven"]),
        (&7.into(), &7.into(), &0.into())
    );
    assert!(text.contains("nothing is done yet"), "{text}");
    let done = redrive(&stack, "--release build-1 --execute --rate 500").await;
    let (text, json) = read(&done);
    assert_eq!((&json["redriven"], json["left"].as_array().unwrap().len()), (&7.into(), 0));
    assert!(text.contains("7 dead events redriven"), "{text}");
    let (text, json) = read(&show(&stack, "stripe-live#evt_p3", "").await);
    assert!(text.contains("by ada: mended"), "{text}");
    assert_eq!(json["event"]["redriven_by"]["reason"], "mended");
    assert_eq!(read(&redrive(&stack, "--release build-1").await).1["selected"], 0);
}

#[tokio::test]
async fn a_redrive_that_is_interrupted_is_ended_by_the_same_command() {
    let stack = Stack::new();
    post(&stack, "stripe_poison --id evt_i{n} --times 9").await.unwrap();
    while stack.twin.queue_len() > 0 {
        stack.consume().await;
    }
    let line = "oncehook dead redrive --by ada --reason mended --all --execute --rate 500";
    let twin = std::sync::Arc::clone(&stack.twin);
    let enough = move || {
        let dead = twin.rows().iter().filter(|row| row.life.status == Status::Dead).count();
        dead <= 5
    };
    let Command::Dead(Dead::Redrive(args)) = testing::command(line) else { panic!("{line}") };
    let operator = Operator::typing(line).leaving_when(enough);
    let done = dead_redrive::run(&*stack.twin, &args, &operator).await.unwrap();
    let failure = done.stopped().unwrap();
    assert_eq!((failure.code(), failure.next()), (130, Some(line)));
    let said = failure.to_string();
    assert!(said.ends_with(" under way; the dead-letter queue is not moved"), "{said}");
    assert_eq!(stack.twin.queue_len(), 0);
    let (_, json) = read(&done);
    let first = json["redriven"].as_u64().unwrap();
    let (_, json) = read(&redrive(&stack, "--all --execute --rate 500").await);
    assert_eq!(first + json["redriven"].as_u64().unwrap(), 9, "each once");
    assert_eq!(stack.twin.queue_len(), 9, "with every message");
}

#[tokio::test]
async fn all_dead_come_back_with_the_messages_of_the_dead_letter_queue() {
    let stack = Stack::new();
    post(&stack, "stripe_poison --id evt_q{n} --times 3").await.unwrap();
    while stack.twin.queue_len() > 0 {
        stack.consume().await;
    }
    let (text, json) = read(&redrive(&stack, "--all").await);
    assert_eq!((&json["selected"], &json["letters"]), (&3.into(), &3.into()), "{text}");
    assert_eq!(stack.twin.queue_len(), 0, "a preview moves nothing");
    let (text, json) = read(&redrive(&stack, "--all --execute --rate 500").await);
    assert_eq!(json["redriven"], 3);
    assert!(text.contains("3 messages were moved one by one"), "{text}");
    assert_eq!(stack.twin.queue_len(), 3, "each message once: the rows' own were not sent as well");
}

/// What a redrive of three named keys, or of all there are, reports when the `n`th call of `step`
/// finds no answer.
async fn redrive_broken_off(
    step: &'static str,
    nth: u32,
    line: &str,
) -> (Stack, String, Value, u8) {
    let stack = Stack::new();
    post(&stack, "stripe_poison --id evt_b{n} --times 3").await.unwrap();
    while stack.twin.queue_len() > 0 {
        stack.consume().await;
    }
    let mut calls = 0;
    stack.twin.set_faults(move |called, _| {
        calls += u32::from(called == step);
        (called == step && calls == nth).then_some(Fault::Before(Trouble::Unavailable))
    });
    let line = format!("oncehook dead redrive --by ada --reason mended --rate 500 {line}");
    let Command::Dead(Dead::Redrive(args)) = testing::command(&line) else { panic!("{line}") };
    let (read, failure) = if args.keys.is_empty() {
        let done = dead_redrive::run(&*stack.twin, &args, &Operator::typing(&line)).await.unwrap();
        (read(&done), done.stopped().cloned())
    } else {
        let done = dead_by_hand::redrive(&*stack.twin, &args).await.unwrap();
        (read(&done), done.stopped().cloned())
    };
    stack.twin.clear_faults();
    (stack, read.0, read.1, failure.unwrap().code())
}

#[tokio::test]
async fn a_redrive_that_meets_an_error_reports_what_it_did_before() {
    for line in ["--all --execute", "--release build-1 --execute"] {
        let (stack, text, json, code) = redrive_broken_off("redrive", 3, line).await;
        assert_eq!((code, &json["redriven"], &json["stopped"]["exit"]), (3, &2.into(), &3.into()));
        assert!(text.contains("2 dead events redriven"), "{text}");
        assert!(text.contains("the same command again takes up the rest"), "{text}");
        assert_eq!(read(&dead(&stack).await).1["dead"], 1);
    }
    let keys = "stripe-live#evt_b1 stripe-live#evt_b2 stripe-live#evt_b3";
    let (_, text, json, code) = redrive_broken_off("redrive", 2, keys).await;
    assert_eq!((code, json["results"].as_array().unwrap().len()), (3, 1), "{text}");
    assert_eq!(json["untouched"].as_array().unwrap().len(), 2);
    assert!(text.contains("1 of 3 events") && text.contains("not come to"), "{text}");
}

#[tokio::test]
async fn rows_brought_back_are_reported_though_the_dead_letters_cannot_be_moved() {
    let (stack, text, json, code) = redrive_broken_off("notes", 1, "--all --execute").await;
    assert_eq!((code, &json["redriven"], &json["moved"]), (3, &3.into(), &Value::Null), "{text}");
    assert!(text.contains("3 dead events redriven"), "{text}");
    assert!(text.contains("not all messages of the dead-letter queue were moved"), "{text}");
    let row = stack.twin.find("stripe-live#evt_b1").unwrap();
    assert!(row.life.open.unwrap().due_at <= stack.twin.now().plus(120_000), "the steward's turn");
}

#[tokio::test]
async fn named_keys_are_redriven_no_faster_than_the_rate() {
    let stack = Stack::new();
    post(&stack, "stripe_poison --id evt_r{n} --times 3").await.unwrap();
    stack.consume().await;
    let keys = "stripe-live#evt_r1 stripe-live#evt_r2 stripe-live#evt_r3";
    let line = format!("oncehook dead redrive {keys} --by ada --reason mended --rate 20");
    let Command::Dead(Dead::Redrive(args)) = testing::command(&line) else { panic!("{line}") };
    let begun = std::time::Instant::now();
    let done = dead_by_hand::redrive(&*stack.twin, &args).await.unwrap();
    assert!(!done.needs_attention(), "{}", read(&done).0);
    assert!(begun.elapsed().as_millis() >= 95, "{:?}", begun.elapsed());
}

/// Takes what is forwarded, and answers 500 to what it does not like.
#[derive(Default)]
struct Taker(Mutex<Vec<Outgoing>>);

impl Wire for Taker {
    async fn post(&self, outgoing: Outgoing) -> Result<Answered, String> {
        let text = String::from_utf8_lossy(&outgoing.body);
        let status = if text.contains("refs/heads/bad") { 500 } else { 200 };
        drop(text);
        self.0.lock().unwrap().push(outgoing);
        Ok(Answered { status, body: String::new(), ms: 1 })
    }
}

async fn follow(stack: &Stack, taker: &Taker, line: &str) -> bool {
    let line = format!("oncehook tail --once {line}");
    let Command::Tail(args) = testing::command(&line) else { panic!("{line}") };
    let config = testing::config();
    let operator = Operator::typing(&line);
    tail::run(&*stack.twin, &config, taker, &args, false, &operator).await.unwrap()
}

#[tokio::test]
async fn tail_forwards_each_event_once_as_it_came_with_its_key_and_says_what_was_not_taken() {
    let stack = filled().await;
    let taker = Taker::default();
    let url = "http://127.0.0.1:3000/hook";
    assert!(!follow(&stack, &taker, &format!("--since 1h --type push --forward {url}")).await);
    let posts = taker.0.into_inner().unwrap();
    assert_eq!(posts.len(), 40);
    let one = posts.iter().find(|one| one.headers.iter().any(|(_, value)| value == "github#p-7"));
    let one = one.unwrap();
    assert_eq!((one.url.as_str(), one.method.as_str()), (url, "POST"));
    let row = stack.twin.find("github#p-7").unwrap();
    let kept = workflow::body::read(&*stack.twin, &row).await.unwrap();
    assert_eq!(one.body, kept);
    assert!(one.headers.iter().any(|(name, _)| name == "x-github-event"), "{:?}", one.headers);
    post(&stack, "github_push --id bad --set /ref=refs/heads/bad").await.unwrap();
    assert!(follow(&stack, &Taker::default(), &format!("--since 1h --forward {url}")).await);
    let nothing = Taker::default();
    assert!(
        !follow(&stack, &nothing, &format!("--since 1h --forward {url} --source shopify")).await
    );
    assert!(nothing.0.into_inner().unwrap().is_empty());
}

#[tokio::test]
async fn leaving_a_stream_is_no_failure_and_leaving_what_has_an_end_is() {
    let stack = filled().await;
    let taker = Taker::default();
    let url = "http://127.0.0.1:3000/hook";
    for (line, code) in [("", None), ("--once", Some(130))] {
        let line = format!("oncehook tail --source github --since 1h --forward {url} {line}");
        let Command::Tail(args) = testing::command(&line) else { panic!("{line}") };
        let operator = Operator::typing(&line).leaving_when(|| true);
        let config = testing::config();
        let twin = &*stack.twin;
        let ended = tail::run(twin, &config, &taker, &args, false, &operator).await;
        assert_eq!(ended.err().map(|failure| failure.code()), code, "{line}");
    }
}

#[tokio::test]
async fn no_command_reads_the_whole_table() {
    let stack = filled().await;
    stack.twin.reset_counts();
    list(&stack, "--since 1h --limit 100").await;
    replay(&stack, "--since 1h").await;
    redrive(&stack, "--all").await;
    look_for_stuck(&stack).await;
    // A port that scans does not exist; what there is goes by key or by index.
    let calls = stack.twin.counts();
    let known = ["day", "row", "open", "notes", "open entries read"];
    assert!(calls.keys().all(|call| known.contains(call)), "{calls:?}");
}
