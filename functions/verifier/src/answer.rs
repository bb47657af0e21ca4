//! What a provider is answered: status, content type, body and headers.

/// An HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The `Content-Type`, where the answer has one.
    pub content_type: Option<String>,
    /// The body; may be empty.
    pub body: Vec<u8>,
    /// Further headers, names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Answer {
    /// An answer with this status and nothing else.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self { status, content_type: None, body: Vec::new(), headers: Vec::new() }
    }

    /// A `200` with a plain-text body.
    #[must_use]
    pub fn text(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            content_type: Some("text/plain; charset=utf-8".to_owned()),
            body: body.into(),
            headers: Vec::new(),
        }
    }
}
