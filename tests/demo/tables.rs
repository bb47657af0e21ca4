//! Tables for a person: aligned, plain, coloured by the line and only on a terminal.

use crate::{deliver::Found, story::Story};
use anstream::println;
use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use ledger::{Entity, Row, Status};
use serde_json::Value;
use support::Stack;
use workflow::telemetry::shown;

const HEAD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const PLAIN: Style = Style::new();

/// Longest state shown whole.
const STATE_CHARS_MAX: usize = 90;

/// A line of a table, and its colour.
struct Line {
    cells: Vec<String>,
    style: Style,
}

/// Everything the story led to.
pub(crate) fn show_all(found: &Found) {
    let deliveries = found.deliveries.iter().map(|delivered| Line {
        cells: vec![
            delivered.key.clone(),
            delivered.event_type.clone(),
            delivered.answer.to_string(),
            delivered.note.to_owned(),
        ],
        style: if delivered.answer < 300 { PLAIN } else { BAD },
    });
    show("deliveries", &["event", "type", "answer", ""], deliveries.collect());
    show_rows(&found.rows);
    let entities =
        found.entities.iter().filter_map(|(key, entity)| Some((key.as_str(), entity.as_ref()?)));
    show_entities(entities);
    let (_, dead) = found.dead_letters;
    println!(
        "\n{HEAD}dead-letter queue{HEAD:#}  {dead} {}",
        if dead == 1 { "message" } else { "messages" }
    );
}

/// Rows of the ledger.
pub(crate) fn show_rows(rows: &[Row]) {
    let lines = rows.iter().map(|row| {
        let life = &row.life;
        let outcome = life.outcome.map_or_else(String::new, |outcome| outcome.to_string());
        let why = match life.status {
            Status::Settled => String::new(),
            Status::Claimed
            | Status::Processing
            | Status::Failed
            | Status::Waiting
            | Status::Dead => {
                life.failure.as_ref().map_or_else(String::new, |failure| failure.error.clone())
            }
        };
        Line {
            style: match life.status {
                Status::Settled => GOOD,
                Status::Dead => BAD,
                Status::Claimed | Status::Processing | Status::Failed | Status::Waiting => PLAIN,
            },
            cells: vec![
                row.evidence.key.as_str().to_owned(),
                row.evidence.event_type.clone(),
                life.status.to_string(),
                outcome,
                life.attempts.to_string(),
                why,
            ],
        }
    });
    show("events", &["key", "type", "status", "outcome", "attempts", ""], lines.collect());
}

/// Entities.
pub(crate) fn show_entities<'a>(entities: impl Iterator<Item = (&'a str, &'a Entity)>) {
    let lines = entities.map(|(key, entity)| Line {
        cells: vec![
            key.to_owned(),
            entity.version.map_or_else(|| "-".to_owned(), |version| version.to_string()),
            entity.revision.to_string(),
            if entity.is_final { "final" } else { "" }.to_owned(),
            short(&Value::Object(entity.state.clone()).to_string()),
        ],
        style: PLAIN,
    });
    show("entities", &["key", "version", "revision", "", "state"], lines.collect());
}

/// What to try next, as lines that work when pasted.
pub(crate) fn show_what_next(stack: &Stack, story: &Story) {
    let tool = oncehook();
    let entity = story.entities.first().map(|entity| entity.key.as_str()).unwrap_or_default();
    println!("\n{HEAD}post to{HEAD:#}  {}/webhooks/stripe-live", stack.http.base());
    println!("\n{HEAD}try, in another terminal{HEAD:#}");
    println!("  . .local/env");
    println!("  {tool} send events/stripe_invoice_paid.json --source stripe-live");
    println!("  {tool} events list");
    println!("  {tool} state show '{entity}'");
}

/// The command line's own path, from where `make` is run.
fn oncehook() -> String {
    let own = std::env::current_exe().unwrap_or_default();
    let tool = own.with_file_name("oncehook");
    let here = std::env::current_dir().unwrap_or_default();
    tool.strip_prefix(here).unwrap_or(&tool).display().to_string()
}

fn show(title: &str, head: &[&str], lines: Vec<Line>) {
    println!("\n{HEAD}{title}{HEAD:#}");
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.to_vec());
    let styles: Vec<Style> =
        std::iter::once(HEAD).chain(lines.iter().map(|line| line.style)).collect();
    for line in lines {
        // Providers choose ids and types: what is invisible is escaped, so that a row is a line.
        table.add_row(line.cells.iter().map(|cell| shown(cell)).collect::<Vec<_>>());
    }
    for (text, style) in table.trim_fmt().lines().zip(styles) {
        println!("{style}{text}{style:#}");
    }
}

fn short(text: &str) -> String {
    if text.chars().count() <= STATE_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(STATE_CHARS_MAX).chain("...".chars()).collect()
}
