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
mod paste;
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
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let (json, stack) = (cli.global.json, cli.global.stack.clone());
    // Every command's calls to AWS in one future are larger than a stack likes.
    match Box::pin(commands::run(cli)).await {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(1),
        Err(failure) => {
            let failure = failure.on(stack.as_deref());
            output::complain(&failure, json);
            ExitCode::from(&failure)
        }
    }
}

/// Help and version are no failures; a wrong call is one like any other.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && args::wrong_call::asks_for_json(std::env::args_os()) {
        let failure = args::wrong_call::failure(error);
        output::complain(&failure, true);
        return ExitCode::from(&failure);
    }
    // With the stream gone there is nobody left to tell.
    let _told = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
