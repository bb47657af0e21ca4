//! Bodies on the twin: what is stored before what, how long it is kept, and what is never worked.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{
    Codec, FailureClass, Outcome, Policy, Row, Status,
    verbs::{Resolve, ResolveRefusal},
};
use rig::{Rig, poison, subscription};
use workflow::{
    ports::Trouble,
    resolve::{Closed, resolve},
    twin::Fault,
};

/// Every body lies in chunks.
fn chunked() -> Rig {
    Rig::with(Policy { inline_bytes_max: 0, ..Policy::default() }, "b")
}

/// What becomes of an event whose stored row is altered before it is worked.
async fn worked_after(rig: &Rig, alter: impl FnOnce(&mut Row)) -> Row {
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let mut row = rig.row("evt_1");
    alter(&mut row);
    rig.twin.plant(row);
    rig.batch().await;
    rig.row("evt_1")
}

#[tokio::test]
async fn a_row_is_not_claimed_before_its_body_is_stored() {
    let rig = chunked();
    rig.twin
        .set_faults(|step, _| (step == "put_chunk").then_some(Fault::Before(Trouble::Unavailable)));
    let event = subscription("evt_1", "created", 10, "sub_1", "gold");
    assert_eq!(rig.deliver(&event).await.status, 503);
    assert!(rig.twin.rows().is_empty(), "a row without a body could never be worked");
    rig.twin.clear_faults();
    assert_eq!(rig.deliver(&event).await.status, 200);
}

#[tokio::test]
async fn the_body_of_what_nobody_can_use_is_kept_for_ever_from_its_birth() {
    let rig = chunked();
    assert_eq!(rig.receiver.receive(rig.signed(b"not json")).await.status, 200);
    assert_eq!(rig.twin.rows()[0].life.status, Status::Dead);
    assert_eq!(rig.twin.chunk_expiries().into_values().collect::<Vec<_>>(), [None]);
}

#[tokio::test]
async fn a_row_buried_by_force_keeps_its_body_whoever_buries_it() {
    for by_steward in [false, true] {
        let rig = chunked();
        rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
        for _ in 0..6 {
            rig.dying_batch().await;
            rig.twin.advance(200_000);
        }
        if by_steward {
            rig.tend().await;
        } else {
            rig.batch().await;
        }
        assert_eq!(rig.row("evt_1").life.status, Status::Dead);
        assert_eq!(rig.twin.chunk_expiries().into_values().collect::<Vec<_>>(), [None]);
    }
}

/// Closes a dead row, an hour later.
async fn close(rig: &Rig, row: &Row) -> Closed {
    rig.twin.advance(3_600_000);
    let (by, note) = ("anna".to_owned(), "of no use".to_owned());
    let ask = Resolve { by, note, settled_at: rig.now() };
    resolve(&*rig.twin, &row.evidence.key, &ask, &rig.consumer.policy).await.unwrap()
}

#[tokio::test]
async fn what_a_person_closes_goes_in_time_with_its_body_whatever_buried_it() {
    let rig = chunked();
    rig.deliver(&poison("evt_poison")).await;
    rig.receiver.receive(rig.signed(b"not json")).await;
    for plan in ["gold", "silver"] {
        rig.deliver(&subscription("evt_1", "created", 10, "sub_1", plan)).await;
    }
    rig.drain(60_000).await;
    let dead = |rig: &Rig| -> Vec<Row> {
        rig.twin.rows().into_iter().filter(|row| row.life.status == Status::Dead).collect()
    };
    let buried = dead(&rig);
    assert_eq!(buried.len(), 3, "a burial, what nobody can use, and a conflict");
    assert!(buried.iter().any(|row| row.evidence.key.as_str().starts_with("_c#")));
    for row in buried {
        let chunk = row.evidence.key.chunk(&row.evidence.body.sha256, 0);
        assert_eq!(rig.twin.chunk_expiries()[&chunk], None);
        assert!(matches!(close(&rig, &row).await, Closed::Done));
        let end = rig.now().seconds_after(rig.consumer.policy.chunk_seconds());
        assert_eq!(rig.twin.chunk_expiries()[&chunk], Some(end), "{}", row.evidence.key);
    }
    assert!(dead(&rig).is_empty());
}

#[tokio::test]
async fn a_body_that_could_not_be_dated_is_when_the_row_is_closed_once_more() {
    let rig = chunked();
    rig.deliver(&poison("evt_poison")).await;
    rig.drain(60_000).await;
    let row = rig.row("evt_poison");
    let trouble = Fault::Before(Trouble::Unavailable);
    rig.twin.set_faults(move |step, _| (step == "expire_chunk").then_some(trouble));
    assert!(matches!(close(&rig, &row).await, Closed::BodyStays(_)));
    let closed = rig.row("evt_poison");
    assert_eq!(closed.life.outcome, Some(Outcome::Resolved));
    rig.twin.clear_faults();
    let again = close(&rig, &row).await;
    let refused = ResolveRefusal::NotDead(Status::Settled);
    assert!(matches!(again, Closed::Refused(why) if why == refused), "{again:?}");
    let at = closed.life.settled_at.unwrap();
    let end = Some(at.seconds_after(rig.consumer.policy.chunk_seconds()));
    assert_eq!(rig.twin.chunk_expiries().into_values().collect::<Vec<_>>(), [end]);
    assert_eq!(rig.row("evt_poison"), closed);
}

#[tokio::test]
async fn a_body_that_is_not_the_one_that_was_stored_is_never_worked() {
    let row = worked_after(&Rig::new(), |row| row.evidence.body.sha256[0] ^= 1).await;
    let failure = row.life.failure.unwrap();
    assert_eq!((row.life.status, failure.class), (Status::Dead, FailureClass::Permanent));
    assert!(failure.error.contains("does not have the hash"), "{}", failure.error);
}

#[tokio::test]
async fn a_body_with_a_missing_chunk_is_never_worked() {
    let row = worked_after(&chunked(), |row| row.evidence.body.chunks += 1).await;
    let failure = row.life.failure.unwrap();
    assert_eq!((row.life.status, failure.class), (Status::Dead, FailureClass::Permanent));
    assert_eq!(failure.error, "chunk 1 of 2 is missing");
}

#[tokio::test]
async fn a_body_that_unpacks_to_more_than_any_list_hands_over_is_not_unpacked() {
    const MOST: usize = 64 * 1_024 * 1_024;
    for (len, why) in [(MOST, "does not have the hash"), (MOST + 1, "does not decompress")] {
        let row = worked_after(&Rig::new(), |row| {
            row.evidence.body.len = u64::MAX;
            row.evidence.body.codec = Codec::Zstd;
            row.evidence.body.inline = Some(zstd::bulk::compress(&vec![0; len], 3).unwrap());
        })
        .await;
        let failure = row.life.failure.unwrap();
        assert_eq!((row.life.status, failure.class), (Status::Dead, FailureClass::Permanent));
        assert!(failure.error.contains(why), "{}", failure.error);
    }
}
