//! Apply and settle: the entities' changes, the waiter to be woken and the row's end, as one
//! transaction.

use super::{change::change, finish, read_row, refused, transaction::Verdict, write::Update};
use crate::{
    Aws, Resource,
    item::{Item, decode_entity},
    trouble::Failed,
};
use ledger::{
    Bucket, Change, Effect, Entity, EventKey, Guard, Life, Millis, Outcome, Policy, ROW_FORMAT,
    Row, Status, Token,
    verbs::{Apply, ApplyRefusal, Birth, Claim, Settle, Wake, apply_and_wake_refusal},
};
use workflow::ports::{Conditional, PortError, Trouble};

const STEP: &str = "apply";

/// A row that was leased out of its wait keeps the wait's far due time: it is woken too.
const WAITS: &str = "#format = :format AND #status IN (:waiting, :processing)";
const WAKE: &str = "SET #bucket = :bucket, #due_at = :now";

impl Aws {
    pub(super) async fn apply_and_settle(
        &self,
        key: &EventKey,
        ask: &Apply,
        effects: &[Effect],
    ) -> Conditional<(), ApplyRefusal> {
        let policy = &self.settings().policy;
        let ledger = self.resource(STEP, Resource::LedgerTable)?;
        let state = self.resource(STEP, Resource::StateTable)?;
        // The row's end comes first: where several writes are refused, its fence is what counts.
        let settle =
            Settle { epoch: ask.epoch, outcome: Outcome::Applied, settled_at: ask.settled_at };
        let mut updates = vec![finish::settle(ledger, key, &settle, effects, policy)];
        updates.extend(ask.changes.iter().map(|asked| change(state, asked, ask.settled_at)));
        updates.extend(ask.wake.iter().map(|asked| wake(ledger, asked, ask.settled_at)));
        match self.transact(STEP, key, ask.epoch, &updates).await? {
            Ok(()) => Ok(Ok(())),
            Err(verdicts) => {
                let (why, row) = read_refusal(verdicts, key, ask, policy)?;
                Ok(Err(refused(why, row)))
            }
        }
    }
}

pub(super) fn wake(table: &str, ask: &Wake, now: Millis) -> Update {
    Update::new(table, ask.key.as_str(), WAITS, WAKE)
        .number(super::FORMAT, ROW_FORMAT)
        .text(":waiting", Status::Waiting)
        .text(":processing", Status::Processing)
        .text(":bucket", Bucket::Pending(ask.key.shard()))
        .number(":now", now.0)
}

/// Reads a refused transaction by the pure rule. The store shows only the items it refused; in
/// the place of one that passed stands one that would pass.
fn read_refusal(
    verdicts: Vec<Verdict>,
    key: &EventKey,
    ask: &Apply,
    policy: &Policy,
) -> Result<(ApplyRefusal, Option<Row>), PortError> {
    let mut verdicts = verdicts.into_iter();
    let stand_in = stand_in(key, ask.epoch, policy);
    let row = match verdicts.next() {
        Some(Verdict::Refused(found)) => Some(read_row(STEP, found)?),
        Some(Verdict::Passed) | None => None,
    };
    let mut entities = Vec::with_capacity(ask.changes.len());
    for (asked, verdict) in ask.changes.iter().zip(verdicts.by_ref()) {
        entities.push(match verdict {
            Verdict::Passed => passing(asked),
            Verdict::Refused(found) => read_entity(found)?,
        });
    }
    let next = match verdicts.next() {
        Some(Verdict::Refused(found)) => read_row(STEP, found)?.map(|row| row.life),
        Some(Verdict::Passed) | None => Some(Life { status: Status::Waiting, ..stand_in.clone() }),
    };
    let life = row.as_ref().map_or(Some(&stand_in), |row| row.as_ref().map(|row| &row.life));
    let found: Vec<Option<&Entity>> = entities.iter().map(Option::as_ref).collect();
    let why = apply_and_wake_refusal(life, &found, next.as_ref(), ask);
    if matches!(&why, ApplyRefusal::RevisionMoved(moved) if moved.is_empty()) {
        let said = "the store refused what the rules allow";
        return Err(Failed::new(Trouble::Conflict, said).at(STEP));
    }
    Ok((why, row.flatten()))
}

fn read_entity(found: Option<Item>) -> Result<Option<Entity>, PortError> {
    let entity = found.map(|item| decode_entity(&item)).transpose();
    entity.map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(STEP))
}

/// A row that its holder may settle.
fn stand_in(key: &EventKey, epoch: u64, policy: &Policy) -> Life {
    let born = Claim { birth: Birth::Claimed, nonce: Token(0), received_at: Millis(0) };
    Life { status: Status::Processing, epoch, ..born.life(key, policy) }
}

/// An entity on which the change may be made.
fn passing(change: &Change) -> Option<Entity> {
    match &change.guard {
        Guard::Newer { .. } | Guard::Revision { read: None, .. } => None,
        Guard::Revision { read: Some(revision), .. } => Some(Entity {
            version: None,
            rank: 0,
            last_event: String::new(),
            revision: *revision,
            state: serde_json::Map::new(),
            updated_at: Millis(0),
            is_final: false,
            waiting: std::collections::BTreeSet::new(),
        }),
    }
}
