use std::{
    fmt,
    future::ready,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use mcp_client::{
    ClientError, ClientErrorKind as Fault, Connection, ConnectionOptions, Endpoint, Handlers, OnStatus,
    RequestOptions, StartBudget, StartLimit, Upstream, UpstreamOptions,
};
use mcp_wire::{Params, RpcError, code};
use raw_json::RawJson;
use tokio::sync::OnceCell;
use tool_core::{CallContext, ClientKey, ErrorKind, Refresh, Secrets, ToolError};

use crate::{
    Isolation, ServerSettings,
    calls::{Open, Seat},
    fault::{request_error, tool_error},
    life::Life,
    line::Line,
    own_lists::OwnLists,
    own_subscriptions::OwnSubscriptions,
    place::Place,
    pool::Pool,
    settings::ResolveError,
    subscriptions::Subscriptions,
    updates::Updates,
};

/// The connections to one server: one that is shared, and some that are kept for single clients.
pub(crate) struct Connections {
    pub(crate) settings: Arc<ServerSettings>,
    secrets: Arc<dyn Secrets>,
    place: Place,
    /// The generation of the place that the server refused last.
    refused: AtomicU64,
    /// What lists come from, and what most calls share.
    shared: OnceCell<Arc<Line>>,
    pub(crate) own: Arc<Pool>,
    pub(crate) own_lists: Arc<OwnLists>,
    pub(crate) own_subscriptions: Arc<OwnSubscriptions>,
    /// How many connections were opened for single clients.
    pub(crate) n_opened: AtomicU64,
    /// What all of them share: it is one server that is started.
    budget: StartBudget,
    /// What it shares with other servers, if they are started with it.
    pub(crate) starts: OnceLock<StartLimit>,
    pub(crate) updates: Arc<Updates>,
    /// What is told how the shared connection is.
    life: Arc<Life>,
    pub(crate) subscriptions: Subscriptions,
    stopped: AtomicBool,
}

/// A connection that one call may use until this is dropped.
pub(crate) struct Checkout {
    /// For what is known of the server: requests of the call are made by [`Checkout::request`].
    pub(crate) connection: Connection,
    line: Arc<Line>,
    seat: Seat,
}

impl Checkout {
    /// Where the connection is kept.
    pub(crate) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Notes that the server works on something of the call beside a request, see [`Line::open`].
    pub(crate) fn open(&self) -> Option<Open<'_>> {
        self.line.open(&self.connection, &self.seat)
    }

    /// Whether the server speaks another era by now, in which another checkout is then.
    pub(crate) async fn detect_era_change(&self) -> bool {
        self.line.upstream.detect_era_change(&self.connection).await
    }

    /// Makes a request for the call, see [`Connection::request`]. Questions and log messages that the server has
    /// meanwhile go to the caller's client; the time that it takes to answer does not count against the timeout.
    pub(crate) fn request<'a>(
        &'a self,
        method: &'a str,
        params: impl Into<Params>,
        options: RequestOptions,
    ) -> impl Future<Output = Result<RawJson, ClientError>> + Send + 'a {
        self.line
            .request(&self.connection, &self.seat, (method, params.into()), options)
    }
}

/// Why there is no connection.
pub(crate) enum Unreachable {
    Settings(ResolveError),
    Client(ClientError),
}

impl Unreachable {
    /// The error of a call that needs the connection.
    pub(crate) fn into_tool_error(self, cx: &CallContext, server: &str) -> ToolError {
        match self {
            Self::Client(error) => tool_error(cx, server, error),
            Self::Settings(error) => unset(server, error),
        }
    }

    /// Whether the server refuses our credentials.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Client(error) if matches!(error.kind(), Fault::Auth { status: 401, .. }))
    }

    /// The error of a request that is no call.
    pub(crate) fn of_request(self, server: &str) -> ToolError {
        match self {
            Self::Client(error) => request_error(server, error),
            Self::Settings(error) => unset(server, error),
        }
    }
}

fn unset(server: &str, error: ResolveError) -> ToolError {
    let message = format!("the server `{server}` cannot be started: {error}");
    ToolError::new(ErrorKind::Unavailable, message).with_source(error)
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl Connections {
    pub(crate) fn new(
        settings: Arc<ServerSettings>,
        secrets: Arc<dyn Secrets>,
        updates: Arc<Updates>,
        life: Arc<Life>,
        own_lists: Arc<OwnLists>,
    ) -> Self {
        let own_subscriptions = Arc::<OwnSubscriptions>::default();
        let own = Pool::new(&settings.name, &own_subscriptions);
        Self {
            settings,
            secrets,
            place: Place::default(),
            refused: AtomicU64::new(0),
            shared: OnceCell::new(),
            own,
            own_lists,
            own_subscriptions,
            n_opened: AtomicU64::new(0),
            budget: StartBudget::default(),
            starts: OnceLock::new(),
            updates,
            life,
            subscriptions: Subscriptions::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// The shared connection as far as anyone has needed it.
    pub(crate) fn known(&self) -> Option<&Upstream> {
        self.shared.get().map(|line| &line.upstream)
    }

    /// How many connections are kept for single clients.
    pub(crate) fn n_own(&self) -> usize {
        self.own.len()
    }

    /// How many of those are in use.
    pub(crate) fn n_own_used(&self) -> usize {
        self.own.n_used()
    }

    /// The shared connection, which is opened if need be.
    pub(crate) async fn shared(&self) -> Result<Connection, Unreachable> {
        let line = self.shared_line().await?;
        line.upstream.connection().await.map_err(Unreachable::Client)
    }

    /// The shared line, for work of our own on it.
    pub(crate) async fn line(&self) -> Result<&Arc<Line>, Unreachable> {
        self.shared_line().await
    }

    /// The shared line as far as anyone has needed it.
    pub(crate) fn known_line(&self) -> Option<&Arc<Line>> {
        self.shared.get()
    }

    /// The shared line, if it is there already and may be used.
    fn open_line(&self) -> Option<&Arc<Line>> {
        self.shared.get().filter(|_| !self.is_stopped())
    }

    async fn shared_line(&self) -> Result<&Arc<Line>, Unreachable> {
        let line = match self.shared.get() {
            Some(line) => line,
            None => {
                let endpoint = self.endpoint().await?;
                let open = || async {
                    let mut options = self.options();
                    if matches!(self.settings.isolation, Isolation::Session | Isolation::Principal) {
                        options.connection.handlers = listing_only();
                    }
                    let life = self.life.clone();
                    options.on_status = Some(OnStatus::new(move |status| life.client_is(status)));
                    Line::shared(endpoint.clone(), options, self.updates.clone())
                };
                self.shared.get_or_init(open).await
            }
        };
        self.end_if_stopped(line).await;
        Ok(line)
    }

    /// The connection that a call is to use: the shared one, or one of its client's own.
    pub(crate) async fn checkout(self: &Arc<Self>, cx: &CallContext) -> Result<Checkout, ToolError> {
        let explained = |error: Unreachable| error.into_tool_error(cx, &self.settings.name);
        // What has to be waited for is rare: most calls find a connection that is open.
        let own = match self.kept_for(cx.client_identity()) {
            Some(client) => Box::pin(self.own_line(cx, client)).await?,
            None => None,
        };
        let (line, seat) = match own {
            Some(place) => place,
            None => {
                let line = match self.open_line() {
                    Some(line) => line,
                    None => Box::pin(self.shared_line()).await.map_err(explained)?,
                };
                (line.clone(), line.calls.begin(cx))
            }
        };
        let connection = match line.is_ready(&seat.call) {
            Some(connection) => connection,
            None => Box::pin(line.ready(&seat.call))
                .await
                .map_err(|error| explained(Unreachable::Client(error)))?,
        };
        Ok(Checkout {
            connection,
            line,
            seat,
        })
    }

    /// Where the server is: its references get their values once, and anew when the server refuses them.
    pub(crate) async fn endpoint(&self) -> Result<Endpoint, Unreachable> {
        let place = self.place.get(&self.settings.target, &*self.secrets).await;
        place.map_err(Unreachable::Settings)
    }

    /// Which credentials a call that begins now is made with; to be told to [`Connections::refused`] with the error that
    /// it may come to.
    pub(crate) fn generation(&self) -> u64 {
        self.place.generation()
    }

    /// Takes note that the server refused the credentials of this generation.
    pub(crate) fn refused(&self, generation: u64) {
        self.refused.fetch_max(generation, Ordering::SeqCst);
    }

    /// Returns `true` if there are other credentials than those that the server refused last. Connections are opened anew
    /// with them.
    pub(crate) async fn refresh_credentials(&self, refresh: Refresh) -> bool {
        let refused = self.refused.load(Ordering::SeqCst);
        let moved = |endpoint: &Endpoint| {
            for line in self.shared.get().into_iter().chain(&self.own.all()) {
                line.upstream.set_endpoint(endpoint.clone());
            }
        };
        self.place
            .refresh(&self.settings.target, &*self.secrets, refused, refresh, moved)
            .await
    }

    /// How a connection is opened: in the era that the shared connection has found out, if it has.
    pub(crate) fn options(&self) -> UpstreamOptions {
        let known = self.known().and_then(|upstream| upstream.status().server);
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
            budget: Some(self.budget.clone()),
            starts: self.starts.get().cloned(),
            ..UpstreamOptions::default()
        }
    }

    /// The roots of a client have changed.
    pub(crate) fn roots_changed(&self, client: &ClientKey) {
        for line in self.own.of(client) {
            line.roots_changed();
        }
    }

    /// A client is gone: what is kept for it is closed unless something still runs there.
    pub(crate) fn client_gone(&self, client: &ClientKey) {
        self.own_subscriptions.forget(client);
        self.own.close(client);
    }

    /// Ends all of them in order. None is opened again.
    pub(crate) async fn shutdown(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let shared = async {
            if let Some(line) = self.shared.get() {
                line.upstream.shutdown().await;
            }
        };
        tokio::join!(shared, self.own.shutdown());
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// For who came between the two steps of [`Connections::shutdown`].
    pub(crate) async fn end_if_stopped(&self, line: &Line) {
        if self.is_stopped() {
            line.upstream.shutdown().await;
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
