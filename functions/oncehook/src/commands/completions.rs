//! `completions`: what a shell needs to complete commands and options.

use crate::{
    args::{Cli, Completions},
    output::{Page, Report},
};
use clap::CommandFactory as _;
use serde::Serialize;

/// A script for a shell.
#[derive(Debug, Serialize)]
pub(crate) struct Script {
    shell: String,
    script: String,
}

/// Writes the script.
pub(crate) fn run(args: &Completions) -> Script {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "oncehook", &mut script);
    let script = String::from_utf8_lossy(&script).trim_end().to_owned();
    Script { shell: args.shell.to_string(), script }
}

impl Report for Script {
    fn needs_attention(&self) -> bool {
        false
    }

    fn write(&self, page: &mut Page) {
        page.line(&self.script);
    }
}
