mod attempt_history;
mod attempts;

use std::{borrow::Cow, fmt, num::ParseIntError, str::FromStr, sync::Arc, time::Duration};

use raw_json::RawJson;
use sha2::{Digest, Sha256};

use self::attempt_history::AttemptHistory;
use crate::{
    Arguments, Asker, Caller, ClientCapabilities, ClientIdentity, ClientKey, Clock, DispatchHistory,
    DispatchState, Event, Instant, InsteadOf, Observers, Progress, Resume, Task, TaskRequest, TaskWish, Tool,
    TraceContext,
};

/// What a call is made of. It goes down the layers by `&mut` and belongs to none of them.
///
/// # Cancellation
/// A call is cancelled by dropping its future. [`CallContext::dispatch`] outlives the future, so that whoever
/// dropped it can still tell whether the tool may have run.
#[non_exhaustive]
pub struct CallContext {
    /// Whether the call is made or only gone through.
    pub mode: Mode,
    /// What is called.
    pub target: Target,
    /// What it is called with.
    pub arguments: Arc<Arguments>,
    /// On whose behalf.
    pub caller: Arc<Caller>,
    /// What ties all records of this call together.
    pub correlation_id: CorrelationId,
    /// The trace that what is sent now belongs to: the caller's, until a span of ours takes its place.
    pub trace: Option<TraceContext>,
    /// When everything must be over: queueing, retries and fallbacks included.
    pub deadline: Option<Instant>,
    /// Which attempt this is, from 1; 0 before the first.
    pub attempt: u32,
    /// Whether this is made beside an attempt that is under way, to have an answer sooner: it waits for nothing that is
    /// scarce.
    pub is_hedge: bool,
    /// The caller's key for this very effect: calls with the same key have it once.
    pub idempotency_key: Option<Arc<str>>,
    /// The entry of the ledger that this call goes on with, if it is not the first with its key: see
    /// [`CallContext::ledger_id`].
    pub entry: Option<CorrelationId>,
    /// Where the tool's progress goes, if the caller wants to know.
    pub progress: Option<Arc<dyn Progress>>,
    /// Which client calls, if the edge can tell: also one that can be asked nothing.
    pub client: Option<ClientKey>,
    /// The questions that the client declared to answer, also where there is no way back to it.
    pub client_capabilities: ClientCapabilities,
    /// The way back to the caller's client, if there is one.
    pub ask: Option<Asker>,
    /// What the caller gave for what the tool asked in the round before, if this is another round of a call.
    pub resume: Option<Arc<Resume>>,
    /// What the caller says beside the arguments, as one object that is passed on as it is.
    pub meta: Option<RawJson>,
    /// What the caller says beside all that is known of a call, an object: it reaches what runs the tool as it is.
    pub beside: Option<RawJson>,
    /// Whether the caller can follow the call as a task, or wants to; it must have an answer at once if absent.
    pub task: Option<TaskWish>,
    /// The tools that failed before the present one, which stands in their place; nothing in a call of its own.
    pub instead_of: Option<InsteadOf>,
    /// Who is told what happens to the call.
    pub observers: Observers,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    attempts: AttemptHistory,
    notes: Option<Vec<Note>>,
}

/// Selects whether layers act on a call or only decide about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The call is made.
    #[default]
    Live,
    /// Every layer decides as ever and says so, but counts nothing, keeps nothing and asks nobody; nothing is sent.
    DryRun,
}

/// What a call is addressed to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Target {
    /// A tool, to be called.
    Tool(Arc<Tool>),
    /// A prompt, to be rendered with the arguments.
    Prompt(Arc<Tool>),
    /// A resource, to be read.
    Resource {
        /// The resource itself, or the template that it belongs to.
        resource: Arc<Tool>,
        /// Its own URI.
        uri: Arc<str>,
    },
    /// A prompt or template of which an argument is to be completed. The call's arguments are what the protocol says
    /// beside the reference: `argument` and perhaps `context`.
    Completion(Arc<Tool>),
    /// A task that a call of a tool became. The call has no arguments; everything else goes by the tool.
    Task {
        /// The tool that was called.
        tool: Arc<Tool>,
        /// The task.
        task: Task,
        /// What is asked about it.
        request: TaskRequest,
    },
}

impl Target {
    /// The tool, or what stands for one: layers go by its settings, schema and state.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        match self {
            Self::Tool(tool) | Self::Prompt(tool) | Self::Completion(tool) => tool,
            Self::Resource { resource, .. } => resource,
            Self::Task { tool, .. } => tool,
        }
    }

    /// The name that policy rules and logs know it by: of a resource that a template stands for, its own.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        let name = self.tool().name();
        if let Self::Resource { resource, uri } = self
            && let Some(known) = resource.descriptor().uri.as_ref().filter(|known| known != &uri)
        {
            let prefix = name.strip_suffix(&**known).unwrap_or_default();
            return format!("{prefix}{uri}").into();
        }
        Cow::Borrowed(name)
    }
}

/// What ties all records of a call together: 128 random bits, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CorrelationId(pub u128);

/// What a layer decided about a call, kept when the call is to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The layer's name.
    pub layer: &'static str,
    /// What it decided, and why.
    pub decision: String,
    /// How long after the call's start.
    pub at: Instant,
}

impl CallContext {
    /// A call with nothing but the necessary.
    #[must_use]
    pub fn new(
        target: Target,
        arguments: Arc<Arguments>,
        caller: Arc<Caller>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            mode: Mode::Live,
            target,
            arguments,
            caller,
            correlation_id: CorrelationId(0),
            trace: None,
            deadline: None,
            attempt: 0,
            is_hedge: false,
            idempotency_key: None,
            entry: None,
            progress: None,
            client: None,
            client_capabilities: ClientCapabilities::default(),
            ask: None,
            resume: None,
            meta: None,
            beside: None,
            task: None,
            instead_of: None,
            observers: Observers::default(),
            clock,
            attempts: AttemptHistory::default(),
            notes: None,
        }
    }

    /// The tool that is called, or what stands for one: see [`Target::tool`].
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        self.target.tool()
    }

    /// Returns `true` if nothing may be sent, counted or kept for the call: see [`Mode::DryRun`].
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.mode == Mode::DryRun
    }

    /// The identity of the client that calls.
    #[must_use]
    pub fn client_identity(&self) -> ClientIdentity {
        let ask = self.ask.as_ref().map(|asker| &**asker.client());
        ClientIdentity::new(ask, self.client.as_ref(), self.client_capabilities, &self.caller)
    }

    /// Under which id a [`Ledger`](crate::Ledger) remembers the call, if it does.
    #[must_use]
    pub fn ledger_id(&self) -> CorrelationId {
        self.entry.unwrap_or(self.correlation_id)
    }

    /// The idempotency key as it is passed on to what runs the tool, in the form of a UUID; nothing if the call has
    /// none. Not the caller's own text: different principals may use the same one, and to what runs the tool they are
    /// all one client.
    #[must_use]
    pub fn outward_key(&self) -> Option<String> {
        let key = self.idempotency_key.as_deref()?;
        let mut digest = Sha256::new();
        for part in [
            &*self.caller.tenant,
            &*self.caller.principal,
            &**self.tool().name(),
            key,
        ] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let digest = digest.finalize();
        let mut bytes: [u8; 16] = std::array::from_fn(|index| digest[index]);
        // Version 8 of RFC 9562: made in a way of one's own.
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let text = format!("{:032x}", u128::from_be_bytes(bytes));
        let (a, b, c, d, e) = (
            &text[..8],
            &text[8..12],
            &text[12..16],
            &text[16..20],
            &text[20..],
        );
        Some(format!("{a}-{b}-{c}-{d}-{e}"))
    }

    /// The time left until the deadline, which the time that the caller took to answer questions puts off; nothing if
    /// there is no deadline.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let waited = self.waited();
        self.deadline
            .map(|deadline| (deadline + waited).since(self.clock.now()))
    }

    /// Whether an attempt that nobody waited for any longer speaks against its tool: it was sent off, and had nearly all
    /// the time that the operator gives it. Callers may be impatient, which says nothing of the tool; without this, one
    /// that hangs for longer than calls last would never show.
    #[must_use]
    pub fn had_its_time(&self, elapsed: Duration) -> bool {
        let settings = self.tool().settings();
        let limit = settings.attempt_timeout.min(settings.call_timeout);
        let was_sent = self.dispatch().state() == DispatchState::Sent;
        elapsed >= limit - limit / 10 && was_sent && !self.ask.as_ref().is_some_and(Asker::has_asked)
    }

    /// How long the call has waited for the caller to answer questions.
    fn waited(&self) -> Duration {
        self.ask.as_ref().map_or(Duration::ZERO, Asker::waited)
    }

    /// Moves the deadline to `limit` from now unless it is earlier already, and returns the time left until then.
    pub fn limit(&mut self, limit: Duration) -> Duration {
        let waited = self.waited();
        // On a time line that stands still while the caller is waited for.
        let now = Instant::since_start(self.clock.now().since(Instant::since_start(waited)));
        let latest = now + limit;
        let deadline = self.deadline.map_or(latest, |deadline| deadline.min(latest));
        self.deadline = Some(deadline);
        deadline.since(now)
    }

    /// Keeps what layers decide from now on.
    pub fn explain(&mut self) {
        self.notes.get_or_insert_default();
    }

    /// Notes what a layer decided. The text is made only if the call is to be explained.
    pub fn note(&mut self, layer: &'static str, decision: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(Note {
                layer,
                decision: decision(),
                at: self.clock.now(),
            });
        }
    }

    /// Tells observers that a layer refuses the call, and why in one of few words: see [`Event::Refused`].
    pub fn tell_refused(&self, layer: &'static str, reason: &'static str) {
        let cx = self;
        self.observers.tell(&Event::Refused { cx, layer, reason });
    }

    /// What the layers decided so far.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        self.notes.as_deref().unwrap_or_default()
    }

    /// A copy for work in a task of its own: the same call, with its own notes and its own dispatch mark, which counts as
    /// one of the call's.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            mode: self.mode,
            target: self.target.clone(),
            arguments: self.arguments.clone(),
            caller: self.caller.clone(),
            correlation_id: self.correlation_id,
            trace: self.trace.clone(),
            deadline: self.deadline,
            attempt: self.attempt,
            is_hedge: self.is_hedge,
            idempotency_key: self.idempotency_key.clone(),
            entry: self.entry,
            progress: self.progress.clone(),
            client: self.client.clone(),
            client_capabilities: self.client_capabilities,
            ask: self.ask.clone(),
            resume: self.resume.clone(),
            meta: self.meta.clone(),
            beside: self.beside.clone(),
            task: self.task.clone(),
            instead_of: self.instead_of.clone(),
            observers: self.observers.clone(),
            clock: self.clock.clone(),
            attempts: self.attempts.fork(),
            notes: self.notes.as_ref().map(|_| Vec::new()),
        }
    }

    /// A copy for work that is not this call's alone, whose attempts are counted there.
    #[must_use]
    pub fn fork_apart(&self, history: Arc<DispatchHistory>) -> Self {
        Self {
            attempt: 0,
            attempts: AttemptHistory::within(history),
            ..self.fork()
        }
    }

    /// The call of a tool that stands in for the present one: with the same arguments, by the same caller, within the same
    /// deadline and under the same correlation id. The idempotency key is the present one's, and so is what belongs to a
    /// round or a task of it.
    #[must_use]
    pub fn stand_in(&self, tool: Arc<Tool>, instead_of: InsteadOf) -> Self {
        Self {
            target: Target::Tool(tool),
            idempotency_key: None,
            entry: None,
            resume: None,
            task: None,
            instead_of: Some(instead_of),
            ..self.fork_apart(Arc::default())
        }
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("target", &self.target)
            .field("caller", &self.caller)
            .field("correlation_id", &self.correlation_id)
            .field("deadline", &self.deadline)
            .field("attempt", &self.attempt)
            .field("dispatch", self.dispatch())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for CorrelationId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

impl fmt::Debug for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
