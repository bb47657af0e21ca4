//! Picks named values out of a JSON text in one pass.
//!
//! Values are kept as the text they were written in, so numbers keep every digit and a slice of a
//! batch is the provider's own bytes. Everything that nobody asked for is checked and skipped
//! without being built; recursion is as deep as the deepest pointer, never as deep as the input.
//!
//! A key that a pointer passes through must not appear twice in its object: parsers disagree about
//! which one counts, and an id must not depend on the parser.

use std::fmt;
use std::ops::ControlFlow;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::pointer::{Pointer, list_index};
use crate::UnusableReason;

/// Called with each element of a list, in order, until it breaks.
type EachElement<'e, 'd> = &'e mut dyn FnMut(&'d RawValue) -> ControlFlow<()>;

/// Pointers, arranged so that one pass over a text finds what stands at all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picker {
    pointers: Vec<Pointer>,
    list: Option<Pointer>,
    root: Node,
}

impl Picker {
    pub(crate) fn new(pointers: Vec<Pointer>) -> Self {
        Self::arranged(pointers, None)
    }

    /// Picks at `pointers`, and the elements of the list at `list`.
    pub(crate) fn with_list(pointers: Vec<Pointer>, list: Pointer) -> Self {
        Self::arranged(pointers, Some(list))
    }

    fn arranged(pointers: Vec<Pointer>, list: Option<Pointer>) -> Self {
        let mut root = Node::default();
        for (index, pointer) in pointers.iter().enumerate() {
            root.insert(End::Value(index), pointer.tokens());
        }
        if let Some(list) = &list {
            root.insert(End::List(pointers.len()), list.tokens());
        }
        Self { pointers, list, root }
    }

    /// The members of the outermost object that any pointer passes through.
    pub(crate) fn members(&self) -> impl Iterator<Item = &str> {
        self.root.children.iter().map(|(name, _)| name.as_str())
    }

    /// How many values a pick has.
    pub(crate) const fn len(&self) -> usize {
        self.pointers.len()
    }

    /// The values at the pointers, in their order; `None` where there is nothing.
    pub(crate) fn pick<'d>(
        &self,
        text: &'d str,
    ) -> Result<Vec<Option<&'d RawValue>>, UnusableReason> {
        self.pick_each(text, &mut |_| ControlFlow::Break(())).map(|(values, _)| values)
    }

    /// The values at the pointers, and how many elements the list has; `None` where there is no
    /// list. The elements go through `each` on the way, whatever the text turns out to be: what it
    /// gathered is worth something only once this succeeds.
    pub(crate) fn pick_each<'d>(
        &self,
        text: &'d str,
        each: EachElement<'_, 'd>,
    ) -> Result<(Vec<Option<&'d RawValue>>, Option<usize>), UnusableReason> {
        let values = vec![None; self.pointers.len()];
        let mut found = Found { values, duplicate: None, each, count: None };
        descend(text, &self.root, &mut found).map_err(|error| UnusableReason::NotJson {
            line: error.line(),
            column: error.column(),
        })?;
        match found.duplicate {
            Some(index) => {
                let pointer = self.pointers.get(index).or(self.list.as_ref());
                let at = pointer.map_or_else(String::new, |pointer| pointer.as_str().to_owned());
                Err(UnusableReason::DuplicateKey { at })
            }
            None => Ok((found.values, found.count)),
        }
    }
}

/// What a pointer is for, with its number.
#[derive(Clone, Copy)]
enum End {
    Value(usize),
    List(usize),
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// Pointers that end here.
    ends: Vec<usize>,
    /// The number of the pointer to the list whose elements are wanted, if it ends here.
    list: Option<usize>,
    children: Vec<(String, Node)>,
}

impl Node {
    fn insert(&mut self, end: End, tokens: &[String]) {
        let Some((token, rest)) = tokens.split_first() else {
            match end {
                End::Value(index) => self.ends.push(index),
                End::List(index) => self.list = Some(index),
            }
            return;
        };
        if let Some((_, child)) = self.children.iter_mut().find(|(name, _)| name == token) {
            child.insert(end, rest);
            return;
        }
        let mut child = Self::default();
        child.insert(end, rest);
        self.children.push((token.clone(), child));
    }

    /// Some pointer that passes through or ends here.
    fn any(&self) -> Option<usize> {
        self.ends
            .first()
            .copied()
            .or(self.list)
            .or_else(|| self.children.first().and_then(|(_, child)| child.any()))
    }
}

struct Found<'e, 'd> {
    values: Vec<Option<&'d RawValue>>,
    /// The pointer that a repeated key belongs to.
    duplicate: Option<usize>,
    each: EachElement<'e, 'd>,
    /// How many elements the list has.
    count: Option<usize>,
}

fn descend<'d>(text: &'d str, node: &Node, found: &mut Found<'_, 'd>) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Seed { node, found }.deserialize(&mut deserializer)?;
    deserializer.end()
}

struct Seed<'n, 'f, 'e, 'd> {
    node: &'n Node,
    found: &'f mut Found<'e, 'd>,
}

impl<'d> DeserializeSeed<'d> for Seed<'_, '_, '_, 'd> {
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
    found: &mut Found<'_, 'd>,
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

impl<'d> Visitor<'d> for Seed<'_, '_, '_, 'd> {
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
        let Self { node, found } = self;
        let numbered: Vec<(usize, &Node)> = node
            .children
            .iter()
            .filter_map(|(name, node)| Some((list_index(name)?, node)))
            .collect();
        let mut flow =
            if node.list.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let mut index: usize = 0;
        loop {
            let child = numbered.iter().find(|(wanted, _)| *wanted == index);
            let more = match child {
                _ if flow.is_continue() => {
                    let element = seq.next_element::<&'d RawValue>()?;
                    if let Some(element) = element {
                        flow = (found.each)(element);
                        if let Some((_, node)) = child {
                            descend_children(element.get(), node, found)
                                .map_err(serde::de::Error::custom)?;
                        }
                    }
                    element.is_some()
                }
                Some((_, node)) => {
                    seq.next_element_seed(Seed { node, found: &mut *found })?.is_some()
                }
                None => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
            index = index.saturating_add(1);
        }
        if node.list.is_some() {
            found.count = Some(index);
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::{Picker, Pointer};
    use crate::UnusableReason;
    use std::ops::ControlFlow::{Break, Continue};

    fn picker(at: &[&str]) -> Picker {
        Picker::new(at.iter().map(|at| Pointer::parse(at).unwrap()).collect())
    }

    fn texts(json: &str, at: &[&str]) -> Vec<Option<String>> {
        let found = picker(at).pick(json).unwrap();
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
    fn tokens_are_taken_as_they_are_meant() {
        let found = texts(r#"{"a/b":1,"m~n":2,"":{"":3}}"#, &["/a~1b", "/m~0n", "//"]);
        assert_eq!(found, ["1", "2", "3"].map(|text| Some(text.to_owned())));
    }

    #[test]
    fn a_repeated_key_is_named_by_its_pointer() {
        for json in [r#"{"a":{"b":1,"b":2}}"#, r#"{"a":1,"a":{"b":2}}"#] {
            let expected = UnusableReason::DuplicateKey { at: "/a/b".to_owned() };
            assert_eq!(picker(&["/a/b"]).pick(json).unwrap_err(), expected);
        }
    }

    #[test]
    fn the_first_error_has_a_place() {
        let error = picker(&[]).pick("{\n  \"a\": x}").unwrap_err();
        assert_eq!(error, UnusableReason::NotJson { line: 2, column: 8 });
    }

    #[test]
    fn elements_are_counted_beyond_the_last_that_is_wanted() {
        let pointers = ["/b", "/a/3/x"].map(|at| Pointer::parse(at).unwrap());
        let picker = Picker::with_list(pointers.to_vec(), Pointer::parse("/a").unwrap());
        let json = r#"{"a":[1, "2" ,{},{"x":4}],"b":5}"#;
        for wanted in 1..9 {
            let mut kept = Vec::new();
            let (values, count) = picker
                .pick_each(json, &mut |element| {
                    kept.push(element.get());
                    if kept.len() < wanted { Continue(()) } else { Break(()) }
                })
                .unwrap();
            let all = ["1", "\"2\"", "{}", r#"{"x":4}"#];
            assert_eq!((kept.as_slice(), count), (&all[..wanted.min(4)], Some(4)));
            let values: Vec<_> = values.into_iter().map(|value| value.unwrap().get()).collect();
            assert_eq!(values, ["5", "4"]);
        }
        assert_eq!(picker.pick_each(r#"{"a":{}}"#, &mut |_| Break(())).unwrap().1, None);
        let twice = picker.pick(r#"{"a":[],"a":[]}"#).unwrap_err();
        assert_eq!(twice, UnusableReason::DuplicateKey { at: "/a".to_owned() });
    }
}
