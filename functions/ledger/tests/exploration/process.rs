//! The actors and where each stands. An actor that died is one that starts over: whatever it had
//! decided and not written is forgotten, whatever it had written stays.

/// An event, and the row of it: 0 is the earlier one, 1 the later one of the same entity.
pub(crate) type RowIx = u8;

/// One actor's place in its own programme.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Proc {
    /// No such actor.
    Absent,

    /// A delivery that has not arrived.
    Coming,
    /// It has tried to claim and heard nothing.
    Claiming { row: RowIx, nonce: u8 },
    /// The row is durable; the message is to be sent.
    Sending { row: RowIx },
    /// Answered, or broken off.
    Gone,

    /// A worker without work.
    Idle,
    /// A lease call without an answer. `fresh`: the message is younger than the row's burial.
    Leasing { row: RowIx, fresh: bool },
    /// The row is dead: about to redrive it by the message.
    Reviving { row: RowIx, fresh: bool },
    /// The budget is spent: about to bury by force.
    Forcing { row: RowIx },
    /// Believes to hold the lease of `epoch`; `dropped` are changes that were superseded.
    Held { row: RowIx, epoch: u8, dropped: u8 },
    /// Has read the entities and decided on a transaction.
    Applying { row: RowIx, epoch: u8, dropped: u8, wakes: bool, read: [u16; 2] },
    /// Has decided to wait for the predecessor.
    Queueing { row: RowIx, epoch: u8 },
    /// Nothing is left to change: about to settle.
    Settling { row: RowIx, epoch: u8 },
    /// Finished; the message is to be deleted.
    Deleting { row: RowIx },
    /// Broken designs only: the entity is written, the row is not yet.
    HalfDone { row: RowIx, epoch: u8 },
    /// Broken designs only: the change is committed, the waiter's message is to be sent.
    Notifying { row: RowIx },

    /// A steward or operator between two looks.
    Resting,
    /// Saw a pending row with that `due_at`, in milliseconds.
    Sweeping { row: RowIx, seen: u32 },
    /// Saw a dead row. `fresh`: it has not been buried again since.
    Redriving { row: RowIx, fresh: bool, cure: bool },
    /// Saw an abandoned row: its message goes first.
    Warning { row: RowIx },
    /// ... then the burial.
    Burying { row: RowIx },
    /// Changed the row; its message is to be sent.
    Posting { row: RowIx },
    /// A person is about to redrive a dead row.
    Pleading { row: RowIx },
    /// A person is about to close a dead row.
    Resolving { row: RowIx },
}

impl Proc {
    /// The row it works on.
    pub(crate) const fn row(self) -> Option<RowIx> {
        match self {
            Self::Absent | Self::Coming | Self::Gone | Self::Idle | Self::Resting => None,
            Self::Claiming { row, .. }
            | Self::Sending { row }
            | Self::Leasing { row, .. }
            | Self::Reviving { row, .. }
            | Self::Forcing { row }
            | Self::Held { row, .. }
            | Self::Applying { row, .. }
            | Self::Queueing { row, .. }
            | Self::Settling { row, .. }
            | Self::Deleting { row }
            | Self::HalfDone { row, .. }
            | Self::Notifying { row }
            | Self::Sweeping { row, .. }
            | Self::Redriving { row, .. }
            | Self::Warning { row }
            | Self::Burying { row }
            | Self::Posting { row }
            | Self::Pleading { row }
            | Self::Resolving { row } => Some(row),
        }
    }

    /// The row and the fence of it that it believes in.
    pub(crate) const fn fence(self) -> Option<(RowIx, u8)> {
        match self {
            Self::Held { row, epoch, .. }
            | Self::Applying { row, epoch, .. }
            | Self::Queueing { row, epoch }
            | Self::Settling { row, epoch }
            | Self::HalfDone { row, epoch } => Some((row, epoch)),
            _ => None,
        }
    }

    /// The same with another fence.
    pub(crate) fn with_epoch(mut self, fence: u8) -> Self {
        match &mut self {
            Self::Held { epoch, .. }
            | Self::Applying { epoch, .. }
            | Self::Queueing { epoch, .. }
            | Self::Settling { epoch, .. }
            | Self::HalfDone { epoch, .. } => *epoch = fence,
            _ => {}
        }
        self
    }

    /// The same after its row was buried or redriven: what it knows is older than that.
    pub(crate) fn staled(mut self, at: RowIx) -> Self {
        match &mut self {
            Self::Leasing { row, fresh }
            | Self::Reviving { row, fresh }
            | Self::Redriving { row, fresh, .. }
                if *row == at =>
            {
                *fresh = false;
            }
            _ => {}
        }
        self
    }
}
