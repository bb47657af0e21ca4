//! Field reports of other people's operators (`tests/cases/field-reports.json`), as named tests of what
//! this command line says.

use super::{recovery::replay, *};
use ledger::{Lease, Life, Open, Row, Status};
use workflow::ports::Ledger as _;

#[tokio::test]
async fn j13_a_page_adds_up_whatever_became_of_each_event_and_the_next_is_still_worked() {
    let stack = Stack::new();
    post(&stack, "github_push --id j-{n} --set /after=c{n} --times 7").await.unwrap();
    stack.consume().await;
    // Two that this run has made before, one whose body is gone, three that are dead.
    replay(&stack, "github#j-1 github#j-2 --run r1 --execute").await;
    let mut broken = stack.twin.find("github#j-3").unwrap();
    broken.evidence.body.sha256 = [7; 32];
    stack.twin.plant(broken);
    post(&stack, "stripe_poison --id evt_j{n} --times 3").await.unwrap();
    for _ in 0..3 {
        stack.consume().await;
    }
    stack.twin.advance(1_000);
    post(&stack, "shopify_order_create").await.unwrap();
    stack.consume().await;
    let ran = replay(&stack, "--since 1h --run r1 --execute").await;
    let (text, json) = read(&ran);
    let number = |name: &str| json[name].as_u64().unwrap();
    let found = ["replayed", "before", "refused", "failed"].map(number);
    assert_eq!(found, [5, 2, 3, 1], "four of the page and one of the next: {text}");
    assert_eq!(found.iter().sum::<u64>(), number("selected"));
    assert_eq!(json["failures"][0]["key"], "github#j-3", "with its id");
    assert!(ran.needs_attention(), "while a failure remains");
}

#[tokio::test]
async fn k01_an_event_that_failed_for_good_is_named_with_source_type_and_count() {
    let stack = Stack::new();
    post(&stack, "stripe_poison --id evt_k{n} --times 3").await.unwrap();
    while stack.twin.queue_len() > 0 {
        stack.consume().await;
    }
    // What the alarm of the template watches, which rings at one within a minute.
    assert_eq!(stack.twin.dead_letter_bodies().len(), 3);
    let listed = dead(&stack).await;
    let (text, json) = read(&listed);
    assert!(listed.needs_attention());
    assert_eq!(json["groups"][0]["count"], 3);
    for named in ["stripe-live#evt_k1", "customer.subscription.updated", "the version is null"] {
        assert!(text.contains(named), "{named}: {text}");
    }
}

/// A row of its own id, at some place in its life.
async fn seeded(stack: &Stack, id: &str, change: impl FnOnce(Life) -> Life) -> Row {
    post(stack, &format!("github_push --id {id}")).await.unwrap();
    let row = stack.twin.find(&format!("github#{id}")).unwrap();
    let row = Row { life: change(row.life.clone()), ..row };
    stack.twin.plant(row.clone());
    row
}

#[tokio::test]
async fn k04_stuck_is_what_lost_its_message_or_its_worker_and_nothing_that_moves() {
    let stack = Stack::new();
    post(&stack, "stripe_poison").await.unwrap();
    stack.consume().await;
    let due = |life: &Life, at| life.open.map(|open| Open { due_at: at, ..open });
    seeded(&stack, "lost", |life| life).await;
    seeded(&stack, "done", |life| life).await;
    stack.twin.lose_queue();
    stack.twin.advance(600_000);
    let now = stack.twin.now();
    let held = |life: Life, until| Life {
        status: Status::Processing,
        lease: Some(Lease { owner: ledger::Token(1), until }),
        epoch: 1,
        attempts: 1,
        ..life
    };
    seeded(&stack, "orphan", |life| Life { open: due(&life, now), ..held(life, now.minus(1)) })
        .await;
    seeded(&stack, "at-work", |life| Life { open: due(&life, now), ..held(life, now.plus(9_000)) })
        .await;
    seeded(&stack, "backing-off", |life| Life {
        status: Status::Failed,
        retry_at: Some(now.plus(300_000)),
        open: due(&life, now.plus(420_000)),
        ..life
    })
    .await;
    let done = stack.twin.find("github#done").unwrap();
    let settled = Life { status: Status::Settled, open: None, ..done.life.clone() };
    stack.twin.plant(Row { life: settled, ..done });

    let found = look_for_stuck(&stack).await;
    let (text, json) = read(&found);
    let mut keys: Vec<&str> =
        json["stuck"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["github#lost", "github#orphan"], "{text}");
    assert!(found.needs_attention(), "an exit code for a monitor");
    assert!(text.contains("10m ago") || text.contains("9m"), "since when: {text}");
    assert!(text.contains("the lease ended") && text.contains("no consumer took it"), "{text}");
    assert_eq!(read(&dead(&stack).await).1["dead"], 1, "the dead are listed by their own command");
    assert_eq!(stack.twin.notes().await.unwrap(), workflow::ports::StewardNotes::default());
}
