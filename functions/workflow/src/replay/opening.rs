//! Whether a source's provider has a list to read, where it is, and which key opens it.

use config::Source;
use ledger::Millis;
use thiserror::Error;
use verifier::{EventList, History};

const DAY_MS: u64 = 86_400_000;

/// A list that can be asked for.
#[derive(Debug, Clone)]
pub struct Opening<'s> {
    /// How it is read.
    pub list: &'s EventList,
    /// Where it is.
    pub address: String,
    /// The entry of the outbound secret with its key.
    pub secret: &'s str,
}

/// Why there is nothing to ask.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoList {
    /// The provider has no list.
    #[error("{why}")]
    None {
        /// What there is instead.
        why: String,
    },
    /// The address is the team's own and is not configured.
    #[error("the address of its list is not configured{}", example(.form.as_deref()))]
    NoAddress {
        /// What it looks like.
        form: Option<String>,
    },
}

fn example(form: Option<&str>) -> String {
    form.map_or_else(String::new, |form| format!("; it looks like {form}"))
}

impl<'s> Opening<'s> {
    /// The list of `source`, at `elsewhere` where that is given.
    pub fn of(source: &'s Source, elsewhere: Option<String>) -> Result<Self, NoList> {
        match source.preset.history() {
            History::None { why } => Err(NoList::None { why: why.clone() }),
            History::Listed(list) => {
                let address = elsewhere.or_else(|| list.address.clone());
                Ok(Self {
                    address: address
                        .ok_or_else(|| NoList::NoAddress { form: list.address_form.clone() })?,
                    secret: list.secret.as_deref().unwrap_or(&source.secret),
                    list,
                })
            }
        }
    }

    /// The earliest time the list still holds; `None` where no limit is published.
    #[must_use]
    pub fn reaches_back_to(&self, now: Millis) -> Option<Millis> {
        self.list.days.map(|days| now.minus(u64::from(days).saturating_mul(DAY_MS)))
    }
}
