//! What a command found, as text for people or as one JSON document for programs.
//!
//! A command returns a [`Report`]: data that serialises, and that knows how to be read. Standard
//! output carries the report alone; what went wrong, and how far long work is, goes to standard
//! error. Colour is left to `anstream`: only on a terminal, and `NO_COLOR` is respected.
//!
//! Text from a provider never reaches the terminal as it came: see [`shown`].

use crate::{args::Global, failure::Failure, paste};
use anstyle::{AnsiColor, Style};
use comfy_table::{Table as Grid, presets};
use serde::Serialize;
use std::io::{self, Write};

/// Sentences are broken at this column.
const COLUMNS: usize = 100;
/// The label of what to do next, which may hold commands to paste.
const NEXT: &str = "next";

/// What a command found.
pub(crate) trait Report: Serialize {
    /// Whether a person should act: exit code 1.
    fn needs_attention(&self) -> bool;
    /// Writes it for people.
    fn write(&self, page: &mut Page);
    /// Why the work ended early, by a failure or by the operator; what was done until then is what is
    /// reported.
    fn stopped(&self) -> Option<&Failure> {
        None
    }
}

/// How a thing stands, as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing to say.
    Plain,
    /// As it should be.
    Good,
    /// On its way, or worth a look.
    Warn,
    /// Somebody should act.
    Bad,
    /// Beside the point.
    Dim,
}

impl Tone {
    const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Dim => Style::new().dimmed(),
        }
    }

    pub(crate) fn paint(self, text: &str) -> String {
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// Text for people, with styles.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
    stack: Option<String>,
}

impl Page {
    /// An empty page whose commands go to the named stack.
    pub(crate) fn on(stack: Option<&str>) -> Self {
        Self { text: String::new(), stack: stack.map(str::to_owned) }
    }

    /// One line.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    /// One line in a tone.
    pub(crate) fn toned(&mut self, tone: Tone, text: impl AsRef<str>) {
        self.line(tone.paint(text.as_ref()));
    }

    /// A line that names what follows.
    pub(crate) fn heading(&mut self, text: impl AsRef<str>) {
        let style = Style::new().bold();
        self.line(format!("{style}{}{style:#}", text.as_ref()));
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Labels and values, aligned; lines of a value stand below one another. Sentences are broken
    /// at the page's edge; data stays whole, and so does a line that begins with blanks, which is
    /// to be pasted.
    pub(crate) fn facts(&mut self, facts: &[Fact]) {
        let width = facts.iter().map(|fact| fact.label.len()).max().unwrap_or(0);
        let room = COLUMNS.saturating_sub(width + 4);
        for fact in facts {
            let mut label = fact.label;
            let room = if fact.is_sentence { room } else { usize::MAX };
            let value = if fact.label == NEXT {
                paste::text(&fact.value, self.stack.as_deref())
            } else {
                fact.value.clone()
            };
            for line in value.lines().flat_map(|line| broken(line, room)) {
                let padded = Tone::Dim.paint(&format!("{label:<width$}"));
                self.line(format!("  {padded}  {}", fact.tone.paint(line)));
                label = "";
            }
        }
    }

    /// A table.
    pub(crate) fn table(&mut self, table: &Table) {
        for line in table.lines() {
            self.line(line);
        }
    }

    /// A table that belongs to what stands above it.
    pub(crate) fn inner_table(&mut self, table: &Table) {
        for line in table.lines() {
            self.line(format!("  {line}"));
        }
    }

    /// What was written so far, styles included.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// A label and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    /// In lower case, without a colon.
    pub(crate) label: &'static str,
    /// One line or several.
    pub(crate) value: String,
    /// Colours the value.
    pub(crate) tone: Tone,
    /// Whether its lines may be broken.
    is_sentence: bool,
}

impl Fact {
    /// A sentence.
    pub(crate) fn new(label: &'static str, value: impl Into<String>) -> Self {
        Self { label, value: value.into(), tone: Tone::Plain, is_sentence: true }
    }

    /// Data, line by line.
    pub(crate) fn data(label: &'static str, value: impl Into<String>) -> Self {
        Self { is_sentence: false, ..Self::new(label, value) }
    }

    /// The same in a tone.
    pub(crate) const fn in_tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// Rows in aligned columns, without borders. A row's tone colours its first cell.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<(Tone, Vec<String>)>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row of single-line cells.
    pub(crate) fn row(&mut self, tone: Tone, cells: impl IntoIterator<Item = String>) {
        self.rows.push((tone, cells.into_iter().collect()));
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn lines(&self) -> Vec<String> {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING).set_header(self.header.clone());
        grid.add_rows(self.rows.iter().map(|(_, cells)| cells.clone()));
        for column in grid.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        let mut laid_out = grid.lines();
        if let Some(header) = laid_out.next() {
            lines.push(Tone::Dim.paint(header.trim_end()));
        }
        for (line, (tone, cells)) in laid_out.zip(&self.rows) {
            let line = line.trim_end();
            let first = cells.first().map_or("", String::as_str);
            // The layout is plain text; the colour goes around a cell that is where it began.
            lines.push(match line.strip_prefix(first) {
                Some(rest) if *tone != Tone::Plain => format!("{}{rest}", tone.paint(first)),
                Some(_) | None => line.to_owned(),
            });
        }
        lines
    }
}

/// Breaks a sentence between words into pieces of at most `room` bytes, where words allow it.
fn broken(line: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while rest.len() > room && !line.starts_with("  ") {
        // Behind the last blank that fits, or the first there is.
        let last = rest.match_indices(' ').map(|(at, _)| at).take_while(|at| *at <= room).last();
        let Some(at) = last.or_else(|| rest.find(' ')) else { break };
        let (piece, further) = rest.split_at(at);
        pieces.push(piece);
        rest = further.trim_start();
    }
    pieces.push(rest);
    pieces
}

/// A provider's text for the terminal: invisible characters escaped, none left out.
pub(crate) fn shown(text: &str) -> String {
    // The rule is the telemetry's, which also shortens: so it is asked piece by piece.
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters.chunks(100).map(|piece| {
        let piece: String = piece.iter().collect();
        workflow::telemetry::shown(&piece)
    });
    pieces.collect()
}

/// Several lines of text for the terminal, each as [`shown`]. Tabs become spaces.
pub(crate) fn shown_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| shown(&line.replace('\t', "  "))).collect();
    lines.join("\n")
}

/// A word of a command to paste: quoted where a shell would take it apart.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-#:./@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('#') {
        shown(word)
    } else {
        format!("'{}'", shown(&word.replace('\'', r"'\''")))
    }
}

/// `1 row`, `12 rows`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Prints a report to standard output.
pub(crate) fn print(report: &impl Report, global: &Global) -> Result<(), Failure> {
    let stack = global.stack.as_deref();
    let text = if global.json {
        let document = serde_json::to_string_pretty(report)
            .map_err(|error| Failure::usage(format!("the report is no JSON: {error}")))?;
        format!("{}\n", paste::document(&document, stack))
    } else {
        let mut page = Page::on(stack);
        report.write(&mut page);
        page.text().to_owned()
    };
    print_text(&text)
}

/// Prints text as it is.
pub(crate) fn print_text(text: &str) -> Result<(), Failure> {
    print_more(text).map(drop)
}

/// Prints text as it is. Whether anybody reads on: with `| head` somebody has seen enough.
pub(crate) fn print_more(text: &str) -> Result<bool, Failure> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::usage(format!("standard output cannot be written to: {error}"))),
    }
}

/// Tells standard error why a command could not do its work.
pub(crate) fn complain(failure: &Failure, json: bool) {
    let text = if json {
        format!("{}\n", serde_json::json!(failure))
    } else {
        let next = failure.next().map(|next| format!("{} {next}\n", Tone::Dim.paint(" next:")));
        let next = next.unwrap_or_default();
        if failure.is_interrupted() {
            format!("{}\n{next}", Tone::Warn.paint(&failure.to_string()))
        } else {
            format!("{} {failure}\n{next}", Tone::Bad.paint("error:"))
        }
    };
    // With standard error gone there is nobody left to tell.
    let _told = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Says something on standard error that must be known before the report is there.
pub(crate) fn note(text: &str) {
    let text = format!("{}\n", Tone::Dim.paint(text));
    let _told = anstream::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn tables_align_and_colour_their_first_cell_alone() {
        let mut table = Table::new(&["STATUS", "TYPE", "KEY"]);
        table.row(Tone::Good, ["applied", "a", "s#1"].map(str::to_owned));
        table.row(Tone::Bad, ["dead", "invoice.paid", "s#2"].map(str::to_owned));
        let mut page = Page::default();
        page.table(&table);
        let lines: Vec<String> = plain(page.text()).lines().map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "STATUS   TYPE          KEY",
                "applied  a             s#1",
                "dead     invoice.paid  s#2",
            ]
        );
        assert!(page.text().contains("\u{1b}[1m\u{1b}[31mdead\u{1b}[0m     invoice.paid"));
    }

    #[test]
    fn facts_align_and_longer_values_stay_below_their_label() {
        let mut page = Page::default();
        page.facts(&[Fact::new("status", "dead"), Fact::new("last error", "a\nb")]);
        assert_eq!(plain(page.text()), "  status      dead\n  last error  a\n              b\n");
    }

    #[test]
    fn a_next_step_goes_to_the_stack_that_was_named_and_nothing_else_does() {
        let command = "look:\n  oncehook dead list";
        let mut page = Page::on(Some("prod"));
        page.facts(&[Fact::new("next", command), Fact::new("note", command)]);
        let said = "  next  look:\n          oncehook dead list --stack prod\n";
        let note = "  note  look:\n          oncehook dead list\n";
        assert_eq!(plain(page.text()), format!("{said}{note}"));
    }

    #[test]
    fn sentences_are_broken_between_words_and_commands_stay_whole() {
        assert_eq!(broken("one two three", 8), ["one two", "three"]);
        assert_eq!(broken("unbreakable word", 4), ["unbreakable", "word"]);
        assert_eq!(broken("  oncehook events show a#b", 8), ["  oncehook events show a#b"]);
        assert_eq!(broken("", 8), [""]);
    }

    #[test]
    fn a_providers_text_cannot_move_the_cursor_or_hide_itself() {
        assert_eq!(shown("evt\u{1b}[2J\u{202e}x"), r"evt\u{1b}[2J\u{202e}x");
        let long = "x".repeat(950);
        assert_eq!(shown(&long), long, "nothing is cut");
        assert_eq!(shown_lines("{\n\t\"a\": 1\r\n}"), "{\n  \"a\": 1\n}");
    }

    #[test]
    fn words_to_paste_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("stripe-live#evt_1"), "stripe-live#evt_1");
        assert_eq!(quoted("s#a b"), "'s#a b'");
        assert_eq!(quoted("s#it's"), r"'s#it'\''s'");
        assert_eq!(quoted("#x"), "'#x'");
    }
}
