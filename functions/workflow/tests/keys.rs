//! The signing keys on the twin: which are used, and how often the store is asked for them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use rig::{Rig, subscription};
use serde_json::{Value, json};
use workflow::{Keyring, ports::Trouble, twin::Fault};

fn entry(kid: &str, key: &str) -> Value {
    json!({"kid": kid, "key": key})
}

fn other(n: u32) -> Value {
    entry(&format!("other-{n}"), &format!("whsec_0{n}9f8e7d6c5b4a39281706f5e4d3c2b1a0"))
}

/// What a signed delivery hears when the secret holds these entries, and what is said of them.
async fn heard(rig: &Rig, entries: &[Value]) -> (u16, Vec<String>) {
    rig.twin.set_secret(&json!({"shop": entries}).to_string());
    let answer = rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let lines = rig.twin.lines();
    let said = lines.iter().map(|line| line.message.clone());
    (answer.status, said.filter(|message| message.contains("not used")).collect())
}

#[tokio::test]
async fn three_keys_are_live_and_a_fourth_is_named_and_not_tried() {
    let mine = entry("k1", rig::SECRET);
    let (status, said) = heard(&Rig::new(), &[other(1), other(2), mine.clone()]).await;
    assert_eq!((status, said.len()), (200, 0));
    let (status, said) = heard(&Rig::new(), &[other(1), other(2), other(3), mine]).await;
    assert_eq!(status, 401);
    assert!(said[0].contains("\"k1\"") && said[0].contains("three"), "{said:?}");
}

#[tokio::test]
async fn a_local_key_is_no_key_outside_the_stage_local() {
    let local = json!({"kid": "k1", "key": rig::SECRET, "local": true});
    let (status, said) = heard(&Rig::new(), std::slice::from_ref(&local)).await;
    assert_eq!(status, 503, "none is left");
    assert!(said[0].contains("local"), "{said:?}");
    let mut on_a_laptop = Rig::new();
    on_a_laptop.receiver.keyring = Keyring::new(true);
    assert_eq!(heard(&on_a_laptop, &[local]).await.0, 200);
}

#[tokio::test]
async fn an_entry_with_a_misspelt_word_is_named_and_not_guessed_at() {
    let misspelt = json!({"kid": "k1", "key": rig::SECRET, "lokal": true});
    let (status, said) = heard(&Rig::new(), &[misspelt]).await;
    assert_eq!((status, said.len()), (503, 1));
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_asked_every_ten_seconds_and_not_at_every_delivery() {
    let rig = Rig::new();
    let deliver = async |n: u32| {
        let event = subscription(&format!("evt_{n}"), "created", 10, "sub_1", "gold");
        assert_eq!(rig.deliver(&event).await.status, 200, "the keys in hand serve");
    };
    deliver(0).await;
    rig.twin.advance(300_000);
    rig.twin
        .set_faults(|step, _| (step == "secret").then_some(Fault::Before(Trouble::Unavailable)));
    rig.twin.reset_counts();
    for n in 1..=50 {
        deliver(n).await;
    }
    assert_eq!(rig.twin.counts()["secret"], 1);
    rig.twin.advance(10_000);
    deliver(51).await;
    assert_eq!(rig.twin.counts()["secret"], 2);
}
