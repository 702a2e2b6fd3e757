//! Reasons why a schema does not compile, in the words of [`crate::mismatch`].

use jsonschema::{Draft, ReferencingError, ValidationError, error::ValidationErrorKind as Kind};
use serde_json::{Value, json};

use super::options;
use crate::{
    SchemaError, SchemaErrorKind,
    budget::{Metered, MeteredNode, Price, with_budget},
    document::each_subschema,
    mismatch::{cut, explain},
    reference::{Target, anchors, percent_decode, resolve},
};

/// Budget for explaining a schema that breaks the rules of its draft.
const STEPS: u64 = 2_000_000;
/// Maximum length of a reference, a pattern or a message in a reason, in characters.
const MAX_QUOTED: usize = 200;

/// Describes the error with which a schema was refused.
pub(crate) fn invalid(schema: &Value, draft: Draft, error: &ValidationError<'_>) -> SchemaError {
    broken_rules(schema, draft)
        .or_else(|| match error.kind() {
            Kind::Referencing(error) => broken_reference(schema, error),
            _ => None,
        })
        .unwrap_or_else(|| other(schema, error))
}

/// Describes the rules of its draft that a schema breaks. Returns `None` if there are none.
fn broken_rules(schema: &Value, draft: Draft) -> Option<SchemaError> {
    let rules = json!({"$ref": rules_of(draft)});
    let options = options(draft, false, jsonschema::options_for::<Metered>());
    let rules = options.build(&rules).ok()?;
    let explained = with_budget(STEPS, Price::default(), || {
        explain(rules.iter_errors(MeteredNode(schema)), schema, &Value::Null)
    });
    let mismatch = explained.0?;
    let pointer = mismatch.problems.first()?.path.clone();
    Some(SchemaError::new(SchemaErrorKind::Invalid, mismatch.to_string()).at(pointer))
}

/// Returns the URI of a draft's own schema.
fn rules_of(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "http://json-schema.org/draft-04/schema#",
        Draft::Draft6 => "http://json-schema.org/draft-06/schema#",
        Draft::Draft7 => "http://json-schema.org/draft-07/schema#",
        Draft::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
        _ => "https://json-schema.org/draft/2020-12/schema",
    }
}

/// Describes a reference that leads nowhere.
fn broken_reference(schema: &Value, error: &ReferencingError) -> Option<SchemaError> {
    let anchors = anchors(schema);
    let mut dangling: Vec<(String, &str)> = Vec::new();
    each_subschema(schema, &mut |pointer, subschema| {
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let reference = subschema.get(keyword).and_then(Value::as_str);
            if let Some(reference) = reference
                && matches!(resolve(schema, &anchors, reference), Target::Elsewhere)
            {
                dangling.push((format!("{pointer}/{keyword}"), reference));
            }
        }
    });
    let is_meant = |(_, reference): &&(String, &str)| is_about(error, reference);
    let (pointer, reference) = dangling.iter().find(is_meant).or(dangling.first())?;
    let place = format!("`{}`", cut(pointer, MAX_QUOTED));
    let quoted = format!("`{}`", cut(reference, MAX_QUOTED));
    let reason = match error {
        ReferencingError::InvalidUri(_) | ReferencingError::InvalidPercentEncoding { .. } => {
            format!("{place} must be a URI reference, not {quoted}")
        }
        _ if reference.starts_with('#') => {
            format!("{place} refers to {quoted}, which is not in the schema")
        }
        _ => format!("{place} refers to {quoted}, which is not in the schema, and nothing is fetched"),
    };
    Some(SchemaError::new(SchemaErrorKind::Invalid, reason).at(pointer.as_str()))
}

/// Returns `true` if an error is probably about this reference: the library does not say which one it followed.
fn is_about(error: &ReferencingError, reference: &str) -> bool {
    let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let fragment = percent_decode(fragment);
    match error {
        ReferencingError::Unretrievable { uri, .. } => {
            !resource.is_empty() && uri.ends_with(resource.trim_start_matches("./"))
        }
        ReferencingError::PointerToNowhere { pointer }
        | ReferencingError::InvalidPercentEncoding { pointer, .. }
        | ReferencingError::InvalidArrayIndex { pointer, .. } => fragment == pointer.as_str(),
        ReferencingError::NoSuchAnchor { anchor } | ReferencingError::InvalidAnchor { anchor } => {
            fragment == anchor.as_str()
        }
        other => other.to_string().contains(reference),
    }
}

/// Describes any other error: a pattern that does not compile, or one that the library alone knows.
fn other(schema: &Value, error: &ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().as_str();
    let reason = match (error.kind(), schema.pointer(pointer).and_then(Value::as_str)) {
        (Kind::Format { format }, Some(pattern)) if format == "regex" => {
            let pattern = cut(pattern, MAX_QUOTED);
            format!("`{pointer}` must be a regular expression, not `{pattern}`")
        }
        (Kind::Format { format }, None) if format == "regex" => {
            format!(
                "the key of `{}` must be a regular expression",
                cut(pointer, MAX_QUOTED)
            )
        }
        // The library's message may quote the schema, at any length.
        _ if pointer.is_empty() => cut(&error.to_string(), MAX_QUOTED),
        _ => format!("`{pointer}`: {}", cut(&error.to_string(), MAX_QUOTED)),
    };
    SchemaError::new(SchemaErrorKind::Invalid, reason).at(pointer)
}
