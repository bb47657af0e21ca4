//! The commands, one file each, and the way from the command line to them.
//!
//! A command is a function from ports and arguments to a report. It is generic over the ports, so
//! that tests run it on the in-memory twin; only here does it meet AWS.

pub(crate) mod backfill;
pub(crate) mod completions;
pub(crate) mod dead_by_hand;
pub(crate) mod dead_list;
pub(crate) mod dead_redrive;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod events_list;
pub(crate) mod events_show;
pub(crate) mod reconcile;
pub(crate) mod replay;
pub(crate) mod replay_ledger;
pub(crate) mod send;
pub(crate) mod state_show;
pub(crate) mod stuck;
pub(crate) mod tail;
pub(crate) mod vectors;
pub(crate) mod verify;

use crate::{
    args::{Cli, Command, Dead, Events, Global, State, Tail, Which},
    context::Context,
    failure::Failure,
    http::Http,
    operator::Operator,
    output::{self, Report},
};
use aws::Resource;

/// Whether a person should act.
pub(crate) type Attention = bool;

const LEDGER: &[Resource] = &[Resource::LedgerTable];
const STATE: &[Resource] = &[Resource::StateTable];
const STATE_AND_QUEUE: &[Resource] = &[Resource::StateTable, Resource::Queue];
const LEDGER_AND_QUEUE: &[Resource] = &[Resource::LedgerTable, Resource::Queue];
const LEDGER_AND_QUEUES: &[Resource] =
    &[Resource::LedgerTable, Resource::Queue, Resource::DeadLetterQueue];

/// Runs one command and prints what it found.
pub(crate) async fn run(cli: Cli) -> Result<Attention, Failure> {
    let global = cli.global;
    let operator = Operator::here(global.json);
    match cli.command {
        Command::Send(args) => {
            let context = resolve(&global).await?;
            print(&send::run(&context, &args, &operator).await?, &global)
        }
        Command::Verify(args) => match &args.vectors {
            Some(path) => print(&vectors::run(path)?, &global),
            None => print(&verify::run(&resolve(&global).await?, &args).await?, &global),
        },
        Command::Events(args) => events(&args, &global).await,
        Command::State(State::Show { key }) => {
            let aws = resolve(&global).await?.connect(STATE).await?;
            print(&state_show::run(&aws, &key).await?, &global)
        }
        Command::Dead(args) => dead(&args, &global, &operator).await,
        Command::Stuck(args) => {
            let context = resolve(&global).await?;
            let aws = context.connect(LEDGER).await?;
            print(&stuck::run(&aws, &context.settings.policy, &args).await?, &global)
        }
        Command::BackfillVersions(args) => {
            let context = resolve(&global).await?;
            let aws = context.connect(STATE_AND_QUEUE).await?;
            let done = backfill::run(&aws, &context.config, &args, &operator).await?;
            print(&done, &global)
        }
        Command::Tail(args) => tail(&args, &global, &operator).await,
        Command::Doctor(_) => print(&doctor::run(&resolve(&global).await?).await?, &global),
        Command::Replay(args) if args.providers => print(&replay::providers()?, &global),
        Command::Replay(args) if args.from_ledger => {
            let context = resolve(&global).await?;
            let aws = context.connect(LEDGER_AND_QUEUE).await?;
            let policy = &context.settings.policy;
            let args = args.into();
            let ran = replay_ledger::run(&aws, &context.config, policy, &args, &operator);
            print(&Box::pin(ran).await?, &global)
        }
        Command::Replay(args) => {
            let context = resolve(&global).await?;
            print(&Box::pin(replay::run(&context, &args, &operator)).await?, &global)
        }
        Command::Reconcile(args) => {
            let context = resolve(&global).await?;
            print(&Box::pin(reconcile::run(&context, &args, &operator)).await?, &global)
        }
        Command::Env(_) => print(&env::run(&global).await?, &global),
        Command::Completions(args) => print(&completions::run(&args), &global),
    }
}

async fn tail(args: &Tail, global: &Global, operator: &Operator) -> Result<Attention, Failure> {
    let context = resolve(global).await?;
    let aws = context.connect(LEDGER).await?;
    let wire = Http::new(args.forward.as_deref().unwrap_or_default())?;
    let (config, json) = (&context.config, global.json);
    Box::pin(tail::run(&aws, config, &wire, args, json, operator)).await
}

async fn events(args: &Events, global: &Global) -> Result<Attention, Failure> {
    let context = resolve(global).await?;
    let aws = context.connect(LEDGER).await?;
    match args {
        Events::List(args) => print(&events_list::run(&aws, &context.config, args).await?, global),
        Events::Show(args) => {
            print(&events_show::run(&aws, &context.settings.policy, args).await?, global)
        }
    }
}

async fn dead(args: &Dead, global: &Global, operator: &Operator) -> Result<Attention, Failure> {
    let context = resolve(global).await?;
    let needed = match args {
        Dead::Redrive(args) if args.which() == Which::Keys => LEDGER_AND_QUEUE,
        Dead::Redrive(_) => LEDGER_AND_QUEUES,
        Dead::List(_) | Dead::Show(_) | Dead::Resolve(_) => LEDGER,
    };
    let aws = context.connect(needed).await?;
    match args {
        Dead::List(args) => print(&dead_list::run(&aws, args).await?, global),
        Dead::Show(args) => {
            print(&events_show::run_dead(&aws, &context.settings.policy, args).await?, global)
        }
        Dead::Redrive(args) if args.which() == Which::Keys => {
            print(&dead_by_hand::redrive(&aws, args).await?, global)
        }
        Dead::Redrive(args) => {
            let done = Box::pin(dead_redrive::run(&aws, args, operator));
            print(&done.await?, global)
        }
        Dead::Resolve(args) => {
            let policy = &context.settings.policy;
            print(&dead_by_hand::resolve(&aws, policy, args).await?, global)
        }
    }
}

async fn resolve(global: &Global) -> Result<Context, Failure> {
    Context::resolve(global).await
}

fn print(report: &impl Report, global: &Global) -> Result<Attention, Failure> {
    output::print(report, global)?;
    report.stopped().cloned().map_or_else(|| Ok(report.needs_attention()), Err)
}

#[cfg(test)]
mod tests;
