use std::sync::Arc;

use crate::ErrorKind;

/// What follows from each kind of error for those who are told: the table of [`ErrorKind`], with what the operator set
/// in its place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorPolicySettings([Option<ErrorRule>; ErrorKind::ALL.len()]);

/// What the operator set for one kind of error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorRule {
    /// What a model is told in the place of the error's own message.
    pub message: Option<Arc<str>>,
    /// What a model is told to do, in the place of the usual advice.
    pub advice: Option<Arc<str>>,
    /// Whether an operator is told of it.
    pub alert: Option<bool>,
}

impl ErrorPolicySettings {
    /// The same policy with a rule for this kind.
    #[must_use]
    pub fn with(mut self, kind: ErrorKind, rule: ErrorRule) -> Self {
        self.0[kind as usize] = Some(rule);
        self
    }

    /// The same policy, with the rules of another for the kinds for which it has none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut others = other.0.into_iter();
        Self(self.0.map(|rule| rule.or(others.next().flatten())))
    }

    /// What the operator set for this kind, if anything.
    #[must_use]
    pub fn rule(&self, kind: ErrorKind) -> Option<&ErrorRule> {
        self.0[kind as usize].as_ref()
    }

    /// Whether an operator is told of errors of this kind.
    #[must_use]
    pub fn alerts(&self, kind: ErrorKind) -> bool {
        self.rule(kind)
            .and_then(|rule| rule.alert)
            .unwrap_or(kind.alerts())
    }
}
