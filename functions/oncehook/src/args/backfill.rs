//! `oncehook backfill-versions` as typed.

use clap::{Args, ValueHint};
use ledger::Unit;
use std::path::PathBuf;

/// `oncehook backfill-versions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook backfill-versions customers.jsonl --dry-run
  oncehook backfill-versions customers.csv --rate 200
  oncehook backfill-versions customers.jsonl --from-line 40001

The last goes on after an interruption.

Lines of JSON, or CSV with a header, if the file's name ends in .csv:
  {\"entity\": \"stripe-live#subscription#sub_1\", \"version\": 7, \"state\": {\"a\": 1}}
  entity,version,state
  stripe-live#subscription#sub_1,7,\"{\"\"a\"\": 1}\"

A version is written as the entity type's events write it (unit in infra/sources.toml). `state` may be \
left out: what is stored then stays. An entity that is newer, or has ended, is left alone, so that the \
command may run beside live traffic, and again after any interruption. Ctrl-C ends it with exit code 130 and the \
command that goes on at the first line that is not done.")]
pub(crate) struct Backfill {
    /// JSON lines, or CSV
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Write nothing; say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Begin at this line of the file
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from_line: u64,
    /// Entities a second at most
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) rate: u32,
    /// How versions are written, for entity types that infra/sources.toml does not name
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub(crate) unit: Option<Unit>,
}

fn unit(word: &str) -> Result<Unit, String> {
    let read = serde_json::from_value(serde_json::Value::from(word));
    read.map_err(|_| "allowed: integer, s, ms, us, iso".to_owned())
}
