//! `env`: the variables of a deployed stack, for the shell: what `make up` writes for the local one.
//!
//! With them every line of the runbook works on AWS as it stands there, the AWS command line's too.

use crate::{
    args::Global,
    failure::Failure,
    output::{Page, Report},
    stack,
};
use serde::{Serialize, Serializer};

/// Names and values, as the stack has them.
pub(crate) struct Variables(Vec<(String, String)>);

/// Asks the named stack.
pub(crate) async fn run(global: &Global) -> Result<Variables, Failure> {
    match &global.stack {
        Some(name) => Ok(Variables(stack::variables(name).await?)),
        None => Err(Failure::usage("which stack? add --stack NAME")
            .with_next("the local stack's variables are in `.local/env`, once `make up` has run")),
    }
}

impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Report for Variables {
    fn needs_attention(&self) -> bool {
        false
    }

    fn write(&self, page: &mut Page) {
        for (name, value) in &self.0 {
            page.line(format!("export {name}={}", literal(value)));
        }
    }
}

/// A value that a shell takes as it stands: between single quotes nothing is special but their end.
fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_every_value_as_the_stack_has_it_and_runs_none() {
        let odd = ["https://x/$default", "it's", "a\"b`id`$(id)", "two\nlines", "", "; exit 7 #"];
        for value in odd {
            let variables = Variables(vec![("ONCEHOOK_URL".to_owned(), value.to_owned())]);
            let mut page = Page::default();
            variables.write(&mut page);
            let script = format!("{}printf '%s.' \"$ONCEHOOK_URL\"", page.text());
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert!(output.status.success(), "{script}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{value}."));
            let json = serde_json::to_value(&variables).unwrap();
            assert_eq!(json["ONCEHOOK_URL"], value);
        }
    }

    #[tokio::test]
    async fn without_a_stack_it_says_which_is_wanted() {
        let failure = run(&Global { json: false, stack: None }).await.err().unwrap();
        assert_eq!((failure.code(), failure.to_string().contains("--stack NAME")), (2, true));
    }
}
