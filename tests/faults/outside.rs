//! The providers' side: what is true of the things that events only hint at, GitHub's list of
//! its deliveries, and the certificate that proves PayPal's. Providers fail now and then, too.

use crate::{
    plan::{Event, Expect},
    schedule::{Fault, Schedule},
    wire::{Message, Wire, answer},
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    io::Result,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use support::{
    Dialect, EventApi, EventServer, FileHost, ListAnswer, Signer, iso, now_ms, other_secret, prove,
};
use tokio::net::{TcpListener, TcpStream};

/// Sources whose deliveries are listed, and signed beforehand.
const LISTED: &str = "github";
const PROVEN: &str = "paypal";
const CERTIFICATE: &str = "v1/notifications/certs/CERT-faults";
/// How long ago a listed delivery was made: the reconciler leaves the youngest alone.
const LISTED_MS_AGO: u64 = 1_200_000;
/// What is so, by the path at which it is asked for.
#[derive(Default)]
struct Truths {
    /// The number of the last event about it, and what it is since then.
    by_path: HashMap<String, (u64, Value)>,
    /// Questions so far.
    asked: u64,
    listed: HashSet<String>,
}

/// All providers, on loopback ports.
pub(crate) struct Outside {
    truths: Arc<Mutex<Truths>>,
    port: u16,
    github: EventServer,
    certificates: FileHost,
}

impl Outside {
    pub(crate) async fn start(schedule: Arc<Schedule>) -> Result<Self> {
        let truths = Arc::<Mutex<Truths>>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (shared, of_asked) = (Arc::clone(&truths), Arc::clone(&schedule));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (truths, schedule) = (Arc::clone(&shared), Arc::clone(&of_asked));
                tokio::spawn(async move {
                    // Who asks may die while it waits.
                    _ = serve(client, &truths, &schedule).await;
                });
            }
        });
        let mut api = EventApi::new(Dialect::Github, &other_secret("outbound", LISTED));
        api.trouble = Some(Box::new(move |request| fails(request, &schedule)));
        let (github, certificates) = (EventServer::start(api).await, FileHost::start().await);
        Ok(Self { truths, port, github, certificates })
    }

    /// Where the functions find all this.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        [
            ("ONCEHOOK_LOCAL_PROVIDER", format!("http://127.0.0.1:{}", self.port)),
            ("ONCEHOOK_LOCAL_CERTIFICATES", self.certificates.base()),
            ("ONCEHOOK_PARAM_API_GITHUB", self.github.address()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// Signs what nobody can sign without a key of the provider's.
    pub(crate) fn prove(
        &self,
        events: &mut [Event],
        signer: &Signer,
    ) -> std::result::Result<(), String> {
        let mut proven: Vec<&mut Event> =
            events.iter_mut().filter(|event| event.source == PROVEN).collect();
        let text = |event: &&mut Event| {
            let transmission = event.headers.first().map(|(_, value)| value.clone());
            (transmission.unwrap_or_default(), String::from_utf8_lossy(&event.body).into_owned())
        };
        let deliveries: Vec<(String, String)> = proven.iter().map(text).collect();
        let url = self.certificates.put(CERTIFICATE, "");
        let proofs = prove(signer.key_text(PROVEN), &url, &deliveries)?;
        self.certificates.put(CERTIFICATE, &proofs.certificate);
        for (event, headers) in proven.iter_mut().zip(proofs.headers) {
            event.headers = headers;
        }
        Ok(())
    }

    /// What an event tells of happens, before it is sent.
    pub(crate) fn happens(&self, event: &Event) {
        let mut truths = lock(&self.truths);
        if let Expect::Fetched { path, number, says, .. } = &event.expect {
            let truth = truths.by_path.entry(path.clone()).or_default();
            if *number > truth.0 {
                *truth = (*number, says.clone());
            }
        }
        if is_listed(event) && truths.listed.insert(event.key.clone()) {
            let id = truths.listed.len();
            self.github.with(|api| list(api, id, event));
        }
    }
}

/// Whether a provider's list holds it, so that it arrives even if no delivery does.
pub(crate) fn is_listed(event: &Event) -> bool {
    event.source == LISTED
}

/// Whether its headers hold its proof.
pub(crate) fn is_proven(event: &Event) -> bool {
    event.source == PROVEN
}

fn list(api: &mut EventApi, id: usize, event: &Event) {
    let payload: Value = serde_json::from_slice(&event.body).unwrap_or_default();
    let item = json!({"id": id, "guid": event.id, "event": "push", "action": null,
        "delivered_at": iso(now_ms() - LISTED_MS_AGO), "redelivery": false, "status_code": 0});
    api.items.insert(0, item);
    let headers: serde_json::Map<String, Value> =
        event.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let detail = json!({"id": id, "guid": event.id,
        "request": {"headers": headers, "payload": payload}});
    api.details.insert(id.to_string(), detail);
}

fn lock(truths: &Mutex<Truths>) -> MutexGuard<'_, Truths> {
    truths.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How this question fails, if it does: one in five or so, each in its way, until all is calm.
fn fails(question: u64, schedule: &Schedule) -> Option<ListAnswer> {
    let failure = match question {
        n if n.is_multiple_of(11) => ListAnswer::status(500, &[]),
        n if n.is_multiple_of(13) => ListAnswer::status(429, &[("retry-after", "1")]),
        n if n.is_multiple_of(17) => ListAnswer::Close,
        _ => return None,
    };
    if schedule.is_calm() {
        return None;
    }
    schedule.count(Fault::ProviderFails);
    Some(failure)
}

async fn serve(client: TcpStream, truths: &Mutex<Truths>, schedule: &Schedule) -> Result<()> {
    let mut wire = Wire::new(client)?;
    while let Some(request) = wire.read().await? {
        let said = says(&request, &mut lock(truths), schedule);
        let ListAnswer::Json(status, headers, body) = said else { return Ok(()) };
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        wire.write(&answer(status, &headers, body.to_string().as_bytes())).await?;
    }
    Ok(())
}

fn says(request: &Message, truths: &mut Truths, schedule: &Schedule) -> ListAnswer {
    truths.asked += 1;
    if let Some(failure) = fails(truths.asked, schedule) {
        return failure;
    }
    let path = request.start.split(' ').nth(1).unwrap_or_default();
    if path == "/v1/oauth2/token" {
        let token =
            json!({"access_token": "of-the-faults", "token_type": "Bearer", "expires_in": 60});
        return ListAnswer::Json(200, Vec::new(), token);
    }
    let unknown = ListAnswer::status(404, &[]);
    let now = truths.by_path.get(path).map(|(_, now)| now.clone());
    now.map_or(unknown, |now| ListAnswer::Json(200, Vec::new(), now))
}
