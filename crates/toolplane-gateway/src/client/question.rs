use raw_json::RawJson;
use toolplane::core::{ErrorKind, ToolError};

/// Returns the method and the parameters of a question that a server sent, such as `elicitation/create`.
pub(crate) fn parse_question(request: &RawJson) -> Result<(String, Option<RawJson>), ToolError> {
    let method = request.get("method").and_then(|method| method.string());
    let method = method.ok_or_else(|| {
        let message = "the tool asks for input without a `method`";
        ToolError::new(ErrorKind::Protocol, message)
    })?;
    Ok((method, request.get("params")))
}
