use std::borrow::Cow;

use futures_util::future::join_all;
use mcp_server::{Answer, HeaderParams, Peer, RequestContext, ServerIdentity, Service, unknown_method};
use mcp_wire::{Era, Notification, Request, Revision, RpcError, code, method};
use raw_json::RawJson;
use tokio::runtime::Handle;
use toolplane::core::Feature;

use super::Gateway;
use crate::{
    client::{client_identity, client_key, connection_key},
    discovery::Redirection,
    lists::{ListRequest, add_missing_servers},
    render,
    requests::{IncomingRequest, resource_uri},
    tasks::{TaskMethodRequest, watch_task},
};

/// Capabilities of both eras. They do not depend on the present lists, since a server with prompts may be added later.
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}"#;
/// Capability `tasks` of 2025-11-25, the only revision that has it.
const TASKS: &str = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;
/// Capability `extensions` of the modern era.
const EXTENSIONS: &str = r#"{"io.modelcontextprotocol/tasks":{}}"#;

impl Gateway {
    /// Answers a request for a page of a list.
    async fn list(
        &self,
        feature: Feature,
        request: &Request,
        cx: &RequestContext,
    ) -> Result<Answer, RpcError> {
        let state = self.state();
        let caller = state.caller(cx.principal());
        let client = client_identity(&Peer::from_request(cx), &caller);
        let wait = state.options.list_wait;
        let listing = state.plane.list_within_for(&caller, &client, wait).await;
        let items = match feature {
            Feature::Tool => state.offer.listed(&listing.view),
            _ => Cow::Borrowed(listing.view.list(feature)),
        };
        let wanted = ListRequest {
            feature,
            view: &listing.view,
            items: &items,
            caller: &caller,
            params: request.params.as_ref(),
            era: cx.era(),
        };
        let page = state.lists.page(&state.plane, &wanted)?;
        Ok(Answer::untyped(add_missing_servers(page, &listing.missing)))
    }

    /// Answers a request that makes a call. A call of a meta-tool is answered here, except that `tool_call` becomes a call of the
    /// tool that it names: from here on, nothing distinguishes it from a direct one.
    async fn make_call(&self, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        let state = self.state();
        let is_tool = request.method == method::TOOLS_CALL;
        let meta_tool = cx
            .name()
            .filter(|_| is_tool)
            .and_then(|name| state.offer.meta_tool(&name));
        let target = match meta_tool {
            None => None,
            Some(meta_tool) => match state.redirect(meta_tool, cx) {
                Ok(Redirection::Search(arguments)) => {
                    return Ok(Box::pin(state.search_tools(cx, arguments.as_ref())).await);
                }
                Ok(Redirection::Describe(arguments)) => {
                    return Ok(Box::pin(state.describe_tools(cx, arguments.as_ref())).await);
                }
                Ok(Redirection::Call(target)) => Some(target),
                Err(error) => return Ok(render::failed_tool_result(&error)),
            },
        };
        IncomingRequest::new(state, request, cx, target)?.answer().await
    }

    /// Answers `resources/subscribe`.
    async fn subscribe(&self, cx: &RequestContext) -> Result<Answer, RpcError> {
        let uri = resource_uri(cx)?;
        if cx.connection().is_none() {
            let message = "`resources/subscribe` needs a session, on which changes are notified";
            return Err(RpcError::new(code::INVALID_REQUEST, message));
        }
        let state = self.state();
        let caller = state.caller(cx.principal());
        let client = client_identity(&Peer::from_request(cx), &caller);
        let subscribed = state
            .subscriptions
            .subscribe(&state.plane, &uri, &caller, &client);
        let subscribed = subscribed.await;
        subscribed.map_err(|error| render::rpc_error(&error, cx.era(), Some(&uri)))?;
        Ok(RawJson::object().into())
    }
}

impl Service for Gateway {
    fn info(&self) -> ServerIdentity {
        self.state().options.info.clone()
    }

    fn instructions(&self) -> Option<String> {
        let state = self.state();
        if let Some(early) = state.early_answers() {
            return state.early_instructions(early);
        }
        state
            .plane
            .instructions(state.options.info.instructions.as_deref())
    }

    fn capabilities(&self, revision: Revision) -> RawJson {
        let parse = |text| RawJson::parse(text).expect("the text is JSON");
        let capabilities = parse(CAPABILITIES);
        let more = match (revision, revision.era()) {
            (Revision::V2025_11_25, _) => ("tasks", parse(TASKS)),
            (_, Era::Modern) => ("extensions", parse(EXTENSIONS)),
            _ => return capabilities,
        };
        capabilities.with_members(&[more]).expect("the text is an object")
    }

    async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        if let Some(page) = self.state().early_page(&request, cx) {
            return Ok(Answer::untyped(page));
        }
        self.state().lists_known().await;
        let feature = match &*request.method {
            method::TOOLS_CALL
            | method::PROMPTS_GET
            | method::RESOURCES_READ
            | method::COMPLETION_COMPLETE => {
                return self.make_call(&request, cx).await;
            }
            method::TOOLS_LIST => Feature::Tool,
            method::PROMPTS_LIST => Feature::Prompt,
            method::RESOURCES_LIST => Feature::Resource,
            method::RESOURCES_TEMPLATES_LIST => Feature::ResourceTemplate,
            method::RESOURCES_SUBSCRIBE => return self.subscribe(cx).await,
            // The periodic cleanup ends subscriptions that no client has any more.
            method::RESOURCES_UNSUBSCRIBE => return Ok(RawJson::object().into()),
            method::TASKS_GET
            | method::TASKS_RESULT
            | method::TASKS_UPDATE
            | method::TASKS_CANCEL
            | method::TASKS_LIST => {
                let request = TaskMethodRequest {
                    gateway: self.state(),
                    request: &request,
                    cx,
                };
                return request.answer().await;
            }
            other => return Err(unknown_method(other)),
        };
        self.list(feature, &request, cx).await
    }

    fn header_params(&self, tool: &str, client: &Peer) -> HeaderParams<'_> {
        let state = self.state();
        if state.offer.meta_tool(tool).is_some() {
            return HeaderParams::None;
        }
        let identify = || client_identity(client, &state.caller(&client.principal));
        if let Some(tool) = state.plane.known_tool_for(tool, identify) {
            return state.mirrored_params.get(&tool).into();
        }
        let (name, client) = (tool.to_owned(), identify());
        HeaderParams::Pending(Box::pin(async move {
            state.plane.resolve_tool(&name, &client).await;
            match state.plane.known_tool_for(&name, || client) {
                Some(tool) => state.mirrored_params.get(&tool).into(),
                None => HeaderParams::UnknownTool,
            }
        }))
    }

    async fn filter_resources(&self, uris: Vec<String>, cx: &RequestContext) -> Vec<String> {
        let state = self.state();
        state.lists_known().await;
        let caller = state.caller(cx.principal());
        state.lists.assume_seen(&state.plane.cached_view(&caller));
        let client = &client_identity(&Peer::from_request(cx), &caller);
        let subscribed = uris.iter().map(|uri| async {
            let subscribed = state.subscriptions.subscribe(&state.plane, uri, &caller, client);
            subscribed.await.is_ok().then(|| uri.clone())
        });
        join_all(subscribed).await.into_iter().flatten().collect()
    }

    async fn filter_tasks(&self, ids: Vec<String>, cx: &RequestContext) -> Vec<String> {
        ids.into_iter()
            .filter(|id| watch_task(self.state(), id, cx))
            .collect()
    }

    fn on_disconnect(&self, connection: u64) {
        // At the end of the process the runtime is gone, and cleanup is needless.
        if Handle::try_current().is_ok() {
            let client = connection_key(connection);
            self.state().tasks.remove_of(&client);
            self.state().plane.client_gone(&client);
        }
    }

    fn on_notification(&self, notification: &Notification, cx: &RequestContext) {
        if notification.method == method::ROOTS_LIST_CHANGED {
            self.state().plane.client_roots_changed(&client_key(cx));
        }
    }
}
