use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize},
    },
    time::Duration,
};

use mcp_client::{RequestOptions, StartLimit, State, Status, Upstream};
use parking_lot::Mutex as SyncMutex;
use tokio::{
    runtime::Handle,
    sync::{Mutex, watch},
};
use tool_core::{CallContext, Catalogue, ClientKey, Feature, Secrets, Source, ToolError, UriTemplate};

use super::{ServerLifecycle, source::ServerSource};
use crate::{
    ServerSettings,
    connection::{Checkout, Connections},
    errors::request_error,
    listing::{ClientLists, Freshness, ListWarnings, ServerListCache},
    notifications::Notifier,
};

/// An MCP server with its tools, prompts and resources: started when first needed, started again when it has failed.
pub struct McpServer {
    pub(super) settings: Arc<ServerSettings>,
    pub(super) secrets: Arc<dyn Secrets>,
    pub(super) connections: Arc<Connections>,
    pub(crate) lifecycle: Arc<ServerLifecycle>,
    pub(crate) catalogue: watch::Sender<Arc<Catalogue>>,
    /// Keeps its lists between runs, if they are kept.
    pub(crate) list_cache: OnceLock<ServerListCache>,
    pub(super) target_digest: OnceLock<[u8; 32]>,
    /// What came of the last try to list the tools; held while one runs, so that many callers share it.
    pub(super) load_state: Mutex<LoadState>,
    pub(super) freshness: SyncMutex<Freshness>,
    /// The server's own names of everything on its lists, also of what the configuration leaves out.
    pub(super) upstream_names: SyncMutex<HashMap<Feature, Vec<String>>>,
    pub(super) warnings: Arc<ListWarnings>,
    /// The number of tries that have ended.
    pub(super) attempts: watch::Sender<LoadAttempts>,
    /// How many wait for the lists, other than in the background.
    pub(super) n_waiting: AtomicUsize,
    /// Whether a task stops it when nobody uses it.
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

    /// The SHA-256 of the target in its settings.
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

    /// Has it share this limit with other servers, before it is used. One that has a limit keeps it.
    pub fn limit_starts(&self, starts: &StartLimit) {
        self.connections.start_limit.get_or_init(|| starts.clone());
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// It as a source of tools, prompts and resources.
    #[must_use]
    pub fn source(self: &Arc<Self>) -> Arc<dyn Source> {
        Arc::new(ServerSource(self.clone()))
    }

    /// How it is, in the client's own words; nothing while nobody has needed it.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        self.connections.shared_upstream().map(Upstream::status)
    }

    /// Ends it in order: closed input, SIGTERM, SIGKILL, the whole process tree reaped. It is not started again.
    pub async fn shutdown(&self) {
        tokio::join!(self.connections.shutdown(), self.finish_caching());
    }

    /// Takes note that the roots of a client have changed: the server is told, if it knows them.
    pub fn notify_roots_changed(&self, client: &ClientKey) {
        self.connections.notify_roots_changed(client);
    }

    /// Takes note that a client is gone: connections that were kept for it are closed unless something still runs
    /// there.
    pub fn release_client(&self, client: &ClientKey) {
        self.connections.release_client(client);
    }

    /// How many connections are kept for single clients now.
    #[must_use]
    pub fn n_dedicated_connections(&self) -> usize {
        self.connections.n_dedicated()
    }

    /// How many of them are in use.
    #[must_use]
    pub fn n_dedicated_connections_in_use(&self) -> usize {
        self.connections.n_dedicated_in_use()
    }

    /// How many requests wait for an answer on the connection that all share.
    #[must_use]
    pub fn n_requests(&self) -> usize {
        let shared = self.connections.shared_upstream().and_then(Upstream::ready);
        shared.map_or(0, |connection| connection.pending())
    }

    /// Whether the resource of this URI may be read, as far as `include` and `exclude` say; `catalogue` are the lists that
    /// the client sees.
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

    /// The server's own names of tools and prompts, and the URIs of resources and templates, also of those that the
    /// configuration leaves out. `None` unless all of its lists were read, in this run or an earlier one.
    #[must_use]
    pub fn upstream_names(&self) -> Option<Vec<(Feature, String)>> {
        let known = self.upstream_names.lock();
        let of = |feature| {
            let names = known.get(&feature)?.iter();
            Some(names.map(move |name| (feature, name.clone())))
        };
        let lists: Option<Vec<_>> = Feature::ALL.into_iter().map(of).collect();
        Some(lists?.into_iter().flatten().collect())
    }

    /// Its connections, for what they are reached with.
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The connection to use for a call.
    pub(crate) async fn checkout(self: &Arc<Self>, cx: &CallContext) -> Result<Checkout, ToolError> {
        self.watch_idle();
        self.connections.checkout(cx).await
    }

    /// Asks whether the server is there, unless nobody has needed it yet.
    pub(super) async fn check(self: &Arc<Self>) -> Option<Result<(), ToolError>> {
        // One that is left alone until it is needed is not needed for this.
        self.status()
            .filter(|status| status.state != State::NotStarted || !self.settings.is_lazy)?;
        let asked = async {
            let name = &self.settings.name;
            let (connection, _working) = self
                .connection()
                .await
                .map_err(|error| error.into_request_error(name))?;
            let options = RequestOptions::within(self.settings.start_timeout);
            let answered = self.settings.health_check.ask(&connection, options).await;
            answered.map_err(|error| request_error(name, error))
        };
        let asked = asked.await;
        // One that did not start when it was first needed does now.
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
    /// Ends the server in order when the last of its calls is over, where nobody did before.
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
