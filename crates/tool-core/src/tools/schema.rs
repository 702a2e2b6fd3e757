use std::fmt::{self, Write};

use raw_json::RawJson;
use serde_json::Value;

use crate::{AdaptedArguments, ArgumentHandling};

/// A compiled schema.
pub trait CheckJson: Send + Sync {
    /// Checks a value.
    ///
    /// # Errors
    /// [`CheckError::Mismatch`] when the value does not fit, [`CheckError::Schema`] when the schema itself is not
    /// usable.
    fn check(&self, value: &Value) -> Result<(), CheckError>;

    /// Whether a value fits for sure, as far as its text tells without making a tree of it. The text has no key twice.
    /// Of a value of which this says no, nothing is known yet.
    fn surely_fits(&self, text: &RawJson) -> bool {
        let _ = text;
        false
    }

    /// Changes arguments towards what the schema asks for, as far as this handling allows; nothing if there is nothing to
    /// change, or if that is not known here. What comes out need not fit: it is to be checked.
    fn adapt(&self, arguments: &RawJson, handling: ArgumentHandling) -> Option<AdaptedArguments> {
        let _ = (arguments, handling);
        None
    }

    /// Fills in the schema's `default` of each member that is absent; `None` if there is nothing to fill in. Members that
    /// are present keep their values, except that absent members are filled in within them. Filling twice changes nothing.
    fn fill_defaults(&self, arguments: &RawJson) -> Option<AdaptedArguments> {
        let _ = arguments;
        None
    }
}

/// Why a value did not pass a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The value does not fit.
    #[error("{0}")]
    Mismatch(Mismatch),
    /// The schema is not usable, so nothing can be said of the value.
    #[error("the schema is not usable: {0}")]
    Schema(String),
}

/// In what ways a value does not fit a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What was found: the first problems, at least one.
    pub problems: Vec<Problem>,
    /// Whether there may be more than those.
    pub truncated: bool,
}

/// One way in which a value does not fit a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where in the value, as a JSON Pointer (RFC 6901); empty for the value itself.
    pub path: String,
    /// The schema's keyword that is not met, such as `minimum`.
    pub keyword: String,
    /// The rule that is broken, as a sentence that names the field and holds no value of the arguments, such as
    /// `` `/n` must be a number of at least 1 `` or `` missing required property `city` ``.
    pub rule: String,
    /// The value found there, cut to a readable length; `None` where the rule says it all.
    pub found: Option<String>,
    /// Kind of the value found, such as `a string`: logs show it instead of the value.
    pub found_kind: &'static str,
}

impl Mismatch {
    /// The problems without the values: for logs.
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
