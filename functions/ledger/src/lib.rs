//! The rules of the ledger, as pure functions.
//!
//! A delivery becomes a [`Row`]; every step of the row's life is one *verb*: a total function
//! from the row as found and a request to either the row's next [`Life`] or a refusal that names
//! the caller's choices. The database adapter writes the same rules as condition expressions;
//! the functions here are the specification those expressions are checked against, the body of
//! the in-memory twin, and the state machine that the exploration walks.
//!
//! Deliberately absent: clock, randomness, environment, async and any SDK. Times, tokens and
//! limits are arguments.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions
)]

mod age;
mod entity;
mod key;
mod message;
mod policy;
mod retry;
mod row;
mod sequence;
mod time;
mod token;
pub mod verbs;
mod version;

pub use age::{Age, age};
pub use entity::{Change, Entity, Guard, GuardRefusal, Stamp, Tie};
pub use key::{EntityKey, EventKey, KeyError, RunName, SHARDS, SourceName, shard_of};
pub use message::{Message, MessageError};
pub use policy::{Policy, PolicyError};
pub use retry::{
    Jitter, Next, Sweeping, next_redrive_due, next_step, next_sweep_due, retry_after_ms,
    retry_delay_ms,
};
pub use row::{
    Body, Bucket, ByHand, Codec, Effect, EffectOutcome, Evidence, Failure, FailureClass, Lease,
    Life, Open, Origin, Outcome, ROW_FORMAT, Row, Status,
};
pub use sequence::{Succession, Turn, Waiter, is_behind_another, succession, turn};
pub use time::{Millis, Seconds};
pub use token::Token;
pub use version::{Unit, Version, VersionError};
