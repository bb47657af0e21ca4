//! The stack under test: deployed by the real template, its functions behind the proxy, its
//! durations shortened, and everything that is to be stopped afterwards.

use crate::{
    call::Function,
    lambda::Lambda,
    microburst::Microburst,
    outside::Outside,
    plan::Plan,
    process,
    proxy::{self, Caller, Shared},
    schedule::Schedule,
    slow::{Slow, SlowWorker},
    witness::Witness,
};
use aws_sdk_sqs::types::QueueAttributeName;
use std::{future::Future, sync::Arc};
use support::{LocalStack, Stack, StackOptions};
use tokio::sync::watch;

/// Runs of a row; its production value is 6.
const ATTEMPTS_MAX: u32 = 4;

/// Durations short enough to wait for. Their relations are those of production: a lease ends after
/// its holder's deadline, a record is cut off before it, a message is hidden for longer than both.
const POLICY: &str = r#"{
    "attempts_max": 4,
    "first_due_ms": 2000, "resend_after_ms": 1000, "redrive_margin_ms": 500, "retry_grace_ms": 2000,
    "sweep_base_ms": 2000, "sweep_max_ms": 8000, "lease_early_ms": 200, "lease_margin_ms": 500,
    "cut_off_ms": 1500, "transient_base_ms": 100, "transient_max_ms": 2000,
    "rate_limited_step_ms": 500, "rate_limited_max_ms": 2000, "throttled_max_ms": 20000,
    "redrive_spread_ms": 500, "redrive_interval_ms": 3000, "redrive_every_ms": 2000,
    "clear_every_ms": 4000, "chunk_bytes_max": 8000,
    "store_attempt_ms": 1500, "store_total_ms": 4000, "send_attempt_ms": 600, "send_total_ms": 1500,
    "secret_attempt_ms": 1500, "secret_total_ms": 3000
}"#;

/// The consumer's time limit; 30 s in the template.
const CONSUMER_S: u64 = 5;
/// The steward's; 60 s in the template.
const STEWARD_S: u64 = 20;
/// The reconciler's, of which it leaves 20 s alone; 300 s in the template.
const RECONCILER_S: u64 = 40;
/// How long a message in work is hidden; 180 s in the template.
const VISIBILITY_S: u64 = 7;

/// Where a function sends its calls; one of them alone, `AWS_ENDPOINT_URL`, is the emulator's to set.
const ENDPOINTS: [&str; 3] =
    ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_SECRETS_MANAGER"];

async fn listen(shared: &Arc<Shared>, caller: Caller) -> Result<u16, String> {
    proxy::start(Arc::clone(shared), caller).await.map_err(|error| error.to_string())
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Everything that runs.
pub(crate) struct Rig {
    pub(crate) stack: Stack,
    pub(crate) lambda: Lambda,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) slow: Arc<Slow>,
    pub(crate) outside: Outside,
    slow_port: u16,
    microburst: Microburst,
    local: LocalStack,
}

impl Rig {
    /// Deploys the stack and puts the proxy in front of it.
    pub(crate) async fn start(seed: u64, thorough: bool, plan: &mut Plan) -> Result<Self, String> {
        let schedule = Schedule::new(seed, thorough, plan.curses.clone(), ATTEMPTS_MAX);
        let schedule = Arc::new(schedule);
        let (witness, slow) = (Arc::new(Witness::new()), Arc::new(Slow::default()));
        let (ports, upstream) = watch::channel((0, 0));
        let shared = Shared {
            schedule: Arc::clone(&schedule),
            witness: Arc::clone(&witness),
            slow: Arc::clone(&slow),
            upstream,
        };
        let shared = Arc::new(shared);
        let outside = Outside::start(Arc::clone(&schedule)).await;
        let outside = outside.map_err(|error| error.to_string())?;
        let parameters = [("ConsumerMaximumConcurrency", "4"), ("Reconcile", "never-retried")];
        let options = StackOptions {
            policy_overrides: POLICY.to_owned(),
            without_auth: true,
            release: "r1".to_owned(),
            function_env: outside.variables(),
            parameters: parameters
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..StackOptions::default()
        };
        let local = LocalStack::up(&options)?;
        let endpoint = local.env().get("AWS_ENDPOINT_URL")?.to_owned();
        let microburst = Microburst::start(&endpoint).await?;
        let port = endpoint.rsplit(':').next().and_then(|port| port.parse().ok());
        ports.send_replace((port.ok_or("the endpoint has no port")?, microburst.port));
        let stack = Stack::connect(local.env().clone()).await?;
        outside.prove(&mut plan.events, &stack.signer)?;
        let lambda = Lambda::new(&stack.env)?;
        let slow_port = listen(&shared, Caller::Slow).await?;
        let rig =
            Self { stack, lambda, schedule, witness, slow, outside, slow_port, microburst, local };
        rig.shorten().await?;
        for (function, name) in [
            (Function::Receiver, rig.receiver()),
            (Function::Consumer, rig.consumer()),
            (Function::Steward, rig.steward()),
            (Function::Reconciler, rig.reconciler()),
        ] {
            let port = listen(&shared, Caller::Deployed(function)).await?;
            let url = url(port);
            rig.lambda.set_variables(name, &ENDPOINTS.map(|name| (name, url.as_str()))).await?;
        }
        Ok(rig)
    }

    /// Time limits are the template's, and no parameter of it.
    async fn shorten(&self) -> Result<(), String> {
        self.lambda.set_timeout(self.consumer(), CONSUMER_S).await?;
        self.lambda.set_timeout(self.steward(), STEWARD_S).await?;
        self.lambda.set_timeout(self.reconciler(), RECONCILER_S).await?;
        let queue = self.stack.env.get("ONCEHOOK_QUEUE_URL")?;
        let call = self.stack.aws.sqs().set_queue_attributes().queue_url(queue);
        let call = call.attributes(QueueAttributeName::VisibilityTimeout, VISIBILITY_S.to_string());
        call.send().await.map(drop).map_err(|error| error.to_string())
    }

    pub(crate) fn receiver(&self) -> &str {
        self.function("ONCEHOOK_RECEIVER_FUNCTION")
    }

    pub(crate) fn consumer(&self) -> &str {
        self.function("ONCEHOOK_CONSUMER_FUNCTION")
    }

    pub(crate) fn steward(&self) -> &str {
        self.function("ONCEHOOK_STEWARD_FUNCTION")
    }

    pub(crate) fn reconciler(&self) -> &str {
        self.function("ONCEHOOK_RECONCILER_FUNCTION")
    }

    fn function(&self, variable: &str) -> &str {
        self.stack.env.get(variable).unwrap()
    }

    /// A worker that will be slow, of the build that is deployed now.
    pub(crate) async fn slow_worker(&self) -> Result<SlowWorker, String> {
        let deployed = self.lambda.variables(self.consumer()).await?;
        let text = |(name, value): (&String, &serde_json::Value)| {
            (name.clone(), value.as_str().unwrap_or_default().to_owned())
        };
        let mut variables: Vec<_> = deployed.as_object().into_iter().flatten().map(text).collect();
        let own = ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"];
        for name in own {
            variables.push((name.to_owned(), self.stack.env.get(name)?.to_owned()));
        }
        let fixed = [
            ("AWS_LAMBDA_FUNCTION_NAME", self.consumer()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "slow"),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "slow"),
        ];
        variables.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let slow = url(self.slow_port);
        variables.extend(ENDPOINTS.map(|name| (name.to_owned(), slow.clone())));
        let binary = support::binaries()?.join("consumer");
        let slow = Arc::clone(&self.slow);
        SlowWorker::start(&binary, &variables, slow).await.map_err(|error| error.to_string())
    }

    /// The emulator and what it started have a session of their own, which Ctrl-C does not reach; and
    /// whoever is interrupted drops nothing.
    pub(crate) fn when_interrupted(&self) -> impl Future<Output = ()> + Send + use<> {
        let (dir, microburst) = (self.local.dir().to_path_buf(), self.microburst.pid());
        let slow = Arc::clone(&self.slow);
        async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                [Some(microburst), slow.pid()].into_iter().flatten().for_each(process::kill);
                let stopped = LocalStack::take_down(&dir);
                std::process::exit(if stopped.is_ok() { 130 } else { 1 });
            }
        }
    }

    /// Takes everything down; an error names what is left.
    pub(crate) fn end(self) -> Result<(), String> {
        self.local.down()
    }
}
