//! A whole run: lease, project, apply and settle, as a worker does on a good day.

use crate::{
    stage::{Request, version},
    story::{Story, Told},
};
use ledger::{Turn, turn};
use std::collections::BTreeSet;

impl Story {
    /// Whether it is the event's turn, or its time is up.
    fn turn(&self, event: &str) -> Turn {
        let Some((name, waiter)) = self.stage.number(event) else { return Turn::Now };
        let entity = self.stage.entities.get(&name);
        let waiting_since = self.stage.life(event).and_then(|life| life.waiting_since);
        let is_over = waiting_since
            .is_some_and(|since| self.stage.now.since(since) >= self.sequence_timeout_ms);
        match turn(entity, waiter.number, version(1)) {
            Turn::Early if is_over => Turn::Now,
            turn => turn,
        }
    }

    /// What became of the event.
    pub(crate) fn work(&mut self, event: &str, actor: &str) -> Told<String> {
        let leased = self.lease(event, actor, &[])?;
        if leased != "ok" {
            return Ok(leased);
        }
        match self.turn(event) {
            Turn::Now => {}
            Turn::Superseded => {
                let said = self.settle(event, "superseded", actor)?;
                return Ok(if said == "ok" { "superseded".to_owned() } else { said });
            }
            Turn::Early => {
                let said = self.wait_in_sequence(event, actor)?;
                return Ok(if said == "ok" { "waits".to_owned() } else { said });
            }
        }
        let epoch = self.epoch(event, actor);
        let mut dropped = BTreeSet::new();
        let mut wakes = true;
        loop {
            let (mut ask, names) = self.stage.project(event, epoch, &dropped);
            if !wakes {
                ask.wake = None;
            }
            if names.is_empty() {
                let outcome = if dropped.is_empty() { "ignored" } else { "superseded" };
                let said = self.settle(event, outcome, actor)?;
                return Ok(if said == "ok" { outcome.to_owned() } else { said });
            }
            let said = self.request(event, actor, Request::Apply(ask, names.clone()));
            match said.as_str() {
                "ok" => return Ok("applied".to_owned()),
                "superseded" => dropped.extend(self.superseded(event, &names)),
                "the next does not wait" => wakes = false,
                _ => return Ok(said),
            }
        }
    }
}
