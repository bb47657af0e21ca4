//! The steward, the person, the queue and the deployments.

use crate::{
    bounds::Design,
    model::{Answer, Model, Said},
    pool::Kind,
    process::{Proc, RowIx},
    search::Step,
    verbs::Who,
    world::{FORGED, FRESH, LETTER, STALE, World},
};
use ledger::Status;

impl Model {
    pub(crate) fn steward(&mut self, world: &World, who: usize) {
        let proc = self.proc(world.procs[who]);
        match proc {
            Proc::Resting => return self.looking(world, who),
            Proc::Sweeping { row, seen } => {
                let answer = self.sweep(world.life(row), row, seen);
                self.moved(world, who, proc, "sweep", answer);
            }
            Proc::Redriving { row, fresh, cure } => {
                let answer = self.redrive(world.life(row), row, Who::Steward { fresh, cure });
                self.moved(world, who, proc, "redrive", answer);
            }
            Proc::Warning { row } => {
                let mut sent = *world;
                self.send(&mut sent, row);
                let step = Step::new(who, row, "send before the burial", "");
                self.step(&sent, who, Proc::Burying { row }, step);
            }
            Proc::Burying { row } => self.burying_by_force(world, who, row, Proc::Resting),
            Proc::Posting { row } => self.posting(world, who, row),
            _ => return,
        }
        let row = proc.row().unwrap_or(0);
        self.step(world, who, Proc::Resting, Step::new(who, row, "", "dies"));
    }

    /// Sees one row in its bucket, and decides.
    fn looking(&mut self, world: &World, who: usize) {
        for row in 0..2 {
            let Some(glance) = self.glance_at(world.life(row)) else { continue };
            let step = |how| Step::new(who, row, "look", how);
            let redrive = |cure| Proc::Redriving { row, fresh: true, cure };
            let cures = world.deployed && self.is_curable(world.life(row));
            match glance.bucket {
                Some(Kind::Pending) => {
                    if self.is_abandoned(world.life(row)) {
                        self.step(world, who, Proc::Warning { row }, step("abandoned"));
                    }
                    let sweep = Proc::Sweeping { row, seen: glance.due };
                    self.step(world, who, sweep, step("overdue"));
                }
                Some(Kind::Dead) => {
                    self.step(world, who, redrive(false), step("dead, redrive due"));
                }
                Some(Kind::Parked) | None => {}
            }
            if cures {
                self.step(world, who, redrive(true), step("died under another build"));
            }
        }
    }

    /// After the steward's or a person's write: the message follows.
    fn moved(&mut self, world: &World, who: usize, stay: Proc, what: &'static str, answer: Answer) {
        let row = stay.row().unwrap_or(0);
        let step = |how| Step::new(who, row, what, how);
        let next = Proc::Posting { row };
        match answer.said {
            Said::Done => {
                let mut after = *world;
                after.rows[usize::from(row)] = answer.life;
                let mut stay = stay;
                if !matches!(stay, Proc::Sweeping { .. }) {
                    after.stale(row, self);
                    stay = stay.staled(row);
                }
                self.judged(&after, who, next, step("accepted"), answer);
                self.judged(&after, who, stay, step("accepted, answer lost"), answer);
            }
            Said::Mine => self.step(world, who, next, step("mine already")),
            _ => self.step(world, who, Proc::Resting, step("refused")),
        }
    }

    fn posting(&mut self, world: &World, who: usize, row: RowIx) {
        let mut sent = *world;
        self.send(&mut sent, row);
        self.step(&sent, who, Proc::Resting, Step::new(who, row, "send", ""));
    }

    pub(crate) fn person(&mut self, world: &World, who: usize) {
        let proc = self.proc(world.procs[who]);
        match proc {
            Proc::Resting => {
                for row in 0..2 {
                    self.minding(world, who, row);
                }
                return;
            }
            Proc::Pleading { row } => {
                let answer = self.redrive(world.life(row), row, Who::Person);
                self.moved(world, who, proc, "redrive by hand", answer);
            }
            Proc::Resolving { row } => {
                let answer = self.resolve(world.life(row));
                let step = |how| Step::new(who, row, "resolve", how);
                if answer.said == Said::Done {
                    let mut after = *world;
                    after.rows[usize::from(row)] = answer.life;
                    self.judged(&after, who, Proc::Resting, step("accepted"), answer);
                    self.judged(&after, who, proc, step("accepted, answer lost"), answer);
                } else {
                    self.step(world, who, Proc::Resting, step("refused, or mine already"));
                }
            }
            Proc::Posting { row } => self.posting(world, who, row),
            _ => return,
        }
        let row = proc.row().unwrap_or(0);
        self.step(world, who, Proc::Resting, Step::new(who, row, "", "gives up"));
    }

    fn minding(&mut self, world: &World, who: usize, row: RowIx) {
        let glance = self.glance_at(world.life(row));
        if glance.is_some_and(|glance| glance.status == Status::Dead) {
            let step = Step::new(who, row, "look", "dead");
            self.step(world, who, Proc::Pleading { row }, step);
            self.step(world, who, Proc::Resolving { row }, step);
        }
        if world.mail[usize::from(row)] & LETTER != 0 {
            let mut moved = *world;
            moved.mail[usize::from(row)] &= !LETTER;
            self.send(&mut moved, row);
            let step = Step::new(who, row, "move the dead letter back to the queue", "");
            self.step(&moved, who, Proc::Resting, step);
        }
    }

    /// What happens by itself: messages expire, builds come out, rows are pruned or rewritten.
    pub(crate) fn surroundings(&mut self, world: &World) {
        let nobody = crate::world::PROCS;
        for row in 0..2_u8 {
            for bit in [FRESH, STALE] {
                let bit = if bit == FRESH { FRESH | FORGED } else { bit };
                if world.mail[usize::from(row)] & bit != 0 {
                    let mut expired = *world;
                    expired.mail[usize::from(row)] &= !bit;
                    self.happen(&expired, Step::new(nobody, row, "a message expires", ""));
                }
            }
            if self.bounds.oddities {
                self.age(world, row);
            }
        }
        if self.bounds.deploy && !world.deployed {
            let deployed = World { deployed: true, ..*world };
            self.happen(&deployed, Step::new(nobody, 0, "a new build comes out", ""));
        }
    }

    fn age(&mut self, world: &World, row: RowIx) {
        let Some(glance) = self.glance_at(world.life(row)) else { return };
        let nobody = crate::world::PROCS;
        // A row outlives every resend of its event.
        let is_resent = world.procs.iter().zip(self.bounds.deliveries).any(|(proc, event)| {
            *event == row && matches!(self.proc(*proc), Proc::Coming | Proc::Claiming { .. })
        });
        if glance.status == Status::Settled && !is_resent {
            let mut pruned = *world;
            pruned.rows[usize::from(row)] = 0;
            self.happen(&pruned, Step::new(nobody, row, "the row is pruned", ""));
        }
        if glance.is_known {
            let answer = self.rewritten(world.life(row));
            let mut rewritten = *world;
            rewritten.rows[usize::from(row)] = answer.life;
            self.happen(&rewritten, Step::new(nobody, row, "a newer build rewrites the row", ""));
        }
    }

    /// The designs whose rescue is not the steward's.
    pub(crate) fn has_sweeper(&self) -> bool {
        self.design != Design::DoneWhileClaimed
    }
}
