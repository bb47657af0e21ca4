//! The values that lives are made of: one on each side of every comparison.

use ledger::{
    Bucket, EventKey, Failure, FailureClass, Lease, Life, Millis, Open, Row, Status, Token,
};
use support::claimed_row;

/// The asker's clock.
pub(crate) const NOW: Millis = Millis(1_700_000_000_000);
/// When the planted rows were received.
pub(crate) const RECEIVED: Millis = Millis(1_699_999_900_000);
/// The asker's token.
pub(crate) const MINE: Token = Token(0xA);
/// Somebody else's.
pub(crate) const OTHERS: Token = Token(0xB);
/// The asker's epoch.
pub(crate) const EPOCH: u64 = 3;
/// The format this build knows, and one it does not.
pub(crate) const FORMATS: [u32; 2] = [ledger::ROW_FORMAT, ledger::ROW_FORMAT + 1];

/// A row under `key` with this life.
pub(crate) fn row(key: &EventKey, change: impl FnOnce(Life) -> Life) -> Row {
    let (row, _) = claimed_row("s", key.event_id(), "thing.changed", b"{\"a\":1}", RECEIVED);
    assert_eq!(&row.evidence.key, key);
    let life = change(row.life.clone());
    Row { life, ..row }
}

/// A failure at a time.
pub(crate) fn failure(at: Millis, class: FailureClass) -> Failure {
    Failure { error: "the database was away".to_owned(), class, at }
}

/// A lease until a time.
pub(crate) fn lease(owner: Token, until: Millis) -> Lease {
    Lease { owner, until }
}

/// A place in the index.
pub(crate) fn open(bucket: Bucket, due_at: Millis) -> Open {
    Open { bucket, due_at }
}

/// Leases that a comparison with the clock tells apart, and none.
pub(crate) fn leases() -> Vec<Option<Lease>> {
    let untils = [NOW.minus(1), NOW, NOW.plus(1)];
    let held = |owner| untils.map(|until| Some(lease(owner, until)));
    [vec![None], held(MINE).to_vec(), held(OTHERS).to_vec()].concat()
}

/// Every status.
pub(crate) fn statuses() -> &'static [Status] {
    Status::ALL
}

/// Whether a life can be reached at all: a run is counted before it begins, so nobody holds a row
/// of no attempts.
pub(crate) fn is_possible(life: &Life) -> bool {
    life.status != Status::Processing || life.attempts > 0
}
