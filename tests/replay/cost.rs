//! What a window of any size costs: throughput on the twin, and memory that does not grow.
//!
//! `cargo test --release -p tests --test replay -- --ignored --nocapture --test-threads 1`
#![allow(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement is its report, and needs no digits"
)]

use crate::shop::{NOW, SHOP, begin, desk, payment, rows};
use ledger::{EventKey, Millis, Origin};
use serde_json::Value;
use std::{collections::BTreeMap, time::Instant};
use support::{Pages, now};
use workflow::{
    http::{HttpAnswer, HttpAsk},
    outbound::api_key,
    ports::{Clock, Entropy, Http, KnownRow, Lookup, PortError, Secret, SecretStore},
    replay::{
        Access, Checkpoint, Look, Opening, Pace, Replay,
        pager::{Pager, Window},
    },
};

#[test]
#[ignore = "a measurement: run it alone, with --release"]
fn cost_of_replaying_ten_thousand_events_on_the_twin() {
    let at = |n: usize| NOW.minus(3_600_000).plus(n as u64 * 300);
    let desk = desk((0..10_000).map(|n| payment(n, at(n))).collect());
    for (what, new) in [("new", 10_000), ("duplicate", 0)] {
        let began = Instant::now();
        let done = desk.replay(&begin(&desk, 2), &Pages::default()).unwrap().unwrap();
        let seconds = began.elapsed().as_secs_f64();
        assert_eq!((done.tally.fetched, done.tally.new), (10_000, new));
        println!("replay of 10,000 {what} events on the twin: {:.0} events/s", 10_000.0 / seconds);
    }
    assert_eq!(rows(&desk.world), 10_000);
}

/// A provider without end, made page by page, and a ledger that has everything: nothing is kept, so
/// what grows is the run's own.
struct Endless {
    events: usize,
}

impl Http for Endless {
    async fn call(&self, ask: HttpAsk) -> Result<HttpAnswer, PortError> {
        let after = ask.url.split_once("starting_after=evt_");
        let from = after.map_or(self.events, |(_, number)| number.parse().unwrap());
        let page = from.saturating_sub(100)..from;
        let at = |n: usize| NOW.minus(2_500_000_000).plus(n as u64 * 2);
        let data: Vec<Value> = page.clone().rev().map(|n| payment(n, at(n))).collect();
        let body = serde_json::json!({"has_more": page.start > 0, "data": data}).to_string();
        Ok(HttpAnswer { status: 200, headers: Vec::new(), body: body.into_bytes() })
    }
}

impl Lookup for Endless {
    async fn known(&self, keys: &[EventKey]) -> Result<BTreeMap<EventKey, KnownRow>, PortError> {
        let row = KnownRow { received_at: NOW, origin: Origin::Delivery, origin_note: None };
        Ok(keys.iter().map(|key| (key.clone(), row.clone())).collect())
    }
}

impl Clock for Endless {
    fn now(&self) -> Millis {
        NOW
    }

    async fn sleep(&self, _ms: u64) {}
}

impl Entropy for Endless {
    fn token(&self) -> ledger::Token {
        ledger::Token(1)
    }

    fn jitter(&self) -> ledger::Jitter {
        ledger::Jitter::NONE
    }
}

impl SecretStore for Endless {
    async fn fetch(&self, _secret: Secret) -> Result<String, PortError> {
        Ok(format!(r#"{{"{SHOP}":[{{"key":"rk_test_endless"}}]}}"#))
    }
}

/// The resident memory of this process, in kilobytes.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn read(events: usize) -> Checkpoint {
    let endless = Endless { events };
    let desk = desk(Vec::new());
    let source = desk.source(SHOP);
    let opening = Opening::of(source, None).unwrap();
    let window = Window::new(NOW.minus(2_592_000_000), NOW);
    let key = now(api_key(&endless, Secret::Outbound, opening.secret, true)).unwrap();
    let replay = Replay {
        ports: &endless,
        source,
        pager: Pager::new(opening.list.clone(), opening.address.clone(), window),
        access: &Access::new(opening.list.auth.clone(), key),
        feed: Look,
        watch: &(),
        pace: Pace { per_second: 1_000_000, at_once: 16 },
        remembered_ms: None,
    };
    let begun = Checkpoint::new(SHOP, "r".to_owned(), window, Vec::new());
    now(replay.run(begun, &Pages::default(), None)).unwrap()
}

#[test]
#[ignore = "a measurement: run it alone, with --release"]
fn cost_of_a_window_of_any_size_in_memory() {
    read(10_000);
    let before = resident_kb();
    for events in [10_000, 100_000, 1_000_000] {
        let began = Instant::now();
        let done = read(events);
        assert_eq!(done.tally.fetched, events as u64);
        let (seconds, kb) = (began.elapsed().as_secs_f64(), resident_kb());
        let document = done.to_json().len();
        println!(
            "{events:>9} events: {:>7.0} events/s, resident {kb} KB ({:+} KB), checkpoint {document} bytes",
            events as f64 / seconds,
            kb.cast_signed() - before.cast_signed(),
        );
        assert!(kb < before + 8_192, "memory grows with the window");
    }
}
