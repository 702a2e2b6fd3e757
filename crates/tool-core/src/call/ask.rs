use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;

use crate::{BoxFuture, Clock, Instant};

/// The way back to the caller's client while a call runs: what it can be asked, and what it is told.
///
/// Questions are asked in the words of the server that asks, such as `elicitation/create`.
pub trait Ask: Send + Sync {
    /// Which client this is, so that a connection can be kept for it alone.
    fn client(&self) -> ClientKey;

    /// What the client declared that it can be asked: an object with `elicitation`, `sampling` and `roots` as the
    /// client wrote them, and nothing else. Empty when it can be asked nothing.
    fn capabilities(&self) -> RawJson;

    /// Asks for something and waits for the answer. Dropping the future takes the question back.
    ///
    /// # Errors
    /// When the client cannot be asked this, does not answer, or answers with an error.
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>>;

    /// Whether the client rather takes what a call needs as the answer to it, and makes the call again: see
    /// [`Outcome::NeedsInput`](crate::Outcome::NeedsInput). Then nothing has to wait for it here.
    fn takes_rounds(&self) -> bool {
        false
    }

    /// The lowest level of log messages that the client wants with this call, such as `info`; nothing if it wants
    /// none.
    fn log_level(&self) -> Option<Arc<str>>;

    /// Passes on a log message of the server: an object with `level`, `data` and perhaps `logger`. It never blocks.
    fn log(&self, message: &RawJson);
}

/// Which client calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClientKey {
    /// One client, by something that it alone has, such as its session.
    Session(Arc<str>),
    /// Any of a principal's clients: which one cannot be told from one call to the next.
    Principal(Arc<str>),
}

/// What a server asks of the caller's client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked, such as `elicitation/create`.
    pub method: String,
    /// The parameters as the server wrote them.
    pub params: Option<RawJson>,
}

/// Why a client did not give what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare that it can be asked this, or there is no way to ask it.
    #[error("the client cannot be asked this: {0}")]
    Impossible(String),
    /// The client answered with an error: `code`, `message` and perhaps `data` as it wrote them.
    #[error("the client answered with an error")]
    Refused(RawJson),
    /// The client is gone, or took too long.
    #[error("the client did not answer")]
    Unanswered,
}

/// The [`Ask`] of one call, which keeps count of the time that the caller took: it is not the tool's.
#[derive(Clone)]
pub struct Asker {
    ask: Arc<dyn Ask>,
    clock: Arc<dyn Clock>,
    waits: Arc<Mutex<Waits>>,
}

/// How long was waited for the caller. Questions may be open at the same time; the time counts once.
#[derive(Debug, Default)]
struct Waits {
    n_open: usize,
    has_asked: bool,
    since: Option<Instant>,
    total: Duration,
}

impl Asker {
    /// The way back over this, measured by this clock.
    #[must_use]
    pub fn new(ask: Arc<dyn Ask>, clock: Arc<dyn Clock>) -> Self {
        Self {
            ask,
            clock,
            waits: Arc::default(),
        }
    }

    /// The same way back over another [`Ask`], which stands in front of this one's: what is waited for counts for both.
    #[must_use]
    pub fn through(&self, ask: Arc<dyn Ask>) -> Self {
        Self {
            ask,
            clock: Arc::clone(&self.clock),
            waits: Arc::clone(&self.waits),
        }
    }

    /// Asks, see [`Ask::ask`].
    ///
    /// # Errors
    /// As [`Ask::ask`].
    pub async fn ask(&self, question: Question) -> Result<RawJson, AskError> {
        let _waiting = Waiting::begin(self);
        self.ask.ask(question).await
    }

    /// The client itself.
    #[must_use]
    pub fn client(&self) -> &Arc<dyn Ask> {
        &self.ask
    }

    /// How long the call has waited for the caller until now.
    #[must_use]
    pub fn waited(&self) -> Duration {
        let waits = self.waits.lock();
        let open = waits
            .since
            .map_or(Duration::ZERO, |since| self.clock.now().since(since));
        waits.total + open
    }

    /// Whether the caller was asked anything yet.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.waits.lock().has_asked
    }

    /// Whether a question is open.
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

/// A question that is open until this is dropped.
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
