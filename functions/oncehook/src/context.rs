//! What a command stands on, resolved once: which stack, which configuration, which time.
//!
//! The stack is named by the environment or read from the outputs of a deployed one; the
//! configuration is the one compiled in. A command that needs neither, such as running test
//! vectors, still gets a context: what is missing is an error only when somebody asks for it.

use crate::{
    args::{Global, KeysFrom},
    failure::Failure,
    keys, stack,
};
use aws::{Aws, Resource, Settings, Timeouts};
use config::{Config, Source};
use ledger::{Millis, SourceName};
use std::{collections::BTreeMap, path::Path};
use verifier::Key;
use workflow::ports::{Secret, SecretStore};

/// The variable that names the address providers call.
const URL: &str = "ONCEHOOK_URL";

const HOW_TO_NAME_A_STACK: &str = "for the local stack run `make up`, then `. .local/env`; \
                                   for a deployed one add --stack NAME";

/// What a command stands on.
pub(crate) struct Context {
    /// The environment, read.
    pub(crate) settings: Settings,
    /// The sources.
    pub(crate) config: Config,
    url: Option<String>,
}

impl Context {
    /// Reads the environment, and the outputs of the stack where one is named.
    pub(crate) async fn resolve(global: &Global) -> Result<Self, Failure> {
        let mut variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        if let Some(name) = &global.stack {
            // What a stack says of itself wins over what a shell still remembers of another.
            variables.extend(stack::variables(name).await?);
        }
        Self::from_variables(variables)
    }

    fn from_variables(variables: BTreeMap<String, String>) -> Result<Self, Failure> {
        let url = variables.get(URL).map(|url| url.trim().trim_end_matches('/').to_owned());
        let settings = Settings::from_variables(variables)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let config = compiled_in(&settings)?;
        Ok(Self { settings, config, url: url.filter(|url| !url.is_empty()) })
    }

    /// The ports on AWS, where everything that is needed is named.
    pub(crate) async fn connect(&self, needed: &[Resource]) -> Result<Aws, Failure> {
        self.settings.require(needed).map_err(|error| {
            Failure::usage(format!("no stack to talk to: {error}")).with_next(HOW_TO_NAME_A_STACK)
        })?;
        Ok(Aws::connect(self.settings.clone(), Timeouts::worker()).await)
    }

    /// The address providers call, without a trailing slash.
    pub(crate) fn url(&self) -> Result<&str, Failure> {
        self.url.as_deref().ok_or_else(|| {
            Failure::usage(format!("no stack to post to: {URL} is not set"))
                .with_next(HOW_TO_NAME_A_STACK)
        })
    }

    /// The same, where not knowing it is no error.
    pub(crate) fn known_url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// A configured source.
    pub(crate) fn source(&self, name: &SourceName) -> Result<&Source, Failure> {
        source(&self.config, name)
    }

    /// The signing secret: from a file where one is named, else from the stack.
    pub(crate) async fn secret(&self, from: &KeysFrom) -> Result<String, Failure> {
        match &from.secrets {
            Some(path) => read_file(path),
            None => {
                Ok(self.connect(&[Resource::SigningSecret]).await?.fetch(Secret::Signing).await?)
            }
        }
    }

    /// The live keys of a source.
    pub(crate) async fn keys(&self, from: &KeysFrom, source: &Source) -> Result<Vec<Key>, Failure> {
        keys::of(source, &self.config, &self.secret(from).await?).await
    }
}

/// A configured source, or the names there are.
pub(crate) fn source<'c>(config: &'c Config, name: &SourceName) -> Result<&'c Source, Failure> {
    config.source(name.as_str()).ok_or_else(|| {
        let names: Vec<&str> = config.sources().map(|source| source.name.as_str()).collect();
        Failure::usage(format!("no source `{name}` is configured"))
            .with_next(format!("configured are: {}; see infra/sources.toml", names.join(", ")))
    })
}

/// The sources to look through. One that is no longer configured may still have rows: name it.
pub(crate) fn sources(config: &Config, only: Option<&SourceName>) -> Vec<SourceName> {
    match only {
        Some(name) => vec![name.clone()],
        None => config.sources().map(|source| source.name.clone()).collect(),
    }
}

/// Reads a text file named on the command line.
pub(crate) fn read_file(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", path.display())))
}

/// The compiled-in configuration. Parameters come from the environment where it has them; where
/// it has not, any allowed value does, since none of them changes what is read or signed. What claims
/// events asks for the parameter that decides their mode (`commands::reconcile`).
fn compiled_in(settings: &Settings) -> Result<Config, Failure> {
    let parameter = |name: &str| {
        let filler = if name.contains("MODE") { "enforce" } else { "true" };
        settings.parameter(name).or_else(|| Some(filler.to_owned()))
    };
    Config::parse("infra/sources.toml", aws::SOURCES_TOML, &parameter).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::usage(lines.join("\n"))
    })
}

/// The system's clock, for commands without a stack.
pub(crate) fn now() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Millis(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn context(variables: &[(&str, &str)]) -> Context {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Context::from_variables(variables.iter().map(owned).collect()).unwrap()
    }

    #[tokio::test]
    async fn with_no_stack_in_sight_the_error_says_what_to_do() {
        let context = context(&[]);
        let failure = context.connect(&[Resource::LedgerTable]).await.unwrap_err();
        assert_eq!(failure.code(), 2);
        assert_eq!(failure.to_string(), "no stack to talk to: ONCEHOOK_LEDGER_TABLE is not set");
        let next = failure.next().unwrap();
        assert!(
            next.contains("make up") && next.contains(".local/env") && next.contains("--stack")
        );
        assert!(context.url().unwrap_err().to_string().contains("ONCEHOOK_URL"));
    }

    #[test]
    fn the_compiled_in_sources_are_known_and_an_unknown_one_is_answered_with_their_names() {
        let context = context(&[(URL, "http://127.0.0.1:4566/x/$default/")]);
        assert_eq!(context.url().unwrap(), "http://127.0.0.1:4566/x/$default");
        let failure = context.source(&SourceName::new("strype").unwrap()).unwrap_err();
        assert!(failure.next().unwrap().contains("stripe-live"));
    }
}
