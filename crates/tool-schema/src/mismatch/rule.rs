use serde_json::Value;
use tool_check::Problem;

use super::words::{cut, found, kind_of, place};

/// Maximum length of a rule's text, in characters.
const MAX_RULE: usize = 240;

/// Message about a broken rule.
pub(crate) struct Rule {
    /// Text before the place, such as ``missing required property `b` in``; empty for a rule that begins with the place.
    before: String,
    /// Text after the place, such as `must be a string`.
    after: String,
    /// `true` if the message shows the value that was found.
    shows_value: bool,
}

impl Rule {
    pub(crate) fn must_be(expected: &str) -> Self {
        Self {
            before: String::new(),
            after: format!("must be {expected}"),
            shows_value: true,
        }
    }

    pub(crate) fn must(predicate: &str, shows_value: bool) -> Self {
        Self {
            before: String::new(),
            after: format!("must {predicate}"),
            shows_value,
        }
    }

    /// Creates a rule about a property's presence. Its subject is the property, and its place that of the object.
    pub(crate) fn about(subject: String, remark: String) -> Self {
        Self {
            before: subject,
            after: remark,
            shows_value: false,
        }
    }

    pub(crate) fn problem(&self, path: &str, keyword: &str, part: &Value) -> Problem {
        let rule = match (self.before.as_str(), path) {
            ("", path) => format!("{} {}", place(path), cut(&self.after, MAX_RULE)),
            (before, "") => format!("{}{}", cut(before, MAX_RULE), cut(&self.after, MAX_RULE)),
            (before, path) => format!(
                "{} in {}{}",
                cut(before, MAX_RULE),
                place(path),
                cut(&self.after, MAX_RULE)
            ),
        };
        let mut problem = Problem::new(path, keyword, rule);
        problem.found = self.shows_value.then(|| found(part));
        problem.found_kind = kind_of(part);
        problem
    }
}
