//! The command line as typed: what there is, what is allowed, and help with examples.
//!
//! Values are parsed here and nowhere else, so that a command sees keys, times and pointers, and
//! never text that might be one. What needs the environment or the configuration is resolved in
//! [`crate::context`].

mod backfill;
mod doctor;
mod filter;
mod redrive;
mod replay;
mod tail;
pub(crate) mod wrong_call;

pub(crate) use backfill::Backfill;
pub(crate) use doctor::Doctor;
pub(crate) use filter::{Filter, Standing};
pub(crate) use redrive::{Redrive, Which};
pub(crate) use replay::{FromLedger, Reconcile, Replay};
pub(crate) use tail::Tail;

use crate::time::{self, Moment};
use clap::{Args, Parser, Subcommand, ValueHint};
use ledger::{EntityKey, EventKey, Millis, SourceName};
use serde_json::Value;
use std::path::PathBuf;

const EXAMPLES: &str = "\
A command talks to the stack that the environment names (ONCEHOOK_LEDGER_TABLE and its neighbours, \
which `make up` writes to .local/env, and `oncehook env` prints), or to the deployed stack of \
--stack NAME.

Examples:
  oncehook send events/stripe_subscription_created.json
  oncehook events list --since 1h --status dead
  oncehook events show stripe-live#evt_1TgQ3wKZ8mWcYbR2k5Rv9sQa
  oncehook dead list --stack oncehook
  oncehook dead redrive stripe-live#evt_1 --by anna --reason mended
  oncehook doctor --stack oncehook

Exit codes:
  0  fine
  1  something needs attention
  2  the call is wrong
  3  AWS cannot be reached
130  interrupted: it says how far it is, and with which command it goes on";

/// `{n}`, as it is typed. Help turns the bare letters into a line break; a style that begins and ends
/// with nothing between stands in them, so that it does not, and shows nowhere.
macro_rules! n {
    () => {
        "{\u{1b}[0mn}"
    };
}

/// Find, explain, send, verify and re-run webhook events
#[derive(Debug, Parser)]
#[command(name = "oncehook", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Print one JSON document instead of text
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,
    /// Talk to the deployed stack NAME: its outputs say where everything is
    #[arg(long, global = true, value_name = "NAME", help_heading = "Everywhere")]
    pub(crate) stack: Option<String>,
}

/// What there is to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sign a sample event as its provider would, and post it
    Send(Send),
    /// Say whether a captured request is authentic, and if not, why
    Verify(Verify),
    /// Events in the ledger: list them, or explain one
    #[command(subcommand)]
    Events(Events),
    /// The state of an entity, and which event made it
    #[command(subcommand)]
    State(State),
    /// Dead events: list, explain, run again, or close
    #[command(subcommand)]
    Dead(Dead),
    /// Events that are late: why, since when, and what to do
    Stuck(Stuck),
    /// Feed past events in again: from a provider's list, unless --dry-run; from the ledger, only with
    /// --execute
    Replay(Replay),
    /// Compare the ledger with a provider's list, and claim what is missing, unless --dry-run
    Reconcile(Reconcile),
    /// Give versions to entities that existed before, unless --dry-run
    BackfillVersions(Backfill),
    /// Follow what comes in; with --forward also on this machine
    Tail(Tail),
    /// Check a deployed stack: what was found, what was expected, what to do
    Doctor(Doctor),
    /// Print the variables of a deployed stack, for a shell to take over
    Env(Env),
    /// Print completions for a shell
    Completions(Completions),
}

/// `oncehook send`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "\
Examples:
  oncehook send events/github_push.json --times 200 --parallel 50
  oncehook send events/github_push.json --id 'load-",
    n!(),
    "' --times 100
  oncehook send events/stripe_invoice_paid.json --id evt_test1 \\
    --set /data/object/amount_paid=500
  oncehook send events/stripe_subscription_created.json --forge

A forged delivery must be refused with 401; then all is well."
))]
pub(crate) struct Send {
    /// A sample request; events/README.md describes the file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The source to post to, instead of the one the sample names
    #[arg(long, value_parser = SourceName::new)]
    pub(crate) source: Option<SourceName>,
    // Another event id.
    #[arg(long, value_name = "ID", value_parser = word, help = concat!("Another event id; `", n!(), "` becomes the number of the delivery"))]
    pub(crate) id: Option<String>,
    /// How often to deliver it
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) times: u32,
    /// How many deliveries at the same time
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) parallel: u16,
    // A change to the body.
    #[arg(long, value_name = "/POINTER=VALUE", value_parser = Set::parse, help = concat!("Change a value of the body: a JSON Pointer and JSON or text; `", n!(), "` as with --id"))]
    pub(crate) set: Vec<Set>,
    /// Sign as if it were this time (Unix seconds or RFC 3339) instead of now
    #[arg(long, value_name = "TIME", value_parser = time::instant)]
    pub(crate) at: Option<Millis>,
    /// Spoil the signature: the delivery must be refused
    #[arg(long)]
    pub(crate) forge: bool,
    #[command(flatten)]
    pub(crate) keys: KeysFrom,
}

/// Where signing keys come from.
#[derive(Debug, Args)]
pub(crate) struct KeysFrom {
    /// Read the signing keys from a file in the form of the secret, not from the stack
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) secrets: Option<PathBuf>,
}

/// A change to a sample's body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Set {
    /// Where, as a JSON Pointer.
    pub(crate) pointer: String,
    /// What to put there.
    pub(crate) value: Value,
}

impl Set {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = "write /pointer=value, such as /data/object/status=active";
        let (pointer, value) = text.split_once('=').ok_or(expected)?;
        if !pointer.starts_with('/') {
            return Err(format!("{pointer:?} is no JSON Pointer; {expected}"));
        }
        // What is no JSON is meant as text, so that nobody must quote twice in a shell.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok(Self { pointer: pointer.to_owned(), value })
    }
}

/// `oncehook verify`
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["request", "vectors"]),
    after_help = "\
Examples:
  oncehook verify --source stripe-live --request captured.json
  oncehook verify --source stripe-live --request captured.json --now 1796040000
  oncehook verify --source github --request captured.json --secrets keys.json
  oncehook verify --vectors tests/vectors/signatures.json

A captured request has the shape of a sample in events/, its headers with the signature, its body \
as a string or as `body_base64`, byte for byte. With --now it is judged as of that time."
)]
pub(crate) struct Verify {
    /// The source it was sent to
    #[arg(long, value_parser = SourceName::new, conflicts_with = "vectors", required_unless_present = "vectors")]
    pub(crate) source: Option<SourceName>,
    /// The captured request
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) request: Option<PathBuf>,
    /// Judge as of this time (Unix seconds or RFC 3339) instead of now
    #[arg(long, value_name = "TIME", value_parser = time::instant, conflicts_with = "vectors")]
    pub(crate) now: Option<Millis>,
    /// The signing certificate (PEM) that the request points to, where its provider uses one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "vectors")]
    pub(crate) certificate: Option<PathBuf>,
    /// Run a file of test vectors instead: providers with a preset must reach every verdict
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) vectors: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeysFrom,
}

/// `oncehook events`
#[derive(Debug, Subcommand)]
pub(crate) enum Events {
    /// List events, newest first
    List(EventsList),
    /// Explain one event: where it is, why, and what happens next
    #[command(after_help = "\
Examples:
  oncehook events show stripe-live#evt_1TgQ3wKZ8mWcYbR2k5Rv9sQa
  oncehook events show stripe-live#evt_1 --body
  oncehook events show stripe-live#evt_1 --save-body event.json

A saved body is the provider's, byte for byte.")]
    Show(Show),
}

/// `oncehook events list`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook events list
  oncehook events list --source stripe-live --since 2h
  oncehook events list --status dead,failed --since 3d
  oncehook events list --type invoice.paid \\
    --since 2026-11-30T08:00:00Z --until 2026-11-30T09:00:00Z

Reads the index by_day, never the whole table. --status and --type read the rows of the window \
until enough match.")]
pub(crate) struct EventsList {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Received since: 15m, 2h, 3d, or a time
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = Moment::parse)]
    pub(crate) since: Moment,
    /// Received until: an age or a time; now unless given
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    pub(crate) until: Option<Moment>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
}

/// `oncehook events show`, `oncehook dead show`
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The ledger key: `<source>#<event id>`
    #[arg(value_name = "KEY", value_parser = EventKey::parse)]
    pub(crate) key: EventKey,
    /// Print the body too
    #[arg(long)]
    pub(crate) body: bool,
    /// Write the body to a file, byte for byte
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_body: Option<PathBuf>,
}

/// `oncehook state`
#[derive(Debug, Subcommand)]
pub(crate) enum State {
    /// Show an entity: its state, its version, and the event that made it
    #[command(after_help = "\
Example:
  oncehook state show stripe-live#subscription#sub_1TgQ3vKZ8mWcYbR2xN7dLpHa")]
    Show {
        /// The state key: `<namespace>#<entity type>#<entity id>`
        #[arg(value_name = "KEY", value_parser = entity_key)]
        key: EntityKey,
    },
}

/// `oncehook dead`
#[derive(Debug, Subcommand)]
pub(crate) enum Dead {
    /// List dead events, grouped by what went wrong
    #[command(after_help = "\
Examples:
  oncehook dead list
  oncehook dead list --source stripe-live --json")]
    List(DeadList),
    /// Explain one dead event: what killed it, under which build, and what to do
    #[command(after_help = "\
Examples:
  oncehook dead show stripe-live#evt_1TgQ3wKZ8mWcYbR2k5Rv9sQa
  oncehook dead show stripe-live#evt_1 --body
  oncehook dead show stripe-live#evt_1 --save-body event.json

A saved body is the provider's, byte for byte.")]
    Show(Show),
    /// Give dead events a fresh budget and send them to the queue; many at once only with --execute
    Redrive(Redrive),
    /// Close dead events without running them again
    #[command(after_help = "\
Example:
  oncehook dead resolve stripe-live#evt_1 --by anna --reason 'ticket 4711'")]
    Resolve(ByHand),
}

/// `oncehook dead list`
#[derive(Debug, Args)]
pub(crate) struct DeadList {
    /// Only this source
    #[arg(long, value_parser = SourceName::new)]
    pub(crate) source: Option<SourceName>,
    /// How many dead events to read at most
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

/// What a person does to dead events.
#[derive(Debug, Args)]
pub(crate) struct ByHand {
    /// Ledger keys: `<source>#<event id>`
    #[arg(value_name = "KEY", required = true, value_parser = EventKey::parse)]
    pub(crate) keys: Vec<EventKey>,
    /// Who does it
    #[arg(long, value_name = "WHO", value_parser = word)]
    pub(crate) by: String,
    /// Why
    #[arg(long, value_name = "WHY", value_parser = word)]
    pub(crate) reason: String,
}

/// `oncehook stuck`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  oncehook stuck || echo 'somebody should look'

Exits with 1 if anything is stuck, or if not all that may be was read.")]
pub(crate) struct Stuck {
    /// How many events to read at most, the most overdue first
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
}

/// `oncehook env`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  eval \"$(oncehook env --stack oncehook)\"

Behind it this shell has the names that .local/env has for the local stack: ONCEHOOK_URL, the tables, \
queues, secrets and functions. Commands then need no --stack, and lines of the runbook can be pasted.")]
pub(crate) struct Env {}

/// `oncehook completions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncehook completions bash \\
    > ~/.local/share/bash-completion/completions/oncehook
  oncehook completions zsh > ~/.zfunc/_oncehook")]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

fn entity_key(text: &str) -> Result<EntityKey, String> {
    // The key's own error speaks of ledger keys.
    EntityKey::parse(text)
        .map_err(|_| format!("state key {text:?} must read <namespace>#<entity type>#<entity id>"))
}

/// A short text of a person: not blank, one line.
fn word(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it must say something".to_owned());
    }
    if text.chars().any(char::is_control) || text.chars().count() > 500 {
        return Err("at most 500 characters on one line".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
