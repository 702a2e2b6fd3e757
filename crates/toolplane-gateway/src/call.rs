use std::sync::Arc;

use mcp_server::{Answer, RequestContext};
use mcp_wire::{Era, Request, RpcError, code, meta_key};
use raw_json::RawJson;
use toolplane::{
    CallRequest,
    core::{self, Body, Claim, ErrorKind, Outcome, Reply, TaskMode, ToolError, TraceContext},
};

use crate::{
    Gateway,
    client::{self, Direct},
    fault::{self, Failure},
    legacy, modern, render,
    subject::Subject,
    task_requests,
};

/// How often a legacy client is asked for what one call needs before that is taken for a loop.
pub(crate) const FEW_ROUNDS: usize = 16;

/// What a round of a call came to.
pub(crate) enum Done {
    /// It is over.
    Outcome(Outcome),
    /// Its client must give something first, and is told so by this.
    Answer(Answer),
}

/// Answers a request that makes a call: of a tool or prompt, of a resource, or for a completion.
pub(crate) async fn answer(
    gateway: &Gateway,
    request: &Request,
    cx: &RequestContext,
) -> Result<Answer, RpcError> {
    let subject = Subject::of(request, cx)?;
    let reply = match run(gateway, &subject, request, cx).await {
        Ok(Done::Answer(answer)) => return Ok(answer),
        Ok(Done::Outcome(Outcome::Task(task))) => return task_requests::made(gateway, cx, *task),
        Ok(Done::Outcome(Outcome::Pending(pending))) => {
            return match subject {
                Subject::Tool => Ok(render::pending(&pending)),
                _ => Err(fault::pending(&pending)),
            };
        }
        Ok(Done::Outcome(outcome)) => render::finished(outcome),
        Err(Failure::Call(error)) => Err(error),
        Err(Failure::Protocol(error)) => return Err(error),
    };
    match reply {
        Ok(reply) => Ok(rendered(gateway, &subject, &reply, cx)),
        Err(error) => failed(&subject, &error, cx),
    }
}

/// Makes the call. Whatever most calls do not need is boxed, since the future of every call would have room for it.
async fn run(
    gateway: &Gateway,
    subject: &Subject,
    request: &Request,
    cx: &RequestContext,
) -> Result<Done, Failure> {
    let wish = if task_requests::is_wanted(request, cx) {
        Box::pin(task_requests::wanted(gateway, cx)).await?
    } else {
        task_requests::welcome(gateway, request, cx)
    };
    if modern::is_dialogue(request, cx) {
        let call = complete(gateway, (subject, request), cx, wish)?;
        return Box::pin(modern::run(gateway, request, cx, call)).await;
    }
    let call = || -> Result<_, Failure> {
        let call = complete(gateway, (subject, request), cx, wish.clone())?;
        Ok(match Direct::of(cx) {
            Some(ask) => call.ask(ask),
            None => call,
        })
    };
    let first = call()?;
    let ended = gateway.plane().call(first).await;
    match (cx.era(), ended) {
        (Era::Modern, ended) => modern::done(gateway, request, cx, ended),
        (Era::Legacy, Ok(Outcome::NeedsInput(input))) => {
            let outcome = Box::pin(legacy::go_on(gateway, cx, call, *input)).await?;
            Ok(Done::Outcome(outcome))
        }
        (Era::Legacy, ended) => Ok(Done::Outcome(ended?)),
    }
}

/// The call with what the connection knows of it.
fn complete(
    gateway: &Gateway,
    (subject, request): (&Subject, &Request),
    cx: &RequestContext,
    wish: Option<TaskMode>,
) -> Result<CallRequest, Failure> {
    let mut call = subject
        .call(request, cx)?
        .caller(gateway.caller(cx.principal()))
        .client(client::key(cx))
        .client_capabilities(client::capabilities(cx));
    if cx.progress().is_wanted() {
        call = call.progress(Arc::new(Reports(cx.progress().clone())));
    }
    if let Some(beside) = subject.beside(request) {
        call = call.extra_params(beside);
    }
    if let Some(wish) = wish {
        call = call.task_mode(wish);
    }
    if let Some((parent, state)) = cx.trace()
        && let Some(trace) = TraceContext::parse(&parent, state.as_deref())
    {
        call = call.trace(trace);
    }
    if let Some(key) = cx.custom_meta().and_then(|meta| meta.get(Claim::META_KEY)) {
        let key = key.string().ok_or_else(|| {
            let message = format!("`{}` in `_meta` must be a string", Claim::META_KEY);
            ToolError::new(ErrorKind::InvalidArguments, message)
        })?;
        call = call.idempotency_key(key);
    }
    Ok(match cx.custom_meta().and_then(passed_on) {
        Some(meta) => call.meta(meta),
        None => call,
    })
}

/// What of a request's `_meta` is meant for whoever answers it in the end.
fn passed_on(meta: &RawJson) -> Option<RawJson> {
    let is_of_one_hop = |key: &str| key == meta_key::PROGRESS_TOKEN || key.starts_with(meta_key::PREFIX);
    if meta.parts().all(|(key, _)| is_of_one_hop(&key)) {
        return None;
    }
    let own: Vec<_> = meta
        .members()
        .map(|(key, _)| key)
        .filter(|key| is_of_one_hop(key))
        .collect();
    let own: Vec<&str> = own.iter().map(|key| &**key).collect();
    meta.without_members(&own).ok()
}

fn rendered(gateway: &Gateway, subject: &Subject, reply: &Reply, cx: &RequestContext) -> Answer {
    match (subject, &reply.body) {
        (Subject::Tool, _) => render::reply(reply, cx.era()),
        (Subject::Resource(uri), Body::Result(result) | Body::Value(result)) => {
            let is_public = || gateway.is_public(uri, cx.principal());
            render::contents(result, reply, cx.era(), is_public)
        }
        (_, Body::Result(result) | Body::Value(result)) => render::relayed(result, reply, cx.era()),
    }
}

/// A tool that fails has a result that says so, which models read; everything else has an error.
fn failed(subject: &Subject, error: &ToolError, cx: &RequestContext) -> Result<Answer, RpcError> {
    match subject {
        Subject::Tool if fault::is_unknown_tool(error) => {
            Err(RpcError::new(code::INVALID_PARAMS, error.message()))
        }
        Subject::Tool => {
            match legacy::visit(error, cx).or_else(|| fault::lacks_capability(error, cx.era())) {
                Some(error) => Err(error),
                None => Ok(render::error(
                    legacy::cannot_visit(error, cx).as_ref().unwrap_or(error),
                )),
            }
        }
        // A server that completes nothing has nothing to propose.
        Subject::Completion if fault::is_unknown_method(error) => {
            let nothing = r#"{"completion":{"values":[]}}"#;
            Ok(RawJson::parse(nothing).expect("the text is JSON").into())
        }
        _ => Err(fault::rpc_error(error, cx.era(), subject.uri())),
    }
}

/// The way of a tool's progress to the client.
struct Reports(mcp_server::ProgressReporter);

impl core::Progress for Reports {
    fn report(&self, report: RawJson) {
        self.0.report(&report);
    }
}
