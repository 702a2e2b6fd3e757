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
    server::ServerLifecycle,
};

/// The connections to one server: one that is shared, and some that are kept for single clients.
pub(crate) struct Connections {
    pub(crate) settings: Arc<ServerSettings>,
    secrets: Arc<dyn Secrets>,
    endpoint: ResolvedEndpoint,
    /// The generation of the place that the server refused last.
    refused_generation: AtomicU64,
    /// What lists come from, and what most calls share.
    shared: OnceCell<Arc<ServerConnection>>,
    pub(crate) pool: Arc<ConnectionPool>,
    pub(crate) client_lists: Arc<ClientLists>,
    pub(crate) client_filters: Arc<ClientFilters>,
    /// How many connections were opened for single clients.
    pub(crate) n_dedicated_opened: AtomicU64,
    /// What all of them share: it is one server that is started.
    start_budget: StartBudget,
    /// What it shares with other servers, if they are started with it.
    pub(crate) start_limit: OnceLock<StartLimit>,
    pub(crate) notifier: Arc<Notifier>,
    /// What is told how the shared connection is.
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
        Self {
            settings,
            secrets,
            endpoint: ResolvedEndpoint::default(),
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

    /// The shared connection as far as anyone has needed it.
    pub(crate) fn shared_upstream(&self) -> Option<&Upstream> {
        self.shared.get().map(|connection| &connection.upstream)
    }

    /// Opens the shared connection if need be and returns its protocol connection.
    pub(crate) async fn open_shared(&self) -> Result<Connection, ConnectError> {
        let shared = self.shared().await?;
        shared.upstream.connection().await.map_err(ConnectError::Client)
    }

    /// Returns the shared connection as far as anyone has needed it.
    pub(crate) fn existing_shared(&self) -> Option<&Arc<ServerConnection>> {
        self.shared.get()
    }

    /// How many connections are kept for single clients.
    pub(crate) fn n_dedicated(&self) -> usize {
        self.pool.len()
    }

    /// How many of those are in use.
    pub(crate) fn n_dedicated_in_use(&self) -> usize {
        self.pool.n_in_use()
    }

    /// The shared connection, if it is there already and may be used.
    pub(super) fn usable_shared(&self) -> Option<&Arc<ServerConnection>> {
        self.shared.get().filter(|_| !self.is_stopped())
    }

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

    /// Where the server is: its references get their values once, and anew when the server refuses them.
    pub(crate) async fn endpoint(&self) -> Result<Endpoint, ConnectError> {
        let endpoint = self.endpoint.get(&self.settings.target, &*self.secrets).await;
        endpoint.map_err(ConnectError::Settings)
    }

    /// Which credentials a call that begins now is made with; to be told to [`Connections::report_refused_credentials`] with the error that
    /// it may come to.
    pub(crate) fn credential_generation(&self) -> u64 {
        self.endpoint.generation()
    }

    /// Takes note that the server refused the credentials of this generation.
    pub(crate) fn report_refused_credentials(&self, generation: u64) {
        self.refused_generation.fetch_max(generation, Ordering::SeqCst);
    }

    /// Returns `true` if there are other credentials than those that the server refused last. Connections are opened anew
    /// with them.
    pub(crate) async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        let refused = self.refused_generation.load(Ordering::SeqCst);
        let moved = |endpoint: &Endpoint| {
            for connection in self.shared.get().into_iter().chain(&self.pool.all()) {
                connection.upstream.move_to(endpoint.clone());
            }
        };
        self.endpoint
            .refresh(&self.settings.target, &*self.secrets, refused, refresh, moved)
            .await
    }

    /// How a connection is opened: in the era that the shared connection has found out, if it has.
    pub(crate) fn upstream_options(&self) -> UpstreamOptions {
        let known = self
            .shared_upstream()
            .and_then(|upstream| upstream.status().server);
        let connection = ConnectionOptions {
            client_name: "toolplane".to_owned(),
            era: self.settings.era,
            start_timeout: self.settings.start_timeout,
            max_message: self.settings.max_message,
            ..ConnectionOptions::default()
        };
        UpstreamOptions {
            connection,
            check: self
                .settings
                .check_at_start
                .then(|| self.settings.health_check.clone()),
            era: known.map(|server| server.era()),
            budget: Some(self.start_budget.clone()),
            starts: self.start_limit.get().cloned(),
            ..UpstreamOptions::default()
        }
    }

    /// The roots of a client have changed.
    pub(crate) fn notify_roots_changed(&self, client: &ClientKey) {
        for connection in self.pool.of_client(client) {
            connection.roots_changed();
        }
    }

    /// A client is gone: what is kept for it is closed unless something still runs there.
    pub(crate) fn release_client(&self, client: &ClientKey) {
        self.client_filters.remove_client(client);
        self.pool.close_idle_of(client);
    }

    /// Ends all of them in order. None is opened again.
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

    /// For who came between the two steps of [`Connections::shutdown`].
    pub(crate) async fn shutdown_if_stopped(&self, connection: &ServerConnection) {
        if self.is_stopped() {
            connection.upstream.shutdown().await;
        }
    }
}

/// What the shared connection declares when no call is ever made over it: everything, since there are servers that list
/// a tool only if the client can be asked what the tool asks for. What is asked there all the same is refused.
fn listing_only() -> Handlers {
    let refuse = |_| {
        let message = "nobody can be asked over a connection that only lists";
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
