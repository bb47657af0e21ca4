//! The command line as typed, and as its help says it may be.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use super::*;
use clap::{CommandFactory, error::ErrorKind};

/// Every command and group of commands, as typed.
fn paths(command: &clap::Command, before: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for sub in command.get_subcommands() {
        let mut path = before.to_vec();
        path.push(sub.get_name().to_owned());
        all.extend(paths(sub, &path));
        all.push(path);
    }
    all
}

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_help_and_every_leaf_has_an_example_or_inherits_one() {
    for path in paths(&Cli::command(), &["oncehook".to_owned()]) {
        let line: Vec<String> = path.iter().cloned().chain(["--help".to_owned()]).collect();
        let error = Cli::try_parse_from(&line).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{path:?}");
        let help = error.to_string();
        assert!(help.contains("--json"), "{path:?} hides --json");
        let is_group = help.contains("Commands:");
        assert!(is_group || help.contains("Example"), "{path:?} has no example");
    }
}

/// The rendered help of every command, as wide as it may be.
fn helps(columns: usize) -> Vec<(String, String)> {
    let all = paths(&Cli::command(), &["oncehook".to_owned()]);
    let all = all.into_iter().chain([vec!["oncehook".to_owned()]]);
    let help = |path: Vec<String>| {
        let line: Vec<String> = path.iter().cloned().chain(["--help".to_owned()]).collect();
        let command = Cli::command().term_width(columns);
        (path.join(" "), command.try_get_matches_from(line).unwrap_err().to_string())
    };
    all.map(help).collect()
}

/// The commands to paste from a help text; a backslash joins two lines as in a shell.
fn examples(help: &str) -> Vec<String> {
    let joined = help.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| line.starts_with("  oncehook "));
    lines.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn the_examples_in_the_help_are_themselves_valid() {
    let mut seen = 0;
    for (_, help) in helps(100) {
        for example in examples(&help) {
            let words = example.split(['>', '|']).next().unwrap().replace('\'', "\"");
            let words: Vec<String> = words
                .split('"')
                .enumerate()
                .flat_map(|(n, part)| match n % 2 {
                    0 => part.split_whitespace().map(str::to_owned).collect(),
                    _ => vec![part.to_owned()],
                })
                .collect();
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{example}: {error}"));
            seen += 1;
        }
    }
    assert!(seen >= 20, "only {seen} examples found");
}

#[test]
fn the_examples_of_a_command_are_of_that_command() {
    for (path, help) in helps(100).into_iter().filter(|(path, _)| path.contains(' ')) {
        for example in examples(&help) {
            assert!(example.starts_with(&path), "{path} shows {example}");
        }
    }
}

#[test]
fn help_can_be_read_and_pasted_from_however_wide_the_terminal_is() {
    let (narrow, wide, whole) = (helps(80), helps(100), helps(10_000));
    for ((path, whole), (narrow, wide)) in whole.iter().zip(narrow.iter().zip(&wide)) {
        for (columns, (_, help)) in [(80, narrow), (100, wide)] {
            assert_eq!(examples(help), examples(whole), "{path}: broken at {columns} columns");
            for line in help.lines() {
                // Usage lines and what has no blank are clap's to leave whole.
                let is_whole = line.trim().contains(' ') && !line.starts_with("Usage:");
                assert!(!is_whole || line.chars().count() <= columns, "{path}: {line}");
            }
        }
        // A paragraph is one line, and left to clap to break.
        let mut lines = whole.lines().peekable();
        while let Some(line) = lines.next() {
            let is_text = |line: &&str| line.starts_with(|c: char| !c.is_whitespace());
            let goes_on = is_text(&line) && lines.peek().is_some_and(is_text);
            assert!(!goes_on || line.ends_with(':'), "{path}: a paragraph broken by hand: {line}");
        }
    }
}

#[test]
fn the_placeholder_of_a_number_can_be_learnt_from_the_help() {
    let helps = helps(200);
    let (_, help) = helps.iter().find(|(path, _)| path == "oncehook send").unwrap();
    assert!(help.contains("Another event id; `{n}` becomes the number"), "{help}");
    assert!(help.contains("JSON or text; `{n}` as with --id"), "{help}");
    assert!(help.contains("--id 'load-{n}' --times 100"), "{help}");
}

#[test]
fn whether_a_command_looks_or_acts_stands_in_its_first_line_and_dry_run_is_taken_wherever_it_may_look()
 {
    for (path, first) in [
        ("oncehook replay", "unless --dry-run; from the ledger, only with --execute"),
        ("oncehook reconcile", "unless --dry-run"),
        ("oncehook backfill-versions", "unless --dry-run"),
        ("oncehook dead redrive", "many at once only with --execute"),
    ] {
        let helps = helps(200);
        let (_, help) = helps.iter().find(|(known, _)| known == path).unwrap();
        assert!(help.lines().next().unwrap().contains(first), "{path}: {help}");
        assert!(help.contains("--dry-run"), "{path}");
    }
    let who = "--by anna --reason why";
    for line in [
        format!("oncehook dead redrive --all --dry-run {who}"),
        format!("oncehook dead redrive --release b --dry-run {who}"),
        "oncehook replay --from-ledger --since 2h --dry-run".to_owned(),
        "oncehook replay --source s --since 2h --dry-run".to_owned(),
        "oncehook reconcile --source s --dry-run".to_owned(),
        "oncehook backfill-versions f.csv --dry-run".to_owned(),
    ] {
        parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    for line in [
        format!("oncehook dead redrive --all --dry-run --execute {who}"),
        format!("oncehook dead redrive s#e --dry-run {who}"),
        format!("oncehook replay --from-ledger --since 2h --dry-run --execute {who}"),
    ] {
        let error = parse(&line).unwrap_err().to_string();
        assert!(error.contains("'--dry-run'"), "{line}: {error}");
    }
}

#[test]
fn values_are_parsed_at_the_edge_and_wrong_ones_are_told_what_is_allowed() {
    let refusals = [
        ("oncehook events show nokey", "<source>#<event id>"),
        ("oncehook state show a#b", "<entity type>"),
        ("oncehook events list --status lost", "allowed: pending, claimed"),
        ("oncehook events list --since tomorrow", "15m, 2h, 3d"),
        ("oncehook events list --source Stripe", "a-z, 0-9"),
        ("oncehook send f.json --set status=1", "JSON Pointer"),
        ("oncehook send f.json --times 0", "1..=100000"),
        ("oncehook dead redrive s#e --by anna", "--reason"),
        ("oncehook verify --source s", "--request"),
        ("oncehook verify --request f.json", "--source"),
    ];
    for (line, says) in refusals {
        let error = parse(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(says), "{line}: {error}");
    }
}

#[test]
fn a_value_that_is_no_json_is_text() {
    let set = |text: &str| Set::parse(text).unwrap().value;
    assert_eq!(set("/a=1"), Value::from(1));
    assert_eq!(set("/a=null"), Value::Null);
    assert_eq!(set("/a=past_due"), Value::from("past_due"));
    assert_eq!(set("/a=x=y"), Value::from("x=y"));
}

#[test]
fn json_and_stack_are_taken_behind_every_command() {
    let cli = parse("oncehook events list --json --stack prod").unwrap();
    assert!(cli.global.json);
    assert_eq!(cli.global.stack.as_deref(), Some("prod"));
}
