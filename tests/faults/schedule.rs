//! Which call meets which fault: a function of the seed, the place and how often it was reached.
//!
//! The first calls of a place meet every kind of fault in turn, so that no place goes without; after
//! those the seed decides. The count is kept by kind and place, and at the end it is proof: a place
//! that was reached and never killed at fails the run.

use crate::call::{Call, Function, Place};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// What happens to a call, or to the stack around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fault {
    /// The process dies, the call was never made.
    KilledBefore,
    /// The call took effect, the process dies before it hears.
    KilledAfter,
    /// The call took effect, its answer is lost with the connection.
    AnswerLost,
    /// AWS refuses for want of capacity.
    Throttled,
    /// AWS answers 500.
    ServerError,
    /// The connection breaks before the call reaches AWS.
    Broken,
    /// No answer within any client's patience; the call is never made.
    Silent,
    /// The call takes effect after its client gave up.
    Late,
    /// A transaction stands in the way.
    Conflict,
    /// AWS denies what it allowed before.
    Denied,
    /// One sent message is two in the queue.
    SentTwice,
    /// A sent message shows seconds later.
    SentLate,
    /// One delivery of a message to two consumers at the same time.
    DeliveredTwice,
    /// A worker stands still beyond its lease, and goes on.
    Frozen,
    /// A worker's write arrives after its lease.
    WrittenLate,
    /// No steward runs for a while.
    StewardDown,
    /// Two stewards run at the same time.
    TwoStewards,
    /// A new build is deployed while the old one works.
    Deploy,
    /// A provider that is asked answers 429 or 500, or breaks off.
    ProviderFails,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}"))
    }
}

/// In this order a place meets them; then chance rules.
const IN_TURN: [Fault; 11] = [
    Fault::KilledBefore,
    Fault::KilledAfter,
    Fault::AnswerLost,
    Fault::Throttled,
    Fault::ServerError,
    Fault::Broken,
    Fault::Silent,
    Fault::Late,
    Fault::Conflict,
    Fault::SentTwice,
    Fault::SentLate,
];

/// Faults in a thousand calls.
const fn chance(function: Function, fault: Fault) -> u32 {
    let (receiver, consumer, steward) = match fault {
        Fault::KilledBefore | Fault::KilledAfter => (5, 3, 2),
        Fault::AnswerLost => (14, 10, 6),
        Fault::Throttled | Fault::ServerError | Fault::Broken => (10, 8, 4),
        Fault::Silent => (3, 2, 1),
        Fault::Late => (6, 5, 2),
        Fault::Conflict => (8, 10, 4),
        Fault::SentTwice | Fault::SentLate => (40, 0, 20),
        Fault::Denied
        | Fault::DeliveredTwice
        | Fault::Frozen
        | Fault::WrittenLate
        | Fault::StewardDown
        | Fault::TwoStewards
        | Fault::Deploy
        | Fault::ProviderFails => (0, 0, 0),
    };
    match function {
        Function::Receiver | Function::Reconciler => receiver,
        Function::Consumer => consumer,
        Function::Steward => steward,
    }
}

/// Calls in a thousand that a storm hits.
const STORM: u32 = 850;

/// What goes wrong with every try to apply one row, until its budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Curse {
    /// It kills its worker.
    Kills,
    /// AWS denies it.
    Denied,
}

/// Decides and counts.
pub(crate) struct Schedule {
    seed: u64,
    /// Whether every place meets every kind in turn, and not only the kills.
    thorough: bool,
    /// Tries that a cursed row loses.
    curse_len: u32,
    curses: HashMap<String, Curse>,
    by_chance: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    reached: BTreeMap<Place, u64>,
    next_in_turn: BTreeMap<Place, usize>,
    injected: BTreeMap<Fault, u64>,
    at: BTreeMap<(Place, Fault), u64>,
    cursed: HashMap<String, u32>,
    storm: Option<Fault>,
    /// `reached`, when chance ended.
    reached_by_chance: BTreeMap<Place, u64>,
}

impl Schedule {
    pub(crate) fn new(
        seed: u64,
        thorough: bool,
        curses: HashMap<String, Curse>,
        curse_len: u32,
    ) -> Self {
        let by_chance = AtomicBool::new(true);
        Self { seed, thorough, curse_len, curses, by_chance, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this call meets.
    pub(crate) fn decide(&self, call: &Call) -> Option<Fault> {
        let mut inner = self.inner();
        let reached = inner.reached.entry(call.place.clone()).or_default();
        *reached += 1;
        let n = *reached;
        let fault = self
            .in_turn(&mut inner, call, n)
            .or_else(|| self.cursed(&mut inner, call))
            .or_else(|| self.chance(inner.storm, call, n))?;
        count(&mut inner, &call.place, fault);
        Some(fault)
    }

    /// The first two calls of a place are killed at; then every second call meets the next kind.
    fn in_turn(&self, inner: &mut Inner, call: &Call, n: u64) -> Option<Fault> {
        let next = inner.next_in_turn.entry(call.place.clone()).or_default();
        let only_kills = !self.thorough || !self.by_chance.load(Ordering::Relaxed);
        if *next >= 2 && (n % 2 == 1 || only_kills) {
            return None;
        }
        let (skipped, fault) =
            IN_TURN.iter().skip(*next).enumerate().find(|(_, fault)| applies(**fault, call))?;
        *next += skipped + 1;
        Some(*fault)
    }

    fn cursed(&self, inner: &mut Inner, call: &Call) -> Option<Fault> {
        if !call.is_apply() {
            return None;
        }
        let key = call.keys.first()?;
        let curse = self.curses.get(key)?;
        let tries = inner.cursed.entry(key.clone()).or_default();
        *tries += 1;
        (*tries <= self.curse_len).then_some(match curse {
            Curse::Kills => Fault::KilledBefore,
            Curse::Denied => Fault::Denied,
        })
    }

    fn chance(&self, storm: Option<Fault>, call: &Call, n: u64) -> Option<Fault> {
        if !self.by_chance.load(Ordering::Relaxed) {
            return None;
        }
        let mut roll = self.roll(&call.place, n);
        if let Some(fault) = storm.filter(|fault| applies(*fault, call))
            && roll < STORM
        {
            return Some(fault);
        }
        IN_TURN.into_iter().filter(|fault| applies(*fault, call)).find(|fault| {
            let share = chance(call.place.function, *fault);
            let hit = roll < share;
            roll = roll.saturating_sub(share);
            hit
        })
    }

    /// 0 to 999, the same for the same seed, place and count.
    fn roll(&self, place: &Place, n: u64) -> u32 {
        let digest = Sha256::digest(format!("{}/{place}/{n}", self.seed));
        let number = digest.iter().take(4).fold(0_u32, |sum, byte| (sum << 8) | u32::from(*byte));
        number % 1_000
    }

    /// A fault of the stack around the functions, or of a worker.
    pub(crate) fn count(&self, fault: Fault) {
        *self.inner().injected.entry(fault).or_default() += 1;
    }

    /// Almost every call meets this fault, until it is called with none.
    pub(crate) fn storm(&self, fault: Option<Fault>) {
        self.inner().storm = fault;
    }

    /// From now on only what a place has not met yet: the kills.
    pub(crate) fn calm(&self) {
        self.by_chance.store(false, Ordering::Relaxed);
        let mut inner = self.inner();
        inner.storm = None;
        inner.reached_by_chance = inner.reached.clone();
    }

    /// Whether nothing is left to chance any more.
    pub(crate) fn is_calm(&self) -> bool {
        !self.by_chance.load(Ordering::Relaxed)
    }

    /// Faults injected so far.
    pub(crate) fn total(&self) -> u64 {
        self.inner().injected.values().sum()
    }

    /// How often each kind was injected.
    pub(crate) fn by_kind(&self) -> Vec<(Fault, u64)> {
        self.inner().injected.iter().map(|(fault, n)| (*fault, *n)).collect()
    }

    /// Every place that was reached: how often, and how often killed at, before and after.
    pub(crate) fn places(&self) -> Vec<(Place, u64, u64, u64)> {
        let inner = self.inner();
        let at = |place: &Place, fault| inner.at.get(&(place.clone(), fault)).copied().unwrap_or(0);
        let row = |(place, n): (&Place, &u64)| {
            let [before, after] = [Fault::KilledBefore, Fault::KilledAfter].map(|f| at(place, f));
            (place.clone(), *n, before, after)
        };
        inner.reached.iter().map(row).collect()
    }

    /// Kinds of fault that a place should have met, as often as it was reached, and did not.
    pub(crate) fn never_injected(&self) -> Vec<String> {
        let inner = self.inner();
        let mut missing = Vec::new();
        for (place, n) in &inner.reached {
            let call = Call { place: place.clone(), keys: Vec::new(), lease_until: None };
            let by_chance = inner.reached_by_chance.get(place).copied().unwrap_or(0);
            let kinds = IN_TURN.into_iter().filter(|fault| applies(*fault, &call));
            for (fault, index) in kinds.zip(0_u64..) {
                let is_due =
                    if index < 2 { *n > index } else { self.thorough && by_chance >= 2 * index };
                if is_due && !inner.at.contains_key(&(place.clone(), fault)) {
                    missing.push(format!("{place}: {fault}"));
                }
            }
        }
        missing
    }
}

fn count(inner: &mut Inner, place: &Place, fault: Fault) {
    *inner.injected.entry(fault).or_default() += 1;
    *inner.at.entry((place.clone(), fault)).or_default() += 1;
}

fn applies(fault: Fault, call: &Call) -> bool {
    match fault {
        Fault::Conflict => call.is_write(),
        Fault::SentTwice | Fault::SentLate => call.is_send(),
        _ => true,
    }
}
