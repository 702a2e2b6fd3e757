use mcp_wire::method;
use raw_json::RawJson;

use crate::{ClientError, ClientErrorKind, Connection, RequestOptions};

/// Check that a server must pass to count as healthy.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum HealthCheck {
    /// `ping`, or `server/discover` for a modern server: checks that it responds.
    #[default]
    Ping,
    /// A call of one of its tools that must not report a failure: checks that it can do its work.
    #[non_exhaustive]
    Tool {
        /// Name of the tool at the server.
        name: String,
        /// Arguments of the call, an object.
        arguments: RawJson,
    },
}

/// Maximum length of the tool's text in an error, in characters.
const MAX_EXCERPT: usize = 200;

impl HealthCheck {
    /// Creates a check that calls a tool with these arguments, an object.
    #[must_use]
    pub fn tool(name: impl Into<String>, arguments: RawJson) -> Self {
        Self::Tool {
            name: name.into(),
            arguments,
        }
    }

    /// Runs the check.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::Unhealthy`] if the tool reports a failure, and the errors of [`Connection::request`].
    ///
    /// # Cancellation
    /// Dropping the future cancels the request of the check, as with [`Connection::request`].
    pub async fn run(&self, connection: &Connection, options: RequestOptions) -> Result<(), ClientError> {
        let Self::Tool { name, arguments } = self else {
            return connection.ping(options).await;
        };
        let params = RawJson::from_members(&[
            ("name", RawJson::from(name.as_str())),
            ("arguments", arguments.clone()),
        ]);
        let result = connection.request(method::TOOLS_CALL, Some(params), options);
        match result.await {
            Ok(result) => check_result(name, &result),
            Err(error) => match error.as_rpc() {
                Some(text) => Err(unhealthy(name, &text.message)),
                None => Err(error),
            },
        }
    }
}

fn check_result(name: &str, result: &RawJson) -> Result<(), ClientError> {
    let is = |key: &str, text: &str| result.get(key).is_some_and(|value| value.as_str() == text);
    if is("isError", "true") {
        let content = result.get("content").unwrap_or_default();
        let text = content
            .items()
            .find_map(|item| item.get("text")?.string())
            .unwrap_or_default();
        return Err(unhealthy(name, &text));
    }
    if is("resultType", r#""input_required""#) {
        return Err(unhealthy(name, "it requires more input than its arguments"));
    }
    Ok(())
}

fn unhealthy(name: &str, text: &str) -> ClientError {
    let shown: String = text.trim().chars().take(MAX_EXCERPT).collect();
    ClientError::new(ClientErrorKind::Unhealthy(match shown.as_str() {
        "" => format!("`{name}` reports a failure"),
        text => format!("`{name}` says: {text}"),
    }))
}
