use std::fmt;

use serde::de;

use crate::{ConfigDocument, ConfigProblem, NodeId};

/// Reason why a value cannot be read. The place is that of the innermost value unless it is given.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: String,
    at: Option<NodeId>,
}

impl Failure {
    pub(crate) fn new(message: String) -> Self {
        Self {
            message,
            hint: String::new(),
            at: None,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Sets the place.
    pub(crate) fn at(mut self, at: NodeId) -> Self {
        self.at = Some(at);
        self
    }

    pub(crate) fn report(self, document: &dyn ConfigDocument, at: NodeId) {
        let at = self.at.unwrap_or(at);
        document.report(ConfigProblem::new(at, self.message, self.hint));
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    /// Takes a second line of the message as the hint.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        match message.split_once('\n') {
            Some((message, hint)) => Self::new(message.to_owned()).with_hint(hint),
            None => Self::new(message),
        }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is given twice, in two spellings"))
    }
}
