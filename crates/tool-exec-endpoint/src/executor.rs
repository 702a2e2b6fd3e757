use std::{collections::HashMap, fmt, sync::Arc};

use raw_json::RawJson;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::Value;
use tool_core::{Descriptor, DynBackend, Executor, PrepareError, Provenance};
use tool_settings::{keep_readable, suggest};

use crate::{CommandEndpoint, EndpointKeyPlace, backend::EndpointCall, settings::EXECUTOR_KIND};

/// Executor of tools of endpoints: kind `endpoint`.
///
/// # When a call counts as sent
/// A call is [`Sent`](tool_core::DispatchState::Sent) right before its program starts, and
/// [`Answered`](tool_core::DispatchState::Answered) when the program has ended by itself. A program that was killed at a time
/// limit has not answered.
///
/// # Errors by end
///
/// | end | kind |
/// |---|---|
/// | error of category `usage` | `invalid_arguments` |
/// | error of category `pipeline` | `upstream_error` |
/// | error of category `fatal` | `upstream_error`, never tried again |
/// | error of another category | `upstream_error`, which names the category |
/// | error with a `kind` that fits its category, as toolplane adds it | that kind |
/// | the program does not start | `unavailable` |
/// | it ends with a failure and without an error on standard output | `upstream_error` |
/// | what it writes is no reply | `protocol` |
/// | it writes more than the limit | `result_too_large` |
/// | time limit | `timeout` |
///
/// # Examples
/// See the [crate](crate).
pub struct EndpointExecutor {
    endpoints: HashMap<String, Arc<CommandEndpoint>>,
    /// Digests of the commands, for the provenance of tools.
    digests: HashMap<String, [u8; 32]>,
}

/// A tool of an endpoint.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct EndpointTool {
    /// Name of an endpoint in `endpoints`; the only one by default.
    endpoint: Option<String>,
    /// The tool's name at the endpoint; the name of this tool by default.
    tool: Option<String>,
    /// Syntax of the tool on a command line, for people.
    command: Option<String>,
    /// Place where the tool runs, as its descriptor says: `local` or `remote`. For people.
    origin: Option<String>,
    /// Summary of the tool's guardrails, for people.
    safety: Option<String>,
}

impl EndpointExecutor {
    /// The executor kind in descriptors.
    pub const KIND: &'static str = EXECUTOR_KIND;
    /// Key in `_meta` of a definition of the members that a descriptor of an endpoint has and MCP does not know: `command`,
    /// `origin`, `safety` and others. In `_meta` of a result: the `_meta` of the endpoint.
    pub const META_KEY: &'static str = crate::definition::META_KEY;

    /// Creates the executor of the tools of these endpoints.
    #[must_use]
    pub fn new(endpoints: impl IntoIterator<Item = Arc<CommandEndpoint>>) -> Self {
        let endpoints: HashMap<_, _> = endpoints
            .into_iter()
            .map(|endpoint| (endpoint.settings().name.clone(), endpoint))
            .collect();
        let digests = endpoints.iter();
        Self {
            digests: digests
                .map(|(name, endpoint)| (name.clone(), endpoint.settings().command.digest()))
                .collect(),
            endpoints,
        }
    }

    /// Returns the members `command`, `origin` and `safety` of a tool, as far as its descriptor has them.
    #[must_use]
    pub fn facts(descriptor: &Descriptor) -> Vec<(&'static str, String)> {
        if descriptor.executor.kind != Self::KIND {
            return Vec::new();
        }
        let meta = descriptor.definition.as_ref().and_then(|definition| {
            let meta = definition.get("_meta")?;
            meta.get(Self::META_KEY)
        });
        let fact = |key: &'static str| {
            let listed = meta.as_ref().and_then(|meta| meta.get(key)?.string());
            let written = || descriptor.executor.config.get(key)?.as_str().map(str::to_owned);
            Some((key, listed.or_else(written)?))
        };
        ["command", "origin", "safety"]
            .into_iter()
            .filter_map(fact)
            .collect()
    }

    /// Finds the endpoint of a tool: the named one, or the only one.
    fn find(&self, named: Option<&str>) -> Result<&Arc<CommandEndpoint>, PrepareError> {
        let found = match named {
            Some(name) => self.endpoints.get(name),
            None => self
                .endpoints
                .values()
                .next()
                .filter(|_| self.endpoints.len() == 1),
        };
        found.ok_or_else(|| {
            let mut known: Vec<_> = self.endpoints.keys().map(|name| format!("`{name}`")).collect();
            known.sort();
            let (pointer, message) = match (named, known.as_slice()) {
                (Some(name), _) => (
                    "/endpoint",
                    format!("there is no endpoint `{}`", name.escape_debug()),
                ),
                (None, []) => ("", "there is no endpoint that runs the tool".to_owned()),
                (None, _) => ("", "the tool does not say which endpoint runs it".to_owned()),
            };
            let hint = match known.as_slice() {
                [] => "add it to `endpoints`, or set `MCP_ENDPOINT` to its command".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            PrepareError::at(pointer, message).with_hint(hint)
        })
    }
}

/// Returns the place of the idempotency key in calls of a tool.
fn key_place(endpoint: &CommandEndpoint, descriptor: &Descriptor) -> Option<EndpointKeyPlace> {
    let place = endpoint.settings().key_place.clone();
    let properties = descriptor.input_schema.get("properties");
    place.filter(|place| match place {
        EndpointKeyPlace::Meta(_) => true,
        EndpointKeyPlace::Argument(name) => {
            properties.is_some_and(|properties| properties.get(name).is_some())
        }
    })
}

/// Reads the settings of a tool, or returns every problem.
fn read(config: &Value) -> Result<EndpointTool, Vec<PrepareError>> {
    let Value::Object(members) = config else {
        let message = "the settings of a tool of an endpoint must be an object";
        return Err(vec![PrepareError::at("", message)]);
    };
    let mut members = members.clone();
    let mut problems = Vec::new();
    keep_readable::<EndpointTool>(&mut members, "", suggest::nearest, &mut problems);
    let read: Result<EndpointTool, _> = serde_json::from_value(Value::Object(members));
    match read {
        Ok(_) if !problems.is_empty() => Err(problems),
        Ok(tool) => Ok(tool),
        Err(error) => Err(vec![PrepareError::at("", error.to_string())]),
    }
}

impl Executor for EndpointExecutor {
    fn kind(&self) -> &str {
        Self::KIND
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let tool = read(&descriptor.executor.config)?;
        let endpoint = self.find(tool.endpoint.as_deref()).map_err(|error| vec![error])?;
        Ok(Arc::new(EndpointCall {
            endpoint: endpoint.clone(),
            key_place: key_place(endpoint, descriptor),
            tool: tool.tool.unwrap_or_else(|| descriptor.name.to_string()),
        }))
    }

    fn upstream(&self, descriptor: &Descriptor) -> Option<Arc<str>> {
        let tool = read(&descriptor.executor.config).ok()?;
        let endpoint = self.find(tool.endpoint.as_deref()).ok()?;
        Some(endpoint.settings().name.as_str().into())
    }

    fn provenance(&self, descriptor: &Descriptor) -> Provenance {
        let mut provenance = Provenance::default();
        let upstream = self.upstream(descriptor);
        provenance.place = upstream.and_then(|name| self.digests.get(&*name).copied());
        provenance
    }

    fn passes_key(&self, descriptor: &Descriptor) -> bool {
        let tool = read(&descriptor.executor.config);
        let endpoint = tool
            .ok()
            .and_then(|tool| self.find(tool.endpoint.as_deref()).ok());
        // An endpoint's list cannot set the place of the key, so the operator has set it.
        endpoint.is_some_and(|endpoint| key_place(endpoint, descriptor).is_some())
    }

    /// Returns `true`: replies are limited while they are read.
    fn bounds_results(&self) -> bool {
        true
    }

    fn config_schema(&self) -> RawJson {
        RawJson::from(schema_for!(EndpointTool).to_value())
    }
}

impl fmt::Debug for EndpointExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointExecutor")
            .field("n_endpoints", &self.endpoints.len())
            .finish()
    }
}
