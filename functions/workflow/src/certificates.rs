//! The certificates that providers' requests point to, kept for an hour.
//!
//! Strangers choose which address is asked for, though only among the provider's own, so what they
//! can cause is bounded: one fetch at a time, a few a minute, and only a certificate that the preset
//! accepts is kept for long. What has verified a delivery is *proven*: it is the last to be pushed out,
//! some of the fetches are its own, and where it cannot be asked for again it goes on verifying for a
//! day.
//!
//! A process that has not verified anything yet knows no proven address: while strangers spend its
//! fetches, it answers 503, and the provider tries again, there or at another process.
//!
//! A name, a validity or a strength that does not fit is the preset's to find, at each use.

use crate::ports::{Certificates, Clock, PortError, Trouble};
use futures::lock::Mutex;
use ledger::Millis;
use std::{collections::BTreeMap, sync::Arc};
use verifier::{Key, Preset, Rejection};

/// An accepted certificate is asked for again after this.
const FRESH_MS: u64 = 3_600_000;
/// ... and goes on verifying for this long where it cannot be asked for.
const STALE_MS: u64 = 24 * FRESH_MS;
/// An address that gave nothing usable is not asked again for this long.
const RETRY_AFTER_MS: u64 = 5_000;
/// Addresses remembered. A provider signs with one or two certificates at a time.
const REMEMBERED_MAX: usize = 16;
/// Fetches within [`WINDOW_MS`]: beyond, forgeries would set the pace.
const FETCHES_MAX: usize = 20;
/// Of these, the ones that only a proven address may use.
const FETCHES_RESERVED: usize = 5;
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
    /// When it is asked for again.
    again_at: Millis,
    found: Result<Arc<[u8]>, Rejection>,
    /// Whether a delivery was verified with it.
    is_proven: bool,
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
        if let Some(known) = state.known.get(url).filter(|known| now < known.again_at) {
            let pem = known.found.clone()?;
            return preset.fetched_certificate(url, &pem, now.0);
        }
        let is_proven = state.known.get(url).is_some_and(|known| known.is_proven);
        let old = state.known.get(url).and_then(|known| known.old(now));
        state.fetches.retain(|at| now.since(*at) < WINDOW_MS);
        let reserved = if is_proven { 0 } else { FETCHES_RESERVED };
        if state.fetches.len() >= FETCHES_MAX - reserved {
            let pem = old.ok_or_else(|| Rejection::NeedsCertificate { url: url.to_owned() })?;
            return preset.fetched_certificate(url, &pem, now.0);
        }
        state.fetches.push(now);
        let fetched = ports.certificate(url).await;
        if let (Err(error), Some(pem)) = (&fetched, &old)
            && error.trouble != Trouble::Invalid
        {
            state.again(url, ports.now().plus(RETRY_AFTER_MS));
            return preset.fetched_certificate(url, pem, now.0);
        }
        let accepted = fetched.map_err(|error| not_fetched(url, &error)).and_then(|pem| {
            let key = preset.fetched_certificate(url, &pem, ports.now().0)?;
            Ok((Arc::from(pem), key))
        });
        let found = accepted.as_ref().map(|(pem, _)| Arc::clone(pem)).map_err(Clone::clone);
        let at = ports.now();
        let again_at = at.plus(if found.is_ok() { FRESH_MS } else { RETRY_AFTER_MS });
        state.remember(url, Known { at, again_at, found, is_proven });
        accepted.map(|(_, key)| key)
    }

    /// A delivery was verified with the certificate at `url`.
    pub async fn proved(&self, url: &str) {
        if let Some(known) = self.state.lock().await.known.get_mut(url) {
            known.is_proven = true;
        }
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
    /// The certificate, should it not be had anew.
    fn old(&self, now: Millis) -> Option<Arc<[u8]>> {
        let is_good = self.is_proven && now.since(self.at) < STALE_MS;
        self.found.as_ref().ok().filter(|_| is_good).map(Arc::clone)
    }
}

impl State {
    fn again(&mut self, url: &str, again_at: Millis) {
        if let Some(known) = self.known.get_mut(url) {
            known.again_at = again_at;
        }
    }

    /// Remembers one more; where there is no room, failures go first, then what is not proven, then
    /// what is oldest.
    fn remember(&mut self, url: &str, known: Known) {
        if !self.known.contains_key(url) && self.known.len() >= REMEMBERED_MAX {
            let rank = |known: &Known| (known.is_proven, known.found.is_ok(), known.at);
            let least = self.known.iter().min_by_key(|(_, known)| rank(known));
            if let Some(least) = least.map(|(url, _)| url.clone()) {
                self.known.remove(&least);
            }
        }
        self.known.insert(url.to_owned(), known);
    }
}
