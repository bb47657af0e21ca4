//! `application/x-www-form-urlencoded`, field by field.
//!
//! Fields are handed out as they were sent, and decoded only where somebody asks: a stranger may
//! send megabytes of escapes under a name that no provider uses.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2};
use percent_encoding::percent_decode;

/// One field, undecoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'b> {
    name: &'b [u8],
    value: &'b [u8],
}

impl<'b> Field<'b> {
    pub(crate) fn name(self) -> Cow<'b, [u8]> {
        decode(self.name)
    }

    pub(crate) fn value(self) -> Cow<'b, [u8]> {
        decode(self.value)
    }
}

/// The fields of a form. One without `=` has an empty value, and nothing between two `&` is no
/// field.
pub(crate) fn fields(form: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut rest = Some(form);
    std::iter::from_fn(move || {
        let form = rest?;
        let (piece, after) = cut(form, b'&');
        rest = after;
        Some(piece)
    })
    .filter(|piece| !piece.is_empty())
    .map(|piece| {
        let (name, value) = cut(piece, b'=');
        Field { name, value: value.unwrap_or_default() }
    })
}

/// Whether a form has more than `max` fields, empty ones included.
pub(crate) fn has_more_fields_than(form: &[u8], max: usize) -> bool {
    memchr_iter(b'&', form).take(max).count() >= max
}

/// What stands before the first `mark`, and what behind it, if there is one.
fn cut(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    let cut = memchr(mark, text).and_then(|at| text.split_at_checked(at));
    cut.map_or((text, None), |(before, after)| (before, after.get(1..)))
}

/// Undoes `+` and percent-escapes. What only looks like an escape stays as it is.
fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr2(b'+', b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut spaced = text.to_vec();
    for byte in &mut spaced {
        if *byte == b'+' {
            *byte = b' ';
        }
    }
    let decoded = match Cow::from(percent_decode(&spaced)) {
        Cow::Owned(decoded) => Some(decoded),
        Cow::Borrowed(_) => None,
    };
    Cow::Owned(decoded.unwrap_or(spaced))
}

#[cfg(test)]
mod tests {
    use super::{fields, has_more_fields_than};
    use proptest::prelude::*;

    fn read(form: &[u8]) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields(form).map(|field| (text(&field.name()), text(&field.value()))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_form_is_read_as_the_url_standard_reads_it(
            form in prop_oneof![
                "[a-c=&%+ 0-9A-F]{0,80}".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..80),
            ]
        ) {
            let standard: Vec<(String, String)> =
                form_urlencoded::parse(&form).into_owned().collect();
            prop_assert_eq!(read(&form), standard);
        }
    }

    #[test]
    fn fields_are_counted_up_to_the_limit() {
        for (form, more) in [("", false), ("a&b", false), ("a&b&c", true), ("&&", true)] {
            assert_eq!(has_more_fields_than(form.as_bytes(), 2), more, "{form}");
        }
    }
}
