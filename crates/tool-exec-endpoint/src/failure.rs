use std::process::ExitStatus;

use mcp_client::ClientError;
use raw_json::RawJson;
use serde_json::{Map, Value};
use tool_core::{ErrorKind, SecretError, Secrets, ToolError};

use crate::protocol::{EndpointFailure, ErrorCategory};

/// Maximum size of the end of standard error that an error shows, in bytes.
const MAX_SHOWN: usize = 2_000;

/// Reason why a program gave no reply.
#[derive(Debug)]
pub(crate) enum AskError {
    /// Endpoints start one another.
    TooDeep,
    /// A reference has no value.
    Secret(SecretError),
    /// The program does not start.
    Start(ClientError),
    /// It wrote more than the limit.
    TooLarge(usize),
    /// It ended well, and what it wrote is no reply.
    Protocol { reason: String, stderr: String },
    /// It failed without reporting an error on standard output.
    Failed {
        status: Option<ExitStatus>,
        stderr: String,
    },
}

impl From<SecretError> for AskError {
    fn from(error: SecretError) -> Self {
        Self::Secret(error)
    }
}

impl AskError {
    /// Returns the reason for operators: a fragment that follows the name of the endpoint. It may contain secrets.
    pub(crate) fn reason(&self) -> String {
        let what = self.what();
        let cause = match self {
            Self::Start(error) => error.to_string(),
            Self::Secret(error) => error.to_string(),
            Self::Protocol { stderr, .. } | Self::Failed { stderr, .. } => tail(stderr).to_owned(),
            _ => String::new(),
        };
        match cause.is_empty() {
            true => what,
            false => format!("{what}: {cause}"),
        }
    }

    /// Returns what happened, without the cause.
    fn what(&self) -> String {
        match self {
            Self::TooDeep => {
                "is not started: endpoints start one another; is it the toolplane that uses it?".to_owned()
            }
            Self::Secret(_) => "cannot be started: a configured value is missing".to_owned(),
            Self::Start(_) => "does not start".to_owned(),
            Self::TooLarge(limit) => {
                format!("answered with more than the {limit} bytes of `defaults.max_result_bytes`")
            }
            Self::Protocol { reason, .. } => format!("does not keep to the protocol: {reason}"),
            Self::Failed { status, .. } => match status {
                Some(status) => format!("ended with {status} and without a reply"),
                None => "ended without a reply".to_owned(),
            },
        }
    }

    /// Returns the error of a call.
    pub(crate) fn into_tool_error(self, endpoint: &str, secrets: &dyn Secrets) -> ToolError {
        let message = format!("the endpoint `{endpoint}` {}", self.what());
        match self {
            Self::TooDeep => ToolError::new(ErrorKind::Unavailable, message).with_no_retry(),
            Self::Secret(error) => {
                ToolError::new(ErrorKind::Auth, format!("{message}: {error}")).with_no_retry()
            }
            // The reason may contain a program's path: it becomes the source, which no model sees.
            Self::Start(error) => ToolError::new(ErrorKind::Unavailable, message).with_source(error),
            Self::TooLarge(_) => ToolError::new(ErrorKind::ResultTooLarge, message),
            Self::Protocol { stderr, .. } => with_stderr(ErrorKind::Protocol, message, &stderr, secrets),
            Self::Failed { stderr, .. } => with_stderr(ErrorKind::UpstreamError, message, &stderr, secrets),
        }
    }
}

fn with_stderr(kind: ErrorKind, message: String, stderr: &str, secrets: &dyn Secrets) -> ToolError {
    let stderr = secrets.hide_in_text(tail(stderr));
    if stderr.is_empty() {
        return ToolError::new(kind, message);
    }
    let mut members = Map::new();
    members.insert("stderr".to_owned(), Value::from(&*stderr));
    let detail = RawJson::from(Value::Object(members));
    ToolError::new(kind, format!("{message}; it wrote:\n{stderr}")).with_detail(detail)
}

/// Returns the end of a text.
fn tail(text: &str) -> &str {
    let text = text.trim();
    let start = text.len().saturating_sub(MAX_SHOWN);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(text.len())..]
}

/// Returns the error of a call that the endpoint answered with an error. A kind that fits its category counts, and else the kind
/// of the category; an unknown category is named.
pub(crate) fn reported(endpoint: &str, failure: &EndpointFailure) -> ToolError {
    let category = ErrorCategory::named(&failure.category);
    let kind = match (failure.kind, category) {
        (Some(kind), Some(_)) => kind,
        (None, Some(category)) => category.kind(),
        (_, None) => ErrorKind::UpstreamError,
    };
    let shown = match category {
        Some(ErrorCategory::Usage) => format!("the endpoint `{endpoint}` refuses the call"),
        Some(_) => format!("the endpoint `{endpoint}` failed"),
        None => format!(
            "the endpoint `{endpoint}` failed (category `{}`)",
            failure.category
        ),
    };
    let detail = RawJson::from_members(&[
        ("name", RawJson::from(failure.name.as_str())),
        ("category", RawJson::from(failure.category.as_str())),
    ]);
    let error = ToolError::new(kind, format!("{shown}: {}", failure.message)).with_detail(detail);
    match category {
        Some(ErrorCategory::Fatal) => error.with_no_retry(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::tail;

    #[test]
    fn the_end_of_a_text_begins_at_a_character() {
        assert_eq!(tail(" a\n"), "a");
        let long = "ü".repeat(2_000);
        assert_eq!(tail(&long).len(), 2_000);
        let odd = format!("x{}", "€".repeat(1_000));
        assert!(tail(&odd).len() <= 2_000 && tail(&odd).chars().all(|c| c == '€'));
    }
}
