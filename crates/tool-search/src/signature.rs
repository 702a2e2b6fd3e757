//! Compact signatures of tools, for models.

use std::fmt::Write;

use raw_json::{JsonKind, RawJson, TextPart};

/// Maximum number of parameters in a signature.
const MAX_PARAMETERS: usize = 16;
/// Maximum number of values of an enumeration in a signature.
const MAX_VALUES: usize = 6;
/// Maximum size of the sentence, in bytes.
const MAX_SENTENCE: usize = 200;

/// Returns the signature of a tool in one line: its parameters with their types, a question mark at optional ones, and the
/// first sentence of the description. It takes about a fifth of the tokens of the definition.
///
/// Text of servers is written as it is: escape it where it is shown.
///
/// # Examples
/// ```
/// use tool_search::{raw_json::RawJson, signature};
///
/// let schema = r#"{"type":"object","properties":{"city":{"type":"string"},
///     "units":{"enum":["metric","imperial"]},"days":{"type":"array","items":{"type":"integer"}}},
///     "required":["city"]}"#;
/// let schema = RawJson::parse(schema)?;
/// assert_eq!(
///     signature("forecast", &schema, "Returns the forecast. Slow."),
///     "forecast(city: string, units?: metric|imperial, days?: integer[]) - Returns the forecast."
/// );
/// # Ok::<(), tool_search::raw_json::JsonError>(())
/// ```
#[must_use]
pub fn signature(name: &str, schema: &RawJson, description: &str) -> String {
    let mut signature = format!("{name}(");
    let member = |key: &str| {
        schema
            .parts()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    };
    let required: Vec<String> = member("required")
        .map(|list| list.to_raw().items().filter_map(|name| name.string()).collect())
        .unwrap_or_default();
    let is_required = |name: &str| required.iter().any(|known| known == name);
    let properties: Vec<_> = member("properties")
        .map(|properties| properties.parts().collect())
        .unwrap_or_default();
    // Required ones first, whatever the order in the schema.
    let (first, then): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| is_required(name));
    for (index, (name, property)) in first.into_iter().chain(then).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        if index == MAX_PARAMETERS {
            let _ = write!(signature, "{comma}…");
            break;
        }
        let mark = if is_required(name) { "" } else { "?" };
        let _ = match type_of(property) {
            Some(words) => write!(signature, "{comma}{name}{mark}: {words}"),
            None => write!(signature, "{comma}{name}{mark}"),
        };
    }
    signature.push(')');
    let sentence = first_sentence(description);
    if !sentence.is_empty() {
        let _ = write!(signature, " - {sentence}");
    }
    signature
}

/// Returns the type of a property in one word, or `None` if its schema does not say.
fn type_of(property: &TextPart<'_>) -> Option<String> {
    let member = |key: &str| {
        property
            .parts()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    };
    if let Some(values) = member("enum") {
        let values: Vec<_> = values.to_raw().items().collect();
        let shown = values
            .iter()
            .take(MAX_VALUES)
            .map(|value| value.string().unwrap_or_else(|| value.as_str().to_owned()));
        let mut words = shown.collect::<Vec<_>>().join("|");
        if values.len() > MAX_VALUES {
            words.push_str("|…");
        }
        return Some(words);
    }
    let declared = member("type")?;
    let named = |name: &str| match name {
        "array" => {
            let items = member("items").and_then(|items| type_of(&items));
            items
                .filter(|items| !items.contains('|'))
                .map_or_else(|| "array".to_owned(), |items| format!("{items}[]"))
        }
        name => name.to_owned(),
    };
    if declared.kind() == JsonKind::Array {
        let names = declared.to_raw();
        let names = names
            .items()
            .filter_map(|name| name.string())
            .filter(|name| name != "null");
        let names: Vec<_> = names.map(|name| named(&name)).collect();
        return (!names.is_empty()).then(|| names.join("|"));
    }
    declared.text().map(|name| named(&name))
}

fn first_sentence(description: &str) -> &str {
    let line = description.trim().lines().next().unwrap_or_default().trim();
    let sentence = match line.find(". ") {
        Some(end) => &line[..=end],
        None => line,
    };
    &sentence[..sentence.floor_char_boundary(MAX_SENTENCE)]
}
