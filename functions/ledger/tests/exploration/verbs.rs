//! The real verbs, asked with the model's times. Nothing here decides anything: each function
//! builds the request a caller would build and hands it to the verb.

use crate::{
    bounds::Design,
    model::{Answer, Model, Said, Verb},
    process::RowIx,
    properties::{Property, Writer, judge},
    times::{
        BURIED, DEADLINE, DUE, EARLY, FAILED, LATE, OLD, RECEIVED, REDRIVE_DUE, REDRIVEN, RESOLVED,
        SENT_AFTER, SENT_BEFORE, SETTLED, TIMED_OUT, TIMEOUT_MS, WAITED, YOUNG,
    },
};
use ledger::{
    Body, Bucket, Codec, Evidence, Failure, FailureClass, Life, Millis, Open, Origin, Outcome, Row,
    SourceName, Status, Token,
    verbs::{
        self, Birth, Bury, BuryRefusal, Claim, ClaimRefusal, Fail, FailRefusal, FenceRefusal,
        ForcedBury, ForcedBuryRefusal, LeaseAsk, LeaseRefusal, Redrive, RedriveBy, RedriveRefusal,
        Resolve, ResolveRefusal, Settle, Sweep, SweepRefusal, Wait,
    },
};

/// Who redrives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Message { fresh: bool },
    Steward { fresh: bool, cure: bool },
    Person,
}

impl Model {
    fn shard(&self, row: RowIx) -> u8 {
        self.keys[usize::from(row)].shard()
    }

    /// What a verb wrote, judged and made abstract.
    pub(crate) fn wrote(
        &mut self,
        write: (Verb, Writer),
        old: Option<&Life>,
        new: &Life,
    ) -> Answer {
        let breach = judge(write, old, new, self);
        let life = self.store(&abstracted(new, self.bounds.due_detail));
        Answer { life, breach, ..Answer::said(Said::Done) }
    }

    /// The life a lease holder's write is judged by.
    pub(crate) fn fenced(&self, life: u16, epoch: u8) -> Option<Life> {
        let mut found = self.lives.get(life).cloned()?;
        if self.design == Design::NoFence {
            found.status = Status::Processing;
            found.epoch = epoch.into();
        }
        Some(found)
    }

    pub(crate) fn claim(&mut self, life: u16, row: RowIx, nonce: u8, old: bool) -> Answer {
        let question = [life, row.into(), nonce.into(), old.into(), 0, 0, 0];
        self.ask(Verb::Claim, question, |model| {
            let key = model.keys[usize::from(row)].clone();
            let found = model.lives.get(life).map(|life| Row {
                evidence: evidence(&key, model.bounds.oddities),
                life: life.clone(),
                effects: Vec::new(),
            });
            let received_at = match (&found, old) {
                (None, _) => RECEIVED,
                (Some(_), true) => OLD,
                (Some(_), false) => YOUNG,
            };
            let ask = Claim { birth: Birth::Claimed, nonce: Token(nonce.into()), received_at };
            // The second delivery carries another body, where that is of interest.
            let hash = model.bounds.oddities.then_some([u8::from(nonce == 2); 32]);
            match verbs::claim(found.as_ref(), &key, hash.as_ref(), &ask, &model.policy) {
                Ok(life) => model.wrote((Verb::Claim, Writer::Anyone), None, &life),
                Err(why) => Answer::said(match why {
                    ClaimRefusal::Mine => Said::Mine,
                    ClaimRefusal::Settled => Said::Settled,
                    ClaimRefusal::Pending => Said::Pending,
                    ClaimRefusal::Overdue => Said::Overdue,
                    ClaimRefusal::Dead => Said::Dead,
                    ClaimRefusal::DeadPermanent => Said::DeadPermanent,
                    ClaimRefusal::UnknownFormat => Said::UnknownFormat,
                    ClaimRefusal::Conflict => Said::Conflict,
                }),
            }
        })
    }

    pub(crate) fn lease(&mut self, life: u16, owner: u8, late: bool, new_build: bool) -> Answer {
        let question = [life, owner.into(), late.into(), new_build.into(), 0, 0, 0];
        self.ask(Verb::Lease, question, |model| {
            let found = model.lives.get(life).cloned();
            let ask = LeaseAsk {
                owner: Token(owner.into()),
                until: DEADLINE,
                now: if late { LATE } else { EARLY },
                release: build(new_build).to_owned(),
            };
            match verbs::lease(found.as_ref(), &ask, &model.policy) {
                Ok(life) => {
                    model.wrote((Verb::Lease, Writer::Clock { late }), found.as_ref(), &life)
                }
                Err(why) => Answer::said(match why {
                    LeaseRefusal::Mine => Said::Mine,
                    LeaseRefusal::Settled => Said::Settled,
                    LeaseRefusal::Held { .. } => Said::Held,
                    LeaseRefusal::NotYet { .. } => Said::NotYet,
                    LeaseRefusal::OutOfBudget => Said::OutOfBudget,
                    LeaseRefusal::Dead { .. } => Said::Dead,
                    LeaseRefusal::Missing => Said::Missing,
                    LeaseRefusal::UnknownFormat => Said::UnknownFormat,
                }),
            }
        })
    }

    pub(crate) fn redrive(&mut self, life: u16, row: RowIx, who: Who) -> Answer {
        let (by, code) = match who {
            Who::Message { fresh } => {
                let ageless = fresh || self.design == Design::AgelessMessages;
                let sent_at = if ageless { SENT_AFTER } else { SENT_BEFORE };
                (RedriveBy::Message { sent_at }, u16::from(fresh))
            }
            Who::Steward { fresh, cure } => {
                let due = self.glance_at(life).map_or(0, |glance| glance.due);
                let seen_due_at = Millis(if fresh { due.into() } else { 1 });
                let release = cure.then(|| build(true).to_owned());
                let code = 2 + u16::from(fresh) + 2 * u16::from(cure);
                (RedriveBy::Steward { seen_due_at, release }, code)
            }
            Who::Person => {
                let (by, reason) = ("p".to_owned(), "r".to_owned());
                (RedriveBy::Person { by, reason }, 6)
            }
        };
        self.ask(Verb::Redrive, [life, row.into(), code, 0, 0, 0, 0], |model| {
            let found = model.lives.get(life).cloned();
            let ask = Redrive { by, now: REDRIVEN, shard: model.shard(row) };
            match verbs::redrive(found.as_ref(), &ask, &model.policy) {
                Ok(mut after) => {
                    if model.design == Design::LeftAmongTheDead {
                        after.open = found.as_ref().and_then(|life| life.open);
                    }
                    let mut answer =
                        model.wrote((Verb::Redrive, Writer::Anyone), found.as_ref(), &after);
                    if who == (Who::Message { fresh: false }) {
                        answer.breach = Some(Property::NoBudgetNobodyGranted);
                    }
                    answer
                }
                Err(why) => Answer::said(match why {
                    RedriveRefusal::Mine => Said::Mine,
                    RedriveRefusal::MessageTooOld => Said::MessageTooOld,
                    RedriveRefusal::MovedOn => Said::MovedOn,
                    RedriveRefusal::NotDead => Said::NotDead,
                    RedriveRefusal::Missing => Said::Missing,
                    RedriveRefusal::UnknownFormat => Said::UnknownFormat,
                }),
            }
        })
    }

    pub(crate) fn wait(&mut self, life: u16, row: RowIx, epoch: u8) -> Answer {
        self.ask(Verb::Wait, [life, row.into(), epoch.into(), 0, 0, 0, 0], |model| {
            let found = model.fenced(life, epoch);
            let ask = Wait {
                epoch: epoch.into(),
                now: WAITED,
                retry_at: DEADLINE,
                due_at: DUE,
                shard: model.shard(row),
            };
            match verbs::wait(found.as_ref(), &ask) {
                Ok(life) => {
                    model.wrote((Verb::Wait, Writer::Holder { epoch }), found.as_ref(), &life)
                }
                Err(why) => Answer::said(fence(why)),
            }
        })
    }

    pub(crate) fn settle(&mut self, life: u16, epoch: u8, outcome: Outcome) -> Answer {
        let question = [life, epoch.into(), outcome as u16, 0, 0, 0, 0];
        self.ask(Verb::Settle, question, |model| {
            let found = model.fenced(life, epoch);
            let ask = Settle { epoch: epoch.into(), outcome, settled_at: SETTLED };
            match verbs::settle(found.as_ref(), &ask, &model.policy) {
                Ok(life) => {
                    model.wrote((Verb::Settle, Writer::Holder { epoch }), found.as_ref(), &life)
                }
                Err(why) => Answer::said(fence(why)),
            }
        })
    }

    pub(crate) fn fail(&mut self, life: u16, row: RowIx, epoch: u8) -> Answer {
        self.ask(Verb::Fail, [life, row.into(), epoch.into(), 0, 0, 0, 0], |model| {
            let found = model.fenced(life, epoch);
            let ask = Fail {
                epoch: epoch.into(),
                failure: failure(FailureClass::Transient, FAILED),
                retry_at: DEADLINE,
                shard: model.shard(row),
            };
            match verbs::fail(found.as_ref(), &ask, &model.policy) {
                Ok(life) => {
                    model.wrote((Verb::Fail, Writer::Holder { epoch }), found.as_ref(), &life)
                }
                Err(FailRefusal::OutOfBudget) => Answer::said(Said::OutOfBudget),
                Err(FailRefusal::Fence(why)) => Answer::said(fence(why)),
            }
        })
    }

    pub(crate) fn bury(&mut self, life: u16, row: RowIx, epoch: u8, permanent: bool) -> Answer {
        let question = [life, row.into(), epoch.into(), permanent.into(), 0, 0, 0];
        self.ask(Verb::Bury, question, |model| {
            let found = model.fenced(life, epoch);
            let class = if permanent { FailureClass::Permanent } else { FailureClass::Transient };
            let open = model.grave(row, found.as_ref(), class);
            let ask = Bury { epoch: epoch.into(), failure: failure(class, BURIED), open };
            match verbs::bury(found.as_ref(), &ask, &model.policy) {
                Ok(life) => {
                    model.wrote((Verb::Bury, Writer::Holder { epoch }), found.as_ref(), &life)
                }
                Err(BuryRefusal::BudgetLeft) => Answer::said(Said::BudgetLeft),
                Err(BuryRefusal::Fence(why)) => Answer::said(fence(why)),
            }
        })
    }

    pub(crate) fn forced_bury(&mut self, life: u16, row: RowIx, late: bool) -> Answer {
        let question = [life, row.into(), late.into(), 0, 0, 0, 0];
        self.ask(Verb::ForcedBury, question, |model| {
            let found = model.lives.get(life).cloned();
            let class = FailureClass::Transient;
            let ask = ForcedBury {
                failure: failure(class, BURIED),
                now: if late { LATE } else { EARLY },
                open: model.grave(row, found.as_ref(), class),
            };
            match verbs::forced_bury(found.as_ref(), &ask, &model.policy) {
                Ok(life) => {
                    model.wrote((Verb::ForcedBury, Writer::Clock { late }), found.as_ref(), &life)
                }
                Err(why) => Answer::said(match why {
                    ForcedBuryRefusal::Mine => Said::Mine,
                    ForcedBuryRefusal::MovedOn => Said::MovedOn,
                    ForcedBuryRefusal::Missing => Said::Missing,
                    ForcedBuryRefusal::UnknownFormat => Said::UnknownFormat,
                }),
            }
        })
    }

    pub(crate) fn sweep(&mut self, life: u16, row: RowIx, seen: u32) -> Answer {
        let [low, high] = [seen as u16, (seen >> 16) as u16];
        self.ask(Verb::Sweep, [life, row.into(), low, high, 0, 0, 0], |model| {
            let found = model.lives.get(life).cloned();
            let ask = Sweep {
                seen_due_at: Millis(seen.into()),
                now: EARLY,
                shard: model.shard(row),
                sweeps: 0,
            };
            match verbs::sweep(found.as_ref(), &ask, &model.policy) {
                Ok(life) => model.wrote((Verb::Sweep, Writer::Anyone), found.as_ref(), &life),
                Err(why) => Answer::said(match why {
                    SweepRefusal::Mine => Said::Mine,
                    SweepRefusal::MovedOn => Said::MovedOn,
                    SweepRefusal::Missing => Said::Missing,
                    SweepRefusal::UnknownFormat => Said::UnknownFormat,
                }),
            }
        })
    }

    pub(crate) fn resolve(&mut self, life: u16) -> Answer {
        self.ask(Verb::Resolve, [life, 0, 0, 0, 0, 0, 0], |model| {
            let found = model.lives.get(life).cloned();
            let ask = Resolve { by: "ada".to_owned(), note: String::new(), settled_at: RESOLVED };
            match verbs::resolve(found.as_ref(), &ask, &model.policy) {
                Ok(life) => model.wrote((Verb::Resolve, Writer::Anyone), found.as_ref(), &life),
                Err(why) => Answer::said(match why {
                    ResolveRefusal::Mine => Said::Mine,
                    ResolveRefusal::NotDead(_) => Said::NotDead,
                    ResolveRefusal::Missing => Said::Missing,
                    ResolveRefusal::UnknownFormat => Said::UnknownFormat,
                }),
            }
        })
    }

    /// Where a row lies that dies now.
    fn grave(&self, row: RowIx, found: Option<&Life>, class: FailureClass) -> Open {
        let redrives = found.map_or(0, |life| life.redrives);
        verbs::resting_place(self.shard(row), class, redrives, BURIED, REDRIVE_DUE, &self.policy)
    }

    /// A newer build rewrites the row in its own format.
    pub(crate) fn rewritten(&mut self, life: u16) -> Answer {
        self.ask(Verb::Rewrite, [life, 0, 0, 0, 0, 0, 0], |model| {
            let mut after = model.lives.get(life).expect("a life").clone();
            after.format += 1;
            Answer { life: model.store(&after), ..Answer::said(Said::Done) }
        })
    }

    /// Whether the second build may cure the dead row.
    pub(crate) fn is_curable(&self, life: u16) -> bool {
        self.lives.get(life).is_some_and(|life| verbs::is_curable_by(life, build(true)))
    }

    /// Whether nobody can be at work on the row and its budget is spent.
    pub(crate) fn is_abandoned(&self, life: u16) -> bool {
        self.lives.get(life).is_some_and(|life| verbs::is_abandoned(life, LATE, &self.policy))
    }
}

pub(crate) const fn fence(why: FenceRefusal) -> Said {
    match why {
        FenceRefusal::Mine => Said::Mine,
        FenceRefusal::Lost => Said::Lost,
        FenceRefusal::Missing => Said::Missing,
        FenceRefusal::UnknownFormat => Said::UnknownFormat,
    }
}

const fn build(new: bool) -> &'static str {
    if new { "new" } else { "old" }
}

fn failure(class: FailureClass, at: Millis) -> Failure {
    Failure { error: String::new(), class, at }
}

fn evidence(key: &ledger::EventKey, has_hash: bool) -> Evidence {
    Evidence {
        key: key.clone(),
        source: SourceName::new("s").expect("a source name"),
        event_type: String::new(),
        received_at: RECEIVED,
        body: Body { codec: Codec::Plain, inline: None, chunks: 0, sha256: [0; 32], len: 0 },
        identity_hash: has_hash.then_some([0; 32]),
        headers: std::collections::BTreeMap::new(),
        kid: String::new(),
        origin: Origin::Delivery,
        origin_note: None,
    }
}

/// Forgets what no verb reads in that status, and every distinction of time the model does not
/// make. What is forgotten in one status is written again on every way into a status where it is
/// read.
fn abstracted(life: &Life, due_detail: bool) -> Life {
    let mut life = Life { sweeps: 0, by_hand: None, ..life.clone() };
    match life.status {
        Status::Claimed | Status::Processing | Status::Waiting => {
            life.failure = None;
            life.redriven_at = None;
            if life.status == Status::Processing {
                life.retry_at = None;
            }
        }
        Status::Failed => {}
        Status::Dead => {
            life.retry_at = None;
            life.redriven_at = None;
        }
        Status::Settled => {
            life = Life {
                failure: None,
                retry_at: None,
                redriven_at: None,
                release: None,
                redrives: 0,
                budget_release: None,
                ..life
            };
        }
    }
    if let Some(open) = &mut life.open
        && matches!(open.bucket, Bucket::Pending(_))
    {
        let is_kept = open.due_at == SETTLED
            || open.due_at == TIMED_OUT
            || (due_detail && open.due_at == EARLY.plus(120_000));
        if !is_kept {
            open.due_at = DUE;
        }
    }
    life
}

/// The sequence's timeout and its clock, for the transaction of [`crate::change`].
pub(crate) const SEQUENCE_CLOCK: (Millis, u64) = (WAITED, TIMEOUT_MS);
