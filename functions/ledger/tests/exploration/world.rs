//! One state of everything: the rows, the entities, the queue and where each actor stands.
//!
//! A world is kept in a *normal form* in which numbers that only ever get compared for equality
//! (fences, revisions, tokens) are renumbered from one. That is what makes the space finite
//! without a limit on crashes, waits, runs or redrives.

use crate::{
    model::Model,
    pool::mix,
    process::{Proc, RowIx},
};

/// Rows, and entities: two of each at most.
pub(crate) const ROWS: usize = 2;
/// Actors.
pub(crate) const PROCS: usize = 7;

/// A message older than the row's burial is in the queue.
pub(crate) const STALE: u8 = 1;
/// A message younger than the row's burial is in the queue.
pub(crate) const FRESH: u8 = 2;
/// A message is in the dead-letter queue.
pub(crate) const LETTER: u8 = 4;
/// Broken designs only: the young message is in truth older than the burial.
pub(crate) const FORGED: u8 = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct World {
    /// Lives, by number; 0 is no row.
    pub(crate) rows: [u16; ROWS],
    /// Entities, by number; 0 is no state row.
    pub(crate) entities: [u16; ROWS],
    /// Processes, by number.
    pub(crate) procs: [u16; PROCS],
    /// What the queues hold for each row. A message that is received stays until it is deleted,
    /// and any number of workers may receive it.
    pub(crate) mail: [u8; ROWS],
    /// Ghost: how often each event has changed the state.
    pub(crate) applied: [u8; ROWS],
    /// Ghost: which events have been answered 2xx, by bit; kept where a design is judged by it.
    pub(crate) answered: u8,
    /// Whether a second build is out.
    pub(crate) deployed: bool,
}

/// What a step may have brought out of its normal form.
#[derive(Clone, Copy)]
struct Touched {
    tokens: bool,
    epochs: bool,
    revisions: bool,
    order: bool,
}

impl World {
    pub(crate) const fn fingerprint(&self) -> u64 {
        let [r0, r1] = self.rows;
        let [e0, e1] = self.entities;
        let [p0, p1, p2, p3, p4, p5, p6] = self.procs;
        let [m0, m1] = self.mail;
        let [a0, a1] = self.applied;
        let a = pack(r0, r1, e0, e1);
        let b = pack(p0, p1, p2, p3);
        let c = pack(p4, p5, p6, m0 as u16 | (m1 as u16) << 8);
        let d = pack(a0 as u16, a1 as u16, self.answered as u16, self.deployed as u16);
        mix(mix(a, b), mix(c, d))
    }

    pub(crate) fn life(&self, row: RowIx) -> u16 {
        self.rows[usize::from(row)]
    }

    /// What a burial or a redrive does to everything that was on its way before.
    pub(crate) fn stale(&mut self, row: RowIx, model: &mut Model) {
        let mail = &mut self.mail[usize::from(row)];
        if *mail & FRESH != 0 {
            *mail = *mail & !FRESH | STALE;
        }
        for number in &mut self.procs {
            let proc = model.proc(*number);
            let staled = proc.staled(row);
            if staled != proc {
                *number = model.number(staled);
            }
        }
    }

    /// Puts the world into its normal form.
    pub(crate) fn normalise(&mut self, model: &mut Model) {
        self.renumber(model, Touched { tokens: true, epochs: true, revisions: true, order: true });
    }

    /// The same, where `from` is the world in normal form before one step of one actor.
    pub(crate) fn normalise_after(&mut self, model: &mut Model, from: &World, who: usize) {
        let rows = self.rows != from.rows;
        let (before, after) = (model.proc(from.procs[who]), model.proc(self.procs[who]));
        let is_call = matches!(before, Proc::Leasing { .. } | Proc::Claiming { .. });
        let was_reading = matches!(before, Proc::Applying { .. });
        let touched = Touched {
            tokens: rows || is_call,
            epochs: rows || before.fence() != after.fence(),
            revisions: self.entities != from.entities || was_reading,
            order: model.bounds.is_worker(who),
        };
        self.renumber(model, touched);
    }

    fn renumber(&mut self, model: &mut Model, touched: Touched) {
        if touched.tokens || touched.epochs {
            let mut procs = [Proc::Absent; PROCS];
            for (proc, number) in procs.iter_mut().zip(self.procs) {
                *proc = model.proc(number);
            }
            for row in 0..2 {
                if self.life(row) == 0 {
                    continue;
                }
                if touched.tokens {
                    self.forget_tokens(row, &procs, model);
                }
                if touched.epochs {
                    self.renumber_epochs(row, &procs, model);
                }
            }
        }
        if touched.revisions && model.bounds.stands_on_revisions() {
            self.renumber_revisions(model);
        }
        if touched.order && model.bounds.symmetric {
            self.order_workers(model);
        }
    }

    /// A nonce or an owner that no caller waits to see again is like any other.
    fn forget_tokens(&mut self, row: RowIx, procs: &[Proc; PROCS], model: &mut Model) {
        let glance = model.glance(self.life(row));
        if glance.nonce != 0 {
            let awaited = procs.iter().any(|proc| {
                matches!(proc, Proc::Claiming { row: r, nonce } if *r == row && *nonce == glance.nonce)
            });
            if !awaited {
                let life = model.with_nonce(self.life(row), 0);
                self.rows[usize::from(row)] = life;
            }
        }
        if glance.owner != 0 {
            let worker = procs[model.bounds.worker(glance.owner)];
            if !matches!(worker, Proc::Leasing { row: r, .. } if r == row) {
                let life = model.with_owner(self.life(row), 0);
                self.rows[usize::from(row)] = life;
            }
        }
    }

    fn renumber_epochs(&mut self, row: RowIx, procs: &[Proc; PROCS], model: &mut Model) {
        let current = model.glance(self.life(row)).epoch;
        if current == 0 {
            return;
        }
        let mut used = 1_u64 << current;
        for proc in procs {
            if let Some((r, epoch)) = proc.fence()
                && r == row
            {
                used |= 1 << epoch;
            }
        }
        // Bits 1..=n: nothing to do.
        if (used >> 1) & ((used >> 1) + 1) == 0 {
            return;
        }
        let rank = |epoch: u8| ((used & ((2_u64 << epoch) - 1)) >> 1).count_ones() as u8;
        self.rows[usize::from(row)] = model.with_epoch(self.life(row), rank(current));
        for (number, proc) in self.procs.iter_mut().zip(procs) {
            if let Some((r, epoch)) = proc.fence()
                && r == row
                && rank(epoch) != epoch
            {
                *number = model.number(proc.with_epoch(rank(epoch)));
            }
        }
    }

    fn renumber_revisions(&mut self, model: &mut Model) {
        let workers = model.bounds.worker(1)..model.bounds.worker(1) + model.bounds.workers;
        for slot in 0..ROWS {
            let current = model.revision(self.entities[slot]);
            let mut used = 1 | 1_u64 << current;
            for who in workers.clone() {
                if let Proc::Applying { read, .. } = model.proc(self.procs[who]) {
                    used |= 1 << model.revision(read[slot]);
                }
            }
            if (used >> 1) & ((used >> 1) + 1) == 0 {
                continue;
            }
            let rank = |revision: u8| ((used & ((2_u64 << revision) - 1)) >> 1).count_ones() as u8;
            self.entities[slot] = model.with_revision(self.entities[slot], rank(current));
            for who in workers.clone() {
                let proc = model.proc(self.procs[who]);
                if let Proc::Applying { row, epoch, dropped, wakes, mut read } = proc {
                    let renumbered = rank(model.revision(read[slot]));
                    read[slot] = model.with_revision(read[slot], renumbered);
                    self.procs[who] =
                        model.number(Proc::Applying { row, epoch, dropped, wakes, read });
                }
            }
        }
    }

    /// Two workers are interchangeable: the lesser number goes first.
    fn order_workers(&mut self, model: &mut Model) {
        let [first, second] = [model.bounds.worker(1), model.bounds.worker(2)];
        if model.bounds.workers < 2 || self.procs[first] <= self.procs[second] {
            return;
        }
        self.procs.swap(first, second);
        for row in 0..ROWS {
            let owner = model.glance_at(self.rows[row]).map_or(0, |glance| glance.owner);
            if owner != 0 {
                self.rows[row] = model.with_owner(self.rows[row], 3 - owner);
            }
        }
    }
}

const fn pack(a: u16, b: u16, c: u16, d: u16) -> u64 {
    a as u64 | (b as u64) << 16 | (c as u64) << 32 | (d as u64) << 48
}
