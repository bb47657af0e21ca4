//! The binary as a script meets it: exit codes, what goes to which stream, and no colour where
//! nobody looks.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs `oncehook` where no stack is in sight.
fn oncehook(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncehook"));
    command.current_dir(ROOT).env_clear().args(line.split_whitespace()).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_command_explains_itself() {
    for line in [
        "--help",
        "send --help",
        "verify --help",
        "events --help",
        "events list --help",
        "events show --help",
        "state show --help",
        "dead --help",
        "dead list --help",
        "dead show --help",
        "dead redrive --help",
        "dead resolve --help",
        "stuck --help",
        "replay --help",
        "reconcile --help",
        "backfill-versions --help",
        "tail --help",
        "doctor --help",
        "env --help",
        "completions --help",
    ] {
        let output = oncehook(line);
        assert_eq!(code(&output), 0, "{line}");
        assert!(text(&output.stdout).contains("Usage:"), "{line}");
        assert!(!output.stdout.contains(&0x1b), "{line} is coloured into a pipe");
    }
}

#[test]
fn without_a_stack_every_command_that_needs_one_says_how_to_name_it() {
    for line in [
        "send events/github_push.json --secrets infra/local-secrets.json",
        "events list",
        "events show github#1",
        "state show github#repository#1",
        "dead list",
        "dead show github#1",
        "dead redrive github#1 --by me --reason test",
        "dead resolve github#1 --by me --reason test",
        "stuck",
        "dead redrive --all --by me --reason test",
        "replay --from-ledger --since 1h --by me --reason test",
        "tail --once",
        "doctor",
    ] {
        let output = oncehook(line);
        assert_eq!(code(&output), 2, "{line}");
        assert!(output.stdout.is_empty(), "{line}");
        let said = text(&output.stderr);
        assert!(said.contains("make up") && said.contains("--stack NAME"), "{line}: {said}");
    }
}

#[test]
fn a_failure_is_json_where_json_was_asked_for() {
    let output = oncehook("events list --json");
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(said["exit"], 2);
    assert!(said["error"].as_str().unwrap().contains("ONCEHOOK_LEDGER_TABLE"));
    assert!(said["next"].as_str().unwrap().contains("make up"));
}

#[test]
fn a_wrong_call_is_json_where_json_was_asked_for_and_help_stays_help() {
    for (line, says, next) in [
        ("--json", "requires a subcommand", "write oncehook"),
        ("dead --json", "requires a subcommand", "write oncehook dead"),
        ("evnets list --json", "unrecognized subcommand 'evnets'", "'events'"),
        ("events list --json --status lost", "allowed: pending, claimed", "--help"),
        (
            "--json dead redrive s#e --by anna",
            "not provided: --reason <WHY>",
            "oncehook dead redrive",
        ),
        ("events list --jsno --json", "unexpected argument '--jsno'", "'--json'"),
    ] {
        let output = oncehook(line);
        assert_eq!(code(&output), 2, "{line}");
        assert!(output.stdout.is_empty(), "{line}");
        let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(said["exit"], 2, "{line}");
        assert!(said["error"].as_str().unwrap().contains(says), "{line}: {said}");
        assert!(said["next"].as_str().unwrap().contains(next), "{line}: {said}");
    }
    for line in ["events list --help --json", "--version --json"] {
        let output = oncehook(line);
        assert_eq!((code(&output), output.stderr.len()), (0, 0), "{line}");
        assert!(text(&output.stdout).to_lowercase().contains("oncehook"), "{line}");
    }
    let said = text(&oncehook("events list --status lost").stderr);
    assert!(said.starts_with("error: ") && said.contains("For more information"), "{said}");
}

#[test]
fn a_wrong_call_ends_with_2() {
    for line in ["", "nothing", "events list --status lost", "send no-such-file.json", "verify"] {
        assert_eq!(code(&oncehook(line)), 2, "{line:?}");
    }
}

#[test]
fn an_address_where_nobody_answers_ends_with_3() {
    let output = Command::new(env!("CARGO_BIN_EXE_oncehook"))
        .current_dir(ROOT)
        .env_clear()
        // Port 9 discards, and on this machine nobody listens.
        .env("ONCEHOOK_URL", "http://127.0.0.1:9")
        .args(["send", "events/github_push.json", "--secrets", "infra/local-secrets.json"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 3);
    assert!(text(&output.stderr).contains("http://127.0.0.1:9 gave no answer"));
}

#[test]
fn the_shipped_vectors_pass_in_text_and_in_json() {
    let output = oncehook("verify --vectors tests/vectors/signatures.json");
    let printed = text(&output.stdout);
    assert_eq!(code(&output), 0, "{printed}");
    let last = printed.lines().last().unwrap();
    assert!(last.contains(" passed, 0 failed, ") && last.ends_with(" skipped"), "{last}");
    let output = oncehook("verify --vectors tests/vectors/signatures.json --json");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["failed"], 0);
}

#[test]
fn a_refused_request_ends_with_1() {
    let line = "verify --source github --request events/github_push.json \
                --secrets infra/local-secrets.json --json";
    let output = oncehook(line);
    assert_eq!(code(&output), 1);
    let verdict: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["cause"], "header_missing");
}

#[test]
fn nothing_that_ships_scans_a_table() {
    let mut folders = vec![std::path::PathBuf::from(ROOT).join("functions")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                let call = [".sc", "an()"].concat();
                assert!(!text.contains(&call), "{} scans a table", path.display());
            }
        }
    }
    assert!(files > 100, "only {files} files were looked through");
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&oncehook(&format!("completions {shell}")).stdout);
        for command in
            ["redrive", "resolve", "stuck", "verify", "vectors", "replay", "tail", "doctor", "env"]
        {
            assert!(script.contains(command), "{shell} does not complete {command}");
        }
        let output = oncehook(&format!("completions {shell} --json"));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let inside = format!("{}\n", document["script"].as_str().unwrap());
        assert_eq!((document["shell"].as_str(), inside), (Some(shell), script));
    }
}
