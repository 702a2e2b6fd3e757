use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tool_core::PrepareError;

/// Function that returns the known name that a written one probably means, such as [`nearest`](crate::suggest::nearest).
pub type NearestName = for<'a> fn(&str, &[&'a str]) -> Option<&'a str>;

/// Returns the JSON Pointer (RFC 6901) of a member.
#[must_use]
pub fn pointer(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Removes from the settings of an executor the keys that `T` does not know or cannot read, and reports each of them with its
/// place below `parent` and with a hint. Every field of `T` must have a default, so that each key can be tried alone.
pub fn keep_readable<T: DeserializeOwned + JsonSchema>(
    members: &mut Map<String, Value>,
    parent: &str,
    nearest: NearestName,
    problems: &mut Vec<PrepareError>,
) {
    let schema = schema_for!(T).to_value();
    let known: Vec<&str> = schema["properties"]
        .as_object()
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default();
    members.retain(|key, value| {
        let place = pointer(parent, key);
        if !known.contains(&key.as_str()) {
            let hint = match nearest(key, &known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            let problem = PrepareError::at(place, format!("unknown setting `{key}`"));
            problems.push(problem.with_hint(hint));
            return false;
        }
        let one = Map::from_iter([(key.clone(), value.clone())]);
        match serde_json::from_value::<T>(Value::Object(one)) {
            Ok(_) => true,
            Err(error) => {
                let text = error.to_string();
                // The second line of a message of this crate is its hint.
                problems.push(match text.split_once('\n') {
                    Some((message, hint)) => PrepareError::at(place, message).with_hint(hint),
                    None => PrepareError::at(place, text),
                });
                false
            }
        }
    });
}
