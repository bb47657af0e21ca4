//! Which events: by source, by where they stand, by type.

use clap::Args;
use ledger::{Life, Outcome, Row, SourceName, Status};

/// Options that choose among the events of a window.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Filter {
    /// Only this source
    #[arg(long, value_parser = SourceName::new)]
    pub(crate) source: Option<SourceName>,
    /// Only this status or outcome; several are joined by commas
    #[arg(long, visible_alias = "outcome", value_name = "STATUS", value_delimiter = ',', value_parser = Standing::parse)]
    pub(crate) status: Vec<Standing>,
    /// Only this event type; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) event_type: Vec<String>,
}

impl Filter {
    /// Whether every event of the source is wanted, so that no row need be read to choose.
    pub(crate) const fn is_open(&self) -> bool {
        self.status.is_empty() && self.event_type.is_empty()
    }

    /// Whether a row is wanted.
    pub(crate) fn is_met_by(&self, row: &Row) -> bool {
        let evidence = &row.evidence;
        self.source.as_ref().is_none_or(|source| evidence.source == *source)
            && (self.status.is_empty() || self.status.iter().any(|one| one.is_met_by(&row.life)))
            && (self.event_type.is_empty() || self.event_type.contains(&evidence.event_type))
    }
}

/// A status, or the outcome of a settled row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Every status but dead and settled.
    Pending,
    /// One status.
    Status(Status),
    /// Settled with this outcome.
    Outcome(Outcome),
}

impl Standing {
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        let status = Status::parse(word).map(Self::Status);
        let outcome = || Outcome::parse(word).map(Self::Outcome);
        let pending = || (word == "pending").then_some(Self::Pending);
        status.or_else(outcome).or_else(pending).ok_or_else(|| {
            let statuses = Status::ALL.iter().map(|status| status.as_str());
            let outcomes = Outcome::ALL.iter().map(|outcome| outcome.as_str());
            let words: Vec<&str> = statuses.chain(outcomes).collect();
            format!("allowed: pending, {}", words.join(", "))
        })
    }

    /// Whether a row stands so.
    pub(crate) fn is_met_by(self, life: &Life) -> bool {
        match self {
            Self::Pending => life.status.is_pending(),
            Self::Status(status) => life.status == status,
            Self::Outcome(outcome) => life.outcome == Some(outcome),
        }
    }
}
