//! When to try again: back-off after a failure, the sweeper's distances, automatic redrives.
//!
//! The budget is the row's own `attempts`; the queue's receive count decides nothing.

use crate::{FailureClass, Millis, Policy};

/// Two random numbers, drawn by the caller: one spreads the delay by a tenth either way, the
/// other rounds it to whole seconds without bias (the queue counts in seconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter {
    /// Spreads.
    pub spread: u16,
    /// Rounds.
    pub round: u16,
}

impl Jitter {
    /// Jitter that changes nothing but a fraction of a second, which it rounds to the nearest.
    pub const NONE: Self = Self { spread: 1 << 15, round: 1 << 15 };
}

/// What to do after a failed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Fail the row; it may be leased again at this time.
    Retry {
        /// Not before.
        at: Millis,
    },
    /// Bury it: retrying cannot help.
    BuryPermanent,
    /// Bury it: the budget is spent.
    BuryExhausted,
}

/// What follows run number `attempts` that failed with `class`.
///
/// `retry_after_ms` is what a rate-limited answer asked for; it is honoured within the policy's
/// limit and read for no other class.
#[must_use]
pub fn next_step(
    attempts: u32,
    class: FailureClass,
    retry_after_ms: Option<u64>,
    now: Millis,
    policy: &Policy,
    jitter: Jitter,
) -> Next {
    if class == FailureClass::Permanent {
        return Next::BuryPermanent;
    }
    if attempts >= policy.attempts_max {
        return Next::BuryExhausted;
    }
    Next::Retry { at: now.plus(retry_delay_ms(attempts, class, retry_after_ms, policy, jitter)) }
}

/// The back-off after run number `attempts`, in milliseconds, whole seconds where it is a second
/// or more: transient 1, 2, 4, 8, 16 s; rate-limited 10 s a run or what `Retry-After` says.
#[must_use]
pub fn retry_delay_ms(
    attempts: u32,
    class: FailureClass,
    retry_after_ms: Option<u64>,
    policy: &Policy,
    jitter: Jitter,
) -> u64 {
    let (wanted, least) = match class {
        FailureClass::RateLimited => {
            let step = policy.rate_limited_step_ms.saturating_mul(u64::from(attempts));
            let asked = retry_after_ms.unwrap_or(0).min(policy.rate_limited_max_ms);
            (step.max(asked).min(policy.rate_limited_max_ms), asked)
        }
        FailureClass::Transient | FailureClass::Permanent => {
            let doublings = attempts.saturating_sub(1).min(40);
            let delay = policy.transient_base_ms.saturating_mul(1_u64 << doublings);
            (delay.min(policy.transient_max_ms), 0)
        }
    };
    spread(wanted, jitter).max(least)
}

/// Reads a `Retry-After` header: whole seconds, or an HTTP date such as `Sun, 06 Nov 1994 08:49:37
/// GMT` (RFC 9110, section 10.2.3). Milliseconds from `now`; zero for a date that has passed. What
/// is neither says nothing.
#[must_use]
pub fn retry_after_ms(header: &str, now: Millis) -> Option<u64> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds ask for more than the policy grants anyway.
        return Some(header.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000));
    }
    let date = jiff::fmt::rfc2822::parse(header).ok()?;
    let at = u64::try_from(date.timestamp().as_millisecond()).unwrap_or(0);
    Some(Millis(at).since(now))
}

/// `ms` plus or minus a tenth, then to whole seconds unless that would be less than half of one
/// (a test stack's short delays are kept as they are).
fn spread(ms: u64, jitter: Jitter) -> u64 {
    let tenth = ms / 10;
    // 0..=2 tenths, by the 16 bits of `spread`.
    let offset = tenth.saturating_mul(2).saturating_mul(u64::from(jitter.spread)) >> 16;
    let spread = ms.saturating_sub(tenth).saturating_add(offset);
    if ms < 1_000 {
        return spread;
    }
    let up = spread % 1_000 > u64::from(jitter.round).saturating_mul(1_000) >> 16;
    (spread / 1_000).saturating_add(u64::from(up)).saturating_mul(1_000)
}

/// When a swept row is looked at again: 2, 4, 8 ... 60 minutes after this sweep.
#[must_use]
pub fn next_sweep_due(sweeps: u32, now: Millis, policy: &Policy) -> Millis {
    let distance = policy.sweep_base_ms.saturating_mul(1_u64 << sweeps.min(40));
    now.plus(distance.min(policy.sweep_max_ms))
}

/// When a row buried at `failed_at` is redriven by itself: the first time soon, spread over a
/// minute so that an outage's dead do not all rise at once; then an hour apart.
#[must_use]
pub fn next_redrive_due(
    redrives: u32,
    failed_at: Millis,
    policy: &Policy,
    jitter: Jitter,
) -> Millis {
    let spread = |ms: u64| ms.saturating_mul(u64::from(jitter.spread)) >> 16;
    if redrives == 0 {
        failed_at.plus(spread(policy.redrive_spread_ms))
    } else {
        failed_at.plus(policy.redrive_interval_ms.saturating_add(spread(policy.redrive_spread_ms)))
    }
}

/// How a steward's run treats overdue rows, given the queue's depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweeping {
    /// Every overdue row.
    All,
    /// The queue is behind: feeding it more copies would not help the rows already in it.
    OnlyLongOverdue,
}

impl Sweeping {
    /// Chooses by the number of messages visible in the queue.
    #[must_use]
    pub const fn for_backlog(messages_visible: u64, policy: &Policy) -> Self {
        if messages_visible > policy.backlog_messages { Self::OnlyLongOverdue } else { Self::All }
    }

    /// Rows due at or before this time are swept.
    #[must_use]
    pub const fn due_before(self, now: Millis, policy: &Policy) -> Millis {
        match self {
            Self::All => now,
            Self::OnlyLongOverdue => now.minus(policy.backlog_overdue_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transient(attempts: u32, jitter: Jitter) -> u64 {
        retry_delay_ms(attempts, FailureClass::Transient, None, &Policy::default(), jitter) / 1_000
    }

    #[test]
    fn transient_failures_wait_1_2_4_8_16_seconds_and_the_budget_ends_within_a_minute() {
        let waits: Vec<u64> = (1..=5).map(|run| transient(run, Jitter::NONE)).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16]);
        assert!(waits.iter().sum::<u64>() < 60);
        assert_eq!(transient(12, Jitter::NONE), 300);
        assert_eq!(transient(u32::MAX, Jitter::NONE), 300);
    }

    #[test]
    fn jitter_stays_within_a_tenth_and_rounds_without_bias() {
        let mut sum = 0;
        for spread in (0..=u16::MAX).step_by(257) {
            for round in (0..=u16::MAX).step_by(257) {
                let wait = transient(4, Jitter { spread, round });
                assert!((7..=9).contains(&wait), "{wait} s");
                sum += wait;
            }
        }
        let mean = f64::from(u32::try_from(sum).unwrap_or(u32::MAX)) / (256.0 * 256.0);
        assert!((mean - 8.0).abs() < 0.05, "mean {mean}");
    }

    #[test]
    fn delays_of_a_second_or_more_are_whole_seconds_rounded_by_chance() {
        let policy = |base| Policy { transient_base_ms: base, ..Policy::default() };
        let wait = |base, spread, round| {
            let jitter = Jitter { spread, round };
            retry_delay_ms(1, FailureClass::Transient, None, &policy(base), jitter)
        };
        let middle = 1 << 15;
        assert_eq!(Jitter::NONE, Jitter { spread: middle, round: middle });
        // 1,700 ms: up unless the die falls beyond seven tenths.
        assert_eq!(wait(1_700, middle, 45_000), 2_000);
        assert_eq!(wait(1_700, middle, 46_000), 1_000);
        assert_eq!(wait(2_000, middle, 0), 2_000, "what is whole stays whole");
        // The die's own value is not enough to be rounded up.
        assert_eq!(wait(1_500, middle, middle), 1_000);
        // A tenth either way.
        assert_eq!(wait(100_000, 0, 0), 90_000);
        assert_eq!(wait(100_000, u16::MAX, u16::MAX), 109_000);
        // A test stack's short delays keep their milliseconds; a second is no short delay.
        assert_eq!(wait(999, middle, 0), 999);
        assert_eq!(wait(1_000, middle, 0), 1_000);
        assert_eq!(wait(1_000, 40_000, u16::MAX), 1_000);
        assert_eq!(wait(1_000, 0, 0), 1_000);
    }

    #[test]
    fn rate_limits_back_off_linearly_and_honour_retry_after_up_to_a_minute() {
        let policy = Policy::default();
        let wait = |run, after| {
            retry_delay_ms(run, FailureClass::RateLimited, after, &policy, Jitter::NONE) / 1_000
        };
        assert_eq!([wait(1, None), wait(2, None), wait(5, None)], [10, 20, 50]);
        assert_eq!(wait(9, None), 60);
        assert_eq!(wait(1, Some(37_000)), 37);
        assert_eq!(wait(1, Some(3_000)), 10);
        assert_eq!(wait(1, Some(u64::MAX)), 60);
        let least = Jitter { spread: 0, round: u16::MAX };
        assert!(
            retry_delay_ms(1, FailureClass::RateLimited, Some(37_000), &policy, least) >= 37_000,
            "jitter never undercuts Retry-After"
        );
    }

    #[test]
    fn the_sixth_failed_run_buries_and_a_permanent_failure_buries_at_once() {
        let policy = Policy::default();
        let step =
            |attempts, class| next_step(attempts, class, None, Millis(0), &policy, Jitter::NONE);
        assert_eq!(step(5, FailureClass::Transient), Next::Retry { at: Millis(16_000) });
        assert_eq!(step(6, FailureClass::Transient), Next::BuryExhausted);
        assert_eq!(step(6, FailureClass::RateLimited), Next::BuryExhausted);
        assert_eq!(step(1, FailureClass::Permanent), Next::BuryPermanent);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_anything_else_says_nothing() {
        let now = Millis(784_111_777_000); // Sun, 06 Nov 1994 08:49:37 GMT
        assert_eq!(retry_after_ms("120", now), Some(120_000));
        assert_eq!(retry_after_ms(" 0 ", now), Some(0));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:50:07 GMT", now), Some(30_000));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:00:00 GMT", now), Some(0));
        assert_eq!(retry_after_ms(&"9".repeat(40), now), Some(u64::MAX));
        for nothing in ["", "-1", "1.5", "soon", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(retry_after_ms(nothing, now), None, "{nothing:?}");
        }
    }

    #[test]
    fn sweeps_of_one_row_are_2_4_8_and_at_last_60_minutes_apart() {
        let policy = Policy::default();
        let minutes: Vec<u64> =
            (0..7).map(|n| next_sweep_due(n, Millis(0), &policy).0 / 60_000).collect();
        assert_eq!(minutes, [2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_first_redrive_comes_within_a_minute_of_the_burial_and_the_others_an_hour_apart() {
        let (policy, buried) = (Policy::default(), Millis(5_000_000));
        let due = |redrives, spread| {
            next_redrive_due(redrives, buried, &policy, Jitter { spread, round: 0 }).since(buried)
        };
        assert_eq!([due(0, 0), due(0, 1 << 15), due(0, u16::MAX)], [0, 30_000, 59_999]);
        for redrives in 1..=5 {
            let spread = [due(redrives, 0), due(redrives, u16::MAX)];
            assert_eq!(spread, [3_600_000, 3_659_999], "after {redrives}");
        }
    }

    #[test]
    fn a_backlog_is_not_fed_but_hour_old_rows_still_are() {
        let policy = Policy::default();
        let now = Millis(10_000_000);
        assert_eq!(Sweeping::for_backlog(1_000, &policy).due_before(now, &policy), now);
        assert_eq!(
            Sweeping::for_backlog(1_001, &policy).due_before(now, &policy),
            Millis(6_400_000)
        );
    }
}
