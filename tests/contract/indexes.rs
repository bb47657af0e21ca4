//! Lists, chunks and notes: what is not one row and one verb.

use crate::{
    lives::{NOW, failure, open, row},
    store::{Store, Stores},
};
use ledger::{
    Bucket, EventKey, FailureClass, Life, Millis, Origin, Outcome, Policy, Row, Seconds,
    SourceName, Status, verbs::Resolve,
};
use std::{collections::BTreeMap, fmt::Debug};
use workflow::{
    ports::{DayEntry, KnownRow, Ledger, Lookup, Notes, OpenEntry, StewardNotes},
    resolve::{Closed, resolve},
};

/// Rows of one partition each of `pending`, `dead` and `parked`, due a second apart, and settled
/// ones that must not show.
fn planted(source: &SourceName) -> Vec<Row> {
    let mut rows = Vec::new();
    let keys = (0..)
        .map(|n| EventKey::new(source, &format!("i{n}")).unwrap())
        .filter(|key| key.shard() == 3);
    for (key, n) in keys.zip(0..120_u64) {
        let due_at = NOW.plus(n / 2 * 1_000);
        let (status, open) = match n % 4 {
            0 | 1 => (Status::Claimed, Some(open(Bucket::Pending(3), due_at))),
            2 => (Status::Dead, Some(open(Bucket::Dead(3), due_at))),
            _ => (Status::Settled, None),
        };
        let mut one = row_of(source, &key, |life| Life { status, open, ..life });
        one.evidence.received_at = Millis(one.evidence.received_at.0 + n * 10);
        rows.push(one);
    }
    rows
}

fn row_of(source: &SourceName, key: &EventKey, change: impl FnOnce(Life) -> Life) -> Row {
    let model = EventKey::new(&SourceName::new("s").unwrap(), key.event_id()).unwrap();
    let mut one = row(&model, change);
    one.evidence.key = key.clone();
    one.evidence.source = source.clone();
    one
}

/// What a lookup of more keys than one call takes finds, and what becomes of a note.
async fn looked_up(
    ports: &(impl Lookup + Notes),
    keys: &[EventKey],
) -> (BTreeMap<EventKey, KnownRow>, Vec<Option<String>>) {
    let mut notes = vec![ports.note("contract").await.unwrap()];
    for text in ["once", "twice"] {
        ports.write_note("contract", text).await.unwrap();
        notes.push(ports.note("contract").await.unwrap());
    }
    (ports.known(keys).await.unwrap(), notes)
}

pub(crate) async fn keys_are_looked_up_and_notes_kept_alike(stores: &Stores) {
    let mut rows = planted(&SourceName::new("looked-up").unwrap());
    let origins = [Origin::Delivery, Origin::Replay, Origin::Reconcile];
    for (n, (row, origin)) in rows.iter_mut().zip(origins.into_iter().cycle()).enumerate() {
        row.evidence.origin = origin;
        row.evidence.origin_note = (n % 2 == 0).then(|| format!("note {n}"));
    }
    let keys: Vec<EventKey> = rows.iter().map(|row| row.evidence.key.clone()).collect();
    // Every fourth is not there.
    let there: Vec<&Row> =
        rows.iter().enumerate().filter(|(n, _)| n % 4 != 3).map(|(_, row)| row).collect();
    stores.twin.plant_all(&there).await;
    let wanted = looked_up(stores.twin.ports(), &keys).await;
    assert_eq!((keys.len(), wanted.0.len()), (120, there.len()));
    for store in &stores.emulators {
        store.plant_all(&there).await;
        let found = looked_up(store.ports(), &keys).await;
        assert_eq!(found, wanted, "{}", store.name());
    }
}

type Lists = (Vec<Vec<OpenEntry>>, Vec<Vec<DayEntry>>);

/// Every list of a set of questions, each read to its end.
async fn both_lists(ledger: &impl Ledger, day: &str, from: Millis) -> Lists {
    let mut opens = Vec::new();
    for bucket in [Bucket::Pending(3), Bucket::Dead(3), Bucket::Parked(3), Bucket::Pending(4)] {
        for due_before in [NOW.minus(1), NOW, NOW.plus(7_000), Millis::END_OF_TIME] {
            for limit in [7, 250] {
                opens.push(all_pages(ledger, bucket, due_before, limit).await);
            }
        }
    }
    let mut days = Vec::new();
    for (from, until) in
        [(from, from.plus(100)), (from.plus(50), from.plus(390)), (Millis(0), Millis(1))]
    {
        for newest_first in [false, true] {
            for limit in [3, 1_000] {
                days.push(ledger.day(day, from, until, newest_first, limit).await.unwrap());
            }
        }
    }
    (opens, days)
}

/// Page by page, each behind the last entry of the one before.
async fn all_pages(
    ledger: &impl Ledger,
    bucket: Bucket,
    due_before: Millis,
    limit: u32,
) -> Vec<OpenEntry> {
    let mut entries: Vec<OpenEntry> = Vec::new();
    loop {
        let page = ledger.open(bucket, due_before, entries.last(), limit).await.unwrap();
        let is_last = page.len() < limit as usize;
        entries.extend(page);
        if is_last {
            break;
        }
    }
    assert!(
        entries.is_sorted_by_key(|entry| entry.due_at),
        "{bucket} is not listed earliest first"
    );
    // Which of two entries due at one instant comes first is nobody's promise.
    entries.sort_by(|a, b| (a.due_at, &a.key).cmp(&(b.due_at, &b.key)));
    let len = entries.len();
    entries.dedup();
    assert_eq!(entries.len(), len, "{bucket} lists an entry twice, in pages of {limit}");
    entries
}

pub(crate) async fn both_indexes_list_alike(stores: &Stores) {
    let source = SourceName::new("indexes").unwrap();
    let rows = planted(&source);
    let (day, from) = (rows[0].evidence.day(), rows[0].evidence.received_at);
    for row in &rows {
        stores.twin.plant(row).await;
    }
    let wanted = both_lists(stores.twin.ports(), &day, from).await;
    assert!(
        wanted.0.iter().map(Vec::len).sum::<usize>() > 100,
        "the lists are too short to tell anything"
    );
    for store in &stores.emulators {
        for row in &rows {
            store.plant(row).await;
        }
        let found = both_lists(store.ports(), &day, from).await;
        same(store.name(), "open", &found.0, &wanted.0);
        same(store.name(), "by_day", &found.1, &wanted.1);
    }
}

/// Compares list by list, and says of the first that differs how.
fn same<T: PartialEq + Debug>(store: &str, index: &str, found: &[Vec<T>], wanted: &[Vec<T>]) {
    for (n, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let missing = wanted.iter().find(|entry| !found.contains(entry));
        let extra = found.iter().find(|entry| !wanted.contains(entry));
        assert!(
            found == wanted,
            "{index} on {store}, question {n}: {} entries, expected {}; missing {missing:?}, extra {extra:?}",
            found.len(),
            wanted.len()
        );
    }
}

async fn chunks_and_notes(ledger: &impl Ledger, pk: &str) {
    assert_eq!(ledger.chunk(pk).await.unwrap(), None);
    ledger.keep_chunk(pk).await.unwrap();
    assert_eq!(ledger.chunk(pk).await.unwrap(), None, "keeping made a chunk");
    let bytes: Vec<u8> = (0..=255).cycle().take(350_000).collect();
    for _ in 0..2 {
        ledger.put_chunk(pk, &bytes, Some(Seconds(NOW.0 / 1_000 + 1_000_000))).await.unwrap();
    }
    ledger.keep_chunk(pk).await.unwrap();
    assert!(
        ledger.chunk(pk).await.unwrap().as_ref() == Some(&bytes),
        "the chunk is not as written"
    );

    assert_eq!(ledger.notes().await.unwrap(), StewardNotes::default());
    let key = EventKey::parse("s#evt_1").unwrap();
    let notes = StewardNotes {
        redriven_at: NOW,
        cleared_at: NOW.plus(1),
        walked_release: "r1".to_owned(),
        walk_release: "r2".to_owned(),
        walk_bucket: Some(Bucket::Parked(7)),
        walk_after: Some(OpenEntry { key, due_at: NOW, received_at: NOW }),
    };
    ledger.write_notes(&notes).await.unwrap();
    let read = ledger.notes().await.unwrap();
    // Where a walk goes on is its place in the index; when the event came is not part of that.
    let place = |notes: &StewardNotes| {
        notes.walk_after.as_ref().map(|entry| (entry.key.clone(), entry.due_at))
    };
    assert_eq!(place(&read), place(&notes));
    assert_eq!(
        StewardNotes { walk_after: None, ..read },
        StewardNotes { walk_after: None, ..notes }
    );
    ledger.write_notes(&StewardNotes::default()).await.unwrap();
    assert_eq!(ledger.notes().await.unwrap(), StewardNotes::default());
}

pub(crate) async fn chunks_and_notes_come_back_as_written(stores: &Stores) {
    let pk = stores.key().chunk(&[7; 32], 0);
    chunks_and_notes(stores.twin.ports(), &pk).await;
    for store in &stores.emulators {
        chunks_and_notes(store.ports(), &pk).await;
    }
}

/// A chunk's time to live as it lies there; `None` for a chunk without.
fn lives_until(found: Option<&aws::item::Item>) -> Option<u64> {
    let at = found.expect("the chunk is there").get("expires_at")?;
    at.as_n().unwrap().parse().ok()
}

pub(crate) async fn a_chunk_lives_as_long_as_its_row_may_need_it(stores: &Stores) {
    let pk = stores.key().chunk(&[8; 32], 0);
    let twin = &stores.twin;
    let of_twin = || async { twin.ports().chunk_expiries()[&pk].map(|at| at.0) };
    lifetimes(twin.ports(), &pk, of_twin).await;
    for store in &stores.emulators {
        let key = EventKey::parse(&pk).unwrap();
        let of_store = || async { lives_until(store.raw(&key).await.as_ref()) };
        lifetimes(store.ports(), &pk, of_store).await;
    }
}

async fn lifetimes(ledger: &impl Ledger, pk: &str, until: impl AsyncFn() -> Option<u64>) {
    ledger.put_chunk(pk, b"part", Some(Seconds(100))).await.unwrap();
    assert_eq!(until().await, Some(100), "from birth");
    ledger.put_chunk(pk, b"part", Some(Seconds(200))).await.unwrap();
    assert_eq!(until().await, Some(200), "a retry of the delivery");
    ledger.keep_chunk(pk).await.unwrap();
    assert_eq!(until().await, None, "its row is buried");
    ledger.put_chunk(pk, b"part", Some(Seconds(300))).await.unwrap();
    assert_eq!(until().await, None, "a late duplicate takes no dead row's body away");
    ledger.expire_chunk(pk, Seconds(400)).await.unwrap();
    assert_eq!(until().await, Some(400), "its row is settled after all");
    ledger.put_chunk(pk, b"part", None).await.unwrap();
    assert_eq!(until().await, None, "another row waits for a person");
}

pub(crate) async fn a_closed_row_dates_its_body(stores: &Stores) {
    let key = stores.key();
    let mut dead = row(&key, |life| Life {
        status: Status::Dead,
        failure: Some(failure(NOW.minus(9), FailureClass::Permanent)),
        open: Some(open(Bucket::Parked(key.shard()), NOW)),
        ..life
    });
    dead.evidence.body.chunks = 2;
    let chunks = [0, 1].map(|n| key.chunk(&dead.evidence.body.sha256, n));
    let twin = &stores.twin;
    twin.plant(&dead).await;
    let of_twin = |pk: String| async move { twin.ports().chunk_expiries()[&pk].map(|at| at.0) };
    closed(twin.ports(), &key, &chunks, of_twin).await;
    for store in &stores.emulators {
        store.plant(&dead).await;
        let of_store = |pk: String| async move {
            lives_until(store.raw(&EventKey::parse(&pk).unwrap()).await.as_ref())
        };
        closed(store.ports(), &key, &chunks, of_store).await;
    }
}

async fn closed(
    ledger: &impl Ledger,
    key: &EventKey,
    chunks: &[String],
    until: impl AsyncFn(String) -> Option<u64>,
) {
    for pk in chunks {
        ledger.put_chunk(pk, b"part", None).await.unwrap();
    }
    let (by, note) = ("anna".to_owned(), "refunded".to_owned());
    let ask = Resolve { by, note, settled_at: NOW };
    let policy = Policy::default();
    let done = resolve(ledger, key, &ask, &policy).await.unwrap();
    assert!(matches!(done, Closed::Done), "{done:?}");
    let row = ledger.row(key).await.unwrap().unwrap();
    assert_eq!(row.life.outcome, Some(Outcome::Resolved));
    for pk in chunks {
        let end = NOW.seconds_after(policy.chunk_seconds());
        assert_eq!(until(pk.clone()).await, Some(end.0), "{pk}");
    }
}

async fn bound_once(ledger: &impl Ledger, pk: &str) {
    let expires_at = Seconds(NOW.0 / 1_000 + 1_000_000);
    let bind = async |pk: &str, value: u8| ledger.bind(pk, &[value; 32], expires_at).await.unwrap();
    assert!(bind(pk, 1).await, "nobody's yet");
    assert!(bind(pk, 1).await, "its own again");
    assert!(!bind(pk, 2).await, "another's");
    assert!(bind(pk, 1).await, "a refusal changes nothing");
    assert!(bind(&format!("{pk}x"), 2).await, "another proof");
}

pub(crate) async fn a_proof_is_bound_once(stores: &Stores) {
    let source = ledger::SourceName::new("paypal").unwrap();
    let pk = EventKey::proof(&source, "b2384410-f8d2-11e4-8bf3-77339302725b").unwrap();
    bound_once(stores.twin.ports(), &pk).await;
    for store in &stores.emulators {
        bound_once(store.ports(), &pk).await;
    }
}
