//! The row: what is known of one event.
//!
//! A row has two halves. Its [`Evidence`] is written once by the claim and never changes: what
//! arrived, when, and which key proved it. Its [`Life`] is what the verbs move. The split keeps
//! the verbs small, and lets the exploration walk millions of lives without a body in sight.
//!
//! The attribute names are those of the table; the adapter maps one to one.

use crate::{EventKey, Millis, Seconds, SourceName, Token, Version};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// The row format this code reads and writes. A row of any other is left untouched.
pub const ROW_FORMAT: u32 = 1;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word as stored.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Reads the stored word.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// Where a row stands. All but `dead` and `settled` are *pending*.
    Status {
        /// Durable, nobody works on it yet.
        Claimed = "claimed",
        /// Leased by a worker.
        Processing = "processing",
        /// Given back after a failed run, to be tried again.
        Failed = "failed",
        /// Given back without fault: throttled, or a predecessor is missing.
        Waiting = "waiting",
        /// Out of budget, or beyond repair by retrying.
        Dead = "dead",
        /// Finished. Never changes again.
        Settled = "settled",
    }
}

impl Status {
    /// Whether work is still to be done without anybody asking for it.
    #[must_use]
    pub const fn is_pending(self) -> bool {
        match self {
            Self::Claimed | Self::Processing | Self::Failed | Self::Waiting => true,
            Self::Dead | Self::Settled => false,
        }
    }
}

words! {
    /// How a settled row ended.
    Outcome {
        /// Its change was made.
        Applied = "applied",
        /// A newer change had been made already.
        Superseded = "superseded",
        /// Nothing is configured for it, or it belongs to another mode.
        Ignored = "ignored",
        /// A person closed it.
        Resolved = "resolved",
    }
}

words! {
    /// What a failure means for the next run.
    FailureClass {
        /// Trying again cannot help.
        Permanent = "permanent",
        /// The other side asked for patience.
        RateLimited = "rate_limited",
        /// Everything else, unknown errors too.
        Transient = "transient",
    }
}

words! {
    /// How an event came in.
    Origin {
        /// The provider posted it.
        Delivery = "delivery",
        /// A person fed it in again.
        Replay = "replay",
        /// The scheduled comparison with the provider found it missing.
        Reconcile = "reconcile",
    }
}

words! {
    /// How a stored body is encoded.
    Codec {
        /// The bytes as they came.
        Plain = "plain",
        /// One zstd frame.
        Zstd = "zstd",
    }
}

words! {
    /// What an event did to one entity.
    EffectOutcome {
        /// The change was made.
        Applied = "applied",
        /// The entity was newer already.
        Superseded = "superseded",
    }
}

/// The last failure of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Failure {
    /// What went wrong, in one sentence without payload.
    pub error: String,
    /// What it means for the next run.
    pub class: FailureClass,
    /// When; fixed once per attempt, so that a retried write is the same write.
    pub at: Millis,
}

/// A redrive by a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ByHand {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Millis,
}

/// The exclusive right to work on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Random per lease call.
    pub owner: Token,
    /// The right ends here; later than its holder can run.
    pub until: Millis,
}

/// A bucket of the index `open`. Settled rows are in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// Pending rows: the sweeper's.
    Pending(u8),
    /// Dead rows with an automatic redrive still due.
    Dead(u8),
    /// Dead rows that wait for a person.
    Parked(u8),
}

impl Bucket {
    /// Reads `pending#3`, `dead#3`, `parked#3`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, shard) = text.split_once('#')?;
        let shard = shard.parse().ok().filter(|shard| *shard < crate::SHARDS)?;
        match name {
            "pending" => Some(Self::Pending(shard)),
            "dead" => Some(Self::Dead(shard)),
            "parked" => Some(Self::Parked(shard)),
            _ => None,
        }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending(shard) => write!(f, "pending#{shard}"),
            Self::Dead(shard) => write!(f, "dead#{shard}"),
            Self::Parked(shard) => write!(f, "parked#{shard}"),
        }
    }
}

/// A row's place in the index `open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Open {
    /// The partition.
    pub bucket: Bucket,
    /// When somebody should look at the row.
    pub due_at: Millis,
}

/// The half of a row that the verbs move.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Life {
    /// [`ROW_FORMAT`], or what a newer build wrote.
    pub format: u32,
    /// Where the row stands.
    pub status: Status,
    /// How it ended; only with [`Status::Settled`].
    pub outcome: Option<Outcome>,
    /// The claim's token.
    pub claim_nonce: Token,
    /// The lease's fence: one more with every lease, never less.
    pub epoch: u64,
    /// Runs counted against the budget.
    pub attempts: u32,
    /// Held only with [`Status::Processing`].
    pub lease: Option<Lease>,
    /// The last failure; kept through later runs.
    pub failure: Option<Failure>,
    /// Not to be leased before.
    pub retry_at: Option<Millis>,
    /// The build that leased it last.
    pub release: Option<String>,
    /// Automatic redrives so far.
    pub redrives: u32,
    /// The last redrive of any kind.
    pub redriven_at: Option<Millis>,
    /// The last redrive whose person is known; the console's leave no name. Kept through later
    /// redrives of other kinds.
    pub by_hand: Option<ByHand>,
    /// The build that last gave a fresh budget because it was new.
    pub budget_release: Option<String>,
    /// Since when it waits without fault.
    pub waiting_since: Option<Millis>,
    /// Sweeps so far.
    pub sweeps: u32,
    /// Its place in the index; absent on settled rows.
    pub open: Option<Open>,
    /// When it settled.
    pub settled_at: Option<Millis>,
    /// When DynamoDB may delete it; only on settled rows.
    pub expires_at: Option<Seconds>,
    /// Who closed it by hand.
    pub resolved_by: Option<String>,
    /// Why it was closed by hand.
    pub note: Option<String>,
}

/// A stored body.
#[derive(Clone, PartialEq, Eq)]
pub struct Body {
    /// How [`Body::inline`] or the chunks are encoded.
    pub codec: Codec,
    /// The encoded bytes; `None` where they lie in chunks.
    pub inline: Option<Vec<u8>>,
    /// Number of chunks; zero for an inline body.
    pub chunks: u32,
    /// SHA-256 of the bytes as they came.
    pub sha256: [u8; 32],
    /// Length of the bytes as they came.
    pub len: u64,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("codec", &self.codec)
            .field("chunks", &self.chunks)
            .field("sha256", &hex::encode(self.sha256))
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// The half of a row that the claim writes and nothing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The row's key.
    pub key: EventKey,
    /// The endpoint it came through.
    pub source: SourceName,
    /// The provider's word for what happened.
    pub event_type: String,
    /// When the receiver had it.
    pub received_at: Millis,
    /// The body, byte for byte.
    pub body: Body,
    /// Hash of what identifies a resend; rows that carry none conflict with nothing.
    pub identity_hash: Option<[u8; 32]>,
    /// Allow-listed request headers.
    pub headers: BTreeMap<String, String>,
    /// Which key verified it.
    pub kid: String,
    /// How it came in.
    pub origin: Origin,
    /// Who fed it in and why; only where the origin is not a delivery.
    pub origin_note: Option<String>,
}

impl Evidence {
    /// The partition of the index `by_day`: `<source>#<yyyy-mm-dd>#<n>`.
    #[must_use]
    pub fn day(&self) -> String {
        format!("{}#{}#{}", self.source, self.received_at.date(), self.key.shard())
    }
}

/// What an event did to one entity, as the settled row remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Effect {
    /// The entity's key.
    pub entity: String,
    /// Applied or superseded.
    pub outcome: EffectOutcome,
    /// The version the event carried, where it carried one.
    pub version: Option<Version>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What arrived.
    pub evidence: Evidence,
    /// Where it stands.
    pub life: Life,
    /// What it changed; empty until settled.
    pub effects: Vec<Effect>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_reads_back_as_it_is_written_and_only_the_ten_partitions_exist() {
        for shard in 0..crate::SHARDS {
            for bucket in [Bucket::Pending(shard), Bucket::Dead(shard), Bucket::Parked(shard)] {
                assert_eq!(Bucket::parse(&bucket.to_string()), Some(bucket));
            }
        }
        assert_eq!(Bucket::Parked(7).to_string(), "parked#7");
        for foreign in ["", "pending", "pending#", "pending#10", "pending#x", "settled#1"] {
            assert_eq!(Bucket::parse(foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn a_bodys_bytes_stay_out_of_logs() {
        let secret = b"card 4242".to_vec();
        let body =
            Body { codec: Codec::Plain, inline: Some(secret), chunks: 0, sha256: [1; 32], len: 9 };
        let logged = format!("{body:?}");
        assert!(logged.contains("sha256: \"0101"), "{logged}");
        assert!(!logged.contains("inline") && !logged.contains("99, 97"), "{logged}");
    }

    #[test]
    fn every_word_reads_back_as_it_is_written() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(*status));
        }
        assert_eq!(FailureClass::RateLimited.to_string(), "rate_limited");
        assert_eq!(Outcome::parse("done"), None);
    }
}
