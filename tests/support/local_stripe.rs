//! A Stripe to talk to: `localstripe`, which keeps customers and subscriptions, answers its API and
//! sends webhooks that it signs itself. A process of its own, ended with the value.
//!
//! It knows no `customer.subscription.updated`, sends each webhook once, a second late, and keeps
//! its objects in a file of the temporary folder it is given.

use crate::{Answered, Call, Http, python, root};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The process, and a client for it.
pub struct LocalStripe {
    child: Child,
    port: u16,
    http: Http,
    key: String,
    _dir: TempDir,
}

impl LocalStripe {
    /// Starts it, on a free port for `0`. Its API is asked with the key that the local stack has
    /// for it.
    pub fn start(port: u16) -> Result<Self, String> {
        let keys = root().join("infra/local-outbound-secrets.json");
        let keys = std::fs::read_to_string(keys).map_err(|error| error.to_string())?;
        let keys: Value = serde_json::from_str(&keys).map_err(|error| error.to_string())?;
        let key = keys.pointer("/outbound/stripe-api/0/key").and_then(Value::as_str);
        let key = key.unwrap_or_default();
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let failed = |error: std::io::Error| format!("localstripe does not start: {error}");
        let mut child = Command::new(python())
            .arg(root().join("tests/support/local_stripe.py"))
            .arg(port.to_string())
            .env("TMPDIR", dir.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        let Ok(port) = line.trim().parse() else {
            _ = child.kill();
            return Err(format!("localstripe does not start on port {port}; is it taken?"));
        };
        let http = Http::new(&format!("http://127.0.0.1:{port}"));
        Ok(Self { child, port, http, key: key.to_owned(), _dir: dir })
    }

    /// Where it answers.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Has it send webhooks to `url`, signed with `secret`.
    pub async fn send_webhooks_to(&self, url: &str, secret: &str) -> Result<(), String> {
        let form = [("url", url), ("secret", secret)];
        self.call("POST", "/_config/webhooks/oncehook", &form).await.map(|_| ())
    }

    /// A plan to subscribe to.
    pub async fn create_plan(&self, id: &str) -> Result<(), String> {
        let form = [
            ("id", id),
            ("amount", "500"),
            ("currency", "eur"),
            ("interval", "month"),
            ("name", id),
            ("product[name]", id),
        ];
        self.call("POST", "/v1/plans", &form).await.map(|_| ())
    }

    /// A customer: its id.
    pub async fn create_customer(&self, email: &str) -> Result<String, String> {
        let customer = self.call("POST", "/v1/customers", &[("email", email)]).await?;
        id_of(&customer).map(str::to_owned)
    }

    /// A new customer's subscription to a plan: its id.
    pub async fn subscribe(&self, email: &str, plan: &str) -> Result<String, String> {
        let customer = self.create_customer(email).await?;
        let form =
            [("customer", customer.as_str()), ("items[0][plan]", plan), ("trial_period_days", "7")];
        let subscription = self.call("POST", "/v1/subscriptions", &form).await?;
        id_of(&subscription).map(str::to_owned)
    }

    /// Moves a subscription to another plan. No webhook tells of it.
    pub async fn change_plan(&self, subscription: &str, plan: &str) -> Result<(), String> {
        let path = format!("/v1/subscriptions/{subscription}");
        self.call("POST", &path, &[("items[0][plan]", plan)]).await.map(|_| ())
    }

    /// Ends a subscription.
    pub async fn cancel(&self, subscription: &str) -> Result<(), String> {
        let path = format!("/v1/subscriptions/{subscription}");
        self.call("DELETE", &path, &[]).await.map(|_| ())
    }

    /// What its API says about a subscription.
    pub async fn subscription(&self, id: &str) -> Result<Value, String> {
        self.call("GET", &format!("/v1/subscriptions/{id}"), &[]).await
    }

    async fn call(&self, method: &str, path: &str, form: &[(&str, &str)]) -> Result<Value, String> {
        let encode = |text: &str| -> String {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            text.bytes()
                .map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
                .collect()
        };
        let body: Vec<String> = form
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        let headers = [
            ("authorization", format!("Bearer {}", self.key)),
            ("content-type", "application/x-www-form-urlencoded".to_owned()),
        ];
        let call = Call {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.into_bytes())).to_vec(),
            body: body.join("&").into_bytes(),
        };
        let Answered { status, text, .. } = self.http.send(call).await?;
        if status != 200 {
            return Err(format!("localstripe answers {status} to {method} {path}: {text}"));
        }
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

impl Drop for LocalStripe {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn id_of(object: &Value) -> Result<&str, String> {
    let id = object.get("id").and_then(Value::as_str);
    id.ok_or_else(|| "localstripe answers without an id".to_owned())
}

/// Takes in what a provider posts, for a test to pass on as it likes: later, twice, in any order.
pub struct Letterbox {
    port: u16,
    letters: Arc<Mutex<Vec<Call>>>,
}

impl Letterbox {
    /// Starts to listen. It ends with the runtime it was started on.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let letters = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&letters);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let taken = Arc::clone(&taken);
                // A letter that breaks off is the sender's to notice.
                tokio::spawn(async move { _ = take(client, &taken).await });
            }
        });
        Self { port, letters }
    }

    /// Where to post.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// What came so far, in order.
    #[must_use]
    pub fn letters(&self) -> Vec<Call> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One request: kept, and answered 200.
async fn take(mut client: TcpStream, taken: &Mutex<Vec<Call>>) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        if let Some(call) = whole(&buffer) {
            taken.lock().unwrap_or_else(PoisonError::into_inner).push(call);
            client
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .await?;
            return client.shutdown().await;
        }
        if client.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

fn whole(buffer: &[u8]) -> Option<Call> {
    let (_, len) = crate::proxy::first_request(buffer)?;
    let head_len = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(buffer.get(..head_len)?).into_owned();
    // Those of the connection are the next sender's own.
    let own = ["host", "content-length", "connection", "accept-encoding"];
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .filter(|(name, _)| !own.contains(&name.as_str()));
    Some(Call {
        method: "POST".to_owned(),
        path: String::new(),
        headers: headers.map(|(name, value)| (name, value.into_bytes())).collect(),
        body: buffer.get(head_len..len)?.to_vec(),
    })
}
