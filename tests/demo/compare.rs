//! What must be against what is: every difference, in the order of the tables.

use crate::{
    deliver::Found,
    story::{Story, WantEntity, WantRow},
};
use ledger::{Entity, Row};
use serde_json::Value;
use support::{Depth, brief};

/// Every difference, each a sentence or two.
pub(crate) fn differences(story: &Story, found: &Found) -> Vec<String> {
    let mut differences = answers(story, found);
    differences.extend(story.rows.iter().filter_map(|want| row(want, &found.rows)));
    let extra = found
        .rows
        .iter()
        .filter(|row| !story.rows.iter().any(|want| want.key == row.evidence.key.as_str()));
    differences.extend(
        extra.map(|row| format!("row {} must not exist; it is {}", row.evidence.key, brief(row))),
    );
    differences.extend(
        story
            .entities
            .iter()
            .zip(&found.entities)
            .filter_map(|(want, (_, found))| entity(want, found.as_ref())),
    );
    if found.queue != (Depth { visible: 0, hidden: 0 }) {
        differences.push(format!(
            "the queue must be empty; {} messages wait and {} are in work",
            found.queue.visible, found.queue.hidden
        ));
    }
    let (before, after) = found.dead_letters;
    if after != before + 1 {
        differences.push(format!(
            "one message, that of {}, must reach the dead-letter queue; it held {before} and holds {after}",
            story.poison
        ));
    }
    differences
}

fn answers(story: &Story, found: &Found) -> Vec<String> {
    let wanted = story.steps.iter().flat_map(|step| std::iter::repeat_n(step, step.copies));
    wanted
        .zip(&found.deliveries)
        .filter(|(step, delivered)| step.answer != delivered.answer)
        .map(|(step, delivered)| {
            format!(
                "{} must be answered {}; it was answered {}",
                step.key, step.answer, delivered.answer
            )
        })
        .collect()
}

fn row(want: &WantRow, rows: &[Row]) -> Option<String> {
    let found: Vec<&Row> =
        rows.iter().filter(|row| row.evidence.key.as_str() == want.key).collect();
    let [row] = found.as_slice() else {
        return Some(format!("{} must have one row; it has {}", want.key, found.len()));
    };
    let is = WantRow {
        key: want.key.clone(),
        status: row.life.status,
        outcome: row.life.outcome,
        attempts: row.life.attempts,
    };
    let outcome = want.outcome.map_or_else(String::new, |outcome| format!(" {outcome}"));
    (is != *want).then(|| {
        format!(
            "{} must be {}{outcome}, attempts {}; it is {}",
            want.key,
            want.status,
            want.attempts,
            brief(row)
        )
    })
}

fn entity(want: &WantEntity, found: Option<&Entity>) -> Option<String> {
    let Some(entity) = found else {
        return Some(format!("{} must exist; there is no such entity", want.key));
    };
    let is = WantEntity {
        key: want.key.clone(),
        version: entity.version.map_or(0, ledger::Version::get),
        revision: entity.revision,
        is_final: entity.is_final,
        state: Value::Object(entity.state.clone()),
    };
    (is != *want).then(|| format!("{} must be\n  {}\nit is\n  {}", want.key, told(want), told(&is)))
}

fn told(entity: &WantEntity) -> String {
    let last = if entity.is_final { ", final" } else { "" };
    format!(
        "version {}, revision {}{last}, state {}",
        entity.version, entity.revision, entity.state
    )
}
