//! `oncehook replay --from-ledger`: which events, how fast, who and why.

use super::{Filter, word};
use crate::time::Moment;
use clap::Args;
use ledger::{EventKey, RunName};

/// `oncehook replay`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook replay --from-ledger --since 2h --by anna --reason 'state restored to 09:00'
  oncehook replay --from-ledger --status ignored --since 7d --by anna --reason 'projected now'
  oncehook replay --from-ledger stripe-live#evt_1 --by anna --reason 'ticket 4711' --execute
  oncehook replay --from-ledger --run 2026-11-30.a --since 2h --by anna --reason on --execute

Without --execute nothing is written: it says what would be replayed and what is refused, and why.

Each event becomes a row of its own, `_r#RUN#KEY`; the event's own row is left as it is. The consumer
applies it through the version guard: what the state knows already is superseded, an older event never
replaces a newer one, and so a changed `set` is not applied to a version that is there. Events that add
to an entity are refused: nothing could tell the replay from another event. So are events that are
unfinished or dead; `oncehook dead redrive` runs those.

A run that was interrupted goes on with --run and its name, and makes no row twice.")]
pub(crate) struct Replay {
    /// From the ledger itself, not from the provider
    #[arg(long, required = true)]
    pub(crate) from_ledger: bool,
    /// Ledger keys; instead of a window
    #[arg(value_name = "KEY", value_parser = EventKey::parse)]
    pub(crate) keys: Vec<EventKey>,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Received since: 15m, 2h, 3d, or a time
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, required_unless_present = "keys", conflicts_with = "keys")]
    pub(crate) since: Option<Moment>,
    /// Received until: an age or a time; now unless given
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, conflicts_with = "keys")]
    pub(crate) until: Option<Moment>,
    /// How many events at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Events a second at most
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rate: u32,
    /// The name of a run to go on with; a new one is made up unless given
    #[arg(long, value_name = "RUN", value_parser = RunName::new)]
    pub(crate) run: Option<RunName>,
    /// Do it; without this it only says what it would do
    #[arg(long, visible_alias = "yes")]
    pub(crate) execute: bool,
    /// Who does it
    #[arg(long, value_name = "WHO", value_parser = word)]
    pub(crate) by: String,
    /// Why
    #[arg(long, value_name = "WHY", value_parser = word)]
    pub(crate) reason: String,
}
