//! How a header carries its signatures: one value, `key=value` pairs, or a time and bare digests.
//!
//! The parser only cuts; it decodes nothing and trims nothing. Keys it does not know are left
//! alone, so that a provider can add a version without breaking its receivers, and a list longer
//! than any provider sends is refused before any of it is hashed.

use crate::Rejection;
use crate::algorithm::Algorithm;

/// Most entries a list header may have. Vendors send one per live key, and few keys are live.
pub(crate) const ENTRIES_MAX: usize = 32;

/// The shape of a signature header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The value is one signature behind a fixed prefix; or one for each live key where a provider
    /// sends `several`, in headers of their own, which gateways join with commas.
    Plain { prefix: String, algorithm: Algorithm, several: bool },
    /// `t=1,v1=ab,v1=cd`: entries cut at `separator`, each cut at its first `assign`.
    Pairs { separator: char, assign: char, signatures: Vec<(String, Algorithm)> },
    /// `1663103925004,ab,cd`: the first entry is field `0`, the rest are signatures.
    Positional { separator: char, algorithm: Algorithm },
}

/// A signature header, cut up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parsed<'a> {
    fields: Vec<(&'a str, &'a str)>,
    /// Signature texts of accepted versions, with the algorithm each claims.
    pub(crate) signatures: Vec<(Algorithm, &'a str)>,
}

impl Parsed<'_> {
    /// The value of a field that appears exactly once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(key, _)| *key == name);
        match (values.next(), values.next()) {
            (Some((_, value)), None) => Some(value),
            (_, _) => None,
        }
    }

    /// Whether a field appears more than once, which several joined headers look like.
    pub(crate) fn repeats(&self, name: &str) -> bool {
        self.fields.iter().filter(|(key, _)| *key == name).count() > 1
    }
}

impl Layout {
    /// Cuts `value`, the value of `header`.
    pub(crate) fn parse<'a>(&self, header: &str, value: &'a str) -> Result<Parsed<'a>, Rejection> {
        let mut parsed = Parsed { fields: Vec::new(), signatures: Vec::new() };
        match self {
            Self::Plain { prefix, algorithm, several: true } => {
                let bare = entries(header, value, ',')?.into_iter().map(str::trim);
                let signatures = bare.filter_map(|entry| entry.strip_prefix(prefix.as_str()));
                parsed.signatures.extend(signatures.map(|signature| (*algorithm, signature)));
            }
            Self::Plain { prefix, algorithm, several: false } => {
                if value.contains(',') {
                    return Err(Rejection::HeaderRepeated { header: header.to_owned() });
                }
                let Some(signature) = value.strip_prefix(prefix.as_str()) else {
                    return Err(Rejection::SchemeRefused { header: header.to_owned() });
                };
                parsed.signatures.push((*algorithm, signature));
            }
            Self::Pairs { separator, assign, signatures } => {
                for entry in entries(header, value, *separator)? {
                    if looks_joined(entry, *separator, *assign) {
                        return Err(Rejection::HeaderRepeated { header: header.to_owned() });
                    }
                    let Some((key, value)) = entry.split_once(*assign) else {
                        continue;
                    };
                    match signatures.iter().find(|(name, _)| name == key) {
                        Some((_, algorithm)) => parsed.signatures.push((*algorithm, value)),
                        None => parsed.fields.push((key, value)),
                    }
                }
            }
            Self::Positional { separator, algorithm } => {
                for (index, entry) in entries(header, value, *separator)?.into_iter().enumerate() {
                    if index == 0 {
                        parsed.fields.push(("0", entry));
                    } else if parsed.field("0").is_some_and(|time| is_like(entry, time)) {
                        return Err(Rejection::HeaderRepeated { header: header.to_owned() });
                    } else {
                        parsed.signatures.push((*algorithm, entry));
                    }
                }
            }
        }
        if parsed.signatures.is_empty() {
            return Err(Rejection::SchemeRefused { header: header.to_owned() });
        }
        Ok(parsed)
    }

    /// Whether the header may come more than once.
    pub(crate) const fn repeats(&self) -> bool {
        matches!(self, Self::Plain { several: true, .. })
    }

    /// Writes a header that `parse` reads back.
    pub(crate) fn write(
        &self,
        time: Option<(&str, &str)>,
        algorithm: Algorithm,
        signature: &str,
    ) -> String {
        match self {
            Self::Plain { prefix, .. } => format!("{prefix}{signature}"),
            Self::Pairs { separator, assign, signatures } => {
                let version = signatures
                    .iter()
                    .find(|(_, known)| *known == algorithm)
                    .map_or("", |(name, _)| name.as_str());
                let entry = format!("{version}{assign}{signature}");
                time.map_or_else(
                    || entry.clone(),
                    |(name, text)| format!("{name}{assign}{text}{separator}{entry}"),
                )
            }
            Self::Positional { separator, .. } => {
                let text = time.map_or("", |(_, text)| text);
                format!("{text}{separator}{signature}")
            }
        }
    }

    /// Every algorithm that a signature in this header may have.
    pub(crate) fn algorithms(&self) -> Vec<Algorithm> {
        match self {
            Self::Plain { algorithm, .. } | Self::Positional { algorithm, .. } => vec![*algorithm],
            Self::Pairs { signatures, .. } => {
                signatures.iter().map(|(_, algorithm)| *algorithm).collect()
            }
        }
    }
}

/// Whether an entry shows the comma with which gateways join the values of a repeated header.
/// White space counts as its trace: no vendor writes any between entries.
fn looks_joined(entry: &str, separator: char, assign: char) -> bool {
    let commas = entry.matches(',').count();
    let own = usize::from(assign == ',');
    entry.trim() != entry || (separator != ',' && commas > own)
}

/// Whether an entry is another time, or joined behind white space, where only signatures may
/// follow the first.
fn is_like(entry: &str, time: &str) -> bool {
    let bare = entry.trim();
    bare != entry || (bare.len() == time.len() && bare.bytes().all(|byte| byte.is_ascii_digit()))
}

fn entries<'a>(header: &str, value: &'a str, separator: char) -> Result<Vec<&'a str>, Rejection> {
    let entries: Vec<&str> = value.split(separator).take(ENTRIES_MAX.saturating_add(1)).collect();
    if entries.len() > ENTRIES_MAX {
        return Err(Rejection::TooManySignatures { header: header.to_owned(), max: ENTRIES_MAX });
    }
    Ok(entries)
}
