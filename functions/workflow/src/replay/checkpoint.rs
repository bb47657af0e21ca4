//! The checkpoint: how far a run is, as far as that is certain.
//!
//! It moves by whole pages, and only once every event of the page is known to be in the ledger, or
//! is counted as failed by name. A run that was broken off reads the page again in which it was;
//! what it had fed in of it meets its own rows, and is counted as new once.

use super::{
    pager::{Cursor, Window},
    tally::Tally,
};
use ledger::Millis;
use serde::{Deserialize, Serialize};
use std::future::Future;

/// The form of the document.
const VERSION: u32 = 1;

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    version: u32,
    /// The source's name.
    pub source: String,
    /// Names the run in its rows.
    pub run: String,
    /// What is read. Fixed when the run began.
    pub window: Window,
    /// Only these types, and what is below them; all where there are none.
    pub types: Vec<String>,
    /// The page to be read next; `None` once the window is done.
    pub next: Option<Cursor>,
    /// The oldest time listed so far: how far lists that begin with the newest are read.
    pub oldest: Option<Millis>,
    /// What became of the pages before.
    pub tally: Tally,
}

impl Checkpoint {
    /// A run that has not begun.
    #[must_use]
    pub fn new(source: &str, run: String, window: Window, types: Vec<String>) -> Self {
        Self {
            version: VERSION,
            source: source.to_owned(),
            run,
            window,
            types,
            next: Some(Cursor::First),
            oldest: None,
            tally: Tally::default(),
        }
    }

    /// Whether it can go on with the list at `address`: not where that has moved to another host since
    /// the next page was named. The run is begun anew then, under its name.
    #[must_use]
    pub fn goes_on_at(&self, address: &str) -> bool {
        self.next.as_ref().is_none_or(|next| next.lies_at(address))
    }

    /// The same run, from its first page.
    #[must_use]
    pub fn anew(self) -> Self {
        Self::new(&self.source, self.run, self.window, self.types)
    }

    /// Reads a document; `None` for one of another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let read: Self = serde_json::from_str(text).ok()?;
        (read.version == VERSION).then_some(read)
    }

    /// The document.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether events of this type are wanted.
    #[must_use]
    pub fn wants(&self, event_type: &str) -> bool {
        let below = |wanted: &String| {
            event_type
                .strip_prefix(wanted.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.types.is_empty() || self.types.iter().any(below)
    }
}

/// Where checkpoints are kept.
pub trait Notebook {
    /// Keeps one, in place of the last. An error is in words, for the person.
    fn save(&self, checkpoint: &Checkpoint) -> impl Future<Output = Result<(), String>> + Send;
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_comes_back_as_it_was_written_and_another_form_does_not() {
        let window = Window::new(Millis(1_700_000_000_123), Millis(1_700_000_060_000));
        let mut checkpoint = Checkpoint::new("s", "r1".to_owned(), window, vec!["a".to_owned()]);
        checkpoint.next = Some(Cursor::After("evt_1".to_owned()));
        let text = checkpoint.to_json();
        assert_eq!(Checkpoint::parse(&text).unwrap(), checkpoint);
        assert_eq!(Checkpoint::parse(&text.replace("\"version\":1", "\"version\":2")), None);
        assert_eq!(Checkpoint::parse("{}"), None);
    }

    #[test]
    fn a_type_is_wanted_with_what_is_below_it() {
        let window = Window::new(Millis(0), Millis(0));
        let wanted = vec!["workflow_job".to_owned(), "push".to_owned()];
        let checkpoint = Checkpoint::new("s", String::new(), window, wanted);
        for (name, is_wanted) in [
            ("workflow_job.completed", true),
            ("push", true),
            ("workflow_job", true),
            ("workflow_jobs", false),
            ("issues.opened", false),
        ] {
            assert_eq!(checkpoint.wants(name), is_wanted, "{name}");
        }
    }
}
