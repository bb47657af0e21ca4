//! `oncehook replay` against the deployed stack and providers' lists on loopback ports: the case from
//! practice, and what goes wrong in one.

use crate::{
    command::{self, Ran},
    suite::{STRIPE, Suite},
};
use aws::item::encode_row;
use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use futures::{StreamExt, stream};
use ledger::{
    Millis, Origin, Outcome, Policy, Status,
    verbs::{Birth, Claim},
};
use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};
use serde_json::{Value, json};
use std::time::Duration;
use support::{ListAnswer, claimed_row, iso, now_ms, until};

const EVENTS: usize = 4_812;
const MISSED: usize = 22;
const MINUTE_MS: u64 = 60_000;
/// Deliveries at the same time while a case is set up.
const AT_ONCE: usize = 48;

/// A subscription of its own is born at `at_ms`.
pub(crate) fn born(run: &str, n: usize, at_ms: u64) -> Value {
    json!({
        "id": format!("evt_{run}_{n:05}"), "object": "event", "api_version": "2026-06-30",
        "type": "customer.subscription.created", "created": at_ms / 1_000, "livemode": true,
        "pending_webhooks": 1,
        "data": {"object": {"id": format!("sub_{run}_{n:05}"), "object": "subscription",
            "status": "active", "items": {"data": [{"price": {"id": "price_basic"}}]}}},
    })
}

/// Something the configuration has no use for.
fn other(run: &str, n: usize, at_ms: u64) -> Value {
    let mut event = born(run, n, at_ms);
    event["type"] = json!("charge.succeeded");
    event
}

pub(crate) async fn deliver(suite: &Suite, events: &[Value]) {
    let deliveries = stream::iter(events.to_vec()).map(|event| async move {
        for _ in 0..5 {
            let answer = suite.post_bytes(STRIPE, &[], event.to_string().into_bytes()).await;
            if answer.status == 200 {
                return;
            }
        }
        panic!("a delivery was not taken in five tries");
    });
    deliveries.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

/// Puts rows in place as the consumer leaves what nothing is configured for: thousands of deliveries
/// would be most of the case's time, and prove nothing of it.
async fn plant_ignored(suite: &Suite, events: &[Value]) {
    let table = suite.stack.env.get("ONCEHOOK_LEDGER_TABLE").unwrap();
    let put = |event: &Value| {
        let id = event["id"].as_str().unwrap();
        let at = Millis(event["created"].as_u64().unwrap() * 1_000);
        let body = event.to_string();
        let (mut row, claim) =
            claimed_row(STRIPE, id, event["type"].as_str().unwrap(), body.as_bytes(), at);
        let ignored = Claim { birth: Birth::Ignored, ..claim };
        row.life = ignored.life(&row.evidence.key, &Policy::default());
        let put = PutRequest::builder().set_item(Some(encode_row(&row))).build().unwrap();
        WriteRequest::builder().put_request(put).build()
    };
    let writes: Vec<WriteRequest> = events.iter().map(put).collect();
    for some in writes.chunks(25) {
        let write = suite.stack.aws.dynamodb().batch_write_item();
        let done = write.request_items(table, some.to_vec()).send().await.unwrap();
        assert!(done.unprocessed_items.unwrap_or_default().is_empty());
    }
}

/// The provider lists these, the newest last.
pub(crate) fn list(suite: &Suite, events: &[Value]) {
    suite.providers.stripe.with(|api| {
        api.items = events.iter().rev().cloned().collect();
        (api.trouble, api.requests) = (None, 0);
    });
}

pub(crate) fn figures(ran: &Ran) -> [u64; 4] {
    let report = ran.json();
    ["fetched", "new", "duplicate", "failed"].map(|name| report[name].as_u64().unwrap())
}

/// A place for a checkpoint of one's own.
pub(crate) fn place(suite: &Suite) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(suite.id("checkpoint")).to_str().unwrap().to_owned();
    (dir, path)
}

fn replay<'a>(since: &'a str, checkpoint: &'a str) -> Vec<&'a str> {
    let words = ["--by", "anna", "--reason", "outage of the morning", "--rate", "2000"];
    let what = ["replay", "--source", STRIPE, "--since", since, "--checkpoint", checkpoint];
    [what.as_slice(), &words].concat()
}

pub(crate) async fn settled(suite: &Suite, event: &Value) -> ledger::Row {
    let key = format!("{STRIPE}#{}", event["id"].as_str().unwrap());
    suite.stack.row_in(&key, Status::Settled).await
}

/// Each subscription was changed once: born, and touched by nothing since.
pub(crate) async fn applied_once(suite: &Suite, events: &[Value]) {
    for event in events {
        assert_eq!(settled(suite, event).await.life.outcome, Some(Outcome::Applied));
        let id = event["data"]["object"]["id"].as_str().unwrap();
        let entity = suite.stack.entity(&Suite::subscription_key(id)).await.unwrap();
        assert_eq!(entity.revision, 1, "{id} was changed more than once");
    }
}

pub(crate) async fn of_4812_events_22_are_new_and_the_chart_shows_the_hole(suite: &Suite) {
    let run = suite.id("practice");
    let now = now_ms();
    // Four hours, and in them forty minutes in which nothing arrived: two events in each five of them
    // and a few more.
    let since = now - 240 * MINUTE_MS;
    let hole = (now - 100 * MINUTE_MS) / (5 * MINUTE_MS) * (5 * MINUTE_MS);
    let is_in_hole = |at: u64| (hole..hole + 40 * MINUTE_MS).contains(&at);
    let outside = (0..).map(|n| since + MINUTE_MS + n * 2_450).filter(|at| !is_in_hole(*at));
    let known: Vec<u64> = outside.take(EVENTS - MISSED).collect();
    assert!(known.last().is_some_and(|at| *at < now), "the window is too short");
    let missed = (0..MISSED as u64).map(|n| hole + n * 109_000);
    let known = known.iter().enumerate().map(|(n, at)| match n % 40 {
        0 => born(&run, n, *at),
        _ => other(&run, n, *at),
    });
    let known: Vec<Value> = known.collect();
    let missed: Vec<Value> = missed.enumerate().map(|(n, at)| born(&run, EVENTS + n, at)).collect();
    let mut all: Vec<Value> = known.iter().chain(&missed).cloned().collect();
    all.sort_by_key(|event| event["created"].as_u64());
    let (delivered, ignored): (Vec<Value>, Vec<Value>) =
        known.iter().cloned().partition(|event| event["type"] == "customer.subscription.created");
    deliver(suite, &delivered).await;
    plant_ignored(suite, &ignored).await;
    list(suite, &all);

    let (_dir, checkpoint) = place(suite);
    let since = ((since) / 1_000).to_string();
    let dry = ["replay", "--source", STRIPE, "--since", &since, "--dry-run", "--json"];
    let dry = command::run(suite, &dry).await;
    assert_eq!((figures(&dry), dry.code), ([4_812, 22, 4_790, 0], Some(1)), "{}", dry.err);

    let first = command::run(suite, &replay(&since, &checkpoint)).await;
    assert_eq!(first.code, Some(0), "{}", first.err);
    for figure in
        ["fetched       4812", "new             22", "duplicate     4790", "failed           0"]
    {
        assert!(first.out.contains(figure), "no {figure:?} in:\n{}", first.out);
    }
    let bars = first.out.lines().filter(|line| line.contains('█')).count();
    assert_eq!(bars, 8, "eight slots of five minutes:\n{}", first.out);

    let again = [replay(&since, &checkpoint), vec!["--json"]].concat();
    let second = command::run(suite, &again).await;
    assert_eq!((figures(&second), second.code), ([4_812, 0, 4_812, 0], Some(0)), "{}", second.err);
    suite.stack.queue_is_empty().await;
    applied_once(suite, &[delivered, missed].concat()).await;
}

pub(crate) async fn killed_time_and_again_it_ends_complete_and_nothing_is_applied_twice(
    suite: &Suite,
) {
    let run = suite.id("killed");
    let begin = now_ms() - 60 * MINUTE_MS;
    let all: Vec<Value> = (0..340).map(|n| born(&run, n, begin + n as u64 * 9_000)).collect();
    let known: Vec<Value> = all.iter().step_by(4).cloned().collect();
    deliver(suite, &known).await;
    list(suite, &all);
    let (_dir, checkpoint) = place(suite);
    let since = (begin / 1_000).to_string();
    // The window's end is typed, so that every run asks the same.
    let end = (now_ms() / 1_000).to_string();
    let mut arguments = replay(&since, &checkpoint);
    arguments.extend(["--until", &end, "--json"]);
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]);
    let missed: Vec<&Value> =
        all.iter().enumerate().filter(|(n, _)| n % 4 != 0).map(|(_, e)| e).collect();
    let mut left: Vec<usize> = (0..missed.len()).collect();
    for _ in 0..10 {
        if left.len() < 12 {
            break;
        }
        // The newest come first: dies once an event a little further on has arrived.
        let target = left[left.len() - 1 - (random.next_u32() % 10) as usize];
        let mut child = command::start(suite, &arguments);
        let key = format!("{STRIPE}#{}", missed[target]["id"].as_str().unwrap());
        until("a few more events have arrived", Duration::from_mins(1), async || {
            let found = suite.stack.row(&key).await;
            found.map(|_| ()).ok_or_else(|| format!("not yet {key}"))
        })
        .await;
        child.kill().unwrap();
        child.wait().unwrap();
        left.retain(|n| *n < target);
    }
    let last = command::run(suite, &arguments).await;
    assert_eq!((figures(&last), last.code), ([340, 255, 85, 0], Some(0)), "{}", last.err);
    suite.stack.queue_is_empty().await;
    applied_once(suite, &all).await;
}

pub(crate) async fn github_hands_over_what_is_missing_and_no_body_is_read_twice(suite: &Suite) {
    let run = suite.id("guid");
    let at = |n: u64| {
        let at = iso(now_ms() - 30 * MINUTE_MS + n * 1_000);
        (at, 9_007_199_254_740_993 + n)
    };
    // Every delivery failed; each third was delivered again later, under its own id and GUID.
    let mut items = Vec::new();
    let mut details = std::collections::BTreeMap::new();
    for n in 0..150_u64 {
        let (delivered_at, id) = at(n);
        let guid = format!("{run}-{n}");
        items.insert(
            0,
            json!({"id": id, "guid": guid, "event": "ping", "action": null,
            "delivered_at": delivered_at, "redelivery": false, "status_code": 500}),
        );
        details.insert(
            id.to_string(),
            json!({"id": id, "guid": guid, "request": {
            "headers": {"X-GitHub-Event": "ping", "X-GitHub-Delivery": guid,
                "X-Hub-Signature-256": "sha256=00", "Accept": "*/*"},
            "payload": {"zen": "Keep it logically awesome.", "hook_id": 7}}}),
        );
    }
    for n in (0..150_u64).step_by(3) {
        let (delivered_at, id) = at(n + 200);
        let guid = format!("{run}-{n}");
        let headers = [("x-github-event", "ping"), ("x-github-delivery", guid.as_str())];
        assert_eq!(suite.post_bytes("github", &headers, b"{}".to_vec()).await.status, 200);
        items.insert(
            0,
            json!({"id": id, "guid": guid, "event": "ping", "action": null,
            "delivered_at": delivered_at, "redelivery": true, "status_code": 200}),
        );
    }
    let details_left = details.len();
    suite.providers.github.with(|api| {
        (api.items, api.details, api.detail_requests) = (items, details, 0);
        api.trouble = Some(Box::new(|request| {
            (request == 3).then(|| ListAnswer::status(429, &[("retry-after", "1")]))
        }));
    });
    let (_dir, checkpoint) = place(suite);
    let arguments = [
        "replay",
        "--source",
        "github",
        "--since",
        "2h",
        "--by",
        "anna",
        "--reason",
        "failed deliveries",
        "--checkpoint",
        &checkpoint,
        "--json",
    ];
    let first = command::run(suite, &arguments).await;
    assert_eq!((figures(&first), first.code), ([200, 100, 100, 0], Some(0)), "{}", first.err);
    assert!(first.err.contains("GitHub asks to slow down (429); waiting 1s"), "{}", first.err);
    assert_eq!(suite.providers.github.with(|api| api.detail_requests), 100, "of {details_left}");
    let second = command::run(suite, &arguments).await;
    assert_eq!((figures(&second), second.code), ([200, 0, 200, 0], Some(0)), "{}", second.err);
    assert_eq!(suite.providers.github.with(|api| api.detail_requests), 100, "none is read again");
    let row = suite.stack.row_in(&format!("github#{run}-1"), Status::Settled).await;
    assert_eq!((row.evidence.origin, row.evidence.event_type.as_str()), (Origin::Replay, "ping"));
    suite.providers.github.with(|api| api.items.clear());
}

pub(crate) async fn paddle_asks_for_patience_breaks_off_and_is_read_to_the_end(suite: &Suite) {
    let run = suite.id("pdl");
    // Five hundred notifications of one and the same moment, on pages of sixty.
    let at = iso(now_ms() - 30 * MINUTE_MS);
    let item = |n: usize| {
        json!({"id": format!("ntf_{n:05}"), "type": "customer.updated", "occurred_at": at,
            "payload": {"event_id": format!("{run}_{n}"), "event_type": "customer.updated",
                "occurred_at": at, "data": {"id": format!("ctm_{n}")}}})
    };
    suite.providers.paddle.with(|api| {
        (api.items, api.page_max) = ((0..500).rev().map(item).collect(), 60);
        api.trouble = Some(Box::new(|request| match request {
            2 => Some(ListAnswer::status(429, &[("retry-after", "1")])),
            4 => Some(ListAnswer::Close),
            6 => Some(ListAnswer::status(503, &[])),
            _ => None,
        }));
    });
    let (_dir, checkpoint) = place(suite);
    let arguments = [
        "replay",
        "--source",
        "paddle",
        "--since",
        "2h",
        "--by",
        "anna",
        "--reason",
        "outage",
        "--checkpoint",
        &checkpoint,
        "--rate",
        "2000",
        "--json",
    ];
    let ran = command::run(suite, &arguments).await;
    assert_eq!((figures(&ran), ran.code), ([500, 500, 0, 0], Some(0)), "{}", ran.err);
    let again = command::run(suite, &arguments).await;
    assert_eq!(figures(&again), [500, 0, 500, 0], "{}", again.err);
    suite.providers.paddle.with(|api| api.items.clear());
    suite.stack.queue_is_empty().await;
}
