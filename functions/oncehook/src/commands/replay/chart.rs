//! A picture made of blocks: where in time the new events lie.

use crate::{
    output::{Page, Tone},
    time::{self, utc},
};
use ledger::Millis;
use std::collections::BTreeMap;
use workflow::replay::SLOT_MS;

const WIDTH: usize = 40;
/// More lines than these are put together into longer slots.
const LINES_MAX: usize = 60;
/// Slots in a row without a new event are drawn up to this many.
const EMPTY_MAX: u64 = 3;

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

    #[test]
    fn a_month_fits_on_a_page_and_a_single_event_is_seen_beside_a_thousand() {
        let month: Vec<(u64, u64)> = (0..8_640).map(|n| (NOON + n, 1 + n % 2 * 999)).collect();
        let lines = drawn(&month);
        assert!(lines.len() <= LINES_MAX + 1, "{} lines", lines.len());
        assert!(drawn(&[(NOON, 1), (NOON + 1, 1_000)])[1].ends_with('▏'));
    }
}
