//! `replay`: a provider's past events, read from its own list and posted to the replay route.
//!
//! What is shown is what the ledger said: new, or known. A dry run asks the ledger itself, a hundred
//! keys at a time, and posts nothing. How far a run is lies in a file, so that the same command goes
//! on where the last one was broken off. Ctrl-C breaks it off in the middle of a page, which is then
//! read again: what was posted of it meets its own rows.

mod chart;
mod kept;
mod providers;
mod report;
mod shown;

pub(crate) use providers::run as providers;
pub(super) use shown::Shown;

use crate::{
    args::Replay as Args,
    context::Context,
    failure::Failure,
    operator::{Change, Operator},
    time::utc,
};
use aws::{Aws, Resource};
use config::Source;
use kept::{Asked, Kept};
use ledger::{Millis, Policy};
use report::Replayed;
use workflow::{
    outbound::{ApiKey, NoKey, api_key},
    ports::{Clock as _, Entropy, Secret},
    replay::{
        Access, Broken, Checkpoint, Feed, Look, Notebook, Opening, Pace, Posts, Replay, Stop,
        Tally, Words,
        pager::{Pager, Window},
    },
};

const DRY: &[Resource] = &[Resource::LedgerTable, Resource::OutboundSecret];
const POSTING: &[Resource] =
    &[Resource::LedgerTable, Resource::OutboundSecret, Resource::ReplaySecret];
/// Events posted at the same time.
const AT_ONCE: usize = 16;

/// Reads the list and feeds the events in.
pub(crate) async fn run(
    context: &Context,
    args: &Args,
    operator: &Operator,
) -> Result<Replayed, Failure> {
    let name = args.source.as_ref().ok_or_else(|| Failure::usage("--source is missing"))?;
    let source = context.source(name)?;
    let opening = open(context, source)?;
    let aws = context.connect(if args.dry_run { DRY } else { POSTING }).await?;
    let access = unlock(context, &aws, &opening).await?;
    let now = aws.now();
    let asked = Asked::from(args);
    let kept = if args.dry_run { None } else { Some(Kept::at(args, context.url()?, source)?) };
    let resumed = match &kept {
        Some(kept) if !args.fresh => kept.unfinished(&asked)?,
        Some(_) | None => None,
    };
    let is_resumed = resumed.is_some();
    let has_moved = resumed.as_ref().is_some_and(|one| !one.goes_on_at(&opening.address));
    let checkpoint = match resumed {
        Some(checkpoint) if has_moved => checkpoint.anew(),
        Some(checkpoint) => checkpoint,
        None => begin(args, source, now, &aws, &context.settings.policy)?,
    };
    let mut notes = beyond(&opening, checkpoint.window, now, source.preset.title());
    if is_resumed {
        let till = utc(checkpoint.window.until);
        notes.push(format!("went on with the run that was broken off; its window ends at {till}"));
    }
    if has_moved {
        let why = "the list has moved to another host, where the next page is none";
        notes.push(format!("{why}: read from the first page, what is there counts as duplicate"));
    }
    let shown = Shown::new(operator, checkpoint.clone(), now, opening.list.days);
    let pager = Pager::new(opening.list.clone(), opening.address.clone(), checkpoint.window);
    let remembered_ms = context.settings.policy.remembered_ms();
    let remembered_ms = Some(remembered_ms).filter(|_| !args.beyond_retention);
    let parts = Parts { aws: &aws, source, pager, access, shown: &shown, args, remembered_ms };
    let done = if let Some(kept) = &kept {
        let token = token(context, &aws, source).await?;
        let words = Words {
            by: args.by.clone().unwrap_or_default(),
            reason: args.reason.clone().unwrap_or_default(),
            run: checkpoint.run.clone(),
        };
        let posts = Posts::new(&aws, &shown, context.url()?, name.as_str(), &token, &words);
        let notebook = kept.notebook(&asked);
        operator.interruptible(Box::pin(parts.run(posts, checkpoint, &notebook))).await
    } else {
        operator.interruptible(Box::pin(parts.run(Look, checkpoint, &Nowhere))).await
    };
    // To begin anew is not to go on.
    let again = operator.again(&[Change::Drop("--fresh")]);
    let (checkpoint, interrupted) = match done {
        Some(Ok(checkpoint)) => (checkpoint, None),
        Some(Err(broken)) => return Err(broken_off(&broken, again)),
        None => {
            let last = shown.last();
            let interrupted = interrupted(&last, args.dry_run).with_next(again);
            (last, Some(interrupted))
        }
    };
    if let (None, Some(kept)) = (&checkpoint.next, &kept) {
        kept.forget()?;
    }
    Ok(Replayed::new(source, checkpoint, args.dry_run, notes, interrupted))
}

/// The list, or what there is instead.
pub(super) fn open<'s>(context: &Context, source: &'s Source) -> Result<Opening<'s>, Failure> {
    let elsewhere = context.settings.list_address(source.name.as_str());
    Opening::of(source, elsewhere).map_err(|no_list| {
        let title = source.preset.title();
        Failure::usage(format!("source `{}` ({title}): {no_list}", source.name)).with_next(format!(
            "`oncehook replay --providers` says who lists its events; an address belongs into \
             infra/sources.toml, [sources.{}.replay]",
            source.name
        ))
    })
}

/// The key of the list.
pub(super) async fn unlock(
    context: &Context,
    aws: &Aws,
    opening: &Opening<'_>,
) -> Result<Access, Failure> {
    let secret = (Secret::Outbound, "ONCEHOOK_OUTBOUND_SECRET_ID");
    let key = key(context, aws, secret, opening.secret).await?;
    Ok(Access::new(opening.list.auth.clone(), key))
}

async fn token(context: &Context, aws: &Aws, source: &Source) -> Result<ApiKey, Failure> {
    let secret = (Secret::Replay, "ONCEHOOK_REPLAY_SECRET_ID");
    key(context, aws, secret, source.name.as_str()).await
}

async fn key(
    context: &Context,
    aws: &Aws,
    (secret, variable): (Secret, &str),
    name: &str,
) -> Result<ApiKey, Failure> {
    let found = api_key(aws, secret, name, context.settings.is_local()).await;
    found.map_err(|no_key| match no_key {
        NoKey::Unreadable(error) => Failure::from(error),
        no_key @ (NoKey::NotAnObject | NoKey::NoEntry(_) | NoKey::Unusable { .. }) => {
            let what = match secret {
                Secret::Replay => "a token of at least 32 characters",
                Secret::Outbound | Secret::Signing => "the provider's API key",
            };
            Failure::usage(no_key.to_string()).with_next(format!(
                "store {what} as {{\"{name}\": [{{\"kid\": \"2026-11\", \"key\": \"...\"}}]}} in the \
                 secret that ${variable} names, beside its other entries"
            ))
        }
    })
}

fn begin(
    args: &Args,
    source: &Source,
    now: Millis,
    entropy: &impl Entropy,
    policy: &Policy,
) -> Result<Checkpoint, Failure> {
    let since = args.since.map_or(now, |since| since.resolve(now));
    let until = args.until.map_or(now, |until| until.resolve(now)).min(now);
    if since > until {
        let found = format!("the window ends ({}) before it begins ({})", utc(until), utc(since));
        return Err(Failure::usage(found).with_next("--since is the earlier of the two"));
    }
    if !args.beyond_retention {
        within_memory(since, now, policy).map_err(|refused| {
            refused.with_next(
                "a shorter --since, or --beyond-retention where you know that none of them ever came",
            )
        })?;
    }
    let run: String = entropy.token().to_string().chars().take(12).collect();
    let window = Window::new(since, until);
    Ok(Checkpoint::new(source.name.as_str(), run, window, args.event_type.clone()))
}

/// What happened before the ledger's memory may have come, been settled and be gone: it would pass for
/// missing, and what adds would be counted a second time.
pub(super) fn within_memory(since: Millis, now: Millis, policy: &Policy) -> Result<(), Failure> {
    let earliest = now.minus(policy.remembered_ms());
    if since >= earliest {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the ledger remembers what happened since {}, and this window begins at {}: settled rows go \
         after RetentionDays ({}), so an older event that came and is gone would be taken for new",
        utc(earliest),
        utc(since),
        policy.retention_days
    )))
}

/// What the provider no longer lists of the window.
fn beyond(opening: &Opening<'_>, window: Window, now: Millis, title: &str) -> Vec<String> {
    let earliest = opening.reaches_back_to(now).filter(|earliest| window.since < *earliest);
    let said = earliest.map(|earliest| {
        format!(
            "{title} lists nothing from before {}: the window's beginning is beyond reach",
            utc(earliest)
        )
    });
    said.into_iter().collect()
}

fn broken_off(broken: &Broken, again: String) -> Failure {
    let Broken { checkpoint, stop } = broken;
    let far = far(&checkpoint.tally);
    match stop {
        Stop::Unreachable(said) => Failure::unreachable(format!("{said}; {far}")).with_next(again),
        Stop::NotKept(_) => Failure::usage(format!("{stop}; {far}"))
            .with_next("choose another place with --checkpoint"),
        Stop::Refused(said) => Failure::usage(format!("{said}; {far}")).with_next(
            "the key belongs into the outbound secret, the token into the replay secret, and the \
             stack needs ReplayRoute=on; where the provider refuses to go on, --fresh begins anew",
        ),
    }
}

/// How far a run is, in figures.
pub(super) fn far(tally: &Tally) -> String {
    format!(
        "so far {} fetched, {} new, {} duplicate, {} failed",
        tally.fetched, tally.new, tally.duplicate, tally.failed
    )
}

fn interrupted(last: &Checkpoint, is_dry: bool) -> Failure {
    let read = match last.oldest {
        Some(oldest) => format!("in the window, which is read back to {}", utc(oldest)),
        None => "before a page was done".to_owned(),
    };
    let kept = if is_dry { "; a dry run begins anew" } else { "" };
    Failure::interrupted(&format!("{read}: {}{kept}", far(&last.tally)))
}

/// What a run stands on, whatever it feeds.
struct Parts<'r> {
    aws: &'r Aws,
    source: &'r Source,
    pager: Pager,
    access: Access,
    shown: &'r Shown,
    args: &'r Args,
    remembered_ms: Option<u64>,
}

impl Parts<'_> {
    async fn run(
        self,
        feed: impl Feed,
        checkpoint: Checkpoint,
        notebook: &(impl Notebook + Sync),
    ) -> Result<Checkpoint, Box<Broken>> {
        let replay = Replay {
            ports: self.aws,
            source: self.source,
            pager: self.pager,
            access: &self.access,
            feed,
            watch: self.shown,
            pace: Pace { per_second: self.args.rate, at_once: AT_ONCE },
            remembered_ms: self.remembered_ms,
        };
        replay.run(checkpoint, notebook, None).await
    }
}

/// A dry run keeps nothing.
pub(super) struct Nowhere;

impl Notebook for Nowhere {
    async fn save(&self, _checkpoint: &Checkpoint) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::{args::Command, testing};
    use workflow::twin::Twin;

    #[test]
    fn a_window_longer_than_the_ledger_remembers_is_refused_unless_a_person_knows_better() {
        let (now, policy) =
            (Millis(1_796_040_000_000), Policy { retention_days: 7, ..Policy::default() });
        let config = testing::config();
        let source = config.source("stripe-live").unwrap();
        let begun = |since: &str| {
            let line = format!("oncehook replay --source stripe-live --dry-run --since {since}");
            let Command::Replay(args) = testing::command(&line) else { panic!("{line}") };
            begin(&args, source, now, &Twin::new(policy.clone(), now), &policy)
        };
        assert_eq!(begun("6d").unwrap().window.since, now.minus(6 * 86_400_000));
        let refused = begun("20d").unwrap_err();
        assert!(refused.to_string().contains("RetentionDays (7)"), "{refused}");
        assert!(refused.next().unwrap().contains("--beyond-retention"));
        assert!(begun("20d --beyond-retention").is_ok());
    }
}
