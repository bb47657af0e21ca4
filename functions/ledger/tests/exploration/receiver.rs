//! What a delivery does: claim, send, answer. Whoever breaks off has not answered.

use crate::{
    bounds::Design,
    model::{Model, Said},
    process::{Proc, RowIx},
    search::Step,
    world::World,
};

impl Model {
    pub(crate) fn receiver(&mut self, world: &World, who: usize) {
        let row = self.bounds.deliveries[who];
        match self.proc(world.procs[who]) {
            Proc::Coming => self.claiming(world, who, row),
            Proc::Claiming { row, .. } => {
                self.claiming(world, who, row);
                self.step(world, who, Proc::Gone, Step::new(who, row, "claim", "dies"));
            }
            Proc::Sending { row } => {
                let mut sent = *world;
                self.send(&mut sent, row);
                self.answer(&mut sent, row);
                self.step(&sent, who, Proc::Gone, Step::new(who, row, "send", "and answers 2xx"));
                self.step(world, who, Proc::Gone, Step::new(who, row, "send", "dies before"));
            }
            _ => {}
        }
    }

    fn claiming(&mut self, world: &World, who: usize, row: RowIx) {
        let nonce = u8::try_from(who).unwrap_or(0) + 1;
        for old in [true, false] {
            let answer = self.claim(world.life(row), row, nonce, old);
            let step = |how| Step::new(who, row, "claim", how);
            let is_taken = self.design == Design::DoneWhileClaimed;
            match answer.said {
                Said::Done => {
                    let mut claimed = *world;
                    claimed.rows[usize::from(row)] = answer.life;
                    self.step(&claimed, who, Proc::Sending { row }, step("accepted"));
                    let lost = Proc::Claiming { row, nonce };
                    self.step(&claimed, who, lost, step("accepted, answer lost"));
                }
                Said::Mine => self.step(world, who, Proc::Sending { row }, step("mine already")),
                Said::Overdue | Said::Dead | Said::UnknownFormat if !is_taken => {
                    self.step(world, who, Proc::Sending { row }, step("a duplicate to send again"));
                }
                _ => {
                    let mut answered = *world;
                    self.answer(&mut answered, row);
                    self.step(&answered, who, Proc::Gone, step("a duplicate, answers 2xx"));
                }
            }
            if world.life(row) == 0 {
                return;
            }
        }
    }

    /// A message is younger than the burial only where the row is dead when it is sent.
    pub(crate) fn send(&mut self, world: &mut World, row: RowIx) {
        let is_dead = self
            .glance_at(world.life(row))
            .is_some_and(|glance| glance.status == ledger::Status::Dead);
        let bit = if is_dead { crate::world::FRESH } else { crate::world::STALE };
        world.mail[usize::from(row)] |= bit;
    }

    fn answer(&self, world: &mut World, row: RowIx) {
        if self.design == Design::DoneWhileClaimed {
            world.answered |= 1 << row;
        }
    }
}
