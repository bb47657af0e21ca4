//! Posting a delivery as a provider does: no redirect is followed, and the answer's first bytes
//! are enough.

use crate::failure::{Failure, chain};
use reqwest::{Client, Method, redirect::Policy};
use std::{future::Future, time::Duration};
use tokio::time::Instant;

/// More of an answer than any provider looks at.
const ANSWER_BYTES_MAX: usize = 4_096;

/// One request, ready to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outgoing {
    /// `POST`.
    pub(crate) method: String,
    /// The whole address.
    pub(crate) url: String,
    /// The path behind the stack's address: `/webhooks/<source>`.
    pub(crate) path: String,
    /// Header lines, the signature among them.
    pub(crate) headers: Vec<(String, String)>,
    /// The bytes.
    pub(crate) body: Vec<u8>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    /// The status code.
    pub(crate) status: u16,
    /// The body's beginning.
    pub(crate) body: String,
    /// How long it took.
    pub(crate) ms: u64,
}

/// Where deliveries go.
pub(crate) trait Wire {
    /// Posts one; no answer at all is an error in words.
    fn post(&self, outgoing: Outgoing) -> impl Future<Output = Result<Answered, String>>;
}

/// The network.
pub(crate) struct Http(Client);

impl Http {
    /// A client for deliveries to `url`.
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let mut builder = Client::builder()
            .user_agent(concat!("oncehook/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(35));
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        builder
            .build()
            .map(Self)
            .map_err(|error| Failure::usage(format!("no HTTP client: {}", chain(&error))))
    }
}

impl Wire for Http {
    async fn post(&self, outgoing: Outgoing) -> Result<Answered, String> {
        let method = Method::from_bytes(outgoing.method.as_bytes())
            .map_err(|_| format!("{:?} is no HTTP method", outgoing.method))?;
        let mut request = self.0.request(method, &outgoing.url).body(outgoing.body);
        for (name, value) in &outgoing.headers {
            request = request.header(name, value);
        }
        let started = Instant::now();
        let mut response = request.send().await.map_err(|error| chain(&error))?;
        let mut body = Vec::new();
        while body.len() < ANSWER_BYTES_MAX {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(chain(&error)),
            }
        }
        body.truncate(ANSWER_BYTES_MAX);
        Ok(Answered {
            status: response.status().as_u16(),
            body: String::from_utf8_lossy(&body).trim().to_owned(),
            ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }
}

/// Whether an address is this machine's own, which no proxy can reach.
fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_reached_without_a_proxy_and_no_other() {
        for url in ["http://127.0.0.1:4566/x", "http://localhost/", "http://a.localhost:1/"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["https://localhost.example.com/", "https://1127.example/", "https://x.test"] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
