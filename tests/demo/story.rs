//! The story: what is delivered in which order, and what must come of it.
//!
//! The order is the point. A subscription's update arrives before its creation, one event twice at
//! the same instant, two long after they were settled; the end is the same as if all had come once
//! and in order. Each delivery is followed to its end before the next, so that the outcome of every
//! single event is known beforehand.

use ledger::{Outcome, Status, Unit, Version};
use serde_json::{Value, json};
use support::Sample;

/// One step: a request, sent once or several times at the same instant.
pub(crate) struct Step {
    /// Where to.
    pub(crate) source: &'static str,
    /// The event type.
    pub(crate) event_type: String,
    /// What makes it worth showing.
    pub(crate) note: &'static str,
    /// The request.
    pub(crate) sample: Sample,
    /// How many at once.
    pub(crate) copies: usize,
    /// Altered after it was signed.
    pub(crate) is_forged: bool,
    /// What each copy is answered.
    pub(crate) answer: u16,
    /// The row of the event.
    pub(crate) key: String,
}

/// How a row must end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WantRow {
    pub(crate) key: String,
    pub(crate) status: Status,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) attempts: u32,
}

/// How an entity must end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WantEntity {
    pub(crate) key: String,
    pub(crate) version: i128,
    pub(crate) revision: u64,
    pub(crate) is_final: bool,
    pub(crate) state: Value,
}

/// The whole story.
pub(crate) struct Story {
    pub(crate) steps: Vec<Step>,
    pub(crate) rows: Vec<WantRow>,
    pub(crate) entities: Vec<WantEntity>,
    /// The row that ends in the dead-letter queue.
    pub(crate) poison: String,
}

const STRIPE: &str = "stripe-live";

/// The story with `run` in every id.
pub(crate) fn tell(run: &str) -> Result<Story, String> {
    let subscription = format!("sub_{run}");
    let stripe = |file: &str, event: &str| -> Result<Sample, String> {
        let sample = Sample::read(file)?.with("/id", format!("evt_{run}_{event}"));
        Ok(sample.with("/data/object/id", subscription.as_str()))
    };
    let created = stripe("stripe_subscription_created", "created")?;
    let updated = stripe("stripe_subscription_updated", "updated")?;
    let updated2 = stripe("stripe_subscription_updated2", "updated2")?;
    let deleted = stripe("stripe_subscription_deleted", "deleted")?;
    let poison = stripe("stripe_poison", "poison")?;
    let forged = stripe("stripe_subscription_created", "forged")?;
    let number = u64::from_str_radix(run, 36).map_err(|error| error.to_string())?;
    let push = Sample::read("github_push")?
        .with_header("x-github-delivery", &format!("{run}-push"))
        .with("/repository/id", number);
    let order = Sample::read("shopify_order_create")?
        .with_header("x-shopify-event-id", &format!("{run}-order"))
        .with("/id", number);

    let entities = vec![
        subscription_at_the_end(&subscription, &deleted)?,
        repository(number, &push)?,
        shop_order(number, &order)?,
    ];
    let steps = vec![
        step(STRIPE, updated.clone(), "before its creation"),
        step(STRIPE, created.clone(), "late: superseded"),
        Step { copies: 2, ..step(STRIPE, updated2.clone(), "twice at the same instant") },
        step(STRIPE, created.clone(), "again, after it was settled"),
        step(STRIPE, deleted.clone(), "the end of the subscription"),
        step(STRIPE, updated.clone(), "again, after the end"),
        step("github", push.clone(), ""),
        step("shopify", order.clone(), ""),
        Step {
            is_forged: true,
            answer: 401,
            ..step(STRIPE, forged, "forged: not a byte of it is kept")
        },
        step(STRIPE, poison.clone(), "poison: signed, but without a version"),
    ];
    let end = |source, sample: &Sample, outcome: Option<Outcome>| WantRow {
        key: key(source, sample),
        status: if outcome.is_some() { Status::Settled } else { Status::Dead },
        outcome,
        attempts: 1,
    };
    Ok(Story {
        rows: vec![
            end(STRIPE, &updated, Some(Outcome::Applied)),
            end(STRIPE, &created, Some(Outcome::Superseded)),
            end(STRIPE, &updated2, Some(Outcome::Applied)),
            end(STRIPE, &deleted, Some(Outcome::Applied)),
            end("github", &push, Some(Outcome::Applied)),
            end("shopify", &order, Some(Outcome::Applied)),
            end(STRIPE, &poison, None),
        ],
        poison: key(STRIPE, &poison),
        steps,
        entities,
    })
}

fn step(source: &'static str, sample: Sample, note: &'static str) -> Step {
    let key = key(source, &sample);
    let event_type = match source {
        "github" => header(&sample, "x-github-event"),
        "shopify" => header(&sample, "x-shopify-topic"),
        _ => text(&sample, "/type"),
    };
    Step { source, event_type, note, sample, copies: 1, is_forged: false, answer: 200, key }
}

/// The ledger key, as the presets compose it.
fn key(source: &str, sample: &Sample) -> String {
    let id = match source {
        "github" => header(sample, "x-github-delivery"),
        "shopify" => {
            let thing = sample.at("/id").map(Value::to_string).unwrap_or_default();
            let names = ["x-shopify-shop-domain", "x-shopify-topic", "x-shopify-event-id"];
            [names.map(|name| header(sample, name)).join(":"), thing].join(":")
        }
        _ => text(sample, "/id"),
    };
    format!("{source}#{id}")
}

fn header(sample: &Sample, wanted: &str) -> String {
    let found = sample.headers.iter().find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

fn text(sample: &Sample, pointer: &str) -> String {
    sample.at(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn version(sample: &Sample, pointer: &str, unit: Unit) -> Result<i128, String> {
    let version = Version::read(sample.at(pointer), unit).map_err(|error| error.to_string())?;
    Ok(version.get())
}

/// Two updates and the deletion changed it; the creation came too late.
fn subscription_at_the_end(id: &str, deleted: &Sample) -> Result<WantEntity, String> {
    Ok(WantEntity {
        key: format!("{STRIPE}#subscription#{id}"),
        version: version(deleted, "/created", Unit::S)?,
        revision: 3,
        is_final: true,
        state: json!({"plan": null, "status": "canceled"}),
    })
}

fn repository(id: u64, push: &Sample) -> Result<WantEntity, String> {
    Ok(WantEntity {
        key: format!("github#repository#{id}"),
        version: version(push, "/repository/pushed_at", Unit::S)?,
        revision: 1,
        is_final: false,
        state: json!({
            "name": push.at("/repository/full_name"),
            "ref": push.at("/ref"),
            "head": push.at("/after"),
            "pusher": push.at("/pusher/name"),
        }),
    })
}

fn shop_order(id: u64, order: &Sample) -> Result<WantEntity, String> {
    Ok(WantEntity {
        key: format!("shopify#order#{id}"),
        version: version(order, "/updated_at", Unit::Iso)?,
        revision: 1,
        is_final: false,
        state: json!({
            "name": order.at("/name"),
            "currency": order.at("/currency"),
            "total": order.at("/total_price"),
            "financial_status": order.at("/financial_status"),
            "fulfillment_status": order.at("/fulfillment_status"),
            "cancelled_at": order.at("/cancelled_at"),
        }),
    })
}
