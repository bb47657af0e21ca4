//! The twin's ledger: the verbs themselves, on maps.

use super::{Fault, Twin, World, injected};
use crate::ports::{
    Conditional, DayEntry, Leased, Ledger, OpenEntry, PortError, Refused, StewardNotes, Trouble,
};
use ledger::{
    Bucket, Effect, Entity, EntityKey, EventKey, Life, Millis, Row, Seconds,
    verbs::{
        self, Apply, Backfill, BackfillRefusal, Bury, Claim, Fail, ForcedBury, LeaseAsk, Redrive,
        Resolve, Settle, Sweep, Wait, WaitInSequence,
    },
};
use std::ops::Bound;

impl Twin {
    /// One conditional write on one row. When the answer is to be lost, the write is made and then
    /// tried again, as an SDK does that never saw the answer.
    async fn write<R>(
        &self,
        step: &'static str,
        key: &EventKey,
        verb: impl Fn(Option<&Life>) -> Result<Life, R>,
    ) -> Conditional<Row, R> {
        let (mut world, fault) = self.begin(step).await?;
        let first = world.write(key, &verb);
        if fault == Some(Fault::AnswerLost) && first.is_ok() {
            return Ok(world.write(key, &verb).map(|(_, new)| new));
        }
        Ok(first.map(|(_, new)| new))
    }
}

impl World {
    /// Applies a verb; the row before and after.
    fn write<R>(
        &mut self,
        key: &EventKey,
        verb: impl Fn(Option<&Life>) -> Result<Life, R>,
    ) -> Result<(Row, Row), Refused<R>> {
        let found = self.rows.get(key).cloned();
        match (verb(found.as_ref().map(|row| &row.life)), found) {
            (Ok(life), Some(old)) => {
                let new = Row { life, ..old.clone() };
                self.put(new.clone());
                Ok((old, new))
            }
            (Ok(_), None) => unreachable!("no verb but claim creates rows"),
            (Err(why), found) => Err(Refused { why, row: found.map(Box::new) }),
        }
    }

    fn apply(
        &mut self,
        twin: &Twin,
        key: &EventKey,
        ask: &Apply,
        effects: &[Effect],
    ) -> Result<(), Refused<verbs::ApplyRefusal>> {
        let found = self.rows.get(key).cloned();
        let entities: Vec<Option<Entity>> = ask
            .changes
            .iter()
            .map(|change| self.entities.get(change.entity.as_str()).cloned())
            .collect();
        let entities: Vec<Option<&Entity>> = entities.iter().map(Option::as_ref).collect();
        let life = found.as_ref().map(|row| &row.life);
        let next = ask.wake.as_ref().and_then(|wake| self.rows.get(&wake.key).cloned());
        let next_life = next.as_ref().map(|row| &row.life);
        let applied = verbs::apply_and_wake(life, &entities, next_life, ask, &twin.policy);
        match (applied, found) {
            (Ok(applied), Some(row)) => {
                if let Some((next, life)) = next.zip(applied.woken) {
                    self.put(Row { life, ..next });
                }
                for (change, entity) in ask.changes.iter().zip(applied.entities) {
                    self.entities.insert(change.entity.as_str().to_owned(), entity);
                }
                self.put(Row { life: applied.life, effects: effects.to_vec(), ..row });
                Ok(())
            }
            (Ok(_), None) => unreachable!("apply needs a row"),
            (Err(why), found) => Err(Refused { why, row: found.map(Box::new) }),
        }
    }

    fn wait_in_sequence(
        &mut self,
        twin: &Twin,
        key: &EventKey,
        entity: &EntityKey,
        ask: &WaitInSequence,
    ) -> Result<(), Refused<verbs::WaitInSequenceRefusal>> {
        let found = self.rows.get(key).cloned();
        let life = found.as_ref().map(|row| &row.life);
        let state = self.entities.get(entity.as_str());
        match (verbs::wait_in_sequence(life, state, ask, &twin.policy), found) {
            (Ok(waited), Some(row)) => {
                self.entities.insert(entity.as_str().to_owned(), waited.entity);
                self.put(Row { life: waited.life, ..row });
                Ok(())
            }
            (Ok(_), None) => unreachable!("waiting needs a row"),
            (Err(why), found) => Err(Refused { why, row: found.map(Box::new) }),
        }
    }
}

impl Ledger for Twin {
    async fn claim(&self, row: &Row, ask: &Claim) -> Conditional<(), verbs::ClaimRefusal> {
        let (mut world, fault) = self.begin("claim").await?;
        let identity = row.evidence.identity_hash.as_ref();
        let key = &row.evidence.key;
        let mut put = || {
            let found = world.rows.get(key).cloned();
            match verbs::claim(found.as_ref(), key, identity, ask, &self.policy) {
                Ok(life) => {
                    world.put(Row { life, ..row.clone() });
                    Ok(())
                }
                Err(why) => Err(Refused { why, row: found.map(Box::new) }),
            }
        };
        let first = put();
        if fault == Some(Fault::AnswerLost) && first.is_ok() { Ok(put()) } else { Ok(first) }
    }

    async fn lease(
        &self,
        key: &EventKey,
        ask: &LeaseAsk,
    ) -> Conditional<Leased, verbs::LeaseRefusal> {
        let (mut world, fault) = self.begin("lease").await?;
        let verb = |life: Option<&Life>| verbs::lease(life, ask, &self.policy);
        let first = world.write(key, verb);
        let last = if fault == Some(Fault::AnswerLost) && first.is_ok() {
            world.write(key, verb)
        } else {
            first
        };
        Ok(last.map(|(old, row)| Leased { row, was: old.life.status }))
    }

    async fn apply(
        &self,
        key: &EventKey,
        ask: &Apply,
        effects: &[Effect],
    ) -> Conditional<(), verbs::ApplyRefusal> {
        let (mut world, fault) = self.begin("apply").await?;
        let first = world.apply(self, key, ask, effects);
        if fault == Some(Fault::AnswerLost) && first.is_ok() {
            return Ok(world.apply(self, key, ask, effects));
        }
        Ok(first)
    }

    async fn settle(
        &self,
        key: &EventKey,
        ask: &Settle,
        effects: &[Effect],
    ) -> Conditional<(), verbs::FenceRefusal> {
        let written =
            self.write("settle", key, |life| verbs::settle(life, ask, &self.policy)).await?;
        if written.is_ok()
            && let Some(row) = self.world().rows.get_mut(key)
        {
            row.effects = effects.to_vec();
        }
        Ok(written.map(drop))
    }

    async fn fail(&self, key: &EventKey, ask: &Fail) -> Conditional<(), verbs::FailRefusal> {
        Ok(self.write("fail", key, |life| verbs::fail(life, ask, &self.policy)).await?.map(drop))
    }

    async fn wait(&self, key: &EventKey, ask: &Wait) -> Conditional<(), verbs::WaitRefusal> {
        Ok(self.write("wait", key, |life| verbs::wait(life, ask)).await?.map(drop))
    }

    async fn wait_in_sequence(
        &self,
        key: &EventKey,
        entity: &EntityKey,
        ask: &WaitInSequence,
    ) -> Conditional<(), verbs::WaitInSequenceRefusal> {
        let (mut world, fault) = self.begin("wait_in_sequence").await?;
        let first = world.wait_in_sequence(self, key, entity, ask);
        if fault == Some(Fault::AnswerLost) && first.is_ok() {
            return Ok(world.wait_in_sequence(self, key, entity, ask));
        }
        Ok(first)
    }

    async fn bury(&self, key: &EventKey, ask: &Bury) -> Conditional<(), verbs::BuryRefusal> {
        Ok(self.write("bury", key, |life| verbs::bury(life, ask, &self.policy)).await?.map(drop))
    }

    async fn forced_bury(
        &self,
        key: &EventKey,
        ask: &ForcedBury,
    ) -> Conditional<(), verbs::ForcedBuryRefusal> {
        Ok(self
            .write("forced_bury", key, |life| verbs::forced_bury(life, ask, &self.policy))
            .await?
            .map(drop))
    }

    async fn redrive(
        &self,
        key: &EventKey,
        ask: &Redrive,
    ) -> Conditional<(), verbs::RedriveRefusal> {
        Ok(self
            .write("redrive", key, |life| verbs::redrive(life, ask, &self.policy))
            .await?
            .map(drop))
    }

    async fn sweep(&self, key: &EventKey, ask: &Sweep) -> Conditional<(), verbs::SweepRefusal> {
        Ok(self.write("sweep", key, |life| verbs::sweep(life, ask, &self.policy)).await?.map(drop))
    }

    async fn resolve(
        &self,
        key: &EventKey,
        ask: &Resolve,
    ) -> Conditional<(), verbs::ResolveRefusal> {
        Ok(self
            .write("resolve", key, |life| verbs::resolve(life, ask, &self.policy))
            .await?
            .map(drop))
    }

    async fn backfill(&self, ask: &Backfill) -> Result<Result<(), BackfillRefusal>, PortError> {
        let (mut world, fault) = self.begin("backfill").await?;
        let key = ask.entity.as_str();
        let mut write = || {
            let entity = verbs::backfill(world.entities.get(key), ask)?;
            world.entities.insert(key.to_owned(), entity);
            Ok(())
        };
        let first = write();
        if fault == Some(Fault::AnswerLost) && first.is_ok() { Ok(write()) } else { Ok(first) }
    }

    async fn row(&self, key: &EventKey) -> Result<Option<Row>, PortError> {
        let (world, _) = self.begin("row").await?;
        Ok(world.rows.get(key).cloned())
    }

    async fn entity(&self, key: &EntityKey) -> Result<Option<Entity>, PortError> {
        let (world, _) = self.begin("entity").await?;
        Ok(world.entities.get(key.as_str()).cloned())
    }

    async fn open(
        &self,
        bucket: Bucket,
        due_before: Millis,
        after: Option<&OpenEntry>,
        limit: u32,
    ) -> Result<Vec<OpenEntry>, PortError> {
        let (mut world, _) = self.begin("open").await?;
        let start = after
            .map_or(Bound::Unbounded, |entry| Bound::Excluded((entry.due_at, entry.key.clone())));
        let found = world.open.get(&bucket);
        let entries: Vec<OpenEntry> = found
            .into_iter()
            .flat_map(|entries| entries.range((start.clone(), Bound::Unbounded)))
            .take_while(|(due_at, _)| *due_at <= due_before)
            .take(limit as usize)
            .map(|(due_at, key)| OpenEntry {
                key: key.clone(),
                due_at: *due_at,
                received_at: world.rows.get(key).map_or(Millis(0), |row| row.evidence.received_at),
            })
            .collect();
        *world.counts.entry("open entries read").or_default() += entries.len() as u64;
        Ok(entries)
    }

    async fn day(
        &self,
        day: &str,
        from: Millis,
        until: Millis,
        newest_first: bool,
        limit: u32,
    ) -> Result<Vec<DayEntry>, PortError> {
        let (world, _) = self.begin("day").await?;
        let found = world.days.get(day).into_iter().flatten();
        let mut entries: Vec<DayEntry> = found
            .filter(|(at, _)| (from..=until).contains(at))
            .map(|(at, key)| DayEntry { key: key.clone(), received_at: *at })
            .collect();
        if newest_first {
            entries.reverse();
        }
        entries.truncate(limit as usize);
        Ok(entries)
    }

    async fn put_chunk(
        &self,
        pk: &str,
        bytes: &[u8],
        expires_at: Option<Seconds>,
    ) -> Result<(), PortError> {
        let (mut world, fault) = self.begin("put_chunk").await?;
        // A chunk that was kept for a dead row stays kept, and its key holds the hash of its bytes.
        if !matches!(world.chunks.get(pk), Some((_, None))) {
            world.chunks.insert(pk.to_owned(), (bytes.to_vec(), expires_at));
        }
        lost(fault, "put_chunk")
    }

    async fn chunk(&self, pk: &str) -> Result<Option<Vec<u8>>, PortError> {
        let (world, _) = self.begin("chunk").await?;
        Ok(world.chunks.get(pk).map(|(bytes, _)| bytes.clone()))
    }

    async fn keep_chunk(&self, pk: &str) -> Result<(), PortError> {
        let (mut world, fault) = self.begin("keep_chunk").await?;
        if let Some((_, expires_at)) = world.chunks.get_mut(pk) {
            *expires_at = None;
        }
        lost(fault, "keep_chunk")
    }

    async fn expire_chunk(&self, pk: &str, expires_at: Seconds) -> Result<(), PortError> {
        let (mut world, fault) = self.begin("expire_chunk").await?;
        if let Some((_, chunk_expires_at)) = world.chunks.get_mut(pk) {
            *chunk_expires_at = Some(expires_at);
        }
        lost(fault, "expire_chunk")
    }

    async fn bind(
        &self,
        pk: &str,
        value: &[u8; 32],
        expires_at: Seconds,
    ) -> Result<bool, PortError> {
        let (mut world, fault) = self.begin("bind").await?;
        let bound = world.chunks.get(pk).is_none_or(|(held, _)| held == value);
        if bound {
            world.chunks.insert(pk.to_owned(), (value.to_vec(), Some(expires_at)));
        }
        lost(fault, "bind")?;
        Ok(bound)
    }

    async fn notes(&self) -> Result<StewardNotes, PortError> {
        let (world, _) = self.begin("notes").await?;
        Ok(world.notes.clone())
    }

    async fn write_notes(&self, notes: &StewardNotes) -> Result<(), PortError> {
        let (mut world, fault) = self.begin("write_notes").await?;
        world.notes = notes.clone();
        lost(fault, "write_notes")
    }
}

/// An unconditional write's lost answer is an error, though the write was made.
fn lost(fault: Option<Fault>, step: &'static str) -> Result<(), PortError> {
    match fault {
        Some(Fault::AnswerLost) => Err(injected(step, Trouble::Unavailable)),
        Some(Fault::Before(_) | Fault::Slow(_)) | None => Ok(()),
    }
}
