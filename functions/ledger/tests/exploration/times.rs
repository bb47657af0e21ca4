//! Time, abstracted.
//!
//! Rows hold times; the model has no clock that moves. Every moment a verb writes is one of the
//! constants below, and every asker reads its clock as either [`EARLY`] or [`LATE`]: before every
//! deadline in sight, or after all of them. Which one it reads is a free choice of every step, so
//! that leases end under a running holder, timers fire in any order and no two clocks agree.
//! This allows more than reality does; what holds here rests on no clock.
//!
//! Two orders are real, because a condition compares them: a message is older or younger than the
//! burial of its row, and a `due_at` that was seen is or is not the present one.

use ledger::Millis;

/// When a delivery was received.
pub(crate) const RECEIVED: Millis = Millis(1_000);
/// A duplicate's clock while the row is young.
pub(crate) const YOUNG: Millis = Millis(2_000);
/// A duplicate's clock once the row is old.
pub(crate) const OLD: Millis = Millis(60_000);

/// Every redrive's clock. A redriven row is then due at [`DUE`].
pub(crate) const REDRIVEN: Millis = Millis(2_000_000);
/// When any pending row is due that was not swept, woken or told to wait.
pub(crate) const DUE: Millis = Millis(2_120_000);
/// Every lease holder's clock when it finishes; a woken row is due then.
pub(crate) const SETTLED: Millis = Millis(3_000_000);
/// A person's clock when closing a row.
pub(crate) const RESOLVED: Millis = Millis(3_500_000);
/// Every lease holder's clock when it fails.
pub(crate) const FAILED: Millis = Millis(4_000_000);
/// The clock of every burial. Only the latest one of a row is ever compared.
pub(crate) const BURIED: Millis = Millis(5_000_000);
/// The `SentTimestamp` of a message older than the burial.
pub(crate) const SENT_BEFORE: Millis = Millis(5_000_000);
/// The `SentTimestamp` of a message younger than the burial.
pub(crate) const SENT_AFTER: Millis = Millis(5_020_000);
/// When a dead row's automatic redrive is due.
pub(crate) const REDRIVE_DUE: Millis = Millis(6_000_000);

/// A clock before every deadline.
pub(crate) const EARLY: Millis = Millis(10_000_000);
/// The deadlines: a lease's end, a failed row's retry time.
pub(crate) const DEADLINE: Millis = Millis(30_000_000);
/// A clock after every deadline.
pub(crate) const LATE: Millis = Millis(50_000_000);

/// The clock of every wait.
pub(crate) const WAITED: Millis = Millis(7_000_000);
/// How long a sequence waits.
pub(crate) const TIMEOUT_MS: u64 = 13_000_000;
/// When a wait in sequence is over.
pub(crate) const TIMED_OUT: Millis = Millis(20_000_000);
