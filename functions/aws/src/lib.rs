//! The ports on AWS: DynamoDB, SQS, Secrets Manager, certificates, the clock, randomness and metrics.
//!
//! One type, [`Aws`], is all the ports at once. What a verb may do is decided by the pure
//! functions of the `ledger` crate; here the same rule stands a second time, as the condition
//! expression of one write, in one file a verb (`dynamodb/`). The store decides; a refusal comes
//! back with the row that stood in the way, and the pure function of that verb reads it. So the
//! two can be compared row by row, and are, in the contract suite.
//!
//! Nothing of a request, a row or a secret enters an error text or a log line: errors name the
//! step, the service's error code and its message.
//!
//! Deliberately absent: rules, retry budgets and anything that looks at a body.

mod adapter;
mod certificates;
mod clients;
mod clock;
pub mod diagnostics;
mod dynamodb;
mod emf;
mod http;
mod inspect;
pub mod item;
mod moving;
mod queues;
mod secrets;
mod settings;
mod trouble;

pub use adapter::Aws;
pub use clients::{Limits, Timeouts};
pub use inspect::{Clocks, TableFacts};
pub use moving::Moved;
pub use settings::{BUILD_ID, Resource, Settings, SettingsError};

/// The configuration file as compiled in.
pub const SOURCES_TOML: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/sources.toml"));

/// The compiled-in configuration, with `${x}` read from `settings`.
///
/// The build checks the file with harmless parameters; what can still be wrong here is a
/// parameter's value.
pub fn config(settings: &Settings) -> Result<config::Config, SettingsError> {
    let parameter = |name: &str| settings.parameter(name);
    let config = config::Config::parse("infra/sources.toml", SOURCES_TOML, &parameter)
        .map_err(SettingsError::Sources)?;
    match &settings.local_certificates {
        None => Ok(config),
        Some(base) => config
            .trusting_local_certificates(base)
            .ok_or_else(|| SettingsError::LocalCertificates { found: base.clone() }),
    }
}
