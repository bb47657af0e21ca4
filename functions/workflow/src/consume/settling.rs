//! Settling a leased row: project the event, make every change the guards let through, settle.
//!
//! Plans are decided in rounds. A round reads the entities that plans stand on, asks providers
//! where plans need it, and writes everything in one transaction. What the transaction refuses
//! decides about the next round: a superseded change is dropped, a moved revision is read again, a
//! waiter that moved on is not woken. One entity's refusal never takes another's change with it.

use super::{answers::Held, record::Work, trip::Trip};
use crate::{
    body,
    fetch::{NoAnswer, Question},
    ports::{ConsumerPorts, Refused},
    projection::{EventView, Plan, ProjectionError, Step, Told},
};
use ledger::{
    Change, Effect, EffectOutcome, Entity, EntityKey, EventKey, FailureClass, Guard, Millis,
    Outcome, Row, Waiter,
    verbs::{
        Apply, ApplyRefusal, FenceRefusal, Settle, WaitInSequence, WaitInSequenceRefusal, Wake,
    },
};

/// Rounds under contention before the row is given back.
const REREADS_MAX: u32 = 5;

/// The shortest and the longest time after which a number looks again that found no room to wait.
const CROWDED_MS: [u64; 2] = [10_000, 300_000];

/// How a run ended well.
pub(super) enum Ended {
    /// The row is settled.
    Settled {
        /// How.
        outcome: Outcome,
        /// Whose turn it is now.
        woken: Option<EventKey>,
    },
    /// The row waits for its predecessor; nobody needs its message any more.
    Waits,
}

/// One row on its way to the end.
struct Settling<'a, P> {
    work: &'a Work<'a, P>,
    row: &'a Row,
    /// One time for every write of this attempt: a retried transaction is the same transaction.
    settled_at: Millis,
    plans: Vec<Plan>,
    dropped: Vec<Effect>,
    held: Held,
    /// Since its first wait.
    waited_ms: Option<u64>,
    /// Rows that were to be woken, and moved on by themselves.
    moved_on: Vec<EventKey>,
    rereads: u32,
}

/// What one round has to write.
enum Round {
    Changes { changes: Vec<Change>, wake: Option<Wake> },
    Wait { entity: EntityKey, ask: WaitInSequence },
}

impl<P: ConsumerPorts> Work<'_, P> {
    /// Projects the event and settles the row with every change the guards let through.
    pub(super) async fn settle(&self, row: &Row) -> Result<Ended, Trip> {
        let bytes = body::read(self.ports(), row).await?;
        let Some(source) = self.consumer.config.source(row.evidence.source.as_str()) else {
            let error = format!("source {} is not configured in this build", row.evidence.source);
            return Err(Trip::failed(error, FailureClass::Transient));
        };
        let event = EventView {
            source,
            event_type: &row.evidence.event_type,
            event_id: row.evidence.key.event_id(),
            body: &bytes,
        };
        let plans = self.consumer.projection.project(&event)?;
        refuse_two_waits(&plans)?;
        refuse_to_count_twice(row, &plans)?;
        let held = self.answers.hold(&plans).await;
        let settled_at = self.ports().now();
        let waited_ms = row.life.waiting_since.map(|since| settled_at.since(since));
        let mut settling = Settling {
            work: self,
            row,
            settled_at,
            plans,
            dropped: Vec::new(),
            held,
            waited_ms,
            moved_on: Vec::new(),
            rereads: 0,
        };
        let overdue_ms = settling.plans.iter().find_map(|plan| overdue_ms(plan, waited_ms));
        let ended = settling.run().await;
        match overdue_ms {
            Some(timeout_ms) => ended.map_err(|trip| trip.after_a_gap(timeout_ms)),
            None => ended,
        }
    }
}

/// How long a plan's number may wait, where it has waited that long.
fn overdue_ms(plan: &Plan, waited_ms: Option<u64>) -> Option<u64> {
    match plan {
        Plan::Sequenced(sequenced) => {
            waited_ms.is_some_and(|ms| ms >= sequenced.timeout_ms).then_some(sequenced.timeout_ms)
        }
        Plan::Versioned(_) | Plan::Delta(_) | Plan::Fetched(_) => None,
    }
}

impl<P: ConsumerPorts> Settling<'_, P> {
    async fn run(&mut self) -> Result<Ended, Trip> {
        while !self.plans.is_empty() {
            let ended = match self.round().await? {
                Round::Changes { changes, .. } if changes.is_empty() => continue,
                Round::Changes { changes, wake } => self.apply(changes, wake).await?,
                Round::Wait { entity, ask } => self.wait(&entity, &ask).await?,
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
        self.finish().await
    }

    /// Decides every plan on what is there now. Plans that are superseded already are dropped; the
    /// changes are those of the plans that are left, in their order.
    async fn round(&mut self) -> Result<Round, Trip> {
        let mut steps = Vec::with_capacity(self.plans.len());
        for plan in &self.plans {
            let found =
                if plan.reads() { self.work.ports().entity(plan.entity()).await? } else { None };
            steps.push((plan.step(found.as_ref(), self.waited_ms)?, found));
        }
        // Before anybody is asked: what has to wait would be asked about again.
        for (plan, (step, _)) in self.plans.iter().zip(&steps) {
            if let Step::Wait { number, timeout_ms } = step {
                let waiter = Waiter { number: *number, key: self.work.key().clone() };
                let ask = WaitInSequence {
                    epoch: self.row.life.epoch,
                    now: self.settled_at,
                    waiting_since: self.row.life.waiting_since,
                    timeout_ms: *timeout_ms,
                    waiter,
                };
                return Ok(Round::Wait { entity: plan.entity().clone(), ask });
            }
        }
        let (mut kept, mut changes, mut wakes) = (Vec::new(), Vec::new(), Vec::new());
        for (plan, (step, found)) in std::mem::take(&mut self.plans).into_iter().zip(steps) {
            let step = match step {
                Step::Fetch => {
                    let told = self.ask(&plan, found.as_ref()).await?;
                    plan.told(found.as_ref(), &told)
                }
                Step::Write { .. } | Step::Superseded | Step::Wait { .. } => step,
            };
            match step {
                Step::Write { change, wakes: next } => {
                    changes.push(change);
                    wakes.extend(next);
                    kept.push(plan);
                }
                Step::Superseded | Step::Fetch | Step::Wait { .. } => self.drop_plan(&plan),
            }
        }
        self.plans = kept;
        let wake = wakes.into_iter().find(|wake| !self.moved_on.contains(&wake.key));
        Ok(Round::Changes { changes, wake })
    }

    /// What the provider says, asked now or by another record of the batch.
    async fn ask(&mut self, plan: &Plan, found: Option<&Entity>) -> Result<Told, Trip> {
        let (entity, revision) = (plan.entity(), found.map(|entity| entity.revision));
        let Some((fetch, id)) = plan.fetch() else {
            let entity_type = entity.entity_type().to_owned();
            return Err(ProjectionError::NoFetch { entity_type }.into());
        };
        if let Some(known) = self.held.known(entity, &fetch.path, revision) {
            return Ok(known?);
        }
        let question = Question {
            fetch,
            entity_type: entity.entity_type(),
            id,
            has_waited: self.waited_ms.is_some(),
            end: self.work.end(),
        };
        let told = self.work.consumer.fetcher.ask(self.work.ports(), &question).await;
        self.held.learn(entity, &fetch.path, revision, &told);
        Ok(told?)
    }

    async fn apply(
        &mut self,
        changes: Vec<Change>,
        wake: Option<Wake>,
    ) -> Result<Option<Ended>, Trip> {
        let mut effects = self.dropped.clone();
        effects.extend(changes.iter().map(|change| Effect {
            entity: change.entity.as_str().to_owned(),
            outcome: EffectOutcome::Applied,
            version: change.version(),
        }));
        let woken = wake.as_ref().map(|wake| wake.key.clone());
        let ask = Apply { wake, ..Apply::new(self.row.life.epoch, self.settled_at, changes) };
        let applied = self.work.ports().apply(self.work.key(), &ask, &effects).await?;
        match applied.map_err(|refused| refused.why) {
            Ok(()) | Err(ApplyRefusal::Fence(FenceRefusal::Mine)) => {
                for change in &ask.changes {
                    if let Guard::Revision { read, .. } = &change.guard {
                        self.held.wrote(&change.entity, *read);
                    }
                }
                return Ok(Some(Ended::Settled { outcome: Outcome::Applied, woken }));
            }
            Err(ApplyRefusal::Fence(why)) => return Err(Trip::Fenced(why)),
            Err(ApplyRefusal::Superseded(indexes)) => {
                for index in indexes.into_iter().rev() {
                    if index < self.plans.len() {
                        let plan = self.plans.remove(index);
                        self.drop_plan(&plan);
                    }
                }
            }
            Err(ApplyRefusal::NotWaiting) => self.moved_on.extend(woken),
            Err(ApplyRefusal::RevisionMoved(_)) => self.read_again()?,
        }
        Ok(None)
    }

    async fn wait(
        &mut self,
        entity: &EntityKey,
        ask: &WaitInSequence,
    ) -> Result<Option<Ended>, Trip> {
        let waited = self.work.ports().wait_in_sequence(self.work.key(), entity, ask).await?;
        match waited.map_err(|refused| refused.why) {
            Ok(()) | Err(WaitInSequenceRefusal::Fence(FenceRefusal::Mine)) => {
                return Ok(Some(Ended::Waits));
            }
            Err(WaitInSequenceRefusal::Fence(why)) => return Err(Trip::Fenced(why)),
            Err(WaitInSequenceRefusal::PredecessorCame) => self.read_again()?,
            Err(WaitInSequenceRefusal::TooManyWaiters) => return Err(self.crowded_out(ask)),
        }
        Ok(None)
    }

    /// There is no room in the set, so nobody will wake it: it looks again by itself, after as long again
    /// as it has waited.
    fn crowded_out(&self, ask: &WaitInSequence) -> Trip {
        let [shortest, longest] = CROWDED_MS;
        let pause = self.waited_ms.unwrap_or(0).clamp(shortest, longest);
        Trip::NotYet { at: self.settled_at.plus(pause).min(ask.due_at()) }
    }

    /// Settles a row of which no change is left.
    async fn finish(&self) -> Result<Ended, Trip> {
        let outcome = if self.dropped.is_empty() { Outcome::Ignored } else { Outcome::Superseded };
        let ask = Settle { epoch: self.row.life.epoch, outcome, settled_at: self.settled_at };
        match self.work.ports().settle(self.work.key(), &ask, &self.dropped).await? {
            Ok(()) | Err(Refused { why: FenceRefusal::Mine, .. }) => {
                Ok(Ended::Settled { outcome, woken: None })
            }
            Err(refused) => Err(Trip::Fenced(refused.why)),
        }
    }

    fn drop_plan(&mut self, plan: &Plan) {
        self.dropped.push(Effect {
            entity: plan.entity().as_str().to_owned(),
            outcome: EffectOutcome::Superseded,
            version: plan.version(),
        });
    }

    fn read_again(&mut self) -> Result<(), Trip> {
        self.rereads += 1;
        if self.rereads > REREADS_MAX {
            let error = "the entity is written to by too many at once".to_owned();
            return Err(Trip::throttled(error));
        }
        Ok(())
    }
}

/// The build refuses such a configuration; a team's own projection is met here.
fn refuse_two_waits(plans: &[Plan]) -> Result<(), ProjectionError> {
    let mut sequences = plans.iter().filter(|plan| match plan {
        Plan::Sequenced(_) => true,
        Plan::Versioned(_) | Plan::Delta(_) | Plan::Fetched(_) => false,
    });
    match (sequences.next(), sequences.next()) {
        (Some(first), Some(second)) => Err(ProjectionError::TwoSequences {
            first: first.entity().entity_type().to_owned(),
            second: second.entity().entity_type().to_owned(),
        }),
        (_, None) | (None, _) => Ok(()),
    }
}

/// What adds is worked once: a row that was made of another one from the ledger changes nothing by a
/// difference. Who makes such rows looks at the configuration before (`ledger_replay::why_not`); a
/// projection in Rust, or one that began to add while the row was in the queue, is met here alone.
fn refuse_to_count_twice(row: &Row, plans: &[Plan]) -> Result<(), ProjectionError> {
    let delta = plans.iter().find_map(|plan| match plan {
        Plan::Delta(delta) => Some(delta),
        Plan::Versioned(_) | Plan::Fetched(_) | Plan::Sequenced(_) => None,
    });
    match (row.evidence.key.replay_of(), delta) {
        (Some(_), Some(delta)) => {
            Err(ProjectionError::CountsTwice { entity_type: delta.entity.entity_type().to_owned() })
        }
        (_, None) | (None, _) => Ok(()),
    }
}

impl From<NoAnswer> for Trip {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::NotYet { at } => Self::NotYet { at },
            NoAnswer::Failed { error, class, retry_after_ms } => {
                Self::Failed { error, class, retry_after_ms }
            }
        }
    }
}
