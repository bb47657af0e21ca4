//! Adyen standard payment webhooks: each item of the batch carries its own signature.
//!
//! The signature covers eight fields joined by colons, decoded and not escaped, and nothing else:
//! not the reason, the event date, the rest of `additionalData`, nor the envelope with its `live`
//! flag. A delivery is authentic only if every item is, and an empty one proves nothing. The body
//! must be parsed before it can be proven, which is why a repeated field is refused here.
//!
//! <https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures>

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use serde_json::value::RawValue;
use subtle::ConstantTimeEq as _;

use crate::algorithm::Algorithm;
use crate::encoding::Encoding;
use crate::extract::pick::Picker;
use crate::extract::pointer::Pointer;
use crate::extract::scalar::scalar_or_bool;
use crate::key::Material;
use crate::scheme::usable_keys;
use crate::{CannotSign, Key, Rejection, Request, UnusableReason, Verified};

/// The signed fields, in order.
const SIGNED: [&str; 8] = [
    "/NotificationRequestItem/pspReference",
    "/NotificationRequestItem/originalReference",
    "/NotificationRequestItem/merchantAccountCode",
    "/NotificationRequestItem/merchantReference",
    "/NotificationRequestItem/amount/value",
    "/NotificationRequestItem/amount/currency",
    "/NotificationRequestItem/eventCode",
    "/NotificationRequestItem/success",
];
/// The only signed field that the merchant writes. A colon elsewhere would let one signature fit two
/// ways of cutting the text into fields, with another event id.
const FREE_TEXT: &str = "/NotificationRequestItem/merchantReference";
const SIGNATURE: &str = "/NotificationRequestItem/additionalData/hmacSignature";
const ITEMS: &str = "/notificationItems";

/// Finds the items of a batch.
static BATCH: LazyLock<Picker> = LazyLock::new(|| {
    let items = Pointer::parse(ITEMS);
    items.map_or_else(Picker::default, |items| Picker::with_list(Vec::new(), items))
});
/// Finds the signed fields of an item and, behind them, its signature.
static ITEM: LazyLock<Picker> = LazyLock::new(|| {
    let places = SIGNED.iter().chain([&SIGNATURE]);
    Picker::new(places.filter_map(|text| Pointer::parse(text)).collect())
});

pub(crate) fn verify(request: &Request<'_>, keys: &[Key]) -> Result<Verified, Rejection> {
    let text = std::str::from_utf8(request.body).map_err(|_| malformed("UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let keys = usable_keys(keys, |material| matches!(material, Material::Secret(_)))?;
    let mut first_kid = None;
    let mut refusal = None;
    // An item is proven while the batch is read: nothing is kept of it, and after the first that is
    // refused the rest is only checked to be JSON.
    let (_, count) = BATCH
        .pick_each(text, &mut |item| {
            let kid = Item::read(item)
                .and_then(|item| item.kid(&keys).ok_or(Rejection::NoSignatureMatched));
            match kid {
                Ok(kid) => {
                    first_kid.get_or_insert(kid);
                    ControlFlow::Continue(())
                }
                Err(rejection) => {
                    refusal = Some(rejection);
                    ControlFlow::Break(())
                }
            }
        })
        .map_err(|reason| unreadable(&reason))?;
    match (count, refusal, first_kid) {
        (None, ..) => Err(malformed("a list of notificationItems")),
        (Some(_), Some(refusal), _) => Err(refusal),
        (Some(_), None, Some(kid)) => Ok(Verified { kid, signed_at_ms: None }),
        (Some(_), None, None) => Err(malformed("at least one of notificationItems")),
    }
}

struct Item {
    signed: String,
    signature: Vec<u8>,
}

impl Item {
    fn read(item: &RawValue) -> Result<Self, Rejection> {
        let values = ITEM.pick(item.get()).map_err(|reason| unreadable(&reason))?;
        let (fields, signature) = values.split_at_checked(SIGNED.len()).unwrap_or_default();
        let signature =
            signature.first().copied().flatten().and_then(scalar_or_bool).ok_or_else(|| {
                Rejection::FieldMissing { at: "additionalData.hmacSignature".to_owned() }
            })?;
        let signature = Encoding::Base64
            .decode(&signature)
            .filter(|bytes| Algorithm::HmacSha256.plausible_length(bytes.len()))
            .ok_or_else(|| malformed("hmacSignature as canonical base64 of 32 bytes"))?;
        let mut signed = Vec::with_capacity(SIGNED.len());
        for (field, at) in fields.iter().zip(SIGNED) {
            let value = match field {
                None => Cow::Borrowed(""),
                Some(raw) if raw.get() == "null" => Cow::Borrowed(""),
                Some(raw) => {
                    scalar_or_bool(raw).ok_or_else(|| malformed("plain values in signed fields"))?
                }
            };
            if value.contains(':') && at != FREE_TEXT {
                return Err(malformed("no colon in signed fields but merchantReference"));
            }
            signed.push(value);
        }
        Ok(Self { signed: signed.join(":"), signature })
    }

    /// The key that signed this item. Every key is tried, whichever matched before.
    fn kid(&self, keys: &[&Key]) -> Option<String> {
        let mut kid = None;
        for key in keys {
            let Material::Secret(secret) = &key.material else {
                continue;
            };
            let matches = Algorithm::HmacSha256
                .mac(secret, &[self.signed.as_bytes()])
                .is_some_and(|mac| bool::from(mac.ct_eq(&self.signature)));
            if matches && kid.is_none() {
                kid = Some(key.kid.clone());
            }
        }
        kid
    }
}

/// The body with every item signed.
pub(crate) fn sign_body(body: &[u8], key: &Key) -> Result<Vec<u8>, CannotSign> {
    let Material::Secret(secret) = &key.material else {
        return Err(CannotSign::PublicKeyOnly);
    };
    let unreadable = || CannotSign::BodyUnreadable;
    let mut document: serde_json::Value = serde_json::from_slice(body).map_err(|_| unreadable())?;
    let items = document
        .pointer_mut(ITEMS)
        .and_then(serde_json::Value::as_array_mut)
        .ok_or_else(unreadable)?;
    for item in items {
        let fields: Vec<String> = SIGNED
            .iter()
            .map(|at| match item.pointer(at) {
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(serde_json::Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            })
            .collect();
        let mac = Algorithm::HmacSha256
            .mac(secret, &[fields.join(":").as_bytes()])
            .ok_or_else(unreadable)?;
        let inner = item
            .get_mut("NotificationRequestItem")
            .and_then(serde_json::Value::as_object_mut)
            .ok_or_else(unreadable)?;
        let data = inner
            .entry("additionalData")
            .or_insert_with(|| serde_json::json!({}))
            .as_object_mut()
            .ok_or_else(unreadable)?;
        data.insert("hmacSignature".to_owned(), Encoding::Base64.encode(&mac).into());
    }
    Ok(document.to_string().into_bytes())
}

fn malformed(expected: &str) -> Rejection {
    Rejection::BodyMalformed { expected: expected.to_owned() }
}

fn unreadable(reason: &UnusableReason) -> Rejection {
    match reason {
        UnusableReason::DuplicateKey { .. } => malformed("each signed field once"),
        UnusableReason::NotUtf8
        | UnusableReason::NotJson { .. }
        | UnusableReason::NotForm { .. }
        | UnusableReason::NoEventId { .. }
        | UnusableReason::TooManyEvents { .. }
        | UnusableReason::NoBatch { .. }
        | UnusableReason::RequiredMissing { .. } => malformed("JSON with notificationItems"),
    }
}
