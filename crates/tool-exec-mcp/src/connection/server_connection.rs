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

/// Connection to the server with the calls on it. It is opened when it is needed, and reopened after a failure.
pub(crate) struct ServerConnection {
    pub(crate) upstream: Upstream,
    pub(crate) slots: Arc<CallSlots>,
    /// Lists of a dedicated connection.
    pub(crate) lists: ClientListState,
    sink: NotificationSink,
    /// Answers requests of the server. `None` for the shared connection, which declares no capability.
    request_handler: Option<Arc<ServerRequestHandler>>,
    roots: RootsState,
    /// Lowest level of log messages that a legacy server was told to send, and the number of openings of the connection
    /// at that time.
    log_level: SyncMutex<Option<(u64, LogLevel)>>,
}

/// State of the client's roots.
#[derive(Default)]
struct RootsState {
    /// Serializes requests for roots, so that many calls share one request.
    request_lock: Mutex<()>,
    must_request: AtomicBool,
    /// `true` if the server is to be notified that they have changed.
    must_announce: AtomicBool,
}

/// Time limit for a client to return its roots. A server that wants them later asks again.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a server to set its log level, after which the call goes on without.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(2);

impl ServerConnection {
    /// A shared connection, over which nobody can be asked.
    pub(crate) fn shared(endpoint: Endpoint, options: UpstreamOptions, notifier: Arc<Notifier>) -> Arc<Self> {
        Self::new(endpoint, options, notifier, None)
    }

    /// A dedicated connection of a client that declared these capabilities. `keeps_roots` is `true` if it serves the
    /// same client from call to call.
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
            roots.must_request = AtomicBool::new(keeps_roots && declared.get("roots").is_some());
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

    /// Returns the protocol connection if it is open and the server needs no notification before this call.
    pub(crate) fn ready_now(&self, call: &ActiveCall) -> Option<Connection> {
        let must_tell = self.request_handler.is_some()
            && call.asker.is_some()
            && self.roots.must_request.load(Ordering::SeqCst)
            || self.roots.must_announce.load(Ordering::SeqCst)
            || call.level.is_some();
        if must_tell { None } else { self.upstream.ready() }
    }

    /// Returns the protocol connection after the server was told all that it must know before this call.
    pub(crate) async fn ready_for(&self, call: &ActiveCall) -> Result<Connection, ClientError> {
        if let Some(asker) = &call.asker {
            self.request_roots(asker, call.tag).await;
        }
        let connection = self.upstream.connection().await?;
        if self.roots.must_announce.swap(false, Ordering::SeqCst)
            && let Err(error) = connection.notify(method::ROOTS_LIST_CHANGED, None).await
        {
            tracing::debug!(%error, "a server was not notified of changed roots");
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
        if !self.roots.must_request.load(Ordering::SeqCst) {
            return;
        }
        let _guard = self.roots.request_lock.lock().await;
        if self.roots.must_request.load(Ordering::SeqCst) {
            if timeout(ROOTS_TIMEOUT, request_handler.request_roots(asker, tag))
                .await
                .is_err()
            {
                tracing::debug!("a client did not return its roots in time");
            }
            self.roots.must_request.store(false, Ordering::SeqCst);
        }
    }

    /// Records that the client's roots have changed. They are requested, and the server is notified, as soon as a call
    /// is in progress.
    pub(crate) fn mark_roots_changed(self: &Arc<Self>) {
        self.roots.must_request.store(true, Ordering::SeqCst);
        self.roots.must_announce.store(true, Ordering::SeqCst);
        let Ok(call) = self.slots.attribute(None) else {
            return;
        };
        let connection = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = connection.ready_for(&call) => {}
                () = connection.slots.wait_until_ended(call.tag) => {}
            }
        });
    }

    /// Sets the log level of a legacy server to this one, unless it already sends as much. The level never rises again:
    /// messages that a call does not want are dropped on the way to it.
    async fn set_log_level_once(&self, connection: &Connection, level: LogLevel) {
        let server = connection.server();
        if server.era() == Era::Modern || !server.has_capability("logging") {
            return;
        }
        {
            let openings = self.upstream.changes().borrow().openings;
            let mut set = self.log_level.lock();
            if set
                .as_ref()
                .is_some_and(|(at_opening, set)| *at_opening == openings && *set <= level)
            {
                return;
            }
            *set = Some((openings, level));
        }
        let done = connection
            .set_log_level(level.as_str(), RequestOptions::with_timeout(LOG_LEVEL_TIMEOUT))
            .await;
        if let Err(error) = done {
            tracing::debug!(%error, "a server did not set its log level");
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
        // A combinator: the future of an `async fn` would also hold the options.
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

    /// Records that the server works on something of a call. Returns `None` if the server can ask only with reference
    /// to a request.
    pub(crate) fn begin_work<'a>(
        &self,
        connection: &Connection,
        slot: &'a CallSlot,
    ) -> Option<PendingWork<'a>> {
        (self.request_handler.is_some() && connection.server().era() == Era::Legacy)
            .then(|| slot.begin_work())
    }

    /// Completes the options of a request for a call.
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

/// Time that the client may take to answer beyond the time limit of a call.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(3600);

/// Returns `true` if the server may still work on a request that nobody waits for.
fn may_still_run(result: &Result<RawJson, ClientError>) -> bool {
    let Err(error) = result else { return false };
    // A closed connection is reopened to a server that knows nothing of the call.
    let is_over = matches!(
        error.kind(),
        ClientErrorKind::Rpc(_)
            | ClientErrorKind::Closed(_)
            | ClientErrorKind::TooLarge { .. }
            | ClientErrorKind::Auth { .. }
    );
    error.was_sent() && !is_over
}
