//! What this suite asks of the stack's control plane: invoke, set time limits, deploy a build, read
//! the stream of the state table. Plain JSON over HTTP: the stack runs without IAM, so that nothing
//! has to be signed.

use serde_json::{Value, json};
use support::EnvFile;

/// The control plane of one stack.
#[derive(Clone)]
pub(crate) struct Lambda {
    endpoint: String,
    client: reqwest::Client,
}

impl Lambda {
    pub(crate) fn new(env: &EnvFile) -> Result<Self, String> {
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.map_err(|error| error.to_string())?;
        Ok(Self { endpoint: env.get("AWS_ENDPOINT_URL")?.to_owned(), client })
    }

    /// Invokes a function and waits for its answer; an error is one that it, or Lambda, answered.
    pub(crate) async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, String> {
        let url = format!("{}/2015-03-31/functions/{function}/invocations", self.endpoint);
        let answer = self.client.post(url).body(payload.to_string()).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        let failed = answer.headers().contains_key("x-amz-function-error");
        let status = answer.status();
        let text = answer.text().await.map_err(|error| error.to_string())?;
        if failed || !status.is_success() {
            return Err(format!("{status} {text}"));
        }
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// A function's variables.
    pub(crate) async fn variables(&self, function: &str) -> Result<Value, String> {
        let url = format!("{}/2015-03-31/functions/{function}/configuration", self.endpoint);
        let found = self.send(self.client.get(url)).await?;
        found.pointer("/Environment/Variables").cloned().ok_or("no variables".to_owned())
    }

    /// Sets a function's time limit.
    pub(crate) async fn set_timeout(&self, function: &str, seconds: u64) -> Result<(), String> {
        self.configure(function, &json!({ "Timeout": seconds })).await
    }

    /// Sets some of a function's variables. With `ONCEHOOK_RELEASE` it is a build of another id:
    /// what `sam deploy` does when the parameter `Release` changed.
    pub(crate) async fn set_variables(
        &self,
        function: &str,
        changed: &[(&str, &str)],
    ) -> Result<(), String> {
        let mut variables = self.variables(function).await?;
        for (name, value) in changed {
            variables[*name] = json!(value);
        }
        self.configure(function, &json!({ "Environment": { "Variables": variables } })).await
    }

    async fn configure(&self, function: &str, change: &Value) -> Result<(), String> {
        let url = format!("{}/2015-03-31/functions/{function}/configuration", self.endpoint);
        self.send(self.client.put(url).body(change.to_string())).await.map(drop)
    }

    /// Keeps a function from running at all, or lets it.
    pub(crate) async fn hold(&self, function: &str, held: bool) -> Result<(), String> {
        let url = format!("{}/2017-10-31/functions/{function}/concurrency", self.endpoint);
        let call = if held {
            self.client.put(url).body(json!({ "ReservedConcurrentExecutions": 0 }).to_string())
        } else {
            self.client.delete(url)
        };
        self.send(call).await.map(drop)
    }

    /// Every change of a table since it was made, oldest first, from its stream.
    pub(crate) async fn changes(&self, table: &str) -> Result<Vec<Value>, String> {
        let streams = self.streams("ListStreams", &json!({ "TableName": table })).await?;
        let arn =
            streams.pointer("/Streams/0/StreamArn").cloned().ok_or("the table has no stream")?;
        let described = self.streams("DescribeStream", &json!({ "StreamArn": arn })).await?;
        let shards = described.pointer("/StreamDescription/Shards").and_then(Value::as_array);
        let mut changes = Vec::new();
        for shard in shards.into_iter().flatten() {
            let ask = json!({ "StreamArn": arn, "ShardId": shard["ShardId"],
                "ShardIteratorType": "TRIM_HORIZON" });
            let mut iterator =
                self.streams("GetShardIterator", &ask).await?["ShardIterator"].take();
            while iterator.is_string() {
                let ask = json!({ "ShardIterator": iterator, "Limit": 1000 });
                let mut page = self.streams("GetRecords", &ask).await?;
                let records =
                    page["Records"].as_array_mut().map(std::mem::take).unwrap_or_default();
                if records.is_empty() {
                    break;
                }
                changes.extend(records);
                iterator = page["NextShardIterator"].take();
            }
        }
        Ok(changes)
    }

    async fn streams(&self, operation: &str, ask: &Value) -> Result<Value, String> {
        const SCOPE: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, \
                             SignedHeaders=host, Signature=none";
        let call = self.client.post(&self.endpoint).body(ask.to_string());
        let call = call.header("x-amz-target", format!("DynamoDBStreams_20120810.{operation}"));
        self.send(call.header("authorization", SCOPE)).await
    }

    async fn send(&self, call: reqwest::RequestBuilder) -> Result<Value, String> {
        let answer = call.send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("{status} {text}"));
        }
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}
