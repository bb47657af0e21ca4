//! For tests: the shipped configuration, the shipped samples, and a whole stack in memory.
//!
//! The stack is the real receiver and consumer on the twin, so that a command meets rows as they
//! really come to be. `send` reaches it through its own wire.

use crate::{
    args::{Cli, Command},
    commands::send,
    delivery::Draft,
    failure::Failure,
    http::{Answered, Outgoing, Wire},
    keys,
    operator::Operator,
    sample::Sample,
};
use clap::Parser as _;
use config::Config;
use ledger::{Millis, Policy, SourceName};
use std::{path::PathBuf, sync::Arc};
use verifier::Headers;
use workflow::{CertificateCache, Consumer, Keyring, Receiver, receive::Delivery, twin::Twin};

/// The published test secrets of the local stack.
pub(crate) const SECRETS: &str = include_str!("../../../infra/local-secrets.json");
/// A minute after the samples' first event.
pub(crate) const NOW: Millis = Millis(1_796_040_060_000);
/// Where the stack in memory answers.
pub(crate) const URL: &str = "http://127.0.0.1:4566/_aws/execute-api/oncehook/$default";

/// The shipped configuration.
pub(crate) fn config() -> Config {
    let enforce = |_: &str| Some("enforce".to_owned());
    match Config::parse("infra/sources.toml", aws::SOURCES_TOML, &enforce) {
        Ok(config) => config,
        Err(errors) => panic!("{errors:?}"),
    }
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events"))
}

/// A shipped sample.
pub(crate) fn sample(name: &str) -> Sample {
    match Sample::read(&folder().join(format!("{name}.json"))) {
        Ok(sample) => sample,
        Err(failure) => panic!("{failure}"),
    }
}

/// The names of the shipped samples.
pub(crate) fn sample_names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).into_iter().flatten().flatten();
    let paths = files.map(|file| file.path());
    let samples = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let names = samples.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// What a command line says.
pub(crate) fn command(line: &str) -> Command {
    match Cli::try_parse_from(line.split_whitespace()) {
        Ok(cli) => cli.command,
        Err(error) => panic!("{error}"),
    }
}

/// A stack in memory.
pub(crate) struct Stack {
    /// Its tables, queue and clock.
    pub(crate) twin: Arc<Twin>,
    /// Its limits.
    pub(crate) policy: Policy,
    receiver: Receiver<Twin>,
    consumer: Consumer<Twin>,
}

impl Stack {
    /// An empty stack with the published secrets.
    pub(crate) fn new() -> Self {
        let policy = Policy::default();
        let twin = Arc::new(Twin::new(policy.clone(), NOW));
        twin.set_secret(SECRETS);
        Self {
            receiver: Receiver {
                ports: Arc::clone(&twin),
                config: config(),
                policy: policy.clone(),
                keyring: Keyring::new(true),
                certificates: CertificateCache::default(),
                replay: None,
                public_url: None,
            },
            consumer: Consumer {
                ports: Arc::clone(&twin),
                config: config(),
                policy: policy.clone(),
                release: "build-1".to_owned(),
                projection: Box::new(workflow::projection::Declarative),
                fetcher: workflow::Fetcher::default(),
            },
            twin,
            policy,
        }
    }

    /// What `oncehook send <line>` does.
    pub(crate) async fn send(&self, line: &str) -> Result<send::Sent, Failure> {
        let line = format!("oncehook send {line}");
        let Command::Send(args) = command(&line) else { panic!("{line}") };
        let sample = sample(&args.file.to_string_lossy());
        let config = config();
        let named = args.source.as_ref().map(SourceName::as_str);
        let name = named.or(sample.source.as_deref());
        let Some(source) = name.and_then(|name| config.source(name)) else { panic!("{line}") };
        let keys = keys::of(source, &config, SECRETS).await?;
        let now = || workflow::ports::Clock::now(&*self.twin);
        let draft = Draft { url: URL, source, keys: &keys, forge: args.forge };
        send::deliver(self, &draft, &sample, &args, &Operator::typing(&line), now).await
    }

    /// Works everything that is visible in the queue, once.
    pub(crate) async fn consume(&self) {
        let deadline = workflow::ports::Clock::now(&*self.twin).plus(30_000);
        let batch = self.twin.receive(10);
        let failed = self.consumer.consume(batch.clone(), deadline).await;
        self.twin.finish(&batch, &failed);
    }
}

impl Wire for Stack {
    async fn post(&self, outgoing: Outgoing) -> Result<Answered, String> {
        let headers: Headers =
            outgoing.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let delivery = Delivery {
            method: outgoing.method,
            path: outgoing.path,
            query: String::new(),
            headers,
            body: outgoing.body,
            deadline: workflow::ports::Clock::now(&*self.twin).plus(8_000),
        };
        let answer = self.receiver.receive(delivery).await;
        let body = String::from_utf8_lossy(&answer.body).trim().to_owned();
        Ok(Answered { status: answer.status, body, ms: 1 })
    }
}
