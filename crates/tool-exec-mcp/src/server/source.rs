use std::{sync::Arc, time::Duration};

use mcp_client::{ServerState, ServerStatus};
use tool_core::{
    BoxFuture, Catalogue, ClientGroup, ClientIdentity, Feature, ListWarning, OnUpdate, Source, SourceStatus,
    ToolError,
};

use super::McpServer;
use crate::{ServerTarget, errors::no_resource, listing::instructions_for_models};

impl McpServer {
    /// Returns the server as a source of tools, prompts and resources.
    #[must_use]
    pub fn source(self: &Arc<Self>) -> Arc<dyn Source> {
        Arc::new(ServerSource(self.clone()))
    }
}

/// View of a server as a source of tools.
struct ServerSource(Arc<McpServer>);

impl Source for ServerSource {
    fn name(&self) -> &str {
        &self.0.settings.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.0.catalogue.borrow().clone()
    }

    fn snapshot_for(&self, client: &ClientIdentity) -> Option<Arc<Catalogue>> {
        self.0.connections.lists_for(client)
    }

    fn refresh_for<'a>(&'a self, client: &'a ClientIdentity) -> BoxFuture<'a, ()> {
        Box::pin(self.0.connections.refresh_lists_for(client))
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.load_now())
    }

    fn load_in_background(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.load())
    }

    fn is_lazy(&self) -> bool {
        self.0.settings.is_lazy
    }

    fn recall(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.recall())
    }

    fn check(&self) -> BoxFuture<'_, Option<Result<(), ToolError>>> {
        Box::pin(self.0.check())
    }

    fn check_interval(&self) -> Option<Duration> {
        self.0.settings.check_interval
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut catalogue = self.0.catalogue.subscribe();
        Box::pin(async move {
            // The sender lives as long as the server, which this future borrows.
            let _ = catalogue.wait_for(|catalogue| catalogue.revision != seen).await;
        })
    }

    /// Returns `true` for every renamed tool as well, since any name could be one. A URI does not tell the server that
    /// has it.
    fn may_hold(&self, feature: Feature, name: &str) -> bool {
        let settings = &self.0.settings;
        if matches!(feature, Feature::Resource | Feature::ResourceTemplate) {
            return true;
        }
        let renamed = settings
            .rename
            .keys()
            .any(|own| settings.outward_tool_name(own) == name);
        // A prefix as long as a name may be is cut together with the name.
        let prefix = tool_core::outward_name(&settings.prefix);
        renamed || settings.prefix.is_empty() || settings.prefix.len() > 55 || name.starts_with(&prefix)
    }

    fn warnings(&self) -> Vec<ListWarning> {
        let server = &*self.0;
        let catalogue = server.catalogue.borrow().clone();
        server.warnings.warnings_for(&server.settings.name, &catalogue)
    }

    fn prefix(&self) -> Option<String> {
        Some(self.0.settings.outward_prefix())
    }

    fn is_renamed(&self, name: &str) -> bool {
        let settings = &self.0.settings;
        settings
            .rename
            .keys()
            .any(|own| settings.outward_tool_name(own) == name)
    }

    fn subscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.watch_idle();
        Box::pin(async move {
            match self.0.offers_resource(&self.snapshot(), uri) {
                true => self.0.connections.subscribe(uri).await,
                false => Err(no_resource(uri)),
            }
        })
    }

    fn unsubscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.0.connections.unsubscribe(uri))
    }

    fn subscribe_for<'a>(
        &'a self,
        uri: &'a str,
        client: &'a ClientIdentity,
    ) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move {
            let connections = &self.0.connections;
            let Some(pool_key) = connections.pool_key(client.clone()) else {
                return Ok(false);
            };
            let lists = self.snapshot_for(client).unwrap_or_else(|| self.snapshot());
            match self.0.offers_resource(&lists, uri) {
                true => connections.subscribe_for(uri, &pool_key).await,
                false => Err(no_resource(uri)),
            }
        })
    }

    fn end_unwatched(&self, grace: Duration, is_watched: &dyn Fn(&str, &ClientGroup) -> bool) {
        self.0.connections.unsubscribe_unwatched(grace, is_watched);
    }

    fn on_update(&self, tell: OnUpdate) {
        self.0.connections.notifier.add_listener(tell);
    }

    fn instructions(&self) -> Option<String> {
        let server = &*self.0;
        let instructions = match &server.settings.instructions {
            Some(instructions) => Some(instructions.clone()),
            None => {
                let running = server.status().and_then(|status| status.server);
                let original = match running {
                    Some(running) => running.instructions.clone(),
                    None => server.cached_instructions(),
                };
                instructions_for_models(&original?.string()?, server.settings.definitions)
            }
        };
        instructions.filter(|text: &String| !text.trim().is_empty())
    }

    fn status(&self) -> SourceStatus {
        // Asking the client also detects an end that was not reported yet.
        let client = self.0.status();
        let catalogue = self.0.catalogue.borrow().clone();
        let mut status = self.0.lifecycle.status(client.as_ref());
        if matches!(self.0.settings.target, ServerTarget::Refused(_)) {
            // Another try has the same result.
            status.retry_in = None;
        }
        status.n_tools = catalogue.tools.len();
        status.has_lists = catalogue.revision > 0;
        status.has_kept_lists = catalogue.is_kept;
        status.is_lazy = self.0.settings.is_lazy;
        status.is_checked_at_start = self.0.settings.check_at_start;
        status.detail = client.as_ref().and_then(detail);
        status.n_restarts = client.as_ref().map_or(0, |status| status.restarts);
        let level = self.0.sandbox().and_then(|sandbox| sandbox.level());
        status.sandbox = level.map(str::to_owned);
        status.start_took = self.0.attempts.borrow().took;
        status
    }
}

/// Returns the server's name, version and protocol revision, or the end of its stderr if it does not run.
fn detail(status: &ServerStatus) -> Option<String> {
    match (&status.state, &status.server) {
        (ServerState::Ready, Some(server)) => {
            let name = server.name().unwrap_or_default();
            let version = server.version().unwrap_or_default();
            Some(
                format!("{name} {version}, MCP {}", server.revision)
                    .trim_start()
                    .to_owned(),
            )
        }
        (ServerState::Ready, None) => None,
        _ => status
            .stderr
            .as_deref()
            .map(|stderr| stderr.trim().to_owned())
            .filter(|stderr| !stderr.is_empty()),
    }
}
