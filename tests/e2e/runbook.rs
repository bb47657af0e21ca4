//! The runbook is true: each of its commands runs, in its order, on a stack of its own, and answers what
//! stands there.
//!
//! Times, ages, durations and generated names are taken out of both texts, and blanks count as one, so
//! that a longer age moves no column; every other figure must be the one that stands there. `...` in the
//! runbook stands for anything. A block `sh` is pasted whole and must end well. A comment `test: ...` is
//! something the world does meanwhile; one that is not known here fails the case.

use crate::suite::{Suite, operators_of, script};
use ledger::{Millis, Row, Status};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use support::{LocalStack, Stack, StackOptions, now_ms, python, root};
use workflow::ports::{Ledger, StewardNotes};

const RELEASE: &str = "2026.48";

/// One step of the runbook.
#[derive(Debug, PartialEq)]
enum Step {
    /// A command and what it answers.
    Command { typed: String, answer: String },
    /// Several lines that are pasted together.
    Block(String),
    /// What the world does.
    World(String),
}

/// The steps of a Markdown text, in order.
fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut in_console, mut in_block) = (false, false);
    for line in text.lines() {
        match line.trim() {
            "```console" => in_console = true,
            "```sh" => {
                in_block = true;
                steps.push(Step::Block(String::new()));
            }
            "```" => (in_console, in_block) = (false, false),
            _ if in_block => {
                if let Some(Step::Block(block)) = steps.last_mut() {
                    block.push_str(line);
                    block.push('\n');
                }
            }
            _ if in_console => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(typed), _) => {
                    steps.push(Step::Command { typed: typed.to_owned(), answer: String::new() });
                }
                (None, Some(Step::Command { answer, .. })) => {
                    answer.push_str(line);
                    answer.push('\n');
                }
                (None, _) => panic!("an answer to nothing: {line}"),
            },
            other => {
                let act =
                    other.strip_prefix("<!-- test: ").and_then(|rest| rest.strip_suffix(" -->"));
                steps.extend(act.map(|act| Step::World(act.to_owned())));
            }
        }
    }
    steps
}

/// The text without what differs from one day to the next.
fn shape(text: &str) -> String {
    let mut words: Vec<String> = text.split_whitespace().map(word).collect();
    for at in 1..words.len() {
        if words[at] == "ms" && is_number(&words[at - 1]) {
            "N".clone_into(&mut words[at - 1]);
        }
    }
    let mut text = words.join(" ");
    // `1m 34s` is one age, and a day has its time behind it.
    for one in ["AGE", "TIME"] {
        let two = format!("{one} {one}");
        while text.contains(&two) {
            text = text.replace(&two, one);
        }
    }
    text.replace("AGE ago", "AGE").replace("in AGE", "AGE")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A word without its digits where they are a time, an age, an address or made up.
fn word(word: &str) -> String {
    let inner = word.trim_matches(|c: char| "(),;:".contains(c));
    let is_age = inner == "now"
        || inner.strip_suffix(['s', 'm', 'h', 'd']).is_some_and(is_number) && inner.len() <= 4;
    let is_day = inner.len() >= 10
        && inner.bytes().take(10).all(|byte| byte.is_ascii_digit() || byte == b'-')
        && inner.contains('-');
    let is_clock = inner.ends_with('Z') && inner.contains(':') && inner.len() <= 13;
    if let Some((_, path)) = inner.split_once("/webhooks/").filter(|_| inner.starts_with("http")) {
        return format!("URL/{path}");
    }
    let plain = if is_age {
        "AGE"
    } else if is_day && !inner.contains('#') && inner.matches('-').count() > 4 {
        "RUN"
    } else if is_day || is_clock {
        "TIME"
    } else {
        return word.to_owned();
    };
    word.replace(inner, plain)
}

/// Whether `found` is what stands in the runbook, where `...` is anything.
fn is_as_written(found: &str, written: &str) -> bool {
    let (found, written) = (shape(found), shape(written));
    let mut pieces = written.split("...").map(str::trim);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    let mut last = first;
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        last = piece;
    }
    rest.trim().is_empty() || (written.ends_with("...") && last.is_empty())
}

/// Whether a command only looks.
fn is_a_look(typed: &str) -> bool {
    ["stuck", "events", "state", "dead list", "dead show"]
        .iter()
        .any(|command| typed.starts_with(&format!("oncehook {command}")))
}

/// A stack, a shell, and what was assigned in it so far.
struct Day {
    options: StackOptions,
    local: LocalStack,
    stack: Stack,
    programs: tempfile::TempDir,
    /// Where temporary files go.
    scratch: tempfile::TempDir,
    assigned: String,
}

impl Day {
    async fn begin() -> Self {
        let options = StackOptions {
            policy_overrides: crate::suite::POLICY.to_owned(),
            release: RELEASE.to_owned(),
            ..StackOptions::default()
        };
        let local = LocalStack::up(&options).unwrap();
        let stack = Stack::connect(local.env().clone()).await.unwrap();
        // The steward has been here a moment ago, and leaves the dead to the operator for a while.
        let notes = StewardNotes {
            redriven_at: Millis(now_ms()),
            cleared_at: Millis(now_ms()),
            walked_release: RELEASE.to_owned(),
            ..StewardNotes::default()
        };
        stack.aws.write_notes(&notes).await.unwrap();
        let programs = tempfile::tempdir().unwrap();
        let binaries = local.binaries().unwrap();
        std::os::unix::fs::symlink(binaries.join("oncehook"), programs.path().join("oncehook"))
            .unwrap();
        let aws = programs.path().join("aws");
        let shim = script("aws_cli.py");
        fs::write(
            &aws,
            format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", python().display(), shim.display()),
        )
        .unwrap();
        fs::set_permissions(&aws, fs::Permissions::from_mode(0o755)).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        Self { options, local, stack, programs, scratch, assigned: String::new() }
    }

    /// Types a command; what both its streams say.
    fn shell(&mut self, typed: &str) -> String {
        let assignment = typed.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase())
        });
        if assignment || typed.starts_with("eval ") {
            self.assigned.push_str(typed);
            self.assigned.push('\n');
            return String::new();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1\n{}{typed}", self.assigned)])
            .current_dir(root())
            .env_clear()
            .env("PATH", format!("{}:{path}", self.programs.path().display()))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("TMPDIR", self.scratch.path())
            // The names of everything come from the runbook's own first line.
            .envs(self.local.env().iter().filter(|(name, _)| name.starts_with("AWS_")))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Pastes several lines; what they say, unless they end well and leave no file behind.
    fn paste(&mut self, block: &str) -> Option<String> {
        let said = self.shell(&format!("{block}echo \"ended with $?\"\n"));
        let left = fs::read_dir(self.scratch.path()).unwrap().count();
        let is_well = said.ends_with("ended with 0\n") && left == 0;
        (!is_well).then(|| format!("{said}{left} temporary files left\n"))
    }

    /// Does what the world does.
    async fn act(&mut self, what: &str) {
        let consumer = "\"$ONCEHOOK_CONSUMER_FUNCTION\"";
        match what.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["freeze", ..] => {
                let table = self.local.env().get("ONCEHOOK_STATE_TABLE").unwrap();
                let policy = json!({"Version": "2012-10-17", "Statement": [{
                    "Effect": "Deny", "Action": "dynamodb:UpdateItem",
                    "Resource": format!("arn:aws:dynamodb:*:*:table/{table}"),
                }]});
                let said = self.shell(&format!(
                    "aws iam put-role-policy --policy-name freeze --policy-document '{policy}' --role-name \
                     \"$(aws lambda get-function-configuration --function-name {consumer} --query Role \
                     --output text | sed 's:.*/::')\""
                ));
                assert_eq!(said, "", "the role was not frozen");
            }
            ["stop", ..] => {
                let variables: Vec<(&str, &str)> = self.local.env().iter().collect();
                let ask = json!({"do": "polling", "enabled": false});
                operators_of(&variables, std::slice::from_ref(&ask));
            }
            ["deploy", "with", "the", "tables", ledger, "and", state] => {
                let tables = [("LedgerTableName", ledger), ("StateTableName", state)];
                let tables = tables.map(|(name, table)| (name.to_owned(), (*table).to_owned()));
                self.options.parameters = tables.to_vec();
                self.local.deploy_again(&self.options).unwrap();
                self.stack = Stack::connect(self.local.env().clone()).await.unwrap();
                assert_eq!(self.local.env().get("ONCEHOOK_LEDGER_TABLE").unwrap(), *ledger);
                assert_eq!(self.local.env().get("ONCEHOOK_STATE_TABLE").unwrap(), *state);
            }
            ["wait", "until", key, "is", "dead", "again"] => {
                let again = |row: &Row| {
                    let failed_at = row.life.failure.as_ref().map(|failure| failure.at);
                    row.life.status == Status::Dead && failed_at > row.life.redriven_at
                };
                self.stack.row_when("it is dead again", key, again).await;
                self.stack.queue_is_empty().await;
            }
            ["wait", "until", key, "is", status] => {
                let status = Status::parse(status).unwrap();
                self.stack.row_in(key, status).await;
                self.stack.queue_is_empty().await;
            }
            ["wait", "until", key, "was", "sent", "again"] => {
                let function =
                    self.local.env().get("ONCEHOOK_STEWARD_FUNCTION").unwrap().to_owned();
                self.stack
                    .row_when("it is overdue", key, |row| {
                        row.life.open.is_some_and(|open| open.due_at.0 < now_ms())
                    })
                    .await;
                let said = self.shell(&format!("aws lambda invoke --function-name {function} --payload '{{}}' --query StatusCode"));
                assert_eq!(said.trim(), "200", "the steward did not run");
                self.stack.row_when("it was sent again", key, |row| row.life.sweeps > 0).await;
            }
            _ => panic!("the runbook's `test: {what}` is not known here"),
        }
    }
}

pub(crate) async fn every_command_of_the_runbook_answers_as_it_stands_there(_suite: &Suite) {
    let text = fs::read_to_string(root().join("infra/runbook.md")).unwrap();
    let steps = steps(&text);
    let commands = steps.iter().filter(|step| matches!(step, Step::Command { .. })).count();
    assert!(commands >= 25, "only {commands} commands were found in the runbook");
    let mut day = Day::begin().await;
    let mut wrong = Vec::new();
    for step in steps {
        match step {
            Step::World(what) => day.act(&what).await,
            Step::Block(block) => {
                wrong.extend(day.paste(&block).map(|said| format!("{block}--- said\n{said}")));
            }
            Step::Command { typed, answer } => {
                let mut found = day.shell(&typed);
                // Who looks a moment too early looks again.
                let patience = Instant::now() + Duration::from_secs(20);
                while is_a_look(&typed)
                    && !is_as_written(&found, &answer)
                    && Instant::now() < patience
                {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    found = day.shell(&typed);
                }
                if !is_as_written(&found, &answer) {
                    wrong
                        .push(format!("$ {typed}\n--- in the runbook\n{answer}--- found\n{found}"));
                }
            }
        }
    }
    day.local.down().unwrap();
    assert!(wrong.is_empty(), "{} of {commands} differ:\n{}", wrong.len(), wrong.join("\n"));
}

pub(crate) async fn the_runbooks_comparison_can_fail(_suite: &Suite) {
    let doctor = |sources: u8, seconds: u8, ms: u8| {
        format!(
            "valid: {sources} sources, 180 s\nclock within {seconds}s of AWS's\n200 {ms} ms s#e"
        )
    };
    assert!(is_as_written(&doctor(20, 4, 9), &doctor(20, 5, 135)));
    assert!(!is_as_written(&doctor(20, 5, 35), &doctor(19, 5, 35)));
    assert!(!is_as_written(&doctor(20, 5, 35).replace("180", "30"), &doctor(20, 5, 35)));
    let written = "dead list\n1 x the version is null ...\n  died  2026-11-30 17:36:05Z (3s ago)\n1 dead event";
    let found = "dead list\n1 x the version is null (at /x)\n  died    2027-01-02 03:04:05Z (1m 04s ago)\n1 dead event\n";
    assert!(is_as_written(found, written));
    for other in [
        found.replace("null", "text"),
        found.replace("1 dead event", "2 dead event"),
        found.replace("1 x", "11 x"),
        found.replace("1 dead event\n", ""),
        found.replace("died", "lived"),
        format!("{found}and more"),
        format!("something before {found}"),
    ] {
        assert!(!is_as_written(&other, written), "{other}");
    }
}
