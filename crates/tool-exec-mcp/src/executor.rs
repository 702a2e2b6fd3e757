use std::{collections::HashMap, fmt, sync::Arc};

use raw_json::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::{Descriptor, DynInvoke, Executor, PrepareError};

use crate::{McpServer, call::McpTool};

/// Runs tools of MCP servers.
pub struct McpExecutor {
    servers: HashMap<String, Arc<McpServer>>,
}

/// Which tool of which server to call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct McpSettings {
    /// The name of a server in `servers`.
    server: String,
    /// The tool's own name there.
    tool: String,
}

impl McpExecutor {
    /// What descriptors name it by.
    pub const KIND: &'static str = "mcp";

    /// An executor for the tools of these servers.
    #[must_use]
    pub fn new(servers: impl IntoIterator<Item = Arc<McpServer>>) -> Self {
        Self {
            servers: servers
                .into_iter()
                .map(|server| (server.settings().name.clone(), server))
                .collect(),
        }
    }
}

impl Executor for McpExecutor {
    fn kind(&self) -> &str {
        Self::KIND
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynInvoke>, Vec<PrepareError>> {
        let settings = McpSettings::deserialize(&descriptor.executor.config)
            .map_err(|error| vec![PrepareError::at("", error.to_string())])?;
        let Some(server) = self.servers.get(&settings.server) else {
            let mut known: Vec<_> = self.servers.keys().map(|name| format!("`{name}`")).collect();
            known.sort();
            let hint = match known.as_slice() {
                [] => "add it to `servers`".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            let error = PrepareError::at("/server", format!("there is no server `{}`", settings.server));
            return Err(vec![error.with_hint(hint)]);
        };
        Ok(Arc::new(McpTool::new(server.clone(), &settings.tool)))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::from_serialize(&schemars::schema_for!(McpSettings)).expect("a schema is JSON")
    }
}

impl fmt::Debug for McpExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpExecutor")
            .field("n_servers", &self.servers.len())
            .finish()
    }
}
