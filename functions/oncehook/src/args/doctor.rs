//! `oncehook doctor`: no options of its own.

use clap::Args;

/// `oncehook doctor`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook doctor
  oncehook doctor --stack oncehook --json

Each check is ok, warn or fail, and says what was found, what was expected and what to do. It exits \
with 1 when one fails. Permissions are tried by calls that change nothing: reads, and writes under a \
condition that never holds. Sending to the queue cannot be tried without sending, so it is not. No \
secret is shown.")]
pub(crate) struct Doctor {}
