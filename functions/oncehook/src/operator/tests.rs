//! What an operator typed and how long they wait, and operators for the tests of commands.

use super::*;
use indicatif::InMemoryTerm;

impl Operator {
    /// Somebody who typed this, has all the time in the world and looks at no bar.
    pub(crate) fn typing(line: &str) -> Self {
        Self {
            typed: line.split_whitespace().map(str::to_owned).collect(),
            screen: Screen::Nowhere,
            patience: Patience::Until(Box::new(|| false)),
        }
    }

    /// The same, until they press Ctrl-C because this is so.
    pub(crate) fn leaving_when(self, enough: impl Fn() -> bool + 'static) -> Self {
        Self { patience: Patience::Until(Box::new(enough)), ..self }
    }

    /// The same, with an eye on the bar.
    pub(crate) fn looking_at(self, terminal: &InMemoryTerm) -> Self {
        Self { screen: Screen::Memory(terminal.clone()), ..self }
    }
}

fn again(line: &str, changes: &[Change]) -> String {
    Operator::typing(line).again(changes)
}

#[test]
fn the_command_that_goes_on_has_each_option_once_where_it_was_typed() {
    let changes = [
        Change::Set("--since", "2026-11-30T12:00:00.000Z".to_owned()),
        Change::Set("--run", "r 1".to_owned()),
        Change::Drop("--fresh"),
    ];
    for (typed, expected) in [
        (
            "oncehook replay --since 2h --by anna --fresh",
            "oncehook replay --since 2026-11-30T12:00:00.000Z --by anna --run 'r 1'",
        ),
        (
            "oncehook replay --since=2h --run=old --by=anna",
            "oncehook replay --since 2026-11-30T12:00:00.000Z --run 'r 1' --by=anna",
        ),
        (
            "oncehook replay --sincere 1 -- --since 2h",
            "oncehook replay --sincere 1 --since 2026-11-30T12:00:00.000Z --run 'r 1' -- --since 2h",
        ),
    ] {
        assert_eq!(again(typed, &changes), expected);
    }
}

#[test]
fn words_of_the_command_are_quoted_as_a_shell_needs_them() {
    let operator = Operator {
        typed: ["oncehook", "replay", "--reason", "anna's outage", "--by=a b"]
            .map(str::to_owned)
            .to_vec(),
        ..Operator::typing("")
    };
    assert_eq!(operator.again(&[]), r"oncehook replay --reason 'anna'\''s outage' '--by=a b'");
}

#[tokio::test]
async fn work_is_done_to_its_end_or_let_go_of() {
    let patient = Operator::typing("oncehook");
    assert_eq!(patient.interruptible(async { 7 }).await, Some(7));
    let begun = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = begun.clone();
    let hasty = Operator::typing("oncehook").leaving_when(move || seen.get());
    let endless = async {
        begun.set(true);
        std::future::pending::<()>().await;
    };
    assert_eq!(hasty.interruptible(endless).await, None);
}
