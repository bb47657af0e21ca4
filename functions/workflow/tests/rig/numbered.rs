//! A shop whose orders are numbered, and what became of each number.

use super::Rig;
use ledger::{Entity, Outcome, Policy, Status};
use serde_json::{Value, json};
use workflow::{ports::Trouble, twin::Fault};

/// A source whose orders are numbered; an order's first event is number 1.
pub(crate) fn sources(on_gap: &str) -> String {
    let fetch = r#"
[sources.shop.fetch.order]
url = "https://api.shop.example/v1/orders/{id}"
secret = "shop-api"
on_404 = "dead"
rate_per_s = 1000
set = { plan = "/plan", status = "/status" }
"#;
    format!(
        r#"
[sources.shop]
preset = "stripe"
secret = "shop"
live = true
{}
[[sources.shop.projections]]
on = ["order.changed"]
entity = {{ type = "order", id = "/data/object/id" }}
order = {{ strategy = "sequence", by = "/data/object/n", on_gap = "{on_gap}" }}
set = {{ plan = "/data/object/plan", status = "/data/object/status" }}

[[sources.shop.projections]]
on = ["order.closed"]
entity = {{ type = "order", id = "/data/object/id" }}
order = {{ strategy = "sequence", by = "/data/object/n", on_gap = "{on_gap}" }}
set = {{ plan = "=null", status = "=closed" }}
final = true

[[sources.shop.projections]]
on = ["order.changed"]
entity = {{ type = "log", id = "/data/object/account" }}
order = {{ strategy = "none" }}
add = {{ count = "/data/object/one" }}
append = {{ seen = "/data/object/n", max = 3 }}

[[sources.shop.projections]]
on = ["order.changed"]
entity = {{ type = "latest", id = "/data/object/account" }}
order = {{ strategy = "version", by = "/created", unit = "s" }}
set = {{ n = "/data/object/n" }}
"#,
        if on_gap == "fetch" { fetch } else { "" }
    )
}

/// Number `n` of the one order; `kind` is `changed` or `closed`.
pub(crate) fn event(kind: &str, n: u64) -> Value {
    json!({
        "id": format!("evt_{n}"), "object": "event", "type": format!("order.{kind}"),
        "created": 1_000 + n, "livemode": true,
        "data": {"object": {
            "id": "o1", "account": "a1", "n": n, "one": 1, "plan": format!("p{n}"), "status": "open",
        }},
    })
}

/// The shop with production durations.
pub(crate) fn rig_of(on_gap: &str) -> Rig {
    Rig::shop(&sources(on_gap), Policy::default())
}

/// Delivers numbers, each worked before the next.
pub(crate) async fn arrive(rig: &Rig, numbers: &[u64]) {
    for n in numbers {
        rig.deliver(&event("changed", *n)).await;
        rig.batch().await;
    }
}

/// Whoever applies this number is stopped before it can lease the next.
pub(crate) async fn arrive_and_die(rig: &Rig, number: u64) {
    let mut leases = 0;
    rig.twin.set_faults(move |step, _| {
        leases += u32::from(step == "lease");
        (step == "lease" && leases > 1).then_some(Fault::Before(Trouble::Unavailable))
    });
    arrive(rig, &[number]).await;
    rig.twin.clear_faults();
}

/// The order as it stands.
pub(crate) fn order(rig: &Rig) -> Entity {
    rig.twin.state("shop#order#o1").unwrap()
}

/// The last number applied, and its plan.
pub(crate) fn reached(rig: &Rig) -> (Option<i128>, String) {
    let entity = order(rig);
    let plan = entity.state.get("plan").map_or_else(String::new, Value::to_string);
    (entity.version.map(ledger::Version::get), plan.trim_matches('"').to_owned())
}

/// How the event of a number stands, and with how many attempts.
pub(crate) fn told(rig: &Rig, n: u64) -> (Status, Option<Outcome>, u32) {
    let life = rig.row(&format!("evt_{n}")).life;
    (life.status, life.outcome, life.attempts)
}

pub(crate) const APPLIED: (Status, Option<Outcome>, u32) =
    (Status::Settled, Some(Outcome::Applied), 1);
pub(crate) const SUPERSEDED: (Status, Option<Outcome>, u32) =
    (Status::Settled, Some(Outcome::Superseded), 1);
