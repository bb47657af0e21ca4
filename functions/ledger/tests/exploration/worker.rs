//! What a worker does with a message. Every write may be accepted without the worker hearing of
//! it; it then stays where it is and writes the same again. It may die anywhere.
//!
//! The first alternative pushed at every place is the lucky one; the rescue follows it.

use crate::{
    bounds::{Design, Projection},
    change::Plan,
    model::{Answer, Model, Said},
    process::{Proc, RowIx},
    search::Step,
    world::{FRESH, LETTER, STALE, World},
};
use ledger::{Outcome, Turn};

impl Model {
    pub(crate) fn worker(&mut self, world: &World, who: usize) {
        let proc = self.proc(world.procs[who]);
        match proc {
            Proc::Idle => {
                for row in 0..2 {
                    for bit in [FRESH, STALE] {
                        if world.mail[usize::from(row)] & bit != 0 {
                            self.leasing(world, who, row, bit == FRESH);
                        }
                    }
                }
                return;
            }
            Proc::Leasing { row, fresh } => self.leasing(world, who, row, fresh),
            Proc::Reviving { row, fresh } => self.reviving(world, who, row, fresh),
            Proc::Forcing { row } => self.burying_by_force(world, who, row, Proc::Idle),
            Proc::Held { row, epoch, dropped } => self.working(world, who, row, epoch, dropped),
            Proc::Applying { row, epoch, dropped, wakes, read } => {
                self.applying(world, who, proc, Plan { row, epoch, dropped, wakes, read });
            }
            Proc::Queueing { row, epoch } => self.queueing(world, who, row, epoch),
            Proc::Settling { row, epoch } => {
                self.settling(world, who, proc, row, epoch, Outcome::Superseded);
            }
            Proc::HalfDone { row, epoch } => {
                self.settling(world, who, proc, row, epoch, Outcome::Applied);
            }
            Proc::Deleting { row } => self.deleting(world, who, row),
            Proc::Notifying { row } => {
                let mut sent = *world;
                self.send(&mut sent, row);
                self.step(&sent, who, Proc::Idle, Step::new(who, row, "wake by message", "sent"));
            }
            _ => return,
        }
        let row = proc.row().unwrap_or(0);
        self.step(world, who, Proc::Idle, Step::new(who, row, "", "dies"));
    }

    fn leasing(&mut self, world: &World, who: usize, row: RowIx, fresh: bool) {
        let owner = u8::try_from(who + 1 - self.bounds.deliveries.len()).unwrap_or(0);
        let builds: &[bool] = if world.deployed { &[true, false] } else { &[false] };
        for build in builds {
            let late = self.lease(world.life(row), owner, true, *build);
            self.leased(world, who, row, fresh, late, "late clock");
            let early = self.lease(world.life(row), owner, false, *build);
            if (early.said, early.life, early.breach) != (late.said, late.life, late.breach) {
                self.leased(world, who, row, fresh, early, "early clock");
            }
        }
    }

    fn leased(
        &mut self,
        world: &World,
        who: usize,
        row: RowIx,
        fresh: bool,
        answer: Answer,
        clock: &'static str,
    ) {
        let what = if clock == "late clock" { "lease, late clock" } else { "lease, early clock" };
        let step = |how| Step::new(who, row, what, how);
        let held = |epoch| Proc::Held { row, epoch, dropped: 0 };
        match answer.said {
            Said::Done => {
                let mut after = *world;
                after.rows[usize::from(row)] = answer.life;
                let epoch = self.glance(answer.life).epoch;
                self.judged(&after, who, held(epoch), step("accepted"), answer);
                let lost = Proc::Leasing { row, fresh };
                self.judged(&after, who, lost, step("accepted, answer lost"), answer);
            }
            Said::Mine => {
                let epoch = self.glance(world.life(row)).epoch;
                self.step(world, who, held(epoch), step("mine already"));
            }
            Said::Settled => {
                let mut deleted = *world;
                deleted.mail[usize::from(row)] &= LETTER;
                self.step(&deleted, who, Proc::Idle, step("settled: deletes the message"));
            }
            Said::OutOfBudget => {
                self.step(world, who, Proc::Forcing { row }, step("refused: out of budget"));
            }
            Said::Dead => {
                self.step(world, who, Proc::Reviving { row, fresh }, step("refused: dead"));
            }
            Said::Missing => self.reported(world, who, row, step("refused: no such row")),
            _ => self.step(world, who, Proc::Idle, step("refused: not now")),
        }
    }

    /// The message is reported failed, and in the end lies in the dead-letter queue.
    fn reported(&mut self, world: &World, who: usize, row: RowIx, step: Step) {
        self.step(world, who, Proc::Idle, step);
        if self.bounds.operator {
            let mut moved = *world;
            moved.mail[usize::from(row)] = LETTER;
            let step = step.but("the message goes to the dead-letter queue");
            self.step(&moved, who, Proc::Idle, step);
        }
    }

    fn reviving(&mut self, world: &World, who: usize, row: RowIx, fresh: bool) {
        let mut answer = self.redrive(world.life(row), row, crate::verbs::Who::Message { fresh });
        let step = |how| Step::new(who, row, "redrive by message", how);
        let next = Proc::Leasing { row, fresh: false };
        match answer.said {
            Said::Done => {
                let is_forged = world.mail[usize::from(row)] & crate::world::FORGED != 0;
                if is_forged {
                    answer.breach = Some(crate::properties::Property::NoBudgetNobodyGranted);
                }
                let mut after = *world;
                after.rows[usize::from(row)] = answer.life;
                after.stale(row, self);
                self.judged(&after, who, next, step("accepted"), answer);
                let lost = Proc::Reviving { row, fresh: false };
                self.judged(&after, who, lost, step("accepted, answer lost"), answer);
            }
            Said::Mine | Said::NotDead => self.step(world, who, next, step("alive already")),
            _ => self.reported(world, who, row, step("refused: older than the burial")),
        }
    }

    /// Forced bury, by a refused worker or the steward.
    pub(crate) fn burying_by_force(&mut self, world: &World, who: usize, row: RowIx, after: Proc) {
        let late = self.forced_bury(world.life(row), row, true);
        let early = self.forced_bury(world.life(row), row, false);
        for (answer, how) in [(late, "late clock"), (early, "early clock")] {
            let step = Step::new(who, row, "forced bury", how);
            if answer.said == Said::Done {
                let mut buried = *world;
                buried.rows[usize::from(row)] = answer.life;
                let stay = self.proc(world.procs[who]);
                self.buried(buried, who, [after, stay], step, answer);
            } else {
                self.step(world, who, after, step.but("refused"));
            }
        }
    }

    /// The row is dead: what was on its way is older than the burial.
    fn buried(
        &mut self,
        mut world: World,
        who: usize,
        [to, stay]: [Proc; 2],
        step: Step,
        answer: Answer,
    ) {
        let row = step.row;
        world.stale(row, self);
        if self.design == Design::BackdatedBurial
            && matches!(stay, Proc::Burying { .. })
            && world.mail[usize::from(row)] & STALE != 0
        {
            world.mail[usize::from(row)] |= FRESH | crate::world::FORGED;
        }
        self.judged(&world, who, to, step, answer);
        self.judged(&world, who, stay, step.but("accepted, answer lost"), answer);
        if self.bounds.operator && to == Proc::Idle {
            world.mail[usize::from(row)] = LETTER;
            let how = "accepted, the message goes to the dead-letter queue";
            self.judged(&world, who, to, step.but(how), answer);
        }
    }

    fn working(&mut self, world: &World, who: usize, row: RowIx, epoch: u8, dropped: u8) {
        self.projecting(world, who, row, epoch, dropped);
        let life = world.life(row);
        if self.bounds.transient {
            let failed = self.fail(life, row, epoch);
            self.given_back(world, who, row, failed, "fail");
            let buried = self.bury(life, row, epoch, false);
            self.given_back(world, who, row, buried, "bury, exhausted");
        }
        if self.bounds.permanent {
            let buried = self.bury(life, row, epoch, true);
            self.given_back(world, who, row, buried, "bury, permanent");
        }
        if self.bounds.throttle {
            let waited = self.wait(life, row, epoch);
            self.given_back(world, who, row, waited, "wait, throttled");
        }
    }

    fn given_back(
        &mut self,
        world: &World,
        who: usize,
        row: RowIx,
        answer: Answer,
        what: &'static str,
    ) {
        let step = |how| Step::new(who, row, what, how);
        match answer.said {
            Said::Done => {
                let mut after = *world;
                after.rows[usize::from(row)] = answer.life;
                let stay = self.proc(world.procs[who]);
                if self.glance(answer.life).status == ledger::Status::Dead {
                    self.buried(after, who, [Proc::Idle, stay], step("accepted"), answer);
                } else {
                    self.judged(&after, who, Proc::Idle, step("accepted"), answer);
                    self.judged(&after, who, stay, step("accepted, answer lost"), answer);
                }
            }
            Said::OutOfBudget | Said::BudgetLeft => {}
            _ => self.step(world, who, Proc::Idle, step("refused by the fence, or mine already")),
        }
    }

    /// Reads the entities and decides.
    fn projecting(&mut self, world: &World, who: usize, row: RowIx, epoch: u8, dropped: u8) {
        let [x, y] = world.entities;
        let step = |how| Step::new(who, row, "project", how);
        let apply = |read| Proc::Applying { row, epoch, dropped, wakes: true, read };
        match self.bounds.projection {
            Projection::Snapshot => self.step(world, who, apply([0, 0]), step("a snapshot")),
            Projection::Delta => self.step(world, who, apply([x, 0]), step("on what it read")),
            Projection::Both => self.step(world, who, apply([0, y]), step("on what it read")),
            Projection::Sequence => {
                let wait = Proc::Queueing { row, epoch };
                match self.turn(row, x) {
                    Turn::Now => self.step(world, who, apply([x, 0]), step("its turn")),
                    Turn::Superseded => {
                        let settle = Proc::Settling { row, epoch };
                        self.step(world, who, settle, step("its place is taken"));
                    }
                    Turn::Early => {
                        let has_waited =
                            self.glance_at(world.life(row)).is_some_and(|glance| glance.has_waited);
                        if has_waited {
                            let late = step("its time is up: without its predecessor");
                            self.step(world, who, apply([x, 0]), late);
                        }
                        self.step(world, who, wait, step("its predecessor is missing"));
                    }
                }
            }
        }
    }

    fn applying(&mut self, world: &World, who: usize, stay: Proc, plan: Plan) {
        let row = plan.row;
        let step = |how| Step::new(who, row, "apply and settle", how);
        if self.design == Design::TwoWrites {
            return self.writing_half(world, who, plan);
        }
        let woken = self.wakes(plan);
        let next = woken.map_or(0, |next| world.life(next));
        let answer = self.apply(world.life(row), world.entities, next, plan);
        let held = |dropped| Proc::Held { row, epoch: plan.epoch, dropped };
        match answer.said {
            Said::Done => {
                let mut after = *world;
                after.rows[usize::from(row)] = answer.life;
                after.entities = answer.entities;
                after.applied[usize::from(row)] += 1;
                let mut done = Proc::Deleting { row };
                if let (Some(next), true) = (woken, answer.next != 0) {
                    after.rows[usize::from(next)] = answer.next;
                } else if let Some(next) = woken {
                    done = Proc::Notifying { row: next };
                }
                self.judged(&after, who, done, step("accepted"), answer);
                self.judged(&after, who, stay, step("accepted, answer lost"), answer);
            }
            Said::Mine => self.step(world, who, Proc::Deleting { row }, step("mine already")),
            Said::RevisionMoved => {
                self.step(world, who, held(plan.dropped), step("refused: the entity was written"));
            }
            Said::NotWaiting => {
                let without = Proc::Applying {
                    row,
                    epoch: plan.epoch,
                    dropped: plan.dropped,
                    wakes: false,
                    read: plan.read,
                };
                self.step(world, who, without, step("refused: the next one does not wait"));
            }
            Said::Superseded(bits) => {
                let dropped = plan.dropped | bits;
                let all = if self.bounds.projection == Projection::Both { 3 } else { 1 };
                let to = if dropped == all {
                    Proc::Settling { row, epoch: plan.epoch }
                } else {
                    held(dropped)
                };
                self.step(world, who, to, step("refused: superseded"));
            }
            _ => self.step(world, who, Proc::Idle, step("refused by the fence")),
        }
    }

    /// Broken designs only: the entity now, the row later.
    fn writing_half(&mut self, world: &World, who: usize, plan: Plan) {
        let row = plan.row;
        let answer = self.write_entity_alone(world.entities, plan);
        let step = |how| Step::new(who, row, "write the entity", how);
        if answer.said == Said::Done {
            let mut after = *world;
            after.entities = answer.entities;
            after.applied[usize::from(row)] += 1;
            let half = Proc::HalfDone { row, epoch: plan.epoch };
            self.step(&after, who, half, step("accepted"));
        } else {
            let held = Proc::Held { row, epoch: plan.epoch, dropped: plan.dropped };
            self.step(world, who, held, step("refused: the entity was written"));
        }
    }

    fn queueing(&mut self, world: &World, who: usize, row: RowIx, epoch: u8) {
        let [x, _] = world.entities;
        let answer = self.queue(world.life(row), x, row, epoch);
        let step = |how| Step::new(who, row, "wait in sequence", how);
        match answer.said {
            Said::Done => {
                let mut after = *world;
                after.rows[usize::from(row)] = answer.life;
                after.entities[0] = answer.entities[0];
                let lost = Proc::Queueing { row, epoch };
                let mut deleted = after;
                deleted.mail[usize::from(row)] &= LETTER;
                let how = "accepted, deletes the message";
                self.judged(&deleted, who, Proc::Idle, step(how), answer);
                self.judged(&after, who, lost, step("accepted, answer lost"), answer);
            }
            Said::Mine => {
                let mut deleted = *world;
                deleted.mail[usize::from(row)] &= LETTER;
                self.step(&deleted, who, Proc::Idle, step("mine already, deletes the message"));
            }
            Said::PredecessorCame => {
                let held = Proc::Held { row, epoch, dropped: 0 };
                self.step(world, who, held, step("refused: its predecessor came"));
            }
            Said::TooManyWaiters => {
                let apply = Proc::Applying { row, epoch, dropped: 0, wakes: true, read: [x, 0] };
                self.step(world, who, apply, step("refused: too many wait; falls back"));
            }
            _ => self.step(world, who, Proc::Idle, step("refused by the fence")),
        }
    }

    fn settling(
        &mut self,
        world: &World,
        who: usize,
        stay: Proc,
        row: RowIx,
        epoch: u8,
        outcome: Outcome,
    ) {
        let answer = self.settle(world.life(row), epoch, outcome);
        let step = |how| Step::new(who, row, "settle", how);
        match answer.said {
            Said::Done => {
                let mut after = *world;
                after.rows[usize::from(row)] = answer.life;
                self.judged(&after, who, Proc::Deleting { row }, step("accepted"), answer);
                self.judged(&after, who, stay, step("accepted, answer lost"), answer);
            }
            Said::Mine => self.step(world, who, Proc::Deleting { row }, step("mine already")),
            _ => self.step(world, who, Proc::Idle, step("refused by the fence")),
        }
    }

    fn deleting(&mut self, world: &World, who: usize, row: RowIx) {
        let mut deleted = *world;
        deleted.mail[usize::from(row)] &= LETTER;
        self.step(&deleted, who, Proc::Idle, Step::new(who, row, "delete the message", ""));
        if self.bounds.projection == Projection::Sequence && row == 0 {
            let next = Proc::Leasing { row: 1, fresh: false };
            let step =
                Step::new(who, row, "delete the message", "and goes on with the next number");
            self.step(&deleted, who, next, step);
        }
    }
}
