//! `reconcile`: one source compared with its provider's list now, as the stack does every hour.
//!
//! What is missing is claimed by the receiver's own use case, run here under the person's rights.

use super::replay::{Shown, far, open, unlock, within_memory};
use crate::{
    args::Reconcile as Args,
    context::{self, Context},
    failure::Failure,
    operator::Operator,
    output::{Fact, Page, Report, Tone, shown},
    time::{self, utc},
};
use aws::{Aws, Resource, Settings};
use config::Source;
use serde::Serialize;
use std::sync::Arc;
use workflow::{
    CertificateCache, Keyring, Receiver,
    ports::Entropy,
    reconcile::{Claims, Completeness, compare},
    replay::{
        Checkpoint, FailedEvent, Look, Pace, Stop,
        pager::{Pager, Window},
    },
};

const LOOKING: &[Resource] = &[Resource::LedgerTable, Resource::OutboundSecret];
const CLAIMING: &[Resource] = &[Resource::LedgerTable, Resource::OutboundSecret, Resource::Queue];
const AT_ONCE: usize = 16;
/// Failures named; the JSON document has them all.
const FAILURES_SHOWN: usize = 10;

/// What the comparison found.
#[derive(Debug, Serialize)]
pub(crate) struct Reconciled {
    source: String,
    since: String,
    until: String,
    dry_run: bool,
    #[serde(flatten)]
    found: Completeness,
    failures: Vec<FailedEvent>,
    #[serde(skip)]
    title: String,
}

/// Compares.
pub(crate) async fn run(
    context: &Context,
    args: &Args,
    operator: &Operator,
) -> Result<Reconciled, Failure> {
    let source = context.source(&args.source)?;
    if !args.dry_run {
        knows_mode(source, &context.settings)?;
    }
    let opening = open(context, source)?;
    let aws = Arc::new(context.connect(if args.dry_run { LOOKING } else { CLAIMING }).await?);
    let access = unlock(context, &aws, &opening).await?;
    let now = context::now();
    let (since, until) = (args.since.resolve(now), args.until.resolve(now));
    if since > until {
        let found = format!("the window ends ({}) before it begins ({})", utc(until), utc(since));
        return Err(Failure::usage(found).with_next("--since is the earlier of the two"));
    }
    within_memory(since, now, &context.settings.policy).map_err(|refused| {
        refused.with_next("a shorter --since; `oncehook replay` can feed older events in")
    })?;
    let window = Window::new(since, until);
    let begun = Checkpoint::new(source.name.as_str(), String::new(), window, Vec::new());
    let watch = Shown::new(operator, begun, now, opening.list.days);
    let pace = Pace { per_second: args.rate, at_once: AT_ONCE };
    let pace = (pace, context.settings.policy.remembered_ms());
    let list = (Pager::new(opening.list.clone(), opening.address.clone(), window), access);
    let compared = if args.dry_run {
        operator.interruptible(Box::pin(compare(&*aws, source, list, Look, &watch, pace))).await
    } else {
        let receiver = receiver(context, &aws);
        let claims = Claims::new(&receiver, source, note(&*aws));
        operator.interruptible(Box::pin(compare(&*aws, source, list, claims, &watch, pace))).await
    };
    let compared = compared.ok_or_else(|| {
        let said = format!(
            "in the comparison: {}; what is claimed stays claimed",
            far(&watch.last().tally)
        );
        Failure::interrupted(&said).with_next(operator.again(&[]))
    })?;
    let (found, tally) = compared.map_err(|stop| match stop {
        Stop::Unreachable(said) | Stop::NotKept(said) => {
            Failure::unreachable(said).with_next("run it again: what is claimed stays claimed")
        }
        Stop::Refused(said) => {
            Failure::usage(said).with_next("check the key in the outbound secret")
        }
    })?;
    Ok(Reconciled {
        source: source.name.to_string(),
        since: time::rfc3339(window.since),
        until: time::rfc3339(window.until),
        dry_run: args.dry_run,
        found,
        failures: tally.failures,
        title: source.preset.title().to_owned(),
    })
}

/// An event of the other mode is claimed as ignored and never worked, so which mode the source has is
/// not guessed at. Commands that claim nothing take any value.
fn knows_mode(source: &Source, settings: &Settings) -> Result<(), Failure> {
    let unset = source.live_from.as_ref().filter(|name| settings.parameter(name).is_none());
    let Some(name) = unset else { return Ok(()) };
    let variable = format!("ONCEHOOK_PARAM_{name}");
    let found = format!(
        "source `{}` reads `live` from {variable}, which is not set here: what is missing would be \
         claimed, and might be settled as of the other mode without being worked",
        source.name
    );
    Err(Failure::usage(found).with_next(format!(
        "set {variable} to true or false, as the stack's functions have it, or look with --dry-run"
    )))
}

/// Names the run too: rows of another one are no rows of this one.
fn note(entropy: &impl Entropy) -> String {
    let run: String = entropy.token().to_string().chars().take(12).collect();
    format!("a person, run {run}: compared by hand")
}

/// The receiver's use case, for its claims alone.
fn receiver(context: &Context, aws: &Arc<Aws>) -> Receiver<Aws> {
    Receiver {
        ports: Arc::clone(aws),
        config: context.config.clone(),
        policy: context.settings.policy.clone(),
        keyring: Keyring::new(context.settings.is_local()),
        certificates: CertificateCache::default(),
        replay: None,
        public_url: None,
    }
}

impl Reconciled {
    fn next(&self) -> String {
        let Completeness { missing, failed, .. } = self.found;
        let source = &self.source;
        match (missing, failed, self.dry_run) {
            (0, 0, _) => "nothing is missing".to_owned(),
            (_, 1.., _) => format!(
                "{failed} of them failed, and are named above: whether the ledger holds them is not known; \
                 mend the cause and run it again, what is claimed stays claimed"
            ),
            (_, 0, true) => "run it without --dry-run to claim what is missing".to_owned(),
            (_, 0, false) => format!("  oncehook events list --source {source} --since 10m"),
        }
    }
}

impl Report for Reconciled {
    /// A gap is worth a look, also when it is closed by now.
    fn needs_attention(&self) -> bool {
        self.found.missing > 0 || self.found.failed > 0
    }

    fn write(&self, page: &mut Page) {
        let tone = if self.needs_attention() { Tone::Bad } else { Tone::Good };
        page.toned(tone, self.found.sentence(&self.title));
        let mut facts = vec![Fact::data("window", format!("{} until {}", self.since, self.until))];
        for one in self.failures.iter().take(FAILURES_SHOWN) {
            let said = format!("{}: {}", shown(&one.id), shown(&one.why));
            facts.push(Fact::data("failed", said).in_tone(Tone::Bad));
        }
        if let Some(more @ 1..) = self.failures.len().checked_sub(FAILURES_SHOWN) {
            facts.push(Fact::new("failed", format!("and {more} more; see --json")));
        }
        facts.push(Fact::new("next", self.next()));
        page.facts(&facts);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use config::Config;
    use ledger::Millis;

    fn said(missing: u64, failed: u64) -> String {
        let window = Window::new(Millis(0), Millis(60_000));
        let failures = (0..failed).map(|n| FailedEvent {
            id: format!("evt_{n}"),
            why: "no answer from the ledger".to_owned(),
        });
        let reconciled = Reconciled {
            source: "stripe-live".to_owned(),
            since: String::new(),
            until: String::new(),
            dry_run: false,
            found: Completeness {
                window,
                listed: 20,
                held: 20 - failed,
                missing,
                late: 0,
                failed,
                forgotten: 0,
            },
            failures: failures.collect(),
            title: "Stripe".to_owned(),
        };
        assert_eq!(reconciled.needs_attention(), missing + failed > 0);
        let mut page = Page::default();
        reconciled.write(&mut page);
        anstream::adapter::strip_str(page.text()).to_string()
    }

    #[test]
    fn nothing_is_missing_is_not_said_of_events_that_failed() {
        assert!(said(0, 0).contains("nothing is missing"), "{}", said(0, 0));
        for missing in [0, 2] {
            let text = said(missing, 12);
            assert!(!text.contains("nothing is missing"), "{text}");
            assert!(text.contains("12 of them failed, and are named above"), "{text}");
            assert!(text.contains("evt_9: no answer") && text.contains("and 2 more"), "{text}");
        }
        assert!(said(2, 0).contains("oncehook events list --source stripe-live"), "{}", said(2, 0));
    }

    #[test]
    fn the_mode_of_a_source_is_not_guessed_at_where_events_are_claimed() {
        let sources = "[sources.s]\npreset = \"stripe\"\nsecret = \"s\"\nlive = \"${live}\"\n\
                       [sources.t]\npreset = \"stripe\"\nsecret = \"t\"\nlive = false\n";
        let filler = |_: &str| Some("true".to_owned());
        let config = Config::parse("sources.toml", sources, &filler).unwrap();
        let source = |name| config.source(name).unwrap();
        let settings = |variables: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            Settings::from_variables(variables.iter().map(owned)).unwrap()
        };
        let refused = knows_mode(source("s"), &settings(&[])).unwrap_err();
        assert!(refused.to_string().contains("ONCEHOOK_PARAM_LIVE, which is not set"), "{refused}");
        assert!(refused.next().unwrap().contains("--dry-run"));
        assert!(knows_mode(source("s"), &settings(&[("ONCEHOOK_PARAM_LIVE", "false")])).is_ok());
        assert!(knows_mode(source("t"), &settings(&[])).is_ok());
    }
}
