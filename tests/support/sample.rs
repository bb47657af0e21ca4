//! Sample requests: the files of `events/`, with ids of one's own put in.
//!
//! A file is `{"method", "headers", "body"}`. The body is JSON, which is sent compact, or a
//! text, which is sent as it is.

use crate::root;
use serde_json::Value;

/// One sample request, unsigned.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The file's name without `.json`.
    pub name: String,
    /// `POST`.
    pub method: String,
    /// Header lines.
    pub headers: Vec<(String, String)>,
    body: Value,
}

impl Sample {
    /// Reads `events/<name>.json`.
    pub fn read(name: &str) -> Result<Self, String> {
        let path = root().join("events").join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let mut file: Value =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let bad = || format!("{} is not {{\"method\", \"headers\", \"body\"}}", path.display());
        let headers = file.get("headers").and_then(Value::as_object).ok_or_else(bad)?;
        let pair = |(name, value): (&String, &Value)| {
            Some((name.to_lowercase(), value.as_str()?.to_owned()))
        };
        Ok(Self {
            name: name.to_owned(),
            method: file.get("method").and_then(Value::as_str).ok_or_else(bad)?.to_owned(),
            headers: headers.iter().map(pair).collect::<Option<_>>().ok_or_else(bad)?,
            body: file.get_mut("body").map(Value::take).ok_or_else(bad)?,
        })
    }

    /// Puts `value` where `pointer` points in the body.
    ///
    /// # Panics
    ///
    /// Where the sample has no such place: a test that alters nothing tests nothing.
    #[must_use]
    pub fn with(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        let Some(place) = self.body.pointer_mut(pointer) else {
            panic!("events/{}.json has nothing at {pointer}", self.name)
        };
        *place = value.into();
        self
    }

    /// Sets a header, in place of one of that name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_lowercase(), value.to_owned()));
        self
    }

    /// The value at `pointer`.
    #[must_use]
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.body.pointer(pointer)
    }

    /// The body's bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match &self.body {
            Value::String(text) => text.as_bytes().to_vec(),
            json @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_)) => json.to_string().into_bytes(),
        }
    }
}
