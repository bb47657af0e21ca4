//! What a field of the state is set to.

use crate::{
    Pointer, PointerDefect,
    error::{Report, quote},
    section::{Value, describe, is_parameter},
};
use serde_json::Value as Json;
use toml::de::DeValue;

const ALLOWED: &str = "a JSON Pointer such as /data/object/id, a constant text such as =canceled, \
                       =null, a whole number, true or false";

/// A field's value: found in the event, or the same for every event.
///
/// In the file a text beginning with `/` is a pointer, and the empty text the whole event. A text
/// beginning with `=` is what follows it, as text, so `==` begins a text that begins with `=`; only
/// `=null` stores null. Whole numbers, `true` and `false` are written as TOML writes them: `=1`
/// and `=true` are texts. Numbers with a fraction are refused, since TOML keeps them as floats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// What stands at this place in the event; null where there is no such place.
    At(Pointer),
    /// This value.
    Constant(Json),
}

impl Expr {
    fn from_text(text: &str) -> Result<Self, PointerDefect> {
        match text.strip_prefix('=') {
            Some("null") => Ok(Self::Constant(Json::Null)),
            Some(constant) => Ok(Self::Constant(Json::from(constant))),
            None => Pointer::parse(text).map(Self::At),
        }
    }
}

/// Reads the value of the field at `path`.
pub(crate) fn read(report: &mut Report<'_>, path: String, value: &Value<'_>) -> Option<Expr> {
    match value.get_ref() {
        DeValue::String(text) => {
            if is_parameter(text.trim_start_matches('=')) {
                let allowed = "parameters for `mode` and `live` only";
                report.refuse(value.span(), path, quote(text), allowed);
                return None;
            }
            match Expr::from_text(text) {
                Ok(expr) => Some(expr),
                Err(_) if !text.contains(['/', '.', '~']) => {
                    // A word that names no place is a constant without its sign.
                    let meant = Some(format!("={text}"));
                    report.refuse_near(value.span(), path, describe(value), ALLOWED, meant);
                    None
                }
                Err(defect) => {
                    refuse_pointer(report, path, value, &defect, ALLOWED);
                    None
                }
            }
        }
        DeValue::Boolean(constant) => Some(Expr::Constant(Json::from(*constant))),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix()).ok();
            if number.is_none() {
                report.refuse(value.span(), path, describe(value), "a 64-bit whole number");
            }
            number.map(|number| Expr::Constant(Json::from(number)))
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            report.refuse(value.span(), path, describe(value), ALLOWED);
            None
        }
    }
}

/// Reads a pointer to something inside the event: the empty pointer is refused.
pub(crate) fn read_pointer(
    report: &mut Report<'_>,
    path: String,
    value: &Value<'_>,
) -> Option<Pointer> {
    let allowed = "a JSON Pointer (RFC 6901) such as /data/object/id";
    let text = value.get_ref().as_str().filter(|text| !text.is_empty());
    let Some(text) = text else {
        report.refuse(value.span(), path, describe(value), allowed);
        return None;
    };
    match Pointer::parse(text) {
        Ok(pointer) => Some(pointer),
        Err(defect) => {
            refuse_pointer(report, path, value, &defect, allowed);
            None
        }
    }
}

fn refuse_pointer(
    report: &mut Report<'_>,
    path: String,
    value: &Value<'_>,
    defect: &PointerDefect,
    allowed: &str,
) {
    let found = format!("{} ({defect})", describe(value));
    let meant = match defect {
        PointerDefect::NoSlash { meant } => meant.clone(),
        PointerDefect::Tilde | PointerDefect::TooDeep => None,
    };
    report.refuse_near(value.span(), path, found, allowed, meant);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equals_sign_marks_a_constant_and_only_null_is_not_a_text() {
        let constant = |json| Ok(Expr::Constant(json));
        assert_eq!(Expr::from_text("=canceled"), constant(Json::from("canceled")));
        assert_eq!(Expr::from_text("=null"), constant(Json::Null));
        assert_eq!(Expr::from_text("==null"), constant(Json::from("=null")));
        assert_eq!(Expr::from_text("="), constant(Json::from("")));
        assert_eq!(Expr::from_text("=1"), constant(Json::from("1")));
        assert_eq!(Expr::from_text("=/a"), constant(Json::from("/a")));
        assert_eq!(Expr::from_text("/a"), Pointer::parse("/a").map(Expr::At));
        assert_eq!(Expr::from_text(""), Pointer::parse("").map(Expr::At));
    }
}
