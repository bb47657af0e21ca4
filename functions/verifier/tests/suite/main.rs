//! The crate from outside: everything here goes through the public API, as the receiver does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a test fails by panicking, and its counts are worth reading"
)]

mod custom;
mod events;
mod handshakes;
mod handwritten;
mod keys;
mod presets;
mod properties;
mod reports_bytes;
mod reports_identity;
mod signing;
mod speed;
mod support;
mod tampering;
mod vectors;
mod verdicts;
