//! The state table's stream, read into writes.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One write to an entity, as the stream tells it.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) revision: u64,
    pub(crate) event: String,
    /// When its last effect was made, in ms.
    pub(crate) updated_at: Option<u64>,
    pub(crate) is_final: bool,
    /// The state afterwards.
    pub(crate) state: Value,
    /// Rows that wait for their predecessor afterwards, as `<n>#<key>`.
    pub(crate) waiting: BTreeSet<String>,
}

impl Write {
    /// A field of the state that is a number with two decimals at most, in hundredths.
    pub(crate) fn cents(&self, field: &str) -> Option<i64> {
        let text = self.state.get(field)?.as_number()?.to_string();
        let (sign, digits) = text.strip_prefix('-').map_or((1, text.as_str()), |rest| (-1, rest));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let part = format!("{part:0<2}");
        if part.len() > 2 {
            return None;
        }
        Some(sign * (whole.parse::<i64>().ok()? * 100 + part.parse::<i64>().ok()?))
    }
}

/// The writes of every entity, oldest first.
pub(crate) fn writes(records: &[Value]) -> Result<BTreeMap<String, Vec<Write>>, String> {
    let mut writes: BTreeMap<String, Vec<Write>> = BTreeMap::new();
    for record in records {
        let image = record.pointer("/dynamodb/NewImage").ok_or("a change without a new image")?;
        let item = plain_map(image);
        let text =
            |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let revision = item.get("revision").and_then(Value::as_u64).ok_or("no revision")?;
        writes.entry(text("pk")).or_default().push(Write {
            revision,
            event: text("last_event"),
            updated_at: item.get("updated_at").and_then(Value::as_u64),
            is_final: item.get("final") == Some(&Value::Bool(true)),
            state: item.get("state").cloned().unwrap_or_default(),
            waiting: texts(item.get("waiting")),
        });
    }
    Ok(writes)
}

fn texts(set: Option<&Value>) -> BTreeSet<String> {
    let members = set.and_then(Value::as_array).into_iter().flatten();
    members.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn plain_map(members: &Value) -> Map<String, Value> {
    let members = members.as_object().into_iter().flatten();
    members.map(|(name, value)| (name.clone(), plain(value))).collect()
}

/// `{"S": "x"}` as `"x"`.
fn plain(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|object| object.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "N" => serde_json::from_str(inner.as_str().unwrap_or_default()).unwrap_or_default(),
        "M" => Value::Object(plain_map(inner)),
        "L" => inner.as_array().into_iter().flatten().map(plain).collect(),
        "NULL" => Value::Null,
        _ => inner.clone(),
    }
}
