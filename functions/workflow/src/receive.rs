//! Receive: a delivery becomes durable rows and a 2xx, or a refusal.
//!
//! The cheapest refusal comes first, and nothing is read or written before the signature is
//! proven. From then on nothing authentic is thrown away: what cannot be used is kept as a dead
//! row, what belongs to another mode as a settled one, and a second body under a known id beside
//! the first. A 2xx is given only when every event of the delivery is durable; the send that
//! follows the claim may fail, for the sweeper sends what is overdue.

pub(crate) mod accept;
mod replay;

pub use replay::{BY, REASON, ROUTE as REPLAY_ROUTE, RUN, TOKEN, tokens, who_and_why_of};

use crate::{
    certificates::CertificateCache,
    keyring::Keyring,
    ports::ReceiverPorts,
    telemetry::{Level, Line, MetricUnit, shown},
    within::within,
};
use config::{Config, Source};
use ledger::{Millis, Policy};
use std::sync::Arc;
use verifier::{Answer, Headers, Key, Rejection, Request, Verified};

/// Where providers post: `/webhooks/<source>`.
const ROUTE: &str = "/webhooks/";

/// One HTTP request, decoded.
#[derive(Clone)]
pub struct Delivery {
    /// `POST`.
    pub method: String,
    /// The raw path.
    pub path: String,
    /// The raw query without `?`.
    pub query: String,
    /// The headers.
    pub headers: Headers,
    /// The decoded bytes.
    pub body: Vec<u8>,
    /// When the function's time is up.
    pub deadline: Millis,
}

/// What is done with a request.
enum Entry<'r> {
    /// A provider delivers.
    Webhook,
    /// A person feeds an event in again, under a token.
    Replay(&'r Keyring),
}

/// The receiver.
pub struct Receiver<P> {
    /// The world.
    pub ports: Arc<P>,
    /// The sources.
    pub config: Config,
    /// The limits.
    pub policy: Policy,
    /// The keys.
    pub keyring: Keyring,
    /// The providers' certificates fetched of late.
    pub certificates: CertificateCache,
    /// The tokens that open the replay route; `None` where the route is closed.
    pub replay: Option<Keyring>,
    /// The configured public address, without a trailing slash, for schemes that sign the URL.
    pub public_url: Option<String>,
}

impl<P: ReceiverPorts> Receiver<P> {
    /// Answers one delivery and reports it in one line.
    pub async fn receive(&self, delivery: Delivery) -> Answer {
        let started = self.ports.now();
        let deadline = delivery.deadline.minus(self.policy.answer_margin_ms);
        let (answer, line) = match self.route(&delivery) {
            Err(refused) => *refused,
            Ok((source, entry)) => {
                let work = async {
                    match entry {
                        Entry::Webhook => self.deliver(source, &delivery, started).await,
                        Entry::Replay(tokens) => {
                            self.replayed(source, tokens, &delivery, started).await
                        }
                    }
                };
                match within(&*self.ports, deadline, work).await {
                    Some((answer, line)) => (answer, line.of_source(source.name.as_str())),
                    None => unavailable(
                        Line::new(Level::Error, "delivery not stored in time")
                            .of_source(source.name.as_str()),
                        "ClaimFailed",
                    ),
                }
            }
        };
        let elapsed = u32::try_from(self.ports.now().since(started)).unwrap_or(u32::MAX);
        self.ports.emit(
            &line
                .with("answer.status", answer.status)
                .with("body.bytes", delivery.body.len())
                .measure("AnswerTime", f64::from(elapsed), MetricUnit::Milliseconds),
        );
        answer
    }

    /// Source, method, size: what can be told from the request line.
    fn route(&self, delivery: &Delivery) -> Result<(&Source, Entry<'_>), Box<(Answer, Line)>> {
        let (name, entry) = self.entry(&delivery.path);
        let Some(source) = self.config.source(name) else {
            let line = Line::new(Level::Warn, "no such source")
                .with("request.path", shown(&delivery.path));
            let answer = sentence(404, "no webhook source of this name");
            return Err(Box::new((answer, line.count("UnknownSource"))));
        };
        let refused = |line: Line| line.of_source(source.name.as_str()).count("Rejected");
        let only_post = [String::from("POST")];
        let methods = match entry {
            Entry::Webhook => source.preset.methods(),
            Entry::Replay(_) => &only_post,
        };
        if !methods.contains(&delivery.method) {
            let mut answer = sentence(405, "this method is not for webhooks");
            answer.headers.push(("allow".to_owned(), methods.join(", ")));
            let line = Line::new(Level::Warn, "wrong method").with("rejection.cause", "method");
            return Err(Box::new((answer, refused(line))));
        }
        if delivery.body.len() > self.policy.body_bytes_max {
            let line =
                Line::new(Level::Warn, "body too large").with("rejection.cause", "too_large");
            let answer = sentence(413, "the body is larger than this endpoint takes");
            return Err(Box::new((answer, refused(line))));
        }
        Ok((source, entry))
    }

    /// The source's name in a path, and what is done there. A closed replay route is no route.
    fn entry<'p>(&self, path: &'p str) -> (&'p str, Entry<'_>) {
        match (path.strip_prefix(replay::ROUTE), &self.replay) {
            (Some(name), Some(tokens)) => (name, Entry::Replay(tokens)),
            (Some(_), None) | (None, _) => {
                (path.strip_prefix(ROUTE).unwrap_or_default(), Entry::Webhook)
            }
        }
    }

    /// The delivery as the verifier sees it, posted to `url`.
    fn request<'d>(delivery: &'d Delivery, url: Option<&'d str>) -> Request<'d> {
        Request {
            method: &delivery.method,
            path: &delivery.path,
            query: &delivery.query,
            public_url: url,
            headers: &delivery.headers,
            body: &delivery.body,
        }
    }

    async fn deliver(&self, source: &Source, delivery: &Delivery, now: Millis) -> (Answer, Line) {
        let url = self.public_url.as_ref().map(|base| format!("{base}{}", delivery.path));
        let request = Self::request(delivery, url.as_deref());
        let keys = self.keyring.keys(&*self.ports, &self.config, source).await;
        if let Some(answer) = self.handshake(source, &request, &keys, now).await {
            let line = handshake_line(answer.status);
            return (answer, line);
        }
        let verified = self.verify(source, &request, &keys, now).await;
        // The keys may have been read again meanwhile. A handshake comes right after its secret was
        // stored, and would be taken for an event.
        let known = keys;
        let keys = self.keyring.keys(&*self.ports, &self.config, source).await;
        if !Arc::ptr_eq(&known, &keys)
            && let Some(answer) = source.preset.handshake(&request, &keys, now.0)
        {
            let line = handshake_line(answer.status);
            return (answer, line);
        }
        match verified {
            Ok(verified) => {
                let position = keys.iter().position(|key| key.kid() == verified.kid);
                self.accept_all(source, delivery, verified, position, now).await
            }
            Err(rejection) => unauthentic(&rejection),
        }
    }

    /// The answer to a handshake; one that is refused is tried once more with keys read again.
    async fn handshake(
        &self,
        source: &Source,
        request: &Request<'_>,
        keys: &[Key],
        now: Millis,
    ) -> Option<Answer> {
        let answer = source.preset.handshake(request, keys, now.0)?;
        if answer.status != 403 || !self.keyring.refresh(&*self.ports, &self.config).await {
            return Some(answer);
        }
        let keys = self.keyring.keys(&*self.ports, &self.config, source).await;
        source.preset.handshake(request, &keys, now.0)
    }

    /// Verifies; when no key fits, reads the keys again (once a minute) and tries the same
    /// request once more.
    async fn verify(
        &self,
        source: &Source,
        request: &Request<'_>,
        keys: &[Key],
        now: Millis,
    ) -> Result<Verified, Rejection> {
        let first = self.verify_with(source, request, keys, now).await;
        let heals = first.as_ref().is_err_and(Rejection::may_heal_with_newer_keys);
        if heals && self.keyring.refresh(&*self.ports, &self.config).await {
            let keys = self.keyring.keys(&*self.ports, &self.config, source).await;
            return self.verify_with(source, request, &keys, now).await;
        }
        first
    }

    /// Verifies; where the request points to a certificate of its provider's, with that.
    async fn verify_with(
        &self,
        source: &Source,
        request: &Request<'_>,
        keys: &[Key],
        now: Millis,
    ) -> Result<Verified, Rejection> {
        let first = source.preset.verify(request, keys, now.0);
        let Err(Rejection::NeedsCertificate { url }) = first else { return first };
        let certificate = self.certificates.key(&*self.ports, &source.preset, &url).await?;
        let keys: Vec<Key> = keys.iter().cloned().chain([certificate]).collect();
        let verified = source.preset.verify(request, &keys, now.0);
        if verified.is_ok() {
            self.certificates.proved(&url).await;
        }
        verified
    }
}

fn handshake_line(status: u16) -> Line {
    if (200..300).contains(&status) {
        Line::new(Level::Info, "handshake answered").count("Handshake")
    } else {
        let line = Line::new(Level::Warn, "handshake refused").with("rejection.cause", "handshake");
        line.count("Rejected")
    }
}

/// A refused delivery. One whose signature does not hold is counted apart from the internet's noise.
fn unauthentic(rejection: &Rejection) -> (Answer, Line) {
    let (answer, line) = rejected(rejection);
    let is_signed = rejection.is_of_a_signature();
    (answer, if is_signed { line.count("SignatureRefused") } else { line })
}

/// Every refused request gets the same answer; the reason is for the log. A cause on this side is
/// no refusal: the provider is asked to try again.
fn rejected(rejection: &Rejection) -> (Answer, Line) {
    let line = Line::new(Level::Warn, format!("delivery refused: {rejection}"))
        .with("rejection.cause", rejection.cause());
    if rejection.is_ours() {
        unavailable(line, "NotReady")
    } else {
        (sentence(401, "the signature was not accepted"), line.count("Rejected"))
    }
}

fn unavailable(line: Line, metric: &'static str) -> (Answer, Line) {
    let mut answer = sentence(503, "not stored; please send it again");
    answer.headers.push(("retry-after".to_owned(), "5".to_owned()));
    (answer, line.count(metric))
}

/// A short plain-text answer.
#[must_use]
pub fn sentence(status: u16, text: &str) -> Answer {
    let mut answer = Answer::text(format!("{text}\n"));
    answer.status = status;
    answer
}
