use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;

use crate::{BoxFuture, Clock, Instant};

/// Port to the caller's client while a call runs: questions, and log messages.
///
/// A question uses the method of the asking server's protocol, such as `elicitation/create`.
pub trait Ask: Send + Sync {
    /// Returns the key of the client, so that a connection can be reserved for it.
    fn client(&self) -> ClientKey;

    /// Returns the capabilities that the client declared for questions: an object with only `elicitation`, `sampling`
    /// and `roots`, as the client wrote them. Empty if the client cannot be asked anything.
    fn capabilities(&self) -> RawJson;

    /// Asks a question and waits for the answer. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// If the client does not support the question, does not answer, or answers with an error.
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>>;

    /// Returns `true` if the client prefers to receive questions as the outcome of the call and to repeat the call
    /// with the answers: see [`Outcome::NeedsInput`](crate::Outcome::NeedsInput). Such a call does not wait for
    /// answers.
    fn takes_rounds(&self) -> bool {
        false
    }

    /// Returns the lowest level of log messages that the client wants with this call, such as `info`, or `None` if it
    /// wants no messages.
    fn log_level(&self) -> Option<Arc<str>>;

    /// Forwards a log message of the server: an object with `level`, `data` and optionally `logger`. Never blocks.
    fn log(&self, message: &RawJson);
}

/// Identifies the client that calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientKey {
    /// One client, by a value that no other client has, such as its session id.
    Session(Arc<str>),
    /// Any client of a principal. Calls of its clients cannot be told apart.
    Principal(Arc<str>),
}

/// Question of a server to the caller's client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// Method of the question, such as `elicitation/create`.
    pub method: String,
    /// Parameters as the server wrote them.
    pub params: Option<RawJson>,
}

impl Question {
    /// Creates a question.
    #[must_use]
    pub fn new(method: impl Into<String>, params: Option<RawJson>) -> Self {
        Self {
            method: method.into(),
            params,
        }
    }
}

/// Reason why a client did not answer a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare the capability, or there is no connection to ask it over.
    #[error("the client cannot be asked this: {0}")]
    Impossible(String),
    /// The client answered with an error: `code`, `message` and optionally `data`, as the client wrote them.
    #[error("the client answered with an error")]
    Refused(RawJson),
    /// The client is gone, or took too long.
    #[error("the client did not answer")]
    Unanswered,
}

/// [`Ask`] of one call. Measures the time that the client takes to answer, which does not count for the tool.
#[derive(Clone)]
pub struct Asker {
    ask: Arc<dyn Ask>,
    clock: Arc<dyn Clock>,
    waits: Arc<Mutex<Waits>>,
}

/// Time waited for answers. Questions that are open at the same time count once.
#[derive(Debug, Default)]
struct Waits {
    n_open: usize,
    has_asked: bool,
    since: Option<Instant>,
    total: Duration,
}

impl Asker {
    /// Creates the asker of a call, which measures time by `clock`.
    #[must_use]
    pub fn new(ask: Arc<dyn Ask>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ask,
            clock,
            waits: Arc::default(),
        }
    }

    /// Returns an asker that sends its questions through another [`Ask`], for example one that checks them first.
    /// Both share the measured time.
    #[must_use]
    pub fn through(&self, ask: Arc<dyn Ask>) -> Self {
        Self {
            ask,
            clock: Arc::clone(&self.clock),
            waits: Arc::clone(&self.waits),
        }
    }

    /// Asks a question: see [`Ask::ask`].
    ///
    /// # Errors
    /// The errors of [`Ask::ask`].
    ///
    /// # Cancellation
    /// Dropping the future withdraws the question. The time waited so far still does not count for the deadline of the call.
    pub async fn ask(&self, question: Question) -> Result<RawJson, AskError> {
        let _waiting = Waiting::begin(self);
        self.ask.ask(question).await
    }

    /// Returns the client.
    #[must_use]
    pub fn client(&self) -> &Arc<dyn Ask> {
        &self.ask
    }

    /// Returns the time that the call has waited for answers so far.
    #[must_use]
    pub fn waited(&self) -> Duration {
        let waits = self.waits.lock();
        let open = waits
            .since
            .map_or(Duration::ZERO, |since| self.clock.now().since(since));
        waits.total + open
    }

    /// Returns `true` if any question was asked.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.waits.lock().has_asked
    }

    /// Returns `true` while a question is open.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waits.lock().n_open > 0
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").finish_non_exhaustive()
    }
}

/// Guard of an open question.
struct Waiting<'a>(&'a Asker);

impl<'a> Waiting<'a> {
    fn begin(asker: &'a Asker) -> Self {
        let now = asker.clock.now();
        let mut waits = asker.waits.lock();
        waits.n_open += 1;
        waits.has_asked = true;
        waits.since.get_or_insert(now);
        drop(waits);
        Self(asker)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let now = self.0.clock.now();
        let mut waits = self.0.waits.lock();
        waits.n_open -= 1;
        if waits.n_open == 0
            && let Some(since) = waits.since.take()
        {
            waits.total += now.since(since);
        }
    }
}
