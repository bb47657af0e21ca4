//! JSON scalars as text, with every digit as it is written.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// The text of a string or number; `None` for anything else.
pub(crate) fn scalar(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    match text.as_bytes().first()? {
        b'"' if !text.contains('\\') => text.get(1..text.len().checked_sub(1)?).map(Cow::Borrowed),
        b'"' => serde_json::from_str::<String>(text).ok().map(Cow::Owned),
        b'-' | b'0'..=b'9' => Some(Cow::Borrowed(text)),
        _ => None,
    }
}

/// The text of a string, number, or boolean; `None` for anything else.
pub(crate) fn scalar_or_bool(raw: &RawValue) -> Option<Cow<'_, str>> {
    match raw.get() {
        text @ ("true" | "false") => Some(Cow::Borrowed(text)),
        _ => scalar(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::scalar;
    use serde_json::value::RawValue;

    #[test]
    fn a_text_is_what_it_spells() {
        for (json, text) in [
            (r#""x y""#, Some("x y")),
            (r#""""#, Some("")),
            (r#""\u00e9\\""#, Some("\u{e9}\\")),
            ("-1.50", Some("-1.50")),
            ("true", None),
            (r#"{"b":1}"#, None),
        ] {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(scalar(raw).as_deref(), text, "{json}");
        }
    }
}
