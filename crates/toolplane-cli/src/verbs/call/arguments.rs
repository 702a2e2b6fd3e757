//! Conversion of `name=value` words into a JSON object.

use raw_json::{JsonKind, RawJson};
use serde_json::{Value, value::RawValue};

use super::schema::{TypeSet, property, resolved};
use crate::error::CliError;

/// One argument of the object.
struct Argument {
    name: String,
    /// Value as JSON text: numbers keep the digits that were typed.
    value: TypedValue,
}

enum TypedValue {
    Json(RawJson),
    /// A list, to which further words may append.
    List(Vec<RawJson>),
}

/// Converts the words into a JSON object, typed by a tool's input schema.
pub(super) fn parse(words: &[String], schema: &Value) -> Result<String, CliError> {
    let mut arguments: Vec<Argument> = Vec::new();
    for word in words {
        let (name, value) = parse_word(word, schema)?;
        match (arguments.iter_mut().find(|argument| argument.name == name), value) {
            (None, value) => arguments.push(Argument {
                name: name.to_owned(),
                value,
            }),
            (
                Some(Argument {
                    value: TypedValue::List(items),
                    ..
                }),
                TypedValue::List(more),
            ) => items.extend(more),
            (Some(_), _) => {
                return Err(CliError::usage(format!("the argument `{name}` is given twice"))
                    .with_hint("only an argument that takes a list may be repeated"));
            }
        }
    }
    let members = arguments.iter().map(|argument| {
        let name = RawJson::from(argument.name.as_str());
        match &argument.value {
            TypedValue::Json(value) => format!("{name}:{value}"),
            TypedValue::List(items) => format!("{name}:{}", list(items)),
        }
    });
    Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
}

fn list(items: &[RawJson]) -> String {
    let items: Vec<&str> = items.iter().map(RawJson::as_str).collect();
    format!("[{}]", items.join(","))
}

/// Splits one word: `name:=json` or `name=value`.
fn parse_word<'a>(word: &'a str, schema: &Value) -> Result<(&'a str, TypedValue), CliError> {
    let Some((name, value)) = word.split_once('=') else {
        return Err(CliError::usage(format!("invalid argument `{word}`"))
            .with_hint("write `name=value`, `name:=json`, or all of them as `--json '{…}'`"));
    };
    let (name, is_json) = match name.strip_suffix(':') {
        Some(name) => (name, true),
        None => (name, false),
    };
    if name.is_empty() {
        return Err(CliError::usage(format!("missing argument name in `{word}`")));
    }
    let value = if is_json {
        let json = RawJson::parse(value.to_owned()).map_err(|error| {
            CliError::usage(format!("invalid JSON in the value of `{name}`"))
                .with_source(&error)
                .with_hint(format!("write `{name}=…` for a text"))
        })?;
        TypedValue::Json(json)
    } else {
        typed(name, value, property(schema, name), schema)?
    };
    Ok((name, value))
}

/// Converts a text to the type that the schema asks for. It stays a string wherever one is allowed.
fn typed(name: &str, text: &str, schema: Option<&Value>, root: &Value) -> Result<TypedValue, CliError> {
    let types = schema
        .map(|schema| TypeSet::for_schema(schema, root))
        .unwrap_or_default();
    if types.is_empty() || types.has("string") {
        return Ok(TypedValue::Json(RawJson::from(text)));
    }
    if let Some(json) = scalar(text, types) {
        return Ok(TypedValue::Json(json));
    }
    if types.has("array") {
        let items = schema
            .map(|schema| resolved(schema, root))
            .and_then(|schema| schema.get("items"));
        return elements(name, text, items, root).map(TypedValue::List);
    }
    Err(CliError::usage(format!(
        "the argument `{name}` must be {}, not `{text}`",
        with_article(types)
    )))
}

/// Converts a word to a number, boolean, null or object, if it is one and the types allow it.
fn scalar(text: &str, types: TypeSet) -> Option<RawJson> {
    let json = RawJson::parse(text.to_owned()).ok()?;
    let fits = match json.kind() {
        // The validator decides if a number is an integer: `1.0` is.
        JsonKind::Number => types.has("integer") || types.has("number"),
        JsonKind::Bool => types.has("boolean"),
        JsonKind::Null => types.has("null"),
        JsonKind::Object => types.has("object"),
        _ => false,
    };
    fits.then_some(json)
}

/// Converts a list: JSON, or elements separated by commas.
fn elements(name: &str, text: &str, items: Option<&Value>, root: &Value) -> Result<Vec<RawJson>, CliError> {
    let as_json = match text.trim_start().chars().next() {
        Some('[') => json_list(text.to_owned()),
        // Objects contain commas themselves.
        Some('{') => json_list(format!("[{text}]")),
        _ => None,
    };
    if let Some(items) = as_json {
        return Ok(items);
    }
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let words = text
        .split(',')
        .map(|word| match typed(name, word.trim(), items, root)? {
            TypedValue::Json(json) => Ok(json),
            TypedValue::List(_) => Err(CliError::usage(format!(
                "the argument `{name}` is a list of lists: write it as JSON"
            ))
            .with_hint(format!("write `{name}:=[[…], …]`"))),
        });
    words.collect()
}

fn json_list(text: String) -> Option<Vec<RawJson>> {
    let json = RawJson::parse(text).ok()?;
    let items = json.to::<Vec<&RawValue>>().ok()?;
    let items = items
        .into_iter()
        .map(|item| RawJson::parse(item.get().to_owned()).ok());
    items.collect()
}

fn with_article(types: TypeSet) -> String {
    let text = types.to_string();
    let article = if text.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "$defs": {"tags": {"type": "array", "items": {"type": "string"}}},
            "properties": {
                "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
                "o": {"type": "object"}, "l": {"type": "array", "items": {"type": "integer"}}, "t": {"$ref": "#/$defs/tags"},
                "m": {"type": ["integer", "null"]}, "u": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "e": {"enum": [1, 2]}, "ll": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
                "lo": {"type": "array", "items": {"type": "object"}}, "any": {},
            },
        })
    }

    fn check(words: &[&str], expected: Result<&str, &str>) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let written = parse(&words, &schema()).map_err(|failure| failure.message);
        assert_eq!(written.as_deref().map_err(String::as_str), expected, "{words:?}");
    }

    #[test]
    fn words_become_what_the_schema_asks_for() {
        check(&[], Ok("{}"));
        check(&["s=5"], Ok(r#"{"s":"5"}"#));
        check(&["s=true", "u=7"], Ok(r#"{"s":"true","u":"7"}"#));
        check(&["s="], Ok(r#"{"s":""}"#));
        check(&["s=a=b:=c"], Ok(r#"{"s":"a=b:=c"}"#));
        check(
            &["i=123456789012345678901234567890"],
            Ok(r#"{"i":123456789012345678901234567890}"#),
        );
        check(&["n=1.50", "i=-3"], Ok(r#"{"n":1.50,"i":-3}"#));
        check(&["b=true", "m=null", "e=2"], Ok(r#"{"b":true,"m":null,"e":2}"#));
        check(&[r#"o={"a":1}"#], Ok(r#"{"o":{"a":1}}"#));
        check(&["l=1,2, 3"], Ok(r#"{"l":[1,2,3]}"#));
        check(&["l=1", "s=x", "l=2"], Ok(r#"{"l":[1,2],"s":"x"}"#));
        check(&["l=[1,2]", "l=3"], Ok(r#"{"l":[1,2,3]}"#));
        check(
            &[r#"lo={"a":1,"b":2},{"c":3}"#, r#"lo={"d":4}"#],
            Ok(r#"{"lo":[{"a":1,"b":2},{"c":3},{"d":4}]}"#),
        );
        check(&["l="], Ok(r#"{"l":[]}"#));
        check(&["t=a,b"], Ok(r#"{"t":["a","b"]}"#));
        check(&["any=5", "unknown=5"], Ok(r#"{"any":"5","unknown":"5"}"#));
        check(
            &["s:=5", r#"any:={"a":[1e2]}"#],
            Ok(r#"{"s":5,"any":{"a":[1e2]}}"#),
        );
        check(&["\"=x"], Ok(r#"{"\"":"x"}"#));
    }

    #[test]
    fn words_that_do_not_fit_are_named() {
        check(
            &["i=five"],
            Err("the argument `i` must be an integer, not `five`"),
        );
        check(&["b=yes"], Err("the argument `b` must be a boolean, not `yes`"));
        check(
            &["m="],
            Err("the argument `m` must be an integer or null, not ``"),
        );
        check(&["l=1,x"], Err("the argument `l` must be an integer, not `x`"));
        check(
            &["ll=1,2"],
            Err("the argument `ll` is a list of lists: write it as JSON"),
        );
        check(&["s=1", "s=2"], Err("the argument `s` is given twice"));
        check(&["l:=[1]", "l=2"], Err("the argument `l` is given twice"));
        check(&["s"], Err("invalid argument `s`"));
        check(&["=x"], Err("missing argument name in `=x`"));
        check(&[":=1"], Err("missing argument name in `:=1`"));
        check(&["any:={a}"], Err("invalid JSON in the value of `any`"));
    }
}
