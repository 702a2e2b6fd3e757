//! Previews: requests for people to look at, as they would be sent and without secrets.

use mcp_wire::Era;
use raw_json::RawJson;
use tool_core::{CallContext, Preview, ToolError, hide_fields};

use super::McpCall;

impl McpCall {
    /// Returns the request of a call as it would be sent. Additions that depend on a connection are missing, since none
    /// is opened for a preview.
    pub(crate) fn previewed(&self, cx: &CallContext) -> Result<Preview, ToolError> {
        let (method, params) = self.request(cx, Era::Modern)?;
        let secrets = self.server.secrets();
        let params = hide_fields(&params.to_raw(), cx.tool().settings().redacted_fields());
        let params = secrets.hide_in_json(&params).unwrap_or(params);
        let server = &self.server.settings().name;
        let members = [
            ("server", RawJson::from(server.as_str())),
            ("method", RawJson::from(method)),
            ("params", params.clone()),
        ];
        let request = RawJson::object().with_members(&members);
        Ok(Preview::new(
            request.expect("an empty object is an object"),
            format!("{method} to the server `{server}`\n\n{params}"),
        ))
    }
}
