//! Commands that are printed to be pasted: they go to the stack that this one was sent to.
//!
//! Reports compose their next commands without knowing which stack was named, and here, on the way
//! out, each gets the `--stack` of the command that was typed. A command is a line that begins with
//! `oncehook`, or stands between backquotes; only what is labelled `next` is looked through.

use crate::output::quoted;

const PROGRAM: &str = "oncehook ";
const OPTION: &str = "--stack";

/// The text of a next step with its commands sent to `stack`.
pub(crate) fn text(next: &str, stack: Option<&str>) -> String {
    let Some(stack) = stack else { return next.to_owned() };
    let lines: Vec<String> = next.split('\n').map(|line| of_line(line, stack)).collect();
    lines.join("\n")
}

/// The same for every `next` of a JSON document, whose members stand on lines of their own.
pub(crate) fn document(pretty: &str, stack: Option<&str>) -> String {
    let lines = pretty.split('\n').map(|line| of_member(line, stack));
    lines.collect::<Vec<String>>().join("\n")
}

fn of_line(line: &str, stack: &str) -> String {
    if line.trim_start().starts_with(PROGRAM) {
        return of_command(line, stack);
    }
    let mut pieces = line.split('`').enumerate().map(|(n, piece)| {
        let is_command = n % 2 == 1 && piece.starts_with(PROGRAM);
        if is_command { of_command(piece, stack) } else { piece.to_owned() }
    });
    let first = pieces.next().unwrap_or_default();
    pieces.fold(first, |line, piece| format!("{line}`{piece}"))
}

fn of_command(command: &str, stack: &str) -> String {
    // What is typed again as it was has the option already.
    let mut words = command.split_whitespace();
    if words.any(|word| word.split('=').next() == Some(OPTION)) {
        return command.to_owned();
    }
    format!("{} {OPTION} {}", command.trim_end(), quoted(stack))
}

fn of_member(line: &str, stack: Option<&str>) -> String {
    let Some((before, value)) = line.split_once("\"next\": ") else { return line.to_owned() };
    let is_member = before.trim().is_empty();
    let (value, comma) = value.strip_suffix(',').map_or((value, ""), |value| (value, ","));
    match serde_json::from_str::<String>(value) {
        Ok(next) if is_member => {
            let next = serde_json::Value::from(text(&next, stack));
            format!("{before}\"next\": {next}{comma}")
        }
        Ok(_) | Err(_) => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_go_to_the_stack_that_was_named_and_sentences_stay() {
        let next = "see how they went:\n  oncehook events list --since 10m\n  oncehook dead list";
        assert_eq!(
            text(next, Some("prod")),
            "see how they went:\n  oncehook events list --since 10m --stack prod\n  \
             oncehook dead list --stack prod"
        );
        assert_eq!(
            text(
                "nothing died; `oncehook dead list` names `KEY`, and oncehook is `run`",
                Some("p")
            ),
            "nothing died; `oncehook dead list --stack p` names `KEY`, and oncehook is `run`"
        );
        assert_eq!(text("oncehook stuck", Some("a b")), "oncehook stuck --stack 'a b'");
        assert_eq!(text("oncehook stuck --stack q", Some("p")), "oncehook stuck --stack q");
        assert_eq!(text("oncehook stuck --stack=q", Some("p")), "oncehook stuck --stack=q");
        assert_eq!(text(next, None), next);
    }

    #[test]
    fn a_document_s_next_steps_are_the_same_and_its_other_members_stay() {
        let report = serde_json::json!({
            "body": "\"next\": \"oncehook stuck\"",
            "error": "oncehook stuck",
            "groups": [{ "next": "look:\n  oncehook stuck", "z": 1 }],
            "next": null,
        });
        let pretty = serde_json::to_string_pretty(&report).unwrap_or_default();
        let found: serde_json::Value =
            serde_json::from_str(&document(&pretty, Some("prod"))).unwrap_or_default();
        let mut expected = report.clone();
        expected["groups"][0]["next"] = "look:\n  oncehook stuck --stack prod".into();
        assert_eq!(found, expected);
        assert_eq!(document(&pretty, None), pretty);
    }
}
