//! A token of the team's own that a request carries in a header: what opens the replay route.
//!
//! The scheme is the one of providers that prove themselves by a shared token. Stricter in one
//! thing: a team makes the token itself, so a short one is its own mistake and is refused.

use crate::key::KeyForm;
use crate::scheme::token::Token;
use crate::{Key, KeyDefect, Rejection, Request, Verified};

/// Shorter tokens can be guessed.
const LENGTH_MIN: usize = 32;

/// Where a shared token stands.
#[derive(Clone, Debug)]
pub struct SharedToken(Token);

impl SharedToken {
    /// In the header `name`, in lower case.
    #[must_use]
    pub fn in_header(name: &str) -> Self {
        Self(Token::at(name))
    }

    /// Reads a token as stored: printable text of at least 32 characters.
    pub fn key(&self, kid: &str, text: &str) -> Result<Key, KeyDefect> {
        let key = KeyForm::Text.read(kid, text)?;
        if text.chars().count() < LENGTH_MIN {
            return Err(KeyDefect::Malformed { expected: "at least 32 characters" });
        }
        Ok(key)
    }

    /// Compares what the request carries with every live token, in constant time.
    pub fn verify(&self, request: &Request<'_>, tokens: &[Key]) -> Result<Verified, Rejection> {
        self.0.verify(request, tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Headers;

    const OLD: &str = "an-old-token-of-forty-characters-0123456";
    const NEW: &str = "a-new-token-of-forty-characters-01234567";

    fn verdict(header: Option<&str>) -> Result<String, Rejection> {
        let scheme = SharedToken::in_header("x-replay-token");
        let tokens = [scheme.key("old", OLD).unwrap(), scheme.key("new", NEW).unwrap()];
        let headers: Headers = header.map(|value| ("X-Replay-Token", value)).into_iter().collect();
        let request = Request {
            method: "POST",
            path: "/",
            query: "",
            public_url: None,
            headers: &headers,
            body: b"",
        };
        scheme.verify(&request, &tokens).map(|verified| verified.kid)
    }

    #[test]
    fn any_live_token_opens_and_nothing_else_does() {
        assert_eq!(verdict(Some(OLD)), Ok("old".to_owned()));
        assert_eq!(verdict(Some(NEW)), Ok("new".to_owned()));
        for wrong in ["", "x", &OLD[1..], &format!("{OLD}x"), &OLD.to_uppercase()] {
            assert!(verdict(Some(wrong)).is_err(), "{wrong:?}");
        }
        assert!(verdict(None).is_err());
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused_and_not_shown() {
        let scheme = SharedToken::in_header("x-replay-token");
        for bad in
            ["", "short", "31-characters-are-one-too-few!!", " 0123456789012345678901234567890123"]
        {
            let said = scheme.key("k", bad).unwrap_err().to_string();
            assert!(bad.is_empty() || !said.contains(bad.trim()), "{said}");
        }
        assert!(scheme.key("k", "32-characters-are-just-enough-!!").is_ok());
    }
}
