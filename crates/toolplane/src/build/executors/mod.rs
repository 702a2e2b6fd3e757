//! Executors of this build, and their setup from a configuration.

#[cfg(feature = "exec-mcp")]
mod server_settings;
mod servers;

use std::sync::Arc;

use tool_core::{Executor, Secrets, Source};
use tool_manifest::Configuration;

pub(crate) use self::servers::{ListCache, RetiredServers, ServerRules, Servers};
use crate::{CallbackDelivery, HttpUse, InvalidCallbackUrl, host::extensions::HostExtensions};

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
    http: Option<LiveHttp>,
    #[cfg(feature = "exec-script")]
    scripts: Option<(tool_manifest::Defaults, tool_exec_script::ScriptRuntime)>,
    #[cfg(feature = "exec-container")]
    containers: Option<(tool_manifest::Defaults, tool_exec_container::ContainerRuntime)>,
    #[cfg(feature = "exec-endpoint")]
    endpoints: Vec<crate::host::endpoints::LiveEndpoint>,
}

/// Executor of HTTP tools, and the settings that it was made with.
#[cfg(feature = "exec-http")]
struct LiveHttp {
    defaults: tool_manifest::Defaults,
    has_callbacks: bool,
    /// Hosts that tools of agents may reach.
    hosts: tool_settings::NetworkHosts,
    executor: Arc<tool_exec_http::HttpExecutor>,
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
        if let Some(http) = &self.http {
            let traffic = http.executor.traffic();
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

    /// Sets the URL below which callbacks are received.
    pub(crate) fn receive_callbacks(&self, base: Option<&str>) -> Result<(), InvalidCallbackUrl> {
        #[cfg(feature = "exec-http")]
        if let Some(http) = &self.http {
            let received = http.executor.operations().receive_callbacks(base);
            return received.map_err(|_| InvalidCallbackUrl);
        }
        let _ = (self, base);
        Ok(())
    }

    /// Returns `true` if a callback with this token is awaited.
    pub(crate) fn awaits_callback(&self, token: &str) -> bool {
        #[cfg(feature = "exec-http")]
        if let Some(http) = &self.http {
            return http.executor.operations().awaits(token);
        }
        let _ = (self, token);
        false
    }

    /// Delivers what an API sent to a callback URL.
    pub(crate) fn deliver_callback(&self, token: &str, body: Vec<u8>) -> CallbackDelivery {
        #[cfg(feature = "exec-http")]
        if let Some(http) = &self.http {
            return match http.executor.operations().deliver(token, body) {
                Ok(()) => CallbackDelivery::Delivered,
                Err(tool_exec_http::CallbackError::NotJson) => CallbackDelivery::NotJson,
                Err(_) => CallbackDelivery::Unknown,
            };
        }
        let _ = (self, token, body);
        CallbackDelivery::Unknown
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
    servers::add(&mut primitives, configuration, secrets, before);
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
    let has_callbacks = configuration.gateway.public_url.is_some();
    // With its connections.
    let known = before.http.as_ref();
    let hosts = &configuration.authoring.hosts;
    let known = known.filter(|known| {
        known.defaults == *defaults && known.has_callbacks == has_callbacks && known.hosts == *hosts
    });
    let executor = known.map_or_else(
        || {
            let options = tool_exec_http::HttpExecutorOptions::default()
                .with_timeout(defaults.attempt_timeout)
                .with_connect_timeout(defaults.connect_timeout)
                .with_max_response_bytes(defaults.max_result_bytes)
                .with_allow_private_networks(internal(hosts))
                .with_callbacks(has_callbacks);
            let executor = tool_exec_http::HttpExecutor::new(options, secrets.clone());
            // Counters and operations continue.
            Arc::new(match &before.http {
                Some(before) => executor
                    .with_traffic(before.executor.traffic().clone())
                    .with_operations(before.executor.operations().clone()),
                None => executor,
            })
        },
        |known| known.executor.clone(),
    );
    primitives.live.http = Some(LiveHttp {
        defaults: defaults.clone(),
        has_callbacks,
        hosts: hosts.clone(),
        executor: executor.clone(),
    });
    primitives.executors.push(executor);
}

/// Returns the addresses of private networks and of this machine among the hosts that tools of agents may reach. The operator
/// wrote them, so that any tool may.
#[cfg(feature = "exec-http")]
fn internal(hosts: &tool_settings::NetworkHosts) -> Vec<tool_exec_http::Network> {
    let internal = hosts
        .hosts()
        .iter()
        .filter(|host| tool_settings::NetworkHosts::is_internal(host));
    let without_port = internal.map(|host| match host.parse::<std::net::IpAddr>() {
        Ok(_) => host.as_str(),
        Err(_) => host.rsplit_once(':').map_or(host.as_str(), |(host, _)| host),
    });
    without_port.filter_map(|host| host.parse().ok()).collect()
}

#[cfg(not(feature = "exec-http"))]
fn add_http(_: &mut Primitives, _: &Configuration, _: &Arc<dyn Secrets>, _: &LiveParts) {}

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

/// Returns the JSON Schema of a configuration, with the settings of every executor of this build.
#[must_use]
pub fn config_schema() -> raw_json::RawJson {
    let configuration = Configuration::default();
    let secrets: Arc<dyn Secrets> = Arc::new(tool_manifest::ProcessSecrets::of_process(Default::default()));
    let primitives = primitives(&configuration, &secrets, &LiveParts::default());
    let mut executors = primitives.executors;
    executors.extend(HostExtensions::default().callers());
    let schemas: Vec<_> = executors
        .iter()
        .map(|executor| (executor.kind(), executor.config_schema()))
        .collect();
    tool_manifest::config_schema(&schemas, crate::sections())
}
