use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use mcp_client::{
    ClientError, ClientErrorKind, Connection, ConnectionEvent, Endpoint, RequestOptions, Upstream,
    UpstreamOptions,
};
use mcp_wire::{Era, LogLevel, Params, meta, meta_key, method};
use parking_lot::Mutex as SyncMutex;
use raw_json::RawJson;
use tokio::{sync::Mutex, time::timeout};
use tool_core::{Asker, ClientGroup, Update};

use crate::{
    addressees::Addressees,
    asking::Asking,
    calls::{Call, Calls, Open, Seat},
    own_listing::OwnListing,
    updates::Updates,
};

/// A connection to the server, which is opened when it is needed and again when it has failed, and the calls on it.
pub(crate) struct Line {
    pub(crate) upstream: Upstream,
    pub(crate) calls: Arc<Calls>,
    /// What a client's own connection lists.
    pub(crate) listing: OwnListing,
    news: News,
    /// What is done for the server when it asks; the shared connection declares nothing.
    asking: Option<Arc<Asking>>,
    roots: Roots,
    /// The lowest level of log messages that a legacy server was told to send, and how often the connection had been
    /// opened anew by then.
    level: SyncMutex<Option<(u64, LogLevel)>>,
}

/// The way of news that a connection brings.
#[derive(Clone)]
struct News {
    updates: Arc<Updates>,
    /// The clients that alone are served by the connection.
    clients: Option<ClientGroup>,
}

impl News {
    fn of_resource(&self, params: RawJson) -> Update {
        match self.clients.clone() {
            Some(clients) => Update::ClientResource { clients, params },
            None => Update::Resource(params),
        }
    }
}

/// Whether the client's roots have to be asked for.
#[derive(Default)]
struct Roots {
    /// Held while they are, so that many calls share one question.
    turn: Mutex<()>,
    wanted: AtomicBool,
    /// Whether the server is to be told that they have changed.
    changed: AtomicBool,
}

/// How long a client may take to tell its roots; a server that wants them later asks again.
const ROOTS_LIMIT: Duration = Duration::from_secs(10);
/// How long a server may take to note a level of log messages before the call goes on without.
const LEVEL_LIMIT: Duration = Duration::from_secs(2);

impl Line {
    /// A line that many share: nobody can be asked over it.
    pub(crate) fn shared(endpoint: Endpoint, options: UpstreamOptions, updates: Arc<Updates>) -> Arc<Self> {
        Self::new(endpoint, options, updates, None)
    }

    /// A line of one client, which declared that it can be asked this. `keeps_roots` says whether it stays the same
    /// client from call to call.
    pub(crate) fn own(
        endpoint: Endpoint,
        options: UpstreamOptions,
        updates: Arc<Updates>,
        clients: ClientGroup,
        declared: &RawJson,
        keeps_roots: bool,
    ) -> Arc<Self> {
        let client = Some((clients, declared, keeps_roots));
        Self::new(endpoint, options, updates, client)
    }

    fn new(
        endpoint: Endpoint,
        mut options: UpstreamOptions,
        updates: Arc<Updates>,
        client: Option<(ClientGroup, &RawJson, bool)>,
    ) -> Arc<Self> {
        let calls = Calls::new();
        let listing = OwnListing::new();
        let asking = client.as_ref().map(|_| Asking::new(calls.clone()));
        let mut roots = Roots::default();
        let mut news = News {
            updates,
            clients: None,
        };
        if let (Some((clients, declared, keeps_roots)), Some(asking)) = (client, &asking) {
            news.clients = Some(clients);
            options.connection.handlers = asking.handlers(declared);
            options.on_status = Some(listing.on_status());
            roots.wanted = AtomicBool::new(keeps_roots && declared.get("roots").is_some());
        }
        let (noted, told) = (calls.clone(), news.clone());
        let handlers = std::mem::take(&mut options.connection.handlers);
        options.connection.handlers = handlers.notifications(move |event| {
            take(&event, &told, &noted.addressees, |log| noted.log(log));
        });
        Arc::new(Self {
            upstream: Upstream::new(endpoint, options),
            calls,
            listing,
            news,
            asking,
            roots,
            level: SyncMutex::default(),
        })
    }

    /// The connection, if it is open and the server has to be told nothing before this call.
    pub(crate) fn is_ready(&self, call: &Call) -> Option<Connection> {
        let has_news =
            self.asking.is_some() && call.asker.is_some() && self.roots.wanted.load(Ordering::SeqCst)
                || self.roots.changed.load(Ordering::SeqCst)
                || call.level.is_some();
        if has_news { None } else { self.upstream.ready() }
    }

    /// The connection, ready for a call of whose client everything is told that the server has to know first.
    pub(crate) async fn ready(&self, call: &Call) -> Result<Connection, ClientError> {
        if let Some(asker) = &call.asker {
            self.learn_roots(asker, call.tag).await;
        }
        let connection = self.upstream.connection().await?;
        if self.roots.changed.swap(false, Ordering::SeqCst)
            && let Err(error) = connection.notify(method::ROOTS_LIST_CHANGED, None).await
        {
            tracing::debug!(%error, "a server was not told that roots have changed");
        }
        if let Some(level) = call.level {
            self.set_level(&connection, level).await;
        }
        Ok(connection)
    }

    async fn learn_roots(&self, asker: &Asker, tag: u64) {
        let Some(asking) = &self.asking else { return };
        if !self.roots.wanted.load(Ordering::SeqCst) {
            return;
        }
        let _turn = self.roots.turn.lock().await;
        if self.roots.wanted.load(Ordering::SeqCst) {
            if timeout(ROOTS_LIMIT, asking.learn_roots(asker, tag))
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
        let Ok(call) = self.calls.addressee(None) else {
            return;
        };
        let line = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = line.ready(&call) => {}
                () = line.calls.end_of(call.tag) => {}
            }
        });
    }

    /// Has a legacy server send log messages of this level and worse, unless it does already. The level never rises
    /// again: what a call does not want is left out on the way to it.
    async fn set_level(&self, connection: &Connection, level: LogLevel) {
        let server = connection.server();
        if server.era() == Era::Modern || !server.has_capability("logging") {
            return;
        }
        {
            let openings = self.upstream.changes().borrow().openings;
            let mut set = self.level.lock();
            if set
                .as_ref()
                .is_some_and(|(told, set)| *told == openings && *set <= level)
            {
                return;
            }
            *set = Some((openings, level));
        }
        let done = connection
            .set_log_level(level.as_str(), RequestOptions::with_timeout(LEVEL_LIMIT))
            .await;
        if let Err(error) = done {
            tracing::debug!(%error, "a server did not take the level of log messages");
        }
    }

    /// Makes a request for a call, see [`Connection::request`].
    pub(crate) fn request<'a>(
        &'a self,
        connection: &'a Connection,
        seat: &'a Seat,
        request: (&'a str, Params),
        options: RequestOptions,
    ) -> impl Future<Output = Result<RawJson, ClientError>> + Send + 'a {
        let (method, params) = request;
        let options = self.options(seat, options);
        // A combinator: the future of an `async fn` would have room for the options as well.
        let result = connection.request(method, params, options);
        // Dropped with the future.
        let mut open = self.open(connection, seat);
        result.inspect(move |result| {
            if let Some(open) = open.as_mut().filter(|_| !may_go_on(result)) {
                open.is_over();
            }
            if let Err(error) = result
                && let (Some(error), Some(client)) = (error.as_rpc(), seat.call.client())
            {
                self.calls.addressees.refused(error, &client);
            }
        })
    }

    /// Notes that the server works on something of a call, where it could ask for it without saying for which.
    pub(crate) fn open<'a>(&self, connection: &Connection, seat: &'a Seat) -> Option<Open<'a>> {
        (self.asking.is_some() && connection.server().era() == Era::Legacy).then(|| seat.open())
    }

    /// How a request for a call is made.
    fn options(&self, seat: &Seat, mut options: RequestOptions) -> RequestOptions {
        let call = &seat.call;
        if self.asking.is_some() {
            options.tag = Some(call.tag);
            // The layers above keep the limits of the call, and know how long the client took to answer.
            options.timeout += LONGEST_ANSWER;
            options.max_total += LONGEST_ANSWER;
        }
        if call.level.is_some() && options.on_notification.is_none() {
            let (call, news, calls) = (call.clone(), self.news.clone(), self.calls.clone());
            options.on_notification = Some(Arc::new(move |event| {
                take(&event, &news, &calls.addressees, |log| call.log(log));
            }));
        }
        options
    }
}

/// How long the client may be asked beyond the time of a call.
const LONGEST_ANSWER: Duration = Duration::from_secs(3600);

/// Whether the server may work on a request although nobody waits for it any longer.
fn may_go_on(result: &Result<RawJson, ClientError>) -> bool {
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

/// Takes what a server tells: log messages, news of resources, and what is for those who follow a task or were sent to a
/// page.
fn take(event: &ConnectionEvent, news: &News, addressees: &Addressees, log: impl FnOnce(&RawJson)) {
    let Some(params) = event.params.as_ref().map(unmarked) else {
        return;
    };
    let params = &params;
    match event.method.as_str() {
        method::LOG_MESSAGE => log(params),
        method::RESOURCES_UPDATED => news.updates.tell(&news.of_resource(params.clone())),
        other => {
            if let Some(update) = addressees.update(other, params) {
                news.updates.tell(&update);
            }
        }
    }
}

/// What a modern server tells, without the mark of our subscription: clients have subscriptions of their own, or none.
fn unmarked(params: &RawJson) -> RawJson {
    let Some(marked) = meta(params).filter(|meta| meta.get(meta_key::SUBSCRIPTION_ID).is_some()) else {
        return params.clone();
    };
    let rest = marked.without_members(&[meta_key::SUBSCRIPTION_ID]);
    let rest = rest.expect("`_meta` is an object");
    let unmarked = match rest.parts().next() {
        Some(_) => params.with_members(&[("_meta", rest)]),
        None => params.without_members(&["_meta"]),
    };
    unmarked.expect("what has `_meta` is an object")
}
