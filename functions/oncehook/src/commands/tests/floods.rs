//! What is looked for among very many: a limit hides nothing without saying so.

use super::*;
use ledger::{EventKey, Lease, Open, Row, Status, Token};

/// Copies of a row under other ids, in the same partition of the index, due `earlier`.
fn flood(stack: &Stack, of: &Row, ids: impl Iterator<Item = EventKey>) {
    for key in ids {
        let mut row = of.clone();
        row.life.open =
            row.life.open.map(|open| Open { due_at: open.due_at.minus(60_000), ..open });
        row.evidence.key = key;
        stack.twin.plant(row);
    }
}

/// Ids of a source that share the partition of `like`.
fn beside(like: &EventKey, source: &str, most: usize) -> Vec<EventKey> {
    let keys = (0..).map(|n| EventKey::parse(&format!("{source}#n{n}")).unwrap());
    keys.filter(|key| key.shard() == like.shard()).take(most).collect()
}

/// A stack with the second body of a push, which is dead, and a dead event of Stripe's.
async fn two_dead(stack: &Stack) -> (Row, Row) {
    post(stack, "stripe_poison").await.unwrap();
    stack.consume().await;
    stack.twin.advance(60_000);
    post(stack, "github_push").await.unwrap();
    post(stack, "github_push --set /ref=refs/heads/other").await.unwrap();
    let rows = stack.twin.rows();
    let of = |source: &str| {
        let is_it =
            |row: &&Row| row.life.status == Status::Dead && row.evidence.source.as_str() == source;
        rows.iter().find(is_it).unwrap().clone()
    };
    (of("stripe-live"), of("github"))
}

#[tokio::test]
async fn the_dead_of_one_source_are_found_behind_a_flood_of_another_s() {
    let stack = Stack::new();
    let (poison, conflict) = two_dead(&stack).await;
    flood(&stack, &poison, beside(&poison.evidence.key, "stripe-live", 30).into_iter());
    let listed = dead_of(&stack, "--source github --limit 5").await;
    let (text, json) = read(&listed);
    assert_eq!(json["groups"][0]["rows"][0]["key"], conflict.evidence.key.as_str(), "{text}");
    assert_eq!((&json["dead"], &json["more"]), (&1.into(), &false.into()), "{text}");
    let (text, json) = read(&dead_of(&stack, "--source stripe-live --limit 5").await);
    assert!(text.contains("5 dead events or more; --limit reads on"), "{text}");
    assert_eq!(json["more"], true);
    let (_, json) = read(&dead_of(&stack, "--source stripe-live --limit 31").await);
    assert_eq!((&json["dead"], &json["more"]), (&31.into(), &false.into()), "exactly the limit");
}

#[tokio::test]
async fn a_search_that_ends_before_the_flood_does_says_so_and_needs_attention() {
    let stack = Stack::new();
    let (poison, conflict) = two_dead(&stack).await;
    // More than a page of the one partition that the second body is in.
    let others = beside(&conflict.evidence.key, "stripe-live", 1_001);
    let Some(Open { bucket, .. }) = conflict.life.open else { panic!() };
    let mut like = poison;
    like.life.open = like.life.open.map(|open| Open { bucket, ..open });
    flood(&stack, &like, others.into_iter());
    let listed = dead_of(&stack, "--source github --limit 1").await;
    let (text, json) = read(&listed);
    assert!(text.starts_with("none among the first 10"), "{text}");
    assert!(text.contains("--limit reads on") && listed.needs_attention(), "{text}");
    assert_eq!((&json["dead"], &json["more"]), (&0.into(), &true.into()));
    assert_eq!(read(&dead_of(&stack, "--source github --limit 11").await).1["dead"], 1);
}

#[tokio::test]
async fn nothing_is_stuck_is_not_said_of_late_events_that_were_not_read() {
    let stack = Stack::new();
    post(&stack, "github_push").await.unwrap();
    let late = stack.twin.rows().remove(0);
    // Late in the index and at work: nobody need look at these.
    let mut working = late.clone();
    let now = stack.twin.now();
    working.life.status = Status::Processing;
    working.life.lease = Some(Lease { owner: Token(7), until: now.plus(900_000) });
    flood(&stack, &working, beside(&late.evidence.key, "stripe-live", 6).into_iter());
    stack.twin.advance(120_000);
    let found = stuck_of(&stack, "--limit 6").await;
    let (text, json) = read(&found);
    assert!(text.starts_with("none among the first 6; --limit reads on"), "{text}");
    assert!(found.needs_attention());
    assert_eq!(json["more"], true);
    let found = stuck_of(&stack, "--limit 7").await;
    assert_eq!(read(&found).1["stuck"].as_array().unwrap().len(), 1);
}
