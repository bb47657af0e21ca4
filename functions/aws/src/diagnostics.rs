//! Diagnostics: what a function says besides its telemetry, through `tracing`.
//!
//! Own crates speak at the level the operator sets. Everybody else is heard from `WARN` up
//! whatever that level is: below it the SDK prints requests and answers, and with them bodies,
//! rows and secrets.

use std::{env, fmt, io, process::ExitCode};
use tracing::{Level, Metadata};
use tracing_subscriber::{
    Layer, Registry, filter::filter_fn, layer::SubscriberExt, util::SubscriberInitExt,
};

const OURS: &[&str] =
    &["aws", "config", "consumer", "ledger", "receiver", "steward", "verifier", "workflow"];

/// Runs a Lambda function under diagnostics to its end, which is a failure only of its start. Called by
/// `who`, the function in a sentence.
pub async fn run<E: fmt::Display>(
    who: &str,
    serve: impl Future<Output = Result<(), E>>,
) -> ExitCode {
    start();
    // Everything a function does in one future is larger than a stack likes.
    match Box::pin(serve).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{who} cannot start: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts diagnostics of a Lambda function: JSON where Lambda's log format is JSON, at the level of
/// `AWS_LAMBDA_LOG_LEVEL`, else `RUST_LOG`, else `INFO`.
fn start() {
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").or_else(|_| env::var("RUST_LOG"));
    let level = level.ok().and_then(|word| word.parse().ok()).unwrap_or(Level::INFO);
    let heard = filter_fn(move |metadata| is_heard(metadata, level));
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stdout).with_target(false);
    let is_json = env::var("AWS_LAMBDA_LOG_FORMAT").is_ok_and(|it| it.eq_ignore_ascii_case("json"));
    let lines: Box<dyn Layer<Registry> + Send + Sync> = if is_json {
        Box::new(lines.json().with_filter(heard))
    } else {
        Box::new(lines.without_time().with_filter(heard))
    };
    // A second start finds the first one at work.
    let _started = tracing_subscriber::registry().with(lines).try_init();
}

fn is_heard(metadata: &Metadata<'_>, level: Level) -> bool {
    *metadata.level() <= loudest(metadata.target(), level)
}

/// The least severe level heard of a target.
fn loudest(target: &str, level: Level) -> Level {
    match target.split("::").next().unwrap_or_default() {
        name if OURS.contains(&name) => level,
        // Its span carries the request id of every line.
        "lambda_runtime" => Level::INFO,
        _ => Level::WARN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_is_not_heard_below_warn_however_curious_the_operator() {
        for target in ["aws_smithy_runtime::client", "aws_sdk_dynamodb", "hyper", "awsome", ""] {
            assert_eq!(loudest(target, Level::TRACE), Level::WARN, "{target}");
        }
        assert_eq!(loudest("aws::queues", Level::TRACE), Level::TRACE);
        assert_eq!(loudest("workflow", Level::DEBUG), Level::DEBUG);
        assert_eq!(loudest("lambda_runtime::layers::trace", Level::TRACE), Level::INFO);
    }
}
