//! Calls to providers' own servers, as plain data: what is asked, and what came back.
//!
//! An answer of any status is an answer; only a server that could not be asked is an error. The
//! headers of a request may hold keys, so nothing here is `Debug`.

use ledger::Millis;

/// What is done with the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Posts the body.
    Post,
}

impl Method {
    /// As the protocol writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// A request to somebody else's server.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpAsk {
    /// What is done.
    pub method: Method,
    /// The whole address.
    pub url: String,
    /// Names and values of headers, keys among them.
    pub headers: Vec<(String, String)>,
    /// The body, empty where there is none.
    pub body: Vec<u8>,
    /// All of it: a name, a connection, an answer.
    pub patience_ms: u64,
    /// A longer answer is an error.
    pub answer_bytes_max: usize,
}

impl HttpAsk {
    /// Reads `url`, ten seconds and a megabyte at most.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::Get,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            patience_ms: 10_000,
            answer_bytes_max: 1_024 * 1_024,
        }
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// What a server answered.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// The first value of a header; `name` in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// How long it asks to wait from `now` on: by `Retry-After`, seconds or a date; or, as GitHub
    /// does, by saying that nothing is left of a quota and when that is filled again.
    #[must_use]
    pub fn asks_to_wait_ms(&self, now: Millis) -> Option<u64> {
        let asked = self.header("retry-after").and_then(|value| ledger::retry_after_ms(value, now));
        asked.or_else(|| {
            self.header("x-ratelimit-remaining").filter(|left| *left == "0")?;
            let reset_s: u64 = self.header("x-ratelimit-reset")?.parse().ok()?;
            Some(Millis(reset_s.saturating_mul(1_000)).since(now))
        })
    }
}
