//! What `make run` shows once the stack is up: the samples of `events/`, delivered the way
//! providers deliver, and what became of them.
//!
//! Every run puts an id of its own into its events and entities, so it works as well on a stack
//! that has seen others. With `--once` it compares everything with what must be and says so by its
//! exit status; without, it stays and shows what changes, until Ctrl-C.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal, in the test package: what it prints is its purpose"
)]

mod compare;
mod deliver;
mod live;
mod local_stripe;
mod story;
mod tables;

use clap::{Parser, builder::FalseyValueParser};
use std::{path::PathBuf, process::ExitCode};
use support::{EnvFile, Stack, now_ms};

/// Deliver the sample events to a running stack and show what becomes of them.
#[derive(Parser)]
#[command(name = "demo")]
struct Arguments {
    /// Check everything, then exit: 0 if all is as it must be, 1 if not.
    #[arg(long, env = "ONCE", value_parser = FalseyValueParser::new())]
    once: bool,
    /// The variables of the stack, as `make up` writes them; else those of the environment.
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Start a Stripe as well, on the port where the stack's functions ask providers, and show what
    /// becomes of its subscriptions.
    #[arg(long, value_name = "PORT")]
    local_stripe: Option<u16>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let process = EnvFile::of_process();
    let env = match &arguments.env_file {
        Some(file) => EnvFile::read(file)?.over(process),
        None => process,
    };
    let stack = Stack::connect(env).await?;
    let begun = now_ms();
    let story = story::tell(&base36(begun))?;
    let found = deliver::deliver(&stack, &story).await?;
    tables::show_all(&found);
    let differences = compare::differences(&story, &found);
    let _stripe = match arguments.local_stripe {
        Some(port) => Some(local_stripe::show(&stack, port).await?),
        None => None,
    };
    match differences.first() {
        None => println!(
            "\nall as it must be: every event has one row, every state change was made once"
        ),
        Some(first) => eprintln!(
            "\nnot as it must be ({} differences), the first:\n{first}",
            differences.len()
        ),
    }
    if arguments.once {
        return Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    tables::show_what_next(&stack, &story);
    live::watch(&stack, begun).await?;
    Ok(ExitCode::SUCCESS)
}

/// A short id that sorts by time.
fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 {
        digits.push(char::from_digit(u32::try_from(number % 36).unwrap_or(0), 36).unwrap_or('0'));
        number /= 36;
    }
    digits.iter().rev().collect()
}
