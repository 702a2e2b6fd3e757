//! Messages about validation errors: the place, the expected value, and the value found.

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;
use tool_check::{Mismatch, Problem};

use super::{
    rule::Rule,
    union::{Choice, choose},
    words::{found, list, literals, or, properties, text},
};
use crate::budget::is_genuine;

/// Maximum number of problems in one message.
const MAX_PROBLEMS: usize = 8;

/// Describes the errors that were found within the budget. Returns `None` if there are none.
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
    (!problems.is_empty()).then(|| Mismatch::new(problems).with_truncated(truncated))
}

/// Returns the mismatch of a value that does not fit, if finding the place would exceed the budget.
pub(crate) fn unexplained(value: &Value) -> Mismatch {
    whole(
        value,
        "a value that fits its schema; too complex to say where it does not",
    )
}

/// Returns the mismatch of a value whose check would exceed the budget.
pub(crate) fn too_complex(value: &Value) -> Mismatch {
    whole(value, "simple enough to be checked against its schema")
}

fn whole(value: &Value, expected: &str) -> Mismatch {
    let rule = Rule::must_be(expected);
    Mismatch::new(vec![rule.problem("", "$schema", value)])
}

fn push(problem: Problem, problems: &mut Vec<Problem>) {
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}

fn add(error: &ValidationError<'_>, value: &Value, schema: &Value, problems: &mut Vec<Problem>) {
    // Usually one of several alternatives is meant: the one whose type the value has.
    if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind() {
        match meant(error, context, value, schema) {
            Meant::Alternative(errors) => {
                for error in errors.iter().filter(|error| is_genuine(error.instance())) {
                    add(error, value, schema, problems);
                }
                return;
            }
            Meant::Problem(problem) => return push(problem, problems),
            Meant::Open => {}
        }
    }
    let path = error.instance_path().as_str();
    // A path leads into the checked value, except for that of a property's name, which is not part of it.
    let part = value.pointer(path).unwrap_or(value);
    let keyword = error.kind().keyword();
    push(rule(error, part, schema).problem(path, keyword, part), problems);
}

/// Result of the search for the alternative that a value means.
enum Meant<'e> {
    /// Errors of the alternative that is meant.
    Alternative(&'e [ValidationError<'static>]),
    /// Problem of the discriminator, which all alternatives share.
    Problem(Problem),
    /// No alternative is known to be meant.
    Open,
}

fn meant<'e>(
    error: &ValidationError<'_>,
    context: &'e [Vec<ValidationError<'static>>],
    value: &Value,
    schema: &Value,
) -> Meant<'e> {
    let path = error.instance_path().as_str();
    let alternative =
        |errors: Option<&'e [ValidationError<'static>]>| errors.map_or(Meant::Open, Meant::Alternative);
    if let Some(errors) = of_this_kind(context, path) {
        return Meant::Alternative(errors);
    }
    let open: Vec<usize> = (0..context.len())
        .filter(|&index| {
            !context[index].is_empty() && !context[index].iter().any(|error| is_of_other_kind(error, path))
        })
        .collect();
    let alternatives = schema
        .pointer(error.schema_path().as_str())
        .and_then(Value::as_array);
    let choice = alternatives
        .filter(|alternatives| alternatives.len() == context.len() && open.len() > 1)
        .zip(value.pointer(path))
        .and_then(|(alternatives, part)| choose(alternatives, &open, part, schema));
    match choice {
        Some(Choice::Alternative(index)) => alternative(context.get(index).map(Vec::as_slice)),
        Some(Choice::Unknown { steps, options }) => {
            let path = below(path, &steps);
            let part = value.pointer(&path).unwrap_or(value);
            Meant::Problem(Rule::must_be(&literals(options)).problem(&path, "enum", part))
        }
        Some(Choice::Missing { steps, options }) => {
            let (property, parents) = steps
                .split_last()
                .map_or(("", &[][..]), |(last, parents)| (*last, parents));
            let path = below(path, parents);
            let part = value.pointer(&path).unwrap_or(value);
            Meant::Problem(missing(property, &options).problem(&path, "required", part))
        }
        None => alternative(by_tags(context, path)),
    }
}

/// Returns the JSON Pointer of a property below another one.
fn below(path: &str, steps: &[&str]) -> String {
    steps.iter().fold(path.to_owned(), |path, step| {
        format!("{path}/{}", step.replace('~', "~0").replace('/', "~1"))
    })
}

fn missing(property: &str, options: &[&Value]) -> Rule {
    let remark = match options {
        [] => String::new(),
        options => format!(", {}", literals(options.to_vec())),
    };
    Rule::about(format!("missing required property `{property}`"), remark)
}

/// Returns the only alternative that accepts values of this type.
fn of_this_kind<'e>(
    context: &'e [Vec<ValidationError<'static>>],
    path: &str,
) -> Option<&'e [ValidationError<'static>]> {
    only(context, |error| is_of_other_kind(error, path))
}

/// Returns `true` if an error rules out its alternative for the value at `path`.
fn is_of_other_kind(error: &ValidationError<'_>, path: &str) -> bool {
    error.instance_path().as_str() == path
        && matches!(
            error.kind(),
            Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. }
        )
}

/// Returns the only alternative whose fixed values agree, if not every alternative has a discriminator.
fn by_tags<'e>(
    context: &'e [Vec<ValidationError<'static>>],
    path: &str,
) -> Option<&'e [ValidationError<'static>]> {
    only(context, |error| {
        let place = error.instance_path().as_str();
        let below = place.strip_prefix(path).unwrap_or(place);
        match error.kind() {
            Kind::Type { .. } => below.is_empty(),
            Kind::Constant { .. } | Kind::Enum { .. } => below.matches('/').count() <= 1,
            _ => false,
        }
    })
}

/// Returns the only branch without an error that rules it out.
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

/// Returns the rule that an error is about.
fn rule(error: &ValidationError<'_>, part: &Value, schema: &Value) -> Rule {
    match error.kind() {
        Kind::Required { property } => missing(&text(property), &[]),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let remark =
                allowed(error, schema).map_or_else(String::new, |names| format!(", allowed are {names}"));
            let names = list(unexpected.iter().map(|name| format!("`{name}`")));
            let noun = if unexpected.len() == 1 {
                "property"
            } else {
                "properties"
            };
            Rule::about(format!("unknown {noun} {names}"), remark)
        }
        Kind::PropertyNames { error: inner } => {
            Rule::must(&format!("have keys that are each {}", expected(inner)), true)
        }
        Kind::FalseSchema => Rule::must("be omitted", false),
        Kind::OneOfMultipleValid { .. } => {
            Rule::must("fit just one alternative of `oneOf`, and it fits several", false)
        }
        Kind::Not { .. } => Rule::must("not fit the schema under `not`", true),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            alternatives(context, error.instance_path().as_str(), part)
        }
        _ => Rule::must_be(&expected(error)),
    }
}

/// Describes the value that an error's rule expects.
fn expected(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => types(kind),
        Kind::Required { property } => format!("an object with a property `{}`", text(property)),
        Kind::Enum { options } => match options.as_array() {
            Some(options) => literals(options.iter().collect()),
            None => found(options),
        },
        Kind::Constant { expected_value } => literals(vec![expected_value]),
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
        Kind::Format { format } => format!("a string in the format `{format}`"),
        Kind::ContentEncoding { content_encoding } => format!("a string encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("a string that holds {content_media_type}"),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "a string that can be matched against its pattern in time".to_owned()
        }
        other => format!("a value that fits `{}`", other.keyword()),
    }
}

/// Returns the rule about several alternatives, if it is unknown which one is meant.
fn alternatives(context: &[Vec<ValidationError<'static>>], path: &str, part: &Value) -> Rule {
    let missing: Option<Vec<String>> = context.iter().map(|errors| missing_in(errors, path)).collect();
    if let Some(names) = missing.filter(|names| !names.is_empty() && part.is_object()) {
        return Rule::about(format!("missing {}", or(&unique(names))), String::new());
    }
    let wanted: Option<Vec<String>> = context
        .iter()
        .map(|errors| {
            errors
                .iter()
                .find(|error| is_of_other_kind(error, path))
                .map(expected)
        })
        .collect();
    match wanted {
        Some(wanted) => Rule::must_be(&or(&unique(wanted))),
        None => Rule::must_be(&format!(
            "a value that fits one of {} alternatives",
            context.len()
        )),
    }
}

/// Returns the properties that are missing for one alternative, if the value has no other error.
fn missing_in(errors: &[ValidationError<'static>], path: &str) -> Option<String> {
    let names: Option<Vec<String>> = errors
        .iter()
        .map(|error| match error.kind() {
            Kind::Required { property } if error.instance_path().as_str() == path => {
                Some(format!("`{}`", text(property)))
            }
            _ => None,
        })
        .collect();
    names
        .filter(|names| !names.is_empty())
        .map(|names| names.join(" and "))
}

fn unique(texts: Vec<String>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::new();
    for text in texts {
        if !unique.contains(&text) {
            unique.push(text);
        }
    }
    unique
}

/// Returns the properties that a closed object schema allows.
fn allowed(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
    let allowed = schema.pointer(parent)?.get("properties")?.as_object()?;
    (!allowed.is_empty()).then(|| list(allowed.keys().map(|name| format!("`{name}`"))))
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

fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
