use std::fmt;

use mcp_client::{ClientError, ClientErrorKind};
use tool_core::{CallContext, ErrorKind, ToolError};

use crate::{
    errors::{request_error, tool_error},
    target::ResolveError,
};

/// Error of opening a connection.
pub(crate) enum ConnectError {
    /// A reference in the server's settings has no value, or the endpoint is invalid.
    Settings(ResolveError),
    Client(ClientError),
}

impl ConnectError {
    /// Converts it into the error of a call that needs the connection.
    pub(crate) fn into_tool_error(self, cx: &CallContext, server: &str) -> ToolError {
        match self {
            Self::Client(error) => tool_error(cx, server, error),
            Self::Settings(error) => settings_error(server, error),
        }
    }

    /// Converts it into the error of a request that does not belong to a call.
    pub(crate) fn into_request_error(self, server: &str) -> ToolError {
        match self {
            Self::Client(error) => request_error(server, error),
            Self::Settings(error) => settings_error(server, error),
        }
    }

    /// Returns `true` if the server refused our credentials with HTTP status 401.
    pub(crate) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Client(error) if matches!(error.kind(), ClientErrorKind::Auth { status: 401, .. }))
    }
}

fn settings_error(server: &str, error: ResolveError) -> ToolError {
    let message = format!("the server `{server}` cannot be started: {error}");
    ToolError::new(ErrorKind::Unavailable, message).with_source(error)
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
        }
    }
}
