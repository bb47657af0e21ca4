//! `oncehook dead redrive`: some dead events by key, all that died under a build, or all there are.

use super::{ByHand, word};
use clap::Args;
use ledger::EventKey;

/// `oncehook dead redrive`
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("which").required(true).args(["keys", "release", "all"]),
    after_help = "\
Examples:
  oncehook dead redrive stripe-live#evt_1 --by anna --reason 'mended in 2026.48'
  oncehook dead redrive --release 3f9c2a7 --by anna --reason mended
  oncehook dead redrive --release 3f9c2a7 --by anna --reason mended --execute
  oncehook dead redrive --all --by anna --reason 'it is back' --execute

Named keys are redriven at once. --release and --all say first what they would do, and do it with \
--execute. --release brings back what last failed under that build, permanent failures too: the rest \
a new build brings back by itself. --all brings back every event that died at work and moves the \
dead-letter queue's messages back, by SQS's own move task where there is one. Second bodies of a known \
id and events nobody can use never worked and stay; resolve them, or name their keys. Ctrl-C ends --release and --all with \
exit code 130; the same command does the rest, since what was brought back is dead no more.

Each row keeps who, when and why. Redriving in the SQS console works too, and leaves no name."
)]
pub(crate) struct Redrive {
    /// Ledger keys: `<source>#<event id>`
    #[arg(value_name = "KEY", value_parser = EventKey::parse)]
    pub(crate) keys: Vec<EventKey>,
    /// Everything that died under this build
    #[arg(long, value_name = "BUILD", value_parser = word)]
    pub(crate) release: Option<String>,
    /// Everything that died at work, and every message of the dead-letter queue
    #[arg(long)]
    pub(crate) all: bool,
    /// Events a second at most
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) rate: u32,
    /// With --release and --all: only say what would be done, which is the default
    #[arg(long, conflicts_with_all = ["execute", "keys"])]
    pub(crate) dry_run: bool,
    /// With --release and --all: do it, instead of saying what would be done
    #[arg(long, visible_alias = "yes")]
    pub(crate) execute: bool,
    /// Who does it
    #[arg(long, value_name = "WHO", value_parser = word)]
    pub(crate) by: String,
    /// Why
    #[arg(long, value_name = "WHY", value_parser = word)]
    pub(crate) reason: String,
}

/// Which dead events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    /// Those named.
    Keys,
    /// Those that died under a build.
    Release(&'a str),
    /// All that died at work.
    All,
}

impl Redrive {
    /// Which of the three was asked for.
    pub(crate) fn which(&self) -> Which<'_> {
        match (&self.release, self.all) {
            (Some(release), _) => Which::Release(release),
            (None, true) => Which::All,
            (None, false) => Which::Keys,
        }
    }

    /// The part that resolving has too.
    pub(crate) fn by_hand(&self) -> ByHand {
        let (by, reason) = (self.by.clone(), self.reason.clone());
        ByHand { keys: self.keys.clone(), by, reason }
    }
}
