//! JSON read in its own bytes: an event leaves a list as it stood there, to the last digit.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What a pointer leads to, in the bytes as they came.
pub(super) fn at<'r>(raw: &'r RawValue, pointer: &str) -> Option<&'r RawValue> {
    pointer.split('/').skip(1).try_fold(raw, |raw, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        if raw.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            return items.get(step.parse::<usize>().ok()?).copied();
        }
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
        fields.get(&step).copied()
    })
}

/// A text, number or truth value as text.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    match raw.get().as_bytes().first()? {
        b'"' => serde_json::from_str(raw.get()).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(raw.get().to_owned()),
    }
}

/// Where JSON went wrong. serde_json's own message may quote the text.
pub(super) fn place(error: &serde_json::Error) -> String {
    format!("no such JSON at line {}, column {}", error.line(), error.column())
}
