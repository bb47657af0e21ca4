//! Cursors: where the next page begins, by the provider's own word, and whether the key belongs there.

use serde::{Deserialize, Serialize};

/// Where the next page begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cursor {
    /// With the first item.
    First,
    /// Behind what this names, by the provider's word.
    After(String),
    /// At this address.
    Address(String),
}

impl Cursor {
    /// Whether its page lies on the host of the list at `address`. One that was kept may be older than
    /// the list's address is.
    #[must_use]
    pub fn lies_at(&self, address: &str) -> bool {
        match self {
            Self::First | Self::After(_) => true,
            Self::Address(own) => origin(own) == origin(address),
        }
    }
}

/// Scheme, host and port of an address.
pub(in crate::replay) fn origin(address: &str) -> &str {
    let after = address.find("://").map_or(0, |at| at.saturating_add(3));
    let end = address.get(after..).and_then(|rest| rest.find(['/', '?', '#']));
    end.and_then(|end| address.get(..after.saturating_add(end))).unwrap_or(address)
}
