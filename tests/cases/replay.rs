//! Kind j: events fed in again, from a provider's list or from what was kept.

use crate::shop::shop;
use ledger::{Millis, Outcome, Status};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::{Desk, Dialect, EventApi, ListAnswer, Pages};
use workflow::replay::{Look, pager::Window};

const NOW: Millis = Millis(1_796_040_000_000);
const MINUTE: u64 = 60_000;

fn stripe(items: Vec<Value>) -> Desk {
    let mut api = EventApi::new(Dialect::Stripe, "rk_test_cases");
    api.items = items;
    Desk::new(shop().at(NOW).build(), api)
}

/// A subscription's event.
fn event(id: &str, at: Millis, of: &str) -> Value {
    json!({"id": id, "object": "event", "type": "customer.subscription.updated",
        "created": at.0 / 1_000, "data": {"object": {"id": of, "status": "active"}}})
}

fn window(minutes: u64) -> Window {
    Window::new(NOW.minus(minutes * MINUTE), NOW)
}

/// GitHub's list and the bodies behind it; the newest last here.
fn github(deliveries: &[(u64, &str, &str, u16)]) -> Desk {
    let mut api = EventApi::new(Dialect::Github, "ghp_test_cases");
    for (id, guid, event, status) in deliveries {
        let at = jiff_like(NOW.minus(30 * MINUTE).plus(id * 10));
        api.items.insert(
            0,
            json!({"id": id, "guid": guid, "event": event, "delivered_at": at,
                "status_code": status}),
        );
        let headers = json!({"X-GitHub-Event": event, "X-GitHub-Delivery": guid});
        let request = json!({"headers": headers, "payload": {"zen": "Speak like a human."}});
        api.details.insert(id.to_string(), json!({"id": id, "guid": guid, "request": request}));
    }
    Desk::new(shop().at(NOW).build(), api)
}

/// `2026-11-30T11:30:00Z`.
fn jiff_like(at: Millis) -> String {
    let s = at.0 / 1_000 % 86_400;
    format!("{}T{:02}:{:02}:{:02}Z", at.date(), s / 3_600, s / 60 % 60, s % 60)
}

#[test]
fn j01_more_events_of_one_second_than_fit_on_a_page_all_come_once() {
    // Page size, and how many there are: the report's, single pages, the last page exactly full.
    for (page_max, events) in [(100, 250), (1, 7), (100, 200), (100, 100)] {
        let items = (0..events).rev().map(|n| event(&format!("evt_{n}"), NOW, &format!("s{n}")));
        let desk = stripe(items.collect());
        desk.with(|api| {
            api.page_max = page_max;
            // And one more arrives before each page is read.
            let late = (0..3).map(|n| event(&format!("evt_late_{n}"), NOW, &format!("late{n}")));
            api.arriving = late.collect();
        });
        let begun = desk.begin("stripe", Window::new(NOW.minus(1), NOW));
        let done = desk.replay(&begun, &Pages::default()).unwrap().unwrap();
        let seen = done.tally.new;
        assert!((events..=events + 1).contains(&seen), "{seen} of {events}, {page_max} a page");
        let again = desk.replay(&desk.begin("stripe", window(1)), &Pages::default());
        let again = again.unwrap().unwrap();
        assert_eq!(again.tally.new + seen, again.tally.fetched, "the second run has the rest");
        assert_eq!(desk.world.keys().len() as u64, again.tally.fetched);
    }
}

#[test]
fn j03_the_checkpoint_moves_only_over_what_was_listed_and_the_rest_is_said_to_be_missing() {
    let at = |n: u64| NOW.minus(29 * MINUTE).plus(n * 4_900);
    let items = (0..350).rev().map(|n| event(&format!("evt_{n}"), at(n), &format!("s{n}")));
    let desk = stripe(items.collect());
    // All but number 301, as the newest first counts them, arrived.
    let missed = 349 - 300;
    for n in (0..350).filter(|n| *n != missed) {
        let body = event(&format!("evt_{n}"), at(n), &format!("s{n}")).to_string();
        assert_eq!(desk.world.deliver("stripe", &[], body.as_bytes()).status, 200);
    }
    let pages = Pages::default();
    let begun = desk.begin("stripe", window(30));
    // A page is one call to the provider and a hundred posts.
    desk.die_at(150);
    assert!(desk.replay(&begun, &pages).is_none(), "killed on its second page");
    let kept = pages.last().unwrap();
    assert_eq!(kept.tally.fetched, 100, "one page is certain");
    assert!(kept.next.is_some(), "and the run is known to be unfinished");
    desk.die_at(u64::MAX);
    let done = desk.replay(&kept, &pages).unwrap().unwrap();
    assert_eq!((done.tally.fetched, done.tally.new, done.next), (350, 1, None));
    desk.world.work();
    assert_eq!(desk.world.status(&format!("stripe#evt_{missed}")), Status::Settled);
}

#[test]
fn j05_what_was_delivered_later_or_recovered_before_is_not_asked_for_again() {
    let desk = github(&[
        (1, "A", "push", 500),
        (2, "B", "push", 500),
        (3, "C", "push", 500),
        (4, "A", "push", 200),
        (5, "C", "push", 500),
    ]);
    let headers = [("x-github-event", "push"), ("x-github-delivery", "A")];
    assert_eq!(desk.world.deliver("github", &headers, b"{}").status, 200);
    let run = |desk: &Desk| {
        let begun = desk.begin("github", window(60));
        desk.replay(&begun, &Pages::default()).unwrap().unwrap().tally
    };
    let first = run(&desk);
    assert_eq!((first.fetched, first.new, first.duplicate), (5, 2, 3));
    assert_eq!(desk.with(|api| api.detail_requests), 2, "B and C, once each");
    let second = run(&desk);
    assert_eq!((second.fetched, second.new, second.duplicate), (5, 0, 5));
    assert_eq!(desk.with(|api| api.detail_requests), 2, "and nothing the second time");
}

#[test]
fn j08_an_old_request_is_refused_at_the_door_and_taken_at_the_replay_route() {
    let desk = stripe(Vec::new());
    let body = event("evt_j08", NOW.minus(14_400 * MINUTE), "sub_j08").to_string();
    let old = desk.world.signer.call_at(
        "stripe",
        &[],
        body.clone().into_bytes(),
        NOW.minus(14_400 * MINUTE).0,
    );
    let own = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let headers: Vec<(String, String)> =
        old.headers.iter().map(|(name, value)| (name.clone(), own(value))).collect();
    let with = |more: &[(&str, &str)], path: &str| {
        let old = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<(&str, &str)> = old.chain(more.iter().copied()).collect();
        desk.world.request("POST", path, &headers, body.as_bytes()).status
    };
    assert_eq!(with(&[], "/webhooks/stripe"), 401, "ten days old");
    assert_eq!(with(&[], "/replay/stripe"), 401, "an old signature opens nothing here");
    let token = Desk::token_of("stripe");
    let words = [("x-replay-by", "anna"), ("x-replay-reason", "kept")];
    let opened = [&[("x-replay-token", token.as_str())], words.as_slice()].concat();
    assert_eq!(with(&opened, "/replay/stripe"), 200);
    assert_eq!(with(&opened, "/webhooks/stripe"), 401, "the token opens nothing else");
    desk.world.work();
    assert_eq!(desk.world.status("stripe#evt_j08"), Status::Settled);
}

/// The report asks for a mark on each message. There is none to forge: a message is a key and
/// nothing more, and what is worked is the row that the receiver verified and wrote.
#[test]
fn j09_verified_once_at_receipt_an_event_is_worked_after_any_delay() {
    let desk = stripe(Vec::new());
    let world = &desk.world;
    let body = event("evt_j09", NOW, "sub_j09").to_string();
    assert_eq!(world.deliver("stripe", &[], body.as_bytes()).status, 200);
    world.twin.advance(10 * MINUTE);
    world.work();
    assert_eq!(world.row("stripe#evt_j09").life.outcome, Some(Outcome::Applied));
    world
        .twin
        .enqueue(r#"{"v":1,"key":"stripe#evt_forged","type":"customer.subscription.updated"}"#);
    world.work_through();
    assert_eq!(world.twin.dead_letter_bodies().len(), 1, "refused, and shown");
    assert!(world.twin.find("stripe#evt_forged").is_none(), "a message makes no row");
}

#[test]
fn j13_each_event_of_a_page_is_counted_as_what_became_of_it() {
    let at = |n: u64| NOW.minus(30 * MINUTE).plus(n * MINUTE);
    let mut items: Vec<Value> = Vec::new();
    // Three stale, two known, one that is no event, four new; the newest last.
    items.extend((0..3).map(|n| event(&format!("evt_stale_{n}"), at(n), &format!("s{n}"))));
    items.extend((3..5).map(|n| event(&format!("evt_known_{n}"), at(n), &format!("k{n}"))));
    items.push(json!({"object": "event", "type": "customer.subscription.updated"}));
    items.extend((6..10).map(|n| event(&format!("evt_new_{n}"), at(n), &format!("n{n}"))));
    // And a page behind it.
    items.insert(0, event("evt_older", at(0), "older"));
    let newer = (0..3).map(|n| event(&format!("evt_newer_{n}"), NOW, &format!("s{n}")));
    let delivered: Vec<Value> = newer.chain(items[4..6].iter().cloned()).collect();
    items.reverse();
    let desk = stripe(items);
    desk.with(|api| api.page_max = 10);
    for event in &delivered {
        let body = event.to_string();
        assert_eq!(desk.world.deliver("stripe", &[], body.as_bytes()).status, 200);
    }
    let begun = desk.begin("stripe", window(60));
    let tally = desk.replay(&begun, &Pages::default()).unwrap().unwrap().tally;
    assert_eq!((tally.fetched, tally.new, tally.duplicate, tally.failed), (11, 8, 2, 1));
    assert_eq!(tally.failures[0].why, "it has no id at \"/id\"");
    desk.world.work();
    let mut outcomes: BTreeMap<Outcome, usize> = BTreeMap::new();
    for row in desk.world.twin.rows() {
        if row.evidence.origin == ledger::Origin::Replay {
            *outcomes.entry(row.life.outcome.unwrap()).or_default() += 1;
        }
    }
    let expected = BTreeMap::from([(Outcome::Applied, 5), (Outcome::Superseded, 3)]);
    assert_eq!(outcomes, expected, "four new ones and the older page's are applied");
}

#[test]
fn j14_of_7000_missed_deliveries_the_270_that_matter_are_fetched_and_no_others() {
    let name = |n: u64| if n.is_multiple_of(26) { "workflow_job" } else { "push" };
    let guids: Vec<String> = (0..7_000).map(|n| format!("guid-{n}")).collect();
    let listed: Vec<(u64, &str, &str, u16)> =
        (0..7_000).zip(&guids).map(|(n, guid)| (n, guid.as_str(), name(n), 502)).collect();
    let desk = github(&listed);
    let mut begun = desk.begin("github", window(120));
    let dry = desk.run(&begun, &Pages::default(), Look).unwrap().unwrap();
    assert_eq!(dry.tally.types["workflow_job"], (270, 270));
    assert_eq!(dry.tally.types["push"], (6_730, 6_730));
    assert_eq!(desk.with(|api| api.detail_requests), 0, "counting needs no body");

    begun.types = vec!["workflow_job".to_owned()];
    let spent = ListAnswer::status(
        403,
        &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1796041200")],
    );
    let before = desk.with(|api| api.requests);
    desk.with(|api| {
        api.trouble = Some(Box::new(move |n| {
            (n == before + 200 || n == before + 201).then(|| spent.clone())
        }));
    });
    let pages = Pages::default();
    desk.die_at(300);
    assert!(desk.replay(&begun, &pages).is_none(), "interrupted");
    desk.die_at(u64::MAX);
    let done = desk.replay(&pages.last().unwrap(), &pages).unwrap().unwrap();
    let tally = &done.tally;
    assert_eq!((tally.fetched, tally.new, tally.skipped), (270, 270, 6_730));
    let waited = desk.waited();
    assert!(waited[0].starts_with("GitHub asks to slow down (403); 600000"), "{waited:?}");
    let read = desk.with(|api| api.detail_requests);
    assert!((270..=275).contains(&read), "{read}: only the page it died on is looked at again");
}
