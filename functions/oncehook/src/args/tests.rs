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

#[test]
fn what_stands_below_the_options_is_no_wider_than_the_help() {
    fn look(command: &clap::Command) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let wide = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "{}: broken in its middle", command.get_name());
        command.get_subcommands().for_each(look);
    }
    look(&Cli::command());
}

#[test]
fn the_examples_in_the_help_are_themselves_valid() {
    let mut seen = 0;
    for path in paths(&Cli::command(), &["oncehook".to_owned()])
        .into_iter()
        .chain([vec!["oncehook".to_owned()]])
    {
        let line: Vec<String> = path.iter().cloned().chain(["--help".to_owned()]).collect();
        let help = Cli::try_parse_from(&line).unwrap_err().to_string();
        for example in help.lines().filter_map(|line| line.strip_prefix("  oncehook ")) {
            let words = example.split(['>', '|', '(']).next().unwrap().replace('\'', "\"");
            let words: Vec<String> = words
                .split('"')
                .enumerate()
                .flat_map(|(n, part)| match n % 2 {
                    0 => part.split_whitespace().map(str::to_owned).collect(),
                    _ => vec![part.to_owned()],
                })
                .collect();
            let line = ["oncehook".to_owned()].into_iter().chain(words);
            Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{example}: {error}"));
            seen += 1;
        }
    }
    assert!(seen >= 20, "only {seen} examples found");
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
