//! A proxy that counts: every call a function makes to AWS, seen from outside the function.
//!
//! It passes bytes on as they come, the `Host` header included, so that signatures stay right; all
//! it understands is where one request ends.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
};

/// One request that went through.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The operation, such as `DynamoDB_20120810.PutItem`.
    pub target: String,
    /// The access key that signed it: each function's role has its own.
    pub access_key: String,
    /// The request's JSON.
    pub body: String,
}

/// The proxy. It ends with the runtime it was started on.
pub struct CountingProxy {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl CountingProxy {
    /// Starts to listen; the upstream is named later, for it may not have a port yet.
    pub async fn start(upstream: tokio::sync::watch::Receiver<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (log, upstream) = (Arc::clone(&log), *upstream.borrow());
                tokio::spawn(async move {
                    // A connection that breaks is the client's to notice.
                    _ = pass(client, upstream, &log).await;
                });
            }
        });
        Self { port, seen }
    }

    /// Where to send functions.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What went through so far, in order; forgets it.
    #[must_use]
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn pass(client: TcpStream, upstream: u16, log: &Mutex<Vec<Seen>>) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", upstream)).await?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (client_read, mut client_write) = client.into_split();
    let (mut server_read, server_write) = server.into_split();
    let requests = requests(client_read, server_write, log);
    let answers = async move {
        tokio::io::copy(&mut server_read, &mut client_write).await?;
        client_write.shutdown().await
    };
    tokio::try_join!(requests, answers).map(|_| ())
}

/// Passes requests on, whole, and notes each.
async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    log: &Mutex<Vec<Seen>>,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        while let Some((seen, len)) = first_request(&buffer) {
            to.write_all(&buffer[..len]).await?;
            buffer.drain(..len);
            log.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        }
        if from.read_buf(&mut buffer).await? == 0 {
            return to.shutdown().await;
        }
    }
}

fn header<'h>(head: &'h str, wanted: &str) -> Option<&'h str> {
    let mut pairs = head.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
}

/// The head of the first request of `buffer`, and the request's length, once it is there as a whole.
pub(crate) fn head_and_len(buffer: &[u8]) -> Option<(String, usize)> {
    let head_len = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..head_len]).into_owned();
    let body_len: usize =
        header(&head, "content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    let len = head_len + body_len;
    (buffer.len() >= len).then_some((head, len))
}

/// The first request of `buffer` and its length, once it is there as a whole.
pub(crate) fn first_request(buffer: &[u8]) -> Option<(Seen, usize)> {
    let (head, len) = head_and_len(buffer)?;
    let header = |wanted: &str| header(&head, wanted);
    let body = &buffer[buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4..len];
    let credential = header("authorization")
        .and_then(|value| value.split_once("Credential="))
        .map(|(_, rest)| rest);
    let seen = Seen {
        target: header("x-amz-target").unwrap_or_default().to_owned(),
        access_key: credential
            .and_then(|rest| rest.split('/').next())
            .unwrap_or_default()
            .to_owned(),
        body: String::from_utf8_lossy(body).into_owned(),
    };
    Some((seen, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_noted_once_it_is_whole_and_its_successor_is_left() {
        let one = b"POST / HTTP/1.1\r\nX-Amz-Target: T.Put\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AK/20260101/x\r\ncontent-length: 2\r\n\r\n{}";
        assert!(first_request(&one[..one.len() - 1]).is_none());
        let two = [one.as_slice(), b"POST /"].concat();
        let (seen, len) = first_request(&two).unwrap();
        assert_eq!(
            (seen.target.as_str(), seen.access_key.as_str(), seen.body.as_str()),
            ("T.Put", "AK", "{}")
        );
        assert_eq!(len, one.len());
    }
}
