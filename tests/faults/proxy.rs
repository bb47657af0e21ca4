//! The proxy between the functions and AWS: every call is looked at, and meets what the schedule says.
//!
//! It holds the call, so it knows where a process is when it kills it: waiting for this answer. So no
//! fault stands in the code of a function. Refusals, broken connections, lost and late answers are
//! made by microburst behind the proxy, which knows AWS's shapes; the proxy marks the calls that are
//! to meet one.

use crate::{
    call::{Call, Function},
    microburst, process,
    schedule::{Fault, Schedule},
    slow::{Held, Slow},
    wire::{Message, Wire},
    witness::Witness,
};
use serde_json::{Value, json};
use std::{io::Result, sync::Arc};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// How late a message may show that was sent late, in seconds.
const SENT_LATE_S: u64 = 4;

/// What every connection shares.
pub(crate) struct Shared {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) slow: Arc<Slow>,
    /// The emulator's port and microburst's, once they are known.
    pub(crate) upstream: watch::Receiver<(u16, u16)>,
}

impl Shared {
    fn ports(&self) -> (u16, u16) {
        *self.upstream.borrow()
    }
}

/// Whose calls a port takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A deployed function's.
    Deployed(Function),
    /// The slow worker's.
    Slow,
}

/// Starts to listen for one caller; the proxy ends with the runtime. Its port.
pub(crate) async fn start(shared: Arc<Shared>, caller: Caller) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((client, peer)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                // A connection that breaks is what this is for.
                _ = serve(client, caller, (peer.port(), port), &shared).await;
            });
        }
    });
    Ok(port)
}

/// One connection of one process.
struct Connection<'a> {
    client: Wire,
    aws: Wire,
    microburst: Option<Wire>,
    caller: Caller,
    /// Its ports at the far end and here.
    ports: (u16, u16),
    shared: &'a Shared,
}

async fn serve(
    client: TcpStream,
    caller: Caller,
    ports: (u16, u16),
    shared: &Shared,
) -> Result<()> {
    let (upstream, _) = shared.ports();
    let (client, aws) = (Wire::new(client)?, Wire::connect(upstream).await?);
    let mut connection = Connection { client, aws, microburst: None, caller, ports, shared };
    while let Some(request) = connection.client.read().await? {
        if !connection.pass(&request).await? {
            break;
        }
    }
    Ok(())
}

impl Connection<'_> {
    /// Passes one request, or does to it what has to be done; whether the connection lives on.
    async fn pass(&mut self, request: &Message) -> Result<bool> {
        let target = request.header("x-amz-target").unwrap_or_default();
        let function = match self.caller {
            Caller::Deployed(function) => function,
            Caller::Slow => Function::Consumer,
        };
        let call = Call::read(function, target, &request.body);
        if self.caller == Caller::Slow {
            return self.pass_slowly(request, &call).await;
        }
        let fault = self.shared.schedule.decide(&call);
        match fault {
            None => self.pass_on(request, &call, None).await,
            Some(Fault::KilledBefore) => {
                self.kill().await;
                self.note(&call, fault, None);
                Ok(false)
            }
            Some(Fault::KilledAfter) => {
                let answer = self.ask_aws(&request.raw).await?;
                self.kill().await;
                self.note(&call, fault, Some(&answer));
                Ok(false)
            }
            Some(Fault::SentTwice) => {
                let first = self.ask_aws(&request.raw).await?;
                self.note(&call, fault, Some(&first));
                self.pass_on(request, &call, None).await
            }
            Some(Fault::SentLate) => {
                let mut body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
                body["DelaySeconds"] = json!(SENT_LATE_S);
                let answer = self.ask_aws(&request.with_body(body.to_string().as_bytes())).await?;
                self.note(&call, fault, Some(&answer));
                self.client.write(&answer.raw).await?;
                Ok(true)
            }
            Some(fault) => self.pass_through_microburst(request, &call, fault).await,
        }
    }

    /// Kills the process that waits for this answer. One that is not found has died before.
    async fn kill(&self) {
        let (peer, port) = self.ports;
        let found = tokio::task::spawn_blocking(move || process::of_peer(peer, port)).await;
        if let Ok(Some(pid)) = found {
            process::kill(pid);
        }
    }

    async fn ask_aws(&mut self, bytes: &[u8]) -> Result<Message> {
        self.aws.write(bytes).await?;
        self.aws.expect().await
    }

    async fn pass_on(
        &mut self,
        request: &Message,
        call: &Call,
        fault: Option<Fault>,
    ) -> Result<bool> {
        let answer = self.ask_aws(&request.raw).await?;
        self.note(call, fault, Some(&answer));
        self.client.write(&answer.raw).await?;
        Ok(true)
    }

    async fn pass_through_microburst(
        &mut self,
        request: &Message,
        call: &Call,
        fault: Fault,
    ) -> Result<bool> {
        let mut microburst = match self.microburst.take() {
            Some(wire) => wire,
            None => Wire::connect(self.shared.ports().1).await?,
        };
        microburst.write(&request.with_header(microburst::HEADER, &fault.to_string())).await?;
        let answer = microburst.read().await.ok().flatten();
        self.note(call, Some(fault), answer.as_ref());
        // What microburst broke off, the client finds broken off.
        let Some(answer) = answer else { return Ok(false) };
        self.microburst = Some(microburst);
        self.client.write(&answer.raw).await?;
        Ok(true)
    }

    /// A call of a worker that is to outlive its lease.
    async fn pass_slowly(&mut self, request: &Message, call: &Call) -> Result<bool> {
        let slow = Arc::clone(&self.shared.slow);
        let Some(key) = call.keys.first() else { return self.pass_on(request, call, None).await };
        if call.place.purpose != "lease" {
            let Some(held) = slow.is_to_be_held(key).filter(|_| call.is_write()) else {
                return self.pass_on(request, call, None).await;
            };
            self.shared.schedule.count(Fault::WrittenLate);
            held.over(&self.shared.witness).await;
            return self.pass_on(request, call, Some(Fault::WrittenLate)).await;
        }
        let before = self.shared.witness.progress(key);
        let answer = self.ask_aws(&request.raw).await?;
        let held = call
            .lease_until
            .filter(|_| answer.status() == 200)
            .and_then(|until| slow.leased(Held::new(key, until, before)));
        if let Some((pid, held)) = held {
            process::freeze(pid);
            self.note(call, Some(Fault::Frozen), Some(&answer));
            self.shared.schedule.count(Fault::Frozen);
            let witness = Arc::clone(&self.shared.witness);
            tokio::spawn(async move {
                held.over(&witness).await;
                process::thaw(pid);
            });
        } else {
            self.note(call, None, Some(&answer));
        }
        self.client.write(&answer.raw).await?;
        Ok(true)
    }

    fn note(&self, call: &Call, fault: Option<Fault>, answer: Option<&Message>) {
        let who = match self.caller {
            Caller::Deployed(_) => format!("port {}", self.ports.0),
            Caller::Slow => "slow".to_owned(),
        };
        self.shared.witness.note(&who, call, fault, answer);
    }
}
