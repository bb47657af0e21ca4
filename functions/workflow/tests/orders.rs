//! Every order of arrival: five events and a duplicate of one of them, under every strategy whose
//! end must not depend on the order. The tie rule `skip` keeps what came first and promises nothing.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Entity, Outcome, Policy, Status};
use rig::{Rig, provider::Provider};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const FETCH: &str = r#"
[fetch.thing]
url = "https://api.shop.example/v1/things/{id}"
secret = "shop-api"
on_404 = "tombstone"
rate_per_s = 10000
set = { plan = "/plan" }
"#;

const ON: &str = r#"["changed"]"#;
const SET: &str = r#"set = { plan = "/data/object/plan" }"#;

/// One projection of `thing`, and one of its end.
fn sources(order: &str, fields: &str, fetch: &str, end: Option<&str>) -> String {
    let projection = |on: &str, fields: &str| {
        format!(
            "[[sources.shop.projections]]\non = {on}\n\
             entity = {{ type = \"thing\", id = \"/data/object/id\" }}\norder = {{ {order} }}\n{fields}\n"
        )
    };
    let ends = end.map(|fields| projection(r#"["ended"]"#, fields)).unwrap_or_default();
    format!(
        "[sources.shop]\npreset = \"stripe\"\nsecret = \"shop\"\nlive = true\n{}{ends}{fetch}",
        projection(ON, fields)
    )
}

/// One event: its type, its second, its number.
#[derive(Clone, Copy)]
struct Event(&'static str, u64, u64);

fn changed(times: [u64; 5]) -> [Event; 5] {
    let mut n = 0;
    times.map(|at| {
        n += 1;
        Event("changed", at, n)
    })
}

/// Which events come a second time: each of them in a run of its own, or the last only, where a
/// history differs from one before it in its times.
#[derive(Clone, Copy, PartialEq)]
enum Twice {
    Each,
    Last,
}

/// Every order of the given things and one of them once more.
fn orders(count: usize, twice: Twice) -> BTreeSet<Vec<usize>> {
    let mut all = BTreeSet::new();
    let first = if twice == Twice::Each { 0 } else { count - 1 };
    for twice in first..count {
        let mut orders = vec![Vec::new()];
        for next in (0..count).chain([twice]) {
            let grow = |order: Vec<usize>| {
                (0..=order.len()).map(move |place| {
                    let mut longer = order.clone();
                    longer.insert(place, next);
                    longer
                })
            };
            orders = orders.into_iter().flat_map(grow).collect();
        }
        all.extend(orders);
    }
    all
}

/// Plays a history in every order; what each entity is in the end.
///
/// The provider shows what every event delivered so far did, as one does: nothing after `gone`,
/// if that is delivered.
async fn play(
    sources: &str,
    history: &[Event],
    twice: Twice,
    gone: Option<usize>,
    wait_ms: u64,
) -> Vec<Entity> {
    let rig = Rig::shop(sources, Policy::default());
    let provider = Provider::behind(&rig);
    let orders = orders(history.len(), twice);
    for (run, order) in orders.iter().enumerate() {
        let thing = format!("t{run}");
        let mut newest = 0;
        for index in order {
            newest = newest.max(*index);
            if gone.is_some_and(|gone| newest >= gone) {
                provider.remove(&thing);
            } else {
                provider.put(&thing, json!({"plan": format!("p{}", history[newest].2)}));
            }
            rig.deliver(&event(run, &thing, history[*index])).await;
            rig.batch().await;
        }
    }
    if wait_ms > 0 {
        rig.live(wait_ms).await;
    }
    for row in rig.twin.rows() {
        assert_eq!(row.life.status, Status::Settled, "{:?}", row.life);
        assert!(row.life.attempts <= 1, "{:?}", row.life);
        assert!(matches!(row.life.outcome, Some(Outcome::Applied | Outcome::Superseded)));
    }
    assert_eq!(rig.twin.rows().len(), orders.len() * history.len(), "a duplicate is no row");
    let state = |run: usize| rig.twin.state(&format!("shop#thing#t{run}")).unwrap();
    (0..orders.len()).map(state).collect()
}

fn event(run: usize, thing: &str, Event(kind, at, n): Event) -> Value {
    json!({
        "id": format!("evt_{run}_{n}"), "object": "event", "type": kind, "created": at,
        "livemode": true,
        "data": {"object": {"id": thing, "n": n, "plan": format!("p{n}"), "amount": 1 << n}},
    })
}

/// That every order ended in this state.
fn all_are(ends: &[Entity], plan: &Value, is_final: bool) {
    assert!(ends.len() >= 60, "{} orders", ends.len());
    for end in ends {
        assert_eq!((&end.state["plan"], end.is_final), (plan, is_final));
        assert!(end.waiting.is_empty());
    }
}

const RANKED: &str = r#"strategy = "version", by = "/created", unit = "s", tie = "rank""#;
const TIED: &str = r#"strategy = "version", by = "/created", unit = "s", tie = "fetch""#;
const SEQUENCE: &str = r#"strategy = "sequence", by = "/data/object/n", on_gap = "apply""#;
const TOMBSTONE: &str = "set = { plan = \"=null\" }\nfinal = true";

#[tokio::test]
async fn versions_end_with_the_newest_and_equals_by_rank_and_id() {
    let sources = sources(RANKED, SET, "", None);
    for (times, twice) in [
        ([10, 20, 30, 30, 30], Twice::Each),
        ([10, 20, 30, 40, 50], Twice::Last),
        ([10; 5], Twice::Last),
    ] {
        all_are(&play(&sources, &changed(times), twice, None, 0).await, &json!("p5"), false);
    }
}

#[tokio::test]
async fn a_tombstone_ends_it_whatever_its_time_and_among_several_the_newest() {
    let sources = sources(RANKED, SET, "", Some(TOMBSTONE));
    for (first, second, twice) in
        [(30, 30, Twice::Each), (5, 25, Twice::Last), (25, 5, Twice::Last)]
    {
        let history = [
            Event("changed", 10, 1),
            Event("changed", 30, 2),
            Event("ended", first, 3),
            Event("ended", second, 4),
            Event("changed", 50, 5),
        ];
        let ends = play(&sources, &history, twice, None, 0).await;
        all_are(&ends, &Value::Null, true);
        let newest = if first > second { "_3" } else { "_4" };
        assert!(ends.iter().all(|end| end.last_event.ends_with(newest)));
    }
}

#[tokio::test]
async fn equal_versions_end_with_what_the_provider_says() {
    let sources = sources(TIED, SET, FETCH, None);
    for (times, twice) in [
        ([10, 20, 30, 30, 30], Twice::Each),
        ([10; 5], Twice::Last),
        ([10, 20, 20, 30, 40], Twice::Last),
    ] {
        all_are(&play(&sources, &changed(times), twice, None, 0).await, &json!("p5"), false);
    }
}

#[tokio::test]
async fn a_tombstone_ends_it_also_where_equals_are_fetched() {
    let sources = sources(TIED, SET, FETCH, Some(TOMBSTONE));
    let history = [
        Event("changed", 20, 1),
        Event("changed", 20, 2),
        Event("ended", 20, 3),
        Event("ended", 20, 4),
        Event("changed", 30, 5),
    ];
    let ends = play(&sources, &history, Twice::Each, None, 0).await;
    all_are(&ends, &Value::Null, true);
    assert!(ends.iter().all(|end| end.last_event.ends_with("_4")));
}

#[tokio::test]
async fn fetched_state_ends_with_the_last_thing_the_provider_said() {
    let sources = sources(r#"strategy = "fetch""#, "", FETCH, None);
    all_are(&play(&sources, &changed([10; 5]), Twice::Each, None, 0).await, &json!("p5"), false);
}

#[tokio::test]
async fn what_the_provider_has_deleted_is_gone_for_good_in_every_order() {
    let sources = sources(r#"strategy = "fetch""#, "", FETCH, None);
    let ends = play(&sources, &changed([10; 5]), Twice::Each, Some(4), 0).await;
    all_are(&ends, &Value::Null, true);
}

#[tokio::test]
async fn sequences_are_applied_in_their_own_order() {
    let sources = sources(SEQUENCE, SET, "", Some(TOMBSTONE));
    let ends = play(&sources, &changed([10; 5]), Twice::Each, None, 0).await;
    all_are(&ends, &json!("p5"), false);
    assert!(ends.iter().all(|end| end.version.unwrap().get() == 5));
    let mut history = changed([10; 5]);
    history[4].0 = "ended";
    all_are(&play(&sources, &history, Twice::Last, None, 0).await, &Value::Null, true);
}

#[tokio::test]
async fn a_sequence_goes_on_behind_a_number_that_never_comes() {
    let mut history = changed([10; 5]).to_vec();
    history.remove(2);
    let hour = 3_600_000 + 300_000;
    for (on_gap, fetch) in [("apply", ""), ("fetch", FETCH)] {
        let order = SEQUENCE.replace("apply", on_gap);
        let sources = sources(&order, SET, fetch, None);
        let ends = play(&sources, &history, Twice::Each, None, hour).await;
        all_are(&ends, &json!("p5"), false);
        assert!(ends.iter().all(|end| end.version.unwrap().get() == 5));
    }
}

#[tokio::test]
async fn what_is_added_or_appended_is_there_once() {
    let fields = "add = { total = \"/data/object/amount\" }\n\
                  append = { seen = \"/data/object/n\", max = 5 }";
    let sources = sources(r#"strategy = "none""#, fields, "", None);
    let ends = play(&sources, &changed([10; 5]), Twice::Each, None, 0).await;
    assert!(ends.len() >= 1_800, "{}", ends.len());
    for end in ends {
        assert_eq!(end.state["total"].to_string(), "62");
        let seen: BTreeSet<u64> =
            end.state["seen"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let list = end.state["seen"].as_array().unwrap();
        assert_eq!((list.len(), seen), (5, BTreeSet::from([1, 2, 3, 4, 5])), "in order of arrival");
    }
}
