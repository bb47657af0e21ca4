//! Keys for providers' APIs on the twin: how they are shown, kept, rotated, and never told.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{FailureClass, Outcome, Status};
use rig::{
    Rig, START,
    fetched::{USUAL, deliver, failure_of, once, rig_of, state},
    provider::{API_KEY, answer, object},
};
use serde_json::json;
use workflow::ports::Secret;

#[tokio::test]
async fn a_refused_key_is_permanent_and_named_and_never_shown() {
    for status in [401, 403] {
        let (row, rig, provider) = once(USUAL, |_, provider| {
            provider.set_whim(move |_| Some(answer(status, "no")));
        })
        .await;
        assert_eq!((row.life.status, row.life.attempts), (Status::Dead, 1));
        let (class, error) = failure_of(&row);
        assert_eq!(class, FailureClass::Permanent);
        assert_eq!(
            error,
            format!(
                "sources.shop.fetch.subscription: the key \"shop-api\" of the outbound secret was \
                 refused ({status}); store a valid one, then redrive"
            )
        );
        let told = format!("{:?}{:?}", rig.twin.lines(), rig.twin.rows());
        assert!(!told.contains(API_KEY));
        assert_eq!(provider.asked().len(), 1, "an unchanged key is not tried twice");
    }
}

#[tokio::test]
async fn a_key_that_was_rotated_is_read_again_once_a_minute_at_most() {
    let (rig, provider) = rig_of(USUAL);
    provider.put("sub_1", object("gold", "active"));
    provider.set_whim(|ask| {
        let is_new = ask.headers.iter().any(|(_, value)| value == "Bearer rk_live_after_rotation");
        (!is_new).then(|| answer(401, "unknown key"))
    });
    let reads = |rig: &Rig| rig.twin.counts().get("secret").copied().unwrap_or(0);
    deliver(&rig, "evt_0", "updated", "sub_1").await;
    rig.batch().await;
    assert_eq!(rig.row("evt_0").life.status, Status::Dead, "the stored key is the old one");
    let before = reads(&rig);
    let rotated = json!({"shop-api": [{"key": "rk_live_after_rotation"}]}).to_string();
    rig.twin.set_secret_of(Secret::Outbound, &rotated);
    deliver(&rig, "evt_1", "updated", "sub_1").await;
    rig.batch().await;
    assert_eq!(reads(&rig), before, "it was read less than a minute ago");
    assert_eq!(rig.row("evt_1").life.status, Status::Dead);
    rig.twin.advance(60_000);
    deliver(&rig, "evt_2", "updated", "sub_1").await;
    rig.batch().await;
    assert_eq!(reads(&rig), before + 1);
    assert_eq!(rig.row("evt_2").life.outcome, Some(Outcome::Applied));
}

#[tokio::test]
async fn a_rotated_key_heals_a_whole_batch_and_not_its_first_question_alone() {
    let (rig, provider) = rig_of(USUAL);
    for n in 0..5 {
        provider.put(&format!("sub_{n}"), object("gold", "active"));
    }
    deliver(&rig, "evt_0", "updated", "sub_0").await;
    rig.batch().await;
    provider.set_whim(|ask| {
        let is_new = ask.headers.iter().any(|(_, value)| value == "Bearer rk_live_after_rotation");
        (!is_new).then(|| answer(401, "unknown key"))
    });
    let rotated = json!({"shop-api": [{"key": "rk_live_after_rotation"}]}).to_string();
    rig.twin.set_secret_of(Secret::Outbound, &rotated);
    rig.twin.advance(61_000);
    for n in 1..5 {
        deliver(&rig, &format!("evt_{n}"), "updated", &format!("sub_{n}")).await;
    }
    rig.batch().await;
    for n in 1..5 {
        let row = rig.row(&format!("evt_{n}"));
        assert_eq!(row.life.outcome, Some(Outcome::Applied), "evt_{n}");
    }
}

#[tokio::test]
async fn a_spent_quota_said_with_403_is_no_refused_key() {
    for (header, value) in [("retry-after", "30"), ("x-ratelimit-remaining", "0")] {
        let (row, ..) = once(USUAL, |rig, provider| {
            let reset = (rig.now().0 / 1_000 + 30).to_string();
            provider.set_whim(move |_| {
                let mut said = answer(403, "slow down");
                said.headers.push((header.to_owned(), value.to_owned()));
                said.headers.push(("x-ratelimit-reset".to_owned(), reset.clone()));
                Some(said)
            });
        })
        .await;
        assert_eq!(failure_of(&row).0, FailureClass::RateLimited, "{header}");
    }
}

#[tokio::test]
async fn a_token_that_does_not_say_how_long_it_lives_is_kept_for_minutes() {
    let oauth =
        format!("{USUAL}\nauth = {{ token_url = \"https://api.shop.example/oauth2/token\" }}");
    for (said, asked) in [
        (json!({"access_token": "t"}), 1),
        (json!({"access_token": "t", "expires_in": "3599"}), 1),
        (json!({"access_token": "t", "expires_in": null}), 1),
        (json!({"access_token": "t", "expires_in": 0}), 2),
    ] {
        let (rig, provider) = rig_of(&oauth);
        rig.twin.set_secret_of(Secret::Outbound, r#"{"shop-api":[{"key":"client:secret-1"}]}"#);
        let told = said.to_string();
        provider
            .set_whim(move |ask| ask.url.ends_with("/oauth2/token").then(|| answer(200, &told)));
        for n in 0..2 {
            provider.put(&format!("sub_{n}"), object("gold", "active"));
            deliver(&rig, &format!("evt_{n}"), "updated", &format!("sub_{n}")).await;
            rig.batch().await;
            let row = rig.row(&format!("evt_{n}"));
            assert_eq!(row.life.outcome, Some(Outcome::Applied), "{said}");
        }
        let questions = provider.asked();
        let tokens = questions.iter().filter(|ask| ask.authorization.starts_with("Basic "));
        assert_eq!(tokens.count(), asked, "{said}");
    }
}

#[tokio::test]
async fn keys_are_read_every_five_minutes_and_serve_for_an_hour_when_the_store_is_down() {
    let (rig, provider) = rig_of(USUAL);
    provider.put("sub_1", object("gold", "active"));
    let run = async |id: &str| {
        deliver(&rig, id, "updated", "sub_1").await;
        rig.batch().await;
        rig.row(id).life.status
    };
    let outbound_reads = || {
        let keyring = 1 + rig.now().since(START) / 300_000;
        rig.twin.counts().get("secret").copied().unwrap_or(0).saturating_sub(keyring)
    };
    assert_eq!(run("evt_1").await, Status::Settled);
    rig.twin.advance(299_999);
    assert_eq!(run("evt_2").await, Status::Settled);
    assert_eq!(outbound_reads(), 1);
    rig.twin.set_faults(|step, _| {
        (step == "secret")
            .then_some(workflow::twin::Fault::Before(workflow::ports::Trouble::Unavailable))
    });
    rig.twin.advance(3_000_000);
    assert_eq!(run("evt_3").await, Status::Settled, "stale, and better than nothing");
    rig.twin.clear_faults();
    rig.twin.set_secret_of(Secret::Outbound, "{}");
    rig.twin.advance(700_000);
    assert_eq!(run("evt_4").await, Status::Failed);
    let (class, error) = failure_of(&rig.row("evt_4"));
    assert_eq!(class, FailureClass::Transient, "it may be stored in a moment");
    assert!(error.contains("no entry \"shop-api\""), "{error}");
}

#[tokio::test]
async fn what_is_no_key_is_refused_by_name() {
    for (entry, why) in [
        (json!([{"key": "  sk_live_1"}]), "white space"),
        (json!([{"key": "changeme"}]), "placeholder"),
        (json!([{"key": ""}]), "empty"),
        (json!([{"key": "sk_live_1", "local": true}]), "outside the stage `local`"),
        (json!("sk_live_1"), "expected a list"),
        (json!([]), "empty"),
    ] {
        let (row, ..) = once(USUAL, |rig, _| {
            rig.twin.set_secret_of(Secret::Outbound, &json!({"shop-api": entry}).to_string());
        })
        .await;
        let (class, error) = failure_of(&row);
        assert_eq!(class, FailureClass::Transient);
        assert!(error.contains("\"shop-api\"") && error.contains(why), "{error}");
        assert!(!error.contains("sk_live"), "{error}");
    }
}

#[tokio::test]
async fn a_client_exchanges_its_key_for_a_token_and_keeps_it_while_it_lives() {
    let oauth =
        format!("{USUAL}\nauth = {{ token_url = \"https://api.shop.example/oauth2/token\" }}");
    let (rig, provider) = rig_of(&oauth);
    rig.twin.set_secret_of(Secret::Outbound, r#"{"shop-api":[{"key":"client:secret-1"}]}"#);
    provider.put("sub_1", object("gold", "active"));
    let mut granted = 0;
    provider.set_whim(move |ask| {
        if ask.url.ends_with("/oauth2/token") {
            assert_eq!(ask.body, b"grant_type=client_credentials");
            granted += 1;
            let token = json!({"access_token": format!("token-{granted}"), "expires_in": 3600});
            return Some(answer(200, &token.to_string()));
        }
        // The first token is withdrawn before its time.
        let is_first = ask.headers.iter().any(|(_, value)| value == "Bearer token-1");
        (is_first && granted > 0 && ask.url.ends_with("sub_2")).then(|| answer(401, "expired"))
    });
    provider.put("sub_2", object("silver", "active"));
    for (id, of) in [("evt_1", "sub_1"), ("evt_2", "sub_1"), ("evt_3", "sub_2")] {
        deliver(&rig, id, "updated", of).await;
        rig.batch().await;
        assert_eq!(rig.row(id).life.outcome, Some(Outcome::Applied), "{id}");
    }
    let shown: Vec<String> =
        provider.asked().into_iter().map(|asked| asked.authorization).collect();
    let basic = "Basic Y2xpZW50OnNlY3JldC0x";
    let (first, second) = ("Bearer token-1", "Bearer token-2");
    assert_eq!(shown, [basic, first, first, first, basic, second]);
    rig.twin.advance(3_600_000);
    deliver(&rig, "evt_4", "updated", "sub_1").await;
    rig.batch().await;
    assert_eq!(provider.asked().len(), 8, "a token in its last minute is exchanged");
}

#[tokio::test]
async fn a_key_goes_into_the_header_that_the_provider_wants() {
    for (auth, name, value) in [
        ("auth = \"basic\"", "authorization", "Basic c2tfbGl2ZV81MUhxN1J2MmVa"),
        ("auth = { header = \"x-api-key\" }", "x-api-key", API_KEY),
    ] {
        let (_, rig, _) = once(&format!("{USUAL}\n{auth}"), |_, provider| {
            provider.set_whim(move |ask| {
                let is_there = ask.headers.iter().any(|(n, v)| n == name && v == value);
                (!is_there).then(|| answer(401, "no"))
            });
        })
        .await;
        assert_eq!(state(&rig, "sub_1").state["plan"], "gold", "{auth}");
    }
}
