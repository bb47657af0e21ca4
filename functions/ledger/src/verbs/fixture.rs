//! One plausible life per status, for the verbs' own tests.

use crate::{
    Bucket, Failure, FailureClass, Lease, Life, Millis, Open, Outcome, ROW_FORMAT, Seconds, Status,
    Token,
};

/// The clock of the tests.
pub(super) const NOW: Millis = Millis(1_000_000);
/// The partition of the tests.
pub(super) const SHARD: u8 = 3;
/// The fence of the tests.
pub(super) const EPOCH: u64 = 7;

/// A failure at `at`.
pub(super) fn failure(class: FailureClass, at: Millis) -> Failure {
    Failure { error: "the store did not answer".to_owned(), class, at }
}

/// A life of that status, in its third run of six, with everything set that the status allows.
pub(crate) fn life(status: Status) -> Life {
    let bucket = match status {
        Status::Claimed | Status::Processing | Status::Failed | Status::Waiting => {
            Some(Bucket::Pending(SHARD))
        }
        Status::Dead => Some(Bucket::Dead(SHARD)),
        Status::Settled => None,
    };
    let is_settled = status == Status::Settled;
    Life {
        format: ROW_FORMAT,
        status,
        outcome: is_settled.then_some(Outcome::Applied),
        claim_nonce: Token(1),
        epoch: EPOCH,
        attempts: 3,
        lease: (status == Status::Processing)
            .then_some(Lease { owner: Token(2), until: NOW.plus(40_000) }),
        failure: Some(failure(FailureClass::Transient, NOW.minus(60_000))),
        retry_at: Some(NOW.minus(30_000)),
        release: Some("build-1".to_owned()),
        redrives: 1,
        redriven_at: None,
        by_hand: None,
        budget_release: None,
        waiting_since: (status == Status::Waiting).then_some(NOW.minus(50_000)),
        sweeps: 2,
        open: bucket.map(|bucket| Open { bucket, due_at: NOW.plus(5) }),
        settled_at: is_settled.then_some(NOW.minus(10)),
        expires_at: is_settled.then_some(Seconds(9_000)),
        resolved_by: None,
        note: None,
    }
}

/// Every status with a life of it.
pub(super) fn lives() -> impl Iterator<Item = Life> {
    Status::ALL.iter().map(|status| life(*status))
}

/// A row written by a newer build.
pub(super) fn newer(status: Status) -> Life {
    Life { format: ROW_FORMAT.saturating_add(1), ..life(status) }
}
