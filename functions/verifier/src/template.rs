//! The text that a signature covers, as a template: `{field.t}.{body}`.
//!
//! Pieces are fed to the primitive one after another, so a body of megabytes is never copied. A
//! template is refused at load when a sender could move bytes across the border between two of its
//! pieces under one signature.

use crate::{CannotSign, HeaderLookup, Rejection, Request};

/// One piece of the signed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Fixed text.
    Literal(String),
    /// A header's value.
    Header(String),
    /// A field of the signature header.
    Field(String),
    /// The method, as sent.
    Method,
    /// The configured public URL with the query as sent.
    Url,
    /// The raw path.
    Path,
    /// The body.
    Body,
}

/// A sequence of pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// The body alone.
    pub(crate) fn body() -> Self {
        Self { pieces: vec![Piece::Body] }
    }

    /// Reads `{field.t}.{body}`; `None` when a brace does not close or a name is unknown.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
            let (name, after) = after.split_once('}')?;
            pieces.push(piece(name)?);
            rest = after;
        }
        if rest.contains('}') {
            return None;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        Some(Self { pieces })
    }

    /// The only piece of a template that has just one.
    pub(crate) fn single(self) -> Option<Piece> {
        let mut pieces = self.pieces.into_iter();
        match (pieces.next(), pieces.next()) {
            (Some(piece), None) => Some(piece),
            (_, _) => None,
        }
    }

    pub(crate) fn covers_body(&self) -> bool {
        self.pieces.contains(&Piece::Body)
    }

    pub(crate) fn signs_url(&self) -> bool {
        self.pieces.contains(&Piece::Url)
    }

    /// Names of the headers that are part of the signed text.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Header(name) => Some(name.as_str()),
            Piece::Literal(_)
            | Piece::Field(_)
            | Piece::Method
            | Piece::Url
            | Piece::Path
            | Piece::Body => None,
        })
    }

    /// Names of the fields that are part of the signed text.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Field(name) => Some(name.as_str()),
            Piece::Literal(_)
            | Piece::Header(_)
            | Piece::Method
            | Piece::Url
            | Piece::Path
            | Piece::Body => None,
        })
    }

    /// The first piece whose end a sender could move: free text with no literal behind it, where
    /// more text follows. `pinned` names the piece that holds the full-length time.
    pub(crate) fn movable_border(&self, pinned: Option<&Piece>) -> Option<String> {
        let following = self.pieces.iter().skip(1);
        self.pieces.iter().zip(following).find_map(|(piece, next)| match (piece, next) {
            (Piece::Header(name) | Piece::Field(name), next)
                if Some(piece) != pinned && !matches!(next, Piece::Literal(_)) =>
            {
                Some(name.clone())
            }
            (_, _) => None,
        })
    }

    /// The bytes of every piece, in order.
    pub(crate) fn fill<'a>(
        &'a self,
        request: &Request<'a>,
        url: &'a str,
        field: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Vec<&'a [u8]>, PartDefect> {
        let mut filled = Vec::with_capacity(self.pieces.len());
        for (index, piece) in self.pieces.iter().enumerate() {
            let bytes = match piece {
                Piece::Literal(text) => text.as_bytes(),
                Piece::Header(name) => {
                    let value = required_header(request, name)?;
                    self.refuse_separator(index, name, value)?;
                    value.as_bytes()
                }
                Piece::Field(name) => {
                    field(name).ok_or_else(|| PartDefect::NoField { at: name.clone() })?.as_bytes()
                }
                Piece::Method => request.method.as_bytes(),
                Piece::Url => url.as_bytes(),
                Piece::Path => request.path.as_bytes(),
                Piece::Body => request.body,
            };
            filled.push(bytes);
        }
        Ok(filled)
    }

    /// A header value must not contain the literal that ends it.
    fn refuse_separator(&self, index: usize, name: &str, value: &str) -> Result<(), PartDefect> {
        let next = index.checked_add(1).and_then(|next| self.pieces.get(next));
        match next {
            Some(Piece::Literal(separator)) if value.contains(separator.as_str()) => {
                Err(PartDefect::Malformed {
                    header: name.to_owned(),
                    expected: format!("a value without `{separator}`"),
                })
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn piece(name: &str) -> Option<Piece> {
    match name {
        "method" => return Some(Piece::Method),
        "url" => return Some(Piece::Url),
        "path" => return Some(Piece::Path),
        "body" => return Some(Piece::Body),
        _ => {}
    }
    let (kind, name) = name.split_once('.')?;
    if name.is_empty() {
        return None;
    }
    match kind {
        "header" => Some(Piece::Header(name.to_ascii_lowercase())),
        "field" => Some(Piece::Field(name.to_owned())),
        _ => None,
    }
}

/// A part of the signed text that the request does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartDefect {
    Missing { header: String },
    Repeated { header: String },
    Malformed { header: String, expected: String },
    NoField { at: String },
}

impl From<PartDefect> for Rejection {
    fn from(defect: PartDefect) -> Self {
        match defect {
            PartDefect::Missing { header } => Self::HeaderMissing { header },
            PartDefect::Repeated { header } => Self::HeaderRepeated { header },
            PartDefect::Malformed { header, expected } => {
                Self::HeaderMalformed { header, expected }
            }
            PartDefect::NoField { at } => Self::FieldMissing { at },
        }
    }
}

impl From<PartDefect> for CannotSign {
    fn from(defect: PartDefect) -> Self {
        match defect {
            PartDefect::Missing { header }
            | PartDefect::Repeated { header }
            | PartDefect::Malformed { header, .. } => Self::HeaderMissing { header },
            PartDefect::NoField { .. } => Self::NotInHeaders {
                hint: "the signature header has a field that only the provider can fill",
            },
        }
    }
}

/// The value of a header that must be there exactly once and not be empty.
pub(crate) fn required_header<'a>(
    request: &Request<'a>,
    name: &str,
) -> Result<&'a str, PartDefect> {
    let header = || name.to_owned();
    match request.headers.get(name) {
        HeaderLookup::Missing | HeaderLookup::Once("") => {
            Err(PartDefect::Missing { header: header() })
        }
        HeaderLookup::Once(value) => Ok(value),
        HeaderLookup::Repeated => Err(PartDefect::Repeated { header: header() }),
    }
}

/// The configured public URL with the query as sent.
pub(crate) fn signed_url(request: &Request<'_>) -> Option<String> {
    let base = request.public_url?;
    Some(if request.query.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", request.query)
    })
}
