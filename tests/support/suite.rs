//! A suite whose cases share something costly: named cases, one line each, one after another.

use libtest_mimic::{Arguments, Failed, Trial};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

/// A named case over what the suite shares.
pub struct Case<C: 'static> {
    /// A sentence in `snake_case`.
    pub name: &'static str,
    /// Runs it; a panic is its failure.
    pub run: fn(&C),
}

/// Starts what is shared, unless no case is asked for; runs the cases in order; ends what is
/// shared. Takes libtest's arguments: a filter, `--exact`, `--list`, `--skip`.
pub fn run_cases<C: Send + Sync + 'static>(
    cases: Vec<Case<C>>,
    start: impl FnOnce() -> Result<C, String>,
    end: impl FnOnce(C) -> Result<(), String>,
) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The cases measure the same queue: two at once would see each other.
    arguments.test_threads = Some(1);
    if arguments.list || cases.iter().all(|case| is_filtered(&arguments, case.name)) {
        let trials = cases.into_iter().map(|case| Trial::test(case.name, || Ok(())));
        return libtest_mimic::run(&arguments, trials.collect()).exit_code();
    }
    let shared = match start() {
        Ok(shared) => Arc::new(shared),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    note_panics();
    let trials = cases
        .into_iter()
        .map(|case| {
            let shared = Arc::clone(&shared);
            Trial::test(case.name, move || {
                catch_unwind(AssertUnwindSafe(|| (case.run)(&shared)))
                    .map_err(|_| Failed::from(last_panic()))
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let ended = match Arc::try_unwrap(shared) {
        Ok(shared) => {
            catch_unwind(AssertUnwindSafe(|| end(shared))).unwrap_or_else(|_| Err(last_panic()))
        }
        Err(_) => Err("a case kept what the suite shares".to_owned()),
    };
    match ended {
        Ok(()) => conclusion.exit_code(),
        Err(error) => {
            eprintln!("after the last case: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs what takes a whole program to one case, if it is asked for; it prints its own report, last
/// line included. Takes libtest's arguments, like [`run_cases`].
pub fn run_alone(name: &'static str, run: impl FnOnce() -> ExitCode) -> ExitCode {
    let arguments = Arguments::from_args();
    if arguments.list || is_filtered(&arguments, name) {
        return libtest_mimic::run(&arguments, vec![Trial::test(name, || Ok(()))]).exit_code();
    }
    run()
}

fn is_filtered(arguments: &Arguments, name: &str) -> bool {
    let matches = |pattern: &String| {
        if arguments.exact { name == pattern } else { name.contains(pattern.as_str()) }
    };
    arguments.filter.as_ref().is_some_and(|filter| !matches(filter))
        || arguments.skip.iter().any(matches)
}

/// What the last panic said, and where. The default hook would print it between the lines of the
/// report, with a backtrace through the runner.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
}

fn last_panic() -> String {
    std::mem::take(&mut *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner))
}
