//! Real failures of other people's receivers, in neutral form, as named tests.
//!
//! `field-reports.json` holds the reports; a test is named after the report it answers and reads
//! its input from there. Everything runs on the in-memory twin, at the report's own time, with
//! sources made for it. Where a report's wording and the design differ, the design's answer holds
//! if no event can be lost by it; the test says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test code: a failed unwrap is a failed test"
)]

mod answers;
mod bytes;
mod consumer;
mod durability;
mod handshakes;
mod identity;
mod operator;
mod payload;
mod replay;
mod reports;
mod secrets;
mod shop;
