//! Random histories under every strategy at once, worked by workers that fail, hang and die between
//! any two steps, and judged by an auditor that knows only what was delivered.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Policy, Status};
use proptest::{collection::vec, prelude::*, test_runner::RngSeed};
use rig::{Rig, provider::Provider};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use workflow::{ports::Trouble, twin::Fault};

const SOURCES: &str = r#"
[sources.shop]
preset = "stripe"
secret = "shop"
live = true

[fetch.fetched]
url = "https://api.shop.example/v1/fetched-{id}"
secret = "shop-api"
on_404 = "dead"
rate_per_s = 10000
set = { value = "/value" }

[fetch.tied]
url = "https://api.shop.example/v1/tied-{id}"
secret = "shop-api"
on_404 = "dead"
rate_per_s = 10000
set = { value = "/value" }

[[sources.shop.projections]]
on = ["ranked", "mixed"]
entity = { type = "ranked", id = "/data/object/id" }
order = { strategy = "version", by = "/created", unit = "s" }
set = { value = "/data/object/value" }

[[sources.shop.projections]]
on = ["ended"]
entity = { type = "ranked", id = "/data/object/id" }
order = { strategy = "version", by = "/created", unit = "s" }
set = { value = "=null" }
final = true

[[sources.shop.projections]]
on = ["fetched", "mixed"]
entity = { type = "fetched", id = "/data/object/id" }
order = { strategy = "fetch" }

[[sources.shop.projections]]
on = ["tied"]
entity = { type = "tied", id = "/data/object/id" }
order = { strategy = "version", by = "/created", unit = "s", tie = "fetch" }
set = { value = "/data/object/value" }

[[sources.shop.projections]]
on = ["numbered", "mixed"]
entity = { type = "numbered", id = "/data/object/id" }
order = { strategy = "sequence", by = "/data/object/number", on_gap = "apply" }
set = { value = "/data/object/value" }

[[sources.shop.projections]]
on = ["summed", "mixed"]
entity = { type = "summed", id = "/data/object/id" }
order = { strategy = "none" }
add = { total = "/data/object/amount" }
append = { seen = "/data/object/value", max = 1000 }
"#;

const KINDS: [&str; 6] = ["ranked", "ended", "fetched", "tied", "numbered", "mixed"];

/// One step of a history.
#[derive(Debug, Clone)]
enum Step {
    /// A new event: its kind, its entity, its second.
    Happens { kind: usize, of: u8, at: u64 },
    /// An earlier event is delivered again.
    Again(usize),
    /// A number is lost on its way for good.
    Lost { of: u8 },
    /// A batch is worked, and meets this.
    Work(Weather),
    /// Time passes, and the steward runs.
    Pass { ms: u64 },
}

/// What a batch meets, from its so-manieth call on or at it.
#[derive(Debug, Clone, Copy)]
enum Weather {
    Fair,
    /// The worker dies: nothing it still wants to do happens.
    Death(u64),
    /// The answer of one call is lost, or one call fails, or takes its time.
    Lost(u64),
    Fails(u64, Trouble),
    Slow(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let trouble =
        prop_oneof![Just(Trouble::Unavailable), Just(Trouble::Throttled), Just(Trouble::Conflict),];
    let weather = prop_oneof![
        3 => Just(Weather::Fair),
        2 => (1..25_u64).prop_map(Weather::Death),
        1 => (1..25_u64).prop_map(Weather::Lost),
        1 => (1..25_u64, trouble).prop_map(|(call, trouble)| Weather::Fails(call, trouble)),
        1 => (1..25_u64).prop_map(Weather::Slow),
    ];
    prop_oneof![
        8 => (0..KINDS.len(), 0..2_u8, 0..4_u64).prop_map(|(kind, of, at)| Step::Happens { kind, of, at }),
        2 => any::<usize>().prop_map(Step::Again),
        1 => (0..2_u8).prop_map(|of| Step::Lost { of }),
        5 => weather.prop_map(Step::Work),
        1 => (1..120_000_u64).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// What the auditor remembers of an event.
#[derive(Debug, Clone)]
struct Known {
    kind: &'static str,
    of: u8,
    at: u64,
    id: String,
    number: u64,
    amount: u64,
}

/// Keeps its own books; shares no code with what it judges.
#[derive(Default)]
struct Auditor {
    events: Vec<Known>,
    numbers: BTreeMap<u8, u64>,
}

impl Auditor {
    fn of<'a>(&'a self, kinds: &'a [&str], of: u8) -> impl Iterator<Item = &'a Known> {
        self.events.iter().filter(move |event| event.of == of && kinds.contains(&event.kind))
    }

    /// Where `ranked`, `mixed` and `ended` stand in the flattened lists of their entity type.
    fn rank(kind: &str) -> usize {
        ["ranked", "mixed", "ended"].iter().position(|known| *known == kind).unwrap()
    }

    /// What the state of each entity must be.
    fn wanted(&self, of: u8) -> BTreeMap<&'static str, Option<Value>> {
        let value = |event: &Known| json!(event.id);
        let ranked = self.of(&["ranked", "mixed", "ended"], of).max_by_key(|event| {
            (event.kind == "ended", event.at, Self::rank(event.kind), event.id.clone())
        });
        let ranked =
            ranked.map(|event| if event.kind == "ended" { Value::Null } else { value(event) });
        let fetched = self.of(&["fetched", "mixed"], of).last().map(value);
        let newest = self.of(&["tied"], of).map(|event| event.at).max();
        let mut newest = self.of(&["tied"], of).filter(|event| Some(event.at) == newest);
        // With one it is its own word, with several the provider's: the last of them either way.
        let tied = newest.by_ref().last().map(value);
        let numbered = self.of(&["numbered", "mixed"], of).max_by_key(|event| event.number);
        let summed: Vec<u64> = self.of(&["mixed"], of).map(|event| event.amount).collect();
        let total = (!summed.is_empty()).then(|| json!(summed.iter().sum::<u64>()));
        BTreeMap::from([
            ("ranked", ranked),
            ("fetched", fetched),
            ("tied", tied),
            ("numbered", numbered.map(value)),
            ("summed", total),
        ])
    }
}

struct Play {
    rig: Rig,
    provider: Provider,
    auditor: Auditor,
    bodies: Vec<Value>,
}

impl Play {
    fn new() -> Self {
        let rig = Rig::shop(SOURCES, Policy::default());
        let provider = Provider::behind(&rig);
        Self { rig, provider, auditor: Auditor::default(), bodies: Vec::new() }
    }

    async fn act(&mut self, step: &Step) {
        match step {
            Step::Happens { kind, of, at } => self.happens(KINDS[*kind], *of, *at).await,
            Step::Again(index) if !self.bodies.is_empty() => {
                let body = self.bodies[index % self.bodies.len()].clone();
                self.rig.deliver(&body).await;
            }
            Step::Again(_) => {}
            Step::Lost { of } => *self.auditor.numbers.entry(*of).or_default() += 1,
            Step::Work(weather) => self.work(*weather).await,
            Step::Pass { ms } => {
                self.rig.twin.advance(*ms);
                self.rig.tend().await;
            }
        }
    }

    async fn happens(&mut self, kind: &'static str, of: u8, at: u64) {
        let id = format!("evt_{:03}", self.auditor.events.len());
        let is_numbered = matches!(kind, "numbered" | "mixed");
        let last = self.auditor.numbers.entry(of).or_default();
        *last += u64::from(is_numbered);
        let (number, amount) = (*last, 1 << (self.auditor.events.len() % 40));
        let body = json!({
            "id": id, "object": "event", "type": kind, "created": at, "livemode": true,
            "data": {"object": {"id": of, "value": id, "number": number, "amount": amount}},
        });
        // What the event tells of has happened at the provider before it is sent.
        match kind {
            "fetched" | "mixed" => {
                self.provider.put(&format!("fetched-{of}"), json!({"value": id}));
            }
            "tied" => {
                let newest = self.auditor.of(&["tied"], of).map(|event| event.at).max();
                if newest.is_none_or(|newest| at >= newest) {
                    self.provider.put(&format!("tied-{of}"), json!({"value": id}));
                }
            }
            _ => {}
        }
        self.auditor.events.push(Known { kind, of, at, id, number, amount });
        self.rig.deliver(&body).await;
        self.bodies.push(body);
    }

    async fn work(&self, weather: Weather) {
        let mut call = 0;
        let at = move |wanted: u64, fault| {
            move |_: &'static str, _| {
                call += 1;
                (call == wanted).then_some(fault)
            }
        };
        match weather {
            Weather::Fair => {}
            Weather::Death(from) => self.rig.twin.set_faults(move |_, _| {
                call += 1;
                (call >= from).then_some(Fault::Before(Trouble::Unavailable))
            }),
            Weather::Lost(wanted) => self.rig.twin.set_faults(at(wanted, Fault::AnswerLost)),
            Weather::Fails(wanted, trouble) => {
                self.rig.twin.set_faults(at(wanted, Fault::Before(trouble)));
            }
            Weather::Slow(wanted) => self.rig.twin.set_faults(at(wanted, Fault::Slow(45_000))),
        }
        self.rig.batch().await;
        self.rig.twin.clear_faults();
    }

    fn audit(&self) {
        for row in self.rig.twin.rows() {
            assert_eq!(row.life.status, Status::Settled, "{} {:?}", row.evidence.key, row.life);
        }
        for of in 0..2 {
            for (kind, wanted) in self.auditor.wanted(of) {
                let entity = self.rig.twin.state(&format!("shop#{kind}#{of}"));
                let field = if kind == "summed" { "total" } else { "value" };
                let found = entity.as_ref().and_then(|entity| entity.state.get(field).cloned());
                assert_eq!(found, wanted, "{kind} of {of}");
                assert!(entity.is_none_or(|entity| entity.waiting.is_empty()), "{kind} of {of}");
            }
            let entity = self.rig.twin.state(&format!("shop#summed#{of}"));
            let seen = entity.map_or_else(Vec::new, |entity| {
                entity.state["seen"].as_array().unwrap().iter().map(Value::to_string).collect()
            });
            let distinct: BTreeSet<&String> = seen.iter().collect();
            assert_eq!(distinct.len(), seen.len(), "nothing is listed twice");
            assert_eq!(seen.len(), self.auditor.of(&["mixed"], of).count());
        }
    }
}

/// The same histories every time; another seed is a variable away (`PROPTEST_RNG_SEED`).
fn config() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 64;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(20_261_130);
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_on_the_way_every_state_ends_as_the_auditor_says(steps in vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut play = Play::new();
            for step in &steps {
                play.act(step).await;
            }
            // A gap's hour, the redrives of what died meanwhile, and what waits for those.
            play.rig.live(3 * 3_600_000).await;
            play.audit();
        });
    }
}
