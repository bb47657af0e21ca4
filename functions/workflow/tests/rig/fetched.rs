//! A source whose subscriptions are fetched, and a provider behind it.

use super::{
    Rig,
    provider::{Provider, object},
    subscription,
};
use ledger::{Entity, FailureClass, Policy, Row};

/// A source whose subscriptions are fetched, with `fetch` as the rest of the table.
pub(crate) fn sources(fetch: &str) -> String {
    format!(
        r#"
[sources.shop]
preset = "stripe"
secret = "shop"
live = true

[sources.shop.fetch.subscription]
url = "https://api.shop.example/v1/subscriptions/{{id}}"
secret = "shop-api"
{fetch}
set = {{ plan = "/plan", status = "/status" }}

[[sources.shop.projections]]
on = ["subscription.created", "subscription.updated", "subscription.deleted"]
entity = {{ type = "subscription", id = "/data/object/id" }}
order = {{ strategy = "fetch" }}

[[sources.shop.projections]]
on = ["payment.received"]
entity = {{ type = "subscription", id = "/data/object/account" }}
order = {{ strategy = "fetch" }}

[[sources.shop.projections]]
on = ["payment.received"]
entity = {{ type = "balance", id = "/data/object/account" }}
order = {{ strategy = "none" }}
add = {{ total = "/data/object/amount" }}

[[sources.shop.projections]]
on = ["payment.received"]
entity = {{ type = "last-payment", id = "/data/object/account" }}
order = {{ strategy = "version", by = "/created", unit = "s" }}
set = {{ amount = "/data/object/amount" }}
"#
    )
}

pub(crate) const USUAL: &str = "on_404 = \"tombstone\"\nrate_per_s = 1000";

pub(crate) fn rig_of(fetch: &str) -> (Rig, Provider) {
    let rig = Rig::shop(&sources(fetch), Policy::default());
    let provider = Provider::behind(&rig);
    (rig, provider)
}

pub(crate) fn state(rig: &Rig, id: &str) -> Entity {
    rig.twin.state(&format!("shop#subscription#{id}")).unwrap()
}

pub(crate) async fn deliver(rig: &Rig, id: &str, kind: &str, of: &str) {
    rig.deliver(&subscription(id, kind, 10, of, "what the event says")).await;
}

/// One event, worked once: its row.
pub(crate) async fn once(
    fetch: &str,
    prepare: impl FnOnce(&Rig, &Provider),
) -> (Row, Rig, Provider) {
    let (rig, provider) = rig_of(fetch);
    provider.put("sub_1", object("gold", "active"));
    prepare(&rig, &provider);
    deliver(&rig, "evt_1", "updated", "sub_1").await;
    rig.batch().await;
    (rig.row("evt_1"), rig, provider)
}

pub(crate) fn failure_of(row: &Row) -> (FailureClass, String) {
    let failure = row.life.failure.clone().unwrap();
    (failure.class, failure.error)
}
