//! microburst behind the proxy: it answers a marked call as AWS would answer it on a bad day.

use crate::{schedule::Fault, wire::Wire};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};
use support::{Probe, python, until};

/// Marks a call with the fault it is to meet.
pub(crate) const HEADER: &str = "x-fault";
/// Longer than any client here waits for an answer: the worker's patience is two seconds.
const PATIENCE_MS: u64 = 2_600;

/// The running program; it ends when this is dropped.
pub(crate) struct Microburst {
    child: Child,
    /// Where it listens.
    pub(crate) port: u16,
}

impl Microburst {
    /// Starts it in front of `upstream`.
    pub(crate) async fn start(upstream: &str) -> Result<Self, String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| error.to_string())?.port();
        let program = python().with_file_name("microburst");
        let child = Command::new(&program)
            .args(["--upstream", upstream, "--host", "127.0.0.1", "--port", &port.to_string()])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.map_err(|error| format!("{}: {error}", program.display()))?;
        let started = Self { child, port };
        until("microburst takes its rules", Duration::from_secs(30), || set_rules(port)).await;
        Ok(started)
    }
}

impl Microburst {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Microburst {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

async fn set_rules(port: u16) -> Probe<()> {
    let body = Value::from(rules()).to_string();
    let request = format!(
        "POST /_microburst/rules HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let asked = async {
        let mut wire = Wire::connect(port).await?;
        wire.write(request.as_bytes()).await?;
        wire.expect().await
    };
    match asked.await {
        Ok(answer) if answer.status() == 200 => Ok(()),
        Ok(answer) => Err(answer.start),
        Err(error) => Err(error.to_string()),
    }
}

/// One rule a kind, chosen by the mark alone: which call meets what is the schedule's business.
fn rules() -> Vec<Value> {
    let error = |code: &str| json!({ "error": { "code": code } });
    let of = |service: &str, code: &str| {
        let mut rule = error(code);
        rule["service"] = json!(service);
        rule
    };
    let cancelled = json!({
        "operation": "TransactWriteItems",
        "error": {
            "code": "TransactionCanceledException",
            "message": "Transaction cancelled, please refer cancellation reasons for specific reasons \
                        [TransactionConflict, None]",
            "fields": {"CancellationReasons": [
                {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"},
                {"Code": "None"},
            ]},
        },
    });
    [
        (Fault::Throttled, of("dynamodb", "ProvisionedThroughputExceededException")),
        (Fault::Throttled, of("sqs", "RequestThrottled")),
        (Fault::Throttled, error("ThrottlingException")),
        (Fault::ServerError, json!({ "error": { "code": "InternalServerError", "status": 500 } })),
        (Fault::Denied, error("AccessDeniedException")),
        (Fault::Conflict, cancelled),
        (Fault::Conflict, error("TransactionConflictException")),
        (Fault::Broken, json!({ "reset": true })),
        (Fault::Silent, json!({ "timeout_ms": PATIENCE_MS })),
        (Fault::Late, json!({ "latency": PATIENCE_MS })),
        (Fault::AnswerLost, json!({ "response": { "abort_bytes": 0 } })),
    ]
    .into_iter()
    .map(|(fault, mut rule)| {
        rule["headers"] = json!({ HEADER: fault.to_string() });
        rule
    })
    .collect()
}
