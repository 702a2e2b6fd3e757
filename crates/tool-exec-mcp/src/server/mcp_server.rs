use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Duration,
};

use mcp_client::{RequestOptions, ServerState, ServerStatus, StartLimit, Upstream};
use parking_lot::Mutex as SyncMutex;
use tokio::{
    runtime::Handle,
    sync::{Mutex, watch},
};
use tool_core::{CallContext, Catalogue, ClientKey, Feature, Secrets, ToolError, UriTemplate};

use super::ServerLifecycle;
use crate::{
    ServerSettings,
    connection::{Checkout, Connections},
    errors::request_error,
    listing::{ClientLists, Freshness, ListWarnings, ServerListCache},
    notifications::Notifier,
    sandbox::SandboxState,
};

/// An MCP server with its tools, prompts and resources. It is started when first needed, and restarted after a failure.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use tool_core::{NoSecrets, Template};
/// use tool_exec_mcp::{McpServer, ServerSettings, StdioTarget};
///
/// let target = StdioTarget::new(Template::parse("github-mcp-server")?).args([Template::parse("stdio")?]);
/// let server = McpServer::new(ServerSettings::new("github", target), Arc::new(NoSecrets));
/// assert!(server.status().is_none(), "it is not started yet");
/// assert_eq!(server.source().name(), "github");
/// # Ok::<(), tool_core::TemplateError>(())
/// ```
pub struct McpServer {
    pub(super) settings: Arc<ServerSettings>,
    pub(super) secrets: Arc<dyn Secrets>,
    pub(super) connections: Arc<Connections>,
    pub(crate) lifecycle: Arc<ServerLifecycle>,
    pub(crate) catalogue: watch::Sender<Arc<Catalogue>>,
    /// Cache of its lists between runs.
    pub(crate) list_cache: OnceLock<ServerListCache>,
    pub(super) target_digest: OnceLock<[u8; 32]>,
    /// Result of the last attempt to read the lists. Locked during an attempt, so that many callers share it.
    pub(super) load_state: Mutex<LoadState>,
    pub(super) freshness: SyncMutex<Freshness>,
    /// The server's names and URIs of all entries of its lists, including those that the configuration excludes.
    pub(super) upstream_names: SyncMutex<HashMap<Feature, Vec<String>>>,
    pub(super) warnings: Arc<ListWarnings>,
    /// Attempts to read the lists that have ended.
    pub(super) attempts: watch::Sender<LoadAttempts>,
    /// Number of callers that wait for the lists, without those in the background.
    pub(super) n_waiting: AtomicUsize,
    /// `true` if a task stops the server after its idle timeout.
    pub(crate) is_idle_watched: AtomicBool,
}

#[derive(Default)]
pub(super) struct LoadState {
    pub(super) is_listed: bool,
}

#[derive(Default)]
pub(super) struct LoadAttempts {
    pub(super) n: u64,
    pub(super) took: Option<Duration>,
}

impl McpServer {
    pub(crate) fn secrets(&self) -> &dyn Secrets {
        &*self.secrets
    }

    /// SHA-256 of the target in the settings.
    pub(crate) fn target_digest(&self) -> [u8; 32] {
        *self.target_digest.get_or_init(|| self.settings.target_digest())
    }

    /// A server that is not started yet.
    #[must_use]
    pub fn new(settings: ServerSettings, secrets: Arc<dyn Secrets>) -> Arc<Self> {
        let settings = Arc::new(settings);
        let notifier: Arc<Notifier> = Arc::default();
        let lifecycle = ServerLifecycle::new(&settings.name, notifier.clone());
        let catalogue = watch::Sender::<Arc<Catalogue>>::default();
        let client_lists = ClientLists::new(&settings.name, catalogue.subscribe(), notifier.clone());
        let connections = Connections::new(
            settings.clone(),
            secrets.clone(),
            notifier,
            lifecycle.clone(),
            client_lists,
        );
        Arc::new(Self {
            connections: Arc::new(connections),
            secrets,
            settings,
            lifecycle,
            catalogue,
            list_cache: OnceLock::new(),
            target_digest: OnceLock::new(),
            load_state: Mutex::default(),
            freshness: SyncMutex::default(),
            upstream_names: SyncMutex::default(),
            warnings: Arc::default(),
            attempts: watch::Sender::default(),
            n_waiting: AtomicUsize::new(0),
            is_idle_watched: AtomicBool::new(false),
        })
    }

    /// Shares a limit of concurrent starts with other servers. Call it before the server is used. A server that has a
    /// limit keeps it.
    pub fn limit_starts(&self, starts: &StartLimit) {
        self.connections.start_limit.get_or_init(|| starts.clone());
    }

    /// The server's settings.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Status of the shared connection. Returns `None` if nobody has needed it yet.
    #[must_use]
    pub fn status(&self) -> Option<ServerStatus> {
        self.connections.shared_upstream().map(Upstream::status)
    }

    /// Shuts the server down in order: closed input, SIGTERM, SIGKILL, the whole process tree reaped. It is not started
    /// again.
    ///
    /// # Cancellation
    /// The server is not started again as soon as the future is polled. If it is dropped then, its programs are killed
    /// once no call uses them. Lists are still stored in the background.
    pub async fn shutdown(&self) {
        tokio::join!(self.connections.shutdown(), self.finish_caching());
    }

    /// Returns the state of the sandbox of the server's program, if it has one.
    pub(crate) fn sandbox(&self) -> Option<&Arc<SandboxState>> {
        self.connections.sandbox()
    }

    /// Notifies the server that the roots of a client have changed, if it knows them.
    pub fn notify_roots_changed(&self, client: &ClientKey) {
        self.connections.notify_roots_changed(client);
    }

    /// Releases a client that is gone: closes its dedicated connections unless a call or a task uses them.
    pub fn release_client(&self, client: &ClientKey) {
        self.connections.release_client(client);
    }

    /// Number of dedicated connections: those that serve single clients.
    #[must_use]
    pub fn n_dedicated_connections(&self) -> usize {
        self.connections.n_dedicated()
    }

    /// Number of dedicated connections in use.
    #[must_use]
    pub fn n_dedicated_connections_in_use(&self) -> usize {
        self.connections.n_dedicated_in_use()
    }

    /// Number of requests that wait for an answer on the shared connection.
    #[must_use]
    pub fn n_requests(&self) -> usize {
        let shared = self.connections.shared_upstream().and_then(Upstream::ready);
        shared.map_or(0, |connection| connection.pending())
    }

    /// Returns `true` if `include` and `exclude` allow the resource of this URI to be read. `catalogue` holds the lists
    /// that the client sees.
    pub(super) fn offers_resource(&self, catalogue: &Catalogue, uri: &str) -> bool {
        let of = |feature| {
            let others = catalogue
                .others
                .iter()
                .filter(move |other| other.feature == feature);
            others.filter_map(|other| other.uri.as_deref())
        };
        let mut templates = of(Feature::ResourceTemplate);
        of(Feature::Resource).any(|listed| listed == uri)
            || self.settings.offers_unlisted_uri(
                uri,
                templates.any(|template| UriTemplate::new(template).matches(uri)),
            )
    }

    /// The server's names of tools and prompts, and its URIs of resources and templates, including those that the
    /// configuration excludes. Returns `None` unless all of its lists were read, in this run or an earlier one.
    #[must_use]
    pub fn upstream_names(&self) -> Option<Vec<(Feature, String)>> {
        let names_by_feature = self.upstream_names.lock();
        let of = |feature| {
            let names = names_by_feature.get(&feature)?.iter();
            Some(names.map(move |name| (feature, name.clone())))
        };
        let lists: Option<Vec<_>> = Feature::ALL.iter().copied().map(of).collect();
        Some(lists?.into_iter().flatten().collect())
    }

    /// Its connections.
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Chooses the connection for a call.
    pub(crate) async fn checkout(self: &Arc<Self>, cx: &CallContext) -> Result<Checkout, ToolError> {
        self.watch_idle();
        self.connections.checkout(cx).await
    }

    /// Runs the health check, unless nobody has needed the server yet.
    pub(super) async fn check(self: &Arc<Self>) -> Option<Result<(), ToolError>> {
        // A lazy server is not started for this.
        self.status()
            .filter(|status| status.state != ServerState::NotStarted || !self.settings.is_lazy)?;
        let asked = async {
            let name = &self.settings.name;
            let (connection, _working) = self
                .connection()
                .await
                .map_err(|error| error.into_request_error(name))?;
            let options = RequestOptions::with_timeout(self.settings.start_timeout);
            let answered = self.settings.health_check.run(&connection, options).await;
            answered.map_err(|error| request_error(name, error))
        };
        let asked = asked.await;
        // A server that did not start when it was first needed is running now.
        if asked.is_ok() && self.catalogue.borrow().revision == 0 {
            self.load().await;
        }
        Some(asked)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.connections
            .shared_upstream()
            .and_then(Upstream::ready)
            .is_some()
    }
}

impl Drop for McpServer {
    /// Shuts the server down when the last of its calls has ended, unless it was shut down before.
    fn drop(&mut self) {
        if let Ok(runtime) = Handle::try_current() {
            let connections = self.connections.clone();
            runtime.spawn(async move { connections.shutdown().await });
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.settings.name)
            .finish_non_exhaustive()
    }
}
