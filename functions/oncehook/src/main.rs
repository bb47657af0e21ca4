//! `oncehook`, the operator's command line: find, explain, send, verify and re-run events.
//!
//! Reads what was typed ([`args`]), resolves what it stands on ([`context`]), runs one command
//! ([`commands`]) and prints its report ([`output`]). Exit codes: 0 fine, 1 something needs
//! attention, 2 the call is wrong, 3 AWS cannot be reached, 130 interrupted.

mod args;
mod commands;
mod context;
mod delivery;
mod explain;
mod failure;
mod http;
mod keys;
mod operator;
mod output;
mod pace;
mod progress;
mod rows;
mod sample;
mod stack;
#[cfg(test)]
mod testing;
mod time;
mod window;

use clap::Parser as _;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let json = cli.global.json;
    // Every command's calls to AWS in one future are larger than a stack likes.
    match Box::pin(commands::run(cli)).await {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(1),
        Err(failure) => {
            output::complain(&failure, json);
            ExitCode::from(&failure)
        }
    }
}
