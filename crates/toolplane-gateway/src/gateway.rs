use std::{fmt, future::Future, io, sync::Arc, time::Duration};

use futures_util::future::join_all;
use mcp_server::{
    Answer, HttpServerOptions, HttpService, Mirrored, Notifier, Peer, Principal, RequestContext, ServeOptions,
    ServerIdentity, Service, SharedAllowList, StateSeal, StdioOptions, serve_http, serve_stdio, unknown_method,
};
use mcp_wire::{Era, Notification, Request, Revision, RpcError, code, method};
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    runtime::Handle,
    time::sleep,
};
use toolplane::{
    Toolplane,
    core::{Caller, Feature, OnUpdate},
    observe::{Gauge, Metrics},
};

use crate::{
    call,
    client::{self, ANSWER},
    fault, followed, gauges,
    identity::{self, ANONYMOUS, Identities, identity},
    list::Lists,
    metrics::MetricsPage,
    mirrors::Mirrors,
    missing, news,
    parked::Parked,
    routes::Routes,
    subject, task_requests,
    tasks::Tasks,
    watches::Watches,
};

/// A toolplane as an MCP server. Cloning shares it.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    plane: Toolplane,
    options: GatewayOptions,
    lists: Lists,
    identities: Arc<Identities>,
    parked: Arc<Parked>,
    watches: Arc<Watches>,
    tasks: Arc<Tasks>,
    mirrors: Mirrors,
    /// Nothing when the system has no randomness to give: then no modern client can be asked anything.
    seal: Option<StateSeal>,
}

/// How a toolplane is shown to MCP clients.
#[derive(Clone)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// What clients see as the server: `toolplane` in this crate's version.
    pub info: ServerIdentity,
    /// How many tools a page of the list holds: 1,000.
    pub page_size: usize,
    /// How long a list waits for a server of which no list is known, counted from its first start: 4 s.
    pub list_wait: Duration,
    /// Whose permissions and limits a principal has. Without it, `local` and `anonymous` are the toolplane's own
    /// callers, and any other principal is a caller without permissions.
    pub callers: Option<Callers>,
    /// Where calls are counted: to be given to the toolplane as an observer as well. The gateway adds figures of its own.
    pub metrics: Option<Arc<Metrics>>,
    /// Whether [`Gateway::serve_http`] serves the metrics as well, at `/metrics`: not unless this says so.
    pub serves_metrics: bool,
}

/// How long changes that come together are taken for one.
const SETTLE: Duration = Duration::from_millis(100);

/// What is offered in both eras. It does not depend on what there is: a server that has prompts may come later.
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}"#;
/// What is offered of tasks in 2025-11-25, which alone has them.
const TASKS: &str = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;
/// What is offered in the modern era beyond the protocol itself.
const EXTENSIONS: &str = r#"{"io.modelcontextprotocol/tasks":{}}"#;

/// Tells whose permissions and limits a principal has.
pub type Callers = Arc<dyn Fn(&Principal) -> Arc<Caller> + Send + Sync>;

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            info: ServerIdentity::new("toolplane", env!("CARGO_PKG_VERSION")),
            page_size: 1000,
            list_wait: Duration::from_secs(4),
            callers: None,
            metrics: None,
            serves_metrics: false,
        }
    }
}

impl Gateway {
    /// Puts the protocol in front of a toolplane.
    #[must_use]
    pub fn new(plane: Toolplane, options: GatewayOptions) -> Self {
        let lists = Lists::new(options.page_size);
        let watches = Arc::new(Watches::default());
        let tasks = Arc::new(Tasks::default());
        let (told, known) = (Arc::downgrade(&watches), Arc::downgrade(&tasks));
        let identities = Arc::new(Identities::new(&plane, options.callers.clone()));
        let of_news = identities.clone();
        let tell: OnUpdate = Arc::new(move |update| {
            if let (Some(watches), Some(tasks)) = (told.upgrade(), known.upgrade()) {
                news::pass_on(update, &watches, &tasks, &of_news);
            }
        });
        plane.on_update(&tell);
        let parked = Arc::<Parked>::default();
        if let Some(metrics) = &options.metrics {
            gauges::add(metrics, &plane, Arc::downgrade(&parked));
        }
        Self(Arc::new(Inner {
            plane,
            options,
            lists,
            identities,
            parked,
            watches,
            tasks,
            mirrors: Mirrors::default(),
            seal: StateSeal::new(ANSWER).ok(),
        }))
    }

    /// The toolplane behind the gateway.
    #[must_use]
    pub fn plane(&self) -> &Toolplane {
        &self.0.plane
    }

    /// Serves one client over a pair of pipes, such as stdin and stdout: see [`serve_stdio`].
    ///
    /// # Errors
    /// When the input cannot be read or the output cannot be written.
    pub async fn serve_stdio<R, W>(
        &self,
        reader: R,
        writer: W,
        options: StdioOptions,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let notices = options.notifier.clone();
        tokio::select! {
            served = serve_stdio(self.clone(), reader, writer, options, shutdown) => served,
            () = self.announce(&notices) => Ok(()),
        }
    }

    /// Serves clients over HTTP until `shutdown` comes: MCP at the path of the options, `/mcp` unless they say
    /// otherwise, and `/healthz`, `/readyz` and `/health` for whoever watches over the process: whether it lives, whether
    /// it is ready, and how tools and servers are.
    ///
    /// The address that the listener is bound to is among the names that the server answers to.
    ///
    /// # Errors
    /// As [`serve_http`].
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        mut options: HttpServerOptions,
        serve: ServeOptions,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        options.path.get_or_insert_with(|| "/mcp".to_owned());
        options.own_host = Some(host_of(&listener)?);
        let notices = options.notifier.clone();
        let page = self.metrics_page(&options.allowed);
        let service = Arc::new(self.http_service(options));
        if let Some(metrics) = &self.0.options.metrics {
            // Weak, since the service has the gateway, and the gateway the metrics.
            let sessions = Arc::downgrade(&service);
            metrics.add_gauge(Gauge {
                name: "toolplane_sessions",
                help: "Legacy sessions of clients over HTTP.",
                label: None,
                read: Box::new(move || {
                    let number = sessions.upgrade().map_or(0, |service| service.n_sessions());
                    vec![(String::new(), number as f64)]
                }),
            });
        }
        let routes = Routes::new(HttpService::clone(&service), page);
        let stop = async {
            shutdown.await;
            routes.drain();
        };
        tokio::select! {
            served = serve_http(listener, serve, |_| routes.clone(), stop) => served,
            () = self.announce(&notices) => Ok(()),
        }
    }

    fn metrics_page(&self, allowed: &SharedAllowList) -> Option<MetricsPage> {
        let options = &self.0.options;
        let metrics = options.metrics.as_ref().filter(|_| options.serves_metrics)?;
        Some(MetricsPage {
            metrics: metrics.clone(),
            allowed: allowed.clone(),
        })
    }

    /// The gateway as a service for a router of your own, such as `axum::Router::route_service`.
    ///
    /// Clients are told of changes as long as [`Gateway::announce`] runs.
    #[must_use]
    pub fn http_service(&self, options: HttpServerOptions) -> HttpService<Self> {
        HttpService::new(self.clone(), options)
    }

    /// Tells listening clients whenever a list changes, or a resource that they watch. Never ends.
    pub async fn announce(&self, notices: &Notifier) {
        let _announced = self.0.watches.announce(notices);
        let Inner {
            plane,
            watches,
            identities,
            ..
        } = &*self.0;
        tokio::join!(self.announce_lists(notices), watches.tidy(plane, identities));
    }

    async fn announce_lists(&self, notices: &Notifier) {
        let mut changes = self.0.plane.changes();
        while changes.changed().await.is_ok() {
            sleep(SETTLE).await;
            changes.mark_unchanged();
            let view = self.0.plane.known(&self.0.plane.local_caller());
            for notification in self.0.lists.news(&view) {
                notices.send(notification, None);
            }
        }
        // The serving must go on without news.
        std::future::pending::<()>().await;
    }

    /// Answers `resources/subscribe`.
    async fn subscribe(&self, cx: &RequestContext) -> Result<Answer, RpcError> {
        let uri = subject::uri(cx)?;
        if cx.connection().is_none() {
            let message = "without a session there is nobody to tell of changes";
            return Err(RpcError::new(code::INVALID_REQUEST, message));
        }
        let caller = self.caller(cx.principal());
        let client = identity(&Peer::from_request(cx), &caller);
        let begun = self.0.watches.begin(&self.0.plane, &uri, &caller, &client).await;
        begun.map_err(|error| fault::rpc_error(&error, cx.era(), Some(&uri)))?;
        Ok(RawJson::object().into())
    }

    /// Cancels the calls that wait for their clients to come back with an answer, and returns when they have ended. Called when
    /// nothing is served any more, before the toolplane is shut down: their servers would end under them otherwise.
    pub async fn cancel_parked(&self) {
        self.0.parked.cancel_all().await;
    }

    /// The calls that wait for their clients.
    pub(crate) fn parked(&self) -> &Arc<Parked> {
        &self.0.parked
    }

    /// Those who are told of what they watch.
    pub(crate) fn watches(&self) -> &Arc<Watches> {
        &self.0.watches
    }

    /// The tasks that clients may come back for.
    pub(crate) fn tasks(&self) -> &Arc<Tasks> {
        &self.0.tasks
    }

    /// What seals the states that clients give back.
    pub(crate) fn seal(&self) -> Result<&StateSeal, RpcError> {
        let missing = || RpcError::new(code::INTERNAL_ERROR, "no state can be sealed here");
        self.0.seal.as_ref().ok_or_else(missing)
    }

    /// Whether what a request reads of a resource is the same for everybody who can reach the gateway: nobody was
    /// identified, and nothing depends on who asks.
    pub(crate) fn is_public(&self, uri: &str, principal: &Principal) -> bool {
        self.0.options.callers.is_none()
            && principal.as_str() == ANONYMOUS
            && self.0.plane.is_same_for_all(uri)
    }

    /// On whose behalf a request is made.
    pub(crate) fn caller(&self, principal: &Principal) -> Arc<Caller> {
        identity::caller(&self.0.plane, self.0.options.callers.as_ref(), principal)
    }
}

/// The name of the address that a listener is bound to.
fn host_of(listener: &TcpListener) -> io::Result<String> {
    let mut address = listener.local_addr()?;
    address.set_port(0);
    let host = address.to_string();
    Ok(host.strip_suffix(":0").unwrap_or(&host).to_owned())
}

impl Service for Gateway {
    fn info(&self) -> ServerIdentity {
        self.0.options.info.clone()
    }

    fn instructions(&self) -> Option<String> {
        self.0
            .plane
            .instructions(self.0.options.info.instructions.as_deref())
    }

    fn capabilities(&self, revision: Revision) -> RawJson {
        let parsed = |text| RawJson::parse(text).expect("the text is JSON");
        let offered = parsed(CAPABILITIES);
        let more = match (revision, revision.era()) {
            (Revision::V2025_11_25, _) => ("tasks", parsed(TASKS)),
            (_, Era::Modern) => ("extensions", parsed(EXTENSIONS)),
            _ => return offered,
        };
        offered.with_members(&[more]).expect("the text is an object")
    }

    async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        let feature = match &*request.method {
            method::TOOLS_CALL
            | method::PROMPTS_GET
            | method::RESOURCES_READ
            | method::COMPLETION_COMPLETE => return call::answer(self, &request, cx).await,
            method::TOOLS_LIST => Feature::Tool,
            method::PROMPTS_LIST => Feature::Prompt,
            method::RESOURCES_LIST => Feature::Resource,
            method::RESOURCES_TEMPLATES_LIST => Feature::ResourceTemplate,
            method::RESOURCES_SUBSCRIBE => return self.subscribe(cx).await,
            // It is given up when nobody watches it any more.
            method::RESOURCES_UNSUBSCRIBE => return Ok(RawJson::object().into()),
            method::TASKS_GET
            | method::TASKS_RESULT
            | method::TASKS_UPDATE
            | method::TASKS_CANCEL
            | method::TASKS_LIST => return task_requests::answer(self, &request, cx).await,
            other => return Err(unknown_method(other)),
        };
        let caller = self.caller(cx.principal());
        let client = identity(&Peer::from_request(cx), &caller);
        let wait = self.0.options.list_wait;
        let listing = self.0.plane.list_within_for(&caller, &client, wait).await;
        let params = request.params.as_ref();
        let plane = &self.0.plane;
        let page = self
            .0
            .lists
            .page(plane, feature, &listing.view, &caller, params, cx.era())?;
        Ok(Answer::untyped(missing::noted(page, &listing.missing)))
    }

    fn mirrored(&self, tool: &str, client: &Peer) -> Mirrored {
        let client = || identity(client, &self.caller(&client.principal));
        match self.0.plane.known_tool_for(tool, client) {
            Some(tool) => self.0.mirrors.of(&tool).into(),
            None => Mirrored::Unknown,
        }
    }

    async fn learn(&self, tool: &str, client: &Peer) {
        let client = identity(client, &self.caller(&client.principal));
        self.0.plane.learn_tool(tool, &client).await;
    }

    async fn filter_resources(&self, uris: Vec<String>, cx: &RequestContext) -> Vec<String> {
        let caller = self.caller(cx.principal());
        let (watches, plane) = (&self.0.watches, &self.0.plane);
        self.0.lists.assume_seen(&plane.known(&caller));
        let client = &identity(&Peer::from_request(cx), &caller);
        let begun = uris.iter().map(|uri| async {
            let begun = watches.begin(plane, uri, &caller, client).await;
            begun.is_ok().then(|| uri.clone())
        });
        join_all(begun).await.into_iter().flatten().collect()
    }

    async fn filter_tasks(&self, ids: Vec<String>, cx: &RequestContext) -> Vec<String> {
        ids.into_iter()
            .filter(|id| followed::follow(self, id, cx))
            .collect()
    }

    fn on_disconnect(&self, connection: u64) {
        // At the end of the process there is no runtime any more, and nothing to be given up in time.
        if Handle::try_current().is_ok() {
            let client = client::of_connection(connection);
            self.0.tasks.forget(&client);
            self.0.plane.client_gone(&client);
        }
    }

    fn on_notification(&self, notification: &Notification, cx: &RequestContext) {
        if notification.method == method::ROOTS_LIST_CHANGED {
            self.0.plane.client_roots_changed(&client::key(cx));
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("plane", &self.0.plane)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for GatewayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayOptions")
            .field("info", &self.info)
            .field("page_size", &self.page_size)
            .field("list_wait", &self.list_wait)
            .field("callers", &self.callers.is_some())
            .field("metrics", &self.metrics)
            .field("serves_metrics", &self.serves_metrics)
            .finish()
    }
}
