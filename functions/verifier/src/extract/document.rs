//! The JSON document in a body, whatever wrapping the provider chose.
//!
//! The choice between JSON and a form is made by the first bytes and never by `Content-Type`,
//! which senders and gateways get wrong. A byte order mark is skipped here and nowhere else: the
//! signature covers it.

use std::borrow::Cow;

use super::xml::to_json;
use crate::UnusableReason;
use crate::scheme::braintree::payload_xml;

/// More fields than any provider's form has.
const FIELDS_MAX: usize = 1_000;

/// How a body wraps its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, or a form with one field that holds the JSON where such a field is named.
    Json { form_field: Option<String> },
    /// A form; its fields become the members of an object.
    Form,
    /// JSON, a form with one field that holds JSON, or a form.
    JsonOrForm { form_field: Option<String> },
    /// A Braintree form, whose payload is base64 of XML.
    Braintree,
}

impl Format {
    /// The document in `body`: borrowed when the body is the document itself.
    pub(crate) fn document<'b>(&self, body: &'b [u8]) -> Result<Cow<'b, str>, UnusableReason> {
        let text = std::str::from_utf8(body).map_err(|_| UnusableReason::NotUtf8)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            Self::Json { form_field: None } => Ok(Cow::Borrowed(text)),
            Self::Json { form_field: Some(field) } => {
                Ok(wrapped(text, field).map_or(Cow::Borrowed(text), Cow::Owned))
            }
            Self::Form => form_object(text).map(Cow::Owned),
            Self::JsonOrForm { form_field } => {
                if text.trim_start().starts_with(['{', '[']) {
                    return Ok(Cow::Borrowed(text));
                }
                let inner = form_field.as_ref().and_then(|field| wrapped(text, field));
                inner.map_or_else(|| form_object(text), Ok).map(Cow::Owned)
            }
            Self::Braintree => {
                payload_xml(body).and_then(|xml| to_json(&xml)).map(Cow::Owned).ok_or_else(|| {
                    UnusableReason::NotForm { expected: "bt_payload with base64 of XML".to_owned() }
                })
            }
        }
    }
}

/// The JSON in the first field of a form, if the form begins with that field. No JSON text begins
/// with `name=`, so the two cannot be confused.
fn wrapped(text: &str, field: &str) -> Option<String> {
    text.strip_prefix(field)?.strip_prefix('=')?;
    form_urlencoded::parse(text.as_bytes())
        .find(|(name, _)| name == field)
        .map(|(_, value)| value.into_owned())
}

/// A form as an object: one value per name, a list where a name repeats.
fn form_object(text: &str) -> Result<String, UnusableReason> {
    use serde_json::{Map, Value};
    if text.split('&').take(FIELDS_MAX.saturating_add(1)).count() > FIELDS_MAX {
        let expected = format!("at most {FIELDS_MAX} fields");
        return Err(UnusableReason::NotForm { expected });
    }
    let mut object = Map::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let value = Value::String(value.into_owned());
        match object.get_mut(name.as_ref()) {
            None => {
                object.insert(name.into_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(single) => {
                let first = single.take();
                *single = Value::Array(vec![first, value]);
            }
        }
    }
    Ok(Value::Object(object).to_string())
}
