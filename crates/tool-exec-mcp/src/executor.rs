use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use raw_json::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, DynBackend, Executor, Feature, PrepareError, Provenance, Reach};

use crate::{KeyPlace, McpServer, calls::McpCall, settings::EXECUTOR_KIND};

/// Executor of tools, prompts and resources of MCP servers.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use tool_core::{Executor, NoSecrets, Template};
/// use tool_exec_mcp::{HttpTarget, McpExecutor, McpServer, ServerSettings};
///
/// let target = HttpTarget::new(Template::parse("https://mcp.example.com/mcp")?);
/// let server = McpServer::new(ServerSettings::new("example", target), Arc::new(NoSecrets));
/// let executor = McpExecutor::new([server]);
/// assert_eq!(executor.kind(), McpExecutor::KIND);
/// # Ok::<(), tool_core::TemplateError>(())
/// ```
pub struct McpExecutor {
    servers: HashMap<Arc<str>, Arc<McpServer>>,
}

/// The server and the tool to call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct McpSettings<'a> {
    /// Name of a server in `servers`.
    #[serde(borrow)]
    server: Cow<'a, str>,
    /// The tool's name at the server.
    #[serde(borrow)]
    tool: Cow<'a, str>,
    /// `true` if the server requires calls of the tool as a task, as it does when the tool's `taskSupport` is
    /// `required`. The call waits for the task's result.
    #[serde(default)]
    task: bool,
    /// Place of a call's idempotency key in the request, instead of the place in the server's settings. Set this only
    /// for a tool that does once what it receives twice with the same key: failed calls are then made again.
    #[serde(default)]
    idempotency: Option<KeySettings>,
}

/// Place of a call's idempotency key: exactly one of the two.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeySettings {
    /// Key of `_meta`, such as `dev.toolplane/idempotency-key`.
    #[serde(default)]
    meta: Option<String>,
    /// Name of the argument.
    #[serde(default)]
    argument: Option<String>,
}

/// The server and the prompt to render. Only the server's own list makes these settings.
#[derive(Deserialize)]
struct PromptSettings<'a> {
    #[serde(borrow)]
    server: Cow<'a, str>,
    #[serde(borrow)]
    prompt: Cow<'a, str>,
}

/// The server and the resource or template to read. Only the server's own list makes these settings.
#[derive(Deserialize)]
struct ResourceSettings<'a> {
    #[serde(borrow)]
    server: Cow<'a, str>,
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

/// The server and the entry that a descriptor's settings name.
struct ExecutorTarget<'a> {
    server: Cow<'a, str>,
    upstream_name: Cow<'a, str>,
    is_task: bool,
    key: Option<KeySettings>,
}

impl<'a> ExecutorTarget<'a> {
    fn read(descriptor: &'a Descriptor) -> Result<Self, serde_json::Error> {
        let config = &descriptor.executor.config;
        let (server, upstream_name, is_task, key) = match descriptor.feature {
            Feature::Tool => {
                let settings: McpSettings<'_> = Deserialize::deserialize(config)?;
                (
                    settings.server,
                    settings.tool,
                    settings.task,
                    settings.idempotency,
                )
            }
            Feature::Prompt => {
                let PromptSettings { server, prompt } = Deserialize::deserialize(config)?;
                (server, prompt, false, None)
            }
            _ => {
                let ResourceSettings { server, uri } = Deserialize::deserialize(config)?;
                (server, uri, false, None)
            }
        };
        Ok(Self {
            server,
            upstream_name,
            is_task,
            key,
        })
    }
}

/// Returns the server that the settings of an entry name.
fn server_of(descriptor: &Descriptor) -> Option<&str> {
    descriptor.executor.config["server"].as_str()
}

/// Returns the place of the idempotency key from the tool's settings, or else from those of its server.
fn key_place(
    server: &McpServer,
    settings: Option<KeySettings>,
    descriptor: &Descriptor,
) -> Result<Option<KeyPlace>, PrepareError> {
    let Some(settings) = settings else {
        let of_server = server.settings().key_place.clone();
        let has_argument = |name: &str| {
            let properties = descriptor.input_schema.get("properties");
            properties.is_some_and(|properties| properties.get(name).is_some())
        };
        return Ok(of_server.filter(|place| match place {
            KeyPlace::Meta(_) => true,
            KeyPlace::Argument(name) => has_argument(name),
        }));
    };
    match (settings.meta, settings.argument) {
        (Some(meta), None) => Ok(Some(KeyPlace::Meta(meta))),
        (None, Some(argument)) => Ok(Some(KeyPlace::Argument(argument))),
        _ => {
            let error = PrepareError::at("/idempotency", "takes one of `meta` and `argument`");
            Err(error.with_hint("such as `idempotency: {argument: request_id}`"))
        }
    }
}

impl McpExecutor {
    /// The executor kind in descriptors.
    pub const KIND: &'static str = EXECUTOR_KIND;

    /// An executor for the tools of these servers.
    #[must_use]
    pub fn new(servers: impl IntoIterator<Item = Arc<McpServer>>) -> Self {
        let servers = servers.into_iter();
        Self {
            servers: servers
                .map(|server| (server.settings().name.as_str().into(), server))
                .collect(),
        }
    }
}

impl Executor for McpExecutor {
    fn kind(&self) -> &str {
        Self::KIND
    }

    /// Returns the tool of the server that is called. A call sends no secret of its own.
    fn reach(&self, descriptor: &Descriptor) -> Reach {
        let tool = descriptor.executor.config["tool"].as_str();
        match tool.zip(server_of(descriptor)) {
            Some((tool, server)) => {
                Reach::default().with_other(format!("the tool `{tool}` of the server `{server}`"))
            }
            None => Reach::default(),
        }
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let address = ExecutorTarget::read(descriptor)
            .map_err(|error| vec![PrepareError::at("", error.to_string())])?;
        let Some(server) = self.servers.get(&*address.server) else {
            let mut known: Vec<_> = self.servers.keys().map(|name| format!("`{name}`")).collect();
            known.sort();
            let hint = match known.as_slice() {
                [] => "add it to `servers`".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            let error = PrepareError::at("/server", format!("there is no server `{}`", address.server));
            return Err(vec![error.with_hint(hint)]);
        };
        let key_place = key_place(server, address.key, descriptor).map_err(|error| vec![error])?;
        Ok(Arc::new(McpCall {
            key_place,
            server: server.clone(),
            upstream_name: RawJson::from(&*address.upstream_name),
            is_task: address.is_task,
        }))
    }

    fn upstream(&self, descriptor: &Descriptor) -> Option<Arc<str>> {
        let server = server_of(descriptor)?;
        let known = self.servers.get_key_value(server);
        Some(known.map_or_else(|| server.into(), |(name, _)| name.clone()))
    }

    fn provenance(&self, descriptor: &Descriptor) -> Provenance {
        let Some(server) = server_of(descriptor).and_then(|server| self.servers.get(server)) else {
            return Provenance::default();
        };
        let names = match (descriptor.feature, descriptor.executor.config["tool"].as_str()) {
            (Feature::Tool, Some(tool)) => server.settings().alternative_names(tool, &descriptor.name),
            _ => Vec::new(),
        };
        let mut provenance = Provenance::default();
        provenance.names = names;
        provenance.place = Some(server.target_digest());
        provenance
    }

    /// Returns `true`: results are limited while they are read.
    fn bounds_results(&self) -> bool {
        true
    }

    fn passes_key(&self, descriptor: &Descriptor) -> bool {
        let Ok(address) = ExecutorTarget::read(descriptor) else {
            return false;
        };
        let server = self.servers.get(&*address.server);
        // A server's list cannot set the place of the key, so the operator has set it.
        let place = server.map(|server| key_place(server, address.key, descriptor));
        descriptor.feature == Feature::Tool && matches!(place, Some(Ok(Some(_))))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::from_serialize(&schemars::schema_for!(McpSettings<'_>)).expect("a schema is JSON")
    }
}

impl fmt::Debug for McpExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpExecutor")
            .field("n_servers", &self.servers.len())
            .finish()
    }
}
