use std::borrow::Cow;

use mcp_server::RequestContext;
use mcp_wire::{Request, RpcError, code, method, param_key};
use raw_json::{JsonKind, RawJson};
use toolplane::CallRequest;

use crate::render::Failure;

/// Target of a request that makes a call, as far as its answer depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    Tool,
    Prompt,
    /// A resource, by its URI.
    Resource(String),
    Completion,
}

impl Subject {
    /// Reads the target of a request. Its method must be one of those that make a call.
    pub(super) fn new(request: &Request, cx: &RequestContext) -> Result<Self, RpcError> {
        Ok(match &*request.method {
            method::TOOLS_CALL => Self::Tool,
            method::PROMPTS_GET => Self::Prompt,
            method::RESOURCES_READ => Self::Resource(resource_uri(cx)?),
            _ => Self::Completion,
        })
    }

    /// Returns the call that the request makes.
    pub(super) fn call(&self, request: &Request, cx: &RequestContext) -> Result<CallRequest, Failure> {
        // Some clients write `null` instead of leaving the member out.
        let arguments = cx
            .arguments()
            .filter(|arguments| arguments.kind() != JsonKind::Null);
        let call = match self {
            Self::Tool => CallRequest::new(name(cx)?),
            Self::Prompt => CallRequest::prompt(name(cx)?),
            Self::Resource(uri) => return Ok(CallRequest::resource(uri.as_str())),
            Self::Completion => return completion(request),
        };
        match arguments {
            // Already validated with the whole message: `mcp_wire::Message::from_client`.
            Some(arguments) => Ok(call.checked(arguments.clone())?),
            None => Ok(call),
        }
    }

    /// Returns the unknown members of the parameters, which are forwarded as they are, or `None` if there are none.
    pub(super) fn extra_params(request: &Request) -> Option<RawJson> {
        let known = param_key::known_to(&request.method);
        let params = request.params.as_ref()?;
        if params.parts().all(|(key, _)| known.contains(&&*key)) {
            return None;
        }
        params.without_members(known).ok()
    }

    /// Returns the URI of a resource, or `None` for any other target.
    pub(super) fn uri(&self) -> Option<&str> {
        match self {
            Self::Resource(uri) => Some(uri),
            _ => None,
        }
    }

    /// Returns `true` if the request may be answered with questions, which the protocol forbids for completions.
    pub(super) fn may_ask(&self) -> bool {
        *self != Self::Completion
    }
}

/// Returns the `uri` of a request.
pub(crate) fn resource_uri(cx: &RequestContext) -> Result<String, RpcError> {
    cx.uri()
        .map(Cow::into_owned)
        .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`uri` must be a string"))
}

fn name(cx: &RequestContext) -> Result<Cow<'_, str>, RpcError> {
    cx.name()
        .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "`name` must be a string"))
}

/// Returns the call of a completion. `ref` becomes its target, and the other members become its arguments.
fn completion(request: &Request) -> Result<CallRequest, Failure> {
    let invalid = |message: &str| RpcError::new(code::INVALID_PARAMS, message);
    let (mut reference, mut arguments) = (None, Vec::new());
    for (key, value) in request.params.iter().flat_map(RawJson::members) {
        match &*key {
            "ref" => reference = Some(value),
            "argument" => arguments.push(("argument", value)),
            "context" if value.kind() != JsonKind::Null => arguments.push(("context", value)),
            _ => {}
        }
    }
    let text = |key| {
        reference
            .as_ref()
            .and_then(|reference| reference.get(key)?.string())
    };
    let call = match (text("type").as_deref(), text("name"), text("uri")) {
        (Some("ref/prompt"), Some(name), _) => CallRequest::complete_prompt(name),
        (Some("ref/resource"), _, Some(uri)) => CallRequest::complete_template(uri),
        _ => {
            let message = "`ref` must be a `ref/prompt` with a `name` or a `ref/resource` with a `uri`";
            return Err(invalid(message).into());
        }
    };
    let is_argument = |(key, value): &(&str, RawJson)| *key == "argument" && value.kind() == JsonKind::Object;
    if !arguments.iter().any(is_argument) {
        return Err(invalid("`argument` must be an object").into());
    }
    Ok(call.checked(RawJson::from_members(&arguments))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_params_are_not_extra() {
        for (params, expected) in [
            (r#"{"name":"t","arguments":{},"task":{},"_meta":{}}"#, None),
            (r#"{"name":"t","inputResponses":{},"requestState":"s"}"#, None),
            (
                r#"{"x":{ "n":1e2 },"name":"t","uri":"a:b"}"#,
                Some(r#"{"x":{ "n":1e2 },"uri":"a:b"}"#),
            ),
        ] {
            let raw = |text: &str| RawJson::parse(text.to_owned()).expect("it is JSON");
            let request = Request {
                id: 1_u64.into(),
                method: method::TOOLS_CALL.to_owned(),
                params: Some(raw(params)),
            };
            assert_eq!(Subject::extra_params(&request), expected.map(raw), "{params}");
        }
    }
}
