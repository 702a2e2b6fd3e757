use std::{fmt, sync::Arc};

use raw_json::RawJson;
use serde_json::json;
use tool_core::{ErrorKind, ToolError};
use tool_registry::semver::Version;
use tool_registry::{PublishError, StoreError};

use super::TestReport;

/// Error of an agent that makes a tool.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AuthoringError {
    /// The caller may not do this: it lacks a permission.
    #[error("`{0}` lacks the permission `{1}`")]
    NotPermitted(Arc<str>, &'static str),
    /// The tool is against the rules: every problem that was found.
    #[error("the tool cannot be stored: {}", lines(.0))]
    Invalid(Vec<DraftProblem>),
    /// The name belongs to somebody else.
    #[error("the name `{0}` is taken; choose another one")]
    NotOwner(String),
    /// The tool exists: it is to be updated.
    #[error("you have made `{0}` already; change it by `tool_update`")]
    Exists(String),
    /// The caller has no such tool.
    #[error("you have made no tool `{0}`; create it by `tool_create`")]
    Unknown(String),
    /// The caller has no such draft.
    #[error("`{tool}` has no draft{version}; `tool_update` makes one", tool = .0, version = of_version(.1.as_ref()))]
    NoDraft(String, Option<Version>),
    /// The draft is not the one that was approved.
    #[error("the draft of `{0}` has changed since it was approved; publish it again")]
    Changed(String),
    /// A quota is used up.
    #[error("{0}")]
    Quota(String),
    /// The tool cannot run here.
    #[error("`{0}` cannot run here: {1}")]
    CannotRun(String, String),
    /// Examples failed.
    #[error("{}", .0.summary())]
    Failed(Box<TestReport>),
    /// The packages that the code requires could not be locked.
    #[error("the packages that `{0}` requires cannot be locked: {1}")]
    Requirements(String, String),
    /// The version is against the rules of versions, or the store does not work.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

/// Problem of a draft, with the change that mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DraftProblem {
    /// Field, such as `spec.executor.url`; empty for the draft as a whole.
    pub path: String,
    /// Rule that is broken: one of a few fixed words.
    pub rule: &'static str,
    /// Problem: a sentence fragment.
    pub message: String,
    /// Advice on what to write.
    pub fix: String,
}

impl DraftProblem {
    /// Creates a problem.
    #[must_use]
    pub fn new(
        path: impl Into<String>,
        rule: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            rule,
            message: message.into(),
            fix: fix.into(),
        }
    }
}

impl fmt::Display for DraftProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match self.fix.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", self.fix),
        }
    }
}

fn lines(problems: &[DraftProblem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

fn of_version(version: Option<&Version>) -> String {
    version.map(|version| format!(" `{version}`")).unwrap_or_default()
}

impl AuthoringError {
    /// Returns the error as a result that a model reads whole, if it has more to say than one line: all problems of a draft, or
    /// all failed examples.
    pub(crate) fn report(&self) -> Option<RawJson> {
        match self {
            Self::Invalid(problems) => {
                let problems: Vec<_> = problems
                    .iter()
                    .map(|problem| {
                        json!({
                            "path": problem.path,
                            "rule": problem.rule,
                            "message": problem.message,
                            "fix": problem.fix,
                        })
                    })
                    .collect();
                let message = "nothing was stored; mend every problem and try again";
                Some(RawJson::from(json!({"message": message, "problems": problems})))
            }
            Self::Failed(report) => Some(report.to_json()),
            _ => None,
        }
    }
}

impl From<AuthoringError> for ToolError {
    fn from(error: AuthoringError) -> Self {
        let kind = match &error {
            AuthoringError::NotPermitted(..) | AuthoringError::NotOwner(_) => ErrorKind::Denied,
            AuthoringError::Unknown(_) | AuthoringError::NoDraft(..) => ErrorKind::NotFound,
            AuthoringError::Changed(_) => ErrorKind::ToolChanged,
            AuthoringError::Quota(_) => ErrorKind::RateLimited,
            AuthoringError::CannotRun(..) | AuthoringError::Requirements(..) => ErrorKind::Unavailable,
            AuthoringError::Publish(PublishError::Store(StoreError::Conflict { .. })) => {
                ErrorKind::Unavailable
            }
            AuthoringError::Publish(PublishError::Store(_)) => ErrorKind::Unavailable,
            AuthoringError::Publish(
                PublishError::UnknownTool { .. }
                | PublishError::UnknownVersion { .. }
                | PublishError::NoFormer { .. },
            ) => ErrorKind::NotFound,
            _ => ErrorKind::InvalidArguments,
        };
        let detail = error.report();
        let refused = Self::new(kind, error.to_string()).with_no_retry();
        match detail {
            Some(detail) => refused.with_detail(detail),
            None => refused,
        }
    }
}
