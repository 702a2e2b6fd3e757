//! Errors in words: where, what was expected, what was found.

use std::io;

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;
use tool_core::{Mismatch, Problem};

use crate::metered::is_genuine;

/// How many problems are told at once.
const MAX_PROBLEMS: usize = 8;
/// How long what was found may be, in characters.
const MAX_FOUND: usize = 80;
/// How long what was expected may be, in characters.
const MAX_EXPECTED: usize = 240;

/// Puts the errors that were found before the budget was gone into words; nothing if there are none.
pub(crate) fn explain<'a>(
    errors: impl Iterator<Item = ValidationError<'a>>,
    value: &Value,
    schema: &Value,
) -> Option<Mismatch> {
    let mut problems: Vec<Problem> = Vec::new();
    let mut truncated = false;
    for error in errors {
        if !is_genuine(error.instance()) {
            truncated = true;
            break;
        }
        add(&error, value, schema, &mut problems);
        if problems.len() > MAX_PROBLEMS {
            truncated = true;
            break;
        }
    }
    problems.truncate(MAX_PROBLEMS);
    (!problems.is_empty()).then_some(Mismatch { problems, truncated })
}

/// What is said when a value does not fit and finding out where would take too long.
pub(crate) fn unexplained(value: &Value) -> Mismatch {
    whole(
        value,
        "a value that fits its schema; too complex to say where it does not",
    )
}

/// What is said when finding out whether a value fits would take too long.
pub(crate) fn too_complex(value: &Value) -> Mismatch {
    whole(value, "simple enough to be checked against its schema")
}

fn whole(value: &Value, expected: &str) -> Mismatch {
    Mismatch {
        problems: vec![Problem {
            path: String::new(),
            keyword: "$schema".to_owned(),
            expected: expected.to_owned(),
            found: found(value),
            found_kind: kind_of(value),
        }],
        truncated: false,
    }
}

fn add(error: &ValidationError<'_>, value: &Value, schema: &Value, problems: &mut Vec<Problem>) {
    // Of several alternatives, one is usually meant: the one whose kind of value stands there.
    if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind()
        && let Some(branch) = meant(context, error.instance_path().as_str())
    {
        for error in branch.iter().filter(|error| is_genuine(error.instance())) {
            add(error, value, schema, problems);
        }
        return;
    }
    let path = error.instance_path().as_str();
    // A path leads into the value that was checked, save for a property's name, which is no part of it.
    let part = value.pointer(path).unwrap_or(value);
    let problem = Problem {
        path: path.to_owned(),
        keyword: error.kind().keyword().to_owned(),
        expected: cut(&expected(error, part, schema), MAX_EXPECTED),
        found: found(part),
        found_kind: kind_of(part),
    };
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}

/// The branch that was meant for the value at `path`, if one alone comes into question: the one that takes this
/// kind of value, or of several the one whose tags agree.
fn meant<'e>(
    branches: &'e [Vec<ValidationError<'static>>],
    path: &str,
) -> Option<&'e [ValidationError<'static>]> {
    only(branches, |error| {
        error.instance_path().as_str() == path
            && matches!(
                error.kind(),
                Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. }
            )
    })
    .or_else(|| {
        only(branches, |error| {
            let place = error.instance_path().as_str();
            let below = place.strip_prefix(path).unwrap_or(place);
            match error.kind() {
                Kind::Type { .. } => below.is_empty(),
                Kind::Constant { .. } | Kind::Enum { .. } => below.matches('/').count() <= 1,
                _ => false,
            }
        })
    })
}

/// The only branch without such an error.
fn only<'e>(
    branches: &'e [Vec<ValidationError<'static>>],
    rules_out: impl Fn(&ValidationError<'static>) -> bool,
) -> Option<&'e [ValidationError<'static>]> {
    let mut candidates = branches
        .iter()
        .filter(|errors| !errors.is_empty() && !errors.iter().any(&rules_out));
    let branch = candidates.next()?;
    candidates.next().is_none().then_some(branch)
}

fn expected(error: &ValidationError<'_>, part: &Value, schema: &Value) -> String {
    match error.kind() {
        Kind::Type { kind } => types(kind),
        Kind::Required { property } => format!("an object with a property `{}`", text(property)),
        Kind::Enum { options } => match options.as_array() {
            Some(options) if options.len() > 1 => format!("one of {}", list(options.iter().map(found))),
            Some(options) => list(options.iter().map(found)),
            None => found(options),
        },
        Kind::Constant { expected_value } => found(expected_value),
        Kind::Minimum { limit } => format!("a number of at least {limit}"),
        Kind::Maximum { limit } => format!("a number of at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("a number greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("a number less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("a string of at least {}", count(*limit, "character")),
        Kind::MaxLength { limit } => format!("a string of at most {}", count(*limit, "character")),
        Kind::Pattern { pattern } => format!("a string that matches `{pattern}`"),
        Kind::MinItems { limit } => format!("an array of at least {}", count(*limit, "item")),
        Kind::MaxItems { limit } => format!("an array of at most {}", count(*limit, "item")),
        Kind::AdditionalItems { limit } => format!("an array of at most {}", count(*limit as u64, "item")),
        Kind::UniqueItems => "an array without equal items".to_owned(),
        Kind::Contains => "an array with an item that fits `contains`".to_owned(),
        Kind::UnevaluatedItems { .. } => "an array without further items".to_owned(),
        Kind::MinProperties { limit } => format!("an object of at least {}", properties(*limit)),
        Kind::MaxProperties { limit } => format!("an object of at most {}", properties(*limit)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            without(unexpected, error, schema)
        }
        Kind::PropertyNames { error } => {
            format!("an object whose every key is {}", expected(error, part, schema))
        }
        Kind::FalseSchema => "left out".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            alternatives(context, error.instance_path().as_str(), part, schema)
        }
        Kind::OneOfMultipleValid { .. } => {
            "a value that fits just one alternative of `oneOf`, and it fits several".to_owned()
        }
        Kind::Not { .. } => "a value that `not` does not forbid".to_owned(),
        Kind::Format { format } => format!("a string in the format `{format}`"),
        Kind::ContentEncoding { content_encoding } => format!("a string encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("a string that holds {content_media_type}"),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "a string that can be matched against its pattern in time".to_owned()
        }
        other => format!("a value that fits `{}`", other.keyword()),
    }
}

/// What several alternatives ask for, if each asks for one thing at this very place.
fn alternatives(
    branches: &[Vec<ValidationError<'static>>],
    path: &str,
    part: &Value,
    schema: &Value,
) -> String {
    let mut wanted: Vec<String> = Vec::new();
    for errors in branches {
        let here = errors.iter().find(|error| {
            error.instance_path().as_str() == path
                && matches!(
                    error.kind(),
                    Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. } | Kind::Required { .. }
                )
        });
        match here {
            Some(error) => {
                let text = expected(error, part, schema);
                if !wanted.contains(&text) {
                    wanted.push(text);
                }
            }
            None => return format!("a value that fits one of {} alternatives", branches.len()),
        }
    }
    or(&wanted)
}

fn without(unexpected: &[String], error: &ValidationError<'_>, schema: &Value) -> String {
    let noun = if unexpected.len() == 1 {
        "property"
    } else {
        "properties"
    };
    let names = list(unexpected.iter().map(|name| format!("`{name}`")));
    let place = error.schema_path().as_str();
    let allowed = place
        .rsplit_once('/')
        .and_then(|(parent, _)| schema.pointer(parent)?.get("properties")?.as_object());
    match allowed {
        Some(allowed) if !allowed.is_empty() => {
            let allowed = list(allowed.keys().map(|name| format!("`{name}`")));
            format!("an object without the {noun} {names} (it may have {allowed})")
        }
        _ => format!("an object without the {noun} {names}"),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(json_type) => type_name(*json_type).to_owned(),
        TypeKind::Multiple(types) => {
            let names: Vec<String> = types
                .iter()
                .map(|json_type| type_name(json_type).to_owned())
                .collect();
            or(&names)
        }
    }
}

fn type_name(json_type: JsonType) -> &'static str {
    match json_type {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn properties(n: u64) -> String {
    format!("{n} {}", if n == 1 { "property" } else { "properties" })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| found(value), ToOwned::to_owned)
}

fn or(names: &[String]) -> String {
    match names {
        [] => "another value".to_owned(),
        [name] => name.clone(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    }
}

/// The first names of a list, and how many more there are.
fn list(mut names: impl Iterator<Item = String>) -> String {
    let mut out = names.by_ref().take(10).collect::<Vec<_>>().join(", ");
    let more = names.count();
    if more > 0 {
        out.push_str(&format!(" and {more} more"));
    }
    out
}

/// A value as it is shown: its JSON, cut.
fn found(value: &Value) -> String {
    let mut sink = Sink(Vec::new());
    // The only error is that of a full sink, which is what was wanted.
    let complete = serde_json::to_writer(&mut sink, value).is_ok();
    let text = String::from_utf8_lossy(&sink.0);
    if complete {
        cut(&text, MAX_FOUND)
    } else {
        cut(&format!("{text}…"), MAX_FOUND)
    }
}

fn cut(text: &str, most: usize) -> String {
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(most - 1).collect();
    out.push('…');
    out
}

/// Takes the beginning of what is written to it, so that a large value is not written out to be cut.
struct Sink(Vec<u8>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (MAX_FOUND * 4).saturating_sub(self.0.len());
        if room == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
