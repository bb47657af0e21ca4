//! `completions`: what a shell needs to complete commands and options.

use crate::{
    args::{Cli, Completions},
    failure::Failure,
    output::print_text,
};
use clap::CommandFactory as _;

/// Prints the script. It is no report: `--json` does not apply.
pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "oncehook", &mut script);
    print_text(&String::from_utf8_lossy(&script))
}
