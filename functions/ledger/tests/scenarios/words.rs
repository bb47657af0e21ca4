//! Words to things and back.

use ledger::{
    Millis,
    verbs::{
        ApplyRefusal, BuryRefusal, ClaimRefusal, FailRefusal, FenceRefusal, ForcedBuryRefusal,
        LeaseRefusal, RedriveRefusal, ResolveRefusal, SweepRefusal, WaitInSequenceRefusal,
    },
};

/// `1h5s` as milliseconds.
pub(crate) fn duration(text: &str) -> Result<u64, String> {
    let bad = || format!("no such time: {text}");
    let mut rest = text;
    let mut sum = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, unit) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| bad())?;
        let (factor, length) = match unit {
            _ if unit.starts_with("ms") => (1, 2),
            _ if unit.starts_with('s') => (1_000, 1),
            _ if unit.starts_with('m') => (60_000, 1),
            _ if unit.starts_with('h') => (3_600_000, 1),
            _ if unit.starts_with('d') => (86_400_000, 1),
            _ => return Err(bad()),
        };
        sum += number * factor;
        rest = unit.get(length..).ok_or_else(bad)?;
    }
    Ok(sum)
}

/// The other way round.
pub(crate) fn clock(time: Millis, began: Millis) -> String {
    let mut ms = time.since(began);
    let mut text = String::new();
    for (unit, size) in
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)]
    {
        if ms >= size {
            text += &(ms / size).to_string();
            text += unit;
            ms %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

pub(crate) const fn claim(why: ClaimRefusal) -> &'static str {
    match why {
        ClaimRefusal::Mine => "mine",
        ClaimRefusal::Conflict => "conflict",
        ClaimRefusal::Settled => "settled",
        ClaimRefusal::Pending => "pending",
        ClaimRefusal::Overdue => "overdue",
        ClaimRefusal::Dead => "dead",
        ClaimRefusal::DeadPermanent => "dead for good",
        ClaimRefusal::UnknownFormat => "newer format",
    }
}

pub(crate) fn lease(why: LeaseRefusal, began: Millis) -> String {
    match why {
        LeaseRefusal::Mine => "mine".to_owned(),
        LeaseRefusal::Settled => "settled".to_owned(),
        LeaseRefusal::Held { until } => format!("held until {}", clock(until, began)),
        LeaseRefusal::NotYet { retry_at } => format!("not before {}", clock(retry_at, began)),
        LeaseRefusal::OutOfBudget => "out of budget".to_owned(),
        LeaseRefusal::Dead { .. } => "dead".to_owned(),
        LeaseRefusal::Missing => "missing".to_owned(),
        LeaseRefusal::UnknownFormat => "newer format".to_owned(),
    }
}

pub(crate) const fn fence(why: FenceRefusal) -> &'static str {
    match why {
        FenceRefusal::Mine => "mine",
        FenceRefusal::Lost => "lost",
        FenceRefusal::Missing => "missing",
        FenceRefusal::UnknownFormat => "newer format",
    }
}

pub(crate) const fn apply(why: &ApplyRefusal) -> &'static str {
    match why {
        ApplyRefusal::Fence(why) => fence(*why),
        ApplyRefusal::Superseded(_) => "superseded",
        ApplyRefusal::RevisionMoved(_) => "moved",
        ApplyRefusal::NotWaiting => "the next does not wait",
    }
}

pub(crate) const fn fail(why: FailRefusal) -> &'static str {
    match why {
        FailRefusal::Fence(why) => fence(why),
        FailRefusal::OutOfBudget => "out of budget",
    }
}

pub(crate) const fn bury(why: BuryRefusal) -> &'static str {
    match why {
        BuryRefusal::Fence(why) => fence(why),
        BuryRefusal::BudgetLeft => "budget left",
    }
}

pub(crate) const fn force(why: ForcedBuryRefusal) -> &'static str {
    match why {
        ForcedBuryRefusal::Mine => "mine",
        ForcedBuryRefusal::MovedOn => "moved on",
        ForcedBuryRefusal::Missing => "missing",
        ForcedBuryRefusal::UnknownFormat => "newer format",
    }
}

pub(crate) const fn queue(why: WaitInSequenceRefusal) -> &'static str {
    match why {
        WaitInSequenceRefusal::Fence(why) => fence(why),
        WaitInSequenceRefusal::PredecessorCame => "predecessor came",
        WaitInSequenceRefusal::TooManyWaiters => "too many wait",
    }
}

pub(crate) const fn redrive(why: RedriveRefusal) -> &'static str {
    match why {
        RedriveRefusal::Mine => "mine",
        RedriveRefusal::MessageTooOld => "message too old",
        RedriveRefusal::MovedOn => "moved on",
        RedriveRefusal::NotDead => "not dead",
        RedriveRefusal::Missing => "missing",
        RedriveRefusal::UnknownFormat => "newer format",
    }
}

pub(crate) const fn sweep(why: SweepRefusal) -> &'static str {
    match why {
        SweepRefusal::Mine => "mine",
        SweepRefusal::MovedOn => "moved on",
        SweepRefusal::Missing => "missing",
        SweepRefusal::UnknownFormat => "newer format",
    }
}

pub(crate) const fn resolve(why: ResolveRefusal) -> &'static str {
    match why {
        ResolveRefusal::Mine => "mine",
        ResolveRefusal::NotDead(_) => "not dead",
        ResolveRefusal::Missing => "missing",
        ResolveRefusal::UnknownFormat => "newer format",
    }
}
