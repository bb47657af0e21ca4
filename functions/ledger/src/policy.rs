//! Every limit and duration of the system in one value.
//!
//! The relations between them are part of the design (a lease must outlive its holder, a retry
//! must fit the visibility timeout), so they are checked here and nowhere assumed. A test stack
//! shortens durations through [`Policy::with_overrides`]; a production stack uses the defaults.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Limits and durations. Field names end in their unit; the defaults are the production values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Runs a row may have before it is buried: one and five retries.
    pub attempts_max: u32,
    /// A claimed row is overdue this long after it was received.
    pub first_due_ms: u64,
    /// A failed, redriven or throttled row is overdue this long after its retry time.
    pub retry_grace_ms: u64,
    /// A duplicate of a pending row older than this is sent to the queue again.
    pub resend_after_ms: u64,
    /// A message may redrive a dead row only if sent this long after the burial.
    pub redrive_margin_ms: u64,
    /// A failed row may be leased this long before its retry time.
    pub lease_early_ms: u64,
    /// A lease ends this long after its holder's deadline.
    pub lease_margin_ms: u64,
    /// A record is cut off this long before the consumer's deadline.
    pub cut_off_ms: u64,
    /// First back-off after a transient failure; doubles with each run.
    pub transient_base_ms: u64,
    /// Longest back-off after a transient failure.
    pub transient_max_ms: u64,
    /// Back-off after a rate limit: this much per run.
    pub rate_limited_step_ms: u64,
    /// Longest back-off after a rate limit, `Retry-After` included.
    pub rate_limited_max_ms: u64,
    /// A throttled row gives its attempt back for this long, then it fails.
    pub throttled_max_ms: u64,
    /// First distance between sweeps of one row; doubles with each sweep.
    pub sweep_base_ms: u64,
    /// Longest distance between sweeps of one row.
    pub sweep_max_ms: u64,
    /// Messages one steward run may send.
    pub sends_max: u32,
    /// With more visible messages than this in the queue, sweeps wait.
    pub backlog_messages: u64,
    /// ... until a row is overdue by this much.
    pub backlog_overdue_ms: u64,
    /// Automatic redrives of one row.
    pub redrives_max: u32,
    /// The first automatic redrive is spread over this long after the burial.
    pub redrive_spread_ms: u64,
    /// Distance between automatic redrives of one row.
    pub redrive_interval_ms: u64,
    /// The steward redrives dead rows this often.
    pub redrive_every_ms: u64,
    /// The steward clears dead-letter copies of settled rows this often.
    pub clear_every_ms: u64,
    /// Settled rows are kept this many days.
    pub retention_days: u32,
    /// A compressed body up to this size stays in its row.
    pub inline_bytes_max: usize,
    /// Larger bodies are cut into chunks of at most this size.
    pub chunk_bytes_max: usize,
    /// Chunks live this many days longer than a settled row.
    pub chunk_extra_days: u32,
    /// A decoded body above this size is refused: the platform's own limit.
    pub body_bytes_max: usize,
    /// Events one delivery may carry.
    pub events_max: usize,
    /// Rows that may wait for their predecessor on one entity.
    pub waiters_max: usize,
    /// The receiver answers this long before its deadline, whatever happens.
    pub answer_margin_ms: u64,
    /// The receiver's patience with one try of a write or read of a row.
    pub store_attempt_ms: u64,
    /// ... and with all tries.
    pub store_total_ms: u64,
    /// The receiver's patience with one try of a send; the sweeper covers one that fails.
    pub send_attempt_ms: u64,
    /// ... and with all tries.
    pub send_total_ms: u64,
    /// The receiver's patience with one try of reading the secrets.
    pub secret_attempt_ms: u64,
    /// ... and with all tries.
    pub secret_total_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts_max: 6,
            first_due_ms: 60_000,
            retry_grace_ms: 120_000,
            resend_after_ms: 30_000,
            redrive_margin_ms: 10_000,
            lease_early_ms: 1_000,
            lease_margin_ms: 10_000,
            cut_off_ms: 5_000,
            transient_base_ms: 1_000,
            transient_max_ms: 300_000,
            rate_limited_step_ms: 10_000,
            rate_limited_max_ms: 60_000,
            throttled_max_ms: 3_600_000,
            sweep_base_ms: 120_000,
            sweep_max_ms: 3_600_000,
            sends_max: 1_000,
            backlog_messages: 1_000,
            backlog_overdue_ms: 3_600_000,
            redrives_max: 5,
            redrive_spread_ms: 60_000,
            redrive_interval_ms: 3_600_000,
            redrive_every_ms: 300_000,
            clear_every_ms: 900_000,
            retention_days: 90,
            inline_bytes_max: 4_096,
            chunk_bytes_max: 350_000,
            chunk_extra_days: 180,
            body_bytes_max: 6 * 1_024 * 1_024,
            events_max: 500,
            waiters_max: 100,
            answer_margin_ms: 1_000,
            store_attempt_ms: 500,
            store_total_ms: 1_500,
            send_attempt_ms: 300,
            send_total_ms: 400,
            secret_attempt_ms: 800,
            secret_total_ms: 1_800,
        }
    }
}

/// Why a policy was refused.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The overrides are no JSON object of known keys.
    #[error("PolicyOverrides must be a JSON object of policy settings: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// Two settings contradict each other.
    #[error("policy: {relation} does not hold ({left} against {right})")]
    Relation {
        /// The relation in words.
        relation: &'static str,
        /// Its left side.
        left: u64,
        /// Its right side.
        right: u64,
    },
}

impl Policy {
    /// The default policy with the settings of `json` in their place; an empty text changes
    /// nothing. Unknown keys and contradictions are errors.
    pub fn with_overrides(json: &str) -> Result<Self, PolicyError> {
        let policy = if json.trim().is_empty() {
            Self::default()
        } else {
            serde_json::from_str(json).map_err(PolicyError::Unreadable)?
        };
        policy.check()?;
        Ok(policy)
    }

    /// The relations the protocol rests on.
    pub fn check(&self) -> Result<(), PolicyError> {
        let at_least = |left: u64, right: u64, relation: &'static str| {
            if left >= right {
                Ok(())
            } else {
                Err(PolicyError::Relation { relation, left, right })
            }
        };
        at_least(u64::from(self.attempts_max), 1, "attempts_max >= 1")?;
        at_least(self.lease_margin_ms, 1, "lease_margin_ms >= 1")?;
        at_least(
            self.transient_max_ms,
            self.transient_base_ms,
            "transient_max_ms >= transient_base_ms",
        )?;
        at_least(self.sweep_max_ms, self.sweep_base_ms, "sweep_max_ms >= sweep_base_ms")?;
        at_least(self.first_due_ms, self.resend_after_ms, "first_due_ms >= resend_after_ms")?;
        at_least(u64::from(self.sends_max), 1, "sends_max >= 1")?;
        at_least(self.store_total_ms, self.store_attempt_ms, "store_total_ms >= store_attempt_ms")?;
        at_least(self.send_total_ms, self.send_attempt_ms, "send_total_ms >= send_attempt_ms")?;
        at_least(
            self.secret_total_ms,
            self.secret_attempt_ms,
            "secret_total_ms >= secret_attempt_ms",
        )?;
        at_least(u64::from(self.retention_days), 1, "retention_days >= 1")?;
        // A DynamoDB item holds 400 KB; a chunk row carries its key beside the bytes.
        at_least(380_000, len(self.chunk_bytes_max), "chunk_bytes_max <= 380000")?;
        at_least(len(self.chunk_bytes_max), 1, "chunk_bytes_max >= 1")?;
        at_least(350_000, len(self.inline_bytes_max), "inline_bytes_max <= 350000")?;
        // A member takes up to 1.2 KB of the state row's 400 KB.
        at_least(200, len(self.waiters_max), "waiters_max <= 200")?;
        at_least(len(self.waiters_max), 1, "waiters_max >= 1")
    }

    /// How long a settled row is kept, in seconds.
    #[must_use]
    pub fn retention_seconds(&self) -> u64 {
        u64::from(self.retention_days).saturating_mul(86_400)
    }

    /// How far back the ledger is sure to hold each event that came: an older one that is not there
    /// may have been settled, and be gone. A row is kept for the retention from when it settled; a day
    /// less, or half where that is less, leaves room for clocks and for a run that takes its time.
    #[must_use]
    pub fn remembered_ms(&self) -> u64 {
        let seconds = self.retention_seconds();
        seconds.saturating_sub((seconds / 2).min(86_400)).saturating_mul(1_000)
    }

    /// How long a body chunk is kept from its birth, in seconds.
    #[must_use]
    pub fn chunk_seconds(&self) -> u64 {
        let days = self.retention_days.saturating_add(self.chunk_extra_days);
        u64::from(days).saturating_mul(86_400)
    }
}

fn len(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_production_values_keep_every_relation() {
        Policy::default().check().unwrap();
        assert_eq!(Policy::with_overrides("").unwrap(), Policy::default());
    }

    #[test]
    fn an_override_changes_one_setting_and_an_unknown_one_is_named() {
        let policy =
            Policy::with_overrides(r#"{"first_due_ms":1000,"resend_after_ms":500}"#).unwrap();
        assert_eq!(policy.first_due_ms, 1_000);
        assert_eq!(policy.attempts_max, 6);
        let error = Policy::with_overrides(r#"{"frist_due_ms":1}"#).unwrap_err();
        assert!(format!("{error}").contains("frist_due_ms"));
    }

    #[test]
    fn settled_rows_are_kept_ninety_days_and_chunks_half_a_year_longer() {
        let policy = Policy::default();
        assert_eq!(policy.retention_seconds(), 90 * 86_400);
        assert_eq!(policy.remembered_ms(), 89 * 86_400_000);
        let short = Policy { retention_days: 1, ..policy.clone() };
        assert_eq!(short.remembered_ms(), 43_200_000);
        assert_eq!(policy.chunk_seconds(), 270 * 86_400);
    }

    #[test]
    fn contradictions_are_refused() {
        // A setting beyond its relation, and the last value that keeps it.
        let relations = [
            (r#""attempts_max":0"#, r#""attempts_max":1"#),
            (r#""lease_margin_ms":0"#, r#""lease_margin_ms":1"#),
            (r#""transient_max_ms":999"#, r#""transient_max_ms":1000"#),
            (r#""sweep_max_ms":119999"#, r#""sweep_max_ms":120000"#),
            (r#""first_due_ms":29999"#, r#""first_due_ms":30000"#),
            (r#""sends_max":0"#, r#""sends_max":1"#),
            (r#""store_total_ms":499"#, r#""store_total_ms":500"#),
            (r#""send_total_ms":299"#, r#""send_total_ms":300"#),
            (r#""secret_total_ms":799"#, r#""secret_total_ms":800"#),
            (r#""retention_days":0"#, r#""retention_days":1"#),
            (r#""chunk_bytes_max":380001"#, r#""chunk_bytes_max":380000"#),
            (r#""chunk_bytes_max":0"#, r#""chunk_bytes_max":1"#),
            (r#""inline_bytes_max":350001"#, r#""inline_bytes_max":350000"#),
            (r#""waiters_max":201"#, r#""waiters_max":200"#),
            (r#""waiters_max":0"#, r#""waiters_max":1"#),
        ];
        for (beyond, kept) in relations {
            let set = |setting| Policy::with_overrides(&format!("{{{setting}}}"));
            let error = set(beyond).unwrap_err();
            assert!(matches!(error, PolicyError::Relation { .. }), "{beyond}: {error}");
            assert!(set(kept).is_ok(), "{kept}");
        }
    }
}
