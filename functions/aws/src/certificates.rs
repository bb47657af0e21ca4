//! Certificates over HTTPS.
//!
//! The address comes out of a request, checked by the verifier to be the provider's own. One
//! attempt: the provider sends its delivery again.

use crate::{Aws, http::Connector, trouble::Failed};
use workflow::{
    http::HttpAsk,
    ports::{Certificates, PortError, Trouble},
};

const STEP: &str = "fetch certificate";
/// All of it: a name, a connection, an answer.
const PATIENCE_MS: u64 = 2_000;
/// A chain of four certificates has about 8 KB.
const BYTES_MAX: usize = 64 * 1_024;

impl Certificates for Aws {
    async fn certificate(&self, url: &str) -> Result<Vec<u8>, PortError> {
        get(&self.http, url).await.map_err(|failed| failed.at(STEP))
    }
}

async fn get(http: &Connector, url: &str) -> Result<Vec<u8>, Failed> {
    let ask =
        HttpAsk { patience_ms: PATIENCE_MS, answer_bytes_max: BYTES_MAX, ..HttpAsk::get(url) };
    let answer = http.call(ask).await?;
    if answer.status != 200 {
        let passes = answer.status >= 500 || answer.status == 429;
        let trouble = if passes { Trouble::Unavailable } else { Trouble::Invalid };
        return Err(Failed::new(trouble, format!("answered {}", answer.status)));
    }
    Ok(answer.body)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::http::tests::{answer, serve};
    use std::net::TcpListener;

    async fn fetch(answer: Vec<u8>) -> Result<Vec<u8>, Failed> {
        get(&Connector::default(), &serve(answer).0).await
    }

    #[tokio::test]
    async fn what_stands_there_is_handed_over() {
        assert_eq!(fetch(answer("200 OK", b"PEM")).await.unwrap(), b"PEM");
        let whole = vec![b'x'; BYTES_MAX];
        assert_eq!(fetch(answer("200 OK", &whole)).await.unwrap().len(), BYTES_MAX);
        let failed = fetch(answer("200 OK", &vec![b'x'; BYTES_MAX + 1])).await.unwrap_err();
        assert_eq!(failed.trouble, Trouble::Invalid);
    }

    #[tokio::test]
    async fn a_redirect_is_no_certificate() {
        let failed = fetch(answer("302 Found\r\nlocation: /y", b"")).await.unwrap_err();
        assert_eq!((failed.trouble, failed.said.as_str()), (Trouble::Invalid, "answered 302"));
    }

    #[tokio::test]
    async fn what_passes_is_told_from_what_does_not() {
        for (head, trouble) in [
            ("404 Not Found", Trouble::Invalid),
            ("429 Too Many Requests", Trouble::Unavailable),
            ("503 Service Unavailable", Trouble::Unavailable),
        ] {
            let failed = fetch(answer(head, b"")).await.unwrap_err();
            assert_eq!(failed.trouble, trouble, "{head}");
        }
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let failed = get(&Connector::default(), &format!("http://{closed}/")).await.unwrap_err();
        assert_eq!(failed.trouble, Trouble::Unavailable);
    }
}
