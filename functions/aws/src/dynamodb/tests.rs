//! Every expression of every verb, looked at as text: DynamoDB refuses a request whose
//! placeholders and values do not match exactly, and names that are reserved words.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::{write::placeholders, *};
use ledger::{
    Change, Failure, FailureClass, Guard, Open, Outcome, Policy, Stamp, Tie, Token, Version,
    verbs::{RedriveBy, WaitInSequence, Wake},
};
use std::collections::BTreeSet;

const TABLE: &str = "ledger";

fn key() -> EventKey {
    EventKey::parse("s#evt_1").unwrap()
}

fn failure(class: FailureClass) -> Failure {
    Failure { error: "e".to_owned(), class, at: Millis(1) }
}

fn open() -> Open {
    Open { bucket: Bucket::Parked(1), due_at: Millis(1) }
}

fn settles() -> Vec<Update> {
    let settle = Settle { epoch: 1, outcome: Outcome::Ignored, settled_at: Millis(1) };
    let effect = Effect {
        entity: "s#thing#1".to_owned(),
        outcome: ledger::EffectOutcome::Superseded,
        version: None,
    };
    let resolve = Resolve { by: "b".to_owned(), note: "n".to_owned(), settled_at: Millis(1) };
    let policy = Policy::default();
    vec![
        finish::settle(TABLE, &key(), &settle, &[], &policy),
        finish::settle(TABLE, &key(), &settle, &[effect], &policy),
        finish::resolve(TABLE, &key(), &resolve, &policy),
    ]
}

fn burials() -> Vec<Update> {
    let policy = Policy::default();
    let bury = |class| {
        let ask = Bury { epoch: 1, failure: failure(class), open: open() };
        bury::bury(TABLE, &key(), &ask, &policy)
    };
    let forced =
        ForcedBury { failure: failure(FailureClass::Transient), now: Millis(1), open: open() };
    vec![
        bury(FailureClass::Permanent),
        bury(FailureClass::Transient),
        bury::forced(TABLE, &key(), &forced, &policy),
    ]
}

fn revivals() -> Vec<Update> {
    let policy = Policy::default();
    let redrive =
        |by| revive::redrive(TABLE, &key(), &Redrive { by, now: Millis(1), shard: 1 }, &policy);
    let seen_due_at = Millis(1);
    let sweep = Sweep { seen_due_at, now: Millis(2), shard: 1, sweeps: 0 };
    vec![
        redrive(RedriveBy::Message { sent_at: Millis(1) }),
        redrive(RedriveBy::Steward { seen_due_at, release: None }),
        redrive(RedriveBy::Steward { seen_due_at, release: Some("r".to_owned()) }),
        redrive(RedriveBy::Person { by: "ada".to_owned(), reason: "mended".to_owned() }),
        revive::sweep(TABLE, &key(), &sweep, &policy),
    ]
}

fn leases() -> Vec<Update> {
    let policy = Policy::default();
    let lease =
        LeaseAsk { owner: Token(1), until: Millis(2), now: Millis(1), release: "r".to_owned() };
    let fail =
        Fail { epoch: 1, failure: failure(FailureClass::Transient), retry_at: Millis(2), shard: 1 };
    let wait = Wait { epoch: 1, now: Millis(1), retry_at: Millis(2), due_at: Millis(3), shard: 1 };
    vec![
        lease::update(TABLE, &key(), &lease, &policy),
        give_back::fail(TABLE, &key(), &fail, &policy),
        give_back::wait(TABLE, &key(), &wait),
    ]
}

fn changes() -> Vec<Update> {
    let stamp = Stamp { version: Version::new(1).unwrap(), rank: 1, event_id: "e".to_owned() };
    let newer = |tie| Guard::Newer { stamp: stamp.clone(), tie };
    let read = |read, version| Guard::Revision { read, version, event_id: "e".to_owned() };
    let guards = [
        newer(Tie::Rank),
        newer(Tie::Skip),
        read(None, None),
        read(Some(1), None),
        read(Some(1), Some(stamp.version)),
    ];
    let mut updates = Vec::new();
    for guard in guards {
        for is_final in [false, true] {
            for leaves in [BTreeSet::new(), BTreeSet::from(["2#s#evt".to_owned()])] {
                let entity = EntityKey::new("s", "thing", "1").unwrap();
                let state = serde_json::Map::new();
                let asked = Change { entity, guard: guard.clone(), state, is_final, leaves };
                updates.push(change::change("state", &asked, Millis(1)));
            }
        }
    }
    updates
}

fn sequences() -> Vec<Update> {
    let ask = WaitInSequence {
        epoch: 1,
        now: Millis(1),
        waiting_since: None,
        timeout_ms: 1,
        waiter: ledger::Waiter { number: Version::new(2).unwrap(), key: key() },
    };
    let entity = EntityKey::new("s", "thing", "1").unwrap();
    vec![
        apply::wake(TABLE, &Wake { key: key() }, Millis(1)),
        sequence::join("state", &entity, &ask, &Policy::default()),
    ]
}

fn backfills() -> Vec<Update> {
    let of = |state| {
        let entity = EntityKey::new("s", "thing", "1").unwrap();
        let version = Version::new(1).unwrap();
        backfill::backfill("state", &Backfill { entity, version, state, at: Millis(1) })
    };
    vec![of(None), of(Some(serde_json::Map::new()))]
}

fn every_update() -> Vec<Update> {
    [settles(), burials(), revivals(), leases(), changes(), sequences(), backfills()].concat()
}

#[test]
fn every_value_is_used_and_every_used_value_is_given() {
    for update in every_update() {
        let text = format!("{} {}", update.condition, update.expression);
        let used: BTreeSet<&str> = placeholders(&text, ':').collect();
        let given: BTreeSet<&str> =
            update.values.keys().map(|name| name.trim_start_matches(':')).collect();
        assert_eq!(used, given, "{text}");
    }
}

#[test]
fn every_attribute_goes_through_a_placeholder() {
    let words = [
        "AND",
        "OR",
        "IN",
        "SET",
        "REMOVE",
        "ADD",
        "DELETE",
        "attribute_not_exists",
        "attribute_exists",
        "if_not_exists",
        "size",
        "contains",
    ];
    for update in every_update() {
        let text = format!("{} {}", update.condition, update.expression);
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || "_#:".contains(c))) {
            let is_placeholder = word.starts_with(['#', ':']) || word.is_empty();
            assert!(is_placeholder || words.contains(&word), "{word:?} in {text}");
        }
    }
}

#[test]
fn every_write_to_a_row_stands_on_its_format_and_so_creates_none() {
    let on_rows = [settles(), burials(), revivals(), leases()].concat();
    for update in on_rows {
        assert!(update.condition.starts_with("#format = :format AND "), "{}", update.condition);
    }
}

#[test]
fn no_attribute_is_written_twice_in_one_update() {
    for update in every_update() {
        let text = update.expression.as_str();
        let mut clauses: Vec<usize> = ["SET ", "REMOVE ", "ADD ", "DELETE "]
            .iter()
            .filter_map(|word| text.find(word))
            .collect();
        clauses.sort_unstable();
        clauses.push(text.len());
        // A target is the placeholder that begins an action: behind the keyword or a comma.
        let written: Vec<&str> = clauses
            .windows(2)
            .filter_map(|ends| text[ends[0]..ends[1]].split_once(' '))
            .flat_map(|(_, actions)| actions.split(", "))
            .filter_map(|action| action.split(' ').next()?.strip_prefix('#'))
            .collect();
        assert!(written.len() >= clauses.len() - 1, "an empty clause in {text}");
        let distinct: BTreeSet<&str> = written.iter().copied().collect();
        assert_eq!(distinct.len(), written.len(), "{text}");
    }
}

#[test]
fn a_row_that_cannot_be_read_is_an_error_and_not_a_missing_row() {
    let format = crate::item::number(ledger::ROW_FORMAT);
    let garbled = Item::from([
        ("pk".to_owned(), crate::item::text("s#evt_1")),
        ("format".to_owned(), format),
    ]);
    let error = read_row("lease", Some(garbled)).unwrap_err();
    assert_eq!((error.step, error.trouble), ("lease", Trouble::Invalid));
    assert!(read_row("lease", None).unwrap().is_none());
}
