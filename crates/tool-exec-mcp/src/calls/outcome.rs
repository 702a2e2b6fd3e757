use std::mem;

use mcp_wire::Era;
use raw_json::{JsonKind, RawJson};
use tool_core::{CallContext, ErrorKind, Outcome, Reply, Target, ToolError, UriCompletion};

use super::{McpCall, input_request::input_request};
use crate::sandbox::add_sandbox;

/// Members of a result that are read here, by layers or by clients. A duplicate is refused, since readers could differ
/// on which one counts.
const RESULT_MEMBERS: [&str; 7] = [
    "content",
    "structuredContent",
    "isError",
    "_meta",
    "resultType",
    "inputRequests",
    "requestState",
];

impl McpCall {
    /// Returns the outcome of the call.
    pub(super) fn outcome(&self, cx: &CallContext, era: Era, result: &RawJson) -> Result<Outcome, ToolError> {
        let protocol = |what: &str| {
            let message = format!(
                "the server `{}` answered with {what}",
                self.server.settings().name
            );
            Err(ToolError::new(ErrorKind::Protocol, message))
        };
        if result.kind() != JsonKind::Object {
            return protocol("a result that is not an object");
        }
        let (mut is_error, mut kind, mut claims_sandbox) = (false, None, false);
        let mut seen = [false; RESULT_MEMBERS.len()];
        for (key, value) in result.parts() {
            if let Some(index) = RESULT_MEMBERS.iter().position(|read| *read == key)
                && mem::replace(&mut seen[index], true)
            {
                return protocol(&format!("a result with a duplicate member `{key}`"));
            }
            match &*key {
                "_meta" => claims_sandbox = value.parts().any(|(key, _)| key == Reply::SANDBOX_KEY),
                "isError" => is_error = value.as_str() == "true",
                "resultType" if era == Era::Modern => kind = Some(value.text().unwrap_or_default()),
                _ => {}
            }
        }
        match kind.as_deref() {
            None | Some("complete") => {
                let is_error = is_error && matches!(cx.target, Target::Tool(_));
                let result = self.without_excluded(cx, result);
                let result = if claims_sandbox {
                    without_claim(&result)
                } else {
                    result
                };
                let mut reply = Reply::result(result, is_error);
                if matches!(cx.target, Target::Tool(_)) {
                    add_sandbox(self.server.sandbox(), &mut reply);
                }
                Ok(reply.into())
            }
            Some("input_required") => match input_request(result) {
                Ok(request) => Ok(Outcome::NeedsInput(Box::new(request))),
                Err(what) => protocol(what),
            },
            Some("task") => protocol("a task that cannot be followed"),
            Some(_) => protocol("a result of an unknown type"),
        }
    }

    /// Returns the result without completion values that lead to excluded resources.
    fn without_excluded(&self, cx: &CallContext, result: &RawJson) -> RawJson {
        let Target::Completion(template) = &cx.target else {
            return result.clone();
        };
        let settings = self.server.settings();
        match &template.descriptor().uri {
            Some(uri) => UriCompletion::new(uri, cx.arguments.raw())
                .retain(result, |uri| settings.offers_unlisted_uri(uri, true)),
            None => result.clone(),
        }
    }
}

/// Returns the result without a sandbox in its `_meta`: the gateway alone states which sandbox it has enforced.
fn without_claim(result: &RawJson) -> RawJson {
    let meta = result.get("_meta");
    let rest = meta.and_then(|meta| meta.without_members(&[Reply::SANDBOX_KEY]).ok());
    let changed = rest.and_then(|rest| result.with_members(&[("_meta", rest)]).ok());
    changed.unwrap_or_else(|| result.clone())
}
