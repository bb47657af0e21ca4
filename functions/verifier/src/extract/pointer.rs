//! JSON Pointers (RFC 6901): the way to a value, name by name.

/// A JSON Pointer (RFC 6901) other than the empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    text: String,
    tokens: Vec<String>,
}

impl Pointer {
    /// Reads `/data/object/id`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let path = text.strip_prefix('/')?;
        let tokens = path.split('/').map(unescape).collect::<Option<Vec<_>>>()?;
        Some(Self { text: text.to_owned(), tokens })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The names on the way, unescaped; at least one.
    pub(super) fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

fn unescape(token: &str) -> Option<String> {
    let mut characters = token.chars();
    let mut plain = String::with_capacity(token.len());
    while let Some(character) = characters.next() {
        plain.push(match character {
            '~' => match characters.next() {
                Some('0') => '~',
                Some('1') => '/',
                Some(_) | None => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

/// The place in a list that a token names: digits without a leading zero (RFC 6901, section 4).
pub(super) fn list_index(token: &str) -> Option<usize> {
    let canonical = token == "0"
        || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    canonical.then(|| token.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{Pointer, list_index};

    #[test]
    fn what_is_no_pointer_is_refused() {
        for text in ["", "a", "/a~", "/a~2"] {
            assert_eq!(Pointer::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_place_in_a_list_has_no_leading_zero() {
        assert_eq!(["0", "7", "10"].map(list_index), [Some(0), Some(7), Some(10)]);
        for token in ["", "00", "01", "-1", "+1", "1.0", "x", "99999999999999999999"] {
            assert_eq!(list_index(token), None, "{token}");
        }
    }
}
