//! HTTP/1.1 as it stands on the wire: whole messages, with their raw bytes kept.
//!
//! A server library would hide the connection, and the connection is what the proxy breaks, whose
//! far end it looks up, and on which it answers as late as it likes. Only what the SDK, the Lambda
//! runtime and the emulator send is understood.

use std::io::{Error, ErrorKind, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A request or an answer.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// `POST / HTTP/1.1`, or `HTTP/1.1 200 OK`.
    pub(crate) start: String,
    headers: Vec<(String, String)>,
    /// The body, without its framing.
    pub(crate) body: Vec<u8>,
    /// Every byte, as it came.
    pub(crate) raw: Vec<u8>,
}

impl Message {
    /// A header's value.
    pub(crate) fn header(&self, wanted: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
    }

    /// An answer's status; 0 for a request.
    pub(crate) fn status(&self) -> u16 {
        let number = self.start.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        number.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// The bytes with one header more.
    pub(crate) fn with_header(&self, name: &str, value: &str) -> Vec<u8> {
        let behind_start = self.start.len() + 2;
        let line = format!("{name}: {value}\r\n");
        [&self.raw[..behind_start], line.as_bytes(), &self.raw[behind_start..]].concat()
    }

    /// The bytes with another body.
    pub(crate) fn with_body(&self, body: &[u8]) -> Vec<u8> {
        let framing = ["content-length", "transfer-encoding"];
        let is_framing = |name: &str| framing.iter().any(|other| name.eq_ignore_ascii_case(other));
        let kept = self.headers.iter().filter(|(name, _)| !is_framing(name));
        framed(&self.start, kept.map(|(name, value)| (name.as_str(), value.as_str())), body)
    }
}

/// An answer's bytes.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    framed(&format!("HTTP/1.1 {status} ."), headers.iter().copied(), body)
}

fn framed<'a>(
    start: &str,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    body: &[u8],
) -> Vec<u8> {
    let mut lines = vec![start.to_owned()];
    lines.extend(headers.map(|(name, value)| format!("{name}: {value}")));
    lines.push(format!("content-length: {}\r\n\r\n", body.len()));
    [lines.join("\r\n").as_bytes(), body].concat()
}

/// A connection, and what was read of it beyond the last message.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub(crate) async fn connect(port: u16) -> Result<Self> {
        Self::new(TcpStream::connect(("127.0.0.1", port)).await?)
    }

    /// The next message; `None` where the connection ended between two.
    pub(crate) async fn read(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some((message, len)) = parse(&self.buffer)? {
                self.buffer.drain(..len);
                return Ok(Some(message));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(Error::from(ErrorKind::UnexpectedEof))
                };
            }
        }
    }

    /// The next message, where one has to come.
    pub(crate) async fn expect(&mut self) -> Result<Message> {
        self.read().await?.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await
    }
}

/// The first message of `buffer` and its length, once it is there as a whole.
fn parse(buffer: &[u8]) -> Result<Option<(Message, usize)>> {
    let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let start = lines.next().unwrap_or_default().to_owned();
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    let mut message = Message {
        start,
        headers: lines.filter_map(pair).collect(),
        body: Vec::new(),
        raw: Vec::new(),
    };
    let body = &buffer[end + 4..];
    let taken = if message.header("transfer-encoding") == Some("chunked") {
        match chunks(body)? {
            None => return Ok(None),
            Some((decoded, taken)) => {
                message.body = decoded;
                taken
            }
        }
    } else {
        let len = message.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        match body.get(..len) {
            None => return Ok(None),
            Some(bytes) => message.body = bytes.to_vec(),
        }
        len
    };
    let len = end + 4 + taken;
    message.raw = buffer[..len].to_vec();
    Ok(Some((message, len)))
}

/// A chunked body and its length on the wire, once it is there as a whole.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let (mut decoded, mut at) = (Vec::new(), 0);
    loop {
        let rest = &bytes[at.min(bytes.len())..];
        let Some(line) = rest.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let digits = std::str::from_utf8(&rest[..line]).unwrap_or_default();
        let len = usize::from_str_radix(digits.split(';').next().unwrap_or_default().trim(), 16)
            .map_err(|_| Error::from(ErrorKind::InvalidData))?;
        let end = line + 2 + len + 2;
        if rest.len() < end {
            return Ok(None);
        }
        decoded.extend_from_slice(&rest[line + 2..line + 2 + len]);
        at += end;
        if len == 0 {
            return Ok(Some((decoded, at)));
        }
    }
}
