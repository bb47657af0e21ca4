//! Tokens: what tells one request's writes from every other's.

use std::fmt;

/// A random value that tells one request's writes from every other's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u128);

impl Token {
    /// Reads the 32 hexadecimal digits that [`Token`] displays as.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_thirty_two_hexadecimal_digits_in_the_table_and_in_logs() {
        let token = Token(0xAB_CDEF);
        let text = "00000000000000000000000000abcdef";
        assert_eq!((token.to_string(), format!("{token:?}")), (text.to_owned(), text.to_owned()));
        assert_eq!(Token::parse(text), Some(token));
        assert_eq!(Token::parse("no token"), None);
    }
}
