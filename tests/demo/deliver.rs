//! Delivering the story, and looking at what became of it.

use crate::story::{Step, Story};
use aws::Resource;
use futures::future::{join_all, try_join_all};
use ledger::{Entity, Millis, Row, Status};
use std::{
    io::Write,
    time::{Duration, Instant},
};
use support::{Answered, Call, Depth, Stack, brief, now_ms};

/// How long one event may take to its end, a cold start of every function included.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One delivery and its answer.
pub(crate) struct Delivered {
    pub(crate) event_type: String,
    pub(crate) key: String,
    pub(crate) note: &'static str,
    pub(crate) answer: u16,
}

/// What there is at the end.
pub(crate) struct Found {
    pub(crate) deliveries: Vec<Delivered>,
    pub(crate) rows: Vec<Row>,
    pub(crate) entities: Vec<(String, Option<Entity>)>,
    pub(crate) queue: Depth,
    /// Messages of the dead-letter queue, before and after.
    pub(crate) dead_letters: (u64, u64),
}

/// Delivers every step and follows it to its end.
pub(crate) async fn deliver(stack: &Stack, story: &Story) -> Result<Found, String> {
    let begun = now_ms();
    let dead_before = stack.depth(Resource::DeadLetterQueue).await?;
    println!("delivering to {}", stack.http.base());
    let mut deliveries = Vec::new();
    for step in &story.steps {
        let copies = if step.copies > 1 { format!(" x{}", step.copies) } else { String::new() };
        print!("  {:<16} {}{copies} ... ", step.source, step.event_type);
        std::io::stdout().flush().map_err(|error| error.to_string())?;
        let answers = send(stack, step).await?;
        let statuses: Vec<String> =
            answers.iter().map(|answer| answer.status.to_string()).collect();
        print!("{}", statuses.join(" "));
        std::io::stdout().flush().map_err(|error| error.to_string())?;
        if step.is_forged {
            println!();
        } else {
            println!("  {}", follow(stack, &step.key).await?);
        }
        deliveries.extend(answers.into_iter().map(|answer| Delivered {
            event_type: step.event_type.clone(),
            key: step.key.clone(),
            note: step.note,
            answer: answer.status,
        }));
    }
    let dead_after = wait_for_dead_letter(stack, dead_before.total()).await?;
    let entities = story.entities.iter().map(|want| async {
        let found = stack.find_entity(&want.key).await?;
        Ok::<_, String>((want.key.clone(), found))
    });
    let mut rows = stack.rows(Millis(begun), Millis(now_ms())).await?;
    // The stack is a person's too: what they post meanwhile is not part of the story.
    rows.retain(|row| story.steps.iter().any(|step| step.key == row.evidence.key.as_str()));
    Ok(Found {
        deliveries,
        rows,
        entities: try_join_all(entities).await?,
        queue: stack.depth(Resource::Queue).await?,
        dead_letters: (dead_before.total(), dead_after),
    })
}

async fn send(stack: &Stack, step: &Step) -> Result<Vec<Answered>, String> {
    let mut call = stack.signer.call(step.source, &step.sample);
    if step.is_forged {
        forge(&mut call);
    }
    let copies = (0..step.copies).map(|_| stack.http.send(call.clone()));
    join_all(copies).await.into_iter().collect()
}

/// Doubles the amount, so to speak: one byte differs from what was signed.
fn forge(call: &mut Call) {
    if let Some(last) = call.body.iter_mut().rev().find(|byte| byte.is_ascii_digit()) {
        *last = if *last == b'9' { b'8' } else { b'9' };
    }
}

/// Follows an event until it is settled or dead; says how it ended.
async fn follow(stack: &Stack, key: &str) -> Result<String, String> {
    let begun = Instant::now();
    loop {
        let row = stack.find_row(key).await?;
        match row {
            Some(row) if matches!(row.life.status, Status::Settled | Status::Dead) => {
                return Ok(brief(&row));
            }
            found if begun.elapsed() > PATIENCE => {
                let found = found.as_ref().map_or_else(|| "no row".to_owned(), brief);
                return Ok(format!("not finished within {} s: {found}", PATIENCE.as_secs()));
            }
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// A dead message reaches the dead-letter queue after its last receive; the number found there.
async fn wait_for_dead_letter(stack: &Stack, before: u64) -> Result<u64, String> {
    let begun = Instant::now();
    loop {
        let queue = stack.depth(Resource::Queue).await?;
        let dead = stack.depth(Resource::DeadLetterQueue).await?;
        let is_quiet = queue == Depth { visible: 0, hidden: 0 } && dead.total() > before;
        if is_quiet || begun.elapsed() > PATIENCE {
            return Ok(dead.total());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
