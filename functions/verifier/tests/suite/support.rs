//! Requests, keys and presets in as few words as a test has room for.

use verifier::{Event, Headers, Key, Preset, Rejection, Request, Unusable, Verified, preset_table};

/// The clock of most cases: 2023-11-14T22:13:20Z.
pub(crate) const NOW_S: u64 = 1_700_000_000;
pub(crate) const NOW_MS: u64 = NOW_S * 1_000;

pub(crate) fn preset(name: &str) -> Preset {
    Preset::from_table(&preset_table(name).unwrap()).unwrap()
}

/// A compiled-in preset with some keys overridden, as a source does it.
pub(crate) fn overridden(name: &str, overrides: &str) -> Preset {
    let mut table = preset_table(name).unwrap();
    merge(&mut table, overrides.parse().unwrap());
    Preset::from_table(&table).unwrap()
}

/// What is wrong with a preset that is overridden so.
pub(crate) fn defect(name: &str, overrides: &str) -> String {
    let mut table = preset_table(name).unwrap();
    merge(&mut table, overrides.parse().unwrap());
    Preset::from_table(&table).unwrap_err().to_string()
}

fn merge(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) => merge(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// An owned request, with the parts a test does not care about filled in.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) public_url: Option<String>,
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

impl Delivery {
    pub(crate) fn post(body: impl AsRef<[u8]>) -> Self {
        Self {
            method: "POST".to_owned(),
            path: "/webhooks/source".to_owned(),
            query: String::new(),
            public_url: None,
            headers: Headers::new(),
            body: body.as_ref().to_vec(),
        }
    }

    pub(crate) fn get(query: &str) -> Self {
        Self { method: "GET".to_owned(), query: query.to_owned(), ..Self::post("") }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push(name, value);
        self
    }

    /// The same delivery with one header replaced, or removed where there is no value.
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut headers: Headers =
            self.headers.iter().filter(|(known, _)| !known.eq_ignore_ascii_case(name)).collect();
        if let Some(value) = value {
            headers.push(name, value);
        }
        Self { headers, ..self.clone() }
    }

    /// The delivery at a public URL, query included.
    pub(crate) fn at(mut self, url: &str) -> Self {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        self.public_url = Some(base.to_owned());
        query.clone_into(&mut self.query);
        self
    }

    /// The same delivery, signed the way the preset's provider does it.
    pub(crate) fn signed(self, preset: &Preset, key: &Key, now_ms: u64) -> Self {
        let mut signed = self;
        signed.body = preset.sign_body(&signed.body, key).unwrap().into_owned();
        let added = preset.sign(&signed.request(), key, now_ms).unwrap();
        for (name, value) in added {
            signed.headers.push(&name, value);
        }
        signed
    }

    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            path: &self.path,
            query: &self.query,
            public_url: self.public_url.as_deref(),
            headers: &self.headers,
            body: &self.body,
        }
    }

    pub(crate) fn verify(&self, preset: &Preset, keys: &[Key]) -> Result<Verified, Rejection> {
        preset.verify(&self.request(), keys, NOW_MS)
    }

    pub(crate) fn cause(&self, preset: &Preset, keys: &[Key]) -> &'static str {
        match self.verify(preset, keys) {
            Ok(_) => "verified",
            Err(rejection) => rejection.cause(),
        }
    }

    pub(crate) fn events(&self, preset: &Preset) -> Result<Vec<Event<'_>>, Unusable> {
        preset.events(&self.request())
    }

    /// The only event of this delivery.
    pub(crate) fn event(&self, preset: &Preset) -> Event<'_> {
        let mut events = self.events(preset).unwrap();
        assert_eq!(events.len(), 1, "one event");
        events.remove(0)
    }

    /// Why this delivery is unusable.
    pub(crate) fn unusable(&self, preset: &Preset) -> &'static str {
        match self.events(preset) {
            Ok(_) => "usable",
            Err(unusable) => unusable.reason.cause(),
        }
    }
}
