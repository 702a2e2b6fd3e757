//! Methods of the protocol other than calls and lists.

use mcp_wire::{Era, method, param_key};
use raw_json::{JsonKind, RawJson};
use serde::Serialize;

use crate::{ClientError, ClientErrorKind, Connection, RequestOptions, ToolResult};

impl Connection {
    /// Calls a tool and waits for its result. `arguments` are serialized as a JSON object; `&()` stands for none.
    ///
    /// The handlers of the connection provide the input that the server requires, in both eras: a legacy server sends
    /// requests during the call, a modern one answers with `input_required`
    /// (see [`request_with_input`](Self::request_with_input)).
    ///
    /// # Tasks
    /// The call does not ask for a task, so a server answers with the result. If it makes the call a task nevertheless,
    /// this fails with [`ClientErrorKind::Unsupported`], and the task goes on at the server. To follow tasks, send
    /// `tools/call` by [`request`](Self::request), which returns whatever the server answers.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call: nothing waits for it any longer, and the server is notified if it may have
    /// received the request. A handler that was asked for input by a modern server is dropped as well.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::Invalid`] if the arguments are not an object, and the errors of
    /// [`request_with_input`](Self::request_with_input). A failure that the tool itself reports is no error, but a
    /// result with [`is_error`](ToolResult::is_error).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use mcp_client::{ClientError, Connection, RequestOptions, serde_json::json};
    /// # async fn example(connection: &Connection) -> Result<(), ClientError> {
    /// let options = RequestOptions::default().on_progress(|progress| println!("{progress}"));
    /// let sum = connection.call_tool("add", &json!({"a": 2, "b": 40}), options).await?;
    /// println!("{}", sum.text());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &(impl Serialize + ?Sized),
        options: RequestOptions,
    ) -> Result<ToolResult, ClientError> {
        let params = call_params(name, arguments)?;
        let result = self.request_with_input(method::TOOLS_CALL, Some(params), options);
        let result = ToolResult::from(result.await?);
        if result.is_task() {
            let detail = format!("the server made the call of `{name}` a task, which is not followed here");
            return Err(ClientError::new(ClientErrorKind::Unsupported(detail)).with_sent(true));
        }
        Ok(result)
    }

    /// Completes an argument of a prompt or resource template. `params` and result have the form of the protocol.
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request).
    ///
    /// # Cancellation
    /// Dropping the future cancels the request, as with [`request`](Self::request).
    pub async fn complete(&self, params: RawJson, options: RequestOptions) -> Result<RawJson, ClientError> {
        self.request(method::COMPLETION_COMPLETE, Some(params), options)
            .await
    }

    /// Checks that the server responds: `ping` for a legacy server, `server/discover` for a modern one. A JSON-RPC
    /// error counts as a response.
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request), except [`ClientErrorKind::Rpc`].
    ///
    /// # Cancellation
    /// Dropping the future cancels the request, as with [`request`](Self::request).
    pub async fn ping(&self, options: RequestOptions) -> Result<(), ClientError> {
        let question = match self.server().era() {
            Era::Legacy => method::PING,
            Era::Modern => method::DISCOVER,
        };
        match self.request(question, None, options).await {
            Err(error) if !matches!(error.kind(), ClientErrorKind::Rpc(_)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Sets the minimum level of log messages that a legacy server sends, such as `warning`.
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request), and [`ClientErrorKind::Unsupported`] for a modern server,
    /// which reads the level from `_meta` of each request ([`mcp_wire::meta_key::LOG_LEVEL`]).
    ///
    /// # Cancellation
    /// Dropping the future cancels the request, as with [`request`](Self::request). The server may have set the level.
    pub async fn set_log_level(&self, level: &str, options: RequestOptions) -> Result<(), ClientError> {
        if self.server().era() == Era::Modern {
            let detail = "a modern server reads the log level in `_meta` of each request";
            return Err(ClientError::new(ClientErrorKind::Unsupported(detail.to_owned())));
        }
        let params = RawJson::from_members(&[("level", RawJson::from(level))]);
        self.request(method::LOGGING_SET_LEVEL, Some(params), options)
            .await?;
        Ok(())
    }
}

/// Builds the params of `tools/call`.
fn call_params(name: &str, arguments: &(impl Serialize + ?Sized)) -> Result<RawJson, ClientError> {
    let invalid = |detail: &str| ClientError::new(ClientErrorKind::Invalid(detail.to_owned()));
    let arguments = RawJson::from_serialize(arguments)
        .map_err(|error| invalid("the arguments cannot be written as JSON").with_source(error))?;
    let mut members = vec![(param_key::NAME, RawJson::from(name))];
    match arguments.kind() {
        JsonKind::Object => members.push((param_key::ARGUMENTS, arguments)),
        JsonKind::Null => {}
        _ => return Err(invalid("the arguments of a tool must be a JSON object")),
    }
    Ok(RawJson::from_members(&members))
}
