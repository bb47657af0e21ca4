//! Patience with the other side: what is worth another try, and how long to wait before it.
//!
//! `Retry-After` is honoured as seconds or as a date, up to ten minutes at a time: whoever asks for
//! more, or sends a date of some other year by mistake, is asked again then. A value that says
//! nothing is no reason for a busy loop.

use crate::{
    http::{HttpAnswer, HttpAsk},
    ports::{Clock, Entropy, Http, Trouble},
};
use ledger::Millis;

/// Longest single wait.
const WAIT_MAX_MS: u64 = 600_000;
const FIRST_WAIT_MS: u64 = 1_000;
const LONGEST_BACKOFF_MS: u64 = 60_000;
/// Tries of one request while the other side says nothing, or that it is broken.
const TRIES_MAX: u32 = 8;
/// Tries while it asks for patience: more than two hours of the longest waits.
const PATIENT_TRIES_MAX: u32 = 16;

/// Hears that a run waits, and how far it is.
pub trait Watch: Sync {
    /// Why and how long a run is about to wait.
    fn waits(&self, why: &str, ms: u64);
    /// What a run has reached.
    fn reached(&self, checkpoint: &super::Checkpoint);
}

/// Nobody.
impl Watch for () {
    fn waits(&self, _why: &str, _ms: u64) {}
    fn reached(&self, _checkpoint: &super::Checkpoint) {}
}

/// Asks until there is an answer that another try would not better, or patience ends: then what was
/// heard last, in words. `whom` is named in them.
pub(super) async fn call(
    ports: &(impl Http + Clock + Entropy),
    watch: &impl Watch,
    whom: &str,
    ask: &HttpAsk,
) -> Result<HttpAnswer, String> {
    let mut tries = 0;
    loop {
        tries += 1;
        let (why, asked_ms, tries_max) = match ports.call(ask.clone()).await {
            Ok(answer) => match trouble(&answer, ports.now()) {
                None => return Ok(answer),
                Some((why, asked_ms)) => {
                    let tries_max = if asked_ms.is_some() { PATIENT_TRIES_MAX } else { TRIES_MAX };
                    (format!("{whom} {why}"), asked_ms, tries_max)
                }
            },
            Err(error) if error.trouble == Trouble::Invalid => {
                return Err(format!("{whom} cannot be asked: {}", error.source));
            }
            Err(error) => (format!("{whom} gives no answer: {}", error.source), None, TRIES_MAX),
        };
        if tries >= tries_max {
            return Err(format!("{why}, {tries} times"));
        }
        let wait_ms = wait_ms(tries, asked_ms, ports.jitter());
        watch.waits(&why, wait_ms);
        ports.sleep(wait_ms).await;
    }
}

/// Why an answer is worth another try, and how long it asks to wait.
fn trouble(answer: &HttpAnswer, now: Millis) -> Option<(String, Option<u64>)> {
    let asked_ms = answer.asks_to_wait_ms(now);
    match answer.status {
        429 => Some(("asks to slow down (429)".to_owned(), asked_ms)),
        // GitHub says so when a quota is spent.
        403 if asked_ms.is_some() => Some(("asks to slow down (403)".to_owned(), asked_ms)),
        408 | 500..=599 => Some((format!("is in trouble ({})", answer.status), asked_ms)),
        _ => None,
    }
}

/// How long to wait before the try after number `tries`.
fn wait_ms(tries: u32, asked_ms: Option<u64>, jitter: ledger::Jitter) -> u64 {
    let doubled = FIRST_WAIT_MS.saturating_mul(1 << tries.saturating_sub(1).min(10));
    let backoff = doubled.min(LONGEST_BACKOFF_MS);
    // Between three quarters and all of it, so that several callers part.
    let spread = (backoff / 4).saturating_mul(u64::from(jitter.spread)) >> 16;
    let backoff = backoff - spread;
    match asked_ms {
        Some(asked) if asked >= FIRST_WAIT_MS => asked.min(WAIT_MAX_MS),
        // Zero, or a date that has passed: at once, they say, and are asked at once for ever.
        Some(_) | None => backoff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_792_567_680_000); // Wed, 21 Oct 2026 07:28:00 GMT

    fn waits(status: u16, header: Option<&str>, tries: u32) -> Option<u64> {
        let headers = header.map(|value| ("retry-after".to_owned(), value.to_owned()));
        let answer =
            HttpAnswer { status, headers: headers.into_iter().collect(), body: Vec::new() };
        let (_, asked) = trouble(&answer, NOW)?;
        Some(wait_ms(tries, asked, ledger::Jitter { spread: 0, round: 0 }))
    }

    #[test]
    fn j06_retry_after_is_honoured_as_seconds_or_date_and_never_for_a_year_or_not_at_all() {
        let date = Some("Wed, 21 Oct 2026 07:28:30 GMT");
        assert_eq!(waits(429, Some("3"), 1), Some(3_000));
        assert_eq!(waits(429, date, 1), Some(30_000));
        assert_eq!(waits(429, Some("Wed, 21 Oct 2015 07:28:00 GMT"), 1), Some(1_000), "passed");
        assert_eq!(waits(429, Some("1700000000"), 1), Some(WAIT_MAX_MS), "an epoch");
        assert_eq!(waits(429, Some("999999"), 1), Some(WAIT_MAX_MS));
        for nonsense in [Some("-5"), Some("abc"), Some(""), None] {
            assert_eq!(waits(429, nonsense, 1), Some(1_000), "{nonsense:?}");
            assert_eq!(waits(429, nonsense, 4), Some(8_000), "{nonsense:?} grows");
        }
        assert_eq!(waits(503, Some("0"), 1), Some(1_000), "no busy loop");
        assert_eq!(waits(503, None, 40), Some(LONGEST_BACKOFF_MS));
    }

    #[test]
    fn what_another_try_does_not_better_is_an_answer() {
        for status in [200, 302, 400, 401, 403, 404, 413] {
            assert_eq!(waits(status, None, 1), None, "{status}");
        }
    }

    #[test]
    fn a_spent_quota_is_waited_out() {
        let reset = (NOW.0 / 1_000 + 90).to_string();
        let headers = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset.as_str())];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let answer = HttpAnswer { status: 403, headers, body: Vec::new() };
        assert_eq!(
            trouble(&answer, NOW),
            Some(("asks to slow down (403)".to_owned(), Some(90_000)))
        );
    }
}
