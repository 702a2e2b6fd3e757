use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use mcp_client::{
    ClientError, ClientErrorKind, Connection, Endpoint, RequestOptions, Upstream, UpstreamOptions,
};
use mcp_wire::{Era, LogLevel, Params, method};
use parking_lot::Mutex as SyncMutex;
use raw_json::RawJson;
use tokio::{sync::Mutex, time::timeout};
use tool_core::{Asker, ClientGroup};

use super::{
    call_slots::{ActiveCall, CallSlot, CallSlots, PendingWork},
    server_requests::ServerRequestHandler,
};
use crate::{
    listing::ClientListState,
    notifications::{NotificationSink, Notifier},
};

/// A connection to the server, which is opened when it is needed and again when it has failed, and the calls on it.
pub(crate) struct ServerConnection {
    pub(crate) upstream: Upstream,
    pub(crate) slots: Arc<CallSlots>,
    /// What a client's own connection lists.
    pub(crate) lists: ClientListState,
    sink: NotificationSink,
    /// What is done for the server when it asks; the shared connection declares nothing.
    request_handler: Option<Arc<ServerRequestHandler>>,
    roots: RootsState,
    /// The lowest level of log messages that a legacy server was told to send, and how often the connection had been
    /// opened anew by then.
    log_level: SyncMutex<Option<(u64, LogLevel)>>,
}

/// Whether the client's roots have to be asked for.
#[derive(Default)]
struct RootsState {
    /// Held while they are, so that many calls share one question.
    turn: Mutex<()>,
    wanted: AtomicBool,
    /// Whether the server is to be told that they have changed.
    changed: AtomicBool,
}

/// How long a client may take to tell its roots; a server that wants them later asks again.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may take to note a level of log messages before the call goes on without.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(2);

impl ServerConnection {
    /// A connection that many share: nobody can be asked over it.
    pub(crate) fn shared(endpoint: Endpoint, options: UpstreamOptions, notifier: Arc<Notifier>) -> Arc<Self> {
        Self::new(endpoint, options, notifier, None)
    }

    /// A connection of one client, which declared that it can be asked this. `keeps_roots` says whether it stays the same
    /// client from call to call.
    pub(crate) fn dedicated(
        endpoint: Endpoint,
        options: UpstreamOptions,
        notifier: Arc<Notifier>,
        clients: ClientGroup,
        declared: &RawJson,
        keeps_roots: bool,
    ) -> Arc<Self> {
        let client = Some((clients, declared, keeps_roots));
        Self::new(endpoint, options, notifier, client)
    }

    fn new(
        endpoint: Endpoint,
        mut options: UpstreamOptions,
        notifier: Arc<Notifier>,
        client: Option<(ClientGroup, &RawJson, bool)>,
    ) -> Arc<Self> {
        let slots = CallSlots::new();
        let lists = ClientListState::new();
        let request_handler = client.as_ref().map(|_| ServerRequestHandler::new(slots.clone()));
        let mut roots = RootsState::default();
        let mut sink = NotificationSink {
            notifier,
            clients: None,
        };
        if let (Some((clients, declared, keeps_roots)), Some(request_handler)) = (client, &request_handler) {
            sink.clients = Some(clients);
            options.connection.handlers = request_handler.handlers(declared);
            options.on_status = Some(lists.on_status());
            roots.wanted = AtomicBool::new(keeps_roots && declared.get("roots").is_some());
        }
        let (receiving, target) = (slots.clone(), sink.clone());
        let handlers = std::mem::take(&mut options.connection.handlers);
        options.connection.handlers = handlers.notifications(move |event| {
            receiving
                .router
                .route(&event, &target, |log| receiving.deliver_log(log));
        });
        Arc::new(Self {
            upstream: Upstream::new(endpoint, options),
            slots,
            lists,
            sink,
            request_handler,
            roots,
            log_level: SyncMutex::default(),
        })
    }

    /// The connection, if it is open and the server has to be told nothing before this call.
    pub(crate) fn ready_now(&self, call: &ActiveCall) -> Option<Connection> {
        let must_tell = self.request_handler.is_some()
            && call.asker.is_some()
            && self.roots.wanted.load(Ordering::SeqCst)
            || self.roots.changed.load(Ordering::SeqCst)
            || call.level.is_some();
        if must_tell { None } else { self.upstream.ready() }
    }

    /// The connection, ready for a call of whose client everything is told that the server has to know first.
    pub(crate) async fn ready_for(&self, call: &ActiveCall) -> Result<Connection, ClientError> {
        if let Some(asker) = &call.asker {
            self.request_roots(asker, call.tag).await;
        }
        let connection = self.upstream.connection().await?;
        if self.roots.changed.swap(false, Ordering::SeqCst)
            && let Err(error) = connection.notify(method::ROOTS_LIST_CHANGED, None).await
        {
            tracing::debug!(%error, "a server was not told that roots have changed");
        }
        if let Some(level) = call.level {
            self.set_log_level_once(&connection, level).await;
        }
        Ok(connection)
    }

    async fn request_roots(&self, asker: &Asker, tag: u64) {
        let Some(request_handler) = &self.request_handler else {
            return;
        };
        if !self.roots.wanted.load(Ordering::SeqCst) {
            return;
        }
        let _turn = self.roots.turn.lock().await;
        if self.roots.wanted.load(Ordering::SeqCst) {
            if timeout(ROOTS_TIMEOUT, request_handler.request_roots(asker, tag))
                .await
                .is_err()
            {
                tracing::debug!("a client did not tell its roots in time");
            }
            self.roots.wanted.store(false, Ordering::SeqCst);
        }
    }

    /// The client's roots have changed: they are asked for and the server is told as soon as a call is under way.
    pub(crate) fn roots_changed(self: &Arc<Self>) {
        self.roots.wanted.store(true, Ordering::SeqCst);
        self.roots.changed.store(true, Ordering::SeqCst);
        let Ok(call) = self.slots.attribute(None) else {
            return;
        };
        let connection = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = connection.ready_for(&call) => {}
                () = connection.slots.call_ended(call.tag) => {}
            }
        });
    }

    /// Has a legacy server send log messages of this level and worse, unless it does already. The level never rises
    /// again: what a call does not want is left out on the way to it.
    async fn set_log_level_once(&self, connection: &Connection, level: LogLevel) {
        let server = connection.server();
        if server.era() == Era::Modern || !server.offers("logging") {
            return;
        }
        {
            let openings = self.upstream.changes().borrow().openings;
            let mut set = self.log_level.lock();
            if set
                .as_ref()
                .is_some_and(|(told, set)| *told == openings && *set <= level)
            {
                return;
            }
            *set = Some((openings, level));
        }
        let done = connection
            .set_log_level(level.as_str(), RequestOptions::within(LOG_LEVEL_TIMEOUT))
            .await;
        if let Err(error) = done {
            tracing::debug!(%error, "a server did not take the level of log messages");
        }
    }

    /// Makes a request for a call, see [`Connection::request`].
    pub(crate) fn request<'a>(
        &'a self,
        connection: &'a Connection,
        slot: &'a CallSlot,
        request: (&'a str, Params),
        options: RequestOptions,
    ) -> impl Future<Output = Result<RawJson, ClientError>> + Send + 'a {
        let (method, params) = request;
        let options = self.request_options(slot, options);
        // A combinator: the future of an `async fn` would have room for the options as well.
        let result = connection.request(method, params, options);
        // Dropped with the future.
        let mut open = self.begin_work(connection, slot);
        result.inspect(move |result| {
            if let Some(open) = open.as_mut().filter(|_| !may_still_run(result)) {
                open.finish();
            }
            if let Err(error) = result
                && let (Some(error), Some(client)) = (error.as_rpc(), slot.call.client())
            {
                self.slots.router.record_url_error(error, &client);
            }
        })
    }

    /// Notes that the server works on something of a call, where it could ask for it without saying for which.
    pub(crate) fn begin_work<'a>(
        &self,
        connection: &Connection,
        slot: &'a CallSlot,
    ) -> Option<PendingWork<'a>> {
        (self.request_handler.is_some() && connection.server().era() == Era::Legacy)
            .then(|| slot.begin_work())
    }

    /// How a request for a call is made.
    fn request_options(&self, slot: &CallSlot, mut options: RequestOptions) -> RequestOptions {
        let call = &slot.call;
        if self.request_handler.is_some() {
            options.tag = Some(call.tag);
            // The layers above keep the limits of the call, and know how long the client took to answer.
            options.timeout += MAX_ANSWER_TIME;
            options.max_total += MAX_ANSWER_TIME;
        }
        if call.level.is_some() && options.on_notification.is_none() {
            let (call, sink, slots) = (call.clone(), self.sink.clone(), self.slots.clone());
            options.on_notification = Some(Arc::new(move |event| {
                slots.router.route(&event, &sink, |log| call.log(log));
            }));
        }
        options
    }
}

/// How long the client may be asked beyond the time of a call.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(3600);

/// Whether the server may work on a request although nobody waits for it any longer.
fn may_still_run(result: &Result<RawJson, ClientError>) -> bool {
    let Err(error) = result else { return false };
    // A connection that is closed is opened anew, to a server that knows nothing of the call.
    let is_over = matches!(
        error.kind(),
        ClientErrorKind::Rpc(_)
            | ClientErrorKind::Closed(_)
            | ClientErrorKind::TooLarge { .. }
            | ClientErrorKind::Auth { .. }
    );
    error.was_sent() && !is_over
}
