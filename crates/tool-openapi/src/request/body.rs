//! Bodies of requests.

use serde_json::{Map, Value, json};

use super::settings::{Builder, is_json};
use crate::schema::{Kinds, restrict};

/// Keywords of an object whose members can be arguments of the tool.
const PLAIN: [&str; 9] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "description",
    "title",
    "examples",
    "default",
    "deprecated",
];

/// Body of the requests of a tool.
#[derive(Debug, Default)]
pub(super) struct BodyPlan {
    /// Schema of the members that are arguments themselves.
    pub(super) members: Option<Map<String, Value>>,
    /// Schema of the argument `body`, and `true` if it is required.
    pub(super) whole: Option<(Value, bool)>,
    /// Header `Content-Type`, unless it is `application/json`.
    pub(super) content_type: Option<String>,
}

/// Form in which the executor sends a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BodyForm {
    Json,
    Form,
    Text,
}

impl Builder<'_, '_> {
    /// Decides how the body of an operation is sent, or returns the reason why it cannot be.
    pub(super) fn plan_body(&mut self, method: &str, body: &Value) -> Result<BodyPlan, String> {
        let body = self
            .document
            .resolve(body)
            .map_err(|reason| format!("its body: {reason}"))?;
        let is_required = body.get("required") == Some(&Value::Bool(true));
        let unsent = |reason: String, warnings: &mut Vec<String>| {
            if is_required {
                return Err(format!("its body cannot be sent: {reason}"));
            }
            warnings.push(format!("the body is left out: {reason}"));
            Ok(BodyPlan::default())
        };
        if matches!(method, "GET" | "HEAD") {
            return unsent(format!("a `{method}` request has none"), &mut self.warnings);
        }
        let content = body.get("content").and_then(Value::as_object);
        let offered = content.into_iter().flatten();
        let sendable = offered
            .clone()
            .filter_map(|(media, value)| Some((form_of(media)?, media, value)))
            .min_by_key(|(form, media, _)| (*form, essence(media) != "application/json"));
        let Some((form, media, value)) = sendable else {
            let names: Vec<String> = offered
                .map(|(media, _)| format!("`{}`", media.escape_debug()))
                .collect();
            return unsent(
                format!("it is {}", or_nothing(&names.join(" or "))),
                &mut self.warnings,
            );
        };
        let schema = value.get("schema").cloned().unwrap_or_else(|| json!({}));
        let schema = self
            .definitions
            .add(&schema)
            .map_err(|reason| format!("its body: {reason}"))?;
        let allowed = match form {
            BodyForm::Json => Kinds::ALL.without(Kinds::NULL),
            BodyForm::Form => Kinds::OBJECT,
            BodyForm::Text => Kinds::STRING,
        };
        let Some(mut schema) = restrict(schema, allowed, &self.definitions) else {
            return unsent(
                format!("no value of its schema is `{}`", media.escape_debug()),
                &mut self.warnings,
            );
        };
        if form == BodyForm::Form {
            schema = match self.form_fields(schema, value) {
                Ok(schema) => schema,
                Err(reason) => return unsent(reason, &mut self.warnings),
            };
        }
        let mut plan = BodyPlan {
            content_type: (essence(media) != "application/json").then(|| content_type(media)),
            ..BodyPlan::default()
        };
        let takes_rest = matches!(method, "POST" | "PUT" | "PATCH") && form != BodyForm::Text;
        match self.plain_members(&schema, is_required).filter(|_| takes_rest) {
            Some(members) => plan.members = Some(members),
            None => plan.whole = Some((described(schema, body), is_required)),
        }
        Ok(plan)
    }

    /// Returns the object whose members can be arguments: then a call without any argument has a body only if the operation
    /// allows none.
    fn plain_members(&self, schema: &Value, is_required: bool) -> Option<Map<String, Value>> {
        let object = self.definitions.resolve(schema).as_object()?;
        let is_plain = object.keys().all(|keyword| PLAIN.contains(&keyword.as_str()));
        let is_object = object.get("type").is_none_or(|kind| kind == "object");
        let properties = object.get("properties").and_then(Value::as_object);
        let has_properties = properties.is_some_and(|properties| !properties.is_empty());
        let required = object.get("required").and_then(Value::as_array);
        let needs_member = required.is_some_and(|required| !required.is_empty());
        (is_plain && is_object && has_properties && needs_member == is_required).then(|| object.clone())
    }

    /// Removes the fields of a form that are encoded in a way that the executor does not know.
    fn form_fields(&mut self, schema: Value, media: &Value) -> Result<Value, String> {
        let encoding = media.get("encoding").and_then(Value::as_object);
        let odd: Vec<&String> = encoding
            .into_iter()
            .flatten()
            .filter(|(_, encoding)| !is_default_encoding(encoding))
            .map(|(name, _)| name)
            .collect();
        if odd.is_empty() {
            return Ok(schema);
        }
        let Value::Object(mut object) = self.definitions.resolve(&schema).clone() else {
            return Ok(schema);
        };
        for name in odd {
            let required = object.get("required").and_then(Value::as_array);
            let shown = name.escape_debug().to_string();
            let property = object
                .get("properties")
                .and_then(|properties| properties.get(name));
            let Some(property) = property else { continue };
            let is_scalar = Kinds::SCALARS.has(Kinds::of_schema(property, &self.definitions));
            if is_scalar {
                // Single values have the same text in all styles but `deepObject`.
                continue;
            }
            if required.is_some_and(|required| required.iter().any(|listed| listed == name)) {
                return Err(format!("the field `{shown}` of its form has its own encoding"));
            }
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                properties.retain(|key, _| key != name);
            }
            self.warnings.push(format!(
                "the field `{shown}` of the form is left out: it has its own encoding"
            ));
        }
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
        Ok(Value::Object(object))
    }
}

fn is_default_encoding(encoding: &Value) -> bool {
    let style = encoding.get("style").and_then(Value::as_str);
    let explode = encoding.get("explode").and_then(Value::as_bool);
    let media = encoding.get("contentType").and_then(Value::as_str);
    style.is_none_or(|style| style == "form")
        && explode != Some(false)
        && media.is_none_or(|media| is_json(media) || media == "text/plain")
}

/// Adds the description of a body to its schema.
fn described(schema: Value, body: &Value) -> Value {
    let description = body.get("description").and_then(Value::as_str).map(str::trim);
    match (schema, description.filter(|text| !text.is_empty())) {
        (Value::Object(mut keywords), Some(description)) => {
            keywords
                .entry("description")
                .or_insert_with(|| json!(description));
            Value::Object(keywords)
        }
        (schema, _) => schema,
    }
}

/// Returns the form in which the executor sends a media type, if it can.
fn form_of(media: &str) -> Option<BodyForm> {
    let essence = essence(media);
    if is_json(&essence) || matches!(&*essence, "*/*" | "application/*") {
        Some(BodyForm::Json)
    } else if essence == "application/x-www-form-urlencoded" {
        Some(BodyForm::Form)
    } else if essence.starts_with("text/") {
        Some(BodyForm::Text)
    } else {
        None
    }
}

/// Returns a media type without its parameters, in lower case.
fn essence(media: &str) -> String {
    let essence = media.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Returns the header for a media type. A range of types stands for JSON.
fn content_type(media: &str) -> String {
    match &*essence(media) {
        "*/*" | "application/*" => "application/json".to_owned(),
        "text/*" => "text/plain".to_owned(),
        "application/*+json" => "application/json".to_owned(),
        _ => media.trim().replace('$', "$$"),
    }
}

fn or_nothing(names: &str) -> &str {
    if names.is_empty() {
        "of no media type"
    } else {
        names
    }
}
