//! How far long work is: a bar on the standard error of a terminal.
//!
//! The bar is `indicatif`'s. Nothing of it is drawn where standard error is no terminal, or one that
//! cannot move its cursor, nor with `--json`; it has no colours for `NO_COLOR` to take away. It goes
//! with its value, so that whatever ends a command, early or not, a report or an error stands on a
//! clean line.

mod margin;

use crate::time;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

/// The words behind it fit beside it on a line of eighty columns; where they do not, they are cut.
const TEMPLATE: &str = "[{bar:16}] {percent:>3} %  {wide_msg}";
/// A rate is said once it rests on this much time.
const RATE_FROM_MS: u64 = 500;
/// Shorter times than this are not worth a word.
const LEFT_FROM_MS: u64 = 1_000;
/// Steps that follow one another faster than a terminal is written to are not each drawn; so that the
/// last of them is, when the next takes its time, the bar is drawn again and again.
const REDRAWN_EVERY: Duration = Duration::from_millis(250);

/// Where bars are drawn.
pub(crate) enum Screen {
    /// On standard error.
    Terminal,
    /// Nowhere.
    Nowhere,
    /// In memory, eighty columns wide.
    #[cfg(test)]
    Memory(indicatif::InMemoryTerm),
}

impl Screen {
    /// Standard error, where a person looks at it.
    pub(crate) fn of_a_person(json: bool) -> Self {
        let is_seen = !json && io::stderr().is_terminal() && !console::is_dumb();
        if is_seen { Self::Terminal } else { Self::Nowhere }
    }

    /// Whether a person looks.
    pub(crate) const fn is_seen(&self) -> bool {
        !matches!(self, Self::Nowhere)
    }

    fn target(&self) -> ProgressDrawTarget {
        match self {
            Self::Terminal => margin::stderr(),
            Self::Nowhere => ProgressDrawTarget::hidden(),
            #[cfg(test)]
            Self::Memory(terminal) => ProgressDrawTarget::term_like(Box::new(terminal.clone())),
        }
    }
}

/// A bar. It is cleared when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// What was done before it began.
    before: Reached,
}

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reached {
    /// Of the bar's length, in whatever it is measured.
    pub(crate) length: u64,
    /// Of what the rate counts.
    pub(crate) count: u64,
}

impl Reached {
    /// So many, where the length is their number.
    pub(crate) const fn of(count: u64) -> Self {
        Self { length: count, count }
    }
}

impl Progress {
    /// A bar of a length, some of which may be done. What has one step needs no bar.
    pub(crate) fn new(screen: &Screen, length: u64, before: Reached) -> Self {
        let target = if length > 1 { screen.target() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style.progress_chars("█░"));
        }
        bar.update(|state| state.set_pos(before.length));
        // What is there already says nothing of how long the rest takes.
        bar.reset_eta();
        if matches!(screen, Screen::Terminal) && length > 1 {
            bar.enable_steady_tick(REDRAWN_EVERY);
        }
        Self { bar, before }
    }

    /// Shows how much is done, and says it.
    pub(crate) fn reach(&self, now: Reached, said: &str) {
        self.bar.set_position(now.length);
        let mut said = said.to_owned();
        let spent_ms = u64::try_from(self.bar.elapsed().as_millis()).unwrap_or(u64::MAX);
        if spent_ms >= RATE_FROM_MS {
            let count = now.count.saturating_sub(self.before.count);
            let rate = count.saturating_mul(1_000) / spent_ms.max(1);
            said = format!("{said}, {rate}/s");
        }
        let left_ms = u64::try_from(self.bar.eta().as_millis()).unwrap_or(u64::MAX);
        if left_ms >= LEFT_FROM_MS {
            said = format!("{said}, {} left", time::span(left_ms));
        }
        self.bar.set_message(said);
    }

    /// A line on standard error, above the bar; also where there is none.
    pub(crate) fn say(&self, text: &str) {
        // With standard error gone there is nobody left to tell.
        self.bar.suspend(|| _ = writeln!(io::stderr(), "{text}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::InMemoryTerm;

    fn drawn(length: u64, before: Reached) -> (InMemoryTerm, Progress) {
        let terminal = InMemoryTerm::new(5, 80);
        let progress = Progress::new(&Screen::Memory(terminal.clone()), length, before);
        (terminal, progress)
    }

    #[test]
    fn a_bar_shows_share_percent_and_words_and_is_gone_with_its_value() {
        let (terminal, progress) = drawn(200, Reached::default());
        assert_eq!(terminal.contents(), "[░░░░░░░░░░░░░░░░]   0 %");
        progress.reach(Reached::of(50), "50 of 200 delivered");
        let shown = terminal.contents();
        assert!(shown.starts_with("[████░░░░░░░░░░░░]  25 %  50 of 200 delivered"), "{shown}");
        progress.reach(Reached::of(200), "200 of 200 delivered");
        assert!(terminal.contents().starts_with("[████████████████] 100 %"));
        drop(progress);
        assert_eq!(terminal.contents(), "");
    }

    #[test]
    fn a_way_out_in_the_middle_clears_it_as_well() {
        let terminal = InMemoryTerm::new(5, 80);
        let work = || -> Result<(), ()> {
            let progress = Progress::new(&Screen::Memory(terminal.clone()), 10, Reached::default());
            progress.reach(Reached::of(3), "3 of 10");
            assert!(terminal.contents().contains("30 %"));
            Err(())
        };
        assert!(work().is_err());
        assert_eq!(terminal.contents(), "");
    }

    #[test]
    fn words_that_are_too_long_are_cut_and_stay_on_one_line() {
        let (terminal, progress) = drawn(10, Reached::default());
        progress.reach(Reached::of(5), &"words ".repeat(40));
        let shown = terminal.contents();
        assert_eq!((shown.lines().count(), shown.chars().count()), (1, 79), "{shown:?}");
    }

    #[test]
    fn what_was_done_before_is_shown_and_not_taken_for_speed() {
        let (terminal, progress) = drawn(1_000, Reached { length: 500, count: 70_000 });
        assert_eq!(terminal.contents(), "[████████░░░░░░░░]  50 %");
        // Two steps in a moment: a rate would be a guess, and no bar claims 70,000 of them.
        progress.reach(Reached { length: 502, count: 70_002 }, "70002 fetched");
        let shown = terminal.contents();
        assert!(shown.contains("70002 fetched"), "{shown}");
        assert!(!shown.contains("/s"), "{shown}");
    }

    #[test]
    fn one_step_and_nobody_who_looks_need_no_bar() {
        let (terminal, progress) = drawn(1, Reached::default());
        progress.reach(Reached::of(1), "1 of 1");
        assert_eq!(terminal.contents(), "");
        let hidden = Progress::new(&Screen::Nowhere, 100, Reached::default());
        hidden.reach(Reached::of(7), "7 of 100");
        assert!(hidden.bar.is_hidden());
    }
}
