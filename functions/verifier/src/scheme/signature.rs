//! A signature header over a template of request parts: plain-body and template HMAC, and the same
//! with public keys. Most providers are this module and a table.
//!
//! Order of refusal: header, its form, the time's form, keys, signature, time window. The window
//! comes last so that a forger learns nothing about clocks.

use crate::algorithm::Algorithm;
use crate::encoding::Encoding;
use crate::key::KeyForm;
use crate::layout::{Layout, Parsed};
use crate::preset::section::{PresetDefect, Section, describe};
use crate::scheme::usable_keys;
use crate::template::{Piece, Template, required_header, signed_url};
use crate::time::{TimeUnit, Window};
use crate::{CannotSign, HeaderLookup, Key, Rejection, Request, Verified};
use std::borrow::Cow;

/// A signature header, described.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    header: String,
    layout: Layout,
    encoding: Encoding,
    template: Template,
    time: Option<SignedTime>,
    key_form: KeyForm,
}

/// Where the signed time stands and how far it may be from now.
#[derive(Clone, Debug)]
struct SignedTime {
    at: Piece,
    unit: TimeUnit,
    window: Window,
}

/// Most public-key signatures in one header: one for each key a source may have. Each may cost a
/// pass over the body, where HMACs share one.
const PUBLIC_KEY_SIGNATURES_MAX: usize = 3;
/// The longest window a preset may ask for.
const WINDOW_S_MAX: u64 = 86_400;

impl Signature {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, PresetDefect> {
        let header = section
            .header("header")?
            .ok_or_else(|| section.defect("header", "nothing", "a header name"))?;
        let layout = read_layout(section)?;
        let encoding = section.required_choice("encoding", Encoding::CHOICES)?;
        let template = match section.string("signed")? {
            None => Template::body(),
            Some(text) => Template::parse(text).ok_or_else(|| {
                section.defect(
                    "signed",
                    format!("`{text}`"),
                    "text with {body}, {method}, {path}, {url}, {header.NAME} or {field.NAME}",
                )
            })?,
        };
        let time = section.section("time")?.map(read_time).transpose()?;
        let key_form = section.required_choice("key", KeyForm::CHOICES)?;
        let read = Self { header, layout, encoding, template, time, key_form };
        read.validate(section)?;
        Ok(read)
    }

    /// Refuses descriptions that could not hold what they promise.
    fn validate(&self, section: &Section<'_>) -> Result<(), PresetDefect> {
        if !self.template.covers_body() {
            return Err(section.defect("signed", "no {body}", "a text that covers {body}"));
        }
        let pinned = self.time.as_ref().map(|time| &time.at);
        if let Some(name) = self.template.movable_border(pinned) {
            return Err(section.defect(
                "signed",
                format!("{{{name}}} with no separator behind it"),
                "a literal behind every header and field that is not the signed time",
            ));
        }
        for name in self.template.fields() {
            let readable = match &self.layout {
                Layout::Plain { .. } => false,
                Layout::Positional { .. } => name == "0",
                Layout::Pairs { signatures, .. } => !signatures.iter().any(|(key, _)| key == name),
            };
            if !readable {
                return Err(section.defect(
                    "signed",
                    format!("{{field.{name}}}"),
                    "a field that the layout of the header has",
                ));
            }
        }
        if let Some(time) = &self.time {
            let signed = match &time.at {
                Piece::Header(name) => self.template.headers().any(|header| header == name),
                Piece::Field(name) => self.template.fields().any(|field| field == name),
                Piece::Literal(_) | Piece::Method | Piece::Url | Piece::Path | Piece::Body => false,
            };
            if !signed {
                return Err(section.defect(
                    "time",
                    "a time that is not signed",
                    "a header or field that `signed` contains",
                ));
            }
        }
        Ok(())
    }

    pub(crate) const fn key_form(&self) -> KeyForm {
        self.key_form
    }

    pub(crate) fn headers(&self) -> Vec<String> {
        vec![self.header.clone()]
    }

    pub(crate) fn verify(
        &self,
        request: &Request<'_>,
        keys: &[Key],
        now_ms: u64,
    ) -> Result<Verified, Rejection> {
        let value = self.value(request)?;
        let parsed = self.layout.parse(&self.header, &value)?;
        let signed_at_ms = self.signed_time(request, &parsed)?;
        let candidates = self.candidates(&parsed)?;
        let url = self.url(request).ok_or(Rejection::NoPublicUrl)?;
        let pieces = self.template.fill(request, &url, |name| parsed.field(name))?;
        let keys = usable_keys(keys, |material| {
            self.layout.algorithms().iter().any(|algorithm| algorithm.fits(material))
        })?;
        let kid = matching_kid(&keys, &pieces, &candidates).ok_or(Rejection::NoSignatureMatched)?;
        if let (Some(time), Some(signed_at_ms)) = (&self.time, signed_at_ms) {
            time.window.check(signed_at_ms, now_ms, time.unit)?;
        }
        Ok(Verified { kid, signed_at_ms })
    }

    /// The header's value, or all of them as a gateway would join them.
    fn value<'r>(&self, request: &Request<'r>) -> Result<Cow<'r, str>, Rejection> {
        if self.layout.repeats() && request.headers.get(&self.header) == HeaderLookup::Repeated {
            let of_name = |(name, _): &(&str, &str)| name.eq_ignore_ascii_case(&self.header);
            let values: Vec<&str> =
                request.headers.iter().filter(of_name).map(|(_, value)| value).collect();
            return Ok(Cow::Owned(values.join(",")));
        }
        Ok(Cow::Borrowed(required_header(request, &self.header)?))
    }

    /// The URL text to sign: empty when the scheme does not sign it, `None` when it must and
    /// cannot.
    fn url(&self, request: &Request<'_>) -> Option<String> {
        if self.template.signs_url() { signed_url(request) } else { Some(String::new()) }
    }

    fn signed_time(
        &self,
        request: &Request<'_>,
        parsed: &Parsed<'_>,
    ) -> Result<Option<u64>, Rejection> {
        let Some(time) = &self.time else {
            return Ok(None);
        };
        let (header, text) = match &time.at {
            Piece::Header(name) => (name, Some(required_header(request, name)?)),
            Piece::Field(name) if parsed.repeats(name) => {
                return Err(Rejection::HeaderRepeated { header: self.header.clone() });
            }
            Piece::Field(name) => (&self.header, parsed.field(name)),
            Piece::Literal(_) | Piece::Method | Piece::Url | Piece::Path | Piece::Body => {
                (&self.header, None)
            }
        };
        text.and_then(|text| time.unit.parse_ms(text)).map(Some).ok_or_else(|| {
            Rejection::HeaderMalformed {
                header: header.clone(),
                expected: time.unit.describe().to_owned(),
            }
        })
    }

    /// The signatures that are spelled as the scheme spells them. A malformed one beside a good
    /// one is ignored; none at all is a malformed header.
    fn candidates(&self, parsed: &Parsed<'_>) -> Result<Vec<(Algorithm, Vec<u8>)>, Rejection> {
        let candidates: Vec<(Algorithm, Vec<u8>)> = parsed
            .signatures
            .iter()
            .filter_map(|(algorithm, text)| {
                let bytes = self.encoding.decode(text)?;
                algorithm.plausible_length(bytes.len()).then_some((*algorithm, bytes))
            })
            .collect();
        if candidates.is_empty() {
            return Err(Rejection::HeaderMalformed {
                header: self.header.clone(),
                expected: format!("a signature in {}", self.encoding.describe()),
            });
        }
        let by_public_key = |(algorithm, _): &&(Algorithm, Vec<u8>)| algorithm.has_public_keys();
        if candidates.iter().filter(by_public_key).count() > PUBLIC_KEY_SIGNATURES_MAX {
            return Err(Rejection::TooManySignatures {
                header: self.header.clone(),
                max: PUBLIC_KEY_SIGNATURES_MAX,
            });
        }
        Ok(candidates)
    }

    pub(crate) fn sign(
        &self,
        unsigned: &Request<'_>,
        key: &Key,
        now_ms: u64,
    ) -> Result<Vec<(String, String)>, CannotSign> {
        let algorithm = self
            .layout
            .algorithms()
            .into_iter()
            .find(|algorithm| algorithm.fits(&key.material))
            .ok_or(CannotSign::PublicKeyOnly)?;
        let time = match &self.time {
            None => None,
            Some(time) => {
                Some((&time.at, time.unit.write(now_ms).ok_or(CannotSign::TimeOutOfRange)?))
            }
        };
        let mut headers = Vec::new();
        let mut signed_headers = unsigned.headers.clone();
        if let Some((Piece::Header(name), text)) = &time {
            signed_headers = signed_headers.replacing(name, text);
            headers.push((name.clone(), text.clone()));
        }
        let request = Request { headers: &signed_headers, ..*unsigned };
        let url = self.url(&request).ok_or(CannotSign::NoPublicUrl)?;
        let time_field = match &time {
            Some((Piece::Field(name), text)) => Some((name.as_str(), text.as_str())),
            Some((_, _)) | None => None,
        };
        let pieces = self
            .template
            .fill(&request, &url, |name| {
                time_field.filter(|(field, _)| *field == name).map(|(_, text)| text)
            })
            .map_err(CannotSign::from)?;
        let signature = algorithm.sign(&key.material, &pieces).ok_or(CannotSign::PublicKeyOnly)?;
        let value = self.layout.write(time_field, algorithm, &self.encoding.encode(&signature));
        headers.push((self.header.clone(), value));
        Ok(headers)
    }
}

/// The name of a key that made one of the candidates. Every key is tried against every candidate,
/// whatever matched before, so that time says nothing about which one it was.
fn matching_kid(
    keys: &[&Key],
    pieces: &[&[u8]],
    candidates: &[(Algorithm, Vec<u8>)],
) -> Option<String> {
    let mut matched = None;
    for key in keys {
        for (_, algorithm) in Algorithm::CHOICES {
            let same: Vec<&[u8]> = candidates
                .iter()
                .filter(|(known, _)| known == algorithm)
                .map(|(_, bytes)| bytes.as_slice())
                .collect();
            if same.is_empty() || !algorithm.fits(&key.material) {
                continue;
            }
            if bool::from(algorithm.matches(&key.material, pieces, &same)) && matched.is_none() {
                matched = Some(key.kid.clone());
            }
        }
    }
    matched
}

fn read_time(section: Section<'_>) -> Result<SignedTime, PresetDefect> {
    let text = section.required_string("at")?;
    let piece = Template::parse(&format!("{{{text}}}")).and_then(Template::single);
    let at = match piece {
        Some(piece @ (Piece::Header(_) | Piece::Field(_))) => piece,
        Some(Piece::Literal(_) | Piece::Method | Piece::Url | Piece::Path | Piece::Body) | None => {
            return Err(section.defect("at", format!("`{text}`"), "header.NAME or field.NAME"));
        }
    };
    let unit = section.required_choice("unit", TimeUnit::CHOICES)?;
    let past_s = section.number("past_s", 1, WINDOW_S_MAX)?.unwrap_or(300);
    let future_s = section.number("future_s", 0, WINDOW_S_MAX)?.unwrap_or(past_s);
    section.finish()?;
    Ok(SignedTime { at, unit, window: Window { past_s, future_s } })
}

#[derive(Clone, Copy)]
enum LayoutKind {
    Plain,
    Pairs,
    Positional,
}

fn read_layout(section: &Section<'_>) -> Result<Layout, PresetDefect> {
    const KINDS: &[(&str, LayoutKind)] = &[
        ("plain", LayoutKind::Plain),
        ("pairs", LayoutKind::Pairs),
        ("positional", LayoutKind::Positional),
    ];
    let kind = section.choice("layout", KINDS)?.unwrap_or(LayoutKind::Plain);
    match kind {
        LayoutKind::Plain => Ok(Layout::Plain {
            prefix: section.text("prefix")?.unwrap_or_default().to_owned(),
            algorithm: section.required_choice("algorithm", Algorithm::CHOICES)?,
            several: section.boolean("several")?.unwrap_or(false),
        }),
        LayoutKind::Positional => Ok(Layout::Positional {
            separator: section.character("separator")?.unwrap_or(','),
            algorithm: section.required_choice("algorithm", Algorithm::CHOICES)?,
        }),
        LayoutKind::Pairs => {
            let signatures = section.required_section("signatures")?;
            let mut versions = Vec::new();
            for (name, value) in signatures.entries() {
                let Some(text) = value.as_str() else {
                    return Err(signatures.defect(name, describe(value), "an algorithm"));
                };
                versions
                    .push((name.to_owned(), signatures.choose(name, text, Algorithm::CHOICES)?));
            }
            if versions.is_empty() {
                return Err(section.defect("signatures", "an empty table", "VERSION = ALGORITHM"));
            }
            Ok(Layout::Pairs {
                separator: section.character("separator")?.unwrap_or(','),
                assign: section.character("assign")?.unwrap_or('='),
                signatures: versions,
            })
        }
    }
}
