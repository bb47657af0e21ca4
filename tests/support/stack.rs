//! A deployed stack, seen through the product's own adapters.
//!
//! Everything is read by the ports that production reads by: what a case asserts is what an
//! operator would see.

use crate::{EnvFile, Http, Probe, Signer, until};
use aws::{Aws, Resource, Settings, Timeouts};
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_sqs::types::QueueAttributeName;
use config::Config;
use ledger::{Entity, EntityKey, EventKey, Millis, Row, SHARDS, Status};
use std::time::Duration;
use workflow::{
    body,
    ports::{Ledger, Secret, SecretStore},
};

/// How long a case waits for a state that the product should reach within seconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// A deployed stack.
pub struct Stack {
    /// Its tables, queues and secrets.
    pub aws: Aws,
    /// Its API.
    pub http: Http,
    /// Its sources.
    pub config: Config,
    /// Signs for its sources.
    pub signer: Signer,
    /// The variables that led here.
    pub env: EnvFile,
}

/// Messages of a queue: visible, and in work or backing off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Waiting to be received.
    pub visible: u64,
    /// Received, not yet deleted or visible again.
    pub hidden: u64,
}

impl Depth {
    /// All of them. The steward hides dead letters for a moment while it looks at them.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.visible + self.hidden
    }
}

impl Stack {
    /// Connects to the stack that the variables name. It has to be a local one.
    pub async fn connect(env: EnvFile) -> Result<Self, String> {
        let settings = Settings::from_variables(
            env.iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .chain([("ONCEHOOK_PARAM_MODE".to_owned(), "enforce".to_owned())]),
        )
        .map_err(|error| error.to_string())?;
        let config = aws::config(&settings).map_err(|error| error.to_string())?;
        let aws = Aws::new(&sdk(&env).await?, settings, Timeouts::worker());
        let document = aws.fetch(Secret::Signing).await.map_err(|error| error.to_string())?;
        let signer = Signer::new(config.clone(), &document)?.at(env.get("ONCEHOOK_URL")?);
        Ok(Self { http: Http::new(env.get("ONCEHOOK_URL")?), aws, config, signer, env })
    }

    /// A row, by its key.
    pub async fn row(&self, key: &str) -> Option<Row> {
        self.find_row(key).await.unwrap()
    }

    /// A row, by its key; an error is the stack's.
    pub async fn find_row(&self, key: &str) -> Result<Option<Row>, String> {
        let key = EventKey::parse(key).map_err(|error| error.to_string())?;
        self.aws.row(&key).await.map_err(|error| error.to_string())
    }

    /// An entity, by its key.
    pub async fn entity(&self, key: &str) -> Option<Entity> {
        self.find_entity(key).await.unwrap()
    }

    /// An entity, by its key; an error is the stack's.
    pub async fn find_entity(&self, key: &str) -> Result<Option<Entity>, String> {
        let key = EntityKey::parse(key).map_err(|error| error.to_string())?;
        self.aws.entity(&key).await.map_err(|error| error.to_string())
    }

    /// A row's body, gathered and checked as the consumer does it.
    pub async fn body(&self, row: &Row) -> Vec<u8> {
        body::read(&self.aws, row).await.unwrap()
    }

    /// Waits until the row stands so.
    pub async fn row_in(&self, key: &str, status: Status) -> Row {
        self.row_when(&format!("{key} is {status}"), key, |row| row.life.status == status).await
    }

    /// Waits until the row is as wanted; `what` says how.
    pub async fn row_when(&self, what: &str, key: &str, wanted: impl Fn(&Row) -> bool) -> Row {
        until(what, PATIENCE, async || match self.row(key).await {
            Some(row) if wanted(&row) => Ok(row),
            Some(row) => Err(brief(&row)),
            None => Err("no such row".to_owned()),
        })
        .await
    }

    /// Every row received in `from..=until` through any source, newest last.
    pub async fn rows(&self, from: Millis, until: Millis) -> Result<Vec<Row>, String> {
        let mut dates = vec![from.date()];
        if until.date() != from.date() {
            dates.push(until.date());
        }
        let partitions = self.config.sources().flat_map(|source| {
            dates.iter().flat_map(move |date| {
                (0..SHARDS).map(move |n| format!("{}#{date}#{n}", source.name))
            })
        });
        let reads = partitions.map(|day| async move {
            self.aws.day(&day, from, until, false, 1_000).await.map_err(|error| error.to_string())
        });
        let entries = futures::future::try_join_all(reads).await?.concat();
        let reads = entries.iter().map(|entry| async {
            self.aws.row(&entry.key).await.map_err(|error| error.to_string())
        });
        let mut rows: Vec<Row> =
            futures::future::try_join_all(reads).await?.into_iter().flatten().collect();
        rows.sort_by(|a, b| {
            (a.evidence.received_at, &a.evidence.key)
                .cmp(&(b.evidence.received_at, &b.evidence.key))
        });
        Ok(rows)
    }

    /// Messages of the queue.
    pub async fn queue(&self) -> Depth {
        self.depth(Resource::Queue).await.unwrap()
    }

    /// Messages of the dead-letter queue.
    pub async fn dead_letters(&self) -> Depth {
        self.depth(Resource::DeadLetterQueue).await.unwrap()
    }

    /// Messages of either queue.
    pub async fn depth(&self, queue: Resource) -> Result<Depth, String> {
        let url = self.aws.settings().get(queue).map_err(|error| error.to_string())?;
        let [visible, hidden] = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let call = self.aws.sqs().get_queue_attributes().queue_url(url);
        let answer =
            call.attribute_names(visible.clone()).attribute_names(hidden.clone()).send().await;
        let found =
            answer.map_err(|error| format!("the queue's depth is not known: {error}"))?.attributes;
        let found = found.unwrap_or_default();
        let number = |name| found.get(&name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Depth { visible: number(visible), hidden: number(hidden) })
    }

    /// Waits until the queue holds nothing, visible or hidden.
    pub async fn queue_is_empty(&self) {
        until("the queue is empty", PATIENCE, async || -> Probe<()> {
            match self.queue().await {
                Depth { visible: 0, hidden: 0 } => Ok(()),
                depth => Err(format!("{depth:?}")),
            }
        })
        .await;
    }
}

/// Where a row stands, in a few words.
#[must_use]
pub fn brief(row: &Row) -> String {
    let life = &row.life;
    let outcome = life.outcome.map_or_else(String::new, |outcome| format!(" {outcome}"));
    let error =
        life.failure.as_ref().map_or_else(String::new, |failure| format!(": {}", failure.error));
    format!("{}{outcome}, attempts {}{error}", life.status, life.attempts)
}

/// Clients for the local AWS that the variables name, and for nothing else.
pub async fn sdk(env: &EnvFile) -> Result<aws_config::SdkConfig, String> {
    let credentials = Credentials::new(
        env.get("AWS_ACCESS_KEY_ID")?,
        env.get("AWS_SECRET_ACCESS_KEY")?,
        None,
        None,
        "env",
    );
    let config = aws_config::defaults(BehaviorVersion::latest())
        .endpoint_url(env.get("AWS_ENDPOINT_URL")?)
        .region(Region::new(env.get("AWS_REGION")?.to_owned()))
        .credentials_provider(credentials);
    Ok(config.load().await)
}
