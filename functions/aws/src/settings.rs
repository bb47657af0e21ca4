//! Settings: what the environment says, read once and checked before anything uses it.
//!
//! Every variable is optional here, since each function is given only what its role may touch.
//! What a caller needs it asks for by name ([`Settings::require`]), and a missing one is an error
//! that names the variable.

use config::ConfigError;
use ledger::{Policy, PolicyError};
use std::{collections::BTreeMap, fmt};
use thiserror::Error;

/// The build: the first 12 hexadecimal digits of the SHA-256 of everything that shapes behaviour.
pub const BUILD_ID: &str = env!("ONCEHOOK_BUILD_ID");

/// Where `${x}` of the configuration file is read from: this prefix and the name in upper case.
const PARAMETER_PREFIX: &str = "ONCEHOOK_PARAM_";

/// The stage of a stack on a developer's machine.
const LOCAL: &str = "local";

/// Where such a stack asks providers unless told otherwise: nothing of it reaches beyond its machine.
const LOCAL_PROVIDER: &str = "http://127.0.0.1:8420";

/// A thing on AWS that the environment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// The table of events.
    LedgerTable,
    /// The table of entities.
    StateTable,
    /// The queue.
    Queue,
    /// The dead-letter queue.
    DeadLetterQueue,
    /// The secret with the signing keys.
    SigningSecret,
    /// The secret with the keys for calls to the outside.
    OutboundSecret,
    /// The secret with the replay tokens.
    ReplaySecret,
}

impl Resource {
    /// Every resource.
    pub const ALL: [Self; 7] = [
        Self::LedgerTable,
        Self::StateTable,
        Self::Queue,
        Self::DeadLetterQueue,
        Self::SigningSecret,
        Self::OutboundSecret,
        Self::ReplaySecret,
    ];

    /// The environment variable that names it.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::LedgerTable => "ONCEHOOK_LEDGER_TABLE",
            Self::StateTable => "ONCEHOOK_STATE_TABLE",
            Self::Queue => "ONCEHOOK_QUEUE_URL",
            Self::DeadLetterQueue => "ONCEHOOK_DLQ_URL",
            Self::SigningSecret => "ONCEHOOK_SECRET_ID",
            Self::OutboundSecret => "ONCEHOOK_OUTBOUND_SECRET_ID",
            Self::ReplaySecret => "ONCEHOOK_REPLAY_SECRET_ID",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.variable())
    }
}

/// What is wrong with the environment.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A needed variable is not set.
    #[error("{0} is not set")]
    Missing(Resource),
    /// `ONCEHOOK_RETENTION_DAYS` is no number of days.
    #[error("ONCEHOOK_RETENTION_DAYS is {found:?}, expected a whole number of days from 1 on")]
    RetentionDays {
        /// What was found.
        found: String,
    },
    /// `ONCEHOOK_CONSUMERS_MAX` is no number of processes.
    #[error("ONCEHOOK_CONSUMERS_MAX is {found:?}, expected a whole number from 1 on")]
    ConsumersMax {
        /// What was found.
        found: String,
    },
    /// The limits contradict each other, or `ONCEHOOK_POLICY_OVERRIDES` is no JSON of them.
    #[error("ONCEHOOK_POLICY_OVERRIDES: {0}")]
    Policy(#[from] PolicyError),
    /// `ONCEHOOK_LOCAL_CERTIFICATES` is set on a stack that is not local, or points elsewhere.
    #[error(
        "ONCEHOOK_LOCAL_CERTIFICATES is {found:?}, expected nothing, or http://127.0.0.1:<port>/ on a \
         stack whose stage is local"
    )]
    LocalCertificates {
        /// What was found.
        found: String,
    },
    /// The compiled-in configuration does not stand with the parameters of this stack.
    #[error("{}", lines(.0))]
    Sources(Vec<ConfigError>),
}

fn lines(errors: &[ConfigError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// What the environment says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What this stack is: `live`, `local`, ...
    pub stage: String,
    /// The build id that leases write into rows.
    pub release: String,
    /// The address providers call, without a trailing slash, where it is known.
    pub public_url: Option<String>,
    /// The Lambda function this is, `local` outside of one: a dimension of its metrics.
    pub function: String,
    /// Where providers' certificates may lie beside the providers' own addresses. Only on a stack
    /// whose stage is `local`, only on this machine: whoever answers there can sign.
    pub local_certificates: Option<String>,
    /// Whether the receiver's replay route is open.
    pub replay_route: bool,
    /// How many processes of the consumer may run at the same time: they share every rate at which
    /// providers are asked.
    pub consumers_max: u32,
    /// Where a stack whose stage is `local` asks instead of at providers' own hosts. Nothing on any
    /// other stack.
    pub local_provider: Option<String>,
    /// The limits.
    pub policy: Policy,
    resources: BTreeMap<Resource, String>,
    parameters: BTreeMap<String, String>,
}

impl Settings {
    /// Reads this process's environment.
    pub fn from_env() -> Result<Self, SettingsError> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::from_variables(variables)
    }

    /// Reads the given variables; an empty value counts as none.
    pub fn from_variables(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsError> {
        let mut variables: BTreeMap<String, String> = variables
            .into_iter()
            .map(|(name, value)| (name, value.trim().to_owned()))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let mut take = |name: &str| variables.remove(name);
        let resources = Resource::ALL
            .into_iter()
            .filter_map(|resource| Some((resource, take(resource.variable())?)))
            .collect();
        let overrides = take("ONCEHOOK_POLICY_OVERRIDES").unwrap_or_default();
        let retention_days = take("ONCEHOOK_RETENTION_DAYS");
        let public_url = take("ONCEHOOK_PUBLIC_URL");
        let stage = take("ONCEHOOK_STAGE").unwrap_or_else(|| "live".to_owned());
        let local_certificates = take("ONCEHOOK_LOCAL_CERTIFICATES");
        if let Some(found) = local_certificates.clone().filter(|_| stage != LOCAL) {
            return Err(SettingsError::LocalCertificates { found });
        }
        let local_provider = take("ONCEHOOK_LOCAL_PROVIDER");
        let local_provider = local_provider.unwrap_or_else(|| LOCAL_PROVIDER.to_owned());
        Ok(Self {
            policy: policy(&overrides, retention_days)?,
            consumers_max: consumers_max(take("ONCEHOOK_CONSUMERS_MAX"))?,
            local_provider: (stage == LOCAL).then_some(local_provider),
            local_certificates,
            stage,
            release: take("ONCEHOOK_RELEASE").unwrap_or_else(|| BUILD_ID.to_owned()),
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            // Anything but the one word that opens it leaves it closed.
            replay_route: take("ONCEHOOK_REPLAY_ROUTE").as_deref() == Some("on"),
            function: take("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_else(|| "local".to_owned()),
            resources,
            parameters: variables
                .into_iter()
                .filter_map(|(name, value)| {
                    Some((name.strip_prefix(PARAMETER_PREFIX)?.to_owned(), value))
                })
                .collect(),
        })
    }

    /// Checks that everything a role needs is named.
    pub fn require(&self, needed: &[Resource]) -> Result<(), SettingsError> {
        needed.iter().try_for_each(|resource| self.get(*resource).map(|_| ()))
    }

    /// The name, URL or ARN of a resource.
    pub fn get(&self, resource: Resource) -> Result<&str, SettingsError> {
        let named = self.resources.get(&resource).map(String::as_str);
        named.ok_or(SettingsError::Missing(resource))
    }

    /// The value of `ONCEHOOK_PARAM_<name>`, `name` in upper case.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.parameters.get(name).cloned()
    }

    /// Another address for the list of a source's past events, `ONCEHOOK_PARAM_API_<SOURCE>`: only on
    /// a stack whose stage is `local`, so that no variable leads a key astray.
    #[must_use]
    pub fn list_address(&self, source: &str) -> Option<String> {
        let name = format!("API_{}", source.to_ascii_uppercase().replace('-', "_"));
        self.is_local().then(|| self.parameter(&name)).flatten()
    }

    /// Whether keys marked `local` may verify.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.stage == LOCAL
    }
}

/// One where nothing is said: a process that knows of no other.
fn consumers_max(set: Option<String>) -> Result<u32, SettingsError> {
    match set {
        None => Ok(1),
        Some(found) => match found.parse() {
            Ok(number) if number >= 1 => Ok(number),
            Ok(_) | Err(_) => Err(SettingsError::ConsumersMax { found }),
        },
    }
}

fn policy(overrides: &str, retention_days: Option<String>) -> Result<Policy, SettingsError> {
    let mut policy = Policy::with_overrides(overrides)?;
    if let Some(found) = retention_days {
        policy.retention_days = match found.parse() {
            Ok(days) if days >= 1 => days,
            Ok(_) | Err(_) => return Err(SettingsError::RetentionDays { found }),
        };
    }
    policy.check()?;
    Ok(policy)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Settings::from_variables(variables.iter().map(owned))
    }

    #[test]
    fn an_empty_environment_is_the_production_policy_of_this_build() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.policy, Policy::default());
        assert_eq!(settings.release, BUILD_ID);
        assert_eq!((settings.stage.as_str(), settings.is_local()), ("live", false));
        assert_eq!(settings.public_url, None);
    }

    #[test]
    fn a_missing_variable_that_is_needed_names_itself() {
        let settings =
            read(&[("ONCEHOOK_LEDGER_TABLE", "l"), ("ONCEHOOK_QUEUE_URL", "  ")]).unwrap();
        assert_eq!(settings.get(Resource::LedgerTable).unwrap(), "l");
        let error = settings.require(&[Resource::LedgerTable, Resource::Queue]).unwrap_err();
        assert_eq!(error.to_string(), "ONCEHOOK_QUEUE_URL is not set");
    }

    #[test]
    fn overrides_come_first_and_the_retention_of_the_stack_after_them() {
        let settings = read(&[
            ("ONCEHOOK_POLICY_OVERRIDES", r#"{"attempts_max":2,"retention_days":3}"#),
            ("ONCEHOOK_RETENTION_DAYS", "400"),
            ("ONCEHOOK_RELEASE", "r7"),
            ("ONCEHOOK_PUBLIC_URL", "https://hooks.example.com/"),
            ("ONCEHOOK_PARAM_MODE", "enforce"),
        ])
        .unwrap();
        assert_eq!(settings.policy.attempts_max, 2);
        assert_eq!(settings.policy.retention_days, 400);
        assert_eq!(settings.release, "r7");
        assert_eq!(settings.public_url.as_deref(), Some("https://hooks.example.com"));
        assert_eq!(settings.parameter("MODE").as_deref(), Some("enforce"));
        assert_eq!(settings.parameter("mode"), None);
    }

    #[test]
    fn a_list_of_events_is_elsewhere_on_a_local_stack_alone() {
        let variable = ("ONCEHOOK_PARAM_API_STRIPE_LIVE", "http://127.0.0.1:1/v1/events");
        let local = read(&[variable, ("ONCEHOOK_STAGE", "local")]).unwrap();
        assert_eq!(local.list_address("stripe-live").as_deref(), Some(variable.1));
        assert_eq!(local.list_address("stripe-test"), None);
        assert_eq!(read(&[variable]).unwrap().list_address("stripe-live"), None);
    }

    #[test]
    fn the_replay_route_is_open_only_where_it_says_so() {
        let open = |value: &str| read(&[("ONCEHOOK_REPLAY_ROUTE", value)]).unwrap().replay_route;
        assert!(open("on"));
        for closed in ["", "off", "true", "ON"] {
            assert!(!open(closed), "{closed:?}");
        }
    }

    #[test]
    fn another_host_is_asked_in_the_place_of_providers_on_a_local_stack_only() {
        let provider = ("ONCEHOOK_LOCAL_PROVIDER", "http://127.0.0.1:9000");
        let asked = |variables: &[_]| read(variables).unwrap().local_provider;
        let (local, live) = (("ONCEHOOK_STAGE", "local"), ("ONCEHOOK_STAGE", "live"));
        assert_eq!(asked(&[local, provider]).as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(asked(&[local]).as_deref(), Some(LOCAL_PROVIDER), "never a provider's own");
        assert_eq!(asked(&[live, provider]), None);
    }

    #[test]
    fn processes_that_share_a_rate_are_counted_or_the_start_is_stopped() {
        assert_eq!(read(&[]).unwrap().consumers_max, 1);
        assert_eq!(read(&[("ONCEHOOK_CONSUMERS_MAX", "20")]).unwrap().consumers_max, 20);
        for bad in ["0", "-1", "many"] {
            let error = read(&[("ONCEHOOK_CONSUMERS_MAX", bad)]).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn contradictions_and_unreadable_numbers_stop_the_start_and_say_what_was_found() {
        for bad in ["0", "-1", "ninety", "1.5"] {
            let error = read(&[("ONCEHOOK_RETENTION_DAYS", bad)]).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
        let error = read(&[("ONCEHOOK_POLICY_OVERRIDES", r#"{"attempts_max":0}"#)]).unwrap_err();
        assert!(error.to_string().contains("attempts_max"), "{error}");
    }

    #[test]
    fn certificates_come_from_this_machine_only_on_a_local_stack() {
        let config = |stage: &str, base: &str| {
            let settings = read(&[
                ("ONCEHOOK_STAGE", stage),
                ("ONCEHOOK_LOCAL_CERTIFICATES", base),
                ("ONCEHOOK_PARAM_MODE", "enforce"),
            ]);
            settings.and_then(|settings| crate::config(&settings).map(|_| ()))
        };
        assert!(config("local", "http://127.0.0.1:4711/").is_ok());
        for (stage, base) in [
            ("live", "http://127.0.0.1:4711/"),
            ("test", "http://127.0.0.1:4711/"),
            ("local", "http://127.0.0.1:4711"),
            ("local", "http://127.0.0.1/"),
            ("local", "http://127.0.0.1:4711.example/"),
            ("local", "http://127.0.0.1:4711@example/"),
            ("local", "http://localhost:4711/"),
            ("local", "https://example/"),
        ] {
            let error = config(stage, base).unwrap_err().to_string();
            assert!(
                error.contains("ONCEHOOK_LOCAL_CERTIFICATES") && error.contains(base),
                "{error}"
            );
        }
    }
}
