//! The live view: rows and entities of this session, printed again when something changes.

use crate::tables;
use aws::Resource;
use ledger::{Entity, Millis, Row};
use std::{
    collections::BTreeSet,
    io::{IsTerminal, Write},
    time::Duration,
};
use support::{Depth, Stack, now_ms};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Rows shown: the newest.
const ROWS_MAX: usize = 20;

/// One look at the stack.
#[derive(PartialEq)]
struct Look {
    rows: Vec<Row>,
    entities: Vec<(String, Entity)>,
    queue: Depth,
    dead_letters: Depth,
}

/// Shows what changes from now on, until Ctrl-C.
pub(crate) async fn watch(stack: &Stack, since: u64) -> Result<(), String> {
    println!("\nwatching; Ctrl-C stops");
    let mut last = look(stack, since).await?;
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => {
                println!();
                return interrupted.map_err(|error| error.to_string());
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let next = look(stack, since).await?;
        if next != last {
            show(&next)?;
            last = next;
        }
    }
}

async fn look(stack: &Stack, since: u64) -> Result<Look, String> {
    let mut rows = stack.rows(Millis(since), Millis(now_ms())).await?;
    rows.drain(..rows.len().saturating_sub(ROWS_MAX));
    let keys: BTreeSet<String> = rows
        .iter()
        .flat_map(|row| row.effects.iter().map(|effect| effect.entity.clone()))
        .collect();
    let mut entities = Vec::new();
    for key in keys {
        if let Some(entity) = stack.find_entity(&key).await? {
            entities.push((key, entity));
        }
    }
    let queue = stack.depth(Resource::Queue).await?;
    let dead_letters = stack.depth(Resource::DeadLetterQueue).await?;
    Ok(Look { rows, entities, queue, dead_letters })
}

fn show(look: &Look) -> Result<(), String> {
    let mut out = std::io::stdout();
    if out.is_terminal() {
        // Clears the screen and goes to its first line.
        write!(out, "\x1b[2J\x1b[H").map_err(|error| error.to_string())?;
    }
    tables::show_rows(&look.rows);
    tables::show_entities(look.entities.iter().map(|(key, entity)| (key.as_str(), entity)));
    println!(
        "\nqueue: {} waiting, {} in work; dead-letter queue: {}   (Ctrl-C stops)",
        look.queue.visible,
        look.queue.hidden,
        look.dead_letters.total()
    );
    Ok(())
}
