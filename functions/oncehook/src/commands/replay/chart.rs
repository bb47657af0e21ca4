//! Pictures made of blocks: how far a run is, and where in time the new events lie.

use super::Shown;
use crate::{
    output::{Page, Tone},
    time::{self, utc},
};
use ledger::Millis;
use std::collections::BTreeMap;
use workflow::replay::{Checkpoint, SLOT_MS};

const BAR: usize = 24;
const WIDTH: usize = 40;
/// More lines than these are put together into longer slots.
const LINES_MAX: usize = 60;
/// Slots in a row without a new event are drawn up to this many.
const EMPTY_MAX: u64 = 3;
const DAY_MS: u64 = 86_400_000;

/// One line: how much of the window is read. Lists begin with the newest, and none says how long it
/// is, so the window's time is the measure, once the first page has shown where the list begins.
pub(super) fn bar(shown: &Shown, checkpoint: &Checkpoint, now: Millis) -> String {
    let tally = &checkpoint.tally;
    let spent_ms = now.since(shown.began_at).max(1);
    let rate = tally.fetched.saturating_mul(1_000) / spent_ms;
    let done = share(checkpoint);
    let full = usize::try_from(done.saturating_mul(BAR as u64) / 100).unwrap_or(BAR).min(BAR);
    let mut line = format!(
        "[{}{}] {done:>3} % of the window   {} fetched, {} new, {} duplicate, {} failed, {rate}/s",
        "█".repeat(full),
        "░".repeat(BAR - full),
        tally.fetched,
        tally.new,
        tally.duplicate,
        tally.failed,
    );
    if let Some(warning) = too_late(shown, done, spent_ms, now) {
        line = format!("{line}   {warning}");
    }
    line
}

/// How much of the window is read, in hundredths.
fn share(checkpoint: &Checkpoint) -> u64 {
    let window = checkpoint.window;
    match (&checkpoint.next, checkpoint.oldest) {
        (None, _) => 100,
        (Some(_), None) => 0,
        (Some(_), Some(oldest)) => {
            let read_ms = window.until.since(oldest.max(window.since));
            (read_ms.saturating_mul(100) / window.ms().max(1)).min(99)
        }
    }
}

/// Whether the provider will forget the window's beginning before the run gets there.
fn too_late(shown: &Shown, done: u64, spent_ms: u64, now: Millis) -> Option<String> {
    let days = shown.keeps_until?;
    let forgotten_at = shown.window.since.plus(u64::from(days).saturating_mul(DAY_MS));
    let left_ms = spent_ms.saturating_mul(100_u64.saturating_sub(done)) / done.max(1);
    (done > 0 && now.plus(left_ms) > forgotten_at).then(|| {
        format!("too slow: the provider forgets the window's beginning at {}", utc(forgotten_at))
    })
}

/// A slot of the chart.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(super) struct Slot {
    /// When it begins.
    pub(super) from: String,
    /// Events in it that the ledger did not have.
    pub(super) new: u64,
}

/// The slots with something in them, for programs.
pub(super) fn slots(slots: &BTreeMap<u64, u64>) -> Vec<Slot> {
    let begin = |slot: &u64| time::rfc3339(Millis(slot.saturating_mul(SLOT_MS)));
    slots.iter().map(|(slot, new)| Slot { from: begin(slot), new: *new }).collect()
}

/// Draws the new events, a line for each five minutes; for each longer slot where that would be more
/// lines than anybody reads.
pub(super) fn draw(page: &mut Page, slots: &BTreeMap<u64, u64>) {
    let Some((first, last)) = slots.keys().next().zip(slots.keys().next_back()) else { return };
    // Five minutes, fifteen, an hour, six, a day; then as many days as it takes.
    let mut widths = [1, 3, 12, 72, 288].into_iter();
    let fits = |width: &u64| (last / width - first / width) < LINES_MAX as u64;
    let fallback = (last - first) / (LINES_MAX as u64) + 1;
    let width = widths.find(fits).unwrap_or(fallback);
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for (slot, new) in slots {
        *sums.entry(slot / width).or_default() += new;
    }
    let most = sums.values().copied().max().unwrap_or(1);
    let length = time::span(width.saturating_mul(SLOT_MS));
    page.blank();
    page.heading(format!("new events, each line {}", length.trim_end_matches(" 00m")));
    let mut before: Option<u64> = None;
    for (slot, new) in &sums {
        let empty = before.map_or(0, |before| slot - before - 1);
        if empty > EMPTY_MAX {
            page.toned(Tone::Dim, "  ...");
        } else {
            for gap in (0..empty).rev() {
                page.line(line(slot - gap - 1, width, 0, most));
            }
        }
        page.line(line(*slot, width, *new, most));
        before = Some(*slot);
    }
}

fn line(slot: u64, width: u64, new: u64, most: u64) -> String {
    let at = utc(Millis(slot.saturating_mul(width).saturating_mul(SLOT_MS)));
    // Minutes are enough.
    let at = at.get(..16).unwrap_or(&at);
    let eighths = usize::try_from(new.saturating_mul(WIDTH as u64 * 8) / most.max(1)).unwrap_or(0);
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8).copied().unwrap_or("");
    let blocks = format!("{}{rest}", "█".repeat(eighths / 8));
    let blocks = if blocks.is_empty() && new > 0 { "▏".to_owned() } else { blocks };
    format!("  {at}Z  {new:>6}  {blocks}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use workflow::replay::pager::Window;

    fn drawn(slots: &[(u64, u64)]) -> Vec<String> {
        let mut page = Page::default();
        draw(&mut page, &slots.iter().copied().collect());
        let text = anstream::adapter::strip_str(page.text()).to_string();
        text.lines().skip(1).map(str::to_owned).collect()
    }

    /// Noon of 2026-11-30.
    const NOON: u64 = 1_796_040_000_000 / SLOT_MS;

    #[test]
    fn a_hole_stands_out_with_its_empty_slots_and_long_silence_is_cut_short() {
        let lines = drawn(&[(NOON, 8), (NOON + 1, 4), (NOON + 3, 1), (NOON + 20, 16)]);
        assert_eq!(
            lines,
            [
                "new events, each line 5m 00s",
                "  2026-11-30 12:00Z       8  ████████████████████",
                "  2026-11-30 12:05Z       4  ██████████",
                "  2026-11-30 12:10Z       0",
                "  2026-11-30 12:15Z       1  ██▌",
                "  ...",
                "  2026-11-30 13:40Z      16  ████████████████████████████████████████",
            ]
        );
        assert!(drawn(&[]).is_empty());
    }

    fn run(read_ms: Option<u64>) -> (Shown, Checkpoint) {
        let until = Millis(1_796_040_000_000);
        let window = Window::new(until.minus(2 * DAY_MS), until);
        let shown = Shown { window, began_at: until, keeps_until: Some(3) };
        let mut checkpoint = Checkpoint::new("s", String::new(), window, Vec::new());
        checkpoint.oldest = read_ms.map(|ms| until.minus(ms));
        checkpoint.tally.fetched = 120;
        (shown, checkpoint)
    }

    #[test]
    fn the_bar_measures_the_windows_time() {
        let (shown, checkpoint) = run(Some(DAY_MS));
        let line = bar(&shown, &checkpoint, shown.began_at.plus(2_000));
        assert!(
            line.starts_with("[████████████░░░░░░░░░░░░]  50 % of the window   120 fetched"),
            "{line}"
        );
        assert!(line.ends_with("60/s"), "{line}");
        let (shown, checkpoint) = run(None);
        assert!(bar(&shown, &checkpoint, shown.began_at).contains("]   0 % of the window"));
    }

    #[test]
    fn a_run_too_slow_for_what_the_provider_keeps_says_so() {
        // Two days back of three: one day is left for all of it.
        let (shown, checkpoint) = run(Some(DAY_MS / 5));
        let after = |ms| bar(&shown, &checkpoint, shown.began_at.plus(ms));
        assert!(!after(3_600_000).contains("too slow"), "ten hours in all");
        assert!(after(3 * 3_600_000).contains("too slow: the provider forgets"), "thirty hours");
    }

    #[test]
    fn a_month_fits_on_a_page_and_a_single_event_is_seen_beside_a_thousand() {
        let month: Vec<(u64, u64)> = (0..8_640).map(|n| (NOON + n, 1 + n % 2 * 999)).collect();
        let lines = drawn(&month);
        assert!(lines.len() <= LINES_MAX + 1, "{} lines", lines.len());
        assert!(drawn(&[(NOON, 1), (NOON + 1, 1_000)])[1].ends_with('▏'));
    }
}
