//! The stores under test, and what a case needs beside the ports: to put things in place, and to
//! see them as they lie there.

use crate::emulator::{Emulator, Program};
use aws::{
    Aws, Limits, Settings, Timeouts,
    item::{Item, decode_row, encode_entity, encode_row},
};
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::{
    config::Credentials,
    types::{AttributeValue, KeysAndAttributes, PutRequest, WriteRequest},
};
use ledger::{Entity, EntityKey, EventKey, Policy, Row};
use std::{
    collections::HashMap,
    fmt::Debug,
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use support::now;
use tokio::runtime::Runtime;
use workflow::{
    ports::{Clock, Ledger, Lookup, Notes},
    twin::Twin,
};

/// A ledger that things can be put into.
pub(crate) trait Store {
    /// What lies under a key.
    type Raw: PartialEq + Debug;
    /// The ports.
    type Ports: Ledger + Lookup + Notes;
    fn name(&self) -> &'static str;
    fn ports(&self) -> &Self::Ports;
    /// How many calls it bears at the same time.
    fn at_once(&self) -> usize {
        8
    }
    async fn plant(&self, row: &Row);
    /// Puts many rows in place.
    async fn plant_all(&self, rows: &[&Row]);
    /// Many rows as they lie there, by their keys; those that are there.
    async fn raw_all(&self, keys: &[&EventKey]) -> HashMap<String, Self::Raw>;
    /// Reads what lies there, as production does.
    fn row(raw: &Self::Raw) -> Row;
    async fn plant_entity(&self, key: &EntityKey, entity: &Entity);
    /// The row as it lies there, whoever may read it.
    async fn raw(&self, key: &EventKey) -> Option<Self::Raw>;
    /// The entity as it lies there.
    async fn raw_entity(&self, key: &EntityKey) -> Option<Self::Raw>;
}

/// The twin.
pub(crate) struct InMemory(pub(crate) Twin);

/// What the twin keeps.
#[derive(Debug, PartialEq)]
pub(crate) enum Kept {
    Row(Box<Row>),
    Entity(Entity),
}

impl Store for InMemory {
    type Raw = Kept;
    type Ports = Twin;

    fn name(&self) -> &'static str {
        "twin"
    }

    fn ports(&self) -> &Twin {
        &self.0
    }

    async fn plant(&self, row: &Row) {
        self.0.plant(row.clone());
    }

    async fn plant_all(&self, rows: &[&Row]) {
        for row in rows {
            self.0.plant((*row).clone());
        }
    }

    async fn raw_all(&self, keys: &[&EventKey]) -> HashMap<String, Kept> {
        let mut all = HashMap::new();
        for key in keys {
            all.extend(self.raw(key).await.map(|raw| (key.as_str().to_owned(), raw)));
        }
        all
    }

    fn row(raw: &Kept) -> Row {
        match raw {
            Kept::Row(row) => (**row).clone(),
            Kept::Entity(_) => panic!("an entity lies among the rows"),
        }
    }

    async fn plant_entity(&self, key: &EntityKey, entity: &Entity) {
        self.0.plant_state(key.as_str(), entity.clone());
    }

    async fn raw(&self, key: &EventKey) -> Option<Kept> {
        now(self.0.row(key)).unwrap().map(|row| Kept::Row(Box::new(row)))
    }

    async fn raw_entity(&self, key: &EntityKey) -> Option<Kept> {
        self.0.state(key.as_str()).map(Kept::Entity)
    }
}

/// The adapter on an emulator.
pub(crate) struct OnDynamoDb {
    aws: Aws,
    program: Program,
    _emulator: Emulator,
}

const LEDGER: &str = "LedgerTable";
const STATE: &str = "StateTable";
const PATIENCE: Duration = Duration::from_mins(1);

impl OnDynamoDb {
    async fn start(program: Program) -> Result<Self, String> {
        let emulator = Emulator::start(program)?;
        let names = [("ONCEHOOK_LEDGER_TABLE", LEDGER), ("ONCEHOOK_STATE_TABLE", STATE)];
        let variables = names.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = Settings::from_variables(variables).map_err(|error| error.to_string())?;
        let sdk = aws_config::defaults(BehaviorVersion::latest())
            .endpoint_url(emulator.url())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .load()
            .await;
        // A write that is tried again would be taken for a lost answer: an emulator may be slow.
        let patient = Limits { attempt: PATIENCE, operation: PATIENCE };
        let timeouts = Timeouts { dynamodb: patient, chunk: patient, ..Timeouts::worker() };
        Ok(Self { aws: Aws::new(&sdk, settings, timeouts), program, _emulator: emulator })
    }

    async fn item(&self, table: &str, key: &str) -> Option<Item> {
        let get = self.aws.dynamodb().get_item().table_name(table).consistent_read(true);
        get.key("pk", AttributeValue::S(key.to_owned())).send().await.unwrap().item
    }

    async fn put(&self, table: &str, item: Item) {
        self.aws.dynamodb().put_item().table_name(table).set_item(Some(item)).send().await.unwrap();
    }
}

impl Store for OnDynamoDb {
    type Raw = Item;
    type Ports = Aws;

    fn name(&self) -> &'static str {
        match self.program {
            Program::Ministack => "ministack",
            Program::Moto => "moto",
        }
    }

    fn ports(&self) -> &Aws {
        &self.aws
    }

    /// Moto undoes a refused transaction by putting its whole tables back as they were, and with
    /// them what others wrote meanwhile.
    fn at_once(&self) -> usize {
        match self.program {
            Program::Ministack => 8,
            Program::Moto => 1,
        }
    }

    async fn plant(&self, row: &Row) {
        self.put(LEDGER, encode_row(row)).await;
    }

    async fn plant_all(&self, rows: &[&Row]) {
        for some in rows.chunks(25) {
            let put = |row: &&Row| {
                let put = PutRequest::builder().set_item(Some(encode_row(row))).build().unwrap();
                WriteRequest::builder().put_request(put).build()
            };
            let write = self.aws.dynamodb().batch_write_item();
            let answer =
                write.request_items(LEDGER, some.iter().map(put).collect()).send().await.unwrap();
            assert!(
                answer.unprocessed_items().is_none_or(HashMap::is_empty),
                "some rows were not put"
            );
        }
    }

    async fn raw_all(&self, keys: &[&EventKey]) -> HashMap<String, Item> {
        let mut all = HashMap::new();
        for some in keys.chunks(100) {
            let key = |key: &&EventKey| {
                Item::from([("pk".to_owned(), AttributeValue::S(key.as_str().to_owned()))])
            };
            let wanted =
                KeysAndAttributes::builder().set_keys(Some(some.iter().map(key).collect()));
            let wanted = wanted.consistent_read(true).build().unwrap();
            let answer = self
                .aws
                .dynamodb()
                .batch_get_item()
                .request_items(LEDGER, wanted)
                .send()
                .await
                .unwrap();
            assert!(
                answer.unprocessed_keys().is_none_or(HashMap::is_empty),
                "some rows were not read"
            );
            for item in
                answer.responses.and_then(|mut tables| tables.remove(LEDGER)).unwrap_or_default()
            {
                all.insert(item["pk"].as_s().unwrap().clone(), item);
            }
        }
        all
    }

    fn row(raw: &Item) -> Row {
        decode_row(raw).unwrap()
    }

    async fn plant_entity(&self, key: &EntityKey, entity: &Entity) {
        self.put(STATE, encode_entity(key, entity)).await;
    }

    async fn raw(&self, key: &EventKey) -> Option<Item> {
        self.item(LEDGER, key.as_str()).await
    }

    async fn raw_entity(&self, key: &EntityKey) -> Option<Item> {
        self.item(STATE, key.as_str()).await
    }
}

/// Every store, and what was counted on them.
pub(crate) struct Stores {
    pub(crate) twin: InMemory,
    pub(crate) emulators: Vec<OnDynamoDb>,
    /// The limits, the same in every store.
    pub(crate) policy: Policy,
    runtime: Runtime,
    pairs: AtomicU64,
    next: AtomicU64,
}

impl Stores {
    pub(crate) fn start() -> Result<Self, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let second = std::env::var_os("ONCEHOOK_MOTO").is_some_and(|value| value == "1");
        let programs = [Some(Program::Ministack), second.then_some(Program::Moto)];
        let emulators = programs
            .into_iter()
            .flatten()
            .map(|program| runtime.block_on(OnDynamoDb::start(program)));
        let policy = Policy::default();
        Ok(Self {
            twin: InMemory(Twin::new(policy.clone(), crate::lives::NOW)),
            emulators: emulators.collect::<Result<_, _>>()?,
            policy,
            runtime,
            pairs: AtomicU64::new(0),
            next: AtomicU64::new(0),
        })
    }

    pub(crate) fn end(self) -> Result<(), String> {
        let pairs = self.pairs.load(Ordering::Relaxed);
        let names: Vec<&str> = self.emulators.iter().map(Store::name).collect();
        println!(
            "contract: {pairs} pairs of a row and a verb, each on the twin and on {}",
            names.join(" and ")
        );
        if pairs > 20_000 {
            return Err(format!("{pairs} pairs are more than a test run should take"));
        }
        Ok(())
    }

    pub(crate) fn block_on<T>(&self, case: impl Future<Output = T>) -> T {
        self.runtime.block_on(case)
    }

    /// Counts pairs that were checked.
    pub(crate) fn count(&self, pairs: usize) {
        self.pairs.fetch_add(u64::try_from(pairs).unwrap(), Ordering::Relaxed);
    }

    /// A number that no other pair has.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// The twin's clock stands where the lives expect it.
pub(crate) fn clock_stands(stores: &Stores) {
    assert_eq!(stores.twin.0.now(), crate::lives::NOW);
}
