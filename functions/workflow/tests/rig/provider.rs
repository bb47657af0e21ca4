//! A provider's API for the twin: objects by id, what it was asked, and how it answers.

use super::Rig;
use ledger::Millis;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};
use workflow::{
    http::{HttpAnswer, HttpAsk},
    ports::{Clock, Secret},
    twin::Twin,
};

/// The key that the provider accepts until told otherwise.
pub(crate) const API_KEY: &str = "sk_live_51Hq7Rv2eZ";

/// One question.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) at: Millis,
    pub(crate) url: String,
    pub(crate) authorization: String,
}

/// The provider.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Mutex<Inner>>);

/// What it does instead of answering with the object.
type Whim = Box<dyn FnMut(&HttpAsk) -> Option<HttpAnswer> + Send>;

struct Inner {
    objects: BTreeMap<String, Value>,
    asked: Vec<Asked>,
    whim: Option<Whim>,
}

impl Provider {
    /// Puts a provider behind the rig's twin, and its key into the outbound secret.
    pub(crate) fn behind(rig: &Rig) -> Self {
        Self::behind_twin(&rig.twin)
    }

    pub(crate) fn behind_twin(twin: &Arc<Twin>) -> Self {
        let inner = Inner { objects: BTreeMap::new(), asked: Vec::new(), whim: None };
        let provider = Self(Arc::new(Mutex::new(inner)));
        let (served, clock) = (provider.clone(), Arc::downgrade(twin));
        twin.set_secret_of(
            Secret::Outbound,
            &json!({"shop-api": [{"kid": "2026-11", "key": API_KEY}]}).to_string(),
        );
        twin.set_provider(move |ask| served.answer(ask, clock.upgrade()?.now()));
        provider
    }

    /// What an object is from now on.
    pub(crate) fn put(&self, id: &str, object: Value) {
        self.0.lock().unwrap().objects.insert(id.to_owned(), object);
    }

    pub(crate) fn remove(&self, id: &str) {
        self.0.lock().unwrap().objects.remove(id);
    }

    /// Answers by `whim` from now on; by the objects where it answers `None`.
    pub(crate) fn set_whim(
        &self,
        whim: impl FnMut(&HttpAsk) -> Option<HttpAnswer> + Send + 'static,
    ) {
        self.0.lock().unwrap().whim = Some(Box::new(whim));
    }

    pub(crate) fn clear_whim(&self) {
        self.0.lock().unwrap().whim = None;
    }

    /// Every question so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.0.lock().unwrap().asked.clone()
    }

    fn answer(&self, ask: &HttpAsk, at: Millis) -> Option<HttpAnswer> {
        let authorization = ask.headers.iter().find(|(name, _)| name == "authorization");
        let authorization = authorization.map(|(_, value)| value.clone()).unwrap_or_default();
        // The whim may come to change the provider, or the twin: no lock is held meanwhile.
        let whim = {
            let mut inner = self.0.lock().unwrap();
            inner.asked.push(Asked { at, url: ask.url.clone(), authorization });
            inner.whim.take()
        };
        if let Some(mut whim) = whim {
            let answer = whim(ask);
            self.0.lock().unwrap().whim.get_or_insert(whim);
            if answer.is_some() {
                return answer.filter(|answer| answer.status > 0);
            }
        }
        let id = ask.url.rsplit('/').next().unwrap_or_default();
        let inner = self.0.lock().unwrap();
        Some(match inner.objects.get(id) {
            Some(object) => answer(200, &object.to_string()),
            None => answer(404, "{}"),
        })
    }
}

/// An answer.
pub(crate) fn answer(status: u16, body: &str) -> HttpAnswer {
    HttpAnswer { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
}

/// No answer at all.
pub(crate) fn silence() -> HttpAnswer {
    answer(0, "")
}

/// An answer 429.
pub(crate) fn too_many(retry_after: Option<&str>) -> HttpAnswer {
    let headers = retry_after.map(|value| ("retry-after".to_owned(), value.to_owned()));
    HttpAnswer { headers: headers.into_iter().collect(), ..answer(429, "slow down") }
}

/// A subscription as the provider's API shows it.
pub(crate) fn object(plan: &str, status: &str) -> Value {
    json!({"id": "sub", "object": "subscription", "plan": plan, "status": status})
}
