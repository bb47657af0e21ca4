//! The use cases: receive a delivery, consume a batch, run the steward, replay and reconcile what a
//! provider lists.
//!
//! Each is written over the traits of [`ports`], so that the same code runs on AWS and on the
//! in-memory [`twin`]. What a row may become is decided by the `ledger` crate; what a delivery
//! means by `verifier` and `config`. Here is the order of things: what is called when, what an
//! answer or a failure leads to, and what is reported.

/// The README's example of a projection, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub mod body;
pub mod certificates;
pub mod consume;
pub mod fetch;
mod freshness;
pub mod http;
pub mod keyring;
pub mod ledger_replay;
pub mod outbound;
pub mod ports;
pub mod projection;
pub mod receive;
pub mod reconcile;
pub mod replay;
pub mod resolve;
pub mod steward;
pub mod telemetry;
pub mod twin;
mod within;

pub use certificates::CertificateCache;
pub use consume::Consumer;
pub use fetch::Fetcher;
pub use keyring::Keyring;
pub use receive::Receiver;
pub use reconcile::Reconciler;
pub use steward::Steward;
