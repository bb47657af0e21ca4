//! A shop with Stripe: payments that count exactly once, and a provider that lists them.

use ledger::{Millis, Policy};
use serde_json::{Value, json};
use support::{Desk, Dialect, EventApi, World, WorldBuilder};
use workflow::replay::{Checkpoint, pager::Window};

/// The source.
pub(crate) const SHOP: &str = "shop";
/// When it is now.
pub(crate) const NOW: Millis = Millis(1_796_040_000_000);
const KEY: &str = "rk_test_51Oncehook";

const SOURCES: &str = r#"
[sources.shop]
preset = "stripe"
secret = "shop"

[[sources.shop.projections]]
on = ["payment.received"]
entity = { type = "balance", id = "/data/object/account" }
order = { strategy = "none" }
add = { total = "/data/object/amount" }
"#;

/// A payment of one, received through nobody so far.
pub(crate) fn payment(n: usize, at: Millis) -> Value {
    json!({
        "id": format!("evt_{n:06}"), "object": "event", "type": "payment.received",
        "created": at.0 / 1_000, "livemode": true, "pending_webhooks": 1,
        "data": {"object": {"account": "acct", "amount": 1}},
    })
}

/// The world of the shop.
pub(crate) fn world() -> World {
    world_with(Policy::default())
}

/// The same, with these limits.
pub(crate) fn world_with(policy: Policy) -> World {
    world_of(SOURCES, policy)
}

/// The same, of an endpoint that is sent these types alone, while the list has all.
pub(crate) fn world_sent(types: &str) -> World {
    let replay = format!("[sources.shop.replay]\ntypes = {types}\n");
    world_of(&format!("{SOURCES}\n{replay}"), Policy::default())
}

fn world_of(sources: &str, policy: Policy) -> World {
    WorldBuilder::new(sources)
        .policy(policy)
        .keys("shop", &["whsec_Zk3vR8qLw2NcY7tB5xJ9hD4mP6sG1aFe"])
        .at(NOW)
        .build()
}

/// A desk whose provider lists these events; the newest come last here, first there.
pub(crate) fn desk(events: Vec<Value>) -> Desk {
    let mut api = EventApi::new(Dialect::Stripe, KEY);
    api.items = events;
    api.items.reverse();
    Desk::new(world(), api)
}

/// Delivers an event as the provider does.
pub(crate) fn deliver(world: &World, event: &Value) {
    let answer = world.deliver(SHOP, &[], event.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
}

/// A run over the last `hours`, not begun.
pub(crate) fn begin(desk: &Desk, hours: u64) -> Checkpoint {
    desk.begin(SHOP, Window::new(NOW.minus(hours * 3_600_000), NOW))
}

/// What was applied in sum: one for each payment, however often it came.
pub(crate) fn applied(world: &World) -> Option<u64> {
    world.work();
    world.twin.state("shop#balance#acct")?;
    world.field("shop#balance#acct", "total").as_u64()
}

/// Everything in the ledger that is no internal row.
pub(crate) fn rows(world: &World) -> usize {
    world.keys().iter().filter(|key| !key.starts_with('_')).count()
}
