//! Parts of Swagger 2.0 that have another form in OpenAPI 3.

use serde_json::{Map, Value, json};

/// Keywords of a schema that Swagger 2.0 writes into the parameter itself.
const SCHEMA_KEYWORDS: [&str; 20] = [
    "type",
    "format",
    "items",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "enum",
    "multipleOf",
    "example",
    "x-nullable",
    "x-example",
    "title",
];

/// Converts parameters of Swagger 2.0, references resolved, to parameters and a request body of OpenAPI 3.
pub(crate) fn swagger_parts(parameters: Vec<Value>, consumes: &[String]) -> (Vec<Value>, Option<Value>) {
    let mut others = Vec::new();
    let mut form = Vec::new();
    let mut body = None;
    for parameter in parameters {
        match parameter.get("in").and_then(Value::as_str) {
            Some("body") => body = Some(parameter),
            Some("formData") => form.push(parameter),
            _ => others.push(openapi_parameter(parameter)),
        }
    }
    let body = match body {
        Some(body) => Some(json_body(&body, consumes)),
        None if form.is_empty() => None,
        None => Some(form_body(&form, consumes)),
    };
    (others, body)
}

fn schema_of(parameter: &Value) -> Map<String, Value> {
    let members = parameter.as_object().into_iter().flatten();
    members
        .filter(|(key, _)| SCHEMA_KEYWORDS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn openapi_parameter(parameter: Value) -> Value {
    let schema = schema_of(&parameter);
    let format = parameter
        .get("collectionFormat")
        .and_then(Value::as_str)
        .unwrap_or("csv");
    let (style, explode) = match format {
        "multi" => ("form", true),
        "ssv" => ("spaceDelimited", false),
        "tsv" => ("tabDelimited", false),
        "pipes" => ("pipeDelimited", false),
        // `csv` is the default style of each place, without repetition.
        _ => ("", false),
    };
    let is_array = schema.get("type").and_then(Value::as_str) == Some("array");
    let Value::Object(mut converted) = parameter else {
        return parameter;
    };
    converted.retain(|key, _| !SCHEMA_KEYWORDS.contains(&key.as_str()));
    converted.insert("schema".to_owned(), Value::Object(schema));
    if is_array {
        converted.insert("explode".to_owned(), json!(explode));
        if !style.is_empty() {
            converted.insert("style".to_owned(), json!(style));
        }
    }
    Value::Object(converted)
}

fn json_body(body: &Value, consumes: &[String]) -> Value {
    let schema = body.get("schema").cloned().unwrap_or_else(|| json!({}));
    let mut media: Vec<&str> = consumes.iter().map(String::as_str).collect();
    if media.is_empty() {
        media.push("application/json");
    }
    let content: Map<String, Value> = media
        .into_iter()
        .map(|media| (media.to_owned(), json!({"schema": schema})))
        .collect();
    json!({
        "required": body.get("required").cloned().unwrap_or(Value::Bool(false)),
        "description": body.get("description").cloned().unwrap_or_else(|| json!("")),
        "content": content,
    })
}

fn form_body(form: &[Value], consumes: &[String]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut encoding = Map::new();
    let mut has_file = false;
    for field in form {
        let Some(name) = field.get("name").and_then(Value::as_str) else {
            continue;
        };
        let mut schema = schema_of(field);
        has_file |= schema.get("type").and_then(Value::as_str) == Some("file");
        if let Some(description) = field.get("description") {
            schema.insert("description".to_owned(), description.clone());
        }
        if schema.get("type").and_then(Value::as_str) == Some("array") {
            let repeats = field.get("collectionFormat").and_then(Value::as_str) == Some("multi");
            encoding.insert(name.to_owned(), json!({"style": "form", "explode": repeats}));
        }
        if field.get("required") == Some(&Value::Bool(true)) {
            required.push(json!(name));
        }
        properties.insert(name.to_owned(), Value::Object(schema));
    }
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let only_multipart = !consumes.is_empty() && consumes.iter().all(|media| media.starts_with("multipart/"));
    let media = if has_file || only_multipart {
        "multipart/form-data"
    } else {
        "application/x-www-form-urlencoded"
    };
    let is_required = !required.is_empty();
    json!({"required": is_required, "content": {media: {"schema": schema, "encoding": encoding}}})
}
