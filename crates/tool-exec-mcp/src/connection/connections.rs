use std::{
    future::ready,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use mcp_client::{
    Connection, ConnectionOptions, Endpoint, Handlers, OnStatus, StartBudget, StartLimit, Upstream,
    UpstreamOptions,
};
use mcp_wire::{RpcError, code};
use raw_json::RawJson;
use tokio::sync::OnceCell;
use tool_core::{ClientKey, Refresh, Secrets};

use super::{ConnectError, ServerConnection, pool::ConnectionPool, resolved_endpoint::ResolvedEndpoint};
use crate::{
    Isolation, ServerSettings,
    listing::ClientLists,
    notifications::{ClientFilters, Notifier, SharedFilter},
    sandbox::SandboxState,
    server::ServerLifecycle,
};

/// Connections to one server: a shared one, and dedicated ones for single clients.
pub(crate) struct Connections {
    pub(crate) settings: Arc<ServerSettings>,
    secrets: Arc<dyn Secrets>,
    endpoint: ResolvedEndpoint,
    /// Generation of the credentials that the server refused last.
    refused_generation: AtomicU64,
    /// Connection that lists come from and that most calls share.
    shared: OnceCell<Arc<ServerConnection>>,
    pub(crate) pool: Arc<ConnectionPool>,
    pub(crate) client_lists: Arc<ClientLists>,
    pub(crate) client_filters: Arc<ClientFilters>,
    /// Number of dedicated connections opened so far.
    pub(crate) n_dedicated_opened: AtomicU64,
    /// Budget of starts that all connections share: they start one and the same server.
    start_budget: StartBudget,
    /// Limit of concurrent starts that is shared with other servers.
    pub(crate) start_limit: OnceLock<StartLimit>,
    pub(crate) notifier: Arc<Notifier>,
    /// Records the state of the shared connection.
    lifecycle: Arc<ServerLifecycle>,
    pub(crate) shared_filter: SharedFilter,
    is_stopped: AtomicBool,
}

impl Connections {
    pub(crate) fn new(
        settings: Arc<ServerSettings>,
        secrets: Arc<dyn Secrets>,
        notifier: Arc<Notifier>,
        lifecycle: Arc<ServerLifecycle>,
        client_lists: Arc<ClientLists>,
    ) -> Self {
        let client_filters = Arc::<ClientFilters>::default();
        let pool = ConnectionPool::new(&settings.name, &client_filters);
        let sandbox = settings.target.sandbox().cloned();
        let sandbox = sandbox.map(|sandbox| SandboxState::new(&settings.name, sandbox, notifier.clone()));
        Self {
            settings,
            secrets,
            endpoint: ResolvedEndpoint::new(sandbox),
            refused_generation: AtomicU64::new(0),
            shared: OnceCell::new(),
            pool,
            client_lists,
            client_filters,
            n_dedicated_opened: AtomicU64::new(0),
            start_budget: StartBudget::default(),
            start_limit: OnceLock::new(),
            notifier,
            lifecycle,
            shared_filter: SharedFilter::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Returns the upstream of the shared connection, or `None` if nobody has needed it yet.
    pub(crate) fn shared_upstream(&self) -> Option<&Upstream> {
        self.shared.get().map(|connection| &connection.upstream)
    }

    /// Opens the shared connection if need be, and returns its protocol connection.
    pub(crate) async fn open_shared(&self) -> Result<Connection, ConnectError> {
        let shared = self.shared().await?;
        shared.upstream.connection().await.map_err(ConnectError::Client)
    }

    /// Returns the shared connection, or `None` if nobody has needed it yet.
    pub(crate) fn existing_shared(&self) -> Option<&Arc<ServerConnection>> {
        self.shared.get()
    }

    /// Number of dedicated connections.
    pub(crate) fn n_dedicated(&self) -> usize {
        self.pool.len()
    }

    /// Number of dedicated connections in use.
    pub(crate) fn n_dedicated_in_use(&self) -> usize {
        self.pool.n_in_use()
    }

    /// Returns the shared connection if it exists and the server was not shut down.
    pub(super) fn usable_shared(&self) -> Option<&Arc<ServerConnection>> {
        self.shared.get().filter(|_| !self.is_stopped())
    }

    /// Returns the shared connection, which is created if need be and opened by its first use.
    pub(crate) async fn shared(&self) -> Result<&Arc<ServerConnection>, ConnectError> {
        let connection = match self.shared.get() {
            Some(connection) => connection,
            None => {
                let endpoint = self.endpoint().await?;
                let open = || async {
                    let mut options = self.upstream_options();
                    if matches!(self.settings.isolation, Isolation::Session | Isolation::Principal) {
                        options.connection.handlers = listing_only();
                    }
                    let lifecycle = self.lifecycle.clone();
                    options.on_status =
                        Some(OnStatus::new(move |status| lifecycle.set_client_status(status)));
                    ServerConnection::shared(endpoint.clone(), options, self.notifier.clone())
                };
                self.shared.get_or_init(open).await
            }
        };
        self.shutdown_if_stopped(connection).await;
        Ok(connection)
    }

    /// Returns the endpoint. Its references are resolved once, and again when the server refuses the credentials.
    pub(crate) async fn endpoint(&self) -> Result<Endpoint, ConnectError> {
        let endpoint = self.endpoint.get(&self.settings.target, &*self.secrets).await;
        endpoint.map_err(ConnectError::Settings)
    }

    /// Returns the state of the sandbox of the server's program, if it has one.
    pub(crate) fn sandbox(&self) -> Option<&Arc<SandboxState>> {
        self.endpoint.sandbox()
    }

    /// Returns the generation of the credentials that a call made now uses. Pass it to
    /// [`Connections::report_refused_credentials`] if the call fails by them.
    pub(crate) fn credential_generation(&self) -> u64 {
        self.endpoint.generation()
    }

    /// Records that the server refused the credentials of this generation.
    pub(crate) fn report_refused_credentials(&self, generation: u64) {
        self.refused_generation.fetch_max(generation, Ordering::SeqCst);
    }

    /// Returns `true` if there are other credentials than those that the server refused last. Connections are then
    /// reopened with them.
    pub(crate) async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        let refused = self.refused_generation.load(Ordering::SeqCst);
        let moved = |endpoint: &Endpoint| {
            for connection in self.shared.get().into_iter().chain(&self.pool.all()) {
                connection.upstream.set_endpoint(endpoint.clone());
            }
        };
        self.endpoint
            .refresh(&self.settings.target, &*self.secrets, refused, refresh, moved)
            .await
    }

    /// Returns the options for opening a connection, with the era that the shared connection has detected.
    pub(crate) fn upstream_options(&self) -> UpstreamOptions {
        let known = self
            .shared_upstream()
            .and_then(|upstream| upstream.status().server);
        let connection = ConnectionOptions::default()
            .client("toolplane", env!("CARGO_PKG_VERSION"))
            .era(self.settings.era)
            .start_timeout(self.settings.start_timeout)
            .max_message(self.settings.max_message);
        let mut options = UpstreamOptions::default()
            .connection(connection)
            .budget(self.start_budget.clone());
        options.check = self
            .settings
            .check_at_start
            .then(|| self.settings.health_check.clone());
        options.era = known.map(|server| server.era());
        options.starts = self.start_limit.get().cloned();
        options
    }

    /// Has the roots of a client requested again, and the server notified.
    pub(crate) fn notify_roots_changed(&self, client: &ClientKey) {
        for connection in self.pool.for_client(client) {
            connection.mark_roots_changed();
        }
    }

    /// Releases a client that is gone: closes its idle connections and ends its subscriptions.
    pub(crate) fn release_client(&self, client: &ClientKey) {
        self.client_filters.remove_client(client);
        self.pool.close_idle_of(client);
    }

    /// Shuts down all connections in order. None is opened again.
    pub(crate) async fn shutdown(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        let shared = async {
            if let Some(connection) = self.shared.get() {
                connection.upstream.shutdown().await;
            }
        };
        tokio::join!(shared, self.pool.shutdown());
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Shuts down a connection that was opened between the two steps of [`Connections::shutdown`].
    pub(crate) async fn shutdown_if_stopped(&self, connection: &ServerConnection) {
        if self.is_stopped() {
            connection.upstream.shutdown().await;
        }
    }
}

/// Handlers of a shared connection over which no call is ever made. They declare every capability, since there are
/// servers that list a tool only if the client can be asked what the tool asks for. They refuse every request.
fn listing_only() -> Handlers {
    let refuse = |_| {
        let message = "no client can be asked over a connection that only lists";
        ready(Err(RpcError::new(code::INVALID_REQUEST, message)))
    };
    let declared = |members: &[&str]| {
        let members: Vec<_> = members.iter().map(|key| (*key, RawJson::object())).collect();
        RawJson::from_members(&members)
    };
    Handlers::new()
        .elicitation(declared(&["form", "url"]), refuse)
        .sampling(declared(&["context", "tools"]), refuse)
        .roots(declared(&[]), refuse)
}
