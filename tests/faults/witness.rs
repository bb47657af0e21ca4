//! What was seen of each row: every call about it, by whom, what happened to it, what AWS said.
//!
//! Kept for the report of a row that ended wrong, and to know when a frozen worker's row has been
//! taken over.

use crate::{call::Call, schedule::Fault, wire::Message};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// One call about a row.
#[derive(Debug, Clone)]
struct Seen {
    at_ms: u128,
    who: String,
    call: String,
    fault: Option<Fault>,
    said: String,
}

/// The log of all calls, by row.
pub(crate) struct Witness {
    begun: Instant,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_key: HashMap<String, Vec<Seen>>,
    /// Leases granted, and settled rows, by key.
    leases: HashMap<String, u32>,
    ended: HashMap<String, u32>,
    refused_late: u32,
}

impl Witness {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call's end: what was done to it, and what AWS answered, if anything.
    pub(crate) fn note(
        &self,
        who: &str,
        call: &Call,
        fault: Option<Fault>,
        answer: Option<&Message>,
    ) {
        let (status, said) = answer.map_or((0, "no answer".to_owned()), said);
        let seen = Seen {
            at_ms: self.begun.elapsed().as_millis(),
            who: who.to_owned(),
            call: call.place.to_string(),
            fault,
            said,
        };
        let mut inner = self.inner();
        for key in &call.keys {
            inner.by_key.entry(key.clone()).or_default().push(seen.clone());
        }
        if let Some(key) = call.keys.first().filter(|_| status == 200) {
            match call.place.purpose {
                "lease" => *inner.leases.entry(key.clone()).or_default() += 1,
                "settle" => *inner.ended.entry(key.clone()).or_default() += 1,
                _ if call.is_apply() => *inner.ended.entry(key.clone()).or_default() += 1,
                _ => {}
            }
        }
        if fault == Some(Fault::WrittenLate) && status == 400 {
            inner.refused_late += 1;
        }
    }

    /// Notes what this suite itself did about a row.
    pub(crate) fn remark(&self, key: &str, what: &str) {
        let seen = Seen {
            at_ms: self.begun.elapsed().as_millis(),
            who: "provider".to_owned(),
            call: what.to_owned(),
            fault: None,
            said: String::new(),
        };
        self.inner().by_key.entry(key.to_owned()).or_default().push(seen);
    }

    /// Leases granted on a row so far, and how often it was settled.
    pub(crate) fn progress(&self, key: &str) -> (u32, u32) {
        let inner = self.inner();
        let count = |of: &HashMap<String, u32>| of.get(key).copied().unwrap_or(0);
        (count(&inner.leases), count(&inner.ended))
    }

    /// Writes that came after their lease and were refused.
    pub(crate) fn refused_late(&self) -> u32 {
        self.inner().refused_late
    }

    /// A row's history, a line a call.
    pub(crate) fn history(&self, key: &str) -> String {
        let inner = self.inner();
        let lines = inner.by_key.get(key).into_iter().flatten().map(|seen| {
            let fault = seen.fault.map_or_else(String::new, |fault| format!("  <- {fault}"));
            format!(
                "    {:>8} ms  {:<14} {:<34} {}{fault}\n",
                seen.at_ms, seen.who, seen.call, seen.said
            )
        });
        lines.collect()
    }
}

/// Status, and the error's name where it is one.
fn said(answer: &Message) -> (u16, String) {
    let status = answer.status();
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let name = json.get("__type").and_then(Value::as_str).unwrap_or_default();
    let name = name.rsplit('#').next().unwrap_or_default();
    let reasons = json.get("CancellationReasons").and_then(Value::as_array).into_iter().flatten();
    let reasons: Vec<&str> =
        reasons.filter_map(|reason| reason.get("Code").and_then(Value::as_str)).collect();
    (status, format!("{status} {name} {}", reasons.join(",")).trim_end().to_owned())
}
