//! Hours of traffic in simulated time: the use cases as they are, on the twin, among many workers.
//!
//! What a single row may become is proven elsewhere. Here is what only shows under load: how long a
//! backlog takes, whether the sweeper feeds it, what a poison record costs its neighbours, how an
//! outage heals. Receiver, consumer and steward run concurrently, every call to the store or the
//! queue takes its time, and the clock jumps from one event to the next.
//!
//! `cargo test -p workflow --test simulation -- --nocapture` prints the figures. With
//! `ONCEHOOK_SIMULATE=full` the two large ones run at their full size; else at the part that each
//! names, with every limit and duration as in production.
//!
//! Not simulated: cold starts, the network's own losses, SQS's loose order (here the message that
//! has been visible for longest comes first), and DynamoDB's capacity.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed unwrap is a failed test, and figures are to be read"
)]

#[path = "../rig/mod.rs"]
mod rig;

mod backlog;
mod builds;
mod engine;
mod flood;
mod outage;
mod patience;
mod poison;
mod system;
