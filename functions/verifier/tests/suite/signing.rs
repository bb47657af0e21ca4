//! What is signed here is verified here: the inverse that samples and tests rely on.

use verifier::{CannotSign, Key, Preset};

use crate::support::{Delivery, NOW_MS, preset};

/// A preset, a key text it takes, and a delivery it can sign.
pub(crate) fn signable(name: &str) -> Option<(Preset, Key, Delivery)> {
    let text = match name {
        "adyen" | "adyen-platform" => {
            "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00"
        }
        "braintree" | "chargebee" => "public:private",
        "standard-webhooks" | "svix" => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "paypal" | "mollie-classic" => return None,
        _ => "secret-0123456789",
    };
    let body = match name {
        "adyen" => {
            r#"{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"A","eventCode":"CAPTURE","success":"true","amount":{"value":10,"currency":"EUR"}}}]}"#
        }
        "braintree" => "<notification><kind>check</kind></notification>",
        "twilio" => "MessageSid=SM1&MessageStatus=sent",
        _ => r#"{"id":"evt_1","event_id":"evt_1"}"#,
    };
    let preset = preset(name);
    let key = preset.key("k", text).unwrap();
    let delivery = Delivery::post(body)
        .at("https://hooks.example/webhooks/source")
        .header("webhook-id", "msg_1")
        .header("svix-id", "msg_1");
    Some((preset, key, delivery))
}

#[test]
fn every_preset_verifies_what_it_signs() {
    for name in verifier::preset_names() {
        let Some((preset, key, delivery)) = signable(name) else {
            continue;
        };
        let signed = delivery.signed(&preset, &key, NOW_MS);
        let verified = signed.verify(&preset, &[key]).unwrap_or_else(|rejection| {
            panic!("{name}: {rejection}");
        });
        assert_eq!(verified.kid, "k", "{name}");
    }
}

#[test]
fn a_private_ed25519_key_signs_and_its_public_half_verifies() {
    let preset = preset("standard-webhooks");
    let private = preset
        .key(
            "k",
            "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg==",
        )
        .unwrap();
    let public = preset.key("p", "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=").unwrap();
    let signed =
        Delivery::post("{}").header("webhook-id", "msg_1").signed(&preset, &private, NOW_MS);
    assert_eq!(signed.verify(&preset, std::slice::from_ref(&public)).unwrap().kid, "p");
    assert_eq!(preset.sign(&signed.request(), &public, NOW_MS), Err(CannotSign::PublicKeyOnly));
}

#[test]
fn what_is_missing_for_a_signature_is_named() {
    let webhooks = preset("standard-webhooks");
    let key = webhooks.key("k", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let bare = Delivery::post("{}");
    assert_eq!(
        webhooks.sign(&bare.request(), &key, NOW_MS),
        Err(CannotSign::HeaderMissing { header: "webhook-id".to_owned() })
    );
    let square = preset("square");
    let key = square.key("k", "secret-1").unwrap();
    assert_eq!(square.sign(&bare.request(), &key, NOW_MS), Err(CannotSign::NoPublicUrl));
    assert_eq!(
        preset("paypal").sign(&bare.request(), &key, NOW_MS),
        Err(CannotSign::PublicKeyOnly)
    );
    assert_eq!(preset("adyen").sign_body(b"{}", &key), Err(CannotSign::BodyUnreadable));
    let stripe = preset("stripe");
    assert_eq!(stripe.sign(&bare.request(), &key, 5), Err(CannotSign::TimeOutOfRange));
}
