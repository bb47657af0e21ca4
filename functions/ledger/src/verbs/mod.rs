//! The verbs: one file, one verb.
//!
//! Each verb is a total function `(row as found, request) -> next life | refusal`. The database
//! adapter performs the same verb as one conditional write and hands the refused row to the same
//! file's `refusal` function, so model and production read a refusal alike.
//!
//! A refused write is the caller's own, whose answer was lost, only if its token matches *and*
//! the row stands as that write leaves it. Anything less would let a worker take over a life
//! that has moved on.

mod apply;
mod backfill;
mod bury;
mod claim;
mod fail;
#[cfg(test)]
pub(crate) mod fixture;
mod lease;
mod redrive;
mod resolve;
mod settle;
mod sweep;
mod wait;
mod wait_in_sequence;
mod wake;

pub use apply::{Applied, Apply, ApplyRefusal, apply, apply_and_wake};
pub use backfill::{Backfill, BackfillRefusal, backfill};
pub use bury::{
    Bury, BuryRefusal, ForcedBury, ForcedBuryRefusal, bury, forced_bury, is_abandoned,
    resting_place,
};
pub use claim::{Birth, Claim, ClaimRefusal, claim};
pub use fail::{Fail, FailRefusal, fail};
pub use lease::{LeaseAsk, LeaseRefusal, lease};
pub use redrive::{Redrive, RedriveBy, RedriveRefusal, is_curable_by, redrive};
pub use resolve::{Resolve, ResolveRefusal, resolve};
pub use settle::{Settle, settle};
pub use sweep::{Sweep, SweepRefusal, sweep};
pub use wait::{Wait, WaitRefusal, wait};
pub use wait_in_sequence::{WaitInSequence, WaitInSequenceRefusal, Waited, wait_in_sequence};
pub use wake::Wake;

// The refusal readers, for the adapter.
pub use apply::refusal as apply_refusal;
pub use apply::refusal_with_wake as apply_and_wake_refusal;
pub use backfill::refusal as backfill_refusal;
pub use bury::{forced_refusal as forced_bury_refusal, refusal as bury_refusal};
pub use claim::refusal as claim_refusal;
pub use fail::refusal as fail_refusal;
pub use lease::refusal as lease_refusal;
pub use redrive::refusal as redrive_refusal;
pub use resolve::refusal as resolve_refusal;
pub use settle::refusal as settle_refusal;
pub use sweep::refusal as sweep_refusal;
pub use wait::refusal as wait_refusal;
pub use wait_in_sequence::refusal as wait_in_sequence_refusal;

use crate::{Life, ROW_FORMAT, Status};

/// What every fenced verb of a lease holder can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FenceRefusal {
    /// My own write, whose answer was lost: go on as if it had been accepted.
    Mine,
    /// Another worker holds the row, or it is finished: write nothing more.
    Lost,
    /// No such row.
    Missing,
    /// Written by a newer build: touch nothing.
    UnknownFormat,
}

/// A row this code may judge, or why not.
enum Found<'a> {
    Known(&'a Life),
    Missing,
    UnknownFormat,
}

fn look(found: Option<&Life>) -> Found<'_> {
    match found {
        None => Found::Missing,
        Some(life) if life.format != ROW_FORMAT => Found::UnknownFormat,
        Some(life) => Found::Known(life),
    }
}

/// The condition `P`: known format, processing, and the caller's epoch.
fn is_held(life: &Life, epoch: u64) -> bool {
    life.format == ROW_FORMAT && life.status == Status::Processing && life.epoch == epoch
}

/// Reads a refused fenced write; `is_mine` says whether the row stands as that write leaves it.
fn fence_refusal(found: Option<&Life>, is_mine: impl FnOnce(&Life) -> bool) -> FenceRefusal {
    match look(found) {
        Found::Missing => FenceRefusal::Missing,
        Found::UnknownFormat => FenceRefusal::UnknownFormat,
        Found::Known(life) if is_mine(life) => FenceRefusal::Mine,
        Found::Known(_) => FenceRefusal::Lost,
    }
}
