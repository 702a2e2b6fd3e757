use tool_core::{ErrorKind, ToolError};

use super::DisabledByOperator;

/// Reason for which a caller may not call a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denial {
    /// No tool may be called.
    #[error("the policy forbids calling tools: its `tool_choice` is `none`")]
    NoTools,
    /// The tool is on the blocklist.
    #[error("`{tool}` is blocked by the policy rule `{rule}`")]
    Blocked {
        /// The tool.
        tool: String,
        /// The rule that matches it.
        rule: String,
    },
    /// There is an allow-list, and the tool is not on it.
    #[error("`{tool}` is not on the policy's allow-list")]
    NotAllowed {
        /// The tool.
        tool: String,
    },
    /// The URI of the resource is encoded so many times that the matching rules are unknown.
    #[error("`{resource}` is percent-encoded too many times, so the policy cannot tell which rules match it")]
    Unclear {
        /// The resource.
        resource: String,
    },
    /// An operator disabled the tool.
    #[error("`{tool}` is switched off: {disabled}")]
    Disabled {
        /// The tool.
        tool: String,
        /// Reason and time.
        disabled: DisabledByOperator,
    },
    /// The tool requires a permission that the caller does not have.
    #[error("`{principal}` lacks the permission `{permission}` that `{tool}` requires")]
    Lacks {
        /// The tool.
        tool: String,
        /// The caller.
        principal: String,
        /// The first permission that is missing.
        permission: String,
    },
}

impl Denial {
    /// Returns a fixed word for traces and metrics. It holds no data of the caller or the tool.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoTools => "tool_choice",
            Self::Blocked { .. } => "blocklist",
            Self::NotAllowed { .. } => "allowlist",
            Self::Unclear { .. } => "unclear_uri",
            Self::Disabled { .. } => "switched_off",
            Self::Lacks { .. } => "permission",
        }
    }
}

impl From<Denial> for ToolError {
    /// Converts a disabled tool to [`ErrorKind::Unavailable`], and every other denial to [`ErrorKind::Denied`].
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::Disabled { .. } => Self::new(ErrorKind::Unavailable, denial.to_string()).with_no_retry(),
            _ => Self::new(ErrorKind::Denied, denial.to_string()),
        }
    }
}
