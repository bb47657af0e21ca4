//! Replay and reconciliation on the twin: the case from practice, deaths, troubles of the provider, and
//! what a window of any size costs. The deployed stack answers the same in `e2e`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test code: a failed unwrap is a failed test"
)]

mod cost;
mod deaths;
mod practice;
mod reconciled;
mod shop;
mod troubles;
