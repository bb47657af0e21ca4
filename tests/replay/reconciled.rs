//! The scheduled comparison: completeness as a figure, a gap as an alarm, and what cannot be compared
//! as neither.

use crate::shop::{NOW, SHOP, applied, deliver, payment, rows, world, world_sent, world_with};
use ledger::{Origin, Policy};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use support::{Dialect, EventApi, ListAnswer, ListAsk, World, now};
use workflow::{
    CertificateCache, Keyring, Receiver, Reconciler,
    http::HttpAnswer,
    ports::{Notes, Secret},
    reconcile::Scope,
    replay::{
        Checkpoint, Pace,
        pager::{Cursor, Window},
    },
    telemetry::{Level, Line},
    twin::{Fault, Twin},
};

const KEY: &str = "rk_test_51Oncehook";
const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// A shop, its provider, and a reconciler.
struct Hourly {
    world: World,
    api: Arc<Mutex<EventApi>>,
    reconciler: Reconciler<Twin>,
    /// Every address that was asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

fn hourly(scope: Scope) -> Hourly {
    hourly_in(world(), scope)
}

fn hourly_in(world: World, scope: Scope) -> Hourly {
    world.twin.set_secret_of(Secret::Outbound, &format!(r#"{{"shop":[{{"key":"{KEY}"}}]}}"#));
    let api = Arc::new(Mutex::new(EventApi::new(Dialect::Stripe, KEY)));
    let shared = Arc::clone(&api);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    world.twin.set_provider(move |ask| {
        heard.lock().unwrap().push(ask.url.clone());
        let key = ask.headers.iter().find(|(name, _)| name == "authorization");
        let ask = ListAsk::new(&ask.url, key.map_or("", |(_, value)| value.as_str()));
        match shared.lock().unwrap().answer(&ask) {
            ListAnswer::Close => None,
            ListAnswer::Json(status, headers, body) => {
                Some(HttpAnswer { status, headers, body: body.to_string().into_bytes() })
            }
        }
    });
    let reconciler = Reconciler {
        scope,
        allow_local: false,
        pace: Pace { per_second: 1_000_000, at_once: 16 },
        receiver: Receiver {
            ports: Arc::clone(&world.twin),
            config: world.receiver.config.clone(),
            policy: world.policy.clone(),
            keyring: Keyring::new(false),
            certificates: CertificateCache::default(),
            replay: None,
            public_url: None,
        },
    };
    Hourly { world, api, reconciler, asked }
}

impl Hourly {
    /// The provider lists these, the newest last.
    fn listed(&self, events: &[Value]) {
        self.api.lock().unwrap().items = events.iter().rev().cloned().collect();
    }

    /// The addresses that were asked for.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Runs the reconciler, for as long as `ms` where a page takes none; what it said of the shop.
    fn run(&self, ms: u64) -> Vec<Line> {
        let before = self.world.twin.lines().len();
        now(self.reconciler.run(self.world.now().plus(ms), |_| None));
        self.world.twin.lines().split_off(before)
    }
}

/// How long the reconciler has been silent, as the steward says five minutes later.
fn silent_for(hourly: &Hourly) -> Option<f64> {
    let world = &hourly.world;
    world.twin.advance(5 * MINUTE);
    let before = world.twin.lines().len();
    now(world.steward.run(world.now().plus(MINUTE)));
    figure(&world.twin.lines().split_off(before), "ReconcilerSilentFor")
}

/// A payment a minute for the last `minutes`.
fn minutely(minutes: usize) -> Vec<Value> {
    (0..minutes).map(|n| payment(n, NOW.minus((minutes - n) as u64 * MINUTE))).collect()
}

fn figure(lines: &[Line], name: &str) -> Option<f64> {
    let mut metrics = lines.iter().flat_map(|line| &line.metrics);
    metrics.find(|metric| metric.name == name).map(|metric| metric.value)
}

fn said(lines: &[Line]) -> Vec<(Level, &str)> {
    lines.iter().map(|line| (line.level, line.message.as_str())).collect()
}

#[test]
fn what_an_endpoint_is_not_sent_is_no_gap() {
    for (types, said_of) in [
        (r#"["payment"]"#, "Stripe says 21, ledger holds 0, 21 missing, 0 late"),
        (r#"["payment.received"]"#, "Stripe says 21, ledger holds 0, 21 missing, 0 late"),
        (r#"["pay", "invoice"]"#, "Stripe says 0, ledger holds 0, 0 missing, 0 late"),
    ] {
        let hourly = hourly_in(world_sent(types), Scope::All);
        hourly.listed(&minutely(30));
        let lines = hourly.run(300_000);
        let found = said(&lines);
        assert!(found.iter().any(|(_, line)| *line == said_of), "{types}: {found:?}");
    }
}

#[test]
fn when_both_agree_it_says_so_in_one_sentence_and_reports_nothing_missing() {
    let hourly = hourly(Scope::All);
    let events = minutely(120);
    hourly.listed(&events);
    for (n, event) in events.iter().enumerate() {
        // The clock stands at now, so all but the last minutes' arrived late; these are in grace.
        if n >= 3 {
            deliver(&hourly.world, event);
        }
    }
    let lines = hourly.run(300_000);
    // The provider's window ends ten minutes ago.
    let found = said(&lines);
    let text = "Stripe says 111, ledger holds 108, 3 missing, 108 late";
    assert!(found.contains(&(Level::Error, text)), "{found:?}");
    assert_eq!(figure(&lines, "ReconcileMissing"), Some(3.0));

    let again = hourly.run(300_000);
    let text = "Stripe says 61, ledger holds 61, 0 missing, 61 late";
    assert!(said(&again).contains(&(Level::Info, text)), "{:?}", said(&again));
    assert_eq!(figure(&again, "ReconcileMissing"), Some(0.0));
    assert_eq!((rows(&hourly.world), applied(&hourly.world)), (120, Some(120)));
}

#[test]
fn what_is_missing_is_claimed_with_its_origin_and_applied_once() {
    let hourly = hourly(Scope::All);
    let events = minutely(100);
    hourly.listed(&events);
    hourly.run(300_000);
    let claimed: Vec<_> = hourly.world.twin.rows();
    assert!(claimed.iter().all(|row| row.evidence.origin == Origin::Reconcile));
    assert!(claimed.iter().all(|row| row.evidence.kid == "provider-api"));
    assert!(claimed.iter().all(|row| row.evidence.identity_hash.is_none()));
    // The provider tries again after all: nothing happens a second time.
    for event in &events {
        deliver(&hourly.world, event);
    }
    assert_eq!(applied(&hourly.world), Some(100));
}

#[test]
fn a_run_out_of_time_is_trouble_and_the_next_goes_on_where_it_was() {
    let hourly = hourly(Scope::All);
    let events: Vec<Value> =
        (0..450).map(|n| payment(n, NOW.minus(7_200_000 - n as u64))).collect();
    hourly.listed(&events);
    // Each answer of the provider takes a minute, and a run may take a little more than two.
    let twin = &hourly.world.twin;
    twin.set_faults(|step, _| (step == "http").then_some(workflow::twin::Fault::Slow(MINUTE)));
    let first = hourly.run(2 * MINUTE + 21_000);
    assert_eq!(figure(&first, "ReconcileTrouble"), Some(1.0), "{:?}", said(&first));
    assert_eq!(figure(&first, "ReconcileMissing"), None, "nothing is said of a part");
    assert_eq!(rows(&hourly.world), 300);
    let asked = hourly.api.lock().unwrap().requests;
    let second = hourly.run(10 * MINUTE);
    assert_eq!(figure(&second, "ReconcileListed"), Some(450.0), "{:?}", said(&second));
    assert_eq!(figure(&second, "ReconcileMissing"), Some(450.0), "of both runs");
    // Two pages that were left, and one of what happened since.
    assert_eq!(hourly.api.lock().unwrap().requests - asked, 3, "no page is read twice");
}

#[test]
fn a_place_that_the_provider_has_forgotten_does_not_stop_the_comparison_for_ever() {
    let hourly = hourly(Scope::All);
    let events: Vec<Value> =
        (0..450).map(|n| payment(n, NOW.minus(7_200_000 - n as u64))).collect();
    hourly.listed(&events);
    hourly.world.twin.set_faults(|step, _| (step == "http").then_some(Fault::Slow(MINUTE)));
    hourly.run(2 * MINUTE + 21_000);
    // The event that the next page begins behind is gone, and Stripe answers 400 to it.
    hourly.api.lock().unwrap().items.remove(299);
    let refused = hourly.run(10 * MINUTE);
    assert_eq!(figure(&refused, "ReconcileTrouble"), Some(1.0), "{:?}", said(&refused));
    let anew = hourly.run(10 * MINUTE);
    assert_eq!(figure(&anew, "ReconcileListed"), Some(449.0), "{:?}", said(&anew));
    assert_eq!(rows(&hourly.world), 450);
}

#[test]
fn what_was_left_of_a_list_that_has_moved_to_another_host_is_read_anew_from_the_new_one() {
    let hourly = hourly(Scope::All);
    hourly.listed(&minutely(30));
    let window = Window::new(NOW.minus(7_200_000), NOW);
    let mut left = Checkpoint::new(SHOP, "r1".to_owned(), window, Vec::new());
    left.next = Some(Cursor::Address("https://old.example/v1/events?page=2".to_owned()));
    let note = serde_json::json!({ "covered_until": NOW.minus(7_200_000), "unfinished": left });
    let twin = &hourly.world.twin;
    now(twin.write_note("reconcile#shop", &note.to_string())).unwrap();
    let lines = hourly.run(300_000);
    assert!(hourly.asked().iter().all(|url| url.starts_with("https://api.stripe.com/")));
    let text = "Stripe: its list has moved to another host; what was left of it is read anew";
    assert!(said(&lines).contains(&(Level::Warn, text)), "{:?}", said(&lines));
    assert_eq!(figure(&lines, "ReconcileMissing"), Some(21.0), "{:?}", said(&lines));
}

#[test]
fn a_provider_out_of_reach_is_trouble_and_covers_nothing() {
    let hourly = hourly(Scope::All);
    hourly.listed(&minutely(30));
    hourly.api.lock().unwrap().key = "another".to_owned();
    let lines = hourly.run(300_000);
    assert_eq!(figure(&lines, "ReconcileTrouble"), Some(1.0));
    assert_eq!(figure(&lines, "ReconcileMissing"), None);
    hourly.api.lock().unwrap().key = KEY.to_owned();
    // Hours later it is asked for everything since.
    hourly.world.twin.advance(5 * 3_600_000);
    let lines = hourly.run(300_000);
    assert_eq!(figure(&lines, "ReconcileMissing"), Some(30.0), "{:?}", said(&lines));
}

#[test]
fn an_event_that_could_not_be_claimed_is_trouble_and_tried_again_until_it_is() {
    let hourly = hourly(Scope::All);
    let events = minutely(30);
    let mut listed = events.clone();
    // As a list that has changed its form shows it.
    listed[3].as_object_mut().unwrap().remove("created");
    hourly.listed(&listed);
    let figures = |lines: &[Line]| {
        ["ReconcileMissing", "ReconcileFailed", "ReconcileTrouble"].map(|name| figure(lines, name))
    };
    let lines = hourly.run(300_000);
    assert_eq!(figures(&lines), [Some(20.0), Some(1.0), Some(1.0)], "{:?}", said(&lines));
    // Hours later, long after the overlap, it is still wanted.
    for _ in 0..3 {
        hourly.world.twin.advance(5 * 3_600_000);
        let lines = hourly.run(300_000);
        assert_eq!(figure(&lines, "ReconcileFailed"), Some(1.0), "{:?}", said(&lines));
        assert_eq!(figure(&lines, "ReconcileTrouble"), Some(1.0));
    }
    hourly.listed(&events);
    let lines = hourly.run(300_000);
    assert_eq!(figures(&lines), [Some(1.0), Some(0.0), None], "{:?}", said(&lines));
    assert_eq!(applied(&hourly.world), Some(30));
    // From here on a window is an hour again.
    let lines = hourly.run(300_000);
    assert_eq!(figure(&lines, "ReconcileListed"), Some(0.0), "{:?}", said(&lines));
}

#[test]
fn after_a_silence_of_hours_the_next_run_covers_all_of_them() {
    let hourly = hourly(Scope::All);
    hourly.run(300_000);
    let later: Vec<Value> = (0..50).map(|n| payment(n, NOW.plus(n as u64 * 10 * MINUTE))).collect();
    hourly.listed(&later);
    hourly.world.twin.advance(9 * 3_600_000);
    let lines = hourly.run(300_000);
    assert_eq!(figure(&lines, "ReconcileMissing"), Some(50.0), "{:?}", said(&lines));
}

/// A shop whose settled rows go after a week.
fn forgetful() -> Hourly {
    hourly_in(world_with(Policy { retention_days: 7, ..Policy::default() }), Scope::All)
}

#[test]
fn what_was_settled_and_is_gone_is_not_missing_after_an_outage_longer_than_the_retention() {
    let hourly = forgetful();
    hourly.run(300_000);
    hourly.api.lock().unwrap().key = "another".to_owned();
    // Twenty days: every payment is delivered, counted, and forgotten a week later.
    let mut events = Vec::new();
    for n in 0..20 {
        hourly.world.twin.advance(DAY);
        let event = payment(n, hourly.world.now().minus(MINUTE));
        deliver(&hourly.world, &event);
        assert_eq!(applied(&hourly.world), Some(n as u64 + 1));
        hourly.world.twin.expire();
        let lines = hourly.run(300_000);
        assert_eq!(figure(&lines, "ReconcileTrouble"), Some(1.0), "{:?}", said(&lines));
        events.push(event);
    }
    hourly.world.twin.advance(20 * MINUTE);
    assert!(rows(&hourly.world) < 10, "most rows are gone");
    hourly.listed(&events);
    hourly.api.lock().unwrap().key = KEY.to_owned();
    let lines = hourly.run(300_000);
    assert_eq!(figure(&lines, "ReconcileMissing"), Some(0.0), "{:?}", said(&lines));
    assert_eq!(applied(&hourly.world), Some(20), "none is counted twice");
    let uncompared = "Stripe was not compared for 337 hours, and can be no more: its list or the \
                      ledger (RetentionDays 7) reaches back no further";
    assert!(said(&lines).contains(&(Level::Error, uncompared)), "{:?}", said(&lines));
    assert_eq!(figure(&lines, "ReconcileTrouble"), Some(1.0));
    let next = hourly.run(300_000);
    assert_eq!(figure(&next, "ReconcileTrouble"), None, "said once: {:?}", said(&next));
}

#[test]
fn a_comparison_that_goes_on_after_the_retention_leaves_alone_what_the_ledger_has_forgotten() {
    let hourly = forgetful();
    let events: Vec<Value> =
        (0..450).map(|n| payment(n, NOW.minus(7_200_000 - n as u64))).collect();
    hourly.listed(&events);
    for event in &events {
        deliver(&hourly.world, event);
    }
    assert_eq!(applied(&hourly.world), Some(450));
    let twin = &hourly.world.twin;
    twin.set_faults(|step, _| (step == "http").then_some(Fault::Slow(MINUTE)));
    hourly.run(2 * MINUTE + 21_000);
    twin.advance(20 * DAY);
    twin.expire();
    assert_eq!(rows(&hourly.world), 0);
    let lines = hourly.run(10 * MINUTE);
    assert_eq!(figure(&lines, "ReconcileMissing"), Some(0.0), "{:?}", said(&lines));
    let left = said(&lines).iter().any(|(_, text)| text.contains("150 too old to compare"));
    assert!(left, "{:?}", said(&lines));
    assert_eq!((rows(&hourly.world), applied(&hourly.world)), (0, Some(450)));
}

#[test]
fn a_reconciler_that_falls_silent_is_seen_and_one_that_is_not_due_yet_rings_nothing() {
    let mut hourly = hourly(Scope::All);
    assert_eq!(silent_for(&hourly), Some(0.0), "it was just deployed");
    hourly.world.twin.advance(3 * 3_600_000 - 5 * MINUTE);
    assert_eq!(silent_for(&hourly), Some(10_800.0), "it never ran");
    hourly.run(300_000);
    assert_eq!(silent_for(&hourly), Some(300.0));
    // A run in which nothing could be compared is finished all the same; its trouble has its own alarm.
    hourly.world.twin.advance(3_600_000);
    hourly.api.lock().unwrap().key = "another".to_owned();
    hourly.run(300_000);
    assert_eq!(silent_for(&hourly), Some(300.0));
    hourly.world.steward.has_reconciler = false;
    assert_eq!(silent_for(&hourly), None, "nobody waits for what is not there");
}

#[test]
fn two_runs_at_once_claim_each_event_once() {
    let hourly = hourly(Scope::All);
    hourly.listed(&minutely(250));
    let deadline = hourly.world.now().plus(300_000);
    let run = || hourly.reconciler.run(deadline, |_| None);
    now(futures::future::join(run(), run()));
    assert_eq!(rows(&hourly.world), 241);
    assert_eq!(applied(&hourly.world), Some(241));
}

#[test]
fn sources_out_of_scope_or_without_a_key_are_left_out_by_name() {
    let untouched = hourly(Scope::NeverRetried);
    let lines = untouched.run(300_000);
    assert_eq!(said(&lines), [(Level::Info, "reconciler: 0 sources compared")]);
    assert_eq!(untouched.api.lock().unwrap().requests, 0, "Stripe retries by itself");

    let keyless = hourly(Scope::All);
    keyless.world.twin.set_secret_of(Secret::Outbound, "{}");
    let lines = keyless.run(300_000);
    let text = "reconciler: 0 sources compared; left out: shop (the secret has no entry \"shop\")";
    assert_eq!(said(&lines), [(Level::Info, text)]);
    assert_eq!(keyless.world.receiver.config.source(SHOP).unwrap().preset.title(), "Stripe");
}
