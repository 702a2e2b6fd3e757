use serde_json::Value;

/// Keywords that say nothing about the values that a schema accepts.
const ANNOTATIONS: [&str; 6] = [
    "description",
    "title",
    "examples",
    "default",
    "$comment",
    "format",
];
/// Keywords whose value is a map of schemas, where a key is a name and no keyword.
const MAPS: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "$defs"];
/// Keywords whose value is data.
const DATA: [&str; 2] = ["const", "enum"];

/// Removes the annotations of the definitions of a schema. The arguments themselves keep theirs.
pub(crate) fn remove_annotations(schema: &mut Value) {
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        definitions.values_mut().for_each(strip);
    }
}

fn strip(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            keywords.retain(|keyword, _| !ANNOTATIONS.contains(&keyword.as_str()));
            for (keyword, value) in keywords.iter_mut() {
                match value {
                    Value::Object(schemas) if MAPS.contains(&keyword.as_str()) => {
                        schemas.values_mut().for_each(strip);
                    }
                    value if !DATA.contains(&keyword.as_str()) => strip(value),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
