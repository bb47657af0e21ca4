//! The ledger on DynamoDB: one file a verb, or a pair of verbs that are each other's mirror.
//!
//! A verb's file holds its condition and its write as they are sent, and nothing that decides.
//! Read beside `ledger::verbs::<verb>`, it says the same in the store's language. The fence of a
//! lease holder, `format` known, `processing`, this epoch, is [`HELD`]; a format nobody wrote
//! also keeps an update from creating a row that is not there.

mod apply;
mod backfill;
mod bury;
mod cancellation;
mod change;
mod chunk;
mod claim;
mod finish;
mod give_back;
mod lease;
mod lookup;
mod notes;
mod read;
mod revive;
mod sequence;
mod transaction;
mod write;

use crate::{
    Aws, Resource,
    item::{Item, decode_row},
    trouble::Failed,
};
use ledger::{
    Bucket, Effect, Entity, EntityKey, EventKey, Life, Millis, Row, Seconds,
    verbs::{
        Apply, ApplyRefusal, Backfill, BackfillRefusal, Bury, BuryRefusal, Claim, ClaimRefusal,
        Fail, FailRefusal, FenceRefusal, ForcedBury, ForcedBuryRefusal, LeaseAsk, LeaseRefusal,
        Redrive, RedriveRefusal, Resolve, ResolveRefusal, Settle, Sweep, SweepRefusal, Wait,
        WaitInSequence, WaitInSequenceRefusal, WaitRefusal, bury_refusal, fail_refusal,
        forced_bury_refusal, redrive_refusal, resolve_refusal, settle_refusal, sweep_refusal,
        wait_refusal,
    },
};
use workflow::ports::{
    Conditional, DayEntry, Leased, Ledger, OpenEntry, PortError, Refused, StewardNotes, Trouble,
};
use write::Update;

/// The fence of a lease holder, `P` of the design.
const HELD: &str = "#format = :format AND #status = :processing AND #epoch = :epoch";
/// The value every condition on a row needs.
const FORMAT: &str = ":format";

impl Ledger for Aws {
    async fn claim(&self, row: &Row, ask: &Claim) -> Conditional<(), ClaimRefusal> {
        self.put_claim(row, ask).await
    }

    async fn lease(&self, key: &EventKey, ask: &LeaseAsk) -> Conditional<Leased, LeaseRefusal> {
        self.take_lease(key, ask).await
    }

    async fn apply(
        &self,
        key: &EventKey,
        ask: &Apply,
        effects: &[Effect],
    ) -> Conditional<(), ApplyRefusal> {
        self.apply_and_settle(key, ask, effects).await
    }

    async fn settle(
        &self,
        key: &EventKey,
        ask: &Settle,
        effects: &[Effect],
    ) -> Conditional<(), FenceRefusal> {
        let step = "settle";
        let policy = &self.settings().policy;
        let table = self.resource(step, Resource::LedgerTable)?;
        let update = finish::settle(table, key, ask, effects, policy);
        self.verb(step, &update, |found| settle_refusal(found, ask)).await
    }

    async fn fail(&self, key: &EventKey, ask: &Fail) -> Conditional<(), FailRefusal> {
        let step = "fail";
        let policy = &self.settings().policy;
        let update = give_back::fail(self.resource(step, Resource::LedgerTable)?, key, ask, policy);
        self.verb(step, &update, |found| fail_refusal(found, ask, policy)).await
    }

    async fn wait(&self, key: &EventKey, ask: &Wait) -> Conditional<(), WaitRefusal> {
        let step = "wait";
        let update = give_back::wait(self.resource(step, Resource::LedgerTable)?, key, ask);
        self.verb(step, &update, |found| wait_refusal(found, ask)).await
    }

    async fn wait_in_sequence(
        &self,
        key: &EventKey,
        entity: &EntityKey,
        ask: &WaitInSequence,
    ) -> Conditional<(), WaitInSequenceRefusal> {
        self.wait_for_predecessor(key, entity, ask).await
    }

    async fn bury(&self, key: &EventKey, ask: &Bury) -> Conditional<(), BuryRefusal> {
        let step = "bury";
        let policy = &self.settings().policy;
        let update = bury::bury(self.resource(step, Resource::LedgerTable)?, key, ask, policy);
        self.verb(step, &update, |found| bury_refusal(found, ask, policy)).await
    }

    async fn forced_bury(
        &self,
        key: &EventKey,
        ask: &ForcedBury,
    ) -> Conditional<(), ForcedBuryRefusal> {
        let step = "forced bury";
        let policy = &self.settings().policy;
        let update = bury::forced(self.resource(step, Resource::LedgerTable)?, key, ask, policy);
        self.verb(step, &update, |found| forced_bury_refusal(found, ask)).await
    }

    async fn redrive(&self, key: &EventKey, ask: &Redrive) -> Conditional<(), RedriveRefusal> {
        let step = "redrive";
        let policy = &self.settings().policy;
        let update = revive::redrive(self.resource(step, Resource::LedgerTable)?, key, ask, policy);
        self.verb(step, &update, |found| redrive_refusal(found, ask, policy)).await
    }

    async fn sweep(&self, key: &EventKey, ask: &Sweep) -> Conditional<(), SweepRefusal> {
        let step = "sweep";
        let policy = &self.settings().policy;
        let update = revive::sweep(self.resource(step, Resource::LedgerTable)?, key, ask, policy);
        self.verb(step, &update, |found| sweep_refusal(found, ask, policy)).await
    }

    async fn resolve(&self, key: &EventKey, ask: &Resolve) -> Conditional<(), ResolveRefusal> {
        let step = "resolve";
        let policy = &self.settings().policy;
        let update = finish::resolve(self.resource(step, Resource::LedgerTable)?, key, ask, policy);
        self.verb(step, &update, |found| resolve_refusal(found, ask)).await
    }

    async fn backfill(&self, ask: &Backfill) -> Result<Result<(), BackfillRefusal>, PortError> {
        self.write_backfill(ask).await
    }

    async fn row(&self, key: &EventKey) -> Result<Option<Row>, PortError> {
        self.read_event(key).await
    }

    async fn entity(&self, key: &EntityKey) -> Result<Option<Entity>, PortError> {
        self.read_entity(key).await
    }

    async fn open(
        &self,
        bucket: Bucket,
        due_before: Millis,
        after: Option<&OpenEntry>,
        limit: u32,
    ) -> Result<Vec<OpenEntry>, PortError> {
        self.list_open(bucket, due_before, after, limit).await
    }

    async fn day(
        &self,
        day: &str,
        from: Millis,
        until: Millis,
        newest_first: bool,
        limit: u32,
    ) -> Result<Vec<DayEntry>, PortError> {
        self.list_day(day, from, until, newest_first, limit).await
    }

    async fn put_chunk(
        &self,
        pk: &str,
        bytes: &[u8],
        expires_at: Option<Seconds>,
    ) -> Result<(), PortError> {
        self.write_chunk(pk, bytes, expires_at).await
    }

    async fn chunk(&self, pk: &str) -> Result<Option<Vec<u8>>, PortError> {
        self.read_chunk(pk).await
    }

    async fn keep_chunk(&self, pk: &str) -> Result<(), PortError> {
        self.spare_chunk(pk).await
    }

    async fn expire_chunk(&self, pk: &str, expires_at: Seconds) -> Result<(), PortError> {
        self.date_chunk(pk, expires_at).await
    }

    async fn bind(
        &self,
        pk: &str,
        value: &[u8; 32],
        expires_at: Seconds,
    ) -> Result<bool, PortError> {
        self.write_mark(pk, value, expires_at).await
    }

    async fn notes(&self) -> Result<StewardNotes, PortError> {
        self.read_notes().await
    }

    async fn write_notes(&self, notes: &StewardNotes) -> Result<(), PortError> {
        self.put_notes(notes).await
    }
}

impl Aws {
    /// Carries out a verb that answers nothing; `read` is the pure reader of its refusal.
    async fn verb<R>(
        &self,
        step: &'static str,
        update: &Update,
        read: impl FnOnce(Option<&Life>) -> R,
    ) -> Conditional<(), R> {
        match self.update(step, update).await? {
            Ok(_) => Ok(Ok(())),
            Err(found) => {
                let found = read_row(step, found)?;
                let why = read(found.as_ref().map(|row| &row.life));
                Ok(Err(refused(why, found)))
            }
        }
    }
}

fn refused<R>(why: R, row: Option<Row>) -> Refused<R> {
    Refused { why, row: row.map(Box::new) }
}

/// A row as found. One of this format that cannot be read is an error: nothing is known that
/// could be acted upon.
fn read_row(step: &'static str, found: Option<Item>) -> Result<Option<Row>, PortError> {
    let row = found.map(|item| decode_row(&item)).transpose();
    row.map_err(|error| Failed::new(Trouble::Invalid, error.to_string()).at(step))
}

#[cfg(test)]
mod tests;
