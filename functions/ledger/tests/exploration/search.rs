//! Breadth-first search, and the shortest way to whatever must not be.

use crate::{
    bounds::{Bounds, Design},
    model::{Answer, Model},
    pool::Mix,
    process::Proc,
    properties::{Property, judge_world},
    world::{PROCS, World},
};
use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    hash::BuildHasherDefault,
    time::Instant,
};

/// One step of one actor, for people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    who: usize,
    pub(crate) row: u8,
    what: &'static str,
    how: &'static str,
}

impl Step {
    pub(crate) const fn new(who: usize, row: u8, what: &'static str, how: &'static str) -> Self {
        Self { who, row, what, how }
    }

    /// The same step with another end.
    pub(crate) const fn but(self, how: &'static str) -> Self {
        Self { how, ..self }
    }
}

/// A step and the world after it.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub(crate) step: Step,
    pub(crate) next: World,
    breach: Option<Property>,
}

impl Model {
    /// A step that wrote nothing worth judging.
    pub(crate) fn step(&mut self, world: &World, who: usize, to: Proc, step: Step) {
        self.push(world, Some((who, to)), step, None);
    }

    /// A step that wrote.
    pub(crate) fn judged(
        &mut self,
        world: &World,
        who: usize,
        to: Proc,
        step: Step,
        answer: Answer,
    ) {
        self.push(world, Some((who, to)), step, answer.breach);
    }

    /// A step of nobody.
    pub(crate) fn happen(&mut self, world: &World, step: Step) {
        self.push(world, None, step, None);
    }

    fn push(
        &mut self,
        world: &World,
        to: Option<(usize, Proc)>,
        step: Step,
        breach: Option<Property>,
    ) {
        let mut next = *world;
        if let Some((who, to)) = to {
            next.procs[who] = self.number(to);
        }
        if let (Some(from), Some((who, _))) = (self.origin, to) {
            next.normalise_after(self, &from, who);
        } else if self.origin.is_some() {
            next.normalise(self);
        }
        self.moves.push(Move { step, next, breach });
    }

    /// Everything one actor may do next.
    pub(crate) fn actor(&mut self, world: &World, who: usize) {
        let deliveries = self.bounds.deliveries.len();
        if who < deliveries {
            self.receiver(world, who);
        } else if who < deliveries + self.bounds.workers {
            self.worker(world, who);
        } else if who < deliveries + self.bounds.workers + self.bounds.stewards {
            self.steward(world, who);
        } else {
            self.person(world, who);
        }
    }

    fn actors(&self) -> usize {
        self.bounds.person() + usize::from(self.bounds.operator)
    }

    fn successors(&mut self, world: &World) -> Vec<Move> {
        self.moves.clear();
        self.origin = Some(*world);
        for who in 0..self.actors() {
            if self.bounds.coarse && !self.bounds.is_worker(who) {
                self.whole_turn(world, who);
            } else {
                self.actor(world, who);
            }
        }
        self.surroundings(world);
        std::mem::take(&mut self.moves)
    }

    /// Everything an actor may have done by the next time it rests, nobody interfering.
    fn whole_turn(&mut self, world: &World, who: usize) {
        let mut ends = std::mem::take(&mut self.moves);
        self.origin = None;
        let mut met = vec![world.fingerprint()];
        let mut open = vec![*world];
        while let Some(at) = open.pop() {
            self.moves.clear();
            self.actor(&at, who);
            for mut next in std::mem::take(&mut self.moves) {
                let fingerprint = next.next.fingerprint();
                if met.contains(&fingerprint) && next.breach.is_none() {
                    continue;
                }
                met.push(fingerprint);
                if next.breach.is_some() || self.proc(next.next.procs[who]).row().is_none() {
                    next.next.normalise(self);
                    ends.push(next);
                } else {
                    open.push(next.next);
                }
            }
        }
        self.moves = ends;
        self.origin = Some(*world);
    }

    fn beginning(&mut self) -> World {
        assert!(self.actors() <= PROCS, "more actors than places");
        let mut world = World {
            rows: [0; 2],
            entities: [0; 2],
            procs: [self.number(Proc::Absent); PROCS],
            mail: [0; 2],
            applied: [0; 2],
            answered: 0,
            deployed: false,
        };
        for who in 0..self.actors() {
            let deliveries = self.bounds.deliveries.len();
            world.procs[who] = self.number(if who < deliveries {
                Proc::Coming
            } else if who < deliveries + self.bounds.workers {
                Proc::Idle
            } else {
                Proc::Resting
            });
        }
        world
    }

    fn name(&self, who: usize) -> String {
        let deliveries = self.bounds.deliveries.len();
        if who == PROCS {
            "meanwhile".to_owned()
        } else if who < deliveries {
            format!("delivery {}", who + 1)
        } else if who < deliveries + self.bounds.workers {
            format!("worker {}", ["A", "B", "C"][who - deliveries])
        } else if who < deliveries + self.bounds.workers + self.bounds.stewards {
            format!("steward {}", who + 1 - deliveries - self.bounds.workers)
        } else {
            "person".to_owned()
        }
    }

    fn told(&self, step: &Step) -> String {
        let what = if step.what.is_empty() { String::new() } else { format!("{} ", step.what) };
        let how = if what.is_empty() || step.how.is_empty() {
            step.how.to_owned()
        } else {
            format!("-> {}", step.how)
        };
        format!("{:<11} e{}  {what}{how}", self.name(step.who), step.row + 1)
    }
}

/// A way to a breach.
#[derive(Debug)]
pub(crate) struct Counterexample {
    pub(crate) property: Property,
    pub(crate) steps: Vec<String>,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  broken in {} steps: {}", self.steps.len(), self.property)?;
        for (n, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {:>3}  {step}", n + 1)?;
        }
        Ok(())
    }
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) states: usize,
    pub(crate) steps: usize,
    pub(crate) depth: usize,
    pub(crate) is_complete: bool,
    pub(crate) seconds: f64,
    pub(crate) distinct: (usize, usize),
    pub(crate) rescues: usize,
    pub(crate) heard: BTreeSet<String>,
    pub(crate) shapes: BTreeSet<String>,
    pub(crate) counterexample: Option<Counterexample>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match &self.counterexample {
            Some(_) => "broken",
            None if self.is_complete => "complete",
            None => "cut off",
        };
        write!(
            f,
            "{:<28} {:>9} states {:>10} steps  depth {:>3}  {:>6.1} s  {end}  ({} lives, {} entities, {} rescues)",
            self.name,
            self.states,
            self.steps,
            self.depth,
            self.seconds,
            self.distinct.0,
            self.distinct.1,
            self.rescues
        )
    }
}

struct Search {
    model: Model,
    worlds: Vec<World>,
    parents: Vec<u32>,
    met: HashSet<u64, BuildHasherDefault<Mix>>,
}

/// Explores everything within the bounds, nearest first, until something breaks.
#[expect(clippy::disallowed_methods, reason = "the report says how long it took")]
pub(crate) fn explore(bounds: Bounds, design: Design) -> Report {
    let began = Instant::now();
    let name = bounds.name;
    let states_max = bounds.states_max;
    let mut search = Search {
        model: Model::new(bounds, design),
        worlds: Vec::new(),
        parents: Vec::new(),
        met: HashSet::default(),
    };
    let beginning = search.model.beginning();
    search.met.insert(beginning.fingerprint());
    search.worlds.push(beginning);
    search.parents.push(0);
    let (mut at, mut steps, mut depth, mut level_ends) = (0, 0, 0, 1);
    let mut counterexample = None;
    while at < search.worlds.len() && search.worlds.len() < states_max && counterexample.is_none() {
        let world = search.worlds[at];
        let moves = search.model.successors(&world);
        steps += moves.len();
        for next in &moves {
            if let Some(property) = search.meet(at, next) {
                let steps = search.way(at, &next.step);
                counterexample = Some(Counterexample { property, steps });
                break;
            }
        }
        at += 1;
        if at == level_ends && at < search.worlds.len() {
            depth += 1;
            level_ends = search.worlds.len();
        }
    }
    Report {
        name,
        states: search.worlds.len(),
        steps,
        depth,
        is_complete: at == search.worlds.len(),
        seconds: began.elapsed().as_secs_f64(),
        distinct: search.model.distinct(),
        rescues: search.model.rescued.len(),
        shapes: search.model.shapes(),
        heard: search.model.heard,
        counterexample,
    }
}

impl Search {
    fn meet(&mut self, from: usize, next: &Move) -> Option<Property> {
        if next.breach.is_some() {
            return next.breach;
        }
        if !self.met.insert(next.next.fingerprint()) {
            return None;
        }
        self.worlds.push(next.next);
        self.parents.push(u32::try_from(from).unwrap_or(u32::MAX));
        judge_world(&next.next, &mut self.model)
    }

    /// The steps from the beginning to `at`, and one more.
    fn way(&mut self, at: usize, last: &Step) -> Vec<String> {
        let mut chain = vec![at];
        while let Some(at) = chain.last().copied().filter(|at| *at != 0) {
            chain.push(self.parents[at] as usize);
        }
        chain.reverse();
        let mut told = Vec::new();
        for pair in chain.windows(2) {
            let (from, to) = (self.worlds[pair[0]], self.worlds[pair[1]]);
            let moves = self.model.successors(&from);
            let step = moves.iter().find(|next| next.next == to).map(|next| next.step);
            told.extend(step.map(|step| self.model.told(&step)));
        }
        told.push(self.model.told(last));
        told
    }
}
