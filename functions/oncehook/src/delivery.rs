//! From a sample to a signed request, and the ledger key it will get.

use crate::{failure::Failure, http::Outgoing, sample::Sample};
use config::Source;
use ledger::{EventKey, Millis};
use serde_json::Value;
use verifier::{CannotSign, HeaderLookup, Headers, Key, Request};

/// What is the same for every delivery of a sample.
#[derive(Clone, Copy)]
pub(crate) struct Draft<'a> {
    /// The stack's address, without a trailing slash.
    pub(crate) url: &'a str,
    /// The source posted to.
    pub(crate) source: &'a Source,
    /// Its keys; the first that can sign does.
    pub(crate) keys: &'a [Key],
    /// Whether to spoil the signature.
    pub(crate) forge: bool,
}

/// A signed request.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The request.
    pub(crate) outgoing: Outgoing,
    /// The ledger key of its event; of the first where it carries several.
    pub(crate) key: Option<String>,
}

impl Draft<'_> {
    /// Signs `sample` as of `now`.
    pub(crate) fn sign(&self, sample: &Sample, now: Millis) -> Result<Delivery, Failure> {
        let path = format!("/webhooks/{}", self.source.name);
        let public_url = format!("{}{path}", self.url);
        let mut headers = sample.headers.clone();
        if headers.get("content-type") == HeaderLookup::Missing {
            headers.push("content-type", "application/json");
        }
        let unsigned = Request {
            method: &sample.method,
            path: &path,
            query: &sample.query,
            public_url: Some(&public_url),
            headers: &headers,
            body: &sample.body,
        };
        let (body, mut signed) = self.signature(&unsigned, now)?;
        let body = if self.forge { self.spoil(&sample.body, body, &mut signed)? } else { body };
        let request = Request { body: &body, ..unsigned };
        let events = self.source.preset.events(&request).unwrap_or_default();
        let key = events.first().and_then(|event| EventKey::new(&self.source.name, &event.id).ok());
        let query =
            if sample.query.is_empty() { String::new() } else { format!("?{}", sample.query) };
        let lines = without(&headers, &signed).chain(signed.iter().cloned()).collect();
        Ok(Delivery {
            key: key.map(|key| key.as_str().to_owned()),
            outgoing: Outgoing {
                method: sample.method.clone(),
                url: format!("{public_url}{query}"),
                headers: lines,
                body,
                path,
            },
        })
    }

    /// Body and headers as the first key that can sign leaves them.
    fn signature(&self, unsigned: &Request<'_>, now: Millis) -> Result<Signed, Failure> {
        let preset = &self.source.preset;
        if !preset.needs_key() {
            return Ok((unsigned.body.to_vec(), Vec::new()));
        }
        let mut refused = CannotSign::PublicKeyOnly;
        for key in self.keys {
            let signed = preset.sign_body(unsigned.body, key).and_then(|body| {
                let headers = preset.sign(&Request { body: &body, ..*unsigned }, key, now.0)?;
                Ok((body.into_owned(), headers))
            });
            match signed {
                Ok(signed) => return Ok(signed),
                Err(why) => refused = why,
            }
        }
        let provider = preset.title();
        Err(Failure::usage(format!("a delivery of {provider} cannot be signed: {refused}")))
    }

    /// Makes the proof wrong and leaves it well formed: in the headers where it stands there,
    /// else by leaving the body unsigned.
    fn spoil(
        &self,
        unsigned: &[u8],
        body: Vec<u8>,
        headers: &mut [(String, String)],
    ) -> Result<Vec<u8>, Failure> {
        let preset = &self.source.preset;
        let proofs = preset.signature_headers();
        let mut spoiled = false;
        for (_, value) in headers.iter_mut().filter(|(name, _)| proofs.contains(name)) {
            spoiled |= spoil_text(value);
        }
        if spoiled {
            Ok(body)
        } else if body != unsigned {
            Ok(unsigned.to_vec())
        } else {
            Err(Failure::usage(format!(
                "{} signs nothing, so nothing can be forged",
                preset.title()
            )))
        }
    }
}

/// A signed body, and the headers that prove it.
type Signed = (Vec<u8>, Vec<(String, String)>);

/// The header lines that the signature does not replace.
fn without<'h>(
    headers: &'h Headers,
    signed: &'h [(String, String)],
) -> impl Iterator<Item = (String, String)> + 'h {
    headers
        .iter()
        .filter(|(name, _)| !signed.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Changes the last digit or letter. Whether there was one.
fn spoil_text(text: &mut String) -> bool {
    let last = text.char_indices().rev().find(|(_, c)| c.is_ascii_alphanumeric());
    let Some((at, found)) = last else { return false };
    // Both digits are hexadecimal, and both may end the base64 of a hash.
    text.replace_range(at..=at, if found == '0' { "4" } else { "0" });
    true
}

/// Gives the sample another event id, where its source's preset reads the id from.
pub(crate) fn set_event_id(sample: &mut Sample, source: &Source, id: &str) -> Result<(), Failure> {
    let cannot = |why: &str| {
        Failure::usage(format!("--id cannot be set for source `{}`: {why}", source.name))
            .with_next("use --set with the pointer of the id, or edit the sample")
    };
    let place = id_place(source).ok_or_else(|| cannot("its preset composes the id otherwise"))?;
    if let Some(header) = place.strip_prefix("header:") {
        sample.set_header(header, id);
    } else if place.starts_with('/') {
        let value = Value::from(id);
        sample.set(&[crate::args::Set { pointer: place, value }])?;
    } else {
        return Err(cannot(&format!("the id stands at {place}")));
    }
    let request = Request {
        method: &sample.method,
        path: "",
        query: &sample.query,
        public_url: None,
        headers: &sample.headers,
        body: &sample.body,
    };
    match source.preset.events(&request) {
        Ok(events) if events.iter().any(|event| event.id.contains(id)) => Ok(()),
        Ok(_) => Err(cannot("the event keeps its id")),
        Err(unusable) => Err(cannot(&unusable.to_string())),
    }
}

/// Where the built-in preset reads the part of the id that is the event's own: of several parts the
/// first that the provider calls an id, else the last; and of alternatives the first.
fn id_place(source: &Source) -> Option<String> {
    let preset = verifier::preset_table(&source.preset_name)?;
    let id = preset.get("event")?.get("id")?;
    let text = match id.as_array() {
        Some(parts) => {
            let mut texts = parts.iter().filter_map(|part| part.as_str());
            let named =
                texts.clone().find(|text| text.starts_with("header:") && text.contains("-id"));
            named.or_else(|| texts.next_back())?
        }
        None => id.as_str()?,
    };
    text.split(" | ").next().map(str::to_owned)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::{keys, testing};

    const NOW: Millis = Millis(1_796_040_060_000);

    async fn signed(
        name: &str,
        forge: bool,
        change: impl Fn(&mut Sample, &Source),
    ) -> (Source, Vec<Key>, Delivery) {
        let config = testing::config();
        let mut sample = testing::sample(name);
        let source = config.source(sample.source.as_deref().unwrap()).unwrap().clone();
        change(&mut sample, &source);
        let keys = keys::of(&source, &config, testing::SECRETS).await.unwrap();
        let draft = Draft { url: "http://127.0.0.1/$default", source: &source, keys: &keys, forge };
        let delivery = draft.sign(&sample, NOW).unwrap();
        (source, keys, delivery)
    }

    fn verdict(source: &Source, keys: &[Key], outgoing: &Outgoing) -> Result<(), String> {
        let headers: Headers =
            outgoing.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let request = Request {
            method: &outgoing.method,
            path: &outgoing.path,
            query: "",
            public_url: None,
            headers: &headers,
            body: &outgoing.body,
        };
        let verdict = source.preset.verify(&request, keys, NOW.0);
        verdict.map(drop).map_err(|rejection| rejection.cause().to_owned())
    }

    #[tokio::test]
    async fn every_sample_is_signed_so_that_its_own_source_takes_it_and_a_forged_one_is_refused() {
        for name in testing::sample_names() {
            let (source, keys, delivery) = signed(&name, false, |_, _| {}).await;
            assert_eq!(verdict(&source, &keys, &delivery.outgoing), Ok(()), "{name}");
            assert!(delivery.key.is_some(), "{name} has no key");
            let (source, keys, delivery) = signed(&name, true, |_, _| {}).await;
            let refused = verdict(&source, &keys, &delivery.outgoing);
            assert_eq!(refused, Err("no_signature_matched".to_owned()), "{name}");
        }
    }

    #[tokio::test]
    async fn an_id_goes_where_the_provider_puts_it() {
        let samples = [
            ("stripe_subscription_created", "stripe-live#evt_x"),
            ("github_push", "github#evt_x"),
            (
                "shopify_order_paid",
                "shopify#atelier-nord.myshopify.com:orders/paid:evt_x:6207718842541",
            ),
            ("standard-webhooks_invoice_paid", "standard-webhooks#evt_x"),
        ];
        for (name, key) in samples {
            let (_, _, delivery) = signed(name, false, |sample, source| {
                set_event_id(sample, source, "evt_x").unwrap();
            })
            .await;
            assert_eq!(delivery.key.as_deref(), Some(key));
        }
    }
}
