//! What a person hears of a run while it goes on: how much of the window is read, what came of it, why
//! it waits, and that it is too slow for what the provider keeps.

use crate::{
    context,
    operator::Operator,
    progress::{Progress, Reached},
    time::{self, utc},
};
use ledger::Millis;
use std::sync::{Mutex, PoisonError};
use workflow::replay::{Checkpoint, Watch};

const DAY_MS: u64 = 86_400_000;

/// Tells standard error how it goes.
pub(in crate::commands) struct Shown {
    progress: Progress,
    /// When this process began, and with how much of the window read.
    began: (Millis, u64),
    /// When the provider forgets the window's beginning, where it says so.
    forgotten_at: Option<Millis>,
    heard: Mutex<Heard>,
}

/// What the run has said.
struct Heard {
    last: Checkpoint,
    is_warned: bool,
}

impl Shown {
    /// A run that goes on from a checkpoint. `days`: how long the provider keeps an event.
    pub(in crate::commands) fn new(
        operator: &Operator,
        from: Checkpoint,
        now: Millis,
        days: Option<u32>,
    ) -> Self {
        let (window, read_ms) = (from.window, read_ms(&from));
        let before = Reached { length: read_ms, count: from.tally.fetched };
        let kept_ms = |days| u64::from(days).saturating_mul(DAY_MS);
        Self {
            progress: operator.progress(window.ms(), before),
            began: (now, read_ms),
            forgotten_at: days.map(|days| window.since.plus(kept_ms(days))),
            heard: Mutex::new(Heard { last: from, is_warned: false }),
        }
    }

    /// How far the run is: what it has kept last.
    pub(in crate::commands) fn last(&self) -> Checkpoint {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).last.clone()
    }

    fn hear(&self, checkpoint: &Checkpoint, now: Millis) {
        let tally = &checkpoint.tally;
        let (new, duplicate, failed) = (tally.new, tally.duplicate, tally.failed);
        let reached = Reached { length: read_ms(checkpoint), count: tally.fetched };
        self.progress.reach(reached, &format!("{new} new, {duplicate} duplicate, {failed} failed"));
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.last = checkpoint.clone();
        if !heard.is_warned
            && let Some(warning) = self.too_late(checkpoint, now)
        {
            heard.is_warned = true;
            self.progress.say(&warning);
        }
    }

    /// Whether the provider will forget the window's beginning before the run gets there.
    fn too_late(&self, checkpoint: &Checkpoint, now: Millis) -> Option<String> {
        let forgotten_at = self.forgotten_at?;
        let (began_at, before_ms) = self.began;
        let read_ms = read_ms(checkpoint);
        let left_ms = checkpoint.window.ms().saturating_sub(read_ms);
        let read_now_ms = u128::from(read_ms.checked_sub(before_ms).filter(|ms| *ms > 0)?);
        let needed_ms = u128::from(now.since(began_at)) * u128::from(left_ms) / read_now_ms;
        let ends_at = now.plus(u64::try_from(needed_ms).unwrap_or(u64::MAX));
        (left_ms > 0 && ends_at > forgotten_at).then(|| {
            format!(
                "too slow: the provider forgets the window's beginning at {}",
                utc(forgotten_at)
            )
        })
    }
}

/// How much of the window is read. Lists begin with the newest, and none says how long it is, so the
/// window's time is the measure, once the first page has shown where the list begins.
fn read_ms(checkpoint: &Checkpoint) -> u64 {
    let window = checkpoint.window;
    match (&checkpoint.next, checkpoint.oldest) {
        (None, _) => window.ms(),
        (Some(_), None) => 0,
        (Some(_), Some(oldest)) => {
            // A page that ends where the window begins may not be the last.
            window.until.since(oldest.max(window.since)).min(window.ms() / 100 * 99)
        }
    }
}

impl Watch for Shown {
    fn waits(&self, why: &str, ms: u64) {
        self.progress.say(&format!("{why}; waiting {}", time::span(ms)));
    }

    fn reached(&self, checkpoint: &Checkpoint) {
        self.hear(checkpoint, context::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::InMemoryTerm;
    use workflow::replay::pager::{Cursor, Window};

    const UNTIL: Millis = Millis(1_796_040_000_000);

    /// Two days of a list that goes back three, some of which is read.
    fn run(read_ms: Option<u64>) -> Checkpoint {
        let window = Window::new(UNTIL.minus(2 * DAY_MS), UNTIL);
        let mut checkpoint = Checkpoint::new("s", String::new(), window, Vec::new());
        checkpoint.next = Some(Cursor::After("evt_1".to_owned()));
        checkpoint.oldest = read_ms.map(|ms| UNTIL.minus(ms));
        checkpoint.tally.fetched = 120;
        (checkpoint.tally.new, checkpoint.tally.duplicate) = (20, 100);
        checkpoint
    }

    fn shown(from: Checkpoint) -> (Shown, InMemoryTerm) {
        let terminal = InMemoryTerm::new(5, 80);
        let operator = Operator::typing("oncehook replay").looking_at(&terminal);
        (Shown::new(&operator, from, UNTIL, Some(3)), terminal)
    }

    #[test]
    fn the_bar_measures_the_windows_time_and_says_what_came_of_the_events() {
        let (run_shown, terminal) = shown(run(None));
        assert_eq!(terminal.contents(), "[░░░░░░░░░░░░░░░░]   0 %");
        run_shown.hear(&run(Some(DAY_MS)), UNTIL.plus(2_000));
        let line = terminal.contents();
        let expected = "[████████░░░░░░░░]  50 %  20 new, 100 duplicate, 0 failed";
        assert!(line.starts_with(expected), "{line}");
        run_shown.hear(&run(Some(3 * DAY_MS)), UNTIL.plus(3_000));
        assert!(terminal.contents().contains("  99 %  "), "a page may follow");
        drop(run_shown);
        assert_eq!(terminal.contents(), "");
        let (_shown, terminal) = shown(run(Some(DAY_MS)));
        assert_eq!(terminal.contents(), "[████████░░░░░░░░]  50 %", "a run that goes on");
    }

    #[test]
    fn a_run_too_slow_for_what_the_provider_keeps_says_so() {
        // Two days back of three: one day is left for all of it.
        let (first, _) = shown(run(None));
        let tenth = run(Some(DAY_MS / 5));
        let after = |hours: u64| first.too_late(&tenth, UNTIL.plus(hours * 3_600_000));
        assert_eq!(after(1), None, "ten hours in all");
        let said = after(3).unwrap_or_default();
        assert!(said.starts_with("too slow: the provider forgets"), "thirty hours: {said:?}");
        // What an earlier process read says nothing of how fast this one is.
        let (second, _) = shown(run(Some(DAY_MS)));
        let half = run(Some(DAY_MS + DAY_MS / 10));
        assert!(second.too_late(&half, UNTIL.plus(3 * 3_600_000)).is_some(), "thirty hours again");
        assert_eq!(second.too_late(&run(Some(DAY_MS)), UNTIL), None, "nothing to judge by");
    }
}
