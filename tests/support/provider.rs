//! Providers' APIs as fixtures: lists of past events in the shapes their documentation gives, newest
//! first, with the troubles a case asks for. They answer in process, or on a loopback port.

use crate::proxy::head_and_len;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The keys and tokens of the local stack, beside the signing keys.
const OTHER_SECRETS: &str = include_str!("../../infra/local-outbound-secrets.json");

/// The local stack's replay token or API key of a source.
#[must_use]
pub fn other_secret(secret: &str, source: &str) -> String {
    let secrets: Value = serde_json::from_str(OTHER_SECRETS).unwrap();
    secrets[secret][source][0]["key"].as_str().unwrap().to_owned()
}

/// What a list was asked.
#[derive(Debug, Clone)]
pub struct ListAsk {
    /// The path without the query.
    pub path: String,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// The value of `Authorization`.
    pub authorization: String,
}

impl ListAsk {
    /// Reads an address or a request line's target.
    #[must_use]
    pub fn new(target: &str, authorization: &str) -> Self {
        let at = target.find("://").map_or(0, |at| at + 3);
        let path = target[at..].find('/').map_or("/", |slash| &target[at + slash..]);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self {
            path: path.to_owned(),
            query: pairs.map(|(name, value)| (decoded(name), decoded(value))).collect(),
            authorization: authorization.to_owned(),
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.query.get(name)?.parse().ok()
    }
}

/// Percent-decoding of what a query of ours holds.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [a, b, tail @ ..]) => {
                let hex = [*a, *b];
                bytes.push(u8::from_str_radix(&String::from_utf8_lossy(&hex), 16).unwrap());
                rest = tail;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// What a list answers.
#[derive(Debug, Clone)]
pub enum ListAnswer {
    /// A status, headers and a body.
    Json(u16, Vec<(String, String)>, Value),
    /// None: the connection is closed.
    Close,
}

impl ListAnswer {
    fn ok(body: Value) -> Self {
        Self::Json(200, Vec::new(), body)
    }

    /// An answer without a body.
    #[must_use]
    pub fn status(status: u16, headers: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self::Json(status, headers.iter().map(own).collect(), Value::Null)
    }
}

/// Chooses a trouble by the number of the request, from 1.
pub(crate) type Trouble = Box<dyn FnMut(u64) -> Option<ListAnswer> + Send>;

/// Whose API it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/events`, cursors by id, times by the second.
    Stripe,
    /// `/repos/.../deliveries`, a `Link` header, bodies one by one.
    Github,
    /// `/notifications`, the next address in the answer.
    Paddle,
}

/// A list of events, the newest first.
pub struct EventApi {
    dialect: Dialect,
    /// The items, as the API lists them, newest first.
    pub items: Vec<Value>,
    /// The details of a GitHub delivery, by the name in the list.
    pub details: BTreeMap<String, Value>,
    /// The key it asks for.
    pub key: String,
    /// Items on a page at most.
    pub page_max: usize,
    /// Events that happen while the list is read: before each request, one comes to the top.
    pub arriving: Vec<Value>,
    /// The troubles.
    pub trouble: Option<Trouble>,
    /// Requests so far.
    pub requests: u64,
    /// Requests for details so far.
    pub detail_requests: u64,
    /// Where it says that its next page is.
    pub base: String,
}

impl EventApi {
    /// An empty list.
    #[must_use]
    pub fn new(dialect: Dialect, key: &str) -> Self {
        Self {
            dialect,
            items: Vec::new(),
            details: BTreeMap::new(),
            key: key.to_owned(),
            page_max: 100,
            arriving: Vec::new(),
            trouble: None,
            requests: 0,
            detail_requests: 0,
            base: "http://127.0.0.1:1".to_owned(),
        }
    }

    /// The path of its list.
    #[must_use]
    pub const fn path(&self) -> &'static str {
        match self.dialect {
            Dialect::Stripe => "/v1/events",
            Dialect::Github => "/repos/acme/shop/hooks/7/deliveries",
            Dialect::Paddle => "/notifications",
        }
    }

    /// Answers one request.
    pub fn answer(&mut self, ask: &ListAsk) -> ListAnswer {
        self.requests += 1;
        let requests = self.requests;
        if let Some(event) = self.arriving.pop() {
            self.items.insert(0, event);
        }
        if let Some(answer) = self.trouble.as_mut().and_then(|trouble| trouble(requests)) {
            return answer;
        }
        if ask.authorization != format!("Bearer {}", self.key) {
            return ListAnswer::status(401, &[]);
        }
        if let Some(name) = ask.path.strip_prefix(&format!("{}/", self.path())) {
            self.detail_requests += 1;
            let found = self.details.get(name);
            return found.map_or_else(
                || ListAnswer::status(404, &[]),
                |detail| ListAnswer::ok(detail.clone()),
            );
        }
        if ask.path != self.path() {
            return ListAnswer::status(404, &[]);
        }
        match self.dialect {
            Dialect::Stripe => self.stripe(ask),
            Dialect::Github => self.github(ask),
            Dialect::Paddle => self.paddle(ask),
        }
    }

    /// The items behind the one that `is_cursor` finds, and whether there are more than fit.
    fn page(&self, wanted: &[&Value], after: Option<usize>, limit: usize) -> (Vec<Value>, bool) {
        let start = after.map_or(0, |at| at + 1);
        let rest = wanted.get(start..).unwrap_or_default();
        let limit = limit.min(self.page_max);
        (rest.iter().take(limit).map(|item| (*item).clone()).collect(), rest.len() > limit)
    }

    fn stripe(&self, ask: &ListAsk) -> ListAnswer {
        let since = ask.number("created[gte]").unwrap_or(0);
        let until = ask.number("created[lte]").unwrap_or(u64::MAX);
        let is_within =
            |item: &&Value| item["created"].as_u64().is_none_or(|at| (since..=until).contains(&at));
        let wanted: Vec<&Value> = self.items.iter().filter(is_within).collect();
        let after = match ask.query.get("starting_after") {
            None => None,
            Some(id) => match wanted.iter().position(|item| item["id"] == id.as_str()) {
                Some(at) => Some(at),
                None => return ListAnswer::status(400, &[]),
            },
        };
        let limit = ask.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(10);
        let (data, has_more) = self.page(&wanted, after, limit);
        ListAnswer::ok(
            json!({"object": "list", "url": "/v1/events", "has_more": has_more, "data": data}),
        )
    }

    fn github(&self, ask: &ListAsk) -> ListAnswer {
        let wanted: Vec<&Value> = self.items.iter().collect();
        let cursor = ask.number("cursor");
        let after = cursor
            .and_then(|cursor| wanted.iter().position(|item| item["id"].as_u64() == Some(cursor)));
        let limit = ask.number("per_page").and_then(|limit| usize::try_from(limit).ok());
        let (items, has_more) = self.page(&wanted, after, limit.unwrap_or(30));
        let mut headers = Vec::new();
        if let (true, Some(last)) = (has_more, items.last()) {
            let next = format!(
                "<{}{}?per_page=100&cursor={}>; rel=\"next\", <{}>; rel=\"first\"",
                self.base,
                self.path(),
                last["id"],
                self.base
            );
            headers.push(("link".to_owned(), next));
        }
        ListAnswer::Json(200, headers, items.into())
    }

    fn paddle(&self, ask: &ListAsk) -> ListAnswer {
        let text = |name: &str| ask.query.get(name).cloned();
        let since = text("from").unwrap_or_default();
        let until = text("to").unwrap_or_else(|| "9".to_owned());
        let is_within = |item: &&Value| {
            let at = item["occurred_at"].as_str().unwrap();
            since.as_str() <= at && at <= until.as_str()
        };
        let wanted: Vec<&Value> = self.items.iter().filter(is_within).collect();
        let after = text("after").and_then(|id| wanted.iter().position(|item| item["id"] == id));
        let limit = ask.number("per_page").and_then(|limit| usize::try_from(limit).ok());
        let (data, has_more) = self.page(&wanted, after, limit.unwrap_or(50));
        let last = data.last().map(|item| item["id"].as_str().unwrap_or_default().to_owned());
        let next = format!(
            "{}{}?from={since}&to={until}&per_page=200&order_by=id%5BDESC%5D&after={}",
            self.base,
            self.path(),
            last.unwrap_or_default()
        );
        let pagination = json!({"per_page": 200, "next": next, "has_more": has_more});
        ListAnswer::ok(json!({"data": data, "meta": {"pagination": pagination}}))
    }
}

/// An API on a loopback port. It ends with the runtime it was started on.
#[derive(Clone)]
pub struct EventServer {
    /// The API, to be changed while it serves.
    pub api: Arc<Mutex<EventApi>>,
    port: u16,
}

impl EventServer {
    /// Starts to listen.
    pub async fn start(mut api: EventApi) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        api.base = format!("http://127.0.0.1:{port}");
        let api = Arc::new(Mutex::new(api));
        let shared = Arc::clone(&api);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let api = Arc::clone(&shared);
                tokio::spawn(async move {
                    // A connection that breaks is the client's to notice.
                    _ = serve(client, &api).await;
                });
            }
        });
        Self { api, port }
    }

    /// Where its list is.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.with(|api| api.path()))
    }

    /// Looks at the API, or changes it.
    pub fn with<T>(&self, change: impl FnOnce(&mut EventApi) -> T) -> T {
        change(&mut self.api.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn serve(mut client: TcpStream, api: &Mutex<EventApi>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        while let Some((head, len)) = head_and_len(&buffer) {
            buffer.drain(..len);
            let target = head.split(' ').nth(1).unwrap_or("/").to_owned();
            let authorization = head.lines().filter_map(|line| line.split_once(':'));
            let authorization = authorization
                .filter(|(name, _)| name.eq_ignore_ascii_case("authorization"))
                .map(|(_, value)| value.trim().to_owned())
                .next();
            let ask = ListAsk::new(&target, &authorization.unwrap_or_default());
            let answer = api.lock().unwrap_or_else(PoisonError::into_inner).answer(&ask);
            let ListAnswer::Json(status, headers, body) = answer else { return Ok(()) };
            let body = body.to_string();
            let mut text = format!(
                "HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                text.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
            }
            client.write_all(text.as_bytes()).await?;
            client.write_all(b"\r\n").await?;
            client.write_all(body.as_bytes()).await?;
        }
        if client.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}
