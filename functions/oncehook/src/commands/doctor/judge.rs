//! Judgements of configuration, secrets, clock and work. Pure: facts in, a check out.

use super::{Check, Grade};
use crate::{
    failure::Failure,
    keys::Read,
    output::count,
    time::{relative, span},
};
use aws::Clocks;
use config::{Config, Source};
use ledger::{Millis, Policy};
use verifier::Key;
use workflow::{outbound::NoKey, ports::OpenEntry};

/// An answer's date has no parts of a second, and took a moment to come.
const SKEW_OK_MS: u64 = 5_000;
/// Signatures of calls to AWS are refused five minutes apart; by then ages say nothing either.
const SKEW_MAX_MS: u64 = 60_000;
/// What the alarm on the oldest pending event rings at.
pub(super) const PENDING_MAX_MS: u64 = 300_000;

/// The compiled-in configuration; one that is not valid ends every command before this.
pub(super) fn configuration(config: &Config, stage: &str) -> Check {
    let sources = count(config.sources().count(), "source", "sources");
    Check::ok("configuration", format!("valid: {sources}, stage {stage}"))
}

/// A source's signing keys, as the receiver would read them.
pub(super) fn keys(source: &Source, read: Result<Read, Failure>) -> Check {
    let what = format!("keys of {}", source.name);
    match read {
        Ok(_) if !source.preset.needs_key() => Check::ok(what, "none are needed"),
        Ok(read) if !read.refused.is_empty() => Check::bad(
            Grade::Warn,
            what,
            read.refused.join("\n"),
            "every key usable: when the provider changes to one that is refused, all its deliveries are",
            "store it again as the provider shows it, or take it out",
        ),
        Ok(read) => {
            let kids: Vec<&str> = read.keys.iter().map(Key::kid).collect();
            let usable = count(kids.len(), "usable key", "usable keys");
            Check::ok(what, format!("{usable}: {}", kids.join(", ")))
        }
        Err(failure) => Check::bad(
            Grade::Fail,
            what,
            failure.to_string(),
            "one to three usable keys; until then its deliveries are answered 503",
            failure.next().unwrap_or_default(),
        ),
    }
}

/// A secret that only some sources need.
pub(super) fn document(what: &str, text: &str) -> Check {
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text) {
        Ok(entries) if entries.is_empty() => Check::ok(what, "readable, empty"),
        Ok(entries) => {
            let names: Vec<&str> = entries.keys().map(String::as_str).collect();
            Check::ok(what, format!("readable, with entries for {}", names.join(", ")))
        }
        Err(_) => Check::bad(
            Grade::Fail,
            what,
            "it is no JSON object",
            "{\"<name>\": ...}",
            "store it again with `aws secretsmanager put-secret-value`",
        ),
    }
}

/// A key with which a provider is asked; none where nothing is wrong with it.
pub(super) fn outbound_key(path: &str, read: Result<(), NoKey>) -> Option<Check> {
    let expected = "one usable key; until then its events fail, and die";
    let next = "store it in the outbound secret with `aws secretsmanager put-secret-value`";
    let bad = |why: NoKey| {
        Check::bad(Grade::Fail, format!("key of {path}"), why.to_string(), expected, next)
    };
    read.err().map(bad)
}

/// This machine's clock against AWS's.
pub(super) fn clock(clocks: Option<Clocks>) -> Check {
    let what = "clock";
    let Some(Clocks { theirs, ours }) = clocks else {
        let next = "compare this machine's clock with a time server";
        return Check::bad(Grade::Warn, what, "AWS's answer had no date", "a date", next);
    };
    let skew = ours.since(theirs).max(theirs.since(ours));
    if skew <= SKEW_OK_MS {
        return Check::ok(what, format!("within {} of AWS's", span(SKEW_OK_MS)));
    }
    let side = if ours > theirs { "ahead of" } else { "behind" };
    Check::bad(
        if skew > SKEW_MAX_MS { Grade::Fail } else { Grade::Warn },
        what,
        format!("{} {side} AWS's", span(skew)),
        "within 5s: ages in reports are by this clock, and AWS refuses calls five minutes apart",
        "set this machine's clock by a time server",
    )
}

/// The steward notes its redrives every few minutes.
pub(super) fn steward(redriven_at: Millis, now: Millis, policy: &Policy) -> Check {
    let what = "steward";
    let limit = policy.redrive_every_ms.saturating_mul(2).saturating_add(60_000);
    let next = "look at its schedule in EventBridge Scheduler and at its log group: while it does \
                not run, an event whose message was lost is not sent again";
    if redriven_at == Millis::default() {
        let expected = "a note within minutes of the first deploy";
        return Check::bad(Grade::Warn, what, "it has left no note yet", expected, next);
    }
    let found = format!("last noted its work {}", relative(redriven_at, now));
    if now.since(redriven_at) <= limit {
        Check::ok(what, found)
    } else {
        let expected = format!("not longer than {} ago", span(limit));
        Check::bad(Grade::Fail, what, found, &expected, next)
    }
}

/// Pending events. Whether work moves says the oldest that should be finished, for `unfinished_ms`.
pub(super) fn pending(
    entries: &[OpenEntry],
    unfinished_ms: u64,
    now: Millis,
    counted_max: usize,
) -> Check {
    let what = "pending events";
    let oldest = entries.iter().map(|entry| now.since(entry.received_at)).max().unwrap_or(0);
    let at_least = if entries.len() == counted_max { "at least " } else { "" };
    let number = count(entries.len(), "event", "events");
    let found = match entries.len() {
        0 => "none".to_owned(),
        _ => format!("{at_least}{number}, the oldest received {} ago", span(oldest)),
    };
    if oldest <= PENDING_MAX_MS {
        Check::ok(what, found)
    } else if unfinished_ms <= PENDING_MAX_MS {
        Check::ok(what, format!("{found}; the old ones wait by design"))
    } else {
        let next = "  oncehook stuck";
        Check::bad(Grade::Fail, what, found, "none older than five minutes", next)
    }
}

/// Dead events wait for a person, or for a redrive of their own.
pub(super) fn dead(number: usize, counted_max: usize) -> Check {
    let what = "dead events";
    if number == 0 {
        return Check::ok(what, "none");
    }
    let at_least = if number == counted_max { "at least " } else { "" };
    let found = format!("{at_least}{}", count(number, "event", "events"));
    Check::bad(Grade::Warn, what, found, "none", "  oncehook dead list")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::testing::{self, NOW};
    use ledger::EventKey;

    #[test]
    fn a_clock_is_judged_by_how_far_it_is_off_either_way() {
        let at = |ours: Millis| clock(Some(Clocks { theirs: NOW, ours })).grade;
        assert_eq!(at(NOW.plus(5_000)), Grade::Ok);
        assert_eq!(at(NOW.minus(5_001)), Grade::Warn);
        assert_eq!(at(NOW.plus(60_001)), Grade::Fail);
        let said = clock(Some(Clocks { theirs: NOW, ours: NOW.minus(90_000) })).found;
        assert_eq!(said, "1m 30s behind AWS's");
        assert_eq!(clock(None).grade, Grade::Warn);
    }

    #[test]
    fn a_steward_is_alive_while_its_note_is_not_older_than_two_rounds() {
        let policy = Policy::default();
        let at = |ago: u64| steward(NOW.minus(ago), NOW, &policy).grade;
        assert_eq!(at(11 * 60_000), Grade::Ok);
        assert_eq!(at(11 * 60_000 + 1), Grade::Fail);
        assert_eq!(steward(Millis(0), NOW, &policy).grade, Grade::Warn);
    }

    #[test]
    fn the_oldest_pending_event_fails_the_check_where_the_alarm_rings() {
        let entry = |ago: u64| OpenEntry {
            key: EventKey::parse("s#e").unwrap(),
            due_at: NOW,
            received_at: NOW.minus(ago),
        };
        assert_eq!(pending(&[], 0, NOW, 9).grade, Grade::Ok);
        assert_eq!(pending(&[entry(300_000), entry(1)], 0, NOW, 9).grade, Grade::Ok);
        let waits = pending(&[entry(3_000_000)], 300_000, NOW, 9);
        assert_eq!(waits.grade, Grade::Ok, "{}", waits.found);
        assert!(waits.found.ends_with("the old ones wait by design"), "{}", waits.found);
        assert_eq!(pending(&[entry(300_001)], 300_001, NOW, 9).grade, Grade::Fail);
        assert_eq!(dead(0, 9).grade, Grade::Ok);
        assert_eq!(dead(9, 9).found, "at least 9 events");
    }

    #[tokio::test]
    async fn keys_are_counted_and_named_and_never_shown() {
        let config = testing::config();
        let source = config.source("stripe-live").unwrap();
        let judged = async |document: &str, local: bool| {
            keys(source, crate::keys::on(source, &config, document, local).await)
        };
        let fine = judged(testing::SECRETS, true).await;
        assert_eq!(fine.grade, Grade::Ok, "{fine:?}");
        assert!(fine.found.contains("2026-11") && !fine.found.contains("whsec"), "{fine:?}");
        let missing = judged("{}", true).await;
        assert_eq!(missing.grade, Grade::Fail);
        assert!(missing.next.unwrap().contains("kid"));
        let marked =
            r#"{"stripe-live":[{"kid":"cli","local":true,"key":"whsec_abcdefghijklmnop"}]}"#;
        assert_eq!(judged(marked, false).await.grade, Grade::Fail, "not on a live stage");
        let beside = r#"{"stripe-live":[{"kid":"new","key":"whsec_canaryefghijklmno\n"},
            {"kid":"old","key":"whsec_abcdefghijklmnop"}]}"#;
        let beside = judged(&beside.replace("no\n", "no\\n"), false).await;
        assert_eq!(beside.grade, Grade::Warn, "{beside:?}");
        assert!(beside.found.contains("new") && !beside.found.contains("canary"), "{beside:?}");
        assert!(outbound_key("fetch.thing", Ok(())).is_none());
        let none = outbound_key("fetch.thing", Err(NoKey::NoEntry("api".to_owned()))).unwrap();
        assert_eq!((none.grade, none.found.contains("\"api\"")), (Grade::Fail, true), "{none:?}");
        assert_eq!(document("replay secret", "{}").grade, Grade::Ok);
        assert_eq!(document("replay secret", "token").grade, Grade::Fail);
    }
}
