use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tool_core::{
    Backend, CallContext, Caller, ClientIdentity, Clock, Descriptor, DynBackend, Executor, Instant, Invoke,
    Jitter, Outcome, PrepareError, RawJson, Reach, Reentry, Tool, ToolError,
};

use crate::{
    RouteDefinition, RouteReport, RouteTools, call::RouteCall, candidates::Candidates, choice::Ranking,
    figures::RouteFigures,
};

/// Executor of kind `route`: tools that choose another tool at call time.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tool_core::Reentry;
/// use tool_route::{RouteExecutor, RouteTools};
///
/// # fn example(reentry: Arc<dyn Reentry>, tools: Arc<dyn RouteTools>) {
/// let executor = RouteExecutor::new(reentry, tools);
/// # let _ = executor;
/// # }
/// ```
#[derive(Clone)]
pub struct RouteExecutor {
    pub(crate) reentry: Arc<dyn Reentry>,
    pub(crate) tools: Arc<dyn RouteTools>,
    jitter: Arc<Jitter>,
}

/// Chooses among the candidates of one definition, and remembers which of them leads.
pub struct Router {
    definition: RouteDefinition,
    tools: Arc<dyn RouteTools>,
    jitter: Arc<Jitter>,
    /// Candidates of the lists of tools in use, the last used last. Clients may see different lists.
    known: Mutex<Vec<Arc<Candidates>>>,
}

/// Maximum number of lists of tools whose candidates are kept.
const MAX_KNOWN: usize = 8;
/// Maximum number of calls for which the candidate is remembered that a decision is awaited for.
const MAX_WAITING: usize = 10_000;
/// Time for which it is remembered.
const WAITING: Duration = Duration::from_secs(3600);

/// Route, ready to be called.
struct RouteBackend {
    router: Router,
    executor: RouteExecutor,
    waiting: WaitingCalls,
}

/// Candidates of calls that wait for a decision: the same call goes to the same candidate.
#[derive(Default)]
pub(crate) struct WaitingCalls(Mutex<HashMap<[u8; 32], WaitingCall>>);

struct WaitingCall {
    candidate: Arc<str>,
    since: Instant,
}

impl RouteExecutor {
    /// Key in `_meta` of a route's result, with the chosen tool and the scores.
    pub const META_KEY: &'static str = "dev.toolplane/route";
    /// Kind that descriptors name.
    pub const KIND: &'static str = "route";

    /// Creates an executor whose routes choose among `tools` and make their calls through `reentry`.
    #[must_use]
    pub fn new(reentry: Arc<dyn Reentry>, tools: Arc<dyn RouteTools>) -> Self {
        Self {
            reentry,
            tools,
            jitter: Arc::default(),
        }
    }

    /// Sets the seed of the draws between equally good tools. Random by default.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.jitter = Arc::new(Jitter::seeded(seed));
        self
    }
}

impl Executor for RouteExecutor {
    fn kind(&self) -> &str {
        Self::KIND
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let definition = RouteDefinition::read(&descriptor.executor.config)?;
        let mut router = Router::new(definition, self.tools.clone());
        router.jitter = self.jitter.clone();
        Ok(Arc::new(RouteBackend {
            router,
            executor: self.clone(),
            waiting: WaitingCalls::default(),
        }))
    }

    fn calls_tools(&self) -> bool {
        true
    }

    /// A route has no secrets. It reaches what its candidates reach, each with permissions of its own.
    fn reach(&self, descriptor: &Descriptor) -> Reach {
        let reach = Reach::new(Vec::new());
        let Ok(definition) = RouteDefinition::read(&descriptor.executor.config) else {
            return reach;
        };
        let wanted = definition.wanted;
        let reach = match wanted.capability {
            Some(capability) => {
                reach.with_other(format!("calls any tool with the capability `{capability}`"))
            }
            None => reach,
        };
        wanted.tools.iter().fold(reach, |reach, tool| {
            reach.with_other(format!("calls the tools `{}`", tool.as_str()))
        })
    }

    fn config_schema(&self) -> RawJson {
        crate::schema::config_schema()
    }
}

impl Router {
    /// Creates a router.
    #[must_use]
    pub fn new(definition: RouteDefinition, tools: Arc<dyn RouteTools>) -> Self {
        Self {
            definition,
            tools,
            jitter: Arc::default(),
            known: Mutex::default(),
        }
    }

    /// Returns the definition.
    #[must_use]
    pub fn definition(&self) -> &RouteDefinition {
        &self.definition
    }

    /// Chooses a tool for a call, without making it, and tells the scores of all candidates.
    ///
    /// # Cancellation
    /// Dropping the future ends the choice. Servers that are starting continue to start.
    pub async fn report(&self, caller: &Caller, client: &ClientIdentity, clock: &dyn Clock) -> RouteReport {
        let tools = self.tools.find(&self.definition.wanted, caller, client).await;
        let candidates = self.candidates(&tools);
        let now = clock.now();
        let obstacle = |tool: &Tool| self.tools.obstacle(tool, caller, now);
        let mut ranking = self.rank(&candidates, now);
        let chosen = ranking.next(&obstacle, &self.jitter, true);
        RouteReport::whole(&ranking, chosen, &obstacle)
    }

    /// Chooses a tool of this list for a call that is made next. `None` if every candidate is out.
    #[must_use]
    pub fn choose(&self, tools: &Arc<[Arc<Tool>]>, caller: &Caller, now: Instant) -> Option<Arc<Tool>> {
        let candidates = self.candidates(tools);
        let mut ranking = self.rank(&candidates, now);
        let obstacle = |tool: &Tool| self.tools.obstacle(tool, caller, now);
        let chosen = ranking.next(&obstacle, &self.jitter, false)?;
        Some(candidates.entries[chosen].tool.clone())
    }

    /// Records the end of a call that [`Router::choose`] was for, made by the program itself.
    pub fn record(&self, tool: &Tool, now: Instant, latency: Duration, has_failed: bool) {
        RouteFigures::of(tool).record(now, latency, has_failed);
    }

    pub(crate) fn rank<'a>(&'a self, candidates: &'a Candidates, now: Instant) -> Ranking<'a> {
        let health = candidates.health(self.tools.health(), now);
        Ranking::new(&self.definition, candidates, health, now)
    }

    pub(crate) fn jitter(&self) -> &Jitter {
        &self.jitter
    }

    /// Returns the candidates of a list of tools.
    pub(crate) fn candidates(&self, tools: &Arc<[Arc<Tool>]>) -> Arc<Candidates> {
        let mut known = self.known.lock();
        if let Some(place) = known.iter().position(|known| Arc::ptr_eq(&known.tools, tools)) {
            let last = known.len() - 1;
            known.swap(place, last);
            return known[last].clone();
        }
        let leader = known.last().and_then(|last| {
            let leader = last.leader()?;
            Some(last.entries[leader].tool.name().clone())
        });
        let made = Arc::new(Candidates::new(&self.definition, tools, leader.as_deref()));
        if known.len() == MAX_KNOWN {
            known.remove(0);
        }
        known.push(made.clone());
        made
    }
}

impl Invoke for RouteBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        // Boxed, so that the calls of other tools do not carry the size of its future.
        let call = RouteCall {
            router: &self.router,
            executor: &self.executor,
            waiting: &self.waiting,
        };
        Box::pin(call.run(cx)).await
    }
}

impl Backend for RouteBackend {}

impl WaitingCalls {
    /// Remembers that a call waits for a decision about a candidate.
    pub(crate) fn put(&self, cx: &CallContext, candidate: Arc<str>) {
        let (key, since) = (cx.continuation_key(""), cx.clock.now());
        let mut calls = self.0.lock();
        if calls.len() >= MAX_WAITING {
            calls.retain(|_, call| since.since(call.since) < WAITING);
        }
        if calls.len() >= MAX_WAITING
            && let Some(oldest) = calls
                .iter()
                .min_by_key(|(_, call)| call.since)
                .map(|(key, _)| *key)
        {
            calls.remove(&oldest);
        }
        calls.insert(key, WaitingCall { candidate, since });
    }

    /// Returns the candidate that a decision is awaited for, and forgets it.
    pub(crate) fn take(&self, cx: &CallContext) -> Option<Arc<str>> {
        // Seldom does a call wait, and the key costs more than the choice.
        if self.0.lock().is_empty() {
            return None;
        }
        let call = self.0.lock().remove(&cx.continuation_key(""))?;
        (cx.clock.now().since(call.since) < WAITING).then_some(call.candidate)
    }
}

impl fmt::Debug for RouteExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteExecutor").finish_non_exhaustive()
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}
