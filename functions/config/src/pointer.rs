//! JSON Pointers: where in an event something stands.

use std::{borrow::Cow, fmt};
use thiserror::Error;

/// Levels a pointer may have. Providers' events are a dozen levels deep at most.
const LEVELS_MAX: usize = 64;

/// A valid JSON Pointer (RFC 6901). The empty pointer is the whole event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(String);

/// Why a text is no JSON Pointer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PointerDefect {
    /// It does not begin with `/`.
    #[error("a JSON Pointer begins with `/`")]
    NoSlash {
        /// The pointer it was probably meant to be.
        meant: Option<String>,
    },
    /// A `~` that is followed by neither `0` nor `1`.
    #[error("in a JSON Pointer `~` is written `~0`, and `/` inside a name `~1`")]
    Tilde,
    /// More levels than any event has.
    #[error("a JSON Pointer has {LEVELS_MAX} levels at most")]
    TooDeep,
}

impl Pointer {
    /// Reads a pointer such as `/data/object/id`.
    pub fn parse(text: &str) -> Result<Self, PointerDefect> {
        if text.is_empty() {
            return Ok(Self(String::new()));
        }
        if !text.starts_with('/') {
            return Err(PointerDefect::NoSlash { meant: meant(text) });
        }
        let escapes_hold = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        if !escapes_hold {
            return Err(PointerDefect::Tilde);
        }
        if text.matches('/').count() > LEVELS_MAX {
            return Err(PointerDefect::TooDeep);
        }
        Ok(Self(text.to_owned()))
    }

    /// The pointer as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its names from the outermost inwards, escapes resolved; none for the whole event.
    pub fn tokens(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.split('/').skip(1).map(|token| {
            if token.contains('~') {
                Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
            } else {
                Cow::Borrowed(token)
            }
        })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// `data.object.id`, `$.data.object.id`, `data/object/id`: habits from other path languages.
fn meant(text: &str) -> Option<String> {
    let path = text.trim_start_matches(['$', '.', '#']);
    let plain = |character: char| character.is_ascii_alphanumeric() || "._-/".contains(character);
    let is_path = path.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '/')
        && path.chars().all(plain);
    is_path.then(|| format!("/{}", path.trim_start_matches('/').replace('.', "/")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let pointer = Pointer::parse(text).unwrap();
        pointer.tokens().map(Cow::into_owned).collect()
    }

    #[test]
    fn escapes_are_resolved_in_the_order_of_rfc_6901() {
        assert_eq!(tokens("/a~1b/m~0n/~01"), ["a/b", "m~n", "~1"]);
        assert_eq!(tokens(""), Vec::<String>::new());
        assert_eq!(tokens("/"), [""]);
        assert_eq!(tokens("/ /0"), [" ", "0"]);
    }

    #[test]
    fn what_is_no_pointer_is_refused_with_what_was_probably_meant() {
        let meant = |text| match Pointer::parse(text) {
            Err(PointerDefect::NoSlash { meant }) => meant,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(meant("data/object").as_deref(), Some("/data/object"));
        assert_eq!(meant("data.object.id").as_deref(), Some("/data/object/id"));
        assert_eq!(meant("$.data.id").as_deref(), Some("/data/id"));
        assert_eq!(meant("#/data/id").as_deref(), Some("/data/id"));
        assert_eq!(meant("a b"), None);
        assert_eq!(Pointer::parse("/a~2b"), Err(PointerDefect::Tilde));
        assert_eq!(Pointer::parse("/a~"), Err(PointerDefect::Tilde));
        assert_eq!(Pointer::parse(&"/a".repeat(65)), Err(PointerDefect::TooDeep));
        let deepest = "/a".repeat(64);
        let pointer = Pointer::parse(&deepest).unwrap();
        assert_eq!((pointer.as_str(), pointer.to_string()), (deepest.as_str(), deepest.clone()));
    }
}
