//! `replay` and `reconcile`: past events, from a provider's list or from the ledger itself.

use super::{Filter, Standing, word};
use crate::time::Moment;
use clap::{Args, ValueHint};
use ledger::{EventKey, RunName, SourceName};
use std::path::PathBuf;

const PROVIDER: &str = "From the provider";
const LEDGER: &str = "From the ledger";

/// `oncehook replay`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples, from the provider:
  oncehook replay --source stripe-live --since 2h --dry-run
  oncehook replay --source stripe-live --since 2h --by anna --reason outage
  oncehook replay --source github --since 2026-11-30T08:00:00Z \\
    --type workflow_job --by anna --reason 'missed jobs'
  oncehook replay --providers

Reads the provider's own list of events, with the key in the outbound secret, and posts each to \
the stack's replay route, under the source's token in the replay secret. The ledger discards what \
it has. The stack must be deployed with ReplayRoute=on. Both ends of the window are included; its \
end is fixed when the run begins. Ctrl-C ends it with exit code 130 and the command that goes on: the \
same one, without --fresh. It goes on with a run that was killed, too. A window may reach as far \
back as the ledger remembers, RetentionDays less a day: an older event may have been settled and be \
gone, and would be applied again. --beyond-retention is for what never came, such as a past before \
the stack was there.

Examples, from the ledger:
  oncehook replay --from-ledger --since 2h --by anna --reason 'state restored'
  oncehook replay --from-ledger --status ignored --since 7d --dry-run
  oncehook replay --from-ledger stripe-live#evt_1 --execute \\
    --by anna --reason 'ticket 4711'
  oncehook replay --from-ledger --run 2026-11-30.a --since 2h \\
    --by anna --reason 'state restored' --execute

Without --execute nothing is written: it says what would be replayed and what is refused, and why. \
Each event becomes a row of its own, `_r#RUN#KEY`; the event's own row is left as it is. The \
consumer applies it through the version guard: what the state knows already is superseded, an \
older event never replaces a newer one, and so a changed `set` is not applied to a version that is \
there. Events that add to an entity are refused: nothing could tell the replay from another event. \
So are events that are unfinished or dead; `oncehook dead redrive` runs those. Ctrl-C ends a run with \
exit code 130 and the command that goes on: with the run's name, which makes no row twice, and with \
the window's ends, since an age is another window by then.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Replay {
    /// The source whose provider is asked, and which the events are fed into
    #[arg(long, value_parser = SourceName::new, required_unless_present_any = ["providers", "from_ledger"])]
    pub(crate) source: Option<SourceName>,
    /// Events since: 15m, 2h, 3d, or a time
    #[arg(long, value_name = "TIME", value_parser = Moment::parse, required_unless_present_any = ["providers", "keys"])]
    pub(crate) since: Option<Moment>,
    /// Events until: an age or a time; now unless given
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(crate) until: Option<Moment>,
    /// Only events of this type (of a provider's list also what is below it); may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) event_type: Vec<String>,
    /// Events a second at most
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rate: u32,
    /// Who replays
    #[arg(long, value_name = "WHO", value_parser = word, required_unless_present_any = ["dry_run", "providers"])]
    pub(crate) by: Option<String>,
    /// Why
    #[arg(long, value_name = "WHY", value_parser = word, required_unless_present_any = ["dry_run", "providers"])]
    pub(crate) reason: Option<String>,
    /// Look every event up and change nothing; with --from-ledger that is the default
    #[arg(long, conflicts_with = "execute")]
    pub(crate) dry_run: bool,

    /// Where to keep how far the run is, instead of in the folder for such files
    #[arg(long, help_heading = PROVIDER, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "from_ledger")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Forget a run that was broken off, and begin anew
    #[arg(long, help_heading = PROVIDER, conflicts_with = "from_ledger")]
    pub(crate) fresh: bool,
    /// Feed in what happened longer ago than settled rows are kept: none of it may have come before
    #[arg(long, help_heading = PROVIDER, conflicts_with = "from_ledger")]
    pub(crate) beyond_retention: bool,
    /// Print which providers list their past events, and how far back
    #[arg(long, help_heading = PROVIDER, exclusive = true)]
    pub(crate) providers: bool,

    /// From the ledger itself, not from the provider
    #[arg(long, help_heading = LEDGER)]
    pub(crate) from_ledger: bool,
    /// Ledger keys; instead of a window
    #[arg(value_name = "KEY", help_heading = LEDGER, value_parser = EventKey::parse, requires = "from_ledger", conflicts_with_all = ["since", "until"])]
    pub(crate) keys: Vec<EventKey>,
    /// Only this status or outcome; several are joined by commas
    #[arg(long, help_heading = LEDGER, visible_alias = "outcome", value_name = "STATUS", value_delimiter = ',', value_parser = Standing::parse, requires = "from_ledger")]
    pub(crate) status: Vec<Standing>,
    /// How many events at most, beside those that the run made before
    #[arg(long, help_heading = LEDGER, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "from_ledger")]
    pub(crate) limit: Option<u32>,
    /// The name of a run to go on with; a new one is made up unless given
    #[arg(long, help_heading = LEDGER, value_name = "RUN", value_parser = RunName::new, requires = "from_ledger")]
    pub(crate) run: Option<RunName>,
    /// Do it; without this it only says what it would do
    #[arg(long, help_heading = LEDGER, visible_alias = "yes", requires = "from_ledger")]
    pub(crate) execute: bool,
}

/// What `oncehook replay --from-ledger` asks for.
#[derive(Debug)]
pub(crate) struct FromLedger {
    /// Ledger keys; empty where a window is meant.
    pub(crate) keys: Vec<EventKey>,
    /// Which events of the window.
    pub(crate) filter: Filter,
    /// The window's beginning.
    pub(crate) since: Option<Moment>,
    /// The window's end.
    pub(crate) until: Option<Moment>,
    /// How many events at most.
    pub(crate) limit: Option<u32>,
    /// Events a second at most.
    pub(crate) rate: u32,
    /// The run to go on with.
    pub(crate) run: Option<RunName>,
    /// Whether anything is written.
    pub(crate) execute: bool,
    /// Who.
    pub(crate) by: String,
    /// Why.
    pub(crate) reason: String,
}

impl From<Replay> for FromLedger {
    fn from(args: Replay) -> Self {
        let filter =
            Filter { source: args.source, status: args.status, event_type: args.event_type };
        Self {
            keys: args.keys,
            filter,
            since: args.since,
            until: args.until,
            limit: args.limit,
            rate: args.rate,
            run: args.run,
            execute: args.execute,
            // The command line asks for both.
            by: args.by.unwrap_or_default(),
            reason: args.reason.unwrap_or_default(),
        }
    }
}

/// `oncehook reconcile`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook reconcile --source stripe-live
  oncehook reconcile --source github --since 1d --dry-run

Does at once, for one source, what the stack's reconciler does every hour. Exits with 1 if anything \
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
