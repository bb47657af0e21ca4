//! What the use cases need from the world.
//!
//! One trait per concern; an adapter may implement several on one type. Conditional writes answer
//! *written* or *here is why not and the row I found*; only what nobody planned is an error, and
//! an error says at its origin whether another try makes sense.

mod notes;

pub use notes::{Notes, StewardNotes};

use crate::http::{HttpAnswer, HttpAsk};
use ledger::{
    Bucket, Entity, EntityKey, EventKey, Jitter, Message, Millis, Origin, Row, Status, Token,
    verbs::{
        Apply, ApplyRefusal, Backfill, BackfillRefusal, Bury, BuryRefusal, Claim, ClaimRefusal,
        Fail, FailRefusal, FenceRefusal, ForcedBury, ForcedBuryRefusal, LeaseAsk, LeaseRefusal,
        Redrive, RedriveRefusal, Resolve, ResolveRefusal, Settle, Sweep, SweepRefusal, Wait,
        WaitInSequence, WaitInSequenceRefusal, WaitRefusal,
    },
};
use std::{collections::BTreeMap, future::Future};
use thiserror::Error;

/// What a failed call means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// Capacity: nobody's fault, try later.
    Throttled,
    /// A transaction was in the way, also after retries.
    Conflict,
    /// Timeouts, connection failures, server errors, missing permissions: it may have happened.
    Unavailable,
    /// The request itself is impossible, such as an item above the size limit.
    Invalid,
}

/// A call that failed in a way its caller did not ask about.
#[derive(Debug, Error)]
#[error("{step} failed: {source}")]
pub struct PortError {
    /// What was being done, such as `claim`.
    pub step: &'static str,
    /// What it means for the caller.
    pub trouble: Trouble,
    /// The cause, for the log.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A conditional write that did not happen, and the row that stood in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused<R> {
    /// What the caller does about it.
    pub why: R,
    /// The row as found.
    pub row: Option<Box<Row>>,
}

/// Written, refused, or failed.
pub type Conditional<T, R> = Result<Result<T, Refused<R>>, PortError>;

/// A row that the caller may work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leased {
    /// The row, its life as leased.
    pub row: Row,
    /// Its status before: `processing` marks a row whose last worker died.
    pub was: Status,
}

/// An entry of the index `open`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenEntry {
    /// The row's key.
    pub key: EventKey,
    /// When it is due.
    pub due_at: Millis,
    /// When the event was received.
    pub received_at: Millis,
}

/// An entry of the index `by_day`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayEntry {
    /// The row's key.
    pub key: EventKey,
    /// When the event was received.
    pub received_at: Millis,
}

/// The ledger and the state it settles into.
pub trait Ledger: Send + Sync {
    /// Creates the row unless its key is taken. The row's life is `ask`'s.
    fn claim(
        &self,
        row: &Row,
        ask: &Claim,
    ) -> impl Future<Output = Conditional<(), ClaimRefusal>> + Send;
    /// Takes the exclusive right to work.
    fn lease(
        &self,
        key: &EventKey,
        ask: &LeaseAsk,
    ) -> impl Future<Output = Conditional<Leased, LeaseRefusal>> + Send;
    /// Makes the changes and settles the row, or neither. `effects` is what the settled row
    /// remembers: these changes, and those dropped before.
    fn apply(
        &self,
        key: &EventKey,
        ask: &Apply,
        effects: &[ledger::Effect],
    ) -> impl Future<Output = Conditional<(), ApplyRefusal>> + Send;
    /// Settles a row without changes; `effects` remembers what was superseded.
    fn settle(
        &self,
        key: &EventKey,
        ask: &Settle,
        effects: &[ledger::Effect],
    ) -> impl Future<Output = Conditional<(), FenceRefusal>> + Send;
    /// Gives the row back after a failed run.
    fn fail(
        &self,
        key: &EventKey,
        ask: &Fail,
    ) -> impl Future<Output = Conditional<(), FailRefusal>> + Send;
    /// Gives the row back without fault.
    fn wait(
        &self,
        key: &EventKey,
        ask: &Wait,
    ) -> impl Future<Output = Conditional<(), WaitRefusal>> + Send;
    /// Gives the row back until its predecessor on `entity` has come, and leaves its name there.
    fn wait_in_sequence(
        &self,
        key: &EventKey,
        entity: &EntityKey,
        ask: &WaitInSequence,
    ) -> impl Future<Output = Conditional<(), WaitInSequenceRefusal>> + Send;
    /// Buries a row that the caller holds.
    fn bury(
        &self,
        key: &EventKey,
        ask: &Bury,
    ) -> impl Future<Output = Conditional<(), BuryRefusal>> + Send;
    /// Buries a row whose workers died until its budget was spent.
    fn forced_bury(
        &self,
        key: &EventKey,
        ask: &ForcedBury,
    ) -> impl Future<Output = Conditional<(), ForcedBuryRefusal>> + Send;
    /// Brings a dead row back.
    fn redrive(
        &self,
        key: &EventKey,
        ask: &Redrive,
    ) -> impl Future<Output = Conditional<(), RedriveRefusal>> + Send;
    /// Pushes an overdue row's due time forward.
    fn sweep(
        &self,
        key: &EventKey,
        ask: &Sweep,
    ) -> impl Future<Output = Conditional<(), SweepRefusal>> + Send;
    /// Closes a dead row by hand.
    fn resolve(
        &self,
        key: &EventKey,
        ask: &Resolve,
    ) -> impl Future<Output = Conditional<(), ResolveRefusal>> + Send;

    /// Gives an entity a version that it lacks.
    fn backfill(
        &self,
        ask: &Backfill,
    ) -> impl Future<Output = Result<Result<(), BackfillRefusal>, PortError>> + Send;

    /// Reads a row, strongly consistent.
    fn row(&self, key: &EventKey) -> impl Future<Output = Result<Option<Row>, PortError>> + Send;
    /// Reads an entity, strongly consistent.
    fn entity(
        &self,
        key: &EntityKey,
    ) -> impl Future<Output = Result<Option<Entity>, PortError>> + Send;
    /// Up to `limit` entries of one bucket due at or before `due_before`, earliest first,
    /// beginning behind `after`.
    fn open(
        &self,
        bucket: Bucket,
        due_before: Millis,
        after: Option<&OpenEntry>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<OpenEntry>, PortError>> + Send;
    /// Up to `limit` entries of one `by_day` partition received in `from..=until`, newest first
    /// when `newest_first`.
    fn day(
        &self,
        day: &str,
        from: Millis,
        until: Millis,
        newest_first: bool,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<DayEntry>, PortError>> + Send;

    /// Stores one chunk of a body, to be deleted at `expires_at` or never. Overwrites an equal one.
    fn put_chunk(
        &self,
        pk: &str,
        bytes: &[u8],
        expires_at: Option<ledger::Seconds>,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Reads one chunk of a body.
    fn chunk(&self, pk: &str) -> impl Future<Output = Result<Option<Vec<u8>>, PortError>> + Send;
    /// Takes the time to live from a chunk, so that a dead row keeps its body. A chunk that is
    /// gone is left gone.
    fn keep_chunk(&self, pk: &str) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Gives a chunk a time to live again, once its row is settled after all. A chunk that is gone
    /// is left gone.
    fn expire_chunk(
        &self,
        pk: &str,
        expires_at: ledger::Seconds,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Binds the key `pk` to `value` until `expires_at`, unless it is bound to another value.
    /// Whether it is bound to this one now.
    fn bind(
        &self,
        pk: &str,
        value: &[u8; 32],
        expires_at: ledger::Seconds,
    ) -> impl Future<Output = Result<bool, PortError>> + Send;

    /// The steward's notebook: the row `_s#steward`.
    fn notes(&self) -> impl Future<Output = Result<StewardNotes, PortError>> + Send;
    /// Writes the notebook. The last writer wins: the notes are hints, every act is conditional.
    fn write_notes(
        &self,
        notes: &StewardNotes,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// How a row came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRow {
    /// When.
    pub received_at: Millis,
    /// How.
    pub origin: Origin,
    /// Who fed it in and why, where it was no delivery.
    pub origin_note: Option<String>,
}

/// Many rows looked up by their keys at once.
pub trait Lookup: Send + Sync {
    /// Those of `keys` that have a row, strongly consistent.
    fn known(
        &self,
        keys: &[EventKey],
    ) -> impl Future<Output = Result<BTreeMap<EventKey, KnownRow>, PortError>> + Send;
}

/// Sends messages to the queue.
pub trait Outbox: Send + Sync {
    /// Sends one message; `source` is the fair queue's group.
    fn send(
        &self,
        message: &Message,
        source: &str,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
    /// Sends several; the indexes of those that failed.
    fn send_all(&self, messages: &[(Message, String)]) -> impl Future<Output = Vec<usize>> + Send;
}

/// What the consumer may do with a message it was handed.
pub trait Inbox: Send + Sync {
    /// Makes the message visible again after `seconds` (at most 43,170).
    fn postpone(
        &self,
        receipt: &str,
        seconds: u32,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// A message found in the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its body.
    pub body: String,
    /// Deletes it.
    pub receipt: String,
}

/// What the steward sees of the queues.
pub trait Queues: Send + Sync {
    /// Messages visible in the queue, approximately.
    fn backlog(&self) -> impl Future<Output = Result<u64, PortError>> + Send;
    /// Up to ten messages of the dead-letter queue, hidden from others for a few seconds.
    fn dead_letters(&self) -> impl Future<Output = Result<Vec<DeadLetter>, PortError>> + Send;
    /// Deletes one of them.
    fn delete_dead_letter(
        &self,
        receipt: &str,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// A secret: one JSON document for all sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Secret {
    /// The keys that providers sign with.
    Signing,
    /// The keys for calls to providers' APIs and to destinations.
    Outbound,
    /// The tokens that open the replay route.
    Replay,
}

/// Secrets as stored. A function may read those that its role names.
pub trait SecretStore: Send + Sync {
    /// Reads the current document.
    fn fetch(&self, secret: Secret) -> impl Future<Output = Result<String, PortError>> + Send;
}

/// Calls to providers' servers.
pub trait Http: Send + Sync {
    /// Asks once; follows no redirect, ends in time, reads a bounded answer. An answer of any
    /// status is an answer; an error means that none came: [`Trouble::Invalid`] for an address that
    /// cannot be requested or an answer that is too long, else [`Trouble::Unavailable`].
    fn call(&self, ask: HttpAsk) -> impl Future<Output = Result<HttpAnswer, PortError>> + Send;
}

/// Certificates that a provider's requests point to.
pub trait Certificates: Send + Sync {
    /// Fetches what stands at `url`, which the verifier found to be the provider's own. Follows no
    /// redirect, reads a bounded answer, ends within two seconds. [`Trouble::Invalid`] says that
    /// there is no certificate at this address, anything else that it could not be asked.
    fn certificate(&self, url: &str) -> impl Future<Output = Result<Vec<u8>, PortError>> + Send;
}

/// Time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Millis;
    /// Returns after `ms`.
    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send;
}

/// Randomness.
pub trait Entropy: Send + Sync {
    /// A token no other request has.
    fn token(&self) -> Token;
    /// The two numbers that spread a delay.
    fn jitter(&self) -> Jitter;
}

/// Everything the receiver needs.
pub trait ReceiverPorts:
    Ledger + Outbox + SecretStore + Certificates + Clock + Entropy + crate::telemetry::Telemetry
{
}
impl<
    P: Ledger + Outbox + SecretStore + Certificates + Clock + Entropy + crate::telemetry::Telemetry,
> ReceiverPorts for P
{
}

/// Everything the consumer needs.
pub trait ConsumerPorts:
    Ledger + Inbox + SecretStore + Http + Clock + Entropy + crate::telemetry::Telemetry
{
}
impl<P: Ledger + Inbox + SecretStore + Http + Clock + Entropy + crate::telemetry::Telemetry>
    ConsumerPorts for P
{
}

/// Everything the steward needs.
pub trait StewardPorts:
    Ledger + Notes + Outbox + Queues + Clock + Entropy + crate::telemetry::Telemetry
{
}
impl<P: Ledger + Notes + Outbox + Queues + Clock + Entropy + crate::telemetry::Telemetry>
    StewardPorts for P
{
}
