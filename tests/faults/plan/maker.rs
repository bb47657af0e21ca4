//! Makes events, entity by entity.

mod hints;

use super::{Event, Expect, Stamp};
use crate::schedule::Curse;
use fastrand::Rng;
use serde_json::json;
use std::{collections::HashMap, ops::Range};
use support::{Sample, sha256_hex};

/// 2026-11-30T12:00:00Z, where the samples live.
const NOON: u64 = 1_796_040_000;

/// Events so far, and the chance that makes the next.
pub(super) struct Maker {
    rng: Rng,
    run: String,
    entities: u64,
    events: Vec<Event>,
    samples: HashMap<&'static str, Sample>,
}

const SAMPLES: [&str; 11] = [
    "stripe_subscription_created",
    "stripe_subscription_updated",
    "stripe_subscription_deleted",
    "stripe_unconfigured",
    "stripe_poison",
    "shopify_order_create",
    "shopify_order_updated",
    "shopify_payment_received",
    "standard-webhooks_invoice_paid",
    "standard-webhooks_order_moved",
    "github_push",
];

impl Maker {
    pub(super) fn new(seed: u64) -> Result<Self, String> {
        let samples = SAMPLES.iter().map(|name| Ok((*name, Sample::read(name)?)));
        Ok(Self {
            rng: Rng::with_seed(seed),
            run: format!("{seed:x}"),
            entities: 0,
            events: Vec::new(),
            samples: samples.collect::<Result<_, String>>()?,
        })
    }

    /// A number from 0 to one less than `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.rng.usize(..n)
    }

    pub(super) fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(..n) == 0
    }

    fn sample(&self, name: &str) -> Sample {
        self.samples[name].clone()
    }

    fn id(&mut self, stem: &str) -> String {
        let number: u64 = self.rng.u64(..);
        format!("{stem}_{}_{}_{number:016x}", self.run, self.events.len())
    }

    /// Bytes that no compression makes small, for one event in eight: its body goes into chunks.
    fn padding(&mut self) -> String {
        let len = if self.one_in(8) { self.rng.usize(12_000..30_000) } else { 0 };
        (0..len).map(|_| self.rng.alphanumeric()).collect()
    }

    /// Makes the events of one more entity, or one event that has none; their indexes.
    pub(super) fn entity(&mut self) -> Range<usize> {
        let first = self.events.len();
        self.entities += 1;
        match self.rng.u32(..100) {
            0..23 => self.subscription(),
            23..32 => self.order(),
            32..50 => self.payments(),
            50..61 => self.moves(),
            61..68 => self.invoice(),
            68..75 => self.hints(),
            75..80 => self.captures(),
            80..84 => self.pushes(),
            84..87 => self.ignored(),
            87..92 => self.poison(),
            92..95 => self.unusable(),
            95..98 => self.conflict(),
            _ => self.rivals(),
        }
        first..self.events.len()
    }

    fn add(&mut self, source: &'static str, id: String, sample: &Sample, expect: Expect) {
        self.events.push(Event {
            key: format!("{source}#{id}"),
            id,
            source,
            headers: sample.headers.clone(),
            body: sample.bytes(),
            expect,
            retries: source != "github",
        });
    }

    /// A subscription's life, some of it within one second, one in three with its end.
    fn subscription(&mut self) {
        let subscription = format!("sub_{}_{}", self.run, self.entities);
        let entity = format!("stripe-live#subscription#{subscription}");
        let count = self.rng.u8(2..8);
        let ends = self.one_in(3);
        for n in 0..count {
            let is_final = ends && n + 1 == count;
            let rank = if is_final { 2 } else { u8::from(n > 0) };
            let name = SAMPLES[usize::from(rank)];
            let id = self.id("evt");
            let seconds = NOON + self.rng.u64(..u64::from(count));
            let (plan, status) = (self.id("price"), format!("s{n}"));
            let padding = self.padding();
            let mut sample = self
                .sample(name)
                .with("/id", id.as_str())
                .with("/created", seconds)
                .with("/data/object/id", subscription.as_str())
                .with("/data/object/status", status.as_str())
                .with("/data/object/items/data/0/price/id", plan.as_str());
            if !padding.is_empty() {
                sample = sample.with("/data/object/description", padding);
            }
            let state = if is_final {
                json!({ "plan": null, "status": "canceled" })
            } else {
                json!({ "plan": plan, "status": status })
            };
            let stamp = Stamp { is_final, seconds, rank, id: id.clone() };
            self.add(
                "stripe-live",
                id,
                &sample,
                Expect::Versioned { entity: entity.clone(), stamp, state },
            );
        }
    }

    /// An order, whose provider writes one instant in several ways.
    fn order(&mut self) {
        let order = 7_000_000_000_000 + self.entities;
        let entity = format!("shopify#order#{order}");
        let count = self.rng.u8(2..6);
        for n in 0..count {
            let rank = u8::from(n > 0);
            let (name, topic) = match rank {
                0 => ("shopify_order_create", "orders/create"),
                _ => ("shopify_order_updated", "orders/updated"),
            };
            let seconds = NOON + self.rng.u64(..u64::from(count));
            let total = format!("{}.00", self.rng.u32(10..900));
            let sample = self.shopify(name).with("/id", order).with("/total_price", total.as_str());
            let sample = sample.with("/updated_at", self.instant(seconds));
            let id = shopify_id(&sample, topic);
            let field = |pointer: &str| sample.at(pointer).cloned().unwrap_or_default();
            let state = json!({
                "name": field("/name"),
                "currency": field("/currency"),
                "total": total,
                "financial_status": field("/financial_status"),
                "fulfillment_status": field("/fulfillment_status"),
                "cancelled_at": field("/cancelled_at"),
            });
            let stamp = Stamp { is_final: false, seconds, rank, id: id.clone() };
            self.add(
                "shopify",
                id,
                &sample,
                Expect::Versioned { entity: entity.clone(), stamp, state },
            );
        }
    }

    /// Payments of one of a dozen orders: all of them write to the same few rows.
    fn payments(&mut self) {
        let order = 8_000_000_000_000 + self.rng.u64(..12);
        let entity = format!("shopify#order-payments#{order}");
        for _ in 0..self.rng.u8(2..6) {
            let cents = self.rng.i64(-5_000..20_000);
            let sign = if cents < 0 { "-" } else { "" };
            let amount = format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100);
            let sample = self.shopify("shopify_payment_received").with("/order_id", order);
            let sample = sample.with("/amount", amount);
            let id = shopify_id(&sample, "tender_transactions/create");
            self.add("shopify", id, &sample, Expect::Added { entity: entity.clone(), cents });
        }
    }

    fn shopify(&mut self, name: &str) -> Sample {
        let id = self.id("shop");
        self.sample(name).with_header("x-shopify-event-id", &id)
    }

    /// An order that moves from place to place. One in five lacks a number, which never comes; one in
    /// six has two events with one number.
    fn moves(&mut self) {
        let order = format!("ord_{}_{}", self.run, self.entities);
        let entity = format!("standard-webhooks#order#{order}");
        let count = self.rng.u64(2..9);
        let missing = self.one_in(5).then(|| self.rng.u64(1..count));
        let twice = self.one_in(6).then(|| self.rng.u64(1..=count));
        for number in (1..=count).chain(twice).filter(|number| Some(*number) != missing) {
            let id = self.id("msg");
            let place = self.id("place");
            let sample = self.sample("standard-webhooks_order_moved");
            let sample = sample
                .with_header("webhook-id", &id)
                .with("/data/id", order.as_str())
                .with("/data/sequence", number)
                .with("/data/place", place.as_str());
            let state = json!({ "place": place, "sequence": number });
            let expect = Expect::Numbered { entity: entity.clone(), number, state };
            self.add("standard-webhooks", id, &sample, expect);
        }
    }

    /// An invoice of a Standard Webhooks sender; a third of them large.
    fn invoice(&mut self) {
        let invoice = format!("inv_{}_{}", self.run, self.entities);
        let entity = format!("standard-webhooks#invoice#{invoice}");
        for _ in 0..self.rng.u8(1..4) {
            let id = self.id("msg");
            let seconds = NOON + self.rng.u64(..3);
            let amount = self.rng.u32(..100_000);
            let padding = self.padding();
            let sample =
                self.sample("standard-webhooks_invoice_paid").with_header("webhook-id", &id);
            let sample = sample
                .with("/timestamp", self.instant(seconds))
                .with("/data/id", invoice.as_str())
                .with("/data/amount", amount)
                .with("/data/number", padding);
            let state = json!({ "customer": "cust_310", "amount": amount, "status": "paid" });
            let stamp = Stamp { is_final: false, seconds, rank: 1, id: id.clone() };
            let expect = Expect::Versioned { entity: entity.clone(), stamp, state };
            self.add("standard-webhooks", id, &sample, expect);
        }
    }

    /// Pushes, which GitHub sends once, whatever is answered; its list of deliveries has them all.
    fn pushes(&mut self) {
        let repository = 900_000_000 + self.entities;
        let entity = format!("github#repository#{repository}");
        for _ in 0..self.rng.u8(4..14) {
            let id = self.id("push");
            let seconds = NOON + self.rng.u64(..100);
            let sample = self.sample("github_push").with_header("x-github-delivery", &id);
            let sample =
                sample.with("/repository/id", repository).with("/repository/pushed_at", seconds);
            let field = |pointer: &str| sample.at(pointer).cloned().unwrap_or_default();
            let state = json!({
                "name": field("/repository/full_name"),
                "ref": field("/ref"),
                "head": field("/after"),
                "pusher": field("/pusher/name"),
            });
            let stamp = Stamp { is_final: false, seconds, rank: 0, id: id.clone() };
            let expect = Expect::Versioned { entity: entity.clone(), stamp, state };
            self.add("github", id, &sample, expect);
        }
    }

    /// Of a type nobody configured, or of test mode.
    fn ignored(&mut self) {
        let id = self.id("evt");
        let sample = if self.one_in(2) {
            self.sample("stripe_unconfigured")
        } else {
            self.sample("stripe_subscription_created").with("/livemode", false)
        };
        let sample = sample.with("/id", id.as_str());
        self.add("stripe-live", id, &sample, Expect::Ignored);
    }

    /// An event without the version its source promised.
    fn poison(&mut self) {
        let id = self.id("evt");
        let padding = self.padding();
        let sample = self.sample("stripe_poison").with("/id", id.as_str());
        let sample = sample.with("/data/object/description", padding);
        self.add("stripe-live", id, &sample, Expect::Dead { why: "/created" });
    }

    /// Signed, and no JSON.
    fn unusable(&mut self) {
        let body = self.id("not JSON").into_bytes();
        let id = format!("sha256:{}", sha256_hex(&body));
        let sample = self.sample("stripe_unconfigured");
        self.add("stripe-live", id, &sample, Expect::Dead { why: "not usable JSON" });
        if let Some(event) = self.events.last_mut() {
            event.body = body;
        }
    }

    /// Two contents under one id, of a type nobody configured.
    fn conflict(&mut self) {
        let id = self.id("msg");
        for content in ["one", "another"] {
            let sample =
                self.sample("standard-webhooks_invoice_paid").with_header("webhook-id", &id);
            let sample = sample.with("/type", "invoice.sent").with("/data/number", content);
            self.add("standard-webhooks", id.clone(), &sample, Expect::Conflicting);
        }
    }

    fn instant(&mut self, seconds: u64) -> String {
        let past_noon = seconds - NOON;
        let (minutes, seconds) = (past_noon / 60, past_noon % 60);
        let (hour, zone) = [("12", "Z"), ("13", "+01:00"), ("12", ".000Z")][self.rng.usize(..3)];
        format!("2026-11-30T{hour}:{minutes:02}:{seconds:02}{zone}")
    }

    /// All events, and what is to go wrong with some of them.
    pub(super) fn end(mut self) -> (Vec<Event>, HashMap<String, Curse>) {
        let curses = self.curses();
        (self.events, curses)
    }

    /// One applicable event in sixty kills its workers, one is denied; three of each at least.
    fn curses(&mut self) -> HashMap<String, Curse> {
        let applied = |event: &&Event| {
            let expect = &event.expect;
            event.retries
                && matches!(
                    expect,
                    Expect::Versioned { .. }
                        | Expect::Added { .. }
                        | Expect::Numbered { .. }
                        | Expect::Fetched { .. }
                )
        };
        let keys: Vec<String> =
            self.events.iter().filter(applied).map(|event| event.key.clone()).collect();
        let count = (keys.len() / 120).max(3);
        let mut curses = HashMap::new();
        for curse in [Curse::Kills, Curse::Denied] {
            let chosen = (0..count).filter_map(|_| self.rng.choice(&keys));
            curses.extend(chosen.map(|key| (key.clone(), curse)));
        }
        curses
    }
}

/// Shop, topic, id and what it is about make the id of a Shopify event.
fn shopify_id(sample: &Sample, topic: &str) -> String {
    let id = sample.headers.iter().find(|(name, _)| name == "x-shopify-event-id");
    let id = id.map(|(_, value)| value.as_str()).unwrap_or_default();
    let thing = sample.at("/id").cloned().unwrap_or_default();
    format!("atelier-nord.myshopify.com:{topic}:{id}:{thing}")
}
