//! Never lost, shown by construction: from any world, kill every actor, lose every message, and
//! let the steward and one worker do what they do on a good day. Every row must come to rest.
//!
//! Since killing and losing are themselves steps, this proves that from every reachable state
//! there is a way on, and a stronger thing: a way that needs no provider, no person and no luck
//! with what was under way.

use crate::{
    bounds::Design,
    model::Model,
    pool::Glance,
    process::{Proc, RowIx},
    properties::is_at_rest,
    world::World,
};

/// Rounds after which a row that is not at rest counts as lost.
const ROUNDS_MAX: usize = 8;
/// Steps one actor takes for one row.
const STEPS_MAX: usize = 24;

impl Model {
    pub(crate) fn is_rescued(&mut self, world: &World) -> bool {
        let wreck = self.wreck(world);
        let fingerprint = wreck.fingerprint();
        if let Some(known) = self.rescued.get(&fingerprint) {
            return *known;
        }
        let moves = std::mem::take(&mut self.moves);
        let is_rescued = self.rescue(wreck);
        self.moves = moves;
        self.rescued.insert(fingerprint, is_rescued);
        is_rescued
    }

    /// The world after everything that can die has died.
    fn wreck(&mut self, world: &World) -> World {
        let mut wreck = *world;
        for who in 0..self.bounds.deliveries.len() {
            wreck.procs[who] = self.number(Proc::Gone);
        }
        for worker in 1..=self.bounds.workers {
            let who = self.bounds.worker(u8::try_from(worker).unwrap_or(0));
            wreck.procs[who] = self.number(Proc::Idle);
        }
        for steward in 0..self.bounds.stewards {
            wreck.procs[self.bounds.steward(steward)] = self.number(Proc::Resting);
        }
        if self.bounds.operator {
            wreck.procs[self.bounds.person()] = self.number(Proc::Resting);
        }
        if self.has_sweeper() {
            wreck.mail = [0; 2];
        }
        wreck.normalise(self);
        wreck
    }

    fn rescue(&mut self, mut world: World) -> bool {
        for _ in 0..ROUNDS_MAX {
            let mut is_done = true;
            for row in 0..2 {
                let Some(glance) = self.glance_at(world.life(row)) else { continue };
                if is_at_rest(glance) || !self.is_owed(&world, row, glance) {
                    continue;
                }
                is_done = false;
                if self.has_sweeper() {
                    world = self.drive(world, self.bounds.steward(0), row);
                }
                world = self.drive(world, self.bounds.worker(1), row);
            }
            if is_done {
                return true;
            }
        }
        false
    }

    /// Broken designs promise less, and are judged by that.
    fn is_owed(&self, world: &World, row: RowIx, glance: Glance) -> bool {
        match self.design {
            // Without a sweeper only an answer is a promise.
            Design::DoneWhileClaimed => world.answered & (1 << row) != 0,
            // A waiter may wait for ever where its predecessor never comes.
            Design::WokenByMessageOnly => glance.bucket.is_some() || world.applied[0] > 0,
            _ => true,
        }
    }

    /// Lets one actor take the lucky alternative at every step of its work on one row.
    fn drive(&mut self, mut world: World, mut who: usize, row: RowIx) -> World {
        for _ in 0..STEPS_MAX {
            self.moves.clear();
            self.origin = Some(world);
            self.actor(&world, who);
            let Some(lucky) = self.moves.iter().find(|next| next.step.row == row) else {
                return world;
            };
            world = lucky.next;
            // Interchangeable workers are kept in order: the one at work may have moved.
            match world.procs.iter().position(|number| self.proc(*number).row() == Some(row)) {
                Some(place) => who = place,
                None => return world,
            }
        }
        world
    }
}
