//! A whole system on the in-memory twin: what the suites in this folder drive.
#![allow(dead_code, reason = "each suite uses its own part of the rig")]
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a failed unwrap is a failed test"
)]

pub(crate) mod fetched;
pub(crate) mod numbered;
pub(crate) mod provider;

use config::Config;
use ledger::{Millis, Policy, Row};
use serde_json::{Value, json};
use std::sync::Arc;
use verifier::{Answer, Request};
use workflow::{
    CertificateCache, Consumer, Keyring, Receiver, Steward, projection::Declarative,
    receive::Delivery, twin::Twin,
};

/// Two sources: versioned subscriptions with tombstones, and counted payments.
const SOURCES: &str = r#"
[sources.shop]
preset = "stripe"
secret = "shop"
live = true

[[sources.shop.projections]]
on = ["subscription.created", "subscription.updated"]
entity = { type = "subscription", id = "/data/object/id" }
order = { strategy = "version", by = "/created", unit = "s", tie = "rank" }
set = { plan = "/data/object/plan", status = "/data/object/status" }

[[sources.shop.projections]]
on = ["subscription.deleted"]
entity = { type = "subscription", id = "/data/object/id" }
order = { strategy = "version", by = "/created", unit = "s", tie = "rank" }
set = { plan = "=null", status = "=canceled" }
final = true

[[sources.shop.projections]]
on = ["payment.received"]
entity = { type = "balance", id = "/data/object/account" }
order = { strategy = "none" }
add = { total = "/data/object/amount" }
"#;

/// The signing secret of the source `shop`.
pub(crate) const SECRET: &str = "whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH";
/// When every test begins.
pub(crate) const START: Millis = Millis(1_764_500_000_000);
/// How long a function may run.
const FUNCTION_MS: u64 = 30_000;

/// The system.
pub(crate) struct Rig {
    pub(crate) twin: Arc<Twin>,
    pub(crate) receiver: Receiver<Twin>,
    pub(crate) consumer: Consumer<Twin>,
    pub(crate) steward: Steward<Twin>,
}

impl Rig {
    /// With production limits.
    pub(crate) fn new() -> Self {
        Self::with(Policy::default(), "build-1")
    }

    /// With these limits, running this build.
    pub(crate) fn with(policy: Policy, release: &str) -> Self {
        let twin = Arc::new(Twin::new(policy.clone(), START));
        twin.set_secret(&json!({"shop": [{"kid": "k1", "key": SECRET}]}).to_string());
        Self::over(twin, policy, release)
    }

    /// Other sources and another signing secret, at another time. The stage is `local` where
    /// `allow_local` says so.
    pub(crate) fn of(sources: &str, secret: &Value, now: Millis, allow_local: bool) -> Self {
        let twin = Arc::new(Twin::new(Policy::default(), now));
        twin.set_secret(&secret.to_string());
        Self::over(twin, Policy::default(), "build-1").reading(sources, allow_local)
    }

    /// The source `shop` of a test's own, with these limits.
    pub(crate) fn shop(sources: &str, policy: Policy) -> Self {
        Self::with(policy, "build-1").reading(sources, false)
    }

    fn reading(self, sources: &str, allow_local: bool) -> Self {
        let mut rig = self;
        let config = match Config::parse("sources.toml", sources, &|_| None) {
            Ok(config) => config,
            Err(errors) => panic!("{errors:#?}"),
        };
        rig.receiver.config = config.clone();
        rig.receiver.keyring = Keyring::new(allow_local);
        rig.receiver.public_url = Some("https://hooks.example".to_owned());
        rig.consumer.config = config;
        rig
    }

    /// Another build over the same world.
    pub(crate) fn deploy(&self, release: &str) -> Self {
        Self::over(Arc::clone(&self.twin), self.receiver.policy.clone(), release)
    }

    fn over(twin: Arc<Twin>, policy: Policy, release: &str) -> Self {
        let config = Config::parse("sources.toml", SOURCES, &|_| None).unwrap();
        Self {
            receiver: Receiver {
                ports: Arc::clone(&twin),
                config: config.clone(),
                policy: policy.clone(),
                keyring: Keyring::new(false),
                certificates: CertificateCache::default(),
                replay: None,
                public_url: None,
            },
            consumer: Consumer {
                ports: Arc::clone(&twin),
                config,
                policy: policy.clone(),
                release: release.to_owned(),
                projection: Box::new(Declarative),
                fetcher: workflow::Fetcher::default(),
            },
            steward: Steward {
                ports: Arc::clone(&twin),
                policy,
                release: release.to_owned(),
                has_reconciler: false,
            },
            twin,
        }
    }

    pub(crate) fn now(&self) -> Millis {
        workflow::ports::Clock::now(&*self.twin)
    }

    /// A signed delivery.
    pub(crate) fn signed(&self, body: &[u8]) -> Delivery {
        self.signed_by("shop", SECRET, &[("content-type", "application/json")], body)
    }

    /// A delivery to `source` with these headers, signed with the key `key` as its provider does.
    pub(crate) fn signed_by(
        &self,
        source: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Delivery {
        let preset = &self.receiver.config.source(source).unwrap().preset;
        let key = preset.key("k1", key).unwrap();
        let mut delivery = self.request("POST", source, "", headers, body);
        delivery.body = preset.sign_body(body, &key).unwrap().into_owned();
        let url = self.receiver.public_url.as_ref().map(|base| format!("{base}{}", delivery.path));
        let unsigned = Request {
            method: "POST",
            path: &delivery.path,
            query: "",
            public_url: url.as_deref(),
            headers: &delivery.headers,
            body: &delivery.body,
        };
        let added = preset.sign(&unsigned, &key, self.now().0).unwrap();
        for (name, value) in added {
            delivery.headers.push(&name, value);
        }
        delivery
    }

    /// A request as it is.
    pub(crate) fn request(
        &self,
        method: &str,
        source: &str,
        query: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Delivery {
        Delivery {
            method: method.to_owned(),
            path: format!("/webhooks/{source}"),
            query: query.to_owned(),
            headers: headers.iter().copied().collect(),
            body: body.to_vec(),
            deadline: self.now().plus(8_000),
        }
    }

    /// Signs and delivers.
    pub(crate) async fn deliver(&self, event: &Value) -> Answer {
        self.receiver.receive(self.signed(event.to_string().as_bytes())).await
    }

    /// One batch: received, worked, and its finished messages deleted. How many it held.
    pub(crate) async fn batch(&self) -> usize {
        let batch = self.twin.receive(10);
        let failed = self.consumer.consume(batch.clone(), self.now().plus(FUNCTION_MS)).await;
        self.twin.finish(&batch, &failed);
        batch.len()
    }

    /// A worker that dies in the middle of its batch: the messages stay, and so do the leases.
    pub(crate) async fn dying_batch(&self) {
        let batch = self.twin.receive(10);
        self.twin.set_faults(|step, _| {
            (step != "lease")
                .then_some(workflow::twin::Fault::Before(workflow::ports::Trouble::Unavailable))
        });
        self.consumer.consume(batch, self.now().plus(FUNCTION_MS)).await;
        self.twin.clear_faults();
    }

    /// Works the queue until it is empty, moving time to where something happens, for `limit_ms`
    /// of simulated time at most.
    pub(crate) async fn drain(&self, limit_ms: u64) {
        let end = self.now().plus(limit_ms);
        loop {
            while self.batch().await > 0 {}
            let Some(next) = self.twin.next_visible() else { return };
            if next > end {
                return;
            }
            self.twin.advance(next.since(self.now()).max(1));
        }
    }

    /// Works the queue and lets the steward run every minute, for `limit_ms` of simulated time.
    pub(crate) async fn live(&self, limit_ms: u64) {
        let end = self.now().plus(limit_ms);
        while self.now() < end {
            self.drain(0).await;
            let minute = self.now().plus(60_000);
            while let Some(next) = self.twin.next_visible().filter(|next| *next < minute) {
                self.twin.advance(next.since(self.now()).max(1));
                self.drain(0).await;
            }
            self.twin.advance(minute.since(self.now()));
            self.tend().await;
        }
        self.drain(0).await;
    }

    /// One steward run.
    pub(crate) async fn tend(&self) -> workflow::steward::Tally {
        self.steward.run(self.now().plus(60_000)).await
    }

    pub(crate) fn row(&self, id: &str) -> Row {
        self.twin.find(&format!("shop#{id}")).unwrap()
    }

    pub(crate) fn plan_of(&self, subscription: &str) -> String {
        let entity = self.twin.state(&format!("shop#subscription#{subscription}")).unwrap();
        entity.state.get("plan").unwrap().as_str().unwrap_or("null").to_owned()
    }
}

/// A subscription event.
pub(crate) fn subscription(id: &str, kind: &str, created: u64, of: &str, plan: &str) -> Value {
    json!({
        "id": id, "object": "event", "type": format!("subscription.{kind}"), "created": created,
        "livemode": true, "data": {"object": {"id": of, "plan": plan, "status": "active"}},
    })
}

/// An event that no run can apply: its version is null.
pub(crate) fn poison(id: &str) -> Value {
    let mut event = subscription(id, "updated", 1, "sub_poison", "gold");
    event["created"] = Value::Null;
    event
}

/// A payment that adds to an account's total.
pub(crate) fn payment(id: &str, account: &str, amount: u64) -> Value {
    json!({
        "id": id, "object": "event", "type": "payment.received", "created": 1, "livemode": true,
        "data": {"object": {"account": account, "amount": amount}},
    })
}
