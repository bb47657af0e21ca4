//! Fetched state on the twin: the event is a hint, the provider says what is.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Entity, FailureClass, Outcome, Status};
use rig::{
    Rig, START,
    fetched::{USUAL, deliver, failure_of, once, rig_of, state},
    payment,
    provider::{API_KEY, Asked, Provider, answer, object, silence, too_many},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

#[tokio::test]
async fn the_state_is_what_the_provider_says_and_the_key_is_shown_to_it() {
    let (row, rig, provider) = once(USUAL, |_, _| {}).await;
    assert_eq!(row.life.outcome, Some(Outcome::Applied));
    let entity = state(&rig, "sub_1");
    assert_eq!(json!(entity.state), json!({"plan": "gold", "status": "active"}));
    assert_eq!((entity.revision, entity.version), (1, None));
    let asked: Vec<Asked> = provider.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].url, "https://api.shop.example/v1/subscriptions/sub_1");
    assert_eq!(asked[0].authorization, format!("Bearer {API_KEY}"));
}

#[tokio::test]
async fn one_batch_asks_once_for_an_entity_however_many_events_it_has() {
    let (rig, provider) = rig_of(USUAL);
    provider.put("sub_1", object("gold", "active"));
    provider.put("sub_2", object("silver", "active"));
    for n in 0..5 {
        deliver(&rig, &format!("evt_{n}"), "updated", "sub_1").await;
    }
    deliver(&rig, "evt_other", "updated", "sub_2").await;
    rig.batch().await;
    assert_eq!(provider.asked().len(), 2);
    assert_eq!(state(&rig, "sub_1").revision, 5, "every event made its change");
    assert!(rig.twin.rows().iter().all(|row| row.life.outcome == Some(Outcome::Applied)));

    // Also where no message says whose event it is, so that all are worked at the same time.
    for n in 5..10 {
        deliver(&rig, &format!("evt_{n}"), "updated", "sub_1").await;
    }
    rig.twin.lose_queue();
    for n in 5..10 {
        rig.twin.enqueue(&format!("{{\"v\":1,\"key\":\"shop#evt_{n}\"}}"));
    }
    rig.batch().await;
    assert_eq!(provider.asked().len(), 3, "a later batch asks again, once");
    assert_eq!(state(&rig, "sub_1").revision, 10);
}

#[tokio::test]
async fn a_question_that_failed_is_not_repeated_by_the_others_of_its_batch() {
    let (rig, provider) = rig_of(USUAL);
    provider.set_whim(|_| Some(answer(503, "down")));
    for n in 0..5 {
        deliver(&rig, &format!("evt_{n}"), "updated", "sub_1").await;
    }
    rig.batch().await;
    assert_eq!(provider.asked().len(), 1);
    assert!(rig.twin.rows().iter().all(|row| row.life.status == Status::Failed));
    provider.clear_whim();
    provider.put("sub_1", object("gold", "active"));
    rig.drain(60_000).await;
    assert_eq!(state(&rig, "sub_1").state["plan"], "gold");
}

#[tokio::test]
async fn whoever_asked_before_somebody_else_wrote_asks_again() {
    let (rig, provider) = rig_of(USUAL);
    provider.put("sub_1", object("bronze", "active"));
    let (twin, later, mut calls) = (Arc::downgrade(&rig.twin), provider.clone(), 0);
    provider.set_whim(move |_| {
        calls += 1;
        if calls > 1 {
            return None;
        }
        // While this answer is on its way, things change, and another worker hears of it first.
        let slow = answer(200, &object("bronze", "active").to_string());
        later.put("sub_1", object("gold", "active"));
        let entity = Entity {
            version: None,
            rank: 0,
            last_event: "evt_2".to_owned(),
            revision: 1,
            state: object("gold", "active").as_object().unwrap().clone(),
            updated_at: START,
            is_final: false,
            waiting: std::collections::BTreeSet::new(),
        };
        twin.upgrade()?.plant_state("shop#subscription#sub_1", entity);
        Some(slow)
    });
    deliver(&rig, "evt_1", "updated", "sub_1").await;
    rig.batch().await;
    assert_eq!(provider.asked().len(), 2);
    let entity = state(&rig, "sub_1");
    assert_eq!((entity.state["plan"].as_str(), entity.revision), (Some("gold"), 2));
}

#[tokio::test]
async fn an_entity_that_everybody_writes_is_given_back_after_a_few_questions() {
    let (rig, provider) = rig_of(USUAL);
    let (twin, mut revision) = (Arc::downgrade(&rig.twin), 0);
    provider.set_whim(move |_| {
        revision += 1;
        let entity = Entity {
            version: None,
            rank: 0,
            last_event: "evt_x".to_owned(),
            revision,
            state: serde_json::Map::new(),
            updated_at: START,
            is_final: false,
            waiting: std::collections::BTreeSet::new(),
        };
        twin.upgrade()?.plant_state("shop#subscription#sub_1", entity);
        Some(answer(200, "{}"))
    });
    deliver(&rig, "evt_1", "updated", "sub_1").await;
    rig.batch().await;
    assert_eq!(provider.asked().len(), 6);
    let life = rig.row("evt_1").life;
    assert_eq!((life.status, life.attempts), (Status::Waiting, 0));
}

#[tokio::test]
async fn what_the_provider_does_not_know_is_what_the_configuration_says() {
    let with = |on_404: &str| format!("on_404 = \"{on_404}\"\nrate_per_s = 1000");
    let forget = |_: &Rig, provider: &Provider| provider.remove("sub_1");
    let nothing = json!({"plan": null, "status": null});

    let (row, rig, provider) = once(&with("tombstone"), forget).await;
    assert_eq!(row.life.outcome, Some(Outcome::Applied));
    let entity = state(&rig, "sub_1");
    assert_eq!((json!(entity.state), entity.is_final), (nothing.clone(), true));
    provider.put("sub_1", object("gold", "active"));
    deliver(&rig, "evt_2", "updated", "sub_1").await;
    rig.batch().await;
    assert_eq!(rig.row("evt_2").life.outcome, Some(Outcome::Superseded));
    assert!(state(&rig, "sub_1").is_final, "nothing brings it back");
    assert_eq!(provider.asked().len(), 1, "what is final is not asked about");

    let (_, rig, provider) = once(&with("empty"), forget).await;
    let entity = state(&rig, "sub_1");
    assert_eq!((json!(entity.state), entity.is_final), (nothing, false));
    provider.put("sub_1", object("gold", "active"));
    deliver(&rig, "evt_2", "updated", "sub_1").await;
    rig.batch().await;
    assert_eq!(state(&rig, "sub_1").state["plan"], "gold", "it may come back");

    let (row, rig, provider) = once(&with("retry"), forget).await;
    assert_eq!((row.life.status, failure_of(&row).0), (Status::Failed, FailureClass::Transient));
    provider.put("sub_1", object("gold", "active"));
    rig.drain(60_000).await;
    assert_eq!(state(&rig, "sub_1").state["plan"], "gold");

    let (row, ..) = once(&with("dead"), forget).await;
    assert_eq!((row.life.status, failure_of(&row).0), (Status::Dead, FailureClass::Permanent));
    assert!(failure_of(&row).1.contains("404"));
}

#[tokio::test]
async fn what_is_gone_at_the_provider_is_what_the_configuration_says_of_what_is_not_there() {
    let gone = |_: &Rig, provider: &Provider| provider.set_whim(|_| Some(answer(410, "{}")));
    let with = |on_404: &str| format!("on_404 = \"{on_404}\"\nrate_per_s = 1000");
    let (row, rig, _) = once(&with("tombstone"), gone).await;
    assert_eq!(row.life.outcome, Some(Outcome::Applied));
    assert!(state(&rig, "sub_1").is_final);
    let (_, rig, _) = once(&with("empty"), gone).await;
    assert!(!state(&rig, "sub_1").is_final);
    for (on_404, class) in [("retry", FailureClass::Transient), ("dead", FailureClass::Permanent)] {
        let (row, ..) = once(&with(on_404), gone).await;
        let (found, error) = failure_of(&row);
        assert_eq!(found, class, "{on_404}");
        assert!(error.contains("410"), "{error}");
    }
}

#[tokio::test]
async fn other_answers_have_the_class_of_their_status() {
    use FailureClass::{Permanent, RateLimited, Transient};
    for (status, class) in [
        (500, Transient),
        (502, Transient),
        (503, Transient),
        (408, Transient),
        (204, Transient),
        (302, Transient),
        (307, Transient),
        (409, Transient),
        (423, Transient),
        (425, Transient),
        (499, Transient),
        (301, Permanent),
        (308, Permanent),
        (400, Permanent),
        (402, Permanent),
        (405, Permanent),
        (422, Permanent),
        (429, RateLimited),
    ] {
        let (row, ..) = once(USUAL, |_, provider| {
            provider.set_whim(move |_| Some(answer(status, "<html>")));
        })
        .await;
        let (found, error) = failure_of(&row);
        assert_eq!(found, class, "{status}");
        assert!(error.contains(&status.to_string()), "{error}");
        assert!(!error.contains("html"), "an answer is not repeated: {error}");
    }
    let (row, ..) = once(USUAL, |_, provider| provider.set_whim(|_| Some(silence()))).await;
    assert_eq!(failure_of(&row).0, Transient);
}

#[tokio::test]
async fn an_answer_that_is_no_json_is_transient_and_a_value_that_cannot_be_stored_is_not() {
    for (body, class, said) in [
        ("<html>down</html>", FailureClass::Transient, "in the provider's answer: "),
        ("\u{fffd}", FailureClass::Transient, "in the provider's answer: "),
        (r#"{"plan": 1e400, "status": 1}"#, FailureClass::Permanent, "for the field plan"),
        (r#"{"plan": {"": 1}, "status": 1}"#, FailureClass::Permanent, "an empty key"),
    ] {
        let (row, ..) = once(USUAL, |_, provider| {
            let body = body.to_owned();
            provider.set_whim(move |_| Some(answer(200, &body)));
        })
        .await;
        let (found, error) = failure_of(&row);
        assert_eq!(found, class, "{body}");
        assert!(error.contains(said), "{error}");
    }
    let exact = r#"{"plan": 12345678901234567890.123456789, "status": 9007199254740993}"#;
    let (_, rig, _) = once(USUAL, |_, provider| {
        provider.set_whim(move |_| Some(answer(200, exact)));
    })
    .await;
    assert_eq!(state(&rig, "sub_1").state["plan"].to_string(), "12345678901234567890.123456789");
    assert_eq!(state(&rig, "sub_1").state["status"].to_string(), "9007199254740993");
}

#[tokio::test]
async fn retry_after_is_honoured_by_the_row_and_by_everybody_else_without_an_attempt() {
    let (row, rig, provider) = once(USUAL, |_, provider| {
        provider.set_whim(|_| Some(too_many(Some("37"))));
    })
    .await;
    assert_eq!(failure_of(&row).0, FailureClass::RateLimited);
    assert_eq!(row.life.retry_at.unwrap().since(rig.now()), 37_000);
    provider.clear_whim();
    deliver(&rig, "evt_2", "updated", "sub_1").await;
    rig.batch().await;
    let other = rig.row("evt_2").life;
    assert_eq!((other.status, other.attempts), (Status::Waiting, 0));
    assert!(other.retry_at.unwrap().since(rig.now()) >= 37_000);
    assert_eq!(provider.asked().len(), 1, "the provider asked for silence");
    rig.drain(120_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
    assert_eq!(rig.row("evt_2").life.outcome, Some(Outcome::Applied));
}

#[tokio::test]
async fn an_id_that_is_a_step_to_another_folder_is_refused() {
    let (rig, provider) = rig_of(USUAL);
    deliver(&rig, "evt_1", "updated", "..").await;
    deliver(&rig, "evt_2", "updated", "a/../../secrets?x=1").await;
    rig.batch().await;
    assert_eq!(failure_of(&rig.row("evt_1")).0, FailureClass::Permanent);
    let asked = provider.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].url.ends_with("/v1/subscriptions/a%2F..%2F..%2Fsecrets%3Fx%3D1"));
}

#[tokio::test]
async fn one_entitys_refusal_drops_no_other_change_of_the_event() {
    let (rig, provider) = rig_of(USUAL);
    provider.put("acct_1", object("gold", "active"));
    let pay = async |id: &str, created: u64, amount: u64| {
        let mut event = payment(id, "acct_1", amount);
        event["created"] = Value::from(created);
        rig.deliver(&event).await;
        rig.batch().await;
    };
    pay("evt_2", 20, 7).await;
    provider.remove("acct_1");
    pay("evt_1", 10, 5).await;
    let at = |kind: &str| rig.twin.state(&format!("shop#{kind}#acct_1")).unwrap();
    assert!(at("subscription").is_final, "fetched: gone");
    assert_eq!(at("balance").state["total"].to_string(), "12", "both are added");
    assert_eq!(at("last-payment").state["amount"].to_string(), "7", "the older is superseded");
    let outcomes = |id: &str| -> BTreeMap<String, String> {
        let effects = rig.row(id).effects;
        let kind = |entity: &str| entity.split('#').nth(1).unwrap().to_owned();
        let told = |effect: &ledger::Effect| format!("{:?}", effect.outcome);
        effects.iter().map(|effect| (kind(&effect.entity), told(effect))).collect()
    };
    assert_eq!(outcomes("evt_1")["last-payment"], "Superseded");
    assert_eq!(outcomes("evt_1")["balance"], "Applied");
    assert_eq!(outcomes("evt_1")["subscription"], "Applied");
    pay("evt_3", 30, 1).await;
    assert_eq!(outcomes("evt_3")["subscription"], "Superseded", "it is final");
    assert_eq!(at("balance").state["total"].to_string(), "13");
    assert_eq!(at("last-payment").state["amount"].to_string(), "1");
}
