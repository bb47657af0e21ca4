//! Closing a dead event by hand: its row is settled for good, and its body may go in time.
//!
//! A burial takes the time to live of a large body's chunks away, so that they wait as long as their
//! row does. The row is closed first: a person is told what became of the event, and a body that could
//! not be dated costs storage and nothing else. Asking once more dates it.

use crate::{
    body,
    ports::{Ledger, PortError, Refused},
};
use ledger::{
    EventKey, Millis, Outcome, Policy, Row,
    verbs::{Resolve, ResolveRefusal},
};

/// What became of a dead event that a person closes.
#[derive(Debug)]
pub enum Closed {
    /// It is closed, and goes with its body when its time is up.
    Done,
    /// It is closed; its body stays for ever until this is asked once more.
    BodyStays(PortError),
    /// It is left as it is.
    Refused(ResolveRefusal),
}

/// Closes the row of `key`, and gives its body a time to live again.
pub async fn resolve(
    ports: &impl Ledger,
    key: &EventKey,
    ask: &Resolve,
    policy: &Policy,
) -> Result<Closed, PortError> {
    let (refusal, row) = match ports.resolve(key, ask).await? {
        Ok(()) => (None, ports.row(key).await),
        Err(Refused { why: ResolveRefusal::Mine, row }) => (None, Ok(row.map(|row| *row))),
        Err(Refused { why, row }) => (Some(why), Ok(row.map(|row| *row))),
    };
    let released = match row {
        Ok(Some(row)) => release(ports, &row, policy).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    Ok(match (refusal, released) {
        (Some(why), _) => Closed::Refused(why),
        (None, Ok(())) => Closed::Done,
        (None, Err(error)) => Closed::BodyStays(error),
    })
}

/// Dates the body of a row that a person closed, now or before.
async fn release(ports: &impl Ledger, row: &Row, policy: &Policy) -> Result<(), PortError> {
    let closed_at: Option<Millis> =
        row.life.settled_at.filter(|_| row.life.outcome == Some(Outcome::Resolved));
    match closed_at {
        Some(at) => body::release(ports, row, policy, at).await,
        None => Ok(()),
    }
}
