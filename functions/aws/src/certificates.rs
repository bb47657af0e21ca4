//! Certificates over HTTPS, with the HTTP client that the SDK links anyway.
//!
//! The address comes out of a request, checked by the verifier to be the provider's own. The
//! connector follows no redirect, so an answer can only be that host's; TLS is verified against the
//! system's roots. One attempt: the provider sends its delivery again.

use crate::{Aws, trouble::Failed};
use aws_smithy_http_client::default_connector;
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorSettings},
    orchestrator::HttpRequest,
};
use aws_smithy_types::byte_stream::ByteStream;
use std::time::Duration;
use workflow::ports::{Certificates, PortError, Trouble};

const STEP: &str = "fetch certificate";
/// All of it: a name, a connection, an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// A chain of four certificates has about 8 KB.
const BYTES_MAX: usize = 64 * 1_024;

impl Certificates for Aws {
    async fn certificate(&self, url: &str) -> Result<Vec<u8>, PortError> {
        let fetched = match tokio::time::timeout(PATIENCE, get(url)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(Failed::new(Trouble::Unavailable, "no answer in time")),
        };
        fetched.map_err(|failed| failed.at(STEP))
    }
}

/// A connector of its own for each fetch: there is one an hour, and no connection to keep.
async fn get(url: &str) -> Result<Vec<u8>, Failed> {
    let unavailable = |said: String| Failed::new(Trouble::Unavailable, said);
    let settings = HttpConnectorSettings::builder().connect_timeout(PATIENCE).build();
    let connector = default_connector(&settings, None)
        .ok_or_else(|| unavailable("no HTTP client is linked".to_owned()))?;
    let request = HttpRequest::get(url)
        .map_err(|_| Failed::new(Trouble::Invalid, "the address cannot be requested"))?;
    let answer = connector.call(request).await;
    let answer = answer.map_err(|error| unavailable(error.to_string()))?;
    let status = answer.status();
    if status.as_u16() != 200 {
        let passes = status.is_server_error() || status.as_u16() == 429;
        let trouble = if passes { Trouble::Unavailable } else { Trouble::Invalid };
        return Err(Failed::new(trouble, format!("answered {}", status.as_u16())));
    }
    let mut body = ByteStream::new(answer.into_body());
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| unavailable(error.to_string()))?;
        if bytes.len().saturating_add(piece.len()) > BYTES_MAX {
            let said = format!("more than {BYTES_MAX} bytes");
            return Err(Failed::new(Trouble::Invalid, said));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    /// A server that answers one request with these bytes; its address.
    fn serve(answer: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/cert", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _asked = stream.read(&mut [0; 4_096]).unwrap();
            // A client that has seen enough hangs up.
            let _sent = stream.write_all(&answer);
        });
        url
    }

    fn answer(head: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    #[tokio::test]
    async fn what_stands_there_is_handed_over() {
        assert_eq!(get(&serve(answer("200 OK", b"PEM"))).await.unwrap(), b"PEM");
        let whole = vec![b'x'; BYTES_MAX];
        assert_eq!(get(&serve(answer("200 OK", &whole))).await.unwrap().len(), BYTES_MAX);
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let elsewhere = serve(answer("200 OK", b"PEM"));
        let redirect = format!("302 Found\r\nlocation: {elsewhere}");
        let failed = get(&serve(answer(&redirect, b""))).await.unwrap_err();
        assert_eq!((failed.trouble, failed.said.as_str()), (Trouble::Invalid, "answered 302"));
    }

    #[tokio::test]
    async fn an_answer_without_end_is_cut_off() {
        let failed = get(&serve(answer("200 OK", &vec![b'x'; BYTES_MAX + 1]))).await.unwrap_err();
        assert_eq!(failed.trouble, Trouble::Invalid);
    }

    #[tokio::test]
    async fn what_passes_is_told_from_what_does_not() {
        for (head, trouble) in [
            ("404 Not Found", Trouble::Invalid),
            ("429 Too Many Requests", Trouble::Unavailable),
            ("503 Service Unavailable", Trouble::Unavailable),
        ] {
            let failed = get(&serve(answer(head, b""))).await.unwrap_err();
            assert_eq!(failed.trouble, trouble, "{head}");
        }
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let failed = get(&format!("http://{closed}/")).await.unwrap_err();
        assert_eq!(failed.trouble, Trouble::Unavailable);
    }
}
