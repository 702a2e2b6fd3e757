use std::fmt::{self, Write};

use raw_json::RawJson;
use serde_json::Value;

use crate::{AdaptedArguments, ArgumentHandling};

/// Compiled JSON Schema.
pub trait CheckJson: Send + Sync {
    /// Checks a value.
    ///
    /// # Errors
    /// [`CheckError::Mismatch`] if the value does not satisfy the schema, [`CheckError::Schema`] if the schema itself
    /// is not usable.
    fn check(&self, value: &Value) -> Result<(), CheckError>;

    /// Returns the schema as its author wrote it, for the definition of a tool: see
    /// [`ToolBuilder::input`](crate::ToolBuilder::input). `None` if the check comes from no JSON Schema.
    fn document(&self) -> Option<&RawJson> {
        None
    }

    /// Returns `true` if the text certainly satisfies the schema, as far as that shows without building a tree. The
    /// text has no duplicate key. `false` says nothing.
    fn surely_fits(&self, text: &RawJson) -> bool {
        let _ = text;
        false
    }

    /// Changes arguments so that they satisfy the schema, as far as `handling` allows. Returns `None` if there is
    /// nothing to change, or if the schema does not support it. The result may still be invalid and must be checked.
    fn adapt(&self, arguments: &RawJson, handling: ArgumentHandling) -> Option<AdaptedArguments> {
        let _ = (arguments, handling);
        None
    }

    /// Fills in the schema's `default` of each absent member. Returns `None` if there is nothing to fill in. Present
    /// members keep their values, except that absent members within them are filled in. Filling twice changes
    /// nothing.
    fn fill_defaults(&self, arguments: &RawJson) -> Option<AdaptedArguments> {
        let _ = arguments;
        None
    }
}

/// Schema that every value satisfies.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyJson;

impl CheckJson for AnyJson {
    fn check(&self, _: &Value) -> Result<(), CheckError> {
        Ok(())
    }

    fn surely_fits(&self, _: &RawJson) -> bool {
        true
    }
}

/// Error of a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The value does not satisfy the schema.
    #[error("{0}")]
    Mismatch(Mismatch),
    /// The schema is not usable, so no value can be checked.
    #[error("the schema is not usable: {0}")]
    Schema(String),
}

/// Ways in which a value does not satisfy a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// First problems, at least one.
    pub problems: Vec<Problem>,
    /// `true` if there may be more problems.
    pub truncated: bool,
}

/// One way in which a value does not satisfy a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Place in the value, as a JSON Pointer (RFC 6901); empty for the value itself.
    pub path: String,
    /// Keyword of the schema that is violated, such as `minimum`.
    pub keyword: String,
    /// Violated rule, as a sentence that names the field and contains no value of the arguments, such as `` `/n` must
    /// be a number of at least 1 `` or `` missing required property `city` ``.
    pub rule: String,
    /// Value at this place, cut to a readable length; `None` if the rule says enough.
    pub found: Option<String>,
    /// Kind of the value found, such as `a string`: logs show it instead of the value.
    pub found_kind: &'static str,
}

impl Mismatch {
    /// Returns the problems without the values, for logs.
    #[must_use]
    pub fn masked(&self) -> String {
        self.write(|problem| problem.found.as_ref().map(|_| problem.found_kind))
    }

    fn write<'a>(&'a self, found: impl Fn(&'a Problem) -> Option<&'a str>) -> String {
        let mut text = String::new();
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            let _ = write!(text, "{separator}{}", problem.rule);
            if let Some(found) = found(problem) {
                let _ = write!(text, ", not {found}");
            }
        }
        if self.truncated {
            text.push_str("; and possibly more");
        }
        text
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(|problem| problem.found.as_deref()))
    }
}
