//! Verifies webhook deliveries: request bytes, keys and a time in; a verdict out.

#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions
)]

mod answer;
mod event;
mod key;
mod preset;
mod rejection;
mod request;

pub use answer::Answer;
pub use event::{Event, Unusable, UnusableReason};
pub use key::{Key, KeyDefect};
pub use preset::{Preset, PresetDefect, preset_names, preset_table};
pub use rejection::{CannotSign, Rejection, Verified};
pub use request::{HeaderLookup, Headers, Request};
