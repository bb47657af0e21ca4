//! `send`: a sample, signed as its provider signs, posted as its provider posts.
//!
//! Each delivery is signed by itself, as on a provider's retry: the same event, a new signature.

use crate::{
    args::{Send, Set},
    context::Context,
    delivery::{Delivery, Draft},
    failure::Failure,
    http::{Answered, Http, Wire},
    operator::Operator,
    output::{Fact, Page, Report, Table, Tone, count, quoted, shown},
    progress::Reached,
    sample::Sample,
};
use config::Source;
use futures::{StreamExt as _, stream};
use ledger::{Millis, SourceName};
use serde::Serialize;
use std::collections::BTreeMap;

/// Deliveries shown one by one; more are summed up.
const SHOWN_MAX: usize = 20;

/// What became of the deliveries.
#[derive(Debug, Serialize)]
pub(crate) struct Sent {
    source: String,
    url: String,
    forged: bool,
    /// The ledger keys of what was sent, as far as they differ.
    keys: Vec<String>,
    deliveries: Vec<Delivered>,
    #[serde(skip)]
    stopped: Option<Failure>,
}

/// One delivery and its answer.
#[derive(Debug, Serialize)]
struct Delivered {
    n: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Reads the sample and the keys, then sends.
pub(crate) async fn run(
    context: &Context,
    args: &Send,
    operator: &Operator,
) -> Result<Sent, Failure> {
    let sample = Sample::read(&args.file)?;
    let source = context.source(&source_name(args, &sample)?)?;
    let url = context.url()?;
    let keys = context.keys(&args.keys, source).await?;
    let wire = Http::new(url)?;
    let draft = Draft { url, source, keys: &keys, forge: args.forge };
    deliver(&wire, &draft, &sample, args, operator, crate::context::now).await
}

fn source_name(args: &Send, sample: &Sample) -> Result<SourceName, Failure> {
    match (&args.source, &sample.source) {
        (Some(name), _) => Ok(name.clone()),
        (None, Some(name)) => {
            SourceName::new(name).map_err(|error| Failure::usage(error.to_string()))
        }
        (None, None) => Err(Failure::usage("the sample names no source").with_next("add --source")),
    }
}

/// Sends `args.times` deliveries over `wire`.
pub(crate) async fn deliver(
    wire: &impl Wire,
    draft: &Draft<'_>,
    sample: &Sample,
    args: &Send,
    operator: &Operator,
    now: impl Fn() -> Millis,
) -> Result<Sent, Failure> {
    let (url, source) = (draft.url, draft.source);
    let mut deliveries = Vec::new();
    let prepared = (1..=args.times).map(|n| {
        let sample = numbered(sample, source, args, n)?;
        Ok((n, draft.sign(&sample, args.at.unwrap_or_else(&now))?))
    });
    let mut posts = stream::iter(prepared)
        .map(|prepared: Result<(u32, Delivery), Failure>| async {
            let (n, delivery) = prepared?;
            let answer = wire.post(delivery.outgoing).await;
            Ok::<_, Failure>(Delivered::new(n, delivery.key, answer))
        })
        .buffer_unordered(usize::from(args.parallel));
    let progress = operator.progress(args.times.into(), Reached::default());
    let all = operator.interruptible(async {
        while let Some(delivered) = posts.next().await {
            deliveries.push(delivered?);
            let number = deliveries.len();
            let said = format!("{number} of {} delivered", args.times);
            progress.reach(Reached::of(number as u64), &said);
        }
        Ok::<_, Failure>(())
    });
    let interrupted = match all.await {
        Some(done) => done.map(|()| None)?,
        None => Some(interrupted(deliveries.len(), args)),
    };
    drop(posts);
    deliveries.sort_by_key(|delivered| delivered.n);
    let mut keys: Vec<String> = deliveries.iter().filter_map(|one| one.key.clone()).collect();
    keys.dedup();
    let sent = Sent {
        source: source.name.to_string(),
        url: format!("{url}/webhooks/{}", source.name),
        forged: args.forge,
        keys,
        deliveries,
        stopped: interrupted,
    };
    if sent.stopped.is_none() && sent.deliveries.iter().all(|delivered| delivered.error.is_some()) {
        let said = sent.deliveries.first().and_then(|delivered| delivered.error.clone());
        return Err(Failure::unreachable(format!(
            "{url} gave no answer: {}",
            said.unwrap_or_default()
        ))
        .with_next("is the stack up, and is this its address? `echo $ONCEHOOK_URL`"));
    }
    Ok(sent)
}

/// What is under way is not taken back; it may have arrived.
fn interrupted(answered: usize, args: &Send) -> Failure {
    let left = args.times.saturating_sub(u32::try_from(answered).unwrap_or(u32::MAX));
    let more = left.min(args.parallel.into());
    Failure::interrupted(&format!(
        "behind {answered} of {} deliveries; up to {more} more may have arrived",
        args.times
    ))
}

/// The sample with its changes, `{n}` filled in.
fn numbered(sample: &Sample, source: &Source, args: &Send, n: u32) -> Result<Sample, Failure> {
    let mut sample = sample.clone();
    let fill = |text: &str| text.replace("{n}", &n.to_string());
    let changes: Vec<Set> = args
        .set
        .iter()
        .map(|set| Set {
            pointer: set.pointer.clone(),
            value: set.value.as_str().map_or_else(|| set.value.clone(), |text| fill(text).into()),
        })
        .collect();
    sample.set(&changes)?;
    if let Some(id) = &args.id {
        crate::delivery::set_event_id(&mut sample, source, &fill(id))?;
    }
    Ok(sample)
}

impl Delivered {
    fn new(n: u32, key: Option<String>, answer: Result<Answered, String>) -> Self {
        let delivered = Self { n, key, status: None, answer: None, ms: None, error: None };
        match answer {
            Ok(answered) => Self {
                status: Some(answered.status),
                answer: Some(answered.body).filter(|body| !body.is_empty()),
                ms: Some(answered.ms),
                ..delivered
            },
            Err(said) => Self { error: Some(said), ..delivered },
        }
    }

    fn is_accepted(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    fn said(&self) -> String {
        let said = self.error.as_deref().or(self.answer.as_deref()).unwrap_or_default();
        shown(said)
    }

    fn status_text(&self) -> String {
        self.status.map_or_else(|| "none".to_owned(), |status| status.to_string())
    }
}

impl Sent {
    /// A forged delivery should be refused, every other accepted.
    fn is_as_wished(&self, delivered: &Delivered) -> bool {
        if self.forged { delivered.status == Some(401) } else { delivered.is_accepted() }
    }

    fn tone(&self, delivered: &Delivered) -> Tone {
        if self.is_as_wished(delivered) { Tone::Good } else { Tone::Bad }
    }

    fn one_by_one(&self) -> Table {
        let mut table = Table::new(&["STATUS", "TOOK", "KEY", "ANSWER"]);
        for one in &self.deliveries {
            let took = one.ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
            let key = one.key.as_deref().map_or_else(|| "-".to_owned(), shown);
            table.row(self.tone(one), [one.status_text(), took, key, one.said()]);
        }
        table
    }

    /// One row for each different answer.
    fn summed_up(&self) -> Table {
        let mut groups: BTreeMap<(String, String), Vec<&Delivered>> = BTreeMap::new();
        for one in &self.deliveries {
            groups.entry((one.status_text(), one.said())).or_default().push(one);
        }
        let mut table = Table::new(&["STATUS", "TIMES", "MEDIAN", "SLOWEST", "ANSWER"]);
        for ((status, said), group) in groups {
            let mut times: Vec<u64> = group.iter().filter_map(|one| one.ms).collect();
            times.sort_unstable();
            let at = |index: usize| {
                times.get(index).map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"))
            };
            let cells = [
                status,
                group.len().to_string(),
                at(times.len() / 2),
                at(times.len().saturating_sub(1)),
                said,
            ];
            table.row(group.first().map_or(Tone::Plain, |one| self.tone(one)), cells);
        }
        table
    }
}

impl Report for Sent {
    fn needs_attention(&self) -> bool {
        self.deliveries.iter().any(|delivered| !self.is_as_wished(delivered))
    }

    fn stopped(&self) -> Option<&Failure> {
        self.stopped.as_ref()
    }

    fn write(&self, page: &mut Page) {
        let times = count(self.deliveries.len(), "delivery", "deliveries");
        let forged = if self.forged { ", signature spoiled" } else { "" };
        page.heading(format!("{times} to {}{forged}", self.url));
        let is_long = self.deliveries.len() > SHOWN_MAX;
        page.table(&if is_long { self.summed_up() } else { self.one_by_one() });
        let next = match (self.forged, self.needs_attention(), self.keys.first()) {
            (true, true, _) => {
                "a forged delivery was not refused with 401: look at this at once".to_owned()
            }
            (true, false, _) => "refused, as it should be; nothing was stored".to_owned(),
            (false, true, _) => {
                "what was not answered 2xx is not stored: a provider would send it again".to_owned()
            }
            (false, false, Some(key)) => format!("  oncehook events show {}", quoted(key)),
            (false, false, None) => {
                "authentic but unusable, and kept:\n  oncehook dead list".to_owned()
            }
        };
        if self.stopped.is_none() {
            page.blank();
            page.facts(&[Fact::new("next", next)]);
        }
    }
}
