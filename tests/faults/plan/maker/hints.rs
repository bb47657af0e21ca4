//! Events that say only that something has changed: what it is now, their provider says.

use super::{Maker, NOON};
use crate::plan::{Event, Expect};
use serde_json::json;

impl Maker {
    /// A subscription of which events only hint: what it is, its provider says.
    pub(super) fn hints(&mut self) {
        let subscription = format!("sub_{}_{}", self.run, self.entities);
        for number in 1..=self.rng.u64(2..7) {
            let id = self.id("evt");
            let (plan, status) = (format!("price_{number}"), format!("s{number}"));
            let sample = self
                .sample("stripe_subscription_updated")
                .with("/id", id.as_str())
                .with("/data/object/id", subscription.as_str())
                .with("/data/object/status", "invented");
            let state = json!({ "plan": plan, "status": status });
            let says =
                json!({ "items": { "data": [{ "plan": { "id": plan } }] }, "status": status });
            let expect = Expect::Fetched {
                entity: format!("stripe-fetched#subscription#{subscription}"),
                path: format!("/v1/subscriptions/{subscription}"),
                number,
                says,
                state,
            };
            self.add("stripe-fetched", id, &sample, expect);
        }
    }

    /// A capture of PayPal's, whose state is PayPal's word as well.
    pub(super) fn captures(&mut self) {
        let capture = format!("CAP-{}-{}", self.run, self.entities);
        for number in 1..=self.rng.u64(1..4) {
            let (status, amount) = (format!("S{number}"), format!("{number}.00"));
            let state = json!({ "status": status, "amount": amount, "currency": "EUR" });
            let says = json!({ "status": status,
                "amount": { "value": amount, "currency_code": "EUR" } });
            let expect = Expect::Fetched {
                entity: format!("paypal#capture#{capture}"),
                path: format!("/v2/payments/captures/{capture}"),
                number,
                says,
                state,
            };
            let (id, transmission) = (self.id("WH"), self.id("transmission"));
            self.paypal(id, &transmission, "PAYMENT.CAPTURE.COMPLETED", &capture, expect);
        }
    }

    /// Two events under one transmission of PayPal's, which proves one.
    pub(super) fn rivals(&mut self) {
        let (ids, transmission) = ([self.id("WH"), self.id("WH")], self.id("transmission"));
        for (id, other) in ids.iter().zip(ids.iter().rev()) {
            let expect = Expect::Rival { other: format!("paypal#{other}") };
            let id = id.clone();
            self.paypal(id.clone(), &transmission, "CHECKOUT.ORDER.APPROVED", &id, expect);
        }
    }

    /// An event of PayPal's; the rest of its headers is its proof, which is made when all are known.
    fn paypal(&mut self, id: String, transmission: &str, kind: &str, about: &str, expect: Expect) {
        let body = json!({ "id": id, "event_type": kind, "create_time": self.instant(NOON),
            "resource": { "id": about, "status": "INVENTED" } });
        self.events.push(Event {
            key: format!("paypal#{id}"),
            id,
            source: "paypal",
            headers: vec![("paypal-transmission-id".to_owned(), transmission.to_owned())],
            body: body.to_string().into_bytes(),
            expect,
            retries: true,
        });
    }
}
