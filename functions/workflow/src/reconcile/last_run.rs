//! When the reconciler last finished a run: a note of its own, by which the steward sees that it has
//! fallen silent.
//!
//! The alarm cannot see that by itself. An alarm that takes missing figures for trouble rings as soon as
//! it is made, since the hours before it have none, and a figure that comes once an hour is missing most
//! of the time; the steward's comes every five minutes.

use crate::ports::{Notes, PortError};
use ledger::Millis;

const NAME: &str = "reconcile";

/// Notes that a run was finished at `now`, or that it is first waited for.
pub(crate) async fn note(ports: &impl Notes, now: Millis) -> Result<(), PortError> {
    ports.write_note(NAME, &now.0.to_string()).await
}

/// When that was; `None` where nobody has noted any. A note of another form is none.
pub(crate) async fn noted(ports: &impl Notes) -> Result<Option<Millis>, PortError> {
    Ok(ports.note(NAME).await?.and_then(|text| text.parse().ok()).map(Millis))
}
