//! A server under supervision.

mod backoff;
mod budget;
mod check;
mod start_limit;
mod status;
mod supervision;

use std::{fmt, sync::Arc, time::Duration};

use mcp_wire::{Era, Params};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::Instant,
};

pub use self::{
    budget::StartBudget,
    check::HealthCheck,
    start_limit::StartLimit,
    status::{OnStatus, State, Status},
};
use self::{
    start_limit::Ticket,
    supervision::{Outcome, Phase, Supervision, interrupted},
};
use crate::{
    Changes, ClientError, ClientErrorKind, Command, Connection, ConnectionOptions, EraChoice, Events,
    HttpEndpoint, RequestOptions, changes::ChangeSink,
};

/// Where a server is, or how it is started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Endpoint {
    /// A program that is started.
    Stdio(Command),
    /// A server that listens.
    Http(HttpEndpoint),
    /// A server that listens and speaks HTTP+SSE, the transport of 2024-11-05.
    Sse(HttpEndpoint),
    /// A server that listens and speaks WebSocket.
    WebSocket(HttpEndpoint),
}

/// How a server is supervised.
#[derive(Debug, Clone, Default)]
pub struct UpstreamOptions {
    /// How its connections are opened.
    pub connection: ConnectionOptions,
    /// What the jitter of pauses is computed from; chosen at random when not set.
    pub jitter_seed: Option<u64>,
    /// The era that the server is known to speak: it is tried first where [`ConnectionOptions::era`] leaves it open.
    pub era: Option<Era>,
    /// How often it is started, where it shares that with other connections to the same server.
    pub budget: Option<StartBudget>,
    /// How many servers are started at the same time, where it shares that with others.
    pub starts: Option<StartLimit>,
    /// What the server is asked whenever it was started: one that does not answer within
    /// [`ConnectionOptions::start_timeout`], or reports a failure, has failed to start.
    pub check: Option<HealthCheck>,
    /// Is told of every change of [`Upstream::status`] as it happens, also of an end that nobody has noticed yet.
    pub on_status: Option<OnStatus>,
}

/// An MCP server that is started when it is first needed, once however many callers need it, and started again when
/// it has failed.
///
/// # Restart
/// A server that fails within a minute of its start is started again after 1 s, then 2, 4, 8, 16, 32 s and then once a
/// minute, when it is needed; meanwhile callers get [`ClientErrorKind::Unavailable`](crate::ClientErrorKind::Unavailable) at once. One that has lived longer is
/// started again without a pause. No request is ever sent twice.
///
/// Cloning shares the server; dropping the last clone ends it at once.
#[derive(Clone)]
pub struct Upstream(Arc<Inner>);

struct Inner {
    endpoint: Mutex<Endpoint>,
    options: ConnectionOptions,
    check: Option<HealthCheck>,
    /// Whether an end is to be noticed when it comes, and not when somebody looks.
    is_followed: bool,
    budget: StartBudget,
    starts: Option<StartLimit>,
    changes: ChangeSink,
    supervision: Mutex<Supervision>,
    /// When the era was found out anew the last time; held while it is.
    era_found: AsyncMutex<Option<Instant>>,
}

/// How long after the era was found out anew it is not doubted again.
const DOUBT: Duration = Duration::from_secs(10);

/// What a caller is to do.
enum Step {
    Done(Result<Connection, ClientError>),
    Wait(Outcome),
}

impl Upstream {
    /// A server that is not started yet.
    #[must_use]
    pub fn new(endpoint: Endpoint, options: UpstreamOptions) -> Self {
        let is_followed = options.on_status.is_some();
        let budget = options.budget;
        let budget = budget.unwrap_or_else(|| StartBudget::new(options.jitter_seed));
        let mut supervision = Supervision::new(budget.clone(), options.on_status);
        supervision.era = options.era;
        Self(Arc::new(Inner {
            endpoint: Mutex::new(endpoint),
            options: options.connection,
            check: options.check,
            is_followed,
            budget,
            starts: options.starts,
            changes: ChangeSink::default(),
            supervision: Mutex::new(supervision),
            era_found: AsyncMutex::default(),
        }))
    }

    /// The connection to the server, which is started if need be. A caller that leaves does not stop the start.
    ///
    /// # Errors
    /// As [`Connection::spawn`] and [`Connection::http`] when the start fails; [`ClientErrorKind::Unavailable`](crate::ClientErrorKind::Unavailable) at once
    /// while a server that failed rests.
    pub async fn connection(&self) -> Result<Connection, ClientError> {
        self.connection_for(true).await
    }

    /// The same without hurry: servers that somebody waits for are started first, see [`StartLimit`].
    ///
    /// # Errors
    /// As [`connection`](Self::connection).
    pub async fn connection_in_background(&self) -> Result<Connection, ClientError> {
        self.connection_for(false).await
    }

    /// Begins to start the server without hurry, unless it runs, is being started, or rests.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start_in_background(&self) {
        drop(self.step(false));
    }

    /// Has a start that waits for its turn come before those in the background.
    pub fn hurry(&self) {
        if let Phase::Starting { ticket, .. } = self.0.supervision().phase() {
            ticket.hurry();
        }
    }

    /// Puts the server back to where it was before anybody needed it, and returns its connection, for the caller to shut down;
    /// `None` if it is not open, or a request waits for an answer. The next who needs the server starts it.
    #[must_use]
    pub fn suspend(&self) -> Option<Connection> {
        let mut supervision = self.0.supervision();
        supervision.notice_end();
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

    async fn connection_for(&self, is_needed: bool) -> Result<Connection, ClientError> {
        let mut outcome = match self.step(is_needed) {
            Step::Done(done) => return done,
            Step::Wait(outcome) => outcome,
        };
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(|| Err(interrupted())),
            Err(_) => Err(interrupted()),
        }
    }

    /// The connection to the server, if it is open now. Starts nothing.
    #[must_use]
    pub fn ready(&self) -> Option<Connection> {
        let mut supervision = self.0.supervision();
        supervision.notice_end();
        match supervision.phase() {
            Phase::Ready { connection } => Some(connection.clone()),
            _ => None,
        }
    }

    /// Finds out, after an error that [may say so](Error::may_be_other_era) of a request on this connection, whether the
    /// server speaks another era by now. If it does, whoever needs it from now on has a connection of that era, which is
    /// known from then on; the request has not run, and can be made there. Only an endpoint over HTTP changes without its
    /// connection noticing, and only an era that is not chosen by [`ConnectionOptions::era`] is doubted.
    pub async fn detect_era_change(&self, refused: &Connection) -> bool {
        let is_open = matches!(self.0.options.era, EraChoice::Auto | EraChoice::Newest);
        if !is_open || matches!(self.0.endpoint(), Endpoint::Stdio(_) | Endpoint::WebSocket(_)) {
            return false;
        }
        let era = refused.server().era();
        let mut found = self.0.era_found.lock().await;
        // Somebody else may have found out meanwhile.
        if let Some(now) = self.ready()
            && now.server().era() != era
        {
            return true;
        }
        if found.is_some_and(|found| found.elapsed() < DOUBT) {
            return false;
        }
        *found = Some(Instant::now());
        let moves = self.0.supervision().moves;
        match self.0.open(None).await {
            Ok(connection) if connection.server().era() != era => self.0.replace(connection, moves),
            Ok(connection) => {
                connection.shutdown().await;
                false
            }
            Err(error) => {
                tracing::debug!(%error, "the era of a server could not be found out anew");
                false
            }
        }
    }

    /// Makes a request, see [`Connection::request`].
    ///
    /// # Errors
    /// As [`connection`](Self::connection) and [`Connection::request`].
    pub async fn request(
        &self,
        method: &str,
        params: impl Into<Params>,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        self.connection().await?.request(method, params, options).await
    }

    fn step(&self, is_needed: bool) -> Step {
        let mut supervision = self.0.supervision();
        supervision.notice_end();
        match supervision.phase() {
            Phase::Ready { connection } => Step::Done(Ok(connection.clone())),
            Phase::Starting { outcome, ticket, .. } => {
                if is_needed {
                    ticket.hurry();
                }
                Step::Wait(outcome.clone())
            }
            Phase::Stopped => Step::Done(Err(ClientError::closed("the server was shut down"))),
            Phase::Waiting { until } if *until > Instant::now() => {
                Step::Done(Err(supervision.unavailable(*until - Instant::now())))
            }
            Phase::NotStarted | Phase::Waiting { .. } => match self.0.budget.refusal() {
                Some(refusal) => Step::Done(Err(refusal)),
                None => Step::Wait(self.start(&mut supervision, is_needed)),
            },
        }
    }

    fn start(&self, supervision: &mut Supervision, is_needed: bool) -> Outcome {
        let (sender, outcome) = watch::channel(None);
        let ticket = Arc::new(Ticket::new(is_needed));
        let entering = Arc::clone(&ticket);
        let (inner, moves) = (Arc::clone(&self.0), supervision.moves);
        let task = tokio::spawn(async move {
            let turn = inner.budget.turn().await;
            let mut start_turn = None;
            let done = match &turn {
                Ok(_) => {
                    // Whoever has a turn among all servers never waits for one of its own server's.
                    if let Some(starts) = &inner.starts {
                        start_turn = Some(entering.turn(starts).await);
                    }
                    inner.supervision().began(Instant::now());
                    inner.connect().await
                }
                Err(refusal) => Err(refusal.clone()),
            };
            inner.started(&done, turn.is_ok(), moves);
            drop((turn, start_turn));
            let end = done.as_ref().ok().map(Connection::end_signal);
            // What is sent is kept by the sender, which would keep the connection open.
            sender.send_replace(Some(done));
            drop(sender);
            if let Some(end) = end.filter(|_| inner.is_followed) {
                inner.follow(end).await;
            }
        });
        supervision.enter(Phase::Starting {
            outcome: outcome.clone(),
            task: task.abort_handle(),
            ticket,
        });
        outcome
    }

    /// How the server is doing.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut supervision = self.0.supervision();
        supervision.notice_end();
        supervision.status()
    }

    /// Reaches the server in another way from now on, such as with other credentials: the next who needs it opens a
    /// connection anew, without a pause. Requests under way on the one before are answered there.
    pub fn move_to(&self, endpoint: Endpoint) {
        *self.0.endpoint.lock() = endpoint;
        let mut supervision = self.0.supervision();
        match supervision.phase() {
            Phase::Stopped => return,
            Phase::Starting { task, .. } => task.abort(),
            Phase::NotStarted | Phase::Ready { .. } | Phase::Waiting { .. } => {}
        }
        self.0.budget.forgive();
        // The task may be past the point at which it can be aborted.
        supervision.moves += 1;
        supervision.enter(Phase::NotStarted);
    }

    /// How often the server's lists have changed, over all its connections.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Changes> {
        self.0.changes.subscribe()
    }

    /// What the server tells that belongs to no request, over all its connections, from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.0.changes.events.subscribe()
    }

    /// Ends the server in order, see [`Connection::shutdown`]. It is not started again.
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
    fn supervision(&self) -> MutexGuard<'_, Supervision> {
        self.supervision.lock()
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.lock().clone()
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let known = self.supervision().era;
        self.open(known).await
    }

    /// Opens a connection in the era that is known, or finds out which it is.
    async fn open(&self, known: Option<Era>) -> Result<Connection, ClientError> {
        let (mut options, changes) = (self.options.clone(), self.changes.clone());
        options.era = match (options.era, known) {
            (EraChoice::Auto | EraChoice::Newest, Some(Era::Legacy)) => EraChoice::Legacy,
            (EraChoice::Auto | EraChoice::Newest, Some(Era::Modern)) => EraChoice::Modern,
            (choice, _) => choice,
        };
        let limit = options.start_timeout;
        let connection = match self.endpoint() {
            Endpoint::Stdio(command) => Connection::spawn_with(&command, options, changes).await,
            Endpoint::Http(endpoint) => Connection::http_with(&endpoint, options, changes).await,
            Endpoint::Sse(endpoint) => Connection::sse_with(&endpoint, options, changes).await,
            Endpoint::WebSocket(endpoint) => Connection::websocket_with(&endpoint, options, changes).await,
        }?;
        if let Some(check) = &self.check {
            let asked = check.ask(&connection, RequestOptions::with_timeout(limit)).await;
            asked.map_err(|error| connection.check_failed(error))?;
        }
        Ok(connection)
    }

    /// Puts a connection of another era in the place of the present one. Requests under way there are answered there.
    fn replace(&self, connection: Connection, moves: u64) -> bool {
        let mut supervision = self.supervision();
        if !supervision.awaits(moves) || !matches!(supervision.phase(), Phase::Ready { .. }) {
            return false;
        }
        let era = connection.server().era();
        tracing::info!(?era, "a server speaks another era of the protocol by now");
        supervision.server = Some(connection.server().clone());
        supervision.era = Some(era);
        supervision.enter(Phase::Ready { connection });
        self.changes.opened_anew();
        true
    }

    /// Takes note of the end of a connection when it comes. Whoever waits here keeps nothing open.
    async fn follow(self: Arc<Self>, mut end: watch::Receiver<bool>) {
        let inner = Arc::downgrade(&self);
        drop(self);
        // An error means that the connection is gone altogether.
        let _ = end.wait_for(|ended| *ended).await;
        if let Some(inner) = inner.upgrade() {
            inner.supervision().notice_end();
        }
    }

    /// Takes note of what came of a start, which had no turn if another one failed meanwhile.
    fn started(&self, done: &Result<Connection, ClientError>, had_turn: bool, moves: u64) {
        let mut supervision = self.supervision();
        if !supervision.awaits(moves) {
            return;
        }
        match done {
            Ok(connection) => {
                supervision.server = Some(connection.server().clone());
                supervision.era = Some(connection.server().era());
                self.budget.came_up();
                supervision.enter(Phase::Ready {
                    connection: connection.clone(),
                });
                if supervision.starts > 1 {
                    self.changes.opened_anew();
                }
            }
            Err(error) if !had_turn => {
                let retry_in = match error.kind() {
                    ClientErrorKind::Unavailable { retry_in, .. } => *retry_in,
                    _ => Duration::ZERO,
                };
                supervision.put_off(retry_in);
            }
            Err(error) => {
                // Maybe it speaks another one by now.
                supervision.era = None;
                supervision.failed(error, None, Instant::now());
            }
        }
    }
}
