//! State that a provider was asked for: never from before its event, never older than what stands.

use super::{Auditing, Breach};
use crate::{
    plan::{Event, Expect},
    stream::Write,
};
use std::collections::HashMap;

impl Auditing<'_> {
    /// Each write is something that the provider has said, at the time of its event or later, and no
    /// earlier than the write before. The last is what it says in the end.
    pub(super) fn fetched(&mut self, by_id: &HashMap<&str, &Event>) {
        let mut stands = 0;
        for write in self.writes {
            let Some(event) = by_id.get(write.event.as_str()).copied() else { continue };
            let Some(own) = number_of(event) else { continue };
            let found = write.state.to_string();
            match self.told(write) {
                None => {
                    let expected = "what the provider said".to_owned();
                    self.say(Breach::Lost, &event.key, expected, found);
                }
                Some(told) if told < stands => {
                    let expected = format!("number {stands} or later");
                    self.say(Breach::Reversed, &event.key, expected, found);
                }
                Some(told) if told < own => {
                    let expected = format!("asked for after its own event, {own}");
                    self.say(Breach::Lost, &event.key, expected, found);
                }
                Some(told) => stands = told,
            }
        }
        let newest = self.events.iter().copied().max_by_key(|event| number_of(event));
        let Some((newest, last)) = newest.and_then(|event| Some((event, number_of(event)?))) else {
            return;
        };
        if stands != last {
            let breach = if stands == 0 { Breach::Lost } else { Breach::Reversed };
            let expected = format!("number {last} stands");
            self.say(breach, &newest.key, expected, stands.to_string());
        }
    }

    /// The number from which on the provider said what was written.
    fn told(&self, write: &Write) -> Option<u64> {
        self.events.iter().find_map(|event| match &event.expect {
            Expect::Fetched { number, state, .. } if *state == write.state && !write.is_final => {
                Some(*number)
            }
            _ => None,
        })
    }
}

fn number_of(event: &Event) -> Option<u64> {
    match event.expect {
        Expect::Fetched { number, .. } => Some(number),
        _ => None,
    }
}
