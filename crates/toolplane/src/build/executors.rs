//! Executors of this build, and their setup from a configuration.

use std::sync::Arc;

use tool_core::{ClientKey, Executor, Feature, Pattern, Secrets, Source};
#[cfg(feature = "exec-mcp")]
use tool_exec_mcp::Isolation;
use tool_manifest::Configuration;
#[cfg(feature = "exec-mcp")]
use tool_manifest::ServerTransport;
use tool_policy::Redactor;

use crate::{ConnectionUse, HttpUse};

/// Executors and sources of a configuration.
#[derive(Default)]
pub(crate) struct Primitives {
    pub(crate) executors: Vec<Arc<dyn Executor>>,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) live: LiveParts,
}

/// Parts that outlive a configuration: a reload keeps those that did not change.
#[derive(Default)]
pub(crate) struct LiveParts {
    pub(crate) servers: Servers,
    #[cfg(feature = "exec-http")]
    http: Option<(tool_manifest::Defaults, Arc<tool_exec_http::HttpExecutor>)>,
    #[cfg(feature = "exec-script")]
    scripts: Option<(tool_manifest::Defaults, tool_exec_script::ScriptRuntime)>,
    #[cfg(feature = "exec-container")]
    containers: Option<(tool_manifest::Defaults, tool_exec_container::ContainerRuntime)>,
    #[cfg(feature = "exec-endpoint")]
    endpoints: Vec<crate::host::endpoints::LiveEndpoint>,
}

/// Kinds of executors whose tools have files.
pub(crate) const KINDS_WITH_FILES: &[&str] = &[
    #[cfg(feature = "exec-script")]
    tool_exec_script::ScriptLanguage::Bash.kind(),
    #[cfg(feature = "exec-script")]
    tool_exec_script::ScriptLanguage::Python.kind(),
];

impl LiveParts {
    /// Removes what gateways left behind that were killed.
    pub(crate) async fn remove_leftovers(&self) {
        let _ = self;
        #[cfg(feature = "exec-container")]
        if let Some((_, containers)) = &self.containers {
            containers.remove_leftovers().await;
        }
    }

    /// Stops all servers and containers.
    pub(crate) async fn shutdown(&self) {
        #[cfg(feature = "exec-container")]
        if let Some((_, containers)) = &self.containers {
            futures_util::future::join(containers.shutdown(), self.servers.shutdown()).await;
            return;
        }
        self.servers.shutdown().await;
    }

    pub(crate) fn http_use(&self) -> HttpUse {
        let _ = self;
        #[cfg(feature = "exec-http")]
        if let Some((_, executor)) = &self.http {
            let traffic = executor.traffic();
            let n_running = traffic.n_running().into_iter();
            return HttpUse {
                n_opened: traffic.n_opened(),
                n_failed: traffic.n_failed(),
                n_requests: traffic.n_requests(),
                n_running: n_running.map(|(name, n)| (name.to_string(), n)).collect(),
            };
        }
        HttpUse::default()
    }
}

/// Servers to stop at the end.
#[derive(Default, Clone)]
pub(crate) struct Servers {
    #[cfg(feature = "exec-mcp")]
    list: Vec<Server>,
    /// Limit of servers that start at the same time.
    #[cfg(feature = "exec-mcp")]
    starts: Option<tool_exec_mcp::StartLimit>,
    /// Prefixes of disabled servers, whose names are unknown.
    pub(crate) disabled_prefixes: Vec<String>,
}

/// Rules of a server about its own names, and these names.
pub(crate) struct ServerRules {
    pub(crate) server: String,
    pub(crate) prefix: String,
    /// Rules by the key of their setting.
    pub(crate) rules: Vec<(&'static str, Pattern)>,
    /// Names, including omitted entries; `None` until its lists are read.
    pub(crate) names: Option<Vec<(Feature, String)>>,
}

/// Location of the cached lists of servers, if there is one.
#[derive(Default, Clone)]
pub(crate) struct ListCache {
    #[cfg(feature = "exec-mcp")]
    pub(crate) store: Option<Arc<dyn tool_exec_mcp::ListCache>>,
}

impl ListCache {
    /// Returns the location behind a filter that removes known secrets from lists.
    #[cfg(feature = "exec-mcp")]
    pub(crate) fn without_secrets(self, redactor: &Redactor) -> Self {
        let store = self.store.map(|inner| {
            let redactor = redactor.clone();
            Arc::new(crate::build::list_store::WithoutSecrets { inner, redactor }) as _
        });
        Self { store }
    }

    #[cfg(not(feature = "exec-mcp"))]
    pub(crate) fn without_secrets(self, _: &Redactor) -> Self {
        self
    }
}

/// Server and the one source that represents it.
#[cfg(feature = "exec-mcp")]
#[derive(Clone)]
struct Server {
    server: Arc<tool_exec_mcp::McpServer>,
    source: Arc<dyn Source>,
}

/// Servers that were removed from the configuration. Each stops after its last call, or at shutdown.
#[derive(Default)]
pub(crate) struct RetiredServers {
    #[cfg(feature = "exec-mcp")]
    list: Vec<std::sync::Weak<tool_exec_mcp::McpServer>>,
}

#[cfg(feature = "exec-mcp")]
impl Server {
    fn own_rules(&self) -> ServerRules {
        let settings = self.server.settings();
        let included = settings
            .include
            .iter()
            .flatten()
            .map(|rule| ("include", rule.clone()));
        let excluded = settings.exclude.iter().map(|rule| ("exclude", rule.clone()));
        let renamed = settings.rename.keys().map(|own| ("rename", Pattern::new(own)));
        ServerRules {
            server: settings.name.clone(),
            prefix: settings.prefix.clone(),
            rules: included.chain(excluded).chain(renamed).collect(),
            names: self.server.upstream_names(),
        }
    }

    fn connection_use(&self) -> (String, ConnectionUse) {
        let server = &self.server;
        let connections = ConnectionUse {
            n_requests: server.n_requests(),
            n_own: server.n_dedicated_connections(),
            n_own_used: server.n_dedicated_connections_in_use(),
            max_own: server.settings().max_connections,
        };
        (server.settings().name.clone(), connections)
    }
}

impl Servers {
    /// Sets the location of the cached lists for the servers that have any.
    pub(crate) fn keep_lists(&self, list_cache: &ListCache) {
        let _ = (self, list_cache);
        #[cfg(feature = "exec-mcp")]
        if let Some(store) = &list_cache.store {
            let servers = self.list.iter().map(|known| known.server.clone());
            let keeping: Vec<_> = servers.filter(|server| server.settings().keep_lists).collect();
            tool_exec_mcp::McpServer::cache_lists(&keeping, store);
        }
    }

    /// Returns the rules of each server about its own names.
    pub(crate) fn own_rules(&self) -> Vec<ServerRules> {
        let _ = self;
        #[cfg(feature = "exec-mcp")]
        let rules = self.list.iter().map(Server::own_rules).collect();
        #[cfg(not(feature = "exec-mcp"))]
        let rules = Vec::new();
        rules
    }

    pub(crate) async fn shutdown(&self) {
        #[cfg(feature = "exec-mcp")]
        futures_util::future::join_all(self.list.iter().map(|known| known.server.shutdown())).await;
    }

    pub(crate) fn connection_use(&self) -> Vec<(String, ConnectionUse)> {
        let _ = self;
        #[cfg(feature = "exec-mcp")]
        let of_servers = self.list.iter().map(Server::connection_use).collect();
        #[cfg(not(feature = "exec-mcp"))]
        let of_servers = Vec::new();
        of_servers
    }

    pub(crate) fn roots_changed(&self, client: &ClientKey) {
        let _ = (self, client);
        #[cfg(feature = "exec-mcp")]
        self.list
            .iter()
            .for_each(|known| known.server.notify_roots_changed(client));
    }

    pub(crate) fn client_gone(&self, client: &ClientKey) {
        let _ = (self, client);
        #[cfg(feature = "exec-mcp")]
        self.list
            .iter()
            .for_each(|known| known.server.release_client(client));
    }
}

impl Servers {
    /// Returns `true` if this server exists and has no connections for single clients.
    pub(crate) fn is_shared(&self, name: &str) -> bool {
        let _ = (&self, name);
        #[cfg(feature = "exec-mcp")]
        {
            let mut settings = self.list.iter().map(|known| known.server.settings());
            let of_server = settings.find(|settings| settings.name == name);
            of_server.is_none_or(|settings| matches!(settings.isolation, Isolation::Auto | Isolation::Shared))
        }
        #[cfg(not(feature = "exec-mcp"))]
        true
    }
}

impl RetiredServers {
    /// Adds the servers of `before` that are not in `now`.
    pub(crate) fn add(&mut self, before: &Servers, now: &Servers) {
        let _ = (&self, before, now);
        #[cfg(feature = "exec-mcp")]
        {
            let stays = |known: &&Server| now.list.iter().any(|new| Arc::ptr_eq(&new.server, &known.server));
            let gone = before.list.iter().filter(|known| !stays(known));
            self.list.retain(|server| server.strong_count() > 0);
            self.list.extend(gone.map(|known| Arc::downgrade(&known.server)));
        }
    }

    /// Stops those that still have calls.
    pub(crate) async fn shutdown(self) {
        #[cfg(feature = "exec-mcp")]
        {
            let alive: Vec<_> = self.list.iter().filter_map(std::sync::Weak::upgrade).collect();
            futures_util::future::join_all(alive.iter().map(|server| server.shutdown())).await;
        }
    }
}

/// Creates every executor of this build. Parts of `before` with equal settings are reused while they run.
pub(crate) fn primitives(
    configuration: &Configuration,
    secrets: &Arc<dyn Secrets>,
    before: &LiveParts,
) -> Primitives {
    let mut primitives = Primitives::default();
    add_mock(&mut primitives);
    add_http(&mut primitives, configuration, secrets, before);
    add_mcp(&mut primitives, configuration, secrets, before);
    add_scripts(&mut primitives, configuration, secrets, before);
    add_containers(&mut primitives, configuration, secrets, before);
    add_endpoints(&mut primitives, configuration, secrets, before);
    primitives
}

#[cfg(feature = "exec-mock")]
fn add_mock(primitives: &mut Primitives) {
    let executor = tool_exec_mock::MockExecutor::new(Arc::new(|delay| Box::pin(tokio::time::sleep(delay))));
    primitives.executors.push(Arc::new(executor));
}

#[cfg(not(feature = "exec-mock"))]
fn add_mock(_: &mut Primitives) {}

#[cfg(feature = "exec-http")]
fn add_http(
    primitives: &mut Primitives,
    configuration: &Configuration,
    secrets: &Arc<dyn Secrets>,
    before: &LiveParts,
) {
    let defaults = &configuration.defaults;
    // With its connections.
    let known = before.http.as_ref().filter(|(known, _)| known == defaults);
    let executor = known.map_or_else(
        || {
            let options = tool_exec_http::HttpExecutorOptions::default()
                .with_timeout(defaults.attempt_timeout)
                .with_connect_timeout(defaults.connect_timeout)
                .with_max_response_bytes(defaults.max_result_bytes);
            let executor = tool_exec_http::HttpExecutor::new(options, secrets.clone());
            // Counters continue.
            Arc::new(match &before.http {
                Some((_, before)) => executor.with_traffic(before.traffic().clone()),
                None => executor,
            })
        },
        |(_, executor)| executor.clone(),
    );
    primitives.live.http = Some((defaults.clone(), executor.clone()));
    primitives.executors.push(executor);
}

#[cfg(not(feature = "exec-http"))]
fn add_http(_: &mut Primitives, _: &Configuration, _: &Arc<dyn Secrets>, _: &LiveParts) {}

#[cfg(feature = "exec-mcp")]
fn add_mcp(
    primitives: &mut Primitives,
    configuration: &Configuration,
    secrets: &Arc<dyn Secrets>,
    before: &LiveParts,
) {
    let most = configuration.defaults.max_concurrent_starts;
    // Existing and new servers share one queue of starts.
    let starts = before.servers.starts.clone();
    let starts = starts.unwrap_or_else(|| tool_exec_mcp::StartLimit::new(most));
    starts.set_max(most);
    primitives.live.servers.starts = Some(starts.clone());
    let disabled = configuration.servers.iter().filter(|spec| spec.disabled);
    primitives.live.servers.disabled_prefixes = disabled.map(tool_manifest::ServerSpec::prefix).collect();
    for spec in configuration.servers.iter().filter(|spec| !spec.disabled) {
        let settings = server_settings(spec, configuration);
        let known = before
            .servers
            .list
            .iter()
            .find(|known| *known.server.settings() == settings);
        let server = known.cloned().unwrap_or_else(|| {
            let server = tool_exec_mcp::McpServer::new(settings, secrets.clone());
            server.limit_starts(&starts);
            let source = server.source();
            Server { server, source }
        });
        primitives.sources.push(server.source.clone());
        primitives.live.servers.list.push(server);
    }
    let servers = primitives.live.servers.list.iter();
    let executor = tool_exec_mcp::McpExecutor::new(servers.map(|known| known.server.clone()));
    primitives.executors.push(Arc::new(executor));
}

#[cfg(not(feature = "exec-mcp"))]
fn add_mcp(_: &mut Primitives, _: &Configuration, _: &Arc<dyn Secrets>, _: &LiveParts) {}

#[cfg(feature = "exec-script")]
fn add_scripts(
    primitives: &mut Primitives,
    configuration: &Configuration,
    secrets: &Arc<dyn Secrets>,
    before: &LiveParts,
) {
    use tool_exec_script::{ScriptExecutor, ScriptLanguage};

    let defaults = &configuration.defaults;
    // With its sandboxes and installations.
    let known = before.scripts.as_ref().filter(|(known, _)| known == defaults);
    let runtime = known.map(|(_, runtime)| runtime.clone());
    let runtime = runtime.unwrap_or_else(|| crate::host::scripts::runtime(defaults, secrets));
    for language in ScriptLanguage::ALL {
        let executor = ScriptExecutor::new(*language, runtime.clone());
        primitives.executors.push(Arc::new(executor));
    }
    primitives.live.scripts = Some((defaults.clone(), runtime));
}

#[cfg(not(feature = "exec-script"))]
fn add_scripts(_: &mut Primitives, _: &Configuration, _: &Arc<dyn Secrets>, _: &LiveParts) {}

#[cfg(feature = "exec-container")]
fn add_containers(
    primitives: &mut Primitives,
    configuration: &Configuration,
    secrets: &Arc<dyn Secrets>,
    before: &LiveParts,
) {
    let defaults = &configuration.defaults;
    // With its engine and its containers.
    let known = before.containers.as_ref().filter(|(known, _)| known == defaults);
    let runtime = known.map(|(_, runtime)| runtime.clone());
    let runtime = runtime.unwrap_or_else(|| crate::host::containers::runtime(defaults, secrets));
    let executor = tool_exec_container::ContainerExecutor::new(runtime.clone());
    primitives.executors.push(Arc::new(executor));
    primitives.live.containers = Some((defaults.clone(), runtime));
}

#[cfg(not(feature = "exec-container"))]
fn add_containers(_: &mut Primitives, _: &Configuration, _: &Arc<dyn Secrets>, _: &LiveParts) {}

#[cfg(feature = "exec-endpoint")]
fn add_endpoints(
    primitives: &mut Primitives,
    configuration: &Configuration,
    secrets: &Arc<dyn Secrets>,
    before: &LiveParts,
) {
    let live = crate::host::endpoints::endpoints(configuration, secrets, &before.endpoints);
    let disabled = configuration.endpoints.iter().filter(|spec| spec.disabled);
    let prefixes = &mut primitives.live.servers.disabled_prefixes;
    prefixes.extend(disabled.map(tool_manifest::EndpointSpec::prefix));
    primitives
        .sources
        .extend(live.iter().map(|known| known.source.clone()));
    let endpoints = live.iter().map(|known| known.endpoint.clone());
    let executor = tool_exec_endpoint::EndpointExecutor::new(endpoints);
    primitives.executors.push(Arc::new(executor));
    primitives.live.endpoints = live;
}

#[cfg(not(feature = "exec-endpoint"))]
fn add_endpoints(_: &mut Primitives, _: &Configuration, _: &Arc<dyn Secrets>, _: &LiveParts) {}

#[cfg(feature = "exec-mcp")]
fn server_target(
    spec: &tool_manifest::ServerSpec,
    defaults: &tool_manifest::Defaults,
) -> tool_exec_mcp::ServerTarget {
    use tool_exec_mcp::{HttpTarget, HttpTransport, NETWORK_VARIABLES, StdioTarget};

    let sandbox = spec.sandbox.as_ref().map(server_sandbox);
    // A sandbox has a proxy of its own.
    let usual = match &sandbox {
        Some(sandbox) if sandbox.is_enforced() => &[],
        _ => NETWORK_VARIABLES,
    };
    match spec.transport.clone() {
        ServerTransport::Stdio {
            command,
            args,
            env,
            inherit_env,
            cwd,
        } => {
            let mut target = StdioTarget::new(command).args(args);
            target.inherit = inherit_env
                .or_else(|| defaults.inherit_env.clone())
                .unwrap_or_else(|| usual.iter().copied().map(str::to_owned).collect());
            (target.env, target.cwd, target.sandbox) = (env, cwd, sandbox.map(Box::new));
            target.into()
        }
        ServerTransport::Http {
            url,
            headers,
            transport,
        } => {
            let mut target = HttpTarget::new(url).transport(match transport {
                tool_manifest::HttpTransportSpec::Either => HttpTransport::Either,
                tool_manifest::HttpTransportSpec::Streamable => HttpTransport::Streamable,
                tool_manifest::HttpTransportSpec::Sse => HttpTransport::Sse,
                tool_manifest::HttpTransportSpec::WebSocket => HttpTransport::WebSocket,
            });
            target.headers = headers;
            target.into()
        }
    }
}

#[cfg(feature = "exec-mcp")]
fn server_sandbox(spec: &tool_manifest::SandboxSpec) -> tool_exec_mcp::ServerSandbox {
    use tool_exec_mcp::{ServerSandbox, ServerSandboxLevel};
    use tool_settings::SandboxChoice;

    let mut sandbox = ServerSandbox::default();
    sandbox.level = match spec.level {
        SandboxChoice::Bwrap => ServerSandboxLevel::Bwrap,
        SandboxChoice::Landlock => ServerSandboxLevel::Landlock,
        SandboxChoice::None => ServerSandboxLevel::Unsandboxed,
        _ => ServerSandboxLevel::Strongest,
    };
    sandbox.reads.clone_from(&spec.reads);
    sandbox.writes.clone_from(&spec.writes);
    sandbox.network = spec.network.hosts().to_vec();
    sandbox.cpu_time = spec.cpu_time;
    sandbox.memory = spec.memory;
    sandbox.processes = spec.processes;
    sandbox.open_files = spec.open_files;
    sandbox.disk = spec.disk;
    sandbox.refusal.clone_from(&spec.refusal);
    sandbox
}

#[cfg(feature = "exec-mcp")]
fn server_settings(
    spec: &tool_manifest::ServerSpec,
    configuration: &Configuration,
) -> tool_exec_mcp::ServerSettings {
    use tool_exec_mcp::{EraChoice, Isolation, KeyPlace, ServerSettings};
    use tool_manifest::EraSpec;
    use tool_runtime::IdempotencyKeyPlace;

    let defaults = &configuration.defaults;
    let target = server_target(spec, defaults);
    let mut settings = ServerSettings::new(spec.name.as_str(), target);
    // A limit of the whole call has precedence over one of an attempt.
    let call_timeout = spec.overrides.call_timeout.unwrap_or(std::time::Duration::MAX);
    settings.timeout = spec.timeout.map(|timeout| timeout.min(call_timeout));
    settings.start_timeout = spec.start_timeout.unwrap_or(defaults.start_timeout);
    settings.refresh_interval = spec.refresh_interval.unwrap_or(defaults.refresh_interval);
    let is_lazy = spec.start.unwrap_or(defaults.start) == tool_manifest::StartMode::Lazy && !spec.required;
    let is_program = matches!(spec.transport, ServerTransport::Stdio { .. });
    let idle_timeout = spec.idle_timeout.or(defaults.idle_timeout);
    settings.is_lazy = is_lazy;
    settings.idle_timeout = idle_timeout.filter(|limit| !limit.is_zero() && is_lazy && is_program);
    settings.keep_lists = spec.keep_lists.unwrap_or(defaults.keep_lists);
    settings.include = spec.include.clone();
    settings.exclude = spec.exclude.clone();
    settings.rename = spec.rename.clone();
    settings.prefix = spec.prefix();
    settings.max_message = defaults.max_result_bytes;
    settings.era = match spec.era {
        EraSpec::Auto => EraChoice::Auto,
        EraSpec::Legacy => EraChoice::Legacy,
        EraSpec::Modern => EraChoice::Modern,
        EraSpec::Newest => EraChoice::Newest,
    };
    settings.isolation = match spec.isolation {
        tool_manifest::IsolationSpec::Auto => Isolation::Auto,
        tool_manifest::IsolationSpec::Shared => Isolation::Shared,
        tool_manifest::IsolationSpec::Session => Isolation::Session,
        tool_manifest::IsolationSpec::Principal => Isolation::Principal,
    };
    set_health(&mut settings, &spec.health);
    settings.key_place = spec.overrides.get().cloned().map(|place| match place {
        IdempotencyKeyPlace::Meta(key) => KeyPlace::Meta(key),
        IdempotencyKeyPlace::Argument(name) => KeyPlace::Argument(name),
    });
    settings.definitions = spec.definitions.unwrap_or(configuration.policy.definitions);
    settings.list_limits = spec.list_limits.or(defaults.list_limits);
    settings.instructions = spec.instructions.clone();
    settings.max_connections = spec.max_connections.unwrap_or(settings.max_connections);
    settings
}

#[cfg(feature = "exec-mcp")]
fn set_health(settings: &mut tool_exec_mcp::ServerSettings, spec: &tool_manifest::ServerHealthSpec) {
    settings.check_interval = spec.interval;
    settings.check_at_start = spec.at_start;
    if let Some(tool) = spec.tool.clone() {
        settings.health_check = tool_exec_mcp::HealthCheck::tool(tool.name, tool.arguments);
    }
}

/// Returns the JSON Schema of a configuration, with the settings of every executor of this build.
#[must_use]
pub fn config_schema() -> raw_json::RawJson {
    let configuration = Configuration::default();
    let secrets: Arc<dyn Secrets> = Arc::new(tool_manifest::ProcessSecrets::of_process(Default::default()));
    let executors = primitives(&configuration, &secrets, &LiveParts::default()).executors;
    let schemas: Vec<_> = executors
        .iter()
        .map(|executor| (executor.kind(), executor.config_schema()))
        .collect();
    tool_manifest::config_schema(&schemas, crate::sections())
}

#[cfg(all(test, feature = "exec-mcp"))]
mod tests {
    use std::time::Duration;

    use tool_manifest::{LoadOptions, Syntax};

    use super::*;

    /// Tests that the limit of an attempt raises the limit of a call which the operator did not set.
    #[test]
    fn what_is_said_of_a_call_goes_before_what_is_said_of_an_attempt() {
        for (said, expected) in [
            ("timeout_ms: 5000", Some(5)),
            ("timeout_ms: 5000, call_timeout: 1s", Some(1)),
            ("timeout_ms: 5000, call_timeout: 9s", Some(5)),
            ("call_timeout: 1s", None),
        ] {
            let text = format!("servers: {{web: {{url: \"http://127.0.0.1:9/mcp\", {said}}}}}");
            let options = LoadOptions::new().text("configuration", Syntax::Yaml, text);
            let configuration = crate::manifest::load(&options).expect("usable").configuration;
            let settings = server_settings(&configuration.servers[0], &configuration);
            assert_eq!(settings.timeout, expected.map(Duration::from_secs), "{said}");
        }
    }

    #[test]
    fn variables_that_are_handed_down() {
        let inherited = |text: &str| {
            let options = LoadOptions::new().text("configuration", Syntax::Yaml, text);
            let configuration = crate::manifest::load(&options).expect("usable").configuration;
            match server_settings(&configuration.servers[0], &configuration).target {
                tool_exec_mcp::ServerTarget::Stdio(target) => target.inherit,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            inherited("servers: {a: {command: x}}"),
            tool_exec_mcp::NETWORK_VARIABLES
        );
        for (text, expected) in [
            ("servers: {a: {command: x, inherit_env: []}}", &[][..]),
            ("servers: {a: {command: x, inherit_env: [A]}}", &["A"]),
            ("defaults: {inherit_env: []}\nservers: {a: {command: x}}", &[]),
            ("servers: {a: {command: x, sandbox: auto}}", &[]),
            (
                "servers: {a: {command: x, sandbox: auto, inherit_env: [A]}}",
                &["A"],
            ),
            (
                "servers: {a: {command: x, sandbox: none}}",
                tool_exec_mcp::NETWORK_VARIABLES,
            ),
            (
                "defaults: {inherit_env: [A]}\nservers: {a: {command: x, inherit_env: [B]}}",
                &["B"],
            ),
        ] {
            assert_eq!(inherited(text), expected, "{text}");
        }
    }
}
