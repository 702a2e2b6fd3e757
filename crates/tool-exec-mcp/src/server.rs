use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_client::{ChangeCounts, ListResult, RequestOptions, StartLimit, ServerState, ServerStatus, Upstream};
use parking_lot::{Mutex as SyncMutex, MutexGuard};
use raw_json::RawJson;
use tokio::{
    runtime::Handle,
    sync::{Mutex, watch},
    time::Instant,
};
use tool_core::{
    BoxFuture, CallContext, Catalogue, ClientGroup, ClientIdentity, ClientKey, Feature, ListWarning,
    OnUpdate, Refresh, Secrets, Source, SourceStatus, ToolError, UriTemplate,
};

use crate::{
    ServerSettings,
    calls::Working,
    connections::{Checkout, Connections, Unreachable},
    definitions,
    describe::{describe, replaced},
    fault::{no_resource, request_error},
    freshness::Freshness,
    kept_lists::ListKeeper,
    life::Life,
    list_warnings::ListWarnings,
    listing,
    own_lists::OwnLists,
    pace::{Pace, at},
    updates::Updates,
};

/// How long the first list of tools waits for the lists beside it, which are tried again without hurry.
const LONGEST_BESIDE: Duration = Duration::from_secs(3);

/// An MCP server with its tools, prompts and resources: started when first needed, started again when it has failed.
pub struct McpServer {
    settings: Arc<ServerSettings>,
    secrets: Arc<dyn Secrets>,
    connections: Arc<Connections>,
    pub(crate) life: Arc<Life>,
    pub(crate) catalogue: watch::Sender<Arc<Catalogue>>,
    /// Keeps its lists between runs, if they are kept.
    pub(crate) keeper: OnceLock<ListKeeper>,
    target_digest: OnceLock<[u8; 32]>,
    /// What came of the last try to list the tools; held while one runs, so that many callers share it.
    listing: Mutex<Listing>,
    freshness: SyncMutex<Freshness>,
    /// The server's own names of everything on its lists, also of what the configuration leaves out.
    own_names: SyncMutex<HashMap<Feature, Vec<String>>>,
    warnings: Arc<ListWarnings>,
    /// The number of tries that have ended.
    tries: watch::Sender<Tries>,
    /// How many wait for the lists, other than in the background.
    n_waiting: AtomicUsize,
    /// Whether a task stops it when nobody uses it.
    pub(crate) is_idle_watched: AtomicBool,
}

#[derive(Default)]
struct Listing {
    listed: bool,
}

#[derive(Default)]
struct Tries {
    n: u64,
    took: Option<Duration>,
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
        let updates: Arc<Updates> = Arc::default();
        let life = Life::new(&settings.name, updates.clone());
        let catalogue = watch::Sender::<Arc<Catalogue>>::default();
        let own_lists = OwnLists::new(&settings.name, catalogue.subscribe(), updates.clone());
        let connections = Connections::new(
            settings.clone(),
            secrets.clone(),
            updates,
            life.clone(),
            own_lists,
        );
        Arc::new(Self {
            connections: Arc::new(connections),
            secrets,
            settings,
            life,
            catalogue,
            keeper: OnceLock::new(),
            target_digest: OnceLock::new(),
            listing: Mutex::default(),
            freshness: SyncMutex::default(),
            own_names: SyncMutex::default(),
            warnings: Arc::default(),
            tries: watch::Sender::default(),
            n_waiting: AtomicUsize::new(0),
            is_idle_watched: AtomicBool::new(false),
        })
    }

    /// Has it share this limit with other servers, before it is used. One that has a limit keeps it.
    pub fn limit_starts(&self, starts: &StartLimit) {
        self.connections.starts.get_or_init(|| starts.clone());
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
    pub fn status(&self) -> Option<ServerStatus> {
        self.connections.known().map(Upstream::status)
    }

    /// Ends it in order: closed input, SIGTERM, SIGKILL, the whole process tree reaped. It is not started again.
    pub async fn shutdown(&self) {
        tokio::join!(self.connections.shutdown(), self.finish_keeping());
    }

    /// Takes note that the roots of a client have changed: the server is told, if it knows them.
    pub fn notify_roots_changed(&self, client: &ClientKey) {
        self.connections.roots_changed(client);
    }

    /// Takes note that a client is gone: connections that were kept for it are closed unless something still runs
    /// there.
    pub fn release_client(&self, client: &ClientKey) {
        self.connections.client_gone(client);
    }

    /// How many connections are kept for single clients now.
    #[must_use]
    pub fn n_dedicated_connections(&self) -> usize {
        self.connections.n_own()
    }

    /// How many of them are in use.
    #[must_use]
    pub fn n_dedicated_connections_in_use(&self) -> usize {
        self.connections.n_own_used()
    }

    /// How many requests wait for an answer on the connection that all share.
    #[must_use]
    pub fn n_requests(&self) -> usize {
        let shared = self.connections.known().and_then(Upstream::ready);
        shared.map_or(0, |connection| connection.pending())
    }

    /// Whether the resource of this URI may be read, as far as `include` and `exclude` say; `catalogue` are the lists that
    /// the client sees.
    fn takes_resource(&self, catalogue: &Catalogue, uri: &str) -> bool {
        let of = |feature| {
            let others = catalogue
                .others
                .iter()
                .filter(move |other| other.feature == feature);
            others.filter_map(|other| other.uri.as_deref())
        };
        let mut templates = of(Feature::ResourceTemplate);
        of(Feature::Resource).any(|listed| listed == uri)
            || self.settings.takes_unlisted(
                uri,
                templates.any(|template| UriTemplate::new(template).matches(uri)),
            )
    }

    /// The server's own names of tools and prompts, and the URIs of resources and templates, also of those that the
    /// configuration leaves out. `None` unless all of its lists were read, in this run or an earlier one.
    #[must_use]
    pub fn upstream_names(&self) -> Option<Vec<(Feature, String)>> {
        let known = self.own_names.lock();
        let of = |feature| {
            let names = known.get(&feature)?.iter();
            Some(names.map(move |name| (feature, name.clone())))
        };
        let lists: Option<Vec<_>> = Feature::ALL.into_iter().map(of).collect();
        Some(lists?.into_iter().flatten().collect())
    }

    /// Notes the names on a list.
    pub(crate) fn note_names(&self, feature: Feature, entries: &[RawJson]) {
        let key = match feature {
            Feature::Tool | Feature::Prompt => "name",
            Feature::Resource => "uri",
            _ => "uriTemplate",
        };
        let names = entries.iter().filter_map(|entry| entry.get(key)?.string());
        let mut known = self.own_names.lock();
        known.insert(feature, names.collect());
    }

    /// Its connections, for what they are reached with.
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The connection to use for a call.
    pub(crate) async fn connection_for(self: &Arc<Self>, cx: &CallContext) -> Result<Checkout, ToolError> {
        self.watch_idle();
        self.connections.checkout(cx).await
    }

    /// The connection that lists come from, and the mark of who uses it.
    async fn connection(&self) -> Result<(mcp_client::Connection, Working), Unreachable> {
        let line = self.connections.line().await?;
        let working = line.calls.work();
        if self.n_waiting.load(Ordering::SeqCst) == 0 {
            line.upstream.start_in_background();
        }
        // Whoever comes later hurries the start itself.
        let connection = match self.n_waiting.load(Ordering::SeqCst) {
            0 => line.upstream.connection_in_background().await,
            _ => line.upstream.connection().await,
        };
        Ok((connection.map_err(Unreachable::Client)?, working))
    }

    /// Asks whether the server is there, unless nobody has needed it yet.
    async fn check(self: &Arc<Self>) -> Option<Result<(), ToolError>> {
        // One that is left alone until it is needed is not needed for this.
        self.status()
            .filter(|status| status.state != ServerState::NotStarted || !self.settings.is_lazy)?;
        let asked = async {
            let name = &self.settings.name;
            let (connection, _working) = self.connection().await.map_err(|error| error.of_request(name))?;
            let options = RequestOptions::with_timeout(self.settings.start_timeout);
            let answered = self.settings.health_check.run(&connection, options).await;
            answered.map_err(|error| request_error(name, error))
        };
        let asked = asked.await;
        // One that did not start when it was first needed does now.
        if asked.is_ok() && self.catalogue.borrow().revision == 0 {
            self.load().await;
        }
        Some(asked)
    }

    /// Reads the lists for somebody who waits for them.
    async fn load_now(self: &Arc<Self>) {
        let _waiting = Waiting::new(self);
        if let Some(upstream) = self.connections.known() {
            upstream.prioritize_start();
        }
        self.load().await;
    }

    /// Reads the lists unless that was done. Callers that come while a try runs share what comes of it, and so do those
    /// who come soon after one that failed.
    pub(crate) async fn load(self: &Arc<Self>) {
        let tries = self.tries.borrow().n;
        let mut listing = self.listing.lock().await;
        if listing.listed || self.tries.borrow().n != tries || self.life.rest().is_some() {
            return;
        }
        self.watch_idle();
        let start = Instant::now();
        let begun = self.life.begin_listing();
        let read = match self.list(&Feature::ALL, LONGEST_BESIDE).await {
            Ok(unread) => {
                listing.listed = true;
                // The first good list is followed from then on.
                tokio::spawn(follow(Arc::downgrade(self), unread));
                Ok(())
            }
            Err(reason) => Err(reason),
        };
        self.life.listed(read);
        drop(begun);
        self.tries.send_modify(|tries| {
            *tries = Tries {
                n: tries.n + 1,
                took: Some(start.elapsed()),
            };
        });
    }

    /// Reads these lists and puts them in the place of those before. Returns which could not be read and so are as
    /// they were: what a server has beside tools is worth no failure of its tools, and no wait for more than `beside`.
    ///
    /// # Errors
    /// When the server is not there, or the list of tools cannot be read.
    async fn list(&self, features: &[Feature], beside: Duration) -> Result<Vec<Feature>, String> {
        let generation = self.connections.generation();
        let connection = match self.connection().await {
            Err(error) if error.is_refusal() => {
                self.connections.refused(generation);
                match self.connections.refresh_credentials(Refresh::Force).await {
                    true => self.connection().await,
                    false => Err(error),
                }
            }
            connection => connection,
        };
        let (connection, _working) = connection.map_err(|error| error.to_string())?;
        let (mut lists, mut raw, mut unread) = (HashMap::new(), HashMap::new(), Vec::new());
        self.warnings.greet(connection.server());
        let limit = |feature| match feature {
            Feature::Tool => self.settings.start_timeout,
            _ => self.settings.start_timeout.min(beside),
        };
        let limits = &self.settings.list_limits;
        for (feature, list) in listing::read(&connection, features, limits, limit).await {
            match list {
                Ok(ListResult {
                    entries, ttl, truncation: cut, ..
                }) => {
                    let server = connection.server();
                    self.freshness()
                        .read(server, feature, ttl, self.settings.refresh_interval);
                    let entries = listing::without_secrets(entries, &*self.secrets);
                    self.note_names(feature, &entries);
                    let mut described = describe(&self.settings, server, feature, &entries);
                    described
                        .warnings
                        .extend(cut.map(|cut| listing::cut_warning(feature, cut, limits)));
                    lists.insert(feature, described);
                    raw.insert(feature, entries);
                }
                Err(reason) if feature == Feature::Tool => {
                    return Err(format!("it did not list its tools: {reason}"));
                }
                Err(reason) => {
                    let (server, what) = (&self.settings.name, feature.as_str());
                    let reason = self.secrets.hide_in_text(&reason);
                    tracing::warn!(server, "the list of {what}s cannot be read: {reason}");
                    unread.push(feature);
                }
            }
        }
        self.catalogue.send_if_modified(|catalogue| {
            let now = replaced(catalogue, lists);
            let same = (&now.tools, &now.others, &now.rejected)
                == (&catalogue.tools, &catalogue.others, &catalogue.rejected)
                && now.warnings == catalogue.warnings;
            let changed = !same || catalogue.revision == 0 || catalogue.is_kept;
            if changed {
                *catalogue = Arc::new(now);
            }
            changed
        });
        self.keep(connection.server(), raw);
        self.scan();
        Ok(unread)
    }

    /// Scans the lists where that holds nobody up, and logs what is suspicious.
    fn scan(&self) {
        let (warnings, name) = (Arc::clone(&self.warnings), self.settings.name.clone());
        let catalogue = self.catalogue.borrow().clone();
        tokio::task::spawn_blocking(move || warnings.of(&name, &catalogue));
    }

    /// Reads the lists that are due. A server that does not run is not started for one that could not be read before: it
    /// tells of a change when it is started again.
    async fn read_due(&self, pace: &mut Pace) {
        if !self.is_ready() {
            pace.give_up();
        }
        let mut due = pace.take_due(Instant::now());
        for feature in self.stale() {
            if !due.contains(&feature) {
                due.push(feature);
            }
        }
        if due.is_empty() {
            return;
        }
        let unread = self.list(&due, Duration::MAX).await.unwrap_or_else(|reason| {
            let reason = self.secrets.hide_in_text(&reason);
            tracing::warn!(
                server = self.settings.name,
                "the list of tools may have changed and cannot be read: {reason}"
            );
            due.clone()
        });
        pace.tried(&due, &unread, Instant::now());
    }

    fn freshness(&self) -> MutexGuard<'_, Freshness> {
        self.freshness.lock()
    }

    /// The lists that have been left alone for long enough. A server that does not run is not started for them: it tells of
    /// a change when it is started again.
    fn stale(&self) -> Vec<Feature> {
        let mut freshness = self.freshness();
        if !self.is_ready() {
            freshness.clear();
        }
        freshness.take_due(Instant::now())
    }

    fn is_ready(&self) -> bool {
        self.connections.known().and_then(Upstream::ready).is_some()
    }
}

/// Somebody who waits for the lists.
struct Waiting<'a>(&'a McpServer);

impl<'a> Waiting<'a> {
    fn new(server: &'a McpServer) -> Self {
        server.n_waiting.fetch_add(1, Ordering::SeqCst);
        Self(server)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.n_waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads lists again whenever the server says that they changed, at the [`Pace`] of each, and when their time is over, for
/// as long as the server is held by anyone else. `unread` are those that could not be read at first.
async fn follow(server: Weak<McpServer>, unread: Vec<Feature>) {
    let Some(mut changes) = server
        .upgrade()
        .and_then(|server| Some(server.connections.known()?.changes()))
    else {
        return;
    };
    // Counted from the start of the server: what changed while the first lists were read counts as well.
    let mut seen = ChangeCounts::default();
    let mut pace = Pace::new(Instant::now());
    for feature in unread {
        pace.failed(feature, Instant::now());
    }
    loop {
        let now = *changes.borrow_and_update();
        for feature in listing::changed(seen, now) {
            pace.changed(feature, Instant::now());
        }
        seen = now;
        let Some(stale) = server.upgrade().map(|server| server.freshness().next()) else {
            return;
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = at([pace.next(), stale].into_iter().flatten().min()) => {
                let Some(server) = server.upgrade() else { return };
                server.read_due(&mut pace).await;
            }
        }
    }
}

/// A server as a source of tools.
struct ServerSource(Arc<McpServer>);

impl Source for ServerSource {
    fn name(&self) -> &str {
        &self.0.settings.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.0.catalogue.borrow().clone()
    }

    fn snapshot_for(&self, client: &ClientIdentity) -> Option<Arc<Catalogue>> {
        self.0.connections.lists_of(client)
    }

    fn refresh_for<'a>(&'a self, client: &'a ClientIdentity) -> BoxFuture<'a, ()> {
        Box::pin(self.0.connections.refresh_lists_of(client))
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
            // The sender lives as long as the server that this borrows.
            let _ = catalogue.wait_for(|catalogue| catalogue.revision != seen).await;
        })
    }

    /// Any name could be a renamed tool's, so those count as well. A URI says nothing of the server that has it.
    fn may_hold(&self, feature: Feature, name: &str) -> bool {
        let settings = &self.0.settings;
        if matches!(feature, Feature::Resource | Feature::ResourceTemplate) {
            return true;
        }
        let renamed = settings.rename.keys().any(|own| settings.outward(own) == name);
        // A prefix as long as a name may be is cut with the name.
        let prefix = tool_core::outward_name(&settings.prefix);
        renamed || settings.prefix.is_empty() || settings.prefix.len() > 55 || name.starts_with(&prefix)
    }

    fn warnings(&self) -> Vec<ListWarning> {
        let server = &*self.0;
        let catalogue = server.catalogue.borrow().clone();
        server.warnings.of(&server.settings.name, &catalogue)
    }

    fn prefix(&self) -> Option<String> {
        Some(self.0.settings.outward_prefix())
    }

    fn is_renamed(&self, name: &str) -> bool {
        let settings = &self.0.settings;
        settings.rename.keys().any(|own| settings.outward(own) == name)
    }

    fn subscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.watch_idle();
        Box::pin(async move {
            match self.0.takes_resource(&self.snapshot(), uri) {
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
            let Some(kept) = connections.kept_for(client.clone()) else {
                return Ok(false);
            };
            let lists = self.snapshot_for(client).unwrap_or_else(|| self.snapshot());
            match self.0.takes_resource(&lists, uri) {
                true => connections.subscribe_for(uri, &kept).await,
                false => Err(no_resource(uri)),
            }
        })
    }

    fn end_unwatched(&self, grace: Duration, is_watched: &dyn Fn(&str, &ClientGroup) -> bool) {
        self.0.connections.end_unwatched(grace, is_watched);
    }

    fn on_update(&self, tell: OnUpdate) {
        self.0.connections.updates.add(tell);
    }

    fn instructions(&self) -> Option<String> {
        let server = &*self.0;
        let given = match &server.settings.instructions {
            Some(given) => Some(given.clone()),
            None => {
                let running = server.status().and_then(|status| status.server);
                let known = match running {
                    Some(running) => running.instructions.clone(),
                    None => server.kept_instructions(),
                };
                definitions::instructions(&known?.string()?, server.settings.definitions)
            }
        };
        given.filter(|text: &String| !text.trim().is_empty())
    }

    fn status(&self) -> SourceStatus {
        // Which notices an end that is not told yet.
        let client = self.0.status();
        let catalogue = self.0.catalogue.borrow().clone();
        SourceStatus {
            n_tools: catalogue.tools.len(),
            has_lists: catalogue.revision > 0,
            has_kept_lists: catalogue.is_kept,
            is_lazy: self.0.settings.is_lazy,
            is_checked_at_start: self.0.settings.check_at_start,
            detail: client.as_ref().and_then(detail),
            n_restarts: client.as_ref().map_or(0, |status| status.restarts),
            start_took: self.0.tries.borrow().took,
            ..self.0.life.status(client.as_ref())
        }
    }
}

/// The revision it speaks and what it calls itself, or the end of what it wrote to stderr if it does not run.
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
