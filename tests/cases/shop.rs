//! The sources and worlds that the cases share.

use ledger::Millis;
use serde_json::json;
use support::{World, WorldBuilder};

/// One source for each provider, and two whose events are as plain as can be: `things` has
/// versions, `counts` adds up. Their ids come in a header, so any body will do.
pub(crate) const SOURCES: &str = r#"
[sources.stripe]
preset = "stripe"
secret = "stripe"
[[sources.stripe.projections]]
on = ["customer.subscription.created", "customer.subscription.updated"]
entity = { type = "subscription", id = "/data/object/id" }
order = { strategy = "version", by = "/created", unit = "s" }
set = { status = "/data/object/status" }
[[sources.stripe.projections]]
on = ["invoice.paid"]
entity = { type = "invoice", id = "/data/object/id" }
order = { strategy = "version", by = "/created", unit = "s" }
set = { paid = true }

[sources.github]
preset = "github"
secret = "github"

[sources.shopify]
preset = "shopify"
secret = "shopify"

[sources.standard-webhooks]
preset = "standard-webhooks"
secret = "standard-webhooks"

[sources.things]
preset = "github"
secret = "github"
[[sources.things.projections]]
on = ["thing"]
entity = { type = "thing", id = "/id" }
order = { strategy = "version", by = "/version" }
set = { value = "/value" }

[sources.counts]
preset = "github"
secret = "github"
[[sources.counts.projections]]
on = ["count"]
entity = { type = "count", id = "/id" }
order = { strategy = "none" }
add = { total = "/amount" }
"#;

/// The secrets of the reports.
pub(crate) fn shop() -> WorldBuilder {
    WorldBuilder::new(SOURCES)
        .keys("stripe", &["whsec_endpoint_A", "whsec_endpoint_B"])
        .keys("github", &["gh-secret-01"])
        .keys("shopify", &["shop-secret-01"])
        .keys("standard-webhooks", &["whsec_c3RhbmRhcmQta2V5LTAxMjM0NTY3ODlhYmNkZWYwMQ=="])
}

/// The shop, at the reports' usual time.
pub(crate) fn world() -> World {
    shop().build()
}

/// A time of a report, in seconds.
pub(crate) fn at(seconds: u64) -> Millis {
    Millis(seconds * 1_000)
}

/// Delivers a change of thing `id` to `version`.
pub(crate) fn thing(world: &World, event: &str, id: &str, version: u32) -> u16 {
    let body = json!({"id": id, "version": version, "value": version}).to_string();
    let headers = [("x-github-event", "thing"), ("x-github-delivery", event)];
    world.deliver("things", &headers, body.as_bytes()).status
}

/// Delivers an addition to count `id`.
pub(crate) fn count(world: &World, event: &str, id: &str, amount: i32) -> u16 {
    let body = json!({"id": id, "amount": amount}).to_string();
    let headers = [("x-github-event", "count"), ("x-github-delivery", event)];
    world.deliver("counts", &headers, body.as_bytes()).status
}

/// Posts a body to GitHub's source, signed, under a delivery id.
pub(crate) fn github(world: &World, delivery: &str, body: &[u8]) -> u16 {
    world
        .deliver("github", &[("x-github-event", "push"), ("x-github-delivery", delivery)], body)
        .status
}
