//! Faults: thousands of deliveries to the deployed stack while its processes are killed between any
//! two calls to AWS, and AWS does the worst it is allowed to do.
//!
//! A proxy in front of AWS holds each call of receiver, consumer and steward, and kills the process
//! that made it, before the call or after; or the call is refused, broken, late, made twice. At the
//! end an auditor that shares no code with the product says what was lost, doubled or reversed.
//!
//! The deliveries, and which call in a row meets which fault, are a function of the seed. Which
//! delivery that call belongs to is up to real processes on a real clock, so a seed brings back the
//! plan, not the interleaving.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test code: a failed unwrap is a failed test, and what it prints is its report"
)]

mod audit;
mod call;
mod drive;
mod lambda;
mod microburst;
mod outside;
mod plan;
mod process;
mod proxy;
mod rig;
mod schedule;
mod settle;
mod slow;
mod stream;
mod wire;
mod witness;

use audit::{Breach, Finding};
use drive::Drive;
use plan::Plan;
use rig::Rig;
use schedule::Schedule;
use std::{process::ExitCode, time::Instant};
use support::{now_ms, run_alone};

/// Deliveries of the smoke that `cargo test` runs; `make faults` asks for more.
const SMOKE: usize = 300;
/// From this many deliveries on every place meets every kind of fault, and not only the kills.
const THOROUGH: usize = 1_000;
/// Findings printed in full.
const SHOWN: usize = 12;

fn main() -> ExitCode {
    run_alone("every_promise_is_kept_under_faults", || {
        if !process::can_be_found() {
            println!(
                "faults: not run: the processes behind connections are found in Linux's /proc"
            );
            return ExitCode::SUCCESS;
        }
        match asked_for() {
            Ok((seed, size)) => start(seed, size),
            Err(error) => {
                eprintln!("faults: {error}");
                ExitCode::from(2)
            }
        }
    })
}

/// Seed and deliveries, from `FAULTS_SEED` and `FAULTS_SIZE`.
fn asked_for() -> Result<(u64, usize), String> {
    let number = |name: &str| match std::env::var(name) {
        Ok(text) if !text.is_empty() => {
            let bad = |error| format!("{name} is {text:?}, expected a whole number ({error})");
            text.parse::<u64>().map(Some).map_err(bad)
        }
        Ok(_) | Err(_) => Ok(None),
    };
    let seed = number("FAULTS_SEED")?.unwrap_or_else(|| now_ms() % 1_000_000);
    let size = number("FAULTS_SIZE")?.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    Ok((seed, size.unwrap_or(SMOKE).max(1)))
}

fn start(seed: u64, size: usize) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let outcome = runtime.block_on(run(seed, size));
    runtime.shutdown_background();
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("faults: {error}; seed {seed}");
            ExitCode::FAILURE
        }
    }
}

/// One run; whether every promise was kept.
async fn run(seed: u64, size: usize) -> Result<bool, String> {
    let begun = Instant::now();
    let mut plan = Plan::new(seed, size)?;
    println!(
        "faults: seed {seed}, {} events in {} deliveries; deploying",
        plan.events.len(),
        plan.deliveries.len()
    );
    let rig = Rig::start(seed, plan.deliveries.len() >= THOROUGH, &mut plan).await?;
    tokio::spawn(rig.when_interrupted());
    let drive = Drive::new(rig, plan, seed);
    drive.run().await?;
    println!("faults: all sent after {} s; letting it settle", begun.elapsed().as_secs());
    let waited = settle::settle(&drive).await?;
    println!("faults: {} rows waited for a number that never came", waited.len());
    let ends = settle::ends(&drive, waited).await?;
    let findings = ends.findings();
    let (settled, dead) = settle::finished(&ends);
    drop(ends);
    for finding in findings.iter().take(SHOWN) {
        show(&drive, finding);
    }
    let missing = drive.rig.schedule.never_injected();
    tell(&drive.rig.schedule, settled, dead, drive.rig.witness.refused_late());
    for place in &missing {
        println!("faults: reached, and never injected: {place}");
    }
    let schedule = std::sync::Arc::clone(&drive.rig.schedule);
    let drive = std::sync::Arc::into_inner(drive).ok_or("a part of the run is still running")?;
    drive.rig.end()?;
    println!("faults: {} s", begun.elapsed().as_secs());
    let of = |breach| findings.iter().filter(|finding| finding.breach == breach).count();
    println!(
        "faults: {} injected, lost {}, doubled {}, reversed {}, seed {seed}",
        schedule.total(),
        of(Breach::Lost),
        of(Breach::Doubled),
        of(Breach::Reversed),
    );
    Ok(findings.is_empty() && missing.is_empty())
}

/// What was injected, and where.
fn tell(schedule: &Schedule, settled: usize, dead: usize, refused_late: u32) {
    println!("faults: {settled} rows settled, {dead} dead as they have to be");
    let kinds: Vec<String> =
        schedule.by_kind().iter().map(|(fault, n)| format!("{fault} {n}")).collect();
    println!("faults: {}", kinds.join(", "));
    println!("faults: {refused_late} writes of workers whose lease was over were refused");
    println!("faults: {:<48} {:>8} {:>8} {:>8}", "place", "reached", "before", "after");
    for (place, reached, before, after) in schedule.places() {
        println!("faults: {:<48} {reached:>8} {before:>8} {after:>8}", place.to_string());
    }
}

fn show(drive: &Drive, finding: &Finding) {
    println!("faults: {:?}: {}", finding.breach, finding.key);
    println!("    expected  {}", finding.expected);
    println!("    found     {}", finding.found);
    print!("{}", drive.rig.witness.history(&finding.key));
}
