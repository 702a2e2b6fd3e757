use std::{fmt, sync::Arc, time::Duration};

use mcp_wire::{Era, Params};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use serde::Serialize;
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::Instant,
};

use super::{
    Endpoint, HealthCheck, ServerStatus, StartBudget, StartLimit, UpstreamOptions,
    start_limit::StartTicket,
    supervision::{Outcome, Phase, Supervision, interrupted},
};
use crate::{
    ChangeCounts, ClientError, ClientErrorKind, Connection, ConnectionOptions, EraChoice, EventReceiver,
    RequestOptions, ToolResult, notifications::Notifier,
};

/// Supervised MCP server: started when it is first needed, once for all concurrent callers, and restarted after a
/// failure.
///
/// # Restart
/// A server that fails within a minute of its start is restarted on demand after 1 s, then 2, 4, 8, 16, 32 s, and then
/// once a minute. Meanwhile callers fail immediately with [`ClientErrorKind::Unavailable`]. A server that has lived
/// longer is restarted without a pause. No request is ever sent twice.
///
/// Cloning shares the server. Dropping the last clone ends it at once.
///
/// # Examples
///
/// ```no_run
/// use mcp_client::{Command, RequestOptions, Upstream, UpstreamOptions, serde_json::json};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let command = Command::new("mcp-server-time");
/// let upstream = Upstream::new(command, UpstreamOptions::default());
/// // The first request starts the server.
/// let timezone = json!({"timezone": "UTC"});
/// let time = upstream.call_tool("get_current_time", &timezone, RequestOptions::default()).await?;
/// println!("{}, {}", time.text(), upstream.status().state);
/// upstream.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Upstream(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) endpoint: Mutex<Endpoint>,
    pub(super) options: ConnectionOptions,
    check: Option<HealthCheck>,
    /// `true` if the end of a connection is detected when it happens, and not with the next call.
    watches_end: bool,
    budget: StartBudget,
    starts: Option<StartLimit>,
    pub(super) notifier: Notifier,
    supervision: Mutex<Supervision>,
    /// Time of the last detection of the era. Locked while one is in progress.
    pub(super) era_found: AsyncMutex<Option<Instant>>,
}

/// Outcome of a lookup: a connection or error, or a start to wait for.
enum Lookup {
    Done(Result<Connection, ClientError>),
    Wait(Outcome),
}

impl Upstream {
    /// Creates a server that is not started yet.
    #[must_use]
    pub fn new(endpoint: impl Into<Endpoint>, options: UpstreamOptions) -> Self {
        let watches_end = options.on_status.is_some();
        let budget = options.budget;
        let budget = budget.unwrap_or_else(|| StartBudget::new(options.jitter_seed));
        let mut supervision = Supervision::new(budget.clone(), options.on_status);
        supervision.era = options.era;
        Self(Arc::new(Inner {
            endpoint: Mutex::new(endpoint.into()),
            options: options.connection,
            check: options.check,
            watches_end,
            budget,
            starts: options.starts,
            notifier: Notifier::default(),
            supervision: Mutex::new(supervision),
            era_found: AsyncMutex::default(),
        }))
    }

    /// Returns the connection to the server and starts it if needed.
    ///
    /// # Errors
    /// Returns the errors of [`Connection::spawn`] and [`Connection::http`] if the start fails, and
    /// [`ClientErrorKind::Unavailable`] immediately during the pause after a failure.
    ///
    /// # Cancellation
    /// Dropping the future does not abort the start, which goes on in the background for the next caller.
    pub async fn connection(&self) -> Result<Connection, ClientError> {
        self.connect_for(true).await
    }

    /// Like [`connection`](Self::connection) with low priority: servers that a caller waits for start first, see
    /// [`StartLimit`].
    ///
    /// # Errors
    /// Returns the errors of [`connection`](Self::connection).
    ///
    /// # Cancellation
    /// Dropping the future does not abort the start.
    pub async fn connection_in_background(&self) -> Result<Connection, ClientError> {
        self.connect_for(false).await
    }

    /// Starts the server with low priority, unless it is running, starting, or pausing.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn start_in_background(&self) {
        drop(self.lookup(false));
    }

    /// Moves a queued start ahead of background starts.
    pub fn prioritize_start(&self) {
        if let Phase::Starting { ticket, .. } = self.0.supervision().phase() {
            ticket.prioritize();
        }
    }

    /// Resets the server to its initial state and returns its connection for the caller to shut down. Returns `None` if
    /// it is not open or a request is in progress. The next caller that needs the server starts it.
    #[must_use]
    pub fn suspend(&self) -> Option<Connection> {
        let mut supervision = self.0.supervision();
        supervision.detect_end();
        match supervision.phase() {
            Phase::Ready { connection } if connection.pending() == 0 => {}
            _ => return None,
        }
        supervision.suspensions += 1;
        match supervision.enter(Phase::NotStarted) {
            Phase::Ready { connection } => Some(connection),
            _ => None,
        }
    }

    async fn connect_for(&self, is_needed: bool) -> Result<Connection, ClientError> {
        let mut outcome = match self.lookup(is_needed) {
            Lookup::Done(done) => return done,
            Lookup::Wait(outcome) => outcome,
        };
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(|| Err(interrupted())),
            Err(_) => Err(interrupted()),
        }
    }

    /// Returns the connection to the server if it is open. Starts nothing.
    #[must_use]
    pub fn ready(&self) -> Option<Connection> {
        let mut supervision = self.0.supervision();
        supervision.detect_end();
        match supervision.phase() {
            Phase::Ready { connection } => Some(connection.clone()),
            _ => None,
        }
    }

    /// Sends a request, see [`Connection::request`].
    ///
    /// # Errors
    /// Returns the errors of [`connection`](Self::connection) and [`Connection::request`].
    ///
    /// # Cancellation
    /// Dropping the future does not abort a start, and cancels the request as with [`Connection::request`].
    pub async fn request(
        &self,
        method: &str,
        params: impl Into<Params>,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        self.connection().await?.request(method, params, options).await
    }

    /// Calls a tool, see [`Connection::call_tool`].
    ///
    /// # Errors
    /// Returns the errors of [`connection`](Self::connection) and [`Connection::call_tool`].
    ///
    /// # Cancellation
    /// Dropping the future does not abort a start, and cancels the call as with [`Connection::call_tool`].
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &(impl Serialize + ?Sized),
        options: RequestOptions,
    ) -> Result<ToolResult, ClientError> {
        self.connection().await?.call_tool(name, arguments, options).await
    }

    fn lookup(&self, is_needed: bool) -> Lookup {
        let mut supervision = self.0.supervision();
        supervision.detect_end();
        match supervision.phase() {
            Phase::Ready { connection } => Lookup::Done(Ok(connection.clone())),
            Phase::Starting { outcome, ticket, .. } => {
                if is_needed {
                    ticket.prioritize();
                }
                Lookup::Wait(outcome.clone())
            }
            Phase::Stopped => Lookup::Done(Err(ClientError::closed("the server was shut down"))),
            Phase::Waiting { until } if *until > Instant::now() => {
                Lookup::Done(Err(supervision.unavailable(*until - Instant::now())))
            }
            Phase::NotStarted | Phase::Waiting { .. } => match self.0.budget.refusal() {
                Some(refusal) => Lookup::Done(Err(refusal)),
                None => Lookup::Wait(self.start(&mut supervision, is_needed)),
            },
        }
    }

    fn start(&self, supervision: &mut Supervision, is_needed: bool) -> Outcome {
        let (sender, outcome) = watch::channel(None);
        let ticket = Arc::new(StartTicket::new(is_needed));
        let own_ticket = Arc::clone(&ticket);
        let (inner, generation) = (Arc::clone(&self.0), supervision.generation);
        let task = tokio::spawn(async move {
            let permit = inner.budget.acquire().await;
            let mut limit_permit = None;
            let done = match &permit {
                Ok(_) => {
                    // Acquired second: a start that holds a permit of the shared limit never waits for its own server's
                    // budget.
                    if let Some(starts) = &inner.starts {
                        limit_permit = Some(own_ticket.acquire(starts).await);
                    }
                    inner.supervision().record_start(Instant::now());
                    inner.open_known_era().await
                }
                Err(refusal) => Err(refusal.clone()),
            };
            inner.record_outcome(&done, permit.is_ok(), generation);
            drop((permit, limit_permit));
            let end = done.as_ref().ok().map(Connection::closed_signal);
            // The channel keeps the value that was sent, which would keep the connection open.
            sender.send_replace(Some(done));
            drop(sender);
            if let Some(end) = end.filter(|_| inner.watches_end) {
                inner.watch_end(end).await;
            }
        });
        supervision.enter(Phase::Starting {
            outcome: outcome.clone(),
            task: task.abort_handle(),
            ticket,
        });
        outcome
    }

    /// Status of the server.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        let mut supervision = self.0.supervision();
        supervision.detect_end();
        supervision.status()
    }

    /// Replaces the endpoint, for example to use other credentials: the next caller opens a new connection, without a
    /// pause. Requests in progress finish on the old one.
    pub fn set_endpoint(&self, endpoint: impl Into<Endpoint>) {
        *self.0.endpoint.lock() = endpoint.into();
        let mut supervision = self.0.supervision();
        match supervision.phase() {
            Phase::Stopped => return,
            Phase::Starting { task, .. } => task.abort(),
            Phase::NotStarted | Phase::Ready { .. } | Phase::Waiting { .. } => {}
        }
        self.0.budget.clear_pause();
        // The task may be past the point at which it can be aborted.
        supervision.generation += 1;
        supervision.enter(Phase::NotStarted);
    }

    /// Watches the change counters of the server's lists, across all its connections.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<ChangeCounts> {
        self.0.notifier.subscribe()
    }

    /// Subscribes to the notifications that belong to no request, across all connections, from now on.
    #[must_use]
    pub fn events(&self) -> EventReceiver {
        self.0.notifier.events.subscribe()
    }

    /// Ends the server gracefully, see [`Connection::shutdown`]. It is not restarted.
    ///
    /// # Cancellation
    /// No further start is possible as soon as the future is polled. If it is dropped then, the connection ends at once
    /// unless somebody else holds it.
    pub async fn shutdown(&self) {
        let phase = self.0.supervision().enter(Phase::Stopped);
        match phase {
            Phase::Ready { connection } => connection.shutdown().await,
            Phase::Starting { task, .. } => task.abort(),
            Phase::NotStarted | Phase::Waiting { .. } | Phase::Stopped => {}
        }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("endpoint", &self.0.endpoint())
            .field("status", &self.status())
            .finish()
    }
}

impl Inner {
    pub(super) fn supervision(&self) -> MutexGuard<'_, Supervision> {
        self.supervision.lock()
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        self.endpoint.lock().clone()
    }

    async fn open_known_era(&self) -> Result<Connection, ClientError> {
        let known = self.supervision().era;
        self.open(known).await
    }

    /// Opens a connection in the known era, or detects the era.
    pub(super) async fn open(&self, known: Option<Era>) -> Result<Connection, ClientError> {
        let (mut options, notifier) = (self.options.clone(), self.notifier.clone());
        options.era = match (options.era, known) {
            (EraChoice::Auto | EraChoice::Newest, Some(Era::Legacy)) => EraChoice::Legacy,
            (EraChoice::Auto | EraChoice::Newest, Some(Era::Modern)) => EraChoice::Modern,
            (choice, _) => choice,
        };
        let limit = options.start_timeout;
        let connection = match self.endpoint() {
            #[cfg(feature = "stdio")]
            Endpoint::Stdio(command) => Connection::spawn_with(&command, options, notifier).await,
            #[cfg(feature = "http")]
            Endpoint::Http(endpoint) => Connection::http_with(&endpoint, options, notifier).await,
            #[cfg(feature = "http")]
            Endpoint::Sse(endpoint) => Connection::sse_with(&endpoint, options, notifier).await,
            #[cfg(feature = "http")]
            Endpoint::WebSocket(endpoint) => Connection::websocket_with(&endpoint, options, notifier).await,
        }?;
        if let Some(check) = &self.check {
            let asked = check.run(&connection, RequestOptions::with_timeout(limit)).await;
            asked.map_err(|error| connection.health_check_error(error))?;
        }
        Ok(connection)
    }

    /// Records the end of a connection when it happens. Does not keep the connection open.
    async fn watch_end(self: Arc<Self>, mut end: watch::Receiver<bool>) {
        let inner = Arc::downgrade(&self);
        drop(self);
        // An error means that the connection was dropped.
        let _ = end.wait_for(|ended| *ended).await;
        if let Some(inner) = inner.upgrade() {
            inner.supervision().detect_end();
        }
    }

    /// Records the outcome of a start, which had no permit if another start failed meanwhile.
    fn record_outcome(&self, done: &Result<Connection, ClientError>, had_permit: bool, generation: u64) {
        let mut supervision = self.supervision();
        if !supervision.is_current(generation) {
            return;
        }
        match done {
            Ok(connection) => {
                supervision.server = Some(connection.server().clone());
                supervision.era = Some(connection.server().era());
                self.budget.record_success();
                supervision.enter(Phase::Ready {
                    connection: connection.clone(),
                });
                if supervision.starts > 1 {
                    self.notifier.record_reopening();
                }
            }
            Err(error) if !had_permit => {
                let retry_in = match error.kind() {
                    ClientErrorKind::Unavailable { retry_in, .. } => *retry_in,
                    _ => Duration::ZERO,
                };
                supervision.pause_for(retry_in);
            }
            Err(error) => {
                // The server may speak another era by now.
                supervision.era = None;
                supervision.record_failure(error, None, Instant::now());
            }
        }
    }
}
