//! MCP servers of a configuration: their executor and their sources, and what outlives a reload.

use std::sync::Arc;

#[cfg(feature = "exec-mcp")]
use tool_core::Source;
use tool_core::{ClientKey, Feature, Pattern, Secrets};
#[cfg(feature = "exec-mcp")]
use tool_exec_mcp::Isolation;
use tool_manifest::Configuration;
use tool_policy::Redactor;

#[cfg(feature = "exec-mcp")]
use super::server_settings::server_settings;
use super::{LiveParts, Primitives};
use crate::ConnectionUse;

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
    /// Names, including omitted entries; `None` until its lists are read, and without rules.
    pub(crate) names: Option<Vec<(Feature, String)>>,
}

/// Location of the cached lists of servers, if there is one.
#[derive(Default, Clone)]
pub(crate) struct ListCache {
    #[cfg(feature = "exec-mcp")]
    pub(crate) store: Option<Arc<dyn tool_exec_mcp::ListCache>>,
    /// `true` if lists are loaded as soon as their servers are made.
    #[cfg(feature = "exec-mcp")]
    pub(crate) is_loaded_early: bool,
}

impl ListCache {
    /// Returns the location behind a filter that removes known secrets from lists.
    #[cfg(feature = "exec-mcp")]
    pub(crate) fn without_secrets(self, redactor: &Redactor) -> Self {
        let store = self.store.clone().map(|inner| {
            let redactor = redactor.clone();
            Arc::new(crate::build::list_store::WithoutSecrets { inner, redactor }) as _
        });
        Self { store, ..self }
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
        let rules: Vec<_> = included.chain(excluded).chain(renamed).collect();
        ServerRules {
            server: settings.name.clone(),
            prefix: settings.prefix.clone(),
            names: (!rules.is_empty())
                .then(|| self.server.upstream_names())
                .flatten(),
            rules,
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
            if list_cache.is_loaded_early {
                tool_exec_mcp::McpServer::begin_recall(&keeping);
            }
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

#[cfg(feature = "exec-mcp")]
pub(super) fn add(
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
pub(super) fn add(_: &mut Primitives, _: &Configuration, _: &Arc<dyn Secrets>, _: &LiveParts) {}
