//! The JSON document in a body, whatever wrapping the provider chose.
//!
//! The choice between JSON and a form is made by the first bytes and never by `Content-Type`,
//! which senders and gateways get wrong. A byte order mark is skipped here and nowhere else: the
//! signature covers it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::form::{fields, has_more_fields_than};
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
        self.read(body, &|_| true)
    }

    /// The document in `body`, for somebody who reads no other `members` of it than these: the
    /// other fields of a form are left out.
    pub(crate) fn document_of<'b>(
        &self,
        body: &'b [u8],
        members: &[String],
    ) -> Result<Cow<'b, str>, UnusableReason> {
        self.read(body, &|name| members.iter().any(|member| member == name))
    }

    fn read<'b>(
        &self,
        body: &'b [u8],
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Cow<'b, str>, UnusableReason> {
        let text = std::str::from_utf8(body).map_err(|_| UnusableReason::NotUtf8)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            Self::Json { form_field: None } => Ok(Cow::Borrowed(text)),
            Self::Json { form_field: Some(field) } => {
                Ok(wrapped(text, field).unwrap_or(Cow::Borrowed(text)))
            }
            Self::Form => form_object(text, is_wanted).map(Cow::Owned),
            Self::JsonOrForm { form_field } => {
                if text.trim_start().starts_with(['{', '[']) {
                    return Ok(Cow::Borrowed(text));
                }
                let inner = form_field.as_ref().and_then(|field| wrapped(text, field));
                inner.map_or_else(|| form_object(text, is_wanted).map(Cow::Owned), Ok)
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
fn wrapped<'t>(text: &'t str, field: &str) -> Option<Cow<'t, str>> {
    text.strip_prefix(field)?.strip_prefix('=')?;
    fields(text.as_bytes()).next().map(|first| lossy(first.value()))
}

/// A form as an object: one value per name, a list where a name repeats.
fn form_object(text: &str, is_wanted: &dyn Fn(&str) -> bool) -> Result<String, UnusableReason> {
    let not_form = |expected: String| UnusableReason::NotForm { expected };
    if has_more_fields_than(text.as_bytes(), FIELDS_MAX) {
        return Err(not_form(format!("at most {FIELDS_MAX} fields")));
    }
    let mut object = FormObject::default();
    for field in fields(text.as_bytes()) {
        let name = lossy(field.name());
        if is_wanted(&name) {
            object.0.entry(name).or_default().push(lossy(field.value()));
        }
    }
    serde_json::to_string(&object).map_err(|_| not_form("text".to_owned()))
}

/// The values of each name, in the order they came.
#[derive(Default)]
struct FormObject<'t>(BTreeMap<Cow<'t, str>, Vec<Cow<'t, str>>>);

impl Serialize for FormObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.len()))?;
        for (name, values) in &self.0 {
            match values.as_slice() {
                [single] => object.serialize_entry(name, single)?,
                several => object.serialize_entry(name, several)?,
            }
        }
        object.end()
    }
}

/// Text of decoded bytes, with U+FFFD where they are not UTF-8.
fn lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}
