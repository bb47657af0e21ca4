//! What the cases share: one deployed stack, a proxy that sees its functions' calls, and ids.

use aws::item::encode_row;
use ledger::{Message, Row};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    future::Future,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};
use support::{
    Answered, Call, CountingProxy, Dialect, EventApi, EventServer, FileHost, LocalStack,
    LocalStripe, Sample, Stack, StackOptions, now_ms, other_secret, root, run_python,
};
use tokio::{runtime::Runtime, sync::watch};

/// Where the deployed Stripe source and its state live.
pub(crate) const STRIPE: &str = "stripe-live";

/// Durations short enough to wait for. Budgets and sizes are those of production.
pub(crate) const POLICY: &str = r#"{
    "first_due_ms": 1000, "resend_after_ms": 1000, "redrive_margin_ms": 500, "retry_grace_ms": 2000,
    "sweep_base_ms": 1000, "transient_base_ms": 100
}"#;

/// The providers whose lists replays and comparisons read.
pub(crate) struct Providers {
    pub(crate) stripe: EventServer,
    pub(crate) github: EventServer,
    pub(crate) paddle: EventServer,
}

/// The deployed stack and what watches it.
pub(crate) struct Suite {
    pub(crate) stack: Stack,
    pub(crate) providers: Providers,
    pub(crate) proxy: CountingProxy,
    /// Where the functions find certificates beside the providers' own addresses.
    pub(crate) certificates: FileHost,
    /// The provider that fetched state comes from.
    pub(crate) stripe: LocalStripe,
    local: LocalStack,
    runtime: Runtime,
    run: String,
    next: AtomicU64,
}

impl Suite {
    /// Deploys.
    pub(crate) fn start() -> Result<Self, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let (upstream, chosen) = watch::channel(0);
        let proxy = runtime.block_on(CountingProxy::start(chosen));
        let certificates = runtime.block_on(FileHost::start());
        let services = ["DYNAMODB", "SQS", "SECRETS_MANAGER"];
        let (providers, stripe) = (runtime.block_on(Providers::start()), LocalStripe::start(0)?);
        let mut function_env = vec![
            ("ONCEHOOK_LOCAL_CERTIFICATES".to_owned(), certificates.base()),
            ("ONCEHOOK_LOCAL_PROVIDER".to_owned(), stripe.url()),
        ];
        function_env.extend(services.map(|name| (format!("AWS_ENDPOINT_URL_{name}"), proxy.url())));
        function_env.extend(providers.variables());
        let options = StackOptions {
            policy_overrides: POLICY.to_owned(),
            function_env,
            parameters: vec![("Reconcile".to_owned(), "all".to_owned())],
            ..StackOptions::default()
        };
        let local = LocalStack::up(&options)?;
        let endpoint = local.env().get("AWS_ENDPOINT_URL")?;
        let port = endpoint.rsplit(':').next().and_then(|port| port.parse().ok());
        upstream.send_replace(port.ok_or_else(|| format!("{endpoint} has no port"))?);
        let stack = runtime.block_on(Stack::connect(local.env().clone()))?;
        runtime.spawn(take_down_when_interrupted(local.dir().to_path_buf()));
        Ok(Self {
            stack,
            providers,
            proxy,
            certificates,
            stripe,
            local,
            runtime,
            run: format!("{:x}", now_ms()),
            next: AtomicU64::new(0),
        })
    }

    /// Nothing may be left in the queue, and nothing running.
    pub(crate) fn end(self) -> Result<(), String> {
        self.runtime.block_on(self.stack.queue_is_empty());
        self.local.down()
    }

    /// The folder of the binaries, where the command line is.
    pub(crate) fn binaries(&self) -> PathBuf {
        self.local.binaries().unwrap()
    }

    /// Runs a case.
    pub(crate) fn block_on<T>(&self, case: impl Future<Output = T>) -> T {
        self.runtime.block_on(case)
    }

    /// An id that no other case and no other run has.
    pub(crate) fn id(&self, stem: &str) -> String {
        format!("{stem}_{}_{}", self.run, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A subscription event of one's own: the sample, the event's id and the subscription's.
    pub(crate) fn subscription(&self, sample: &str) -> (Sample, String, String) {
        let (event, subscription) = (self.id("evt"), self.id("sub"));
        let sample = Sample::read(sample).unwrap();
        let sample =
            sample.with("/id", event.as_str()).with("/data/object/id", subscription.as_str());
        (sample, event, subscription)
    }

    /// Posts a sample, signed.
    pub(crate) async fn post(&self, source: &str, sample: &Sample) -> Answered {
        self.stack.http.post(self.stack.signer.call(source, sample)).await
    }

    /// Posts bytes, signed.
    pub(crate) async fn post_bytes(
        &self,
        source: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Answered {
        self.stack.http.post(self.signed(source, headers, body)).await
    }

    /// Bytes, signed.
    pub(crate) fn signed(&self, source: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Call {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<_> = headers.iter().map(own).collect();
        self.stack.signer.call_at(source, &headers, body, now_ms())
    }

    /// Has `as_operator.py` do something.
    pub(crate) fn operator(&self, command: &Value) -> Value {
        let mut said = self.operators(std::slice::from_ref(command));
        said.remove(0)
    }

    /// Has `as_operator.py` do several things, one after another.
    pub(crate) fn operators(&self, commands: &[Value]) -> Vec<Value> {
        let variables: Vec<(&str, &str)> = self.stack.env.iter().collect();
        operators_of(&variables, commands)
    }

    /// Invokes a function with a payload; `variable` names it.
    pub(crate) fn invoke(&self, variable: &str, payload: &Value) -> Value {
        let function = self.stack.env.get(variable).unwrap();
        self.operator(&json!({"do": "invoke", "function": function, "payload": payload}))
    }

    /// Runs the steward, as its schedule does.
    pub(crate) fn steward(&self) {
        let said = self.invoke("ONCEHOOK_STEWARD_FUNCTION", &json!({}));
        assert!(said.get("error").is_none(), "the steward failed: {said}");
    }

    /// Every line that a function wrote.
    pub(crate) fn logs(&self, function: &str) -> Vec<String> {
        let group =
            format!("/oncehook/{}/{function}", self.stack.env.get("ONCEHOOK_STACK").unwrap());
        let lines = self.operator(&json!({"do": "logs", "group": group}));
        let lines = lines.as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap().to_owned()).collect()
    }

    /// What a function complained of, and how often: for the report of a case that failed.
    pub(crate) fn complaints(&self, function: &str) -> BTreeMap<String, usize> {
        let mut complaints = BTreeMap::new();
        for line in self.logs(function) {
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            let level = line.get("level").and_then(Value::as_str);
            let message = line.get("message").or_else(|| line.pointer("/fields/message"));
            if let (Some("WARN" | "ERROR"), Some(message)) =
                (level, message.and_then(Value::as_str))
            {
                *complaints.entry(message.to_owned()).or_default() += 1;
            }
        }
        complaints
    }

    /// Puts a row in place as it is.
    pub(crate) async fn plant(&self, row: &Row) {
        let table = self.stack.env.get("ONCEHOOK_LEDGER_TABLE").unwrap();
        let put = self.stack.aws.dynamodb().put_item().table_name(table);
        put.set_item(Some(encode_row(row))).send().await.unwrap();
    }

    /// Sends a message to the queue whose URL `variable` names.
    pub(crate) async fn send(&self, variable: &str, message: &Message) {
        let send =
            self.stack.aws.sqs().send_message().queue_url(self.stack.env.get(variable).unwrap());
        send.message_body(message.to_json()).message_group_id("test").send().await.unwrap();
    }

    /// Puts a row's message where the queue moves what it gives up.
    pub(crate) async fn to_dead_letters(&self, row: &Row) {
        let message = Message::new(row.evidence.key.clone(), &row.evidence.event_type, None);
        self.send("ONCEHOOK_DLQ_URL", &message).await;
    }

    /// How many items the two tables hold.
    pub(crate) async fn items(&self) -> [usize; 2] {
        let mut counts = [0; 2];
        for (count, variable) in
            counts.iter_mut().zip(["ONCEHOOK_LEDGER_TABLE", "ONCEHOOK_STATE_TABLE"])
        {
            let scan =
                self.stack.aws.dynamodb().scan().table_name(self.stack.env.get(variable).unwrap());
            let pages = scan.projection_expression("pk").into_paginator().items().send();
            *count = pages.collect::<Result<Vec<_>, _>>().await.unwrap().len();
        }
        counts
    }

    /// The key of an entity of [`STRIPE`].
    pub(crate) fn subscription_key(id: &str) -> String {
        format!("{STRIPE}#subscription#{id}")
    }
}

/// Has `as_operator.py` do several things on the stack that the variables lead to.
pub(crate) fn operators_of(variables: &[(&str, &str)], commands: &[Value]) -> Vec<Value> {
    let lines: Vec<String> = commands.iter().map(Value::to_string).collect();
    let printed = run_python(&script("as_operator.py"), &lines.join("\n"), variables).unwrap();
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Providers {
    async fn start() -> Self {
        let start = |dialect, source: &str| {
            EventServer::start(EventApi::new(dialect, &other_secret("outbound", source)))
        };
        Self {
            stripe: start(Dialect::Stripe, STRIPE).await,
            github: start(Dialect::Github, "github").await,
            paddle: start(Dialect::Paddle, "paddle").await,
        }
    }

    /// Where each list is, for functions and for the command line.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let servers =
            [("STRIPE_LIVE", &self.stripe), ("GITHUB", &self.github), ("PADDLE", &self.paddle)];
        servers.map(|(name, it)| (format!("ONCEHOOK_PARAM_API_{name}"), it.address())).to_vec()
    }
}

/// The emulator has a session of its own, which Ctrl-C does not reach.
async fn take_down_when_interrupted(dir: PathBuf) {
    if tokio::signal::ctrl_c().await.is_ok() {
        let stopped = LocalStack::take_down(&dir);
        std::process::exit(if stopped.is_ok() { 130 } else { 1 });
    }
}

/// A script of this suite.
pub(crate) fn script(name: &str) -> PathBuf {
    root().join("tests/e2e").join(name)
}
