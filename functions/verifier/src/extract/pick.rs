//! Picks named values out of a JSON text in one pass.
//!
//! Values are kept as the text they were written in, so numbers keep every digit and a slice of a
//! batch is the provider's own bytes. Everything that nobody asked for is checked and skipped
//! without being built; recursion is as deep as the deepest pointer, never as deep as the input.
//!
//! A key that a pointer passes through must not appear twice in its object: parsers disagree about
//! which one counts, and an id must not depend on the parser.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::UnusableReason;

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

/// The values at `wanted`, in that order; `None` where there is nothing.
pub(crate) fn pick<'d>(
    text: &'d str,
    wanted: &[Pointer],
) -> Result<Vec<Option<&'d RawValue>>, UnusableReason> {
    let mut root = Node::default();
    for (index, pointer) in wanted.iter().enumerate() {
        root.insert(index, &pointer.tokens);
    }
    let mut found = Found { values: vec![None; wanted.len()], duplicate: None };
    descend(text, &root, &mut found)
        .map_err(|error| UnusableReason::NotJson { line: error.line(), column: error.column() })?;
    match found.duplicate {
        Some(index) => Err(UnusableReason::DuplicateKey {
            at: wanted.get(index).map_or_else(String::new, |pointer| pointer.text.clone()),
        }),
        None => Ok(found.values),
    }
}

/// Up to `max` elements of a JSON array, and how many it has.
pub(crate) fn elements(raw: &RawValue, max: usize) -> Option<(Vec<&RawValue>, usize)> {
    struct Elements {
        max: usize,
    }
    impl<'d> Visitor<'d> for Elements {
        type Value = (Vec<&'d RawValue>, usize);

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'d>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut kept = Vec::new();
            while kept.len() < self.max {
                let Some(element) = seq.next_element::<&'d RawValue>()? else {
                    let count = kept.len();
                    return Ok((kept, count));
                };
                kept.push(element);
            }
            let mut count = kept.len();
            while seq.next_element::<IgnoredAny>()?.is_some() {
                count = count.saturating_add(1);
            }
            Ok((kept, count))
        }
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_seq(Elements { max }).ok()
}

/// The text of a string or number; `None` for anything else.
pub(crate) fn scalar(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    match text.as_bytes().first()? {
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

#[derive(Default)]
struct Node {
    /// Pointers that end here.
    ends: Vec<usize>,
    children: Vec<(String, Node)>,
}

impl Node {
    fn insert(&mut self, index: usize, tokens: &[String]) {
        let Some((token, rest)) = tokens.split_first() else {
            self.ends.push(index);
            return;
        };
        if let Some((_, child)) = self.children.iter_mut().find(|(name, _)| name == token) {
            child.insert(index, rest);
            return;
        }
        let mut child = Self::default();
        child.insert(index, rest);
        self.children.push((token.clone(), child));
    }

    /// Some pointer that passes through or ends here.
    fn any(&self) -> Option<usize> {
        self.ends
            .first()
            .copied()
            .or_else(|| self.children.first().and_then(|(_, child)| child.any()))
    }
}

struct Found<'d> {
    values: Vec<Option<&'d RawValue>>,
    /// The pointer that a repeated key belongs to.
    duplicate: Option<usize>,
}

fn descend<'d>(text: &'d str, node: &Node, found: &mut Found<'d>) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Seed { node, found }.deserialize(&mut deserializer)?;
    deserializer.end()
}

struct Seed<'n, 'f, 'd> {
    node: &'n Node,
    found: &'f mut Found<'d>,
}

impl<'d> DeserializeSeed<'d> for Seed<'_, '_, 'd> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.node.ends.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let raw = <&'d RawValue as serde::Deserialize>::deserialize(deserializer)?;
        for index in &self.node.ends {
            if let Some(slot) = self.found.values.get_mut(*index) {
                *slot = Some(raw);
            }
        }
        if self.node.children.is_empty() {
            return Ok(());
        }
        descend_children(raw.get(), self.node, self.found).map_err(serde::de::Error::custom)
    }
}

/// Picks from a value that was itself picked.
fn descend_children<'d>(
    text: &'d str,
    node: &Node,
    found: &mut Found<'d>,
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    (&mut deserializer).deserialize_any(Seed { node, found })
}

/// Scalars have nothing below them, so every scalar visit is an empty success.
macro_rules! nothing_below {
    ($($visit:ident: $value:ty),*) => {
        $(fn $visit<E: serde::de::Error>(self, _: $value) -> Result<(), E> {
            Ok(())
        })*
    };
}

impl<'d> Visitor<'d> for Seed<'_, '_, 'd> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    nothing_below!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = vec![false; self.node.children.len()];
        while let Some(child) = map.next_key_seed(ChildNamed(&self.node.children))? {
            let child = child.and_then(|at| Some((self.node.children.get(at)?, seen.get_mut(at)?)));
            match child {
                Some(((_, node), seen)) => {
                    if std::mem::replace(seen, true) && self.found.duplicate.is_none() {
                        self.found.duplicate = node.any();
                    }
                    map.next_value_seed(Seed { node, found: &mut *self.found })?;
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut seq: A) -> Result<(), A::Error> {
        let numbered: Vec<(usize, &Node)> = self
            .node
            .children
            .iter()
            .filter_map(|(name, node)| Some((place(name)?, node)))
            .collect();
        let mut index: usize = 0;
        loop {
            let more = match numbered.iter().find(|(wanted, _)| *wanted == index) {
                Some((_, node)) => {
                    seq.next_element_seed(Seed { node, found: &mut *self.found })?.is_some()
                }
                None => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                return Ok(());
            }
            index = index.saturating_add(1);
        }
    }
}

/// Reads a key and tells which child it names, without keeping it: a body may have a million keys.
struct ChildNamed<'n>(&'n [(String, Node)]);

impl<'d> DeserializeSeed<'d> for ChildNamed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'d>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for ChildNamed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|(name, _)| name == key))
    }
}

/// The place in a list that a token names: digits without a leading zero (RFC 6901, section 4).
fn place(token: &str) -> Option<usize> {
    let canonical = token == "0"
        || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    canonical.then(|| token.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{Pointer, elements, pick, scalar};
    use crate::UnusableReason;

    fn texts(json: &str, at: &[&str]) -> Vec<Option<String>> {
        let pointers: Vec<Pointer> = at.iter().map(|at| Pointer::parse(at).unwrap()).collect();
        let found = pick(json, &pointers).unwrap();
        found.into_iter().map(|raw| raw.map(|raw| raw.get().to_owned())).collect()
    }

    #[test]
    fn values_come_as_they_are_written() {
        let json = r#" { "a" : 1.50, "b":{"c":[true,{"d":"\u00e9"}]}, "e":12345678901234567890 } "#;
        let found = texts(json, &["/a", "/b/c/1/d", "/b/c/0", "/e", "/x", "/b/c/2", "/a/y"]);
        let expected = ["1.50", r#""\u00e9""#, "true", "12345678901234567890"]
            .map(|text| Some(text.to_owned()));
        assert_eq!(found.get(..4), Some(&expected[..]));
        assert!(found.iter().skip(4).all(Option::is_none));
    }

    #[test]
    fn a_value_and_what_is_in_it_are_found_together() {
        let found = texts(r#"{"a":{"b":{"c":1}}}"#, &["/a", "/a/b/c", "/a/b"]);
        assert_eq!(
            found,
            [r#"{"b":{"c":1}}"#, "1", r#"{"c":1}"#].map(|text| Some(text.to_owned()))
        );
    }

    #[test]
    fn pointers_follow_rfc_6901() {
        let found = texts(r#"{"a/b":1,"m~n":2,"":{"":3}}"#, &["/a~1b", "/m~0n", "//"]);
        assert_eq!(found, ["1", "2", "3"].map(|text| Some(text.to_owned())));
        for text in ["", "a", "/a~", "/a~2"] {
            assert_eq!(Pointer::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_repeated_key_is_named_by_its_pointer() {
        let pointers = [Pointer::parse("/a/b").unwrap()];
        for json in [r#"{"a":{"b":1,"b":2}}"#, r#"{"a":1,"a":{"b":2}}"#] {
            let expected = UnusableReason::DuplicateKey { at: "/a/b".to_owned() };
            assert_eq!(pick(json, &pointers).unwrap_err(), expected);
        }
    }

    #[test]
    fn the_first_error_has_a_place() {
        let error = pick("{\n  \"a\": x}", &[]).unwrap_err();
        assert_eq!(error, UnusableReason::NotJson { line: 2, column: 8 });
    }

    #[test]
    fn elements_are_counted_beyond_the_limit() {
        let pointers = [Pointer::parse("/a").unwrap()];
        let found = pick(r#"{"a":[1, "2" ,{}]}"#, &pointers).unwrap();
        let list = found.first().copied().flatten().unwrap();
        let (kept, count) = elements(list, 2).unwrap();
        assert_eq!(kept.iter().map(|raw| raw.get()).collect::<Vec<_>>(), ["1", "\"2\""]);
        assert_eq!(count, 3);
        let whole = elements(list, 9).unwrap();
        assert_eq!((whole.0.len(), whole.1), (3, 3));
        assert!(kept.first().and_then(|raw| scalar(raw)).is_some());
    }
}
