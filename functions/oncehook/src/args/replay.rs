//! `replay` and `reconcile`: a provider's past events.

use super::word;
use crate::time::Moment;
use clap::{Args, ValueHint};
use ledger::SourceName;
use std::path::PathBuf;

/// `oncehook replay`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook replay --source stripe-live --since 2h --dry-run
  oncehook replay --source stripe-live --since 2026-11-30T08:00:00Z --by anna --reason 'outage'
  oncehook replay --source github --since 1d --type workflow_job --by anna --reason 'missed jobs'
  oncehook replay --providers

Reads the provider's own list of events, with the key in the outbound secret, and posts each to the
stack's replay route, under the source's token in the replay secret. The ledger discards what it
has. The stack must be deployed with ReplayRoute=on.

Both ends of the window are included. The window's end is fixed when the run begins; begin the next
run where this one ended. A run that was broken off goes on when the same command is run again.")]
pub(crate) struct Replay {
    /// The source whose provider is asked, and which the events are fed into
    #[arg(long, value_parser = SourceName::new, required_unless_present = "providers")]
    pub(crate) source: Option<SourceName>,
    /// Events since: 15m, 2h, 3d, or a time
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, required_unless_present = "providers")]
    pub(crate) since: Option<Moment>,
    /// Events until: an age or a time; now unless given
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(crate) until: Option<Moment>,
    /// Only events of this type and what is below it (`push`, `workflow_job`); may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) event_type: Vec<String>,
    /// Look every event up in the ledger and post nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Events a second at most
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rate: u32,
    /// Who replays
    #[arg(long, value_name = "WHO", value_parser = word, required_unless_present_any = ["dry_run", "providers"])]
    pub(crate) by: Option<String>,
    /// Why
    #[arg(long, value_name = "WHY", value_parser = word, required_unless_present_any = ["dry_run", "providers"])]
    pub(crate) reason: Option<String>,
    /// Where to keep how far the run is, instead of in the folder for such files
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Forget a run that was broken off, and begin anew
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print which providers list their past events, and how far back
    #[arg(long, exclusive = true)]
    pub(crate) providers: bool,
}

/// `oncehook reconcile`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook reconcile --source stripe-live
  oncehook reconcile --source github --since 1d --dry-run

Does at once, for one source, what the stack's reconciler does every hour. Exits with 1 if anything
was missing.")]
pub(crate) struct Reconcile {
    /// The source
    #[arg(long, value_parser = SourceName::new)]
    pub(crate) source: SourceName,
    /// Events since: 15m, 2h, 3d, or a time
    #[arg(long, value_name = "TIME", default_value = "3h", value_parser = Moment::parse)]
    pub(crate) since: Moment,
    /// Events until: an age or a time; younger ones may still be on their way
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = Moment::parse)]
    pub(crate) until: Moment,
    /// Count, and claim nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Events a second at most
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rate: u32,
}
