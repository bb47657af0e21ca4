//! How often a provider may be asked: one process's share of the configured rate.
//!
//! In any second no more calls begin than the share allows. Work for which there is no room is not
//! kept waiting here, where it would hold a lease and a function's time: it is told when to come
//! again. Those times are handed out one after another at the pace of the share, so that a burst of
//! ten thousand comes back as a steady stream, each after one wait. Until the last promise has been
//! kept, only work that has waited before is let in: what arrives meanwhile queues up behind it.

use ledger::Millis;
use std::collections::VecDeque;

const SECOND_MS: u64 = 1_000;

/// The limit of one process.
#[derive(Debug)]
pub(super) struct Limit {
    /// In every window of this length ...
    window_ms: u64,
    /// ... so many calls.
    calls_max: u64,
    /// The distance of two promises.
    pace_ms: u64,
    /// When the calls of the last window began.
    made: VecDeque<Millis>,
    /// The last promise.
    promised: Millis,
    /// The provider asked for silence until then.
    silent_until: Millis,
}

impl Limit {
    /// The share of one of `processes` processes in `rate_per_s` calls a second.
    pub(super) fn new(rate_per_s: u32, processes: u32) -> Self {
        let (rate, processes) = (u64::from(rate_per_s.max(1)), u64::from(processes.max(1)));
        let calls_max = (rate / processes).max(1);
        // A share below one call a second is one call in several seconds.
        let window_ms = SECOND_MS.max(SECOND_MS.saturating_mul(processes).div_ceil(rate));
        let window_ms = if calls_max > 1 { SECOND_MS } else { window_ms };
        let pace_ms = window_ms.div_ceil(calls_max);
        // Work comes back to any of the processes, now more of it, now less: some slack lets most
        // of it in at once.
        let pace_ms = if processes > 1 { pace_ms.saturating_mul(5) / 4 } else { pace_ms };
        Self {
            window_ms,
            calls_max,
            pace_ms,
            made: VecDeque::new(),
            promised: Millis(0),
            silent_until: Millis(0),
        }
    }

    /// Lets a call begin, or says when to come again. `has_waited` gives way to nobody.
    pub(super) fn admit(&mut self, now: Millis, has_waited: bool) -> Result<(), Millis> {
        while self.made.front().is_some_and(|at| now.since(*at) >= self.window_ms) {
            self.made.pop_front();
        }
        let made = u64::try_from(self.made.len()).unwrap_or(u64::MAX);
        let is_free = made < self.calls_max && now >= self.silent_until;
        if is_free && (has_waited || self.promised <= now) {
            self.made.push_back(now);
            return Ok(());
        }
        // Where calls were just made, the first promise is for when their window has passed.
        let first = self.made.front().map_or(now, |at| at.plus(self.window_ms));
        let last = self.promised.max(self.silent_until).max(first).max(now);
        self.promised = last.plus(self.pace_ms);
        Err(self.promised)
    }

    /// The provider asked for silence.
    pub(super) fn silence(&mut self, until: Millis) {
        self.silent_until = self.silent_until.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins as many calls as it lets at `now`, of work that has waited.
    fn burst(limit: &mut Limit, now: Millis) -> usize {
        (0..100).take_while(|_| limit.admit(now, true).is_ok()).count()
    }

    #[test]
    fn no_second_has_more_calls_than_the_share_wherever_it_begins() {
        for (rate, processes, a_second) in [(5, 1, 5), (30, 20, 1), (100, 20, 5), (1, 1, 1)] {
            let mut limit = Limit::new(rate, processes);
            let mut begun = Vec::new();
            for at in (0..20_000).step_by(50) {
                begun.extend(std::iter::repeat_n(at, burst(&mut limit, Millis(at))));
            }
            for from in 0..19_000 {
                let second = begun.iter().filter(|at| (from..from + 1_000).contains(*at)).count();
                assert!(second <= a_second, "{second} calls from {from} on at {rate}/{processes}");
            }
            let least = (a_second * 20).saturating_sub(a_second);
            assert!(begun.len() >= least, "{} calls in 20 s at {rate}/{processes}", begun.len());
        }
    }

    #[test]
    fn a_share_below_one_a_second_is_one_in_several_seconds() {
        let mut limit = Limit::new(5, 20);
        let at = |limit: &mut Limit, ms| burst(limit, Millis(ms));
        assert_eq!([0, 3_999, 4_000, 7_999, 8_000].map(|ms| at(&mut limit, ms)), [1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_burst_is_promised_a_steady_stream_and_newcomers_queue_up_behind_it() {
        let mut limit = Limit::new(4, 1);
        let now = Millis(10_000);
        let promises: Vec<_> = (0..9).map(|_| limit.admit(now, false)).collect();
        assert_eq!(promises[..4], [Ok(()); 4]);
        let told: Vec<u64> = promises.iter().filter_map(|told| told.err()).map(|at| at.0).collect();
        assert_eq!(told, [11_250, 11_500, 11_750, 12_000, 12_250]);
        let later = Millis(11_300);
        assert_eq!(limit.admit(later, false), Err(Millis(12_500)), "there is room, but not for it");
        assert_eq!(limit.admit(later, true), Ok(()));
        assert_eq!(limit.admit(Millis(14_000), false), Ok(()), "every promise is over");
    }

    #[test]
    fn while_the_provider_wants_silence_nobody_is_let_in() {
        let mut limit = Limit::new(100, 1);
        limit.silence(Millis(30_000));
        assert_eq!(limit.admit(Millis(29_999), true), Err(Millis(30_010)));
        assert_eq!(limit.admit(Millis(30_000), true), Ok(()));
    }
}
