//! The certificates that providers' requests point to, kept for an hour.
//!
//! Strangers choose which address is asked for, though only among the provider's own, so what they
//! can cause is bounded: one fetch at a time, a few a minute, and only a certificate that the preset
//! accepts is kept for long. What is in the cache keeps verifying whatever is asked for beside it.
//!
//! A name, a validity or a strength that does not fit is the preset's to find, at each use.

use crate::ports::{Certificates, Clock, PortError, Trouble};
use futures::lock::Mutex;
use ledger::Millis;
use std::{collections::BTreeMap, sync::Arc};
use verifier::{Key, Preset, Rejection};

/// An accepted certificate is asked for again after this.
const FRESH_MS: u64 = 3_600_000;
/// An address that gave nothing usable is not asked again for this long.
const RETRY_AFTER_MS: u64 = 5_000;
/// Addresses remembered. A provider signs with one or two certificates at a time.
const REMEMBERED_MAX: usize = 16;
/// Fetches within [`WINDOW_MS`]: beyond, forgeries would set the pace.
const FETCHES_MAX: usize = 20;
const WINDOW_MS: u64 = 60_000;

/// What was fetched of late, by address.
#[derive(Default)]
pub struct CertificateCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: BTreeMap<String, Known>,
    /// When the last fetches began, the oldest first.
    fetches: Vec<Millis>,
}

struct Known {
    at: Millis,
    found: Result<Arc<[u8]>, Rejection>,
}

impl CertificateCache {
    /// The key in the certificate at `url`, for requests that `preset` verifies: from the cache, or
    /// fetched now.
    pub async fn key(
        &self,
        ports: &(impl Certificates + Clock),
        preset: &Preset,
        url: &str,
    ) -> Result<Key, Rejection> {
        let mut state = self.state.lock().await;
        let now = ports.now();
        if let Some(known) = state.known.get(url).filter(|known| known.is_of_use(now)) {
            let pem = known.found.clone()?;
            return preset.fetched_certificate(url, &pem, now.0);
        }
        state.fetches.retain(|at| now.since(*at) < WINDOW_MS);
        if state.fetches.len() >= FETCHES_MAX {
            return Err(Rejection::NeedsCertificate { url: url.to_owned() });
        }
        state.fetches.push(now);
        let fetched = ports.certificate(url).await;
        let accepted = fetched.map_err(|error| not_fetched(url, &error)).and_then(|pem| {
            let key = preset.fetched_certificate(url, &pem, ports.now().0)?;
            Ok((Arc::from(pem), key))
        });
        let found = accepted.as_ref().map(|(pem, _)| Arc::clone(pem)).map_err(Clone::clone);
        state.remember(url, Known { at: ports.now(), found });
        accepted.map(|(_, key)| key)
    }
}

/// An address without a certificate is no provider's: the request is forged, or points to what was
/// taken away. Anything else is for the provider to try again.
fn not_fetched(url: &str, error: &PortError) -> Rejection {
    match error.trouble {
        Trouble::Invalid => Rejection::CertificateRefused { why: error.source.to_string() },
        Trouble::Throttled | Trouble::Conflict | Trouble::Unavailable => {
            Rejection::NeedsCertificate { url: url.to_owned() }
        }
    }
}

impl Known {
    fn is_of_use(&self, now: Millis) -> bool {
        let kept_ms = if self.found.is_ok() { FRESH_MS } else { RETRY_AFTER_MS };
        now.since(self.at) < kept_ms
    }
}

impl State {
    /// Remembers one more; where there is no room, failures go first, then what is oldest.
    fn remember(&mut self, url: &str, known: Known) {
        if !self.known.contains_key(url) && self.known.len() >= REMEMBERED_MAX {
            let rank = |known: &Known| (known.found.is_ok(), known.at);
            let least = self.known.iter().min_by_key(|(_, known)| rank(known));
            if let Some(least) = least.map(|(url, _)| url.clone()) {
                self.known.remove(&least);
            }
        }
        self.known.insert(url.to_owned(), known);
    }
}
