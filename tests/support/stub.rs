//! A stub of AWS that answers as it is told: for troubles that no emulator gets into.

use crate::proxy::first_request;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// One answer.
#[derive(Debug, Clone)]
pub enum StubAnswer {
    /// A status and a body.
    Json(u16, Value),
    /// None: the connection is closed.
    Close,
    /// None: the connection stays open.
    Hang,
}

/// The stub. It ends with the runtime it was started on.
pub struct AwsStub {
    port: u16,
}

impl AwsStub {
    /// Starts to listen; `script` chooses the answer by operation, such as
    /// `DynamoDB_20120810.PutItem`.
    pub async fn start(script: impl Fn(&str) -> StubAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let script = Arc::clone(&script);
                tokio::spawn(async move {
                    // A connection that breaks is the client's to notice.
                    _ = serve(client, &*script).await;
                });
            }
        });
        Self { port }
    }

    /// Where to send clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

async fn serve(
    mut client: TcpStream,
    script: &(dyn Fn(&str) -> StubAnswer + Send + Sync),
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        while let Some((seen, len)) = first_request(&buffer) {
            buffer.drain(..len);
            match script(&seen.target) {
                StubAnswer::Close => return Ok(()),
                StubAnswer::Hang => tokio::time::sleep(Duration::from_mins(1)).await,
                StubAnswer::Json(status, body) => {
                    let body = body.to_string();
                    let head = format!(
                        "HTTP/1.1 {status} \r\ncontent-type: application/x-amz-json-1.0\r\n\
                         content-length: {}\r\n\r\n",
                        body.len()
                    );
                    client.write_all(head.as_bytes()).await?;
                    client.write_all(body.as_bytes()).await?;
                }
            }
        }
        if client.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}
