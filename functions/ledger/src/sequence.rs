//! Sequences: entities whose provider numbers its events without gaps.
//!
//! Number *n* is applied on top of *n* - 1 and of nothing else. One that comes early waits: its
//! row becomes `waiting` and its name joins the set on the state row, in one transaction that
//! also raises the revision. Whoever applies *n* - 1 therefore either has read the set with the
//! waiter in it, or is refused by the revision and reads again: the waiter is never overlooked.
//!
//! The functions here are the decisions; [`crate::verbs::wait_in_sequence`] and
//! [`crate::verbs::apply_and_wake`] are the writes.

use crate::{Entity, EventKey, Version, verbs::Wake};
use std::{collections::BTreeSet, fmt};

/// A member of the set on the state row: `<n>#<ledger key>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// The number it carries.
    pub number: Version,
    /// Its row.
    pub key: EventKey,
}

impl Waiter {
    /// Reads a member as stored; `None` for what no build of this format wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, key) = text.split_once('#')?;
        Some(Self {
            number: Version::from_text(number, crate::Unit::Integer).ok()?,
            key: EventKey::parse(key).ok()?,
        })
    }
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.number, self.key)
    }
}

/// Whether it is a number's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Turn {
    /// Its predecessor is in place, or it is the first.
    Now,
    /// Its place is taken, or the entity is final.
    Superseded,
    /// Its predecessor has not come.
    Early,
}

/// Whether somebody waits whose number comes before `number`.
#[must_use]
pub fn is_behind_another(entity: Option<&Entity>, number: Version) -> bool {
    let Some(entity) = entity else { return false };
    let waiters = entity.waiting.iter().filter_map(|member| Waiter::parse(member));
    waiters.into_iter().any(|waiter| waiter.number < number)
}

/// Whether it is the turn of `number` on `entity`, in a sequence that begins with `start`.
pub fn turn(entity: Option<&Entity>, number: Version, start: Version) -> Turn {
    if entity.is_some_and(|entity| entity.is_final) {
        return Turn::Superseded;
    }
    match entity.and_then(|entity| entity.version) {
        None if number <= start => Turn::Now,
        Some(reached) if reached >= number => Turn::Superseded,
        Some(reached) if reached == number.predecessor() => Turn::Now,
        None | Some(_) => Turn::Early,
    }
}

/// What the write of one number does to those that wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Succession {
    /// Members that leave the set: for [`crate::Change::leaves`].
    pub leaves: BTreeSet<String>,
    /// Who has the next number, for [`crate::verbs::Apply::wake`]: one of them, and the next one
    /// only where that one has moved on.
    pub wakes: Vec<Wake>,
}

/// Who leaves the set when `number` is applied, and who is woken.
///
/// Everyone up to `number` leaves: `number` itself and those it overtakes have nothing to wait for
/// any more. Left in place, members whose rows ended another way (dead, resolved, superseded) would
/// fill the set for good. The next one is woken by the same write and stays until it is applied, or
/// overtaken: one behind it whose time is up must see that somebody comes before it. Of several rows
/// with the next number one is to be woken; the others find it taken when their own time is up.
#[must_use]
pub fn succession(entity: Option<&Entity>, number: Version) -> Succession {
    let mut after = Succession::default();
    let Some(entity) = entity else { return after };
    for member in &entity.waiting {
        // A member nobody can read waits for nothing this build knows of: leave it alone.
        let Some(waiter) = Waiter::parse(member) else {
            continue;
        };
        if waiter.number <= number {
            after.leaves.insert(member.clone());
        } else if waiter.number.predecessor() == number {
            after.wakes.push(Wake { key: waiter.key });
        }
    }
    after
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::Millis;

    fn version(number: i128) -> Version {
        Version::new(number).unwrap()
    }

    fn entity(reached: Option<i128>, waiting: &[&str]) -> Entity {
        Entity {
            version: reached.map(version),
            rank: 0,
            last_event: String::new(),
            revision: 1,
            state: serde_json::Map::new(),
            updated_at: Millis(0),
            is_final: false,
            waiting: waiting.iter().map(|member| (*member).to_owned()).collect(),
        }
    }

    #[test]
    fn a_number_has_its_turn_on_top_of_its_predecessor_and_of_nothing_else() {
        let start = version(1);
        let at = |reached, number| turn(Some(&entity(reached, &[])), version(number), start);
        assert_eq!(at(Some(4), 5), Turn::Now);
        assert_eq!(at(Some(3), 5), Turn::Early);
        assert_eq!(at(Some(5), 5), Turn::Superseded);
        assert_eq!(at(Some(6), 5), Turn::Superseded);
        assert_eq!(at(None, 1), Turn::Now);
        assert_eq!(at(None, 2), Turn::Early);
        assert_eq!(turn(None, version(1), start), Turn::Now);
        assert_eq!(turn(None, version(2), start), Turn::Early);
        assert_eq!(turn(None, version(0), start), Turn::Now);
        let mut last = entity(Some(4), &[]);
        last.is_final = true;
        assert_eq!(turn(Some(&last), version(5), start), Turn::Superseded);
    }

    #[test]
    fn a_member_survives_its_own_text_whatever_the_provider_puts_into_its_id() {
        for text in ["7#s#evt#with#signs", "-3#github#a", "0#s#1"] {
            assert_eq!(Waiter::parse(text).unwrap().to_string(), text);
        }
        for foreign in ["", "7", "x#s#1", "7#", "7#s", "1.5#s#1"] {
            assert_eq!(Waiter::parse(foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn a_number_takes_itself_and_the_overtaken_out_of_the_set_and_wakes_the_next() {
        let set = ["3#s#late", "4#s#me", "5#s#next", "5#s#twin", "6#s#later", "?"];
        let after = succession(Some(&entity(Some(3), &set)), version(4));
        let leaves: Vec<_> = after.leaves.iter().map(String::as_str).collect();
        assert_eq!(leaves, ["3#s#late", "4#s#me"]);
        let wakes: Vec<_> = after.wakes.iter().map(|wake| wake.key.as_str()).collect();
        assert_eq!(wakes, ["s#next", "s#twin"]);
    }

    #[test]
    fn nobody_is_woken_whose_predecessor_is_still_missing() {
        let after = succession(Some(&entity(Some(1), &["9#s#far"])), version(2));
        assert_eq!(after, Succession::default());
        assert_eq!(succession(None, version(1)), Succession::default());
    }
}
