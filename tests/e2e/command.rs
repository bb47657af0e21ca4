//! The command line, as an operator runs it against the deployed stack.

use crate::suite::{POLICY, Suite};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read},
    process::{Child, Command, Output, Stdio},
};
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

    /// The command that it says comes next.
    pub(crate) fn next(&self) -> &str {
        let next = self.err.lines().find_map(|line| line.strip_prefix(" next: "));
        next.unwrap_or_else(|| panic!("no next command: {self:?}"))
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
    command.args(arguments);
    spawn(suite, command)
}

fn spawn(suite: &Suite, mut command: Command) -> Child {
    // As `--stack` reads them from the stack's parameters.
    command.env("ONCEHOOK_POLICY_OVERRIDES", POLICY);
    command.envs(suite.stack.env.iter()).envs(suite.providers.variables());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs `oncehook` with these arguments to its end. The runtime goes on meanwhile: the providers are
/// served by it.
pub(crate) async fn run(suite: &Suite, arguments: &[&str]) -> Ran {
    end(start(suite, arguments)).await
}

/// Runs a line as a shell reads it.
pub(crate) async fn paste(suite: &Suite, line: &str) -> Ran {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    end(spawn(suite, command)).await
}

/// Sends what Ctrl-C sends.
pub(crate) fn press_ctrl_c(child: &Child) {
    let pid = child.id().try_into().ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

/// Waits for a line, and gives back what is left to read.
pub(crate) async fn first_line<R: Read + Send + 'static>(from: R) -> (String, BufReader<R>) {
    let read = tokio::task::spawn_blocking(move || {
        let mut reader = BufReader::new(from);
        let mut line = String::new();
        reader.read_line(&mut line).map(|_| (line.trim_end().to_owned(), reader))
    });
    read.await.unwrap().unwrap()
}

/// How a command ends.
pub(crate) async fn end(child: Child) -> Ran {
    let output = tokio::task::spawn_blocking(move || child.wait_with_output());
    output.await.unwrap().unwrap().into()
}
