use raw_json::{JsonError, JsonErrorKind, JsonLimits, RawJson};
use serde_json::Value;

use crate::{
    SchemaError, SchemaErrorKind, SchemaWarning,
    budget::{MAX_DEPTH, MAX_TEXT},
};

/// Parses the text of a schema within the budgets for texts. Duplicate keys are found by [`read`].
pub(crate) fn parse(text: &str) -> Result<RawJson, SchemaError> {
    check_length(text.len())?;
    RawJson::parse_within(text.to_owned(), relayed()).map_err(|error| unreadable(&error))
}

/// Reads a schema within the budgets for texts.
pub(crate) fn read(raw: &RawJson, warnings: &mut Vec<SchemaWarning>) -> Result<Value, SchemaError> {
    check_length(raw.len())?;
    let limits = JsonLimits::STRICT.with_depth(MAX_DEPTH);
    if let Err(error) = raw_json::validate(raw.as_str(), limits) {
        match error.kind() {
            JsonErrorKind::DuplicateKey(_) => {
                warnings.push(SchemaWarning::DuplicateKey(error.to_string()));
                // The check stopped there, so the depth of the rest still has to be checked.
                raw_json::validate(raw.as_str(), relayed()).map_err(|error| unreadable(&error))?;
            }
            _ => return Err(unreadable(&error)),
        }
    }
    let value: Value = raw.to().map_err(|error| unreadable(&error))?;
    if value.is_object() || value.is_boolean() {
        Ok(value)
    } else {
        Err(SchemaError::new(
            SchemaErrorKind::NotASchema,
            "it must be an object or a boolean",
        ))
    }
}

fn relayed() -> JsonLimits {
    JsonLimits::RELAY.with_depth(MAX_DEPTH)
}

fn check_length(length: usize) -> Result<(), SchemaError> {
    if length <= MAX_TEXT {
        return Ok(());
    }
    Err(SchemaError::new(
        SchemaErrorKind::TooLarge,
        format!("it is too large: {length} bytes, at most {MAX_TEXT} are allowed"),
    ))
}

fn unreadable(error: &JsonError) -> SchemaError {
    let kind = match error.kind() {
        JsonErrorKind::TooDeep(_) => SchemaErrorKind::TooLarge,
        _ => SchemaErrorKind::NotASchema,
    };
    SchemaError::new(kind, error.to_string())
}
