//! XML as JSON, so that pointers reach into it like into everything else.
//!
//! An element with children becomes an object, one of `type="array"` a list, one of `nil="true"`
//! null, any other its text. Attributes other than these two, comments and mixed text are left
//! out: the providers that send XML use none. Document type definitions are refused, and nesting is
//! limited, because recursion must not follow the input.

use serde_json::{Map, Value};

/// Deeper than any provider nests.
const DEPTH_MAX: usize = 64;
/// More elements, attributes and texts than any provider's document has.
const NODES_MAX: u32 = 100_000;

/// `{"<root>": ...}`; `None` when the text is not XML, nested too deep, or of too many parts.
pub(crate) fn to_json(xml: &str) -> Option<String> {
    let limits = roxmltree::ParsingOptions { nodes_limit: NODES_MAX, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(xml, limits).ok()?;
    let root = document.root_element();
    let mut object = Map::new();
    object.insert(root.tag_name().name().to_owned(), value(root, DEPTH_MAX)?);
    Some(Value::Object(object).to_string())
}

fn value(element: roxmltree::Node<'_, '_>, depth: usize) -> Option<Value> {
    let below = depth.checked_sub(1)?;
    if element.attribute("nil") == Some("true") {
        return Some(Value::Null);
    }
    let children = element.children().filter(roxmltree::Node::is_element);
    if element.attribute("type") == Some("array") {
        let items = children.map(|child| value(child, below));
        return items.collect::<Option<Vec<_>>>().map(Value::Array);
    }
    let mut object = Map::new();
    for child in children {
        let inner = value(child, below)?;
        match object.get_mut(child.tag_name().name()) {
            None => {
                object.insert(child.tag_name().name().to_owned(), inner);
            }
            Some(Value::Array(items)) => items.push(inner),
            Some(single) => {
                let first = single.take();
                *single = Value::Array(vec![first, inner]);
            }
        }
    }
    if object.is_empty() {
        let text = element.text().unwrap_or_default();
        return Some(Value::String(text.to_owned()));
    }
    Some(Value::Object(object))
}
