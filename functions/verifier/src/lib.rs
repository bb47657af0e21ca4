//! Verifies webhook deliveries: request bytes, keys and a time in; a verdict out.
//!
//! A [`Preset`] describes a provider. It makes [`Key`]s from the texts the provider hands out,
//! decides with them whether a [`Request`] is authentic, and reads the [`Event`]s in it. The same
//! description signs, so that samples and tests go through the engine that verifies.
//!
//! Pure on purpose: no I/O, no clock, no environment, no randomness, and no panic on any input.
//! What needs the network (a certificate, a refreshed secret) is a [`Rejection`] that says what to
//! fetch; the caller fetches it and asks again.

#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions
)]

mod algorithm;
mod answer;
mod encoding;
mod event;
mod extract;
mod handshake;
mod history;
mod key;
mod layout;
mod preset;
mod rejection;
mod request;
mod scheme;
mod shared_token;
mod template;
mod time;

pub use answer::Answer;
pub use event::{Event, Unusable, UnusableReason};
pub use history::{ApiAuth, EventList, History, ListedEvent, ListedTime, NextPage};
pub use key::{Key, KeyDefect, check_secret};
pub use preset::builtin::{preset_names, preset_table};
pub use preset::section::PresetDefect;
pub use preset::{EntityFacts, Preset};
pub use rejection::{CannotSign, Rejection, Verified};
pub use request::{HeaderLookup, Headers, Request};
pub use shared_token::SharedToken;
