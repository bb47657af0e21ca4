//! What a request to AWS is: whose, which operation, for what, and about which rows.
//!
//! The purpose is read from the expression, so that a lease and a burial, both `UpdateItem`, are
//! two places where a process can die.

use serde_json::Value;
use std::fmt;

/// A function of the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Function {
    Receiver,
    Consumer,
    Steward,
    Reconciler,
}

/// A place in a function's code, as seen from outside: what it asks AWS for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) function: Function,
    pub(crate) operation: String,
    pub(crate) purpose: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = format!("{:?}", self.function).to_lowercase();
        write!(f, "{function} {} {}", self.operation, self.purpose)
    }
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) place: Place,
    /// Keys of the rows, entities or messages it is about.
    pub(crate) keys: Vec<String>,
    /// The time a lease asks for, in ms.
    pub(crate) lease_until: Option<u64>,
}

impl Call {
    pub(crate) fn read(function: Function, target: &str, body: &[u8]) -> Self {
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        let purpose = purpose(&operation, &json);
        let until = json.pointer("/ExpressionAttributeValues/:until/N").and_then(Value::as_str);
        Self {
            keys: keys(&json),
            lease_until: until.filter(|_| purpose == "lease").and_then(|text| text.parse().ok()),
            place: Place { function, operation, purpose },
        }
    }

    /// Whether it changes a table.
    pub(crate) fn is_write(&self) -> bool {
        matches!(self.place.operation.as_str(), "PutItem" | "UpdateItem" | "TransactWriteItems")
    }

    /// Whether it makes a row's effects and settles it.
    pub(crate) fn is_apply(&self) -> bool {
        matches!(self.place.purpose, "apply" | "apply and wake")
    }

    /// Whether it sends a message.
    pub(crate) fn is_send(&self) -> bool {
        self.place.operation == "SendMessage"
    }
}

/// Words of an update, and the verb that writes them; the first that is found counts.
const VERBS: [(&str, &str); 10] = [
    ("#lease_owner = :owner", "lease"),
    ("#attempts - :one", "wait"),
    ("#outcome = :outcome", "settle"),
    ("#redriven_at = :now", "redrive"),
    ("ADD #sweeps", "sweep"),
    ("SET #expires_at", "expire chunk"),
    ("REMOVE #expires_at", "keep chunk"),
    ("#status = :failed", "fail"),
    ("#status = :dead", "bury"),
    ("#bucket = :bucket", "wake"),
];

fn purpose(operation: &str, json: &Value) -> &'static str {
    let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match operation {
        "TransactWriteItems" => transaction(json),
        "Query" => "open rows",
        "UpdateItem" => {
            let update = text("/UpdateExpression");
            let verb = VERBS.iter().find(|(words, _)| update.contains(words));
            match verb.map_or("other", |(_, verb)| verb) {
                "bury" if text("/ConditionExpression").contains(" IN (") => "forced bury",
                verb => verb,
            }
        }
        "PutItem" => match text("/Item/pk/S") {
            pk if pk.starts_with("_b#") => "chunk",
            "_s#steward" => "notes",
            pk if pk.starts_with("_s#") => "note",
            pk if pk.starts_with("_c#") => "conflict",
            pk if pk.starts_with("_t#") => "mark",
            _ => "claim",
        },
        "GetItem" => match text("/Key/pk/S") {
            pk if pk.starts_with("_b#") => "chunk",
            "_s#steward" => "notes",
            pk if pk.starts_with("_s#") => "note",
            pk if pk.starts_with("_w#") => "warm up",
            _ if text("/TableName").contains("StateTable") => "entity",
            _ => "row",
        },
        _ => "",
    }
}

/// Two verbs write several items, and one of them may wake another row.
fn transaction(json: &Value) -> &'static str {
    let items = json.get("TransactItems").and_then(Value::as_array).into_iter().flatten();
    let updates = items.map(|item| item.pointer("/Update/UpdateExpression"));
    let updates: Vec<&str> =
        updates.map(|text| text.and_then(Value::as_str).unwrap_or("")).collect();
    let some = |words: &str| updates.iter().any(|update| update.contains(words));
    match (some("ADD #waiting"), some("SET #bucket = :bucket, #due_at = :now")) {
        (true, _) => "wait in sequence",
        (false, true) => "apply and wake",
        (false, false) => "apply",
    }
}

fn keys(json: &Value) -> Vec<String> {
    let mut places: Vec<Option<&Value>> =
        vec![json.pointer("/Key/pk/S"), json.pointer("/Item/pk/S")];
    let items = json.get("TransactItems").and_then(Value::as_array).into_iter().flatten();
    places.extend(items.map(|item| item.pointer("/Update/Key/pk/S")));
    let mut keys: Vec<String> =
        places.into_iter().flatten().filter_map(Value::as_str).map(row_of).collect();
    let message = json.get("MessageBody").and_then(Value::as_str).unwrap_or_default();
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    keys.extend(message.get("key").and_then(Value::as_str).map(str::to_owned));
    keys
}

/// The row a chunk or a conflict belongs to; `_b#<sha256>#<n>#<pk>`, `_c#<hash>#<pk>`.
fn row_of(pk: &str) -> String {
    let skipped = match pk.get(..3) {
        Some("_b#") => 3,
        Some("_c#") => 2,
        _ => return pk.to_owned(),
    };
    pk.splitn(skipped + 1, '#').nth(skipped).unwrap_or(pk).to_owned()
}
