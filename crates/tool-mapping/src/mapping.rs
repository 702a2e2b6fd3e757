//! Mappings: JSON whose texts may be references, and whose maps may be expressions.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::Value;
use tool_core::PrepareError;
use tool_settings::pointer;

use super::{
    expression::Expression,
    reference::{ReferenceRoot, ValueReference},
    scope::MappingValues,
};

/// Value that is made at run time.
#[derive(Debug)]
pub enum Mapping {
    /// Value that is known beforehand.
    Literal(RawJson),
    /// Value of a reference.
    Reference(Placed<ValueReference>),
    /// Value of an expression.
    Expression(Placed<Expression>),
    /// Object whose members are made.
    Object(Vec<(String, Self)>),
    /// List whose items are made.
    List(Vec<Self>),
}

/// Something with its place, a JSON Pointer from the root of the settings.
#[derive(Debug)]
pub struct Placed<T> {
    /// Place.
    pub at: String,
    /// Content of the place.
    pub value: T,
}

/// Key of a map that is an expression.
const EXPRESSION: &str = "$cel";
/// Key of a map whose value is taken as it is.
const LITERAL: &str = "$literal";
/// Hint for a text that begins with `$` and is meant as it is.
const ESCAPE: &str = "begin with `$$` if the text itself begins with `$`";

impl Mapping {
    /// Reads a mapping. `at` is its place, a JSON Pointer. Problems are added to `problems`, and what has one is left out.
    pub fn read(value: &Value, at: &str, problems: &mut Vec<PrepareError>) -> Self {
        match value {
            Value::String(text) => Self::of_text(text, at, problems),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, item)| Self::read(item, &format!("{at}/{index}"), problems));
                Self::List(items.collect()).settled()
            }
            Value::Object(members) => {
                let mut entries = members.iter();
                if let (Some((key, value)), None) = (entries.next(), entries.next()) {
                    match key.as_str() {
                        LITERAL => return Self::Literal(RawJson::from(value)),
                        EXPRESSION => return Self::of_expression(value, &pointer(at, key), problems),
                        _ => {}
                    }
                }
                let members = members
                    .iter()
                    .map(|(key, value)| (key.clone(), Self::read(value, &pointer(at, key), problems)));
                Self::Object(members.collect()).settled()
            }
            value => Self::Literal(RawJson::from(value)),
        }
    }

    fn of_text(text: &str, at: &str, problems: &mut Vec<PrepareError>) -> Self {
        let Some(rest) = text.strip_prefix('$') else {
            return Self::Literal(RawJson::from(text));
        };
        if rest.starts_with('$') {
            return Self::Literal(RawJson::from(rest));
        }
        if rest.starts_with('{') {
            let problem = PrepareError::at(at, "no secrets and no environment variables are known here");
            problems.push(problem.with_hint(format!("give them to the tool that needs them, or {ESCAPE}")));
            return Self::Literal(RawJson::null());
        }
        match ValueReference::parse(rest) {
            Ok(value) => Self::Reference(Placed {
                at: at.to_owned(),
                value,
            }),
            Err(problem) => {
                let problem = PrepareError::at(at, format!("this is no reference: {problem}"));
                problems.push(problem.with_hint(ESCAPE));
                Self::Literal(RawJson::null())
            }
        }
    }

    fn of_expression(value: &Value, at: &str, problems: &mut Vec<PrepareError>) -> Self {
        let Some(source) = value.as_str() else {
            problems.push(PrepareError::at(at, "an expression is a text"));
            return Self::Literal(RawJson::null());
        };
        match Expression::compile(source) {
            Ok(value) => Self::Expression(Placed {
                at: at.to_owned(),
                value,
            }),
            Err(problem) => {
                problems.push(PrepareError::at(at, problem));
                Self::Literal(RawJson::null())
            }
        }
    }

    /// Makes one literal of parts that are all literals.
    fn settled(self) -> Self {
        let literal = |part: &Self| match part {
            Self::Literal(value) => Some(value.clone()),
            _ => None,
        };
        let settled = match &self {
            Self::List(items) => {
                let items: Option<Vec<_>> = items.iter().map(literal).collect();
                items.map(|items| RawJson::from_items(&items))
            }
            Self::Object(members) => {
                let members = members
                    .iter()
                    .map(|(key, value)| Some((key.as_str(), literal(value)?)));
                let members: Option<Vec<_>> = members.collect();
                members.map(|members| RawJson::from_members(&members))
            }
            _ => None,
        };
        settled.map_or(self, Self::Literal)
    }

    /// Makes the value.
    ///
    /// # Errors
    /// Says which reference leads nowhere, or why an expression has no value: a sentence fragment.
    pub fn make(&self, values: &MappingValues<'_>) -> Result<RawJson, String> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Reference(reference) => {
                let reference = &reference.value;
                let resolved = reference.resolve(values);
                resolved.map_err(|problem| format!("`{reference}` {problem}"))
            }
            Self::Expression(expression) => expression.value.evaluate(values),
            Self::Object(members) => {
                let members = members
                    .iter()
                    .map(|(key, value)| Ok((key.as_str(), value.make(values)?)));
                let members: Vec<_> = members.collect::<Result<_, String>>()?;
                Ok(RawJson::from_members(&members))
            }
            Self::List(items) => {
                let items: Vec<_> = items
                    .iter()
                    .map(|item| item.make(values))
                    .collect::<Result<_, _>>()?;
                Ok(RawJson::from_items(&items))
            }
        }
    }

    /// Calls a function for each reference and each expression.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(MappingPart<'a>)) {
        match self {
            Self::Literal(_) => {}
            Self::Reference(reference) => visit(MappingPart::Reference(reference)),
            Self::Expression(expression) => visit(MappingPart::Expression(expression)),
            Self::Object(members) => {
                for (_, member) in members {
                    member.visit(visit);
                }
            }
            Self::List(items) => {
                for item in items {
                    item.visit(visit);
                }
            }
        }
    }
}

/// MappingPart of a mapping that depends on other values.
#[derive(Debug, Clone, Copy)]
pub enum MappingPart<'a> {
    /// Reference.
    Reference(&'a Placed<ValueReference>),
    /// Expression.
    Expression(&'a Placed<Expression>),
}

impl<'a> MappingPart<'a> {
    /// Returns the steps whose results the part uses or asks for.
    #[must_use]
    pub fn steps(self) -> Vec<Arc<str>> {
        match self {
            Self::Reference(reference) => match &reference.value.root {
                ReferenceRoot::Result(step) => vec![step.clone()],
                _ => Vec::new(),
            },
            Self::Expression(expression) => {
                let uses = expression.value.uses();
                uses.steps.union(&uses.guarded).cloned().collect()
            }
        }
    }

    /// Returns the place of the part.
    #[must_use]
    pub fn at(self) -> &'a str {
        match self {
            Self::Reference(reference) => &reference.at,
            Self::Expression(expression) => &expression.at,
        }
    }
}
