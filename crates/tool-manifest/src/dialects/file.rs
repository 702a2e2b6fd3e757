use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::Provider;
use tool_settings::{Entries, Field, NodeId};

use crate::{
    ServerSpec, ServerTransport,
    config::{
        authoring::{self, AuthoringBody},
        defaults::{self, DefaultsBody},
        gateway::{self, GatewayBody},
        health::{self, AlertsBody, HealthBody},
        policy::PolicyBody,
        search::{self, SearchBody},
        store::{self, StoreBody},
    },
    document::{place::Cx, suggest},
    endpoints::endpoint::{self, EndpointBody},
    loading::draft::Draft,
    servers::{
        sandbox::{ClientSandbox, ClientSandboxBody},
        server::{self, ServerBody},
        transport,
    },
    tools::{
        tool::{self, ToolBody},
        workflow::{self, WorkflowBody},
    },
};

/// A configuration of toolplane: servers and tools, and who may call them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Configuration")]
pub(crate) struct FileBody {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: Field<String>,
    /// More files, or directories of them, relative to this file. In a directory, a file that cannot be used is
    /// reported and the others are loaded.
    include: Field<Vec<Field<String>>>,
    /// MCP servers to take tools from, by name.
    servers: Field<Entries<ServerBody>>,
    /// Another name for `servers`.
    mcp_servers: Field<Entries<ServerBody>>,
    /// Another name for `servers`, as MCP clients write it.
    #[serde(rename = "mcpServers")]
    client_servers: Field<Entries<ServerBody>>,
    /// Rules of VS Code for the servers with `sandboxEnabled: true`.
    sandbox: Field<ClientSandboxBody>,
    /// Command endpoints to take tools from, by name: programs that answer one JSON request on standard input.
    endpoints: Field<Entries<EndpointBody>>,
    /// Tools, by name.
    tools: Field<Entries<ToolBody>>,
    /// Workflows, by name: tools that are made of calls of other tools.
    workflows: Field<Entries<WorkflowBody>>,
    /// Settings of tools and servers that set none of their own.
    defaults: Field<DefaultsBody>,
    /// Rules about who may call what.
    policy: Field<PolicyBody>,
    /// Sources of the values of `${secret:NAME}`: names, with `${env:..}` or `${file:..}`.
    secrets: Field<Entries<String>>,
    /// The HTTP gateway.
    gateway: Field<GatewayBody>,
    /// Where tools with versions, tokens and approvals are kept.
    store: Field<StoreBody>,
    /// Health of tools and servers.
    health: Field<HealthBody>,
    /// Alerts to operators about tools and servers that are not healthy.
    alerts: Field<AlertsBody>,
    /// Search over tools.
    search: Field<SearchBody>,
    /// Tools that agents make.
    authoring: Field<AuthoringBody>,
}

/// The keys that only our own files have: a file with one of them is no file of an MCP client.
pub(crate) const OWN_KEYS: [&str; 14] = [
    "authoring",
    "include",
    "endpoints",
    "tools",
    "defaults",
    "policy",
    "secrets",
    "gateway",
    "store",
    "health",
    "alerts",
    "search",
    "mcp_servers",
    "workflows",
];

/// Takes a document in the short form.
pub(crate) fn take(cx: Cx<'_>, at: NodeId, draft: &mut Draft) {
    let Some(body) = cx.read::<FileBody>(at) else {
        return;
    };
    let rules_at = body.sandbox.given();
    let mut has_sandbox = false;
    let rules = ClientSandbox::new(cx, body.sandbox.get().unwrap_or_default());
    for servers in [body.servers, body.mcp_servers, body.client_servers] {
        for (name, field) in servers.get().unwrap_or_default() {
            has_sandbox |= take_server(cx, &name, field, &rules, draft);
        }
    }
    if let Some(at) = rules_at.filter(|_| !has_sandbox) {
        warn_of_idle_sandbox(cx, at);
    }
    for (name, field) in body.endpoints.get().unwrap_or_default() {
        take_endpoint(cx, &name, field, draft);
    }
    for (name, field) in body.tools.get().unwrap_or_default() {
        take_tool(cx, &name, field, draft);
    }
    for (name, field) in body.workflows.get().unwrap_or_default() {
        if let Some((at, body)) = field.located()
            && let Some(tool) = workflow::workflow(cx, &name, at, at, body)
        {
            draft.put_tool(cx.report, tool);
        }
    }
    if let Some((at, body)) = body.defaults.located() {
        draft.set_defaults(cx, at, defaults::defaults(cx, body));
    }
    if let Some((at, body)) = body.gateway.located() {
        draft.add_rule_places(cx, "gateway.pinned", &body.pinned());
        draft.set_gateway(cx, at, gateway::gateway(cx, body));
    }
    if let Some((at, body)) = body.store.located() {
        draft.set_store(cx, at, store::store(cx, body));
    }
    if let Some((at, body)) = body.health.located() {
        draft.set_health(cx, at, health::health(cx, body));
    }
    if let Some((at, body)) = body.alerts.located() {
        draft.set_alerts(cx, at, health::alerts(cx, body));
    }
    if let Some((at, body)) = body.search.located() {
        draft.set_search(cx, at, search::search(cx, body));
    }
    if let Some((at, body)) = body.authoring.located() {
        draft.set_authoring(cx, at, authoring::authoring(cx, body));
    }
    if let Some((_, body)) = body.policy.located() {
        draft.add_policy(cx, body);
    }
    for (name, field) in body.secrets.get().unwrap_or_default() {
        take_secret(cx, &name, field, draft);
    }
    for field in body.include.get().unwrap_or_default() {
        if let Some((at, path)) = field.located() {
            draft
                .includes
                .push((cx.place(at), cx.document.source.directory.join(path)));
        }
    }
}

/// Warns of rules of a sandbox that no server asks for.
pub(crate) fn warn_of_idle_sandbox(cx: Cx<'_>, at: NodeId) {
    cx.warning(
        at,
        "`sandbox` has no effect here: no server has `sandboxEnabled: true`",
        "write `sandbox` on a server, or `sandboxEnabled: true`",
    );
}

/// Returns `true` if a program asks for the sandbox of its file. Warns of an endpoint that does.
pub(crate) fn asks_for_sandbox(cx: Cx<'_>, body: &ServerBody) -> bool {
    let asks = body.sandbox_enabled.as_ref() == Some(&true);
    if let (true, Some(at)) = (asks && body.url.given().is_some(), body.sandbox_enabled.given()) {
        let message = "`sandboxEnabled` has no effect on a server with a `url`";
        cx.warning(at, message, "remove it");
    }
    asks && body.command.given().is_some()
}

/// Gives the sandbox of its file to a server that asks for it and has none of its own. A server whose sandbox cannot be had is
/// refused.
fn give_sandbox(cx: Cx<'_>, server: &mut ServerSpec, rules: &ClientSandbox) {
    let ServerTransport::Stdio { cwd, .. } = &server.transport else {
        return;
    };
    if server.sandbox.is_some() {
        return;
    }
    // A reference may stand for any path.
    let cwd = cwd.as_ref().map(|cwd| cwd.literal().unwrap_or("${..}"));
    let problems = rules.unenforced(cwd);
    for (at, reason) in &problems {
        let hint = format!("the server `{}` is not started", server.name);
        cx.warning(*at, reason.clone(), hint);
    }
    match problems.into_iter().next() {
        None => server.sandbox = Some(rules.spec(cx)),
        Some((_, reason)) => server.transport = ServerTransport::Refused { reason },
    }
}

/// Takes a server. Returns `true` if it asks for the sandbox of its file.
fn take_server(
    cx: Cx<'_>,
    name: &str,
    field: Field<ServerBody>,
    rules: &ClientSandbox,
    draft: &mut Draft,
) -> bool {
    if let (Some(at), true) = (field.place(), field.is_absent()) {
        cx.key_error(
            at,
            format!("the server `{name}` is empty"),
            "add `command: ..` or `url: ..`",
        );
    }
    let Some((at, body)) = field.located() else {
        return false;
    };
    let asks = asks_for_sandbox(cx, &body);
    if let Some(mut server) = server::server(cx, name, at, body) {
        if asks {
            give_sandbox(cx, &mut server, rules);
        }
        draft.add_server(cx, at, at, server);
    }
    asks
}

fn take_endpoint(cx: Cx<'_>, name: &str, field: Field<EndpointBody>, draft: &mut Draft) {
    if let (Some(at), true) = (field.place(), field.is_absent()) {
        cx.key_error(at, format!("the endpoint `{name}` is empty"), "add `command: ..`");
    }
    if let Some((at, body)) = field.located()
        && let Some(endpoint) = endpoint::endpoint(cx, name, at, body)
    {
        draft.put_endpoint(cx.report, endpoint, cx.place(at));
    }
}

fn take_tool(cx: Cx<'_>, name: &str, field: Field<ToolBody>, draft: &mut Draft) {
    if let (Some(at), true) = (field.place(), field.is_absent()) {
        cx.key_error(
            at,
            format!("the tool `{name}` is empty"),
            "add `description: ..` and `executor: ..`",
        );
    }
    if let Some((at, body)) = field.located()
        && let Some(tool) = tool::tool(cx, name, at, at, body)
    {
        draft.put_tool(cx.report, tool);
    }
}

fn take_secret(cx: Cx<'_>, name: &str, field: Field<String>, draft: &mut Draft) {
    let Some((at, text)) = field.located() else { return };
    let fits = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if !fits {
        let shown = suggest::shown(name);
        cx.key_error(
            at,
            format!("`{shown}` is no name of a secret"),
            "use letters, digits, `_`, `-` and `.`",
        );
    }
    let Some(template) = transport::parse(cx, at, &text) else {
        return;
    };
    if template
        .references()
        .any(|reference| reference.provider == Provider::Secret)
    {
        cx.error(
            at,
            "a secret cannot be made of other secrets",
            "use `${env:NAME}` or `${file:PATH}`",
        );
        return;
    }
    if template.references().next().is_none() {
        cx.warning(
            at,
            format!("the secret `{name}` stands in the file for everyone to read"),
            "use `${env:NAME}` or `${file:PATH}`",
        );
    }
    draft.put_secret(cx.report, name.to_owned(), template, cx.place(at));
}
