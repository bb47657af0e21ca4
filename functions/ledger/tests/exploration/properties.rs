//! What must never happen, restated without the verbs.

use crate::model::{Model, Verb};
use crate::{
    bounds::{Design, Projection},
    pool::Kind,
    times::TIMED_OUT,
    world::World,
};
use ledger::{Bucket, Entity, FailureClass, Life, Outcome, ROW_FORMAT, Status, Version};
use std::fmt;

/// The `always` properties.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Property {
    NeverLost,
    NeverDoubled,
    NeverReversed,
    NeverDeadWithItsEffect,
    SettledWithItsEffect,
    StateIsItsEvents,
    SettledNeverChanges,
    ForeignNeverTouched,
    NoBudgetNobodyGranted,
    AttemptsAreRuns,
    BuriedWithReason,
    FencesOnlyRise,
    OnlyTheHolderWrites,
    OneHolderAtATime,
    WaitersAreWoken,
    WaitersHaveSomethingToWaitFor,
    RowsAreWellFormed,
}

impl Property {
    pub(crate) const ALL: [Self; 17] = [
        Self::NeverLost,
        Self::NeverDoubled,
        Self::NeverReversed,
        Self::NeverDeadWithItsEffect,
        Self::SettledWithItsEffect,
        Self::StateIsItsEvents,
        Self::SettledNeverChanges,
        Self::ForeignNeverTouched,
        Self::NoBudgetNobodyGranted,
        Self::AttemptsAreRuns,
        Self::BuriedWithReason,
        Self::FencesOnlyRise,
        Self::OnlyTheHolderWrites,
        Self::OneHolderAtATime,
        Self::WaitersAreWoken,
        Self::WaitersHaveSomethingToWaitFor,
        Self::RowsAreWellFormed,
    ];
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeverLost => "never lost: with every worker and message gone, the steward and one worker end every row",
            Self::NeverDoubled => "never doubled: an event changes the state once",
            Self::NeverReversed => "never reversed: no older version replaces a newer one",
            Self::NeverDeadWithItsEffect => "never dead, or given back, with its effect applied",
            Self::SettledWithItsEffect => "settled as applied exactly if applied",
            Self::StateIsItsEvents => "the state is what its events made of it, no more and no less",
            Self::SettledNeverChanges => "a settled row never changes",
            Self::ForeignNeverTouched => "a row of a newer build is never touched",
            Self::NoBudgetNobodyGranted => "no budget nobody granted",
            Self::AttemptsAreRuns => "attempts are runs: one more with a lease, one less with a wait",
            Self::BuriedWithReason => {
                "a failed run is buried exactly if it was beyond repair or the budget is spent"
            }
            Self::FencesOnlyRise => "a fence rises with each lease and with nothing else",
            Self::OnlyTheHolderWrites => "only the holder of the last lease ends its run",
            Self::OneHolderAtATime => "nobody takes a row, or buries it, before the lease ends",
            Self::WaitersAreWoken => "a waiter whose predecessor has come is due at once",
            Self::WaitersHaveSomethingToWaitFor => {
                "the set of waiters names nobody whose number is written"
            }
            Self::RowsAreWellFormed => "rows are well formed: lease, index and outcome fit the status",
        })
    }
}

/// Who writes, as far as it matters.
#[derive(Clone, Copy)]
pub(crate) enum Writer {
    /// The holder of a lease, or one that believes so.
    Holder { epoch: u8 },
    /// Somebody who reads a clock.
    Clock { late: bool },
    /// Somebody who does not.
    Anyone,
}

/// Judges one write to one row.
pub(crate) fn judge(
    (verb, writer): (Verb, Writer),
    old: Option<&Life>,
    new: &Life,
    model: &Model,
) -> Option<Property> {
    if let Some(old) = old {
        if old.status == Status::Settled {
            return Some(Property::SettledNeverChanges);
        }
        if old.format != ROW_FORMAT {
            return Some(Property::ForeignNeverTouched);
        }
    }
    if let Some(breach) = judge_writer(writer, old).or_else(|| judge_budget(verb, old, new, model))
    {
        return Some(breach);
    }
    let risen = old.map_or(0, |old| old.epoch) + u64::from(verb == Verb::Lease);
    if new.epoch != risen {
        return Some(Property::FencesOnlyRise);
    }
    (model.design == Design::Whole && !is_well_formed(new)).then_some(Property::RowsAreWellFormed)
}

fn judge_writer(writer: Writer, old: Option<&Life>) -> Option<Property> {
    let old = old?;
    let is_running = old.status == Status::Processing;
    match writer {
        Writer::Holder { epoch } => {
            (!is_running || old.epoch != u64::from(epoch)).then_some(Property::OnlyTheHolderWrites)
        }
        // Every lease ends after the early clock and before the late one.
        Writer::Clock { late } => (is_running && !late).then_some(Property::OneHolderAtATime),
        Writer::Anyone => None,
    }
}

fn judge_budget(verb: Verb, old: Option<&Life>, new: &Life, model: &Model) -> Option<Property> {
    let before = old.map_or(0, |old| old.attempts);
    let expected = match verb {
        Verb::Lease => Some(before + 1),
        Verb::Wait => before.checked_sub(1),
        Verb::Redrive => Some(0),
        _ => Some(before),
    };
    if Some(new.attempts) != expected || new.attempts > model.policy.attempts_max {
        return Some(Property::AttemptsAreRuns);
    }
    let is_spent = before >= model.policy.attempts_max;
    let class = new.failure.as_ref().map(|failure| failure.class);
    let is_reason = match verb {
        Verb::Fail => !is_spent,
        Verb::Bury => is_spent || class == Some(FailureClass::Permanent),
        Verb::ForcedBury => is_spent,
        _ => true,
    };
    if !is_reason {
        return Some(Property::BuriedWithReason);
    }
    if verb == Verb::Redrive { judge_grant(old?, new, model) } else { None }
}

fn judge_grant(old: &Life, new: &Life, model: &Model) -> Option<Property> {
    let by_steward = new.redrives != old.redrives;
    let is_permanent =
        old.failure.as_ref().is_none_or(|failure| failure.class == FailureClass::Permanent);
    let cured = new.budget_release != old.budget_release;
    let cures_max = u32::from(model.bounds.deploy);
    let is_granted = old.status == Status::Dead
        && !(by_steward && is_permanent)
        && !(cured && old.budget_release.is_some())
        && new.redrives <= model.policy.redrives_max + cures_max
        && (!by_steward || cured || old.redrives < model.policy.redrives_max);
    (!is_granted).then_some(Property::NoBudgetNobodyGranted)
}

fn is_well_formed(life: &Life) -> bool {
    let bucket = life.open.map(|open| open.bucket);
    let is_placed = match life.status {
        Status::Claimed | Status::Processing | Status::Failed | Status::Waiting => {
            matches!(bucket, Some(Bucket::Pending(_)))
        }
        Status::Dead => {
            matches!(bucket, Some(Bucket::Dead(_) | Bucket::Parked(_))) && life.failure.is_some()
        }
        Status::Settled => bucket.is_none(),
    };
    let is_settled = life.status == Status::Settled;
    is_placed
        && life.lease.is_some() == (life.status == Status::Processing)
        && life.outcome.is_some() == is_settled
        && life.settled_at.is_some() == is_settled
        && life.expires_at.is_some() == is_settled
        && (life.status != Status::Waiting || life.waiting_since.is_some())
}

/// Judges one write to one entity.
pub(crate) fn judge_entity(old: Option<&Entity>, new: &Entity) -> Option<Property> {
    let reached = new.version.map(Version::get);
    let waits_in_vain = |member: &String| {
        let number = member.split('#').next().and_then(|number| number.parse::<i128>().ok());
        reached.zip(number).is_some_and(|(reached, number)| number <= reached)
    };
    if new.waiting.iter().any(waits_in_vain) {
        return Some(Property::WaitersHaveSomethingToWaitFor);
    }
    let old = old?;
    let is_older = (new.is_final, new.version) < (old.is_final, old.version);
    is_older.then_some(Property::NeverReversed)
}

/// Judges a world.
pub(crate) fn judge_world(world: &World, model: &mut Model) -> Option<Property> {
    for row in 0..2 {
        let Some(glance) = model.glance_at(world.life(row)) else { continue };
        let applied = world.applied[usize::from(row)];
        if applied > 1 {
            return Some(Property::NeverDoubled);
        }
        // A newer build may have rewritten what this one finished.
        if !glance.is_known {
            continue;
        }
        let is_half_done = model.design == Design::TwoWrites;
        if applied == 1 && glance.status != Status::Settled && !is_half_done {
            return Some(Property::NeverDeadWithItsEffect);
        }
        let is_applied = glance.outcome == Some(Outcome::Applied);
        if glance.status == Status::Settled && is_applied != (applied == 1) && !is_half_done {
            return Some(Property::SettledWithItsEffect);
        }
        let is_overlooked = model.bounds.projection == Projection::Sequence
            && model.design != Design::WokenByMessageOnly
            && row == 1
            && glance.status.is_pending()
            && glance.due == u32::try_from(TIMED_OUT.0).unwrap_or(0)
            && world.applied[0] == 1;
        if is_overlooked {
            return Some(Property::WaitersAreWoken);
        }
    }
    if let Some(breach) = model.tells_another_story(world.entities, world.applied) {
        return Some(breach);
    }
    (!model.is_rescued(world)).then_some(Property::NeverLost)
}

/// Whether a row is at rest: nobody needs to come back to it, or a person can find it.
pub(crate) fn is_at_rest(glance: crate::pool::Glance) -> bool {
    match glance.status {
        Status::Settled => true,
        Status::Dead => matches!(glance.bucket, Some(Kind::Dead | Kind::Parked)),
        Status::Claimed | Status::Processing | Status::Failed | Status::Waiting => !glance.is_known,
    }
}
