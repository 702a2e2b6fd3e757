use mcp_wire::{Era, Request, Revision, RpcError, code, method};
use raw_json::{JsonKind, RawJson};

use super::{
    ToolCall, Tools,
    error::with_sources,
    output::failure,
    toolset::{BoxError, Tool},
};
use crate::{
    Answer, ClientRequestError, HeaderParams, Peer, RequestContext, ServerIdentity, Service, unknown_method,
};

/// Prefix of a cursor, in front of the name of the last tool of the page before.
const CURSOR: &str = "after.";
/// Time for which modern clients may cache the list, in milliseconds: it changes with a new version of the program only.
const TTL: u64 = 60_000;

impl Service for Tools {
    fn info(&self) -> ServerIdentity {
        self.identity.clone()
    }

    fn capabilities(&self, _: Revision) -> RawJson {
        // Every tool can send log messages by its context.
        RawJson::from_members(&[("tools", RawJson::object()), ("logging", RawJson::object())])
    }

    async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        match request.method.as_str() {
            method::TOOLS_LIST => self.list(&request, cx.era()),
            method::TOOLS_CALL => self.call_tool(request, cx).await,
            other => Err(unknown_method(other)),
        }
    }

    fn header_params(&self, tool: &str, _: &Peer) -> HeaderParams<'_> {
        match self.find(tool) {
            Some(tool) => tool.mirrored.clone().into(),
            None => HeaderParams::UnknownTool,
        }
    }
}

impl Tools {
    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.get(*self.position.get(name)?)
    }

    fn list(&self, request: &Request, era: Era) -> Result<Answer, RpcError> {
        let cursor = request.params.as_ref().and_then(|params| params.get("cursor"));
        let cursor = cursor.filter(|cursor| cursor.kind() != JsonKind::Null);
        let start = cursor.map_or(Ok(0), |cursor| self.start_after(&cursor))?;
        let end = self.tools.len().min(start + self.page_size);
        let page: Vec<&RawJson> = self.tools[start..end]
            .iter()
            .map(|tool| &tool.definition)
            .collect();
        let page = RawJson::from_serialize(&page).expect("definitions can be written");
        let mut members = vec![("tools", page)];
        if end < self.tools.len() {
            let cursor = format!("{CURSOR}{}", self.tools[end - 1].name);
            members.push(("nextCursor", RawJson::from(cursor.as_str())));
        }
        if era == Era::Modern {
            members.push(("ttlMs", RawJson::from(TTL)));
            members.push(("cacheScope", RawJson::from("public")));
        }
        Ok(Answer::untyped(RawJson::from_members(&members)))
    }

    fn start_after(&self, cursor: &RawJson) -> Result<usize, RpcError> {
        let cursor = cursor.text();
        let name = cursor.as_deref().and_then(|cursor| cursor.strip_prefix(CURSOR));
        let position = name.and_then(|name| self.position.get(name));
        let unknown = || RpcError::new(code::INVALID_PARAMS, "unknown `cursor`");
        position.map(|position| position + 1).ok_or_else(unknown)
    }

    async fn call_tool(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        let invalid = |message: String| RpcError::new(code::INVALID_PARAMS, message);
        let name = cx
            .name()
            .ok_or_else(|| invalid("`name` must be a string".to_owned()))?;
        let tool = self
            .find(&name)
            .ok_or_else(|| invalid(format!("unknown tool `{name}`")))?;
        let call = ToolCall::new(request, cx.copy());
        let arguments = call.raw_arguments();
        if arguments.kind() != JsonKind::Object {
            return Err(invalid("`arguments` must be an object".to_owned()));
        }
        if let Some(check) = &tool.check
            && let Err(error) = check(&arguments)
        {
            return Ok(failure(&format!("invalid arguments: {}", with_sources(&*error))));
        }
        match (tool.run)(call).await {
            Ok(output) => Ok(output.into_answer(cx.era())),
            Err(error) => failed(error),
        }
    }
}

/// Answers a call whose closure failed.
fn failed(error: BoxError) -> Result<Answer, RpcError> {
    let error = match error.downcast::<RpcError>() {
        Ok(rpc) => return Err(*rpc),
        Err(error) => error,
    };
    match error.downcast::<ClientRequestError>().map(|error| *error) {
        Ok(ClientRequestError::NotDeclared(rpc)) => Err(rpc),
        Ok(other) => Ok(failure(&with_sources(&other))),
        Err(error) => Ok(failure(&with_sources(&*error))),
    }
}
