//! What the suites stand on: a stack of one's own, signed requests, waiting with a limit.
//!
//! Nothing here decides whether the product is right; the suites do. What is here makes their
//! cases short: [`LocalStack`] deploys the real template to a local AWS and takes it down again,
//! [`Stack`] speaks to a deployed stack through the product's own adapters, [`Sample`] and
//! [`Signer`] make authentic requests out of `events/`, [`World`] runs the use cases on the
//! in-memory twin, and [`until`] waits for a state instead of sleeping.
//!
//! No request body, signature or secret is printed, in failures neither.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::missing_panics_doc,
    reason = "test code: a panic is a failed test, and what it prints is its report"
)]

mod desk;
mod env_file;
mod file_host;
mod http;
mod local_stack;
mod local_stripe;
mod paypal;
mod provider;
mod proxy;
mod python;
mod rows;
mod sample;
mod signer;
mod stack;
mod stub;
mod suite;
mod wait;
mod world;

pub use aws::Resource;
pub use desk::{Desk, Pages};
pub use env_file::EnvFile;
pub use file_host::FileHost;
pub use http::{Answered, Call, Http};
pub use local_stack::{LocalStack, StackOptions, binaries, binary};
pub use local_stripe::{Letterbox, LocalStripe};
pub use paypal::{Proven, prove};
pub use provider::{Dialect, EventApi, EventServer, ListAnswer, ListAsk, other_secret};
pub use proxy::{CountingProxy, Seen};
pub use python::{python, run_python};
pub use rows::claimed_row;
pub use sample::Sample;
pub use signer::Signer;
pub use stack::{Depth, Stack, brief, sdk};
pub use stub::{AwsStub, StubAnswer};
pub use suite::{Case, run_alone, run_cases};
pub use wait::{Probe, until};
pub use world::{World, WorldBuilder, now};

use std::path::{Path, PathBuf};

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_path_buf()
}

/// Wall-clock milliseconds since the Unix epoch, for signatures that a deployed stack checks.
#[must_use]
pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// `2026-11-30T12:00:00.000Z`, to the second.
#[must_use]
pub fn iso(at_ms: u64) -> String {
    let date = ledger::Millis(at_ms).date();
    let s = at_ms / 1_000 % 86_400;
    format!("{date}T{:02}:{:02}:{:02}.000Z", s / 3_600, s / 60 % 60, s % 60)
}

/// SHA-256 as 64 hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex::encode(Sha256::digest(bytes))
}
