//! Once and in order, whatever the provider does: copies at the same instant, every permutation.

use crate::suite::{STRIPE, Suite};
use futures::{StreamExt, future::join_all, stream};
use ledger::{Entity, Outcome, Status};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use support::{Answered, Sample, until};

const COPIES: usize = 200;

/// Twice: on a stack that has to start two hundred processes first, where a copy is sent again
/// while it is answered 503 or not at all, as every provider does; then with the processes there,
/// where each copy is answered 200 at once.
pub(crate) async fn two_hundred_copies_at_once_are_one_row_and_one_change(suite: &Suite) {
    let (sample, event, subscription) = suite.subscription("stripe_subscription_created");
    let call = suite.stack.signer.call(STRIPE, &sample);
    let patient = || {
        until("a copy is accepted", Duration::from_mins(1), async || {
            match suite.stack.http.send(call.clone()).await {
                Ok(Answered { status: 200, .. }) => Ok(()),
                Ok(answer) => Err(format!("{} {}", answer.status, answer.text)),
                Err(error) => Err(error),
            }
        })
    };
    join_all((0..COPIES).map(|_| patient())).await;
    is_one_change(suite, &event, &subscription).await;

    let (sample, event, subscription) = suite.subscription("stripe_subscription_created");
    let call = suite.stack.signer.call(STRIPE, &sample);
    let answers = join_all((0..COPIES).map(|_| suite.stack.http.send(call.clone()))).await;
    let is_good =
        |answer: &&Result<Answered, String>| matches!(answer, Ok(Answered { status: 200, .. }));
    let good = answers.iter().filter(is_good).count();
    let other = answers.iter().find(|answer| !is_good(answer));
    let complaints = if good < COPIES { suite.complaints("receiver") } else { BTreeMap::new() };
    assert_eq!(good, COPIES, "answers 200; another: {other:?}; the receiver said {complaints:#?}");
    is_one_change(suite, &event, &subscription).await;
}

/// One row and one change, also when every copy's message is worked.
async fn is_one_change(suite: &Suite, event: &str, subscription: &str) {
    let row = suite.stack.row_in(&format!("{STRIPE}#{event}"), Status::Settled).await;
    assert_eq!(row.life.outcome, Some(Outcome::Applied));
    // The other copies cost no attempt: their messages meet the lease or the settled row. A run may
    // fail on a machine this busy, and is tried again.
    let why = row.life.failure.as_ref().map(|failure| &failure.error);
    assert!((1..=3).contains(&row.life.attempts), "{} attempts: {why:?}", row.life.attempts);
    suite.stack.queue_is_empty().await;
    let entity = suite.stack.entity(&Suite::subscription_key(subscription)).await.unwrap();
    assert_eq!((entity.revision, entity.last_event.as_str()), (1, event));
}

/// The events of one subscription's life, as samples.
const LIFE: [&str; 4] = [
    "stripe_subscription_created",
    "stripe_subscription_updated",
    "stripe_subscription_updated2",
    "stripe_subscription_deleted",
];

/// One subscription, its events in one order.
struct Run {
    subscription: String,
    events: Vec<(String, Sample)>,
    /// The last by the guard's order, of the events delivered.
    winner: usize,
    order: Vec<usize>,
}

/// 24 orders of all four events, and 6 of the three before the tombstone, each with the seconds of
/// the samples and with one second for all: Stripe's clock has no finer.
pub(crate) async fn every_order_of_arrival_ends_in_the_same_state(suite: &Suite) {
    let mut runs = Vec::new();
    for count in [4, 3] {
        for same_second in [false, true] {
            for order in permutations(count) {
                runs.push(run(suite, order, same_second));
            }
        }
    }
    assert_eq!(runs.len(), 60);
    let ends: Vec<Entity> =
        stream::iter(&runs).map(|run| end_of(suite, run)).buffered(12).collect().await;
    for (run, end) in runs.iter().zip(&ends) {
        let (id, sample) = &run.events[run.winner];
        let order = &run.order;
        assert_eq!(&end.last_event, id, "order {order:?}");
        assert_eq!(end.is_final, run.winner == 3, "order {order:?}");
        let plan = sample.at("/data/object/items/data/0/price/id").cloned();
        let wanted = if run.winner == 3 {
            json!({"plan": null, "status": "canceled"})
        } else {
            json!({"plan": plan, "status": sample.at("/data/object/status")})
        };
        assert_eq!(json!(end.state), wanted, "order {order:?}");
    }
}

fn run(suite: &Suite, order: Vec<usize>, same_second: bool) -> Run {
    let subscription = suite.id("sub");
    // Ids in the order of the events, as a provider with a clock gives them.
    let events = LIFE.iter().take(order.len()).enumerate().map(|(n, name)| {
        let id = suite.id(&format!("evt{n}"));
        let sample = Sample::read(name).unwrap().with("/id", id.as_str());
        let sample = sample.with("/data/object/id", subscription.as_str());
        (id, if same_second { sample.with("/created", 1_796_040_000) } else { sample })
    });
    let events: Vec<_> = events.collect();
    Run { subscription, winner: events.len() - 1, events, order }
}

/// Delivers one after another, each followed to its end, so that the order of arrival is exact.
async fn end_of(suite: &Suite, run: &Run) -> Entity {
    let mut applied = 0;
    for n in &run.order {
        let (id, sample) = &run.events[*n];
        let answer = suite.post(STRIPE, sample).await;
        assert_eq!(answer.status, 200, "{id}: {}", answer.text);
        let row = suite.stack.row_in(&format!("{STRIPE}#{id}"), Status::Settled).await;
        match row.life.outcome {
            Some(Outcome::Applied) => applied += 1,
            Some(Outcome::Superseded) => {}
            other => panic!("{id} settled as {other:?}"),
        }
    }
    let entity = suite.stack.entity(&Suite::subscription_key(&run.subscription)).await.unwrap();
    assert_eq!(entity.revision, applied, "one write for each applied event, order {:?}", run.order);
    entity
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let with_last = |shorter: Vec<usize>| {
        (0..=shorter.len()).map(move |at| {
            let mut longer = shorter.clone();
            longer.insert(at, count - 1);
            longer
        })
    };
    permutations(count - 1).into_iter().flat_map(with_last).collect()
}
