//! One HTTP request as the edge saw it: borrowed bytes and nothing derived from them.
//!
//! Headers keep repetition visible, because a signature header that arrives twice is a different
//! fact from one that arrives once, and a map would forget it. Percent-decoding, form parsing and
//! JSON are absent on purpose: each scheme decides what it may touch before the bytes are proven.

/// One HTTP request as the edge saw it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method, as sent (`POST`).
    pub method: &'a str,
    /// The raw path, percent-escapes untouched.
    pub path: &'a str,
    /// The raw query, without `?`; empty when there is none.
    pub query: &'a str,
    /// The configured public URL of this source: scheme, host and path, never from the `Host`
    /// header. The query is appended from `query` where a scheme signs it.
    pub public_url: Option<&'a str>,
    /// The headers.
    pub headers: &'a Headers,
    /// The decoded body bytes, exactly as the provider sent them.
    pub body: &'a [u8],
}

/// Request headers in the order of arrival, names in lower case.
///
/// The `Debug` form prints names only: values include signatures and credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    entries: Vec<(String, String)>,
}

/// What a request says about one header name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderLookup<'a> {
    /// The name does not appear.
    Missing,
    /// The name appears once, with this value (which may be empty).
    Once(&'a str),
    /// The name appears more than once; which value counts is for nobody to guess.
    Repeated,
}

impl Headers {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one header line. Repeated names are kept, each with its value.
    pub fn push(&mut self, name: &str, value: impl Into<String>) {
        self.entries.push((name.to_ascii_lowercase(), value.into()));
    }

    /// Says whether `name` (any case) is missing, present once, or repeated.
    #[must_use]
    pub fn get(&self, name: &str) -> HeaderLookup<'_> {
        let mut values = self.entries.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        match (values.next(), values.next()) {
            (None, _) => HeaderLookup::Missing,
            (Some((_, value)), None) => HeaderLookup::Once(value),
            (Some(_), Some(_)) => HeaderLookup::Repeated,
        }
    }

    /// These headers with `value` as the only value of `name`.
    #[must_use]
    pub(crate) fn replacing(&self, name: &str, value: &str) -> Self {
        let mut headers: Self =
            self.iter().filter(|(known, _)| !known.eq_ignore_ascii_case(name)).collect();
        headers.push(name, value);
        headers
    }

    /// Name and value of each line, in the order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<N: AsRef<str>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(lines: I) -> Self {
        let mut headers = Self::new();
        for (name, value) in lines {
            headers.push(name.as_ref(), value);
        }
        headers
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|(name, _)| name)).finish()
    }
}
