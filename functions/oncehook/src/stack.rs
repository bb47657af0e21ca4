//! A deployed stack, asked where everything is: its outputs and parameters become the variables
//! that `make up` writes for the local one.

use crate::failure::{Failure, advice, chain};
use aws_sdk_cloudformation::{
    Client,
    config::timeout::TimeoutConfig,
    error::{ProvideErrorMetadata, SdkError},
    types::Stack,
};
use std::time::Duration;

/// Outputs that a stack of ours must have, and the variables they become.
const OUTPUTS: &[(&str, &str)] = &[
    ("Url", "ONCEHOOK_URL"),
    ("LedgerTable", "ONCEHOOK_LEDGER_TABLE"),
    ("StateTable", "ONCEHOOK_STATE_TABLE"),
    ("QueueUrl", "ONCEHOOK_QUEUE_URL"),
    ("DlqUrl", "ONCEHOOK_DLQ_URL"),
    ("SecretId", "ONCEHOOK_SECRET_ID"),
    ("OutboundSecretId", "ONCEHOOK_OUTBOUND_SECRET_ID"),
    ("ReplaySecretId", "ONCEHOOK_REPLAY_SECRET_ID"),
];

/// Parameters that change what the command line computes, where the stack has them.
const PARAMETERS: &[(&str, &str)] = &[
    ("Stage", "ONCEHOOK_STAGE"),
    ("Mode", "ONCEHOOK_PARAM_MODE"),
    ("RetentionDays", "ONCEHOOK_RETENTION_DAYS"),
    ("PolicyOverrides", "ONCEHOOK_POLICY_OVERRIDES"),
];

/// Outputs that a shell wants besides, where the stack has them: a reconciler is optional.
const FUNCTIONS: &[(&str, &str)] = &[
    ("ReceiverFunction", "ONCEHOOK_RECEIVER_FUNCTION"),
    ("ConsumerFunction", "ONCEHOOK_CONSUMER_FUNCTION"),
    ("StewardFunction", "ONCEHOOK_STEWARD_FUNCTION"),
    ("ReconcilerFunction", "ONCEHOOK_RECONCILER_FUNCTION"),
];

/// What the stack `name` says of itself.
pub(crate) async fn variables(name: &str) -> Result<Vec<(String, String)>, Failure> {
    let sdk = aws_config::load_from_env().await;
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(3))
        .operation_attempt_timeout(Duration::from_secs(10))
        .operation_timeout(Duration::from_secs(25))
        .build();
    let config = aws_sdk_cloudformation::config::Builder::from(&sdk).timeout_config(timeouts);
    let answer = Client::from_conf(config.build()).describe_stacks().stack_name(name).send().await;
    let answer = answer.map_err(|error| unreachable(name, &error))?;
    let stack = answer.stacks().first().ok_or_else(|| missing(name))?;
    read(name, &Described::from(stack))
}

/// What is read of a stack.
#[derive(Debug, Default)]
struct Described<'s> {
    outputs: Vec<(&'s str, &'s str)>,
    parameters: Vec<(&'s str, &'s str)>,
}

impl<'s> From<&'s Stack> for Described<'s> {
    fn from(stack: &'s Stack) -> Self {
        let outputs = stack.outputs().iter();
        let parameters = stack.parameters().iter();
        Self {
            outputs: outputs
                .filter_map(|one| Some((one.output_key()?, one.output_value()?)))
                .collect(),
            parameters: parameters
                .filter_map(|one| Some((one.parameter_key()?, one.parameter_value()?)))
                .collect(),
        }
    }
}

fn read(name: &str, stack: &Described<'_>) -> Result<Vec<(String, String)>, Failure> {
    let find = |list: &[(&str, &str)], key: &str| {
        list.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned())
    };
    let mut variables = vec![("ONCEHOOK_STACK".to_owned(), name.to_owned())];
    for (output, variable) in OUTPUTS {
        let value = find(&stack.outputs, output).ok_or_else(|| {
            Failure::usage(format!("the stack `{name}` has no output {output}"))
                .with_next("is it a stack of this template, and has its deployment finished?")
        })?;
        variables.push(((*variable).to_owned(), value));
    }
    // An empty value stands for none, and drives out what the shell says of another stack.
    for (list, names) in [(&stack.outputs, FUNCTIONS), (&stack.parameters, PARAMETERS)] {
        for (key, variable) in names {
            variables.push(((*variable).to_owned(), find(list, key).unwrap_or_default()));
        }
    }
    Ok(variables)
}

fn missing(name: &str) -> Failure {
    let failure = Failure::usage(format!("there is no stack `{name}` in this account and region"));
    failure.with_next(match std::env::var("AWS_ENDPOINT_URL") {
        Ok(endpoint) => format!(
            "this shell talks to {endpoint} and not to AWS, as `.local/env` has it: use another shell, or \
             unset AWS_ENDPOINT_URL and name your account"
        ),
        Err(_) => {
            "check the name, AWS_PROFILE and AWS_REGION; `sam list stack-outputs` helps".to_owned()
        }
    })
}

fn unreachable<E, R>(name: &str, error: &SdkError<E, R>) -> Failure
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug + 'static,
{
    match error.as_service_error() {
        // CloudFormation's way of saying that there is none.
        Some(error) if error.code() == Some("ValidationError") => missing(name),
        Some(error) => {
            let code = error.code().unwrap_or("unnamed error");
            let said = error.message().unwrap_or("without a message");
            Failure::unreachable(format!("the stack `{name}` cannot be read: {code}: {said}"))
                .with_next("this identity needs cloudformation:DescribeStacks on it")
        }
        None => {
            let said = chain(error);
            let next = advice(&said);
            Failure::unreachable(format!("the stack `{name}` cannot be read: {said}"))
                .with_next(next)
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_parameters_become_the_variables_of_the_local_stack() {
        let outputs = OUTPUTS.iter().map(|(output, _)| (*output, "x")).collect();
        let stack = Described { outputs, parameters: vec![("RetentionDays", "30")] };
        let variables = read("prod", &stack).unwrap();
        let find = |name: &str| {
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        assert_eq!(find("ONCEHOOK_DLQ_URL"), Some("x"));
        assert_eq!(find("ONCEHOOK_RETENTION_DAYS"), Some("30"));
        assert_eq!(find("ONCEHOOK_POLICY_OVERRIDES"), Some(""));
        assert_eq!(find("ONCEHOOK_RECONCILER_FUNCTION"), Some(""), "a stack may have none");
        assert_eq!(find("ONCEHOOK_STACK"), Some("prod"));
    }

    /// What the local stack writes and what a deployed one is asked for are the same names.
    #[test]
    fn every_variable_of_the_local_stack_is_known_of_a_deployed_one() {
        let written = include_str!("../../../infra/deployment.py");
        let outputs = OUTPUTS.iter().map(|(output, _)| (*output, "x")).collect();
        let variables = read("prod", &Described { outputs, parameters: Vec::new() }).unwrap();
        let quoted = written.split('"').filter(|word| word.starts_with("ONCEHOOK_"));
        let names: Vec<&str> = quoted.collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(variables.iter().any(|(known, _)| known == name), "{name} is not asked for");
        }
    }

    #[test]
    fn a_stack_of_something_else_is_named_as_such() {
        let failure = read("other", &Described::default()).unwrap_err();
        assert_eq!(failure.to_string(), "the stack `other` has no output Url");
        assert_eq!(failure.code(), 2);
    }
}
