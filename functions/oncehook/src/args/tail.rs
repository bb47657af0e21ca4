//! `oncehook tail`: what to follow, and where to pass it on.

use super::Filter;
use crate::time::Moment;
use clap::Args;

/// `oncehook tail`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook tail
  oncehook tail --source stripe-live --since 10m --json
  oncehook tail --since 1h --once
  oncehook tail --source stripe-live --forward http://127.0.0.1:3000/webhooks

Reads the index by_day from a cursor, again and again, so that a laptop that slept goes on where it \
was. Events that reach the index late, or share a millisecond, are shown all the same, and once. With \
--json each line is one event.

--forward posts each event's body, byte for byte, with the headers the ledger keeps and the event's \
key as x-oncehook-key. It was verified when it came in; the signature header is as old as the event, \
so a program that checks its age must be told to trust this machine instead. Each try is made once: \
what is not answered 2xx is said, and not sent again.

Ctrl-C is how following ends: the exit code is 0, or 1 if anything was not answered 2xx. With --once \
there is an end, and Ctrl-C before it is 130.")]
pub(crate) struct Tail {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Begin with what was received since: 15m, 2h, 3d, or a time
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = Moment::parse)]
    pub(crate) since: Moment,
    /// Show what is there and end, instead of waiting for more
    #[arg(long)]
    pub(crate) once: bool,
    /// Look again after this many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    pub(crate) every: u64,
    /// Post each event to this address
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(crate) forward: Option<String>,
}

fn url(text: &str) -> Result<String, String> {
    let url: reqwest::Url = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is no address; write http://127.0.0.1:3000/webhooks"))
    }
}
