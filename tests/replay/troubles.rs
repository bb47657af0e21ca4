//! Troubles of the provider and of the receiver: slow down, no answer, a wrong key, a list that turns
//! in circles.

use crate::shop::{NOW, applied, begin, deliver, desk, payment, rows};
use ledger::Millis;
use serde_json::json;
use support::{Desk, ListAnswer, Pages};
use workflow::{
    ports::Trouble,
    replay::{Stop, pager::Cursor},
    twin::Fault,
};

fn missed(events: usize) -> Desk {
    let at = |n: usize| NOW.minus(3_600_000).plus(n as u64 * 1_000);
    desk((0..events).map(|n| payment(n, at(n))).collect())
}

#[test]
fn a_provider_that_asks_for_patience_and_breaks_off_in_the_middle_is_read_to_the_end() {
    let desk = missed(950);
    desk.with(|api| {
        api.trouble = Some(Box::new(|request| match request {
            2 => Some(ListAnswer::status(429, &[("retry-after", "7")])),
            4 | 5 => Some(ListAnswer::Close),
            7 => Some(ListAnswer::status(503, &[])),
            9 => Some(ListAnswer::status(429, &[("retry-after", "Mon, 30 Nov 2026 12:00:40 GMT")])),
            _ => None,
        }));
    });
    let done = desk.replay(&begin(&desk, 2), &Pages::default()).unwrap().unwrap();
    assert_eq!((done.tally.fetched, done.tally.new, done.tally.failed), (950, 950, 0));
    assert_eq!(applied(&desk.world), Some(950));
    let waited = desk.waited();
    assert_eq!(waited.len(), 5, "{waited:?}");
    assert_eq!(waited[0], "Stripe asks to slow down (429); 7000");
    assert!(waited[1].starts_with("Stripe gives no answer: connection closed"), "{waited:?}");
}

#[test]
fn a_receiver_that_cannot_store_is_asked_again_and_loses_nothing() {
    let desk = missed(300);
    let mut claims = 0;
    desk.world.twin.set_faults(move |step, _| {
        claims += usize::from(step == "claim");
        (step == "claim" && claims % 10 == 3).then_some(Fault::Before(Trouble::Throttled))
    });
    let done = desk.replay(&begin(&desk, 2), &Pages::default()).unwrap().unwrap();
    desk.world.twin.clear_faults();
    assert_eq!((done.tally.new, done.tally.failed, rows(&desk.world)), (300, 0, 300));
    assert!(
        desk.waited().iter().all(|why| why.starts_with("the receiver is in trouble (503); 5000"))
    );
}

#[test]
fn when_patience_ends_the_checkpoint_covers_what_is_confirmed_and_the_next_run_goes_on() {
    let desk = missed(350);
    desk.with(|api| {
        api.trouble =
            Some(Box::new(|request| (request > 2).then_some(ListAnswer::status(500, &[]))));
    });
    let pages = Pages::default();
    let broken = desk.replay(&begin(&desk, 2), &pages).unwrap().unwrap_err();
    assert_eq!(broken.stop, Stop::Unreachable("Stripe is in trouble (500), 8 times".to_owned()));
    let kept = pages.last().unwrap();
    assert_eq!((kept.tally.fetched, rows(&desk.world)), (200, 200));
    desk.with(|api| api.trouble = None);
    let done = desk.replay(&kept, &pages).unwrap().unwrap();
    assert_eq!((done.tally.fetched, done.tally.new, rows(&desk.world)), (350, 350, 350));
}

#[test]
fn a_wrong_key_and_a_closed_route_are_said_at_once() {
    let desk = missed(3);
    desk.with(|api| api.key = "another".to_owned());
    let broken = desk.replay(&begin(&desk, 2), &Pages::default()).unwrap().unwrap_err();
    let said = "Stripe refuses the key (401); may it read events?";
    assert_eq!(broken.stop, Stop::Refused(said.to_owned()));
    assert_eq!(desk.with(|api| api.requests), 1, "no second try");
}

#[test]
fn a_list_that_turns_in_circles_or_leads_elsewhere_is_not_followed() {
    let desk = missed(3);
    let page = json!({"has_more": true, "data": [payment(1, NOW)]});
    desk.with(|api| {
        let answer = ListAnswer::Json(200, Vec::new(), page);
        api.trouble = Some(Box::new(move |_| Some(answer.clone())));
    });
    let broken = desk.replay(&begin(&desk, 2), &Pages::default()).unwrap().unwrap_err();
    assert!(broken.stop.to_string().contains("its cursor does not move"), "{}", broken.stop);
    assert_eq!(desk.with(|api| api.requests), 2);
}

#[test]
fn a_checkpoint_that_names_a_page_of_another_host_is_not_followed_and_the_key_stays_here() {
    let desk = missed(3);
    let mut kept = begin(&desk, 2);
    kept.next = Some(Cursor::Address("https://old.example/v1/events?page=2".to_owned()));
    let address = "http://127.0.0.1:1/v1/events";
    assert!(!kept.goes_on_at(address));
    let broken = desk.replay(&kept, &Pages::default()).unwrap().unwrap_err();
    assert!(broken.stop.to_string().contains("another host than its list"), "{}", broken.stop);
    assert_eq!(desk.with(|api| api.requests), 0, "nobody was shown the key");
    let anew = kept.anew();
    assert!(anew.goes_on_at(address));
    let done = desk.replay(&anew, &Pages::default()).unwrap().unwrap();
    assert_eq!((done.tally.new, done.run), (3, anew.run));
}

#[test]
fn an_event_nobody_can_use_and_one_without_an_id_are_named_and_the_rest_goes_on() {
    let desk = missed(120);
    desk.with(|api| {
        api.items[3]["id"] = json!("");
        api.items[5].as_object_mut().unwrap().remove("created");
        api.items[60]["data"] = json!({});
    });
    let done = desk.replay(&begin(&desk, 2), &Pages::default()).unwrap().unwrap();
    let tally = &done.tally;
    assert_eq!((tally.fetched, tally.new, tally.failed), (120, 118, 2));
    let ids: Vec<&str> = tally.failures.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["", "evt_000114"]);
}

#[test]
fn an_event_of_the_last_second_is_in_the_window_and_one_of_the_next_is_not() {
    let times = [NOW.minus(3_600_000), NOW, NOW.plus(1_000)];
    let desk = desk(times.iter().enumerate().map(|(n, at)| payment(n, *at)).collect());
    deliver(&desk.world, &payment(0, times[0]));
    let window = workflow::replay::pager::Window::new(Millis(times[0].0 + 400), NOW);
    let done = desk.replay(&desk.begin("shop", window), &Pages::default()).unwrap().unwrap();
    assert_eq!((done.tally.fetched, done.tally.new, done.tally.duplicate), (2, 1, 1));
}

#[test]
fn while_the_receiver_cannot_store_the_checkpoint_stays_before_the_page() {
    let desk = missed(250);
    let mut claims = 0;
    desk.world.twin.set_faults(move |step, _| {
        claims += usize::from(step == "claim");
        (step == "claim" && claims > 150).then_some(Fault::Before(Trouble::Throttled))
    });
    let pages = Pages::default();
    let broken = desk.replay(&begin(&desk, 2), &pages).unwrap().unwrap_err();
    desk.world.twin.clear_faults();
    assert!(matches!(broken.stop, Stop::Unreachable(_)), "{}", broken.stop);
    let kept = pages.last().unwrap();
    assert_eq!(kept.tally.fetched, 100, "the second page is not confirmed as a whole");
    let done = desk.replay(&kept, &pages).unwrap().unwrap();
    assert_eq!((done.tally.fetched, rows(&desk.world)), (250, 250));
}
