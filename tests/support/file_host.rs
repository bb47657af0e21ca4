//! A web server with a few files on it: for what a function fetches from a provider.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// The server. It ends with the runtime it was started on.
pub struct FileHost {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    files: BTreeMap<String, String>,
    asked: Vec<String>,
}

impl FileHost {
    /// Starts to listen, with nothing to give.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let host = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let host = Arc::clone(&host);
                tokio::spawn(async move {
                    // A connection that breaks is the client's to notice.
                    _ = serve(client, &host).await;
                });
            }
        });
        Self { port, shared }
    }

    /// Its address, with a slash behind it.
    #[must_use]
    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Puts a file there; its address.
    pub fn put(&self, name: &str, text: &str) -> String {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.files.insert(format!("/{name}"), text.to_owned());
        format!("{}{name}", self.base())
    }

    /// How often a file was asked for.
    #[must_use]
    pub fn times_asked(&self, name: &str) -> usize {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.asked.iter().filter(|asked| **asked == format!("/{name}")).count()
    }
}

/// Answers one request and closes the connection.
async fn serve(client: TcpStream, host: &Mutex<Shared>) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let mut first = String::new();
    client.read_line(&mut first).await?;
    let mut line = String::new();
    while client.read_line(&mut line).await? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let file = {
        let mut shared = host.lock().unwrap_or_else(PoisonError::into_inner);
        let file = shared.files.get(&path).cloned();
        shared.asked.push(path);
        file
    };
    let (status, text) = file.map_or(("404 Not Found", String::new()), |text| ("200 OK", text));
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", text.len());
    let answer = format!("{head}connection: close\r\n\r\n{text}");
    client.get_mut().write_all(answer.as_bytes()).await
}
