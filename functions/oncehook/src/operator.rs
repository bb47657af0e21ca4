//! The operator, as far as long work concerns them: whether they see how far it is, whether they have
//! had enough of it, and what they typed.
//!
//! Ctrl-C lets go of what is in flight. Every write is one conditional write, made to be cut off at
//! any line, so the quickest end is also a right one: what was confirmed is counted, and what was not
//! is met again by the command that goes on. The exit code is then 130, as a shell has it.
//!
//! A command that only looks is left to the system, which ends it.

use crate::{
    output::{note, quoted},
    progress::{Progress, Reached, Screen},
};
use std::{
    future::Future,
    sync::{Arc, atomic::AtomicBool},
};

/// The exit code of what was interrupted: 128 and the number of the signal.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whoever runs the command.
pub(crate) struct Operator {
    /// The command line, the program first.
    typed: Vec<String>,
    screen: Screen,
    patience: Patience,
}

/// How long they let it work.
enum Patience {
    /// Until Ctrl-C.
    CtrlC,
    /// Until this is so.
    #[cfg(test)]
    Until(Box<dyn Fn() -> bool>),
}

/// How the command that goes on differs from the one that was typed.
#[derive(Debug)]
pub(crate) enum Change {
    /// An option has this value, whether it was typed or not.
    Set(&'static str, String),
    /// A flag is left out.
    Drop(&'static str),
}

impl Operator {
    /// Who typed this process's command line.
    pub(crate) fn here(json: bool) -> Self {
        let typed = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        Self {
            typed: typed.collect(),
            screen: Screen::of_a_person(json),
            patience: Patience::CtrlC,
        }
    }

    /// Whether anybody sees a bar.
    pub(crate) const fn looks(&self) -> bool {
        self.screen.is_seen()
    }

    /// A bar for work of this length.
    pub(crate) fn progress(&self, length: u64, before: Reached) -> Progress {
        Progress::new(&self.screen, length, before)
    }

    /// Does the work; `None` when the operator has had enough before it ends.
    pub(crate) async fn interruptible<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match &self.patience {
            Patience::CtrlC => {
                the_second_time_ends_at_once();
                tokio::select! {
                    biased;
                    _ = tokio::signal::ctrl_c() => None,
                    done = work => Some(done),
                }
            }
            #[cfg(test)]
            Patience::Until(enough) => {
                let enough = std::future::poll_fn(|context| {
                    if enough() {
                        return std::task::Poll::Ready(());
                    }
                    context.waker().wake_by_ref();
                    std::task::Poll::Pending
                });
                tokio::select! {
                    biased;
                    () = enough => None,
                    done = work => Some(done),
                }
            }
        }
    }

    /// They left where nothing more is said: their next prompt begins a line of its own.
    pub(crate) fn leaves(&self) {
        if self.looks() {
            note("");
        }
    }

    /// The command as typed, with some changes, to be pasted.
    pub(crate) fn again(&self, changes: &[Change]) -> String {
        let mut words: Vec<&str> = Vec::new();
        let mut left: Vec<&Change> = changes.iter().collect();
        let mut typed = self.typed.iter().map(String::as_str).peekable();
        // Behind `--` nothing is an option.
        while let Some(word) = typed.next_if(|word| *word != "--") {
            let name = word.split('=').next().unwrap_or(word);
            let Some(change) = changes.iter().find(|change| change.name() == name) else {
                words.push(word);
                continue;
            };
            if matches!(change, Change::Set(..)) && name == word {
                // Its value as it was typed.
                _ = typed.next();
            }
            words.extend(change.words());
            left.retain(|change| change.name() != name);
        }
        words.extend(left.into_iter().flat_map(Change::words));
        let words: Vec<String> = words.into_iter().chain(typed).map(quoted).collect();
        words.join(" ")
    }
}

impl Change {
    const fn name(&self) -> &'static str {
        match self {
            Self::Set(name, _) | Self::Drop(name) => name,
        }
    }

    /// The words of it.
    fn words(&self) -> Vec<&str> {
        match self {
            Self::Set(name, value) => vec![*name, value.as_str()],
            Self::Drop(_) => Vec::new(),
        }
    }
}

/// Where the first Ctrl-C cannot be heard, or something does not let go, the next one ends the process
/// from within its signal handler.
fn the_second_time_ends_at_once() {
    use signal_hook::{consts::SIGINT, flag};
    let is_second = Arc::new(AtomicBool::new(false));
    // Asked in this order. Should the system refuse a handler, Ctrl-C does what it always does.
    _ = flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&is_second))
        .and_then(|_| flag::register(SIGINT, is_second));
}

#[cfg(test)]
mod tests;
