//! `backfill-versions`: versions for entities that existed before their events were ordered.
//!
//! Lines are worked several at a time and counted in their order, so that an interruption can name
//! the line to go on from. Every write is conditional and never takes an entity back: running the
//! whole file again is right as well, only slower.

mod lines;

use crate::{
    args::Backfill as Args,
    failure::Failure,
    operator::{Change, Operator},
    output::{Fact, Page, Report, Table, Tone, count, shown},
    progress::Reached,
};
use config::{Config, Order};
use futures::{StreamExt, stream};
use ledger::{
    EntityKey, Message, Millis, Unit, Version, Waiter, succession,
    verbs::{self, Backfill, BackfillRefusal},
};
use lines::{Line, Said};
use serde::Serialize;
use std::time::Duration;
use workflow::ports::{Clock, Ledger, Outbox, PortError};

/// Entities written at the same time.
const AT_ONCE: usize = 16;
/// Malformed lines that are named; the others are counted.
const PROBLEMS_MAX: usize = 20;

/// What became of the file.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    file: String,
    dry_run: bool,
    lines: u64,
    set: u64,
    already: u64,
    newer: u64,
    ended: u64,
    malformed: u64,
    problems: Vec<Problem>,
    /// Whether the file was worked to its end.
    complete: bool,
    /// The line behind the last that is done.
    #[serde(skip)]
    next_line: u64,
    #[serde(skip)]
    stopped: Option<Failure>,
}

/// A line that says nothing usable.
#[derive(Debug, Serialize)]
struct Problem {
    line: u64,
    what: String,
}

/// What became of one line.
enum Came {
    Written(Result<(), BackfillRefusal>),
    Malformed(String),
}

/// Works the file from `args.from_line` on.
pub(crate) async fn run(
    ports: &(impl Ledger + Outbox + Clock),
    config: &Config,
    args: &Args,
    operator: &Operator,
) -> Result<Done, Failure> {
    let mut done = Done::new(args);
    let all = operator.interruptible(work(ports, config, args, operator, &mut done)).await;
    done.complete = all.is_some();
    match all {
        Some(Ok(())) => {}
        Some(Err(Stop::Failed(failure))) => return Err(failure),
        Some(Err(Stop::Unreachable(error))) => {
            let line = done.next_line;
            let said = format!("stopped at line {line}, everything before it is done: {error}");
            return Err(Failure::unreachable(said).with_next(done.go_on(operator)));
        }
        None => {
            let said = format!("at line {}, everything before it is done", done.next_line);
            let next = done.go_on(operator);
            done.stopped = Some(Failure::interrupted(&said).with_next(next));
        }
    }
    Ok(done)
}

async fn work(
    ports: &(impl Ledger + Outbox + Clock),
    config: &Config,
    args: &Args,
    operator: &Operator,
    done: &mut Done,
) -> Result<(), Stop> {
    let all = lines::open(&args.file)?.skip_while(|line| line.number < args.from_line);
    let mut pace = tokio::time::interval(Duration::from_secs(1) / args.rate);
    // A pause of the network is not made up for by a burst.
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let paced = stream::unfold((all, pace), |(mut all, mut pace)| async move {
        let line = all.next()?;
        pace.tick().await;
        Some((line, (all, pace)))
    });
    let mut results = Box::pin(
        paced
            .map(|line| async {
                let number = line.number;
                (number, one(ports, config, args, line).await)
            })
            .buffered(AT_ONCE),
    );
    let length = if operator.looks() { lines::count(&args.file) } else { 0 };
    let before = Reached { length: args.from_line - 1, count: 0 };
    let progress = operator.progress(length, before);
    while let Some((number, came)) = results.next().await {
        done.take(number, came?);
        progress.reach(
            Reached { length: number, count: done.lines },
            &format!("line {number} of {length}: {} set, {} malformed", done.set, done.malformed),
        );
    }
    Ok(())
}

/// Why the lines end early.
enum Stop {
    Failed(Failure),
    Unreachable(PortError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<PortError> for Stop {
    fn from(error: PortError) -> Self {
        Self::Unreachable(error)
    }
}

async fn one(
    ports: &(impl Ledger + Outbox + Clock),
    config: &Config,
    args: &Args,
    line: Line,
) -> Result<Came, PortError> {
    let ask = line.read.and_then(|said| ask(config, args.unit, said, ports.now()));
    let ask = match ask {
        Ok(ask) => ask,
        Err(what) => return Ok(Came::Malformed(what)),
    };
    if args.dry_run {
        let found = ports.entity(&ask.entity).await?;
        return Ok(Came::Written(verbs::backfill(found.as_ref(), &ask).map(|_| ())));
    }
    let written = ports.backfill(&ask).await?;
    if matches!(written, Ok(()) | Err(BackfillRefusal::Already)) && is_numbered(config, &ask.entity)
    {
        send_waiters(ports, &ask).await?;
    }
    Ok(Came::Written(written))
}

/// Who waited for this number, or for one before it, is worked now and not when its time is up.
async fn send_waiters(ports: &(impl Ledger + Outbox), ask: &Backfill) -> Result<(), PortError> {
    let entity = ports.entity(&ask.entity).await?;
    let after = succession(entity.as_ref(), ask.version);
    let overtaken = after.leaves.iter().filter_map(|member| Waiter::parse(member));
    let next = after.wakes.into_iter().map(|wake| wake.key);
    for key in overtaken.map(|waiter| waiter.key).chain(next) {
        let source = key.source().to_owned();
        ports.send(&Message::new(key, "", None), &source).await?;
    }
    Ok(())
}

fn is_numbered(config: &Config, entity: &EntityKey) -> bool {
    orders_of(config, entity).any(|order| matches!(order, Order::Sequence { .. }))
}

/// What a line asks for, or what is wrong with it.
fn ask(config: &Config, unit: Option<Unit>, said: Said, at: Millis) -> Result<Backfill, String> {
    let entity = EntityKey::parse(&said.entity)
        .map_err(|_| "the entity must read <namespace>#<entity type>#<entity id>".to_owned())?;
    let unit = unit_of(config, &entity, unit)?;
    let version = Version::read(said.version.as_ref(), unit).map_err(|error| error.to_string())?;
    if let Some(state) = &said.state {
        workflow::projection::check_state(state).map_err(|error| error.to_string())?;
    }
    Ok(Backfill { entity, version, state: said.state, at })
}

/// Its namespace and entity type.
fn type_of(entity: &EntityKey) -> (&str, &str) {
    let mut parts = entity.as_str().split('#');
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

fn orders_of<'c>(config: &'c Config, entity: &EntityKey) -> impl Iterator<Item = &'c Order> {
    let (namespace, entity_type) = type_of(entity);
    let projections = config.sources().flat_map(|source| &source.projections);
    projections
        .filter(move |one| one.namespace == namespace && one.entity_type == entity_type)
        .map(|one| &one.order)
}

/// How the events of an entity type write their versions.
fn unit_of(config: &Config, entity: &EntityKey, given: Option<Unit>) -> Result<Unit, String> {
    let (namespace, entity_type) = type_of(entity);
    match orders_of(config, entity).next() {
        Some(Order::Version { unit, .. }) => Ok(*unit),
        Some(Order::Sequence { .. }) => Ok(Unit::Integer),
        Some(Order::Fetch) => {
            Err(format!("{namespace}#{entity_type} is fetched, and compares no versions"))
        }
        Some(Order::None) => {
            Err(format!("{namespace}#{entity_type} holds sums, which have no version"))
        }
        None => given.ok_or_else(|| {
            format!("no projection writes {namespace}#{entity_type}; if that is right, add --unit")
        }),
    }
}

impl Done {
    fn new(args: &Args) -> Self {
        Self {
            file: args.file.display().to_string(),
            dry_run: args.dry_run,
            lines: 0,
            set: 0,
            already: 0,
            newer: 0,
            ended: 0,
            malformed: 0,
            problems: Vec::new(),
            complete: false,
            next_line: args.from_line,
            stopped: None,
        }
    }

    /// The command that goes on behind what is done.
    fn go_on(&self, operator: &Operator) -> String {
        operator.again(&[Change::Set("--from-line", self.next_line.to_string())])
    }

    fn take(&mut self, line: u64, came: Came) {
        self.lines += 1;
        self.next_line = line + 1;
        match came {
            Came::Written(Ok(())) => self.set += 1,
            Came::Written(Err(BackfillRefusal::Already)) => self.already += 1,
            Came::Written(Err(BackfillRefusal::Newer)) => self.newer += 1,
            Came::Written(Err(BackfillRefusal::Final)) => self.ended += 1,
            Came::Malformed(what) => {
                self.malformed += 1;
                if self.problems.len() < PROBLEMS_MAX {
                    self.problems.push(Problem { line, what });
                }
            }
        }
    }
}

impl Report for Done {
    fn needs_attention(&self) -> bool {
        self.malformed > 0
    }

    fn stopped(&self) -> Option<&Failure> {
        self.stopped.as_ref()
    }

    fn write(&self, page: &mut Page) {
        let lines = count(usize::try_from(self.lines).unwrap_or(usize::MAX), "line", "lines");
        let how = if self.dry_run { ", nothing written" } else { "" };
        page.heading(format!("{lines} of {}{how}", shown(&self.file)));
        let set = if self.dry_run { "would be set" } else { "set" };
        let mut table = Table::new(&["ENTITIES", "WHAT"]);
        let bad = if self.malformed > 0 { Tone::Bad } else { Tone::Plain };
        for (tone, number, what) in [
            (Tone::Good, self.set, set),
            (Tone::Plain, self.already, "have just this version"),
            (Tone::Plain, self.newer, "are newer already"),
            (Tone::Plain, self.ended, "have ended"),
            (bad, self.malformed, "malformed"),
        ] {
            table.row(tone, [number.to_string(), what.to_owned()]);
        }
        page.table(&table);
        if self.problems.is_empty() {
            return;
        }
        page.blank();
        let mut table = Table::new(&["LINE", "WHAT IS WRONG"]);
        for problem in &self.problems {
            table.row(Tone::Bad, [problem.line.to_string(), shown(&problem.what)]);
        }
        page.table(&table);
        let rest = self.malformed.saturating_sub(self.problems.len().try_into().unwrap_or(0));
        if rest > 0 {
            page.toned(Tone::Dim, format!("and {rest} more"));
        }
        page.blank();
        page.facts(&[Fact::new(
            "next",
            "mend these lines and run the file again: what is set is left alone",
        )]);
    }
}

#[cfg(test)]
mod tests;
