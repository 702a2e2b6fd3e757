use std::fmt::{self, Write};

/// Ways in which a value does not satisfy a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// First problems, at least one.
    pub problems: Vec<Problem>,
    /// `true` if there may be more problems.
    pub truncated: bool,
}

/// One way in which a value does not satisfy a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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

impl Problem {
    /// Creates a problem at a JSON Pointer (RFC 6901), of this keyword and rule. It shows no value.
    #[must_use]
    pub fn new(path: impl Into<String>, keyword: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            keyword: keyword.into(),
            rule: rule.into(),
            found: None,
            found_kind: "a value",
        }
    }

    /// Shows the value that was found, and its kind, such as `a string`.
    #[must_use]
    pub fn with_found(self, found: impl Into<String>, kind: &'static str) -> Self {
        Self {
            found: Some(found.into()),
            found_kind: kind,
            ..self
        }
    }
}

impl Mismatch {
    /// Creates a mismatch of these problems, at least one.
    #[must_use]
    pub fn new(problems: Vec<Problem>) -> Self {
        Self {
            problems,
            truncated: false,
        }
    }

    /// Marks that there may be more problems.
    #[must_use]
    pub fn with_truncated(self, truncated: bool) -> Self {
        Self { truncated, ..self }
    }

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
