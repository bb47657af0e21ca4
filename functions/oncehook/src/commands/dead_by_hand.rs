//! `dead redrive` and `dead resolve`: what a person does to dead events, one key after another.
//!
//! A redrive gives a fresh budget and puts the row back under the steward's eye in one write;
//! then its message is sent. The row keeps who and why. Should the send fail, the steward sends it within two minutes. A
//! resolve settles the row for good and keeps who did it and why.

use crate::{
    args::{ByHand, Redrive},
    failure::Failure,
    output::{Fact, Page, Report, Table, Tone, count, quoted, shown},
    pace::Pace,
};
use ledger::{
    EventKey, Message, Millis, Policy, Status,
    verbs::{self, RedriveBy, RedriveRefusal, Resolve, ResolveRefusal},
};
use serde::Serialize;
use workflow::{
    ports::{Clock, Ledger, Outbox, Refused},
    resolve::{self, Closed},
};

/// What became of each key.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    by: String,
    reason: String,
    results: Vec<Handled>,
    /// Keys that were not come to.
    untouched: Vec<EventKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Failure>,
    #[serde(skip)]
    next: &'static str,
}

/// What became of one key.
#[derive(Debug, Serialize)]
pub(crate) struct Handled {
    pub(crate) key: EventKey,
    pub(crate) done: bool,
    pub(crate) said: String,
}

/// Gives dead events a fresh budget and sends their messages.
pub(crate) async fn redrive(
    ports: &(impl Ledger + Outbox + Clock),
    args: &Redrive,
) -> Result<Done, Failure> {
    let mut pace = Pace::new(args.rate);
    let mut done = Done::of(&args.by_hand(), "see how it went:\n  oncehook events show KEY");
    for key in &args.keys {
        pace.turn().await;
        if !done.take(key, redrive_one(ports, key, args).await) {
            break;
        }
    }
    Ok(done)
}

/// Gives one dead event a fresh budget and sends its message. Whether, and what to say of it.
pub(crate) async fn redrive_one(
    ports: &(impl Ledger + Outbox + Clock),
    key: &EventKey,
    args: &Redrive,
) -> Result<(bool, String), Failure> {
    let revived = revive_one(ports, key, args).await?;
    if !revived.0 {
        return Ok(revived);
    }
    let sent = match ports.row(key).await {
        Ok(Some(row)) => {
            let message = Message::new(key.clone(), &row.evidence.event_type, None);
            ports.send(&message, row.evidence.source.as_str()).await
        }
        Ok(None) => return Ok((false, "gone in the meantime".to_owned())),
        Err(error) => Err(error),
    };
    Ok(match sent {
        Ok(()) => (true, "fresh budget given, sent to the queue".to_owned()),
        Err(error) => {
            let said = format!(
                "fresh budget given, but not sent ({error}); the steward sends it within two minutes"
            );
            (true, said)
        }
    })
}

/// Gives one dead event a fresh budget. Whether, and what to say of it.
pub(crate) async fn revive_one(
    ports: &(impl Ledger + Clock),
    key: &EventKey,
    args: &Redrive,
) -> Result<(bool, String), Failure> {
    let by = RedriveBy::Person { by: args.by.clone(), reason: args.reason.clone() };
    let ask = verbs::Redrive { by, now: ports.now(), shard: key.shard() };
    Ok(match ports.redrive(key, &ask).await? {
        Ok(()) | Err(Refused { why: RedriveRefusal::Mine, .. }) => {
            (true, "fresh budget given".to_owned())
        }
        Err(Refused { why, row }) => {
            let status = row.map(|row| row.life.status);
            (false, refusal_of_redrive(why, status))
        }
    })
}

fn refusal_of_redrive(why: RedriveRefusal, status: Option<Status>) -> String {
    match why {
        RedriveRefusal::NotDead => not_dead(status),
        RedriveRefusal::Missing => "no such event".to_owned(),
        RedriveRefusal::UnknownFormat => "written by another build; left untouched".to_owned(),
        RedriveRefusal::MovedOn | RedriveRefusal::MessageTooOld => {
            "somebody else moved it at this moment; look again".to_owned()
        }
        RedriveRefusal::Mine => String::new(),
    }
}

/// Closes dead events.
pub(crate) async fn resolve(
    ports: &(impl Ledger + Clock),
    policy: &Policy,
    args: &ByHand,
) -> Result<Done, Failure> {
    let settled_at: Millis = ports.now();
    let ask = Resolve { by: args.by.clone(), note: args.reason.clone(), settled_at };
    let next =
        "its copy in the dead-letter queue is deleted by the steward within the quarter hour";
    let mut done = Done::of(args, next);
    for key in &args.keys {
        if !done.take(key, resolve_one(ports, policy, key, &ask).await) {
            break;
        }
    }
    Ok(done)
}

async fn resolve_one(
    ports: &impl Ledger,
    policy: &Policy,
    key: &EventKey,
    ask: &Resolve,
) -> Result<(bool, String), Failure> {
    Ok(match resolve::resolve(ports, key, ask, policy).await? {
        Closed::Done | Closed::Refused(ResolveRefusal::Mine) => (true, "closed".to_owned()),
        Closed::BodyStays(error) => {
            let said = "closed, but its body has no end yet";
            (true, format!("{said} ({error}); the same command sets it"))
        }
        Closed::Refused(ResolveRefusal::NotDead(status)) => (false, not_dead(Some(status))),
        Closed::Refused(ResolveRefusal::Missing) => (false, "no such event".to_owned()),
        Closed::Refused(ResolveRefusal::UnknownFormat) => {
            (false, "written by another build; left untouched".to_owned())
        }
    })
}

fn not_dead(status: Option<Status>) -> String {
    match status {
        Some(Status::Settled) => "settled already: nothing to do".to_owned(),
        Some(status) => format!("not dead but {status}: it is being worked without you"),
        None => "not dead".to_owned(),
    }
}

impl Done {
    fn of(args: &ByHand, next: &'static str) -> Self {
        Self {
            by: args.by.clone(),
            reason: args.reason.clone(),
            results: Vec::new(),
            untouched: args.keys.clone(),
            stopped: None,
            next,
        }
    }

    /// Takes up what became of the next key. Whether the one after it is worth a try.
    fn take(&mut self, key: &EventKey, came: Result<(bool, String), Failure>) -> bool {
        match came {
            Ok((done, said)) => {
                self.untouched.remove(0);
                self.results.push(Handled { key: key.clone(), done, said });
            }
            Err(failure) => self.stopped = Some(failure),
        }
        self.stopped.is_none()
    }
}

impl Report for Done {
    fn needs_attention(&self) -> bool {
        self.results.iter().any(|handled| !handled.done)
    }

    fn stopped(&self) -> Option<&Failure> {
        self.stopped.as_ref()
    }

    fn write(&self, page: &mut Page) {
        let mut table = Table::new(&["RESULT", "KEY", "WHAT"]);
        for handled in &self.results {
            let (mark, tone) =
                if handled.done { ("done", Tone::Good) } else { ("left", Tone::Warn) };
            table.row(tone, [mark.to_owned(), shown(handled.key.as_str()), shown(&handled.said)]);
        }
        if self.stopped.is_some() {
            for key in &self.untouched {
                let said = "not come to; name it again";
                table.row(Tone::Bad, ["open".to_owned(), shown(key.as_str()), said.to_owned()]);
            }
        }
        page.table(&table);
        let done: Vec<&Handled> = self.results.iter().filter(|handled| handled.done).collect();
        let all = self.results.len() + self.untouched.len();
        page.toned(Tone::Dim, format!("{} of {}", done.len(), count(all, "event", "events")));
        if let Some(first) = done.first() {
            let next = self.next.replace("KEY", &quoted(first.key.as_str()));
            page.facts(&[Fact::new("next", next)]);
        }
    }
}
