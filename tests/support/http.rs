//! Requests as a provider posts them, and what is answered.

use std::time::Duration;

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// `POST`.
    pub method: String,
    /// Path and query behind the stack's base URL.
    pub path: String,
    /// Header lines, in order; names may repeat.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Call {
    /// A `POST` to a source.
    #[must_use]
    pub fn to_source(source: &str, headers: Vec<(String, String)>, body: Vec<u8>) -> Self {
        Self {
            method: "POST".to_owned(),
            path: format!("/webhooks/{source}"),
            headers: headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
            body,
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The body, as text.
    pub text: String,
    /// The content type; empty where there is none.
    pub content_type: String,
}

/// A client that follows no redirect and waits as long as a provider would.
#[derive(Clone)]
pub struct Http {
    base: String,
    client: reqwest::Client,
}

impl Http {
    /// A client for the stack at `base`, which has no trailing slash.
    #[must_use]
    pub fn new(base: &str) -> Self {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(30))
            .no_proxy()
            .build();
        Self { base: base.trim_end_matches('/').to_owned(), client: client.unwrap() }
    }

    /// The base URL.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends one request. An error is one of the connection, or of a request HTTP has no form for.
    pub async fn send(&self, call: Call) -> Result<Answered, String> {
        let method = reqwest::Method::from_bytes(call.method.as_bytes())
            .map_err(|error| error.to_string())?;
        let mut request = self.client.request(method, format!("{}{}", self.base, call.path));
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let answer = request.body(call.body).send().await.map_err(|error| chain(&error))?;
        let status = answer.status().as_u16();
        let content_type = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let text = answer.bytes().await.map_err(|error| chain(&error))?;
        Ok(Answered { status, text: String::from_utf8_lossy(&text).into_owned(), content_type })
    }

    /// Sends one request that has to be answered.
    pub async fn post(&self, call: Call) -> Answered {
        self.send(call).await.unwrap()
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
