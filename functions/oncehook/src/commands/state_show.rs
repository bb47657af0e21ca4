//! `state show`: an entity, its version, and the event that made it.

use crate::{
    failure::Failure,
    output::{Fact, Page, Report, Tone, shown, shown_lines},
    time::{rfc3339, when},
};
use ledger::{Entity, EntityKey, Millis};
use serde::Serialize;
use serde_json::Value;
use workflow::ports::{Clock, Ledger};

/// An entity, or its absence.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    key: EntityKey,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<Value>,
    #[serde(skip)]
    row: Option<Entity>,
    #[serde(skip)]
    now: Millis,
}

/// Shows an entity.
pub(crate) async fn run(ports: &(impl Ledger + Clock), key: &EntityKey) -> Result<Shown, Failure> {
    let row = ports.entity(key).await?;
    Ok(Shown {
        key: key.clone(),
        found: row.is_some(),
        entity: row.as_ref().map(json),
        row,
        now: ports.now(),
    })
}

fn json(entity: &Entity) -> Value {
    serde_json::json!({
        "state": entity.state,
        "version": entity.version,
        "rank": entity.rank,
        "last_event": entity.last_event,
        "revision": entity.revision,
        "updated_at": rfc3339(entity.updated_at),
        "final": entity.is_final,
        "waiting": entity.waiting,
    })
}

impl Report for Shown {
    fn needs_attention(&self) -> bool {
        !self.found
    }

    fn write(&self, page: &mut Page) {
        page.heading(shown(self.key.as_str()));
        let Some(entity) = &self.row else {
            let text = "no such entity: no event changed it yet, or the key is another; an event \
                        names the entities it changed under `effects`";
            page.facts(&[Fact::new("note", text).in_tone(Tone::Warn)]);
            return;
        };
        let writes = crate::output::count(
            usize::try_from(entity.revision).unwrap_or(usize::MAX),
            "time",
            "times",
        );
        let mut facts = vec![
            Fact::new("written", format!("{}, {writes} in all", when(entity.updated_at, self.now))),
            Fact::new("last event", shown(&entity.last_event)),
        ];
        if let Some(version) = entity.version {
            facts.push(Fact::new("version", format!("{version}, rank {}", entity.rank)));
        }
        if entity.is_final {
            facts.push(
                Fact::new("final", "only a newer final event changes it").in_tone(Tone::Warn),
            );
        }
        if !entity.waiting.is_empty() {
            let keys: Vec<String> = entity.waiting.iter().map(|member| shown(member)).collect();
            facts.push(Fact::data("waiting", keys.join("\n")).in_tone(Tone::Warn));
        }
        let state = serde_json::to_string_pretty(&entity.state).unwrap_or_default();
        facts.push(Fact::data("state", shown_lines(&state)));
        page.facts(&facts);
    }
}
