use std::sync::Arc;

use mcp_client::RequestOptions;
use raw_json::{Kind, RawJson};
use tool_core::{CallContext, ErrorKind, InputRequest, Invoke, Outcome, Reply, ToolError};

use crate::{McpServer, fault::tool_error};

/// One tool of a server, ready to be called.
pub(crate) struct McpTool {
    server: Arc<McpServer>,
    /// The tool's own name as a JSON string.
    name: RawJson,
}

impl McpTool {
    pub(crate) fn new(server: Arc<McpServer>, name: &str) -> Self {
        Self {
            server,
            name: RawJson::from(name),
        }
    }

    /// `{"name": …, "arguments": …}` with the caller's own text in it.
    fn params(&self, arguments: &RawJson) -> RawJson {
        RawJson::object()
            .with_members(&[("name", self.name.clone()), ("arguments", arguments.clone())])
            .expect("an empty object is an object")
    }

    /// The attempt's own limit is kept by the layers above; the client's is a net below it.
    fn options(cx: &CallContext) -> RequestOptions {
        let limit = cx.remaining().unwrap_or(cx.tool().settings().call_timeout);
        let mut options = RequestOptions::within(limit);
        let sent = cx.dispatch().clone();
        options.on_sent = Some(Arc::new(move || sent.sent()));
        let answered = cx.dispatch().clone();
        options.on_answered = Some(Arc::new(move || answered.answered()));
        if let Some(progress) = cx.progress.clone() {
            options.on_progress = Some(Arc::new(move |report| progress.report(report)));
        }
        options
    }
}

impl Invoke for McpTool {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let server = &self.server.settings().name;
        let connection = self.server.connection_for(cx).await?;
        let params = self.params(cx.arguments.raw());
        let result = connection
            .request("tools/call", Some(params), Self::options(cx))
            .await
            .map_err(|error| tool_error(cx, server, error))?;
        if result.kind() != Kind::Object {
            let message = format!("the server `{server}` answered with a result that is no object");
            return Err(ToolError::new(ErrorKind::Protocol, message));
        }
        let (mut is_error, mut asks) = (false, false);
        for (key, value) in result.members() {
            match &*key {
                "isError" => is_error = value.as_str() == "true",
                "resultType" => asks = value.as_str() == "\"input_required\"",
                _ => {}
            }
        }
        if asks {
            let requests = result.get("inputRequests").unwrap_or(RawJson::object());
            let request = InputRequest {
                requests,
                state: result.get("requestState"),
            };
            return Ok(Outcome::NeedsInput(Box::new(request)));
        }
        Ok(Reply::result(result, is_error).into())
    }
}
