//! The command line, as an operator runs it against the deployed stack.

use crate::suite::Suite;
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use support::binary;

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The JSON document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Starts `oncehook` with these arguments.
pub(crate) fn start(suite: &Suite, arguments: &[&str]) -> Child {
    let mut command = Command::new(binary("oncehook").unwrap());
    command.args(arguments).envs(suite.stack.env.iter()).envs(suite.providers.variables());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs `oncehook` with these arguments to its end. The runtime goes on meanwhile: the providers are
/// served by it.
pub(crate) async fn run(suite: &Suite, arguments: &[&str]) -> Ran {
    let child = start(suite, arguments);
    let output = tokio::task::spawn_blocking(move || child.wait_with_output());
    output.await.unwrap().unwrap().into()
}
