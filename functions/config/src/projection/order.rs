//! Reads the table `order` of a projection.

use super::read::{STATES, Strategy, belong, read_at};
use crate::{
    OnGap, Order, Tie,
    error::Report,
    section::{Section, Value, describe},
};
use ledger::{Unit, Version};
use std::ops::RangeInclusive;
use toml::de::DeValue;

// A strategy, a tie or a key stands here when it works: what is accepted does what it says.
const STRATEGIES: &[(&str, Strategy)] = &[
    ("version", Strategy::Version),
    ("fetch", Strategy::Fetch),
    ("sequence", Strategy::Sequence),
    ("none", Strategy::None),
];

const UNITS: &[(&str, Unit)] = &[
    ("s", Unit::S),
    ("ms", Unit::Ms),
    ("us", Unit::Us),
    ("iso", Unit::Iso),
    ("integer", Unit::Integer),
];

const TIES: &[(&str, Tie)] = &[("rank", Tie::Rank), ("fetch", Tie::Fetch), ("skip", Tie::Skip)];

const GAPS: &[(&str, OnGap)] =
    &[("fetch", OnGap::Fetch), ("apply", OnGap::Apply), ("dead", OnGap::Dead)];

/// A wait for a missing number: an hour, unless said otherwise, and never more than a week.
const TIMEOUT_S: u64 = 3_600;
const TIMEOUTS_S: RangeInclusive<u64> = 1..=7 * 86_400;
const TIMEOUT: &str = "a time from 1s to 7d, such as 90s, 15m or 1h";

/// Reads the order; the strategy also where the rest is wrong.
pub(super) fn read(
    mut section: Section<'_>,
    report: &mut Report<'_>,
) -> (Option<Strategy>, Option<Order>) {
    section.required(report, "strategy", "version, fetch, sequence, none");
    let strategy = section.choice(report, "strategy", STRATEGIES);
    match strategy {
        Some(Strategy::Version) => {
            section.required(report, "by", "a JSON Pointer to the version");
        }
        Some(Strategy::Sequence) => {
            section.required(report, "by", "a JSON Pointer to the number");
            section.required(report, "on_gap", "fetch, apply, dead");
        }
        Some(Strategy::Fetch | Strategy::None) | None => {}
    }
    let by = read_at(&mut section, report, "by");
    let unit = read_or(&mut section, report, "unit", UNITS, Unit::Integer);
    let tie = read_or(&mut section, report, "tie", TIES, Tie::Rank);
    let start = read_start(&mut section, report);
    let timeout_ms = read_timeout(&mut section, report);
    let on_gap = section.choice(report, "on_gap", GAPS);
    let mut alone = |keys: &[&'static str], strategy: &str, other: &str| {
        belong(&mut section, report, keys, strategy, other)
    };
    let order = match strategy {
        Some(Strategy::Version) => {
            let good = alone(&["start", "timeout", "on_gap"], "version", "\"sequence\"");
            let order =
                by.zip(unit.zip(tie)).map(|(by, (unit, tie))| Order::Version { by, unit, tie });
            order.filter(|_| good)
        }
        Some(Strategy::Sequence) => {
            let good = alone(&["unit", "tie"], "sequence", "\"version\"");
            let order = by.zip(start).zip(timeout_ms.zip(on_gap));
            let order = order.map(|((by, start), (timeout_ms, on_gap))| Order::Sequence {
                by,
                start,
                timeout_ms,
                on_gap,
            });
            order.filter(|_| good)
        }
        Some(strategy @ (Strategy::Fetch | Strategy::None)) => {
            let name = strategy.as_str();
            let good = alone(&["by"], name, STATES);
            let good = alone(&["unit", "tie"], name, "\"version\"") && good;
            let good = alone(&["start", "timeout", "on_gap"], name, "\"sequence\"") && good;
            let order = match strategy {
                Strategy::Fetch => Order::Fetch,
                Strategy::Version | Strategy::Sequence | Strategy::None => Order::None,
            };
            good.then_some(order)
        }
        None => None,
    };
    section.finish(report);
    (strategy, order)
}

/// A choice with a default: `None` only where a wrong one was reported.
fn read_or<T: Copy>(
    section: &mut Section<'_>,
    report: &mut Report<'_>,
    key: &'static str,
    choices: &[(&'static str, T)],
    default: T,
) -> Option<T> {
    match section.value(key) {
        None => Some(default),
        Some(_) => section.choice(report, key, choices),
    }
}

fn read_start(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<Version> {
    let Some(value) = section.value("start") else {
        return Version::new(1).ok();
    };
    let start = match value.get_ref() {
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix()).ok(),
        DeValue::String(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => None,
    };
    let start = start.and_then(|number| Version::new(number).ok());
    if start.is_none() {
        let allowed = "the whole number that the sequence begins with";
        report.refuse(value.span(), section.key("start"), describe(value), allowed);
    }
    start
}

fn read_timeout(section: &mut Section<'_>, report: &mut Report<'_>) -> Option<u64> {
    let seconds = match section.value("timeout") {
        None => TIMEOUT_S,
        Some(value) => {
            let seconds = seconds(value).filter(|seconds| TIMEOUTS_S.contains(seconds));
            if seconds.is_none() {
                report.refuse(value.span(), section.key("timeout"), describe(value), TIMEOUT);
            }
            seconds?
        }
    };
    Some(seconds.saturating_mul(1_000))
}

/// `90s`, `15m`, `1h`, `7d` in seconds.
fn seconds(value: &Value<'_>) -> Option<u64> {
    let text = value.get_ref().as_str()?;
    let (unit, each) = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)]
        .into_iter()
        .find(|(unit, _)| text.ends_with(unit))?;
    let number = text.strip_suffix(unit)?;
    let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| is_plain)?;
    number.checked_mul(each)
}
