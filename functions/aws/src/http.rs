//! Calls to providers' servers, with the HTTP client that the SDK links anyway.
//!
//! The connector follows no redirect, so an answer can only be the asked host's; TLS is verified
//! against the system's roots. One try a call: who asks knows whether to ask again. Addresses and
//! headers may hold keys, so error texts name neither.

use crate::{Aws, trouble::Failed};
use aws_smithy_http_client::default_connector;
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorSettings, SharedHttpConnector},
    orchestrator::HttpRequest,
};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use workflow::{
    http::{HttpAnswer, HttpAsk},
    ports::{Http, PortError, Trouble},
};

const STEP: &str = "call to the provider";
const CONNECT: Duration = Duration::from_secs(2);

/// The client, made at its first call: most functions never make one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connector(Arc<OnceLock<Option<SharedHttpConnector>>>);

impl Http for Aws {
    async fn call(&self, ask: HttpAsk) -> Result<HttpAnswer, PortError> {
        self.http.call(ask).await.map_err(|failed| failed.at(STEP))
    }
}

impl Connector {
    pub(crate) async fn call(&self, ask: HttpAsk) -> Result<HttpAnswer, Failed> {
        let patience = Duration::from_millis(ask.patience_ms);
        match tokio::time::timeout(patience, self.exchange(ask)).await {
            Ok(answer) => answer,
            Err(_) => Err(Failed::new(Trouble::Unavailable, "no answer in time")),
        }
    }

    async fn exchange(&self, ask: HttpAsk) -> Result<HttpAnswer, Failed> {
        let unavailable = |said: String| Failed::new(Trouble::Unavailable, said);
        let connector = self.0.get_or_init(|| {
            let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT).build();
            default_connector(&settings, None)
        });
        let connector =
            connector.as_ref().ok_or_else(|| unavailable("no HTTP client is linked".to_owned()))?;
        let bytes_max = ask.answer_bytes_max;
        let answer = connector.call(request(ask)?).await;
        let answer = answer.map_err(|error| unavailable(error.to_string()))?;
        let status = answer.status().as_u16();
        let headers = answer.headers().iter();
        let headers =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let mut stream = ByteStream::new(answer.into_body());
        let mut body = Vec::new();
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| unavailable(error.to_string()))?;
            if body.len().saturating_add(piece.len()) > bytes_max {
                let said = format!("the answer has more than {bytes_max} bytes");
                return Err(Failed::new(Trouble::Invalid, said));
            }
            body.extend_from_slice(&piece);
        }
        Ok(HttpAnswer { status, headers, body })
    }
}

fn request(ask: HttpAsk) -> Result<HttpRequest, Failed> {
    let invalid = |what: &str| Failed::new(Trouble::Invalid, format!("{what} cannot be sent"));
    let body = if ask.body.is_empty() { SdkBody::empty() } else { SdkBody::from(ask.body) };
    let mut request = HttpRequest::new(body);
    request.set_method(ask.method.as_str()).map_err(|_| invalid("the method"))?;
    request.set_uri(ask.url).map_err(|_| invalid("the address"))?;
    for (name, value) in ask.headers {
        let header = request.headers_mut().try_append(name, value);
        header.map_err(|_| invalid("a header"))?;
    }
    Ok(request)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
pub(crate) mod tests {
    use super::*;
    use std::{
        io::{Read, Write},
        net::TcpListener,
        sync::mpsc::{Receiver, channel},
        thread,
    };

    /// A server that answers one request with these bytes: its address, and what it was asked.
    pub(crate) fn serve(answer: Vec<u8>) -> (String, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let (asked, seen) = channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 4_096];
            let read = stream.read(&mut bytes).unwrap();
            // Neither a test that does not look nor a client that has seen enough is a fault.
            _ = asked.send(String::from_utf8_lossy(&bytes[..read]).into_owned());
            _ = stream.write_all(&answer);
        });
        (url, seen)
    }

    pub(crate) fn answer(head: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    #[tokio::test]
    async fn an_answer_of_any_status_is_an_answer() {
        let (url, seen) = serve(answer("429 Slow Down\r\nRetry-After: 7", b"later"));
        let ask = HttpAsk::get(url).header("authorization", "Bearer k");
        let answer = Connector::default().call(ask).await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (429, b"later".as_slice()));
        assert_eq!(answer.asks_to_wait_ms(ledger::Millis(0)), Some(7_000));
        let seen = seen.recv().unwrap();
        assert!(seen.starts_with("GET /x ") && seen.contains("authorization: Bearer k"), "{seen}");
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let (elsewhere, _) = serve(answer("200 OK", b""));
        let (url, _) = serve(answer(&format!("302 Found\r\nlocation: {elsewhere}"), b""));
        assert_eq!(Connector::default().call(HttpAsk::get(url)).await.unwrap().status, 302);
    }

    #[tokio::test]
    async fn an_answer_without_end_is_cut_off_and_a_silent_server_given_up() {
        let (url, _) = serve(answer("200 OK", &[b'x'; 11]));
        let ask = HttpAsk { answer_bytes_max: 10, ..HttpAsk::get(url) };
        let failed = Connector::default().call(ask).await.err().unwrap();
        assert_eq!(failed.trouble, Trouble::Invalid);

        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", silent.local_addr().unwrap());
        let ask = HttpAsk { patience_ms: 50, ..HttpAsk::get(url) };
        let failed = Connector::default().call(ask).await.err().unwrap();
        assert_eq!(
            (failed.trouble, failed.said.as_str()),
            (Trouble::Unavailable, "no answer in time")
        );
    }

    #[tokio::test]
    async fn what_cannot_be_sent_is_said_without_the_key_in_it() {
        let ask = HttpAsk::get("http://127.0.0.1:1/").header("authorization", "Bearer\nsecret");
        let failed = Connector::default().call(ask).await.err().unwrap();
        assert_eq!(failed.said, "a header cannot be sent");
        let failed = Connector::default().call(HttpAsk::get("no address")).await.err().unwrap();
        assert_eq!(failed.trouble, Trouble::Invalid);
    }
}
