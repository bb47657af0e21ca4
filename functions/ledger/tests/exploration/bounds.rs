//! What one exploration contains, and the broken designs.

use ledger::Policy;

/// How the events become state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Projection {
    /// Each event carries the whole state and a version.
    Snapshot,
    /// Each event adds its amount.
    Delta,
    /// The events are numbered 1 and 2.
    Sequence,
    /// A snapshot of one entity and a delta of another, in one transaction.
    Both,
}

/// The protocol, or the protocol with one thing taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Design {
    Whole,
    /// A lease holder's writes ask neither for its epoch nor for the status.
    NoFence,
    /// A change is made whatever version the entity has.
    NoVersionGuard,
    /// The entity is written first, the row afterwards.
    TwoWrites,
    /// A duplicate of a claimed row is answered and forgotten, and nothing sweeps.
    DoneWhileClaimed,
    /// A redriven row keeps its place in the bucket of the dead.
    LeftAmongTheDead,
    /// A waiter leaves the index, and whoever applies its predecessor sends it a message.
    WokenByMessageOnly,
    /// A next row that was leased out of its wait is not woken.
    WakesWaitersOnly,
    /// The set of waiters changes without the revision.
    SilentWaiters,
    /// A forced burial is dated before the message that announces it.
    BackdatedBurial,
    /// A message redrives a row whenever it was sent.
    AgelessMessages,
}

/// What one exploration contains.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) name: &'static str,
    pub(crate) projection: Projection,
    /// The event each delivery carries.
    pub(crate) deliveries: &'static [u8],
    pub(crate) workers: usize,
    pub(crate) stewards: usize,
    /// A person who redrives, resolves and moves messages back from the dead-letter queue.
    pub(crate) operator: bool,
    /// A second build comes out at some moment.
    pub(crate) deploy: bool,
    /// Runs fail.
    pub(crate) transient: bool,
    /// Runs fail beyond repair.
    pub(crate) permanent: bool,
    /// The store throttles.
    pub(crate) throttle: bool,
    /// Settled rows are pruned, and a newer build rewrites rows.
    pub(crate) oddities: bool,
    /// A sweep's new `due_at` differs from the one before.
    pub(crate) due_detail: bool,
    pub(crate) attempts_max: u32,
    pub(crate) redrives_max: u32,
    pub(crate) waiters_max: usize,
    /// A number before both events never comes.
    pub(crate) gap: bool,
    /// Deliveries, steward and person take their turns whole: they still die and lose answers
    /// anywhere, but nobody acts in between.
    pub(crate) coarse: bool,
    /// Interchangeable workers are one. Off where a trace is to be read.
    pub(crate) symmetric: bool,
    /// The search gives up here.
    pub(crate) states_max: usize,
}

impl Bounds {
    pub(crate) const fn new(name: &'static str, projection: Projection) -> Self {
        Self {
            name,
            projection,
            deliveries: &[0, 0, 1],
            workers: 2,
            stewards: 1,
            operator: false,
            deploy: false,
            transient: false,
            permanent: false,
            throttle: false,
            oddities: false,
            due_detail: false,
            attempts_max: 2,
            redrives_max: 0,
            waiters_max: 100,
            gap: false,
            coarse: false,
            symmetric: true,
            states_max: 50_000_000,
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        Policy {
            attempts_max: self.attempts_max,
            redrives_max: self.redrives_max,
            waiters_max: self.waiters_max,
            ..Policy::default()
        }
    }

    /// Whether revisions are read at all.
    pub(crate) fn stands_on_revisions(&self) -> bool {
        self.projection != Projection::Snapshot
    }

    /// The place of worker 1, 2, ... among the actors: behind the deliveries.
    pub(crate) fn worker(&self, owner: u8) -> usize {
        self.deliveries.len() + usize::from(owner) - 1
    }

    pub(crate) fn is_worker(&self, who: usize) -> bool {
        (self.deliveries.len()..self.deliveries.len() + self.workers).contains(&who)
    }

    pub(crate) fn steward(&self, index: usize) -> usize {
        self.deliveries.len() + self.workers + index
    }

    pub(crate) fn person(&self) -> usize {
        self.deliveries.len() + self.workers + self.stewards
    }
}
