use std::{fmt, pin::pin, sync::Arc, time::Duration};

use crate::{CacheSettings, FallbackLadder, SemanticCacheSettings};
use raw_json::RawJson;
use tokio::sync::{oneshot, watch};
use tool_core::{
    CacheOutcome, CallContext, Category, Degraded, DegradedStep, Embedder, ErrorKind, Event, FailedStep,
    Invoke, Layer, NamedLayer, Outcome, Reply, Target, ToolError, format_duration,
};
use tracing::Instrument;

use super::{
    response_cache::{CacheKey, CachedReply, ResponseCache},
    semantic::{Nearest, Request, SemanticCache},
    sharing::{bypass_reason, detached_context},
    single_flight::{FlightResult, Join, Leader, SingleFlight},
};
use crate::{degraded::mark_degraded, timeout::within};

/// Caches the replies of tools (RFC 9111), and runs identical concurrent calls once (single flight). Stale replies follow RFC 5861:
/// stale-while-revalidate and stale-if-error.
///
/// Does nothing for a tool until its `Settings` contain [`CacheSettings`]. Needs a tokio runtime, on which it runs shared work.
///
/// # Which calls are identical
/// Calls of one tenant and principal to one tool of one version, with one executor and its settings and credentials, and with
/// arguments of the same meaning. The principal does not matter if the tool's [`CacheScope`](crate::CacheScope) is shared.
///
/// # Shared work belongs to no caller
/// Its result is for other calls as well, so it must not depend on anything that one caller has besides the arguments. It runs
/// without the caller's client: it can ask no question, sends no log messages, and becomes no task. Of the caller's `_meta`, it
/// has only the trace context and [`RetryLayer::META_KEY`](crate::RetryLayer::META_KEY). Its time limit is the tool's, not that
/// of the first caller. Its progress goes to all waiters, if the first of them wants progress.
///
/// # Calls that mean the same
/// With [`SemanticCacheSettings`] of the tool and an embedder ([`CacheLayer::set_embedder`]), a call without a cached result may be
/// answered with the fresh result of an earlier call that means the same in other words. Everything else that makes calls identical
/// must be equal. The reply says so, with the distance: 1 minus the cosine of the two texts.
///
/// A call that needs more bypasses the cache: one that continues an earlier round, requests a task or has an idempotency key,
/// and one that says so in its `_meta` under [`CacheLayer::META_KEY`].
///
/// # What is cached
/// Complete replies only: no errors, no reply in which the tool reports a failure, no partial result, no unfinished task. A reply
/// that was not made for its call says so under [`CacheLayer::META_KEY`], with its age. The longest useful age also depends on
/// the tool's fallback ladder, of which [`FallbackLayer`](crate::FallbackLayer) takes the steps.
///
/// # Cancellation
/// Shared work runs in a task of its own. A caller who leaves does not affect the other waiters. When the last waiter leaves, the
/// work is cancelled.
///
/// # Order
/// Inside admission, or a refused caller would read another caller's result. Outside retries, so that all waiters share the
/// attempts.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use tool_core::{Arguments, CallContext, Invoke, Layer, TargetBackend, Tool, ToolError};
/// use tool_core::{invoke_fn, serde_json::json};
/// use tool_runtime::{CacheLayer, CacheSettings};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let n_calls = AtomicU32::new(0);
/// let count = Tool::builder("count")
///     .setting(CacheSettings::default())
///     .run(invoke_fn(move |_| {
///         let n = n_calls.fetch_add(1, Relaxed) + 1;
///         async move { Ok::<_, ToolError>(json!(n)) }
///     }));
/// let stack = CacheLayer::new(64 << 20).layer(TargetBackend);
/// for _ in 0..3 {
///     let outcome = stack.invoke(&mut CallContext::local(&count, Arguments::none())).await?;
///     assert_eq!(outcome.into_reply()?.json::<u32>()?, 1);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CacheLayer {
    shared: Arc<Shared>,
}

/// Service of [`CacheLayer`].
#[derive(Debug)]
pub struct Cache<S> {
    settings: CacheLayer,
    /// Shared with the work that outlives its caller.
    inner: Arc<S>,
}

/// Replies of earlier calls, and executions in flight.
#[derive(Debug)]
struct Shared {
    responses: ResponseCache,
    flights: Arc<SingleFlight>,
    semantic: SemanticCache,
}

/// Decision of the cache about a call.
enum CachePlan {
    /// The call is made for itself.
    Bypass,
    /// The call is answered with this reply.
    Respond(Reply),
    /// The call is made once for all identical ones.
    Fetch(Box<Fetch>),
}

/// A call that is made once for all identical ones.
struct Fetch {
    key: CacheKey,
    settings: CacheSettings,
    /// Stale reply that is used if the fetch fails (RFC 5861, stale-if-error).
    stale: Option<Arc<CachedReply>>,
    /// Meaning of the call, under which its result is found by later calls.
    request: Option<Request>,
}

/// Context of shared work, with its result.
type Finished = (CallContext, Result<Outcome, ToolError>);

impl CacheLayer {
    /// Key in `_meta` under which a reply says that it was not made for its call, and under which a caller requests a bypass.
    pub const META_KEY: &'static str = "dev.toolplane/cache";
    /// Value under that key with which a caller bypasses the cache.
    pub const BYPASS: &'static str = "bypass";

    /// Creates a layer with a cache of this many bytes.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        let shared = Shared {
            responses: ResponseCache::new(max_bytes),
            flights: Arc::default(),
            semantic: SemanticCache::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Sets the embedder by which tools with [`SemanticCacheSettings`] compare calls. Results of calls that were compared by another
    /// model are not found any more. Without one, only equal calls share results.
    pub fn set_embedder(&self, embedder: Option<Arc<dyn Embedder>>) {
        self.shared.semantic.set_embedder(embedder);
    }

    /// Returns the cached reply for a call and its age, even if it is stale.
    ///
    /// # Errors
    /// The reason, if the tool has no cache, the call bypasses it, or no reply of at most `max_age` is cached.
    pub(crate) fn stale(
        &self,
        cx: &CallContext,
        max_age: Duration,
    ) -> Result<(Reply, Duration), &'static str> {
        let settings = enabled(cx).ok_or("the tool has no cache")?;
        if let Some(reason) = bypass_reason(cx) {
            return Err(reason);
        }
        let key = CacheKey::for_call(cx, settings.scope);
        let cached = self.shared.responses.get(&key).ok_or("nothing is cached")?;
        let age = cached.age(cx.clock.now());
        if age > max_age {
            return Err("the cached reply is too old");
        }
        Ok((cached.reply(), age))
    }

    /// Returns the approximate size of all cached replies, in bytes.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        self.shared.responses.n_bytes()
    }

    /// Returns the number of running executions that other calls may join.
    #[must_use]
    pub fn n_running(&self) -> usize {
        self.shared.flights.n_in_flight()
    }
}

impl NamedLayer for CacheLayer {
    const NAME: &'static str = "cache";
}

impl<S> Layer<S> for CacheLayer {
    type Invoke = Cache<S>;

    fn layer(self, inner: S) -> Cache<S> {
        Cache {
            settings: self,
            inner: Arc::new(inner),
        }
    }
}

impl<S: Invoke + 'static> Invoke for Cache<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        match self.plan(cx) {
            CachePlan::Bypass => self.inner.invoke(cx).await,
            CachePlan::Respond(reply) => Ok(reply.into()),
            // Boxed, so that calls which are answered at once do not carry the size of its future.
            CachePlan::Fetch(fetch) => Box::pin(self.find_or_fetch(cx, *fetch)).await,
        }
    }
}

impl<S: Invoke + 'static> Cache<S> {
    fn plan(&self, cx: &mut CallContext) -> CachePlan {
        let Some(settings) = enabled(cx) else {
            return CachePlan::Bypass;
        };
        let CacheLayer { shared } = &self.settings;
        if !matches!(cx.target, Target::Tool(_)) {
            return CachePlan::Bypass;
        }
        if cx.is_dry_run() {
            cx.explain(CacheLayer::NAME, || "not used in a dry run".to_owned());
            return CachePlan::Bypass;
        }
        if let Some(reason) = bypass_reason(cx) {
            cx.explain(CacheLayer::NAME, || format!("bypassed: {reason}"));
            emit_use(cx, CacheOutcome::Bypassed);
            return CachePlan::Bypass;
        }
        let key = CacheKey::for_call(cx, settings.scope);
        let Some(cached) = shared.responses.get(&key) else {
            return CachePlan::fetch(key, settings, None);
        };
        let age = cached.age(cx.clock.now());
        let ttl = settings.ttl_of(&cx.tool().descriptor().metadata);
        if age < ttl {
            return CachePlan::Respond(hit(cx, &cached, CacheOutcome::Hit, ""));
        }
        if age < ttl.saturating_add(settings.stale_while_revalidate) {
            let is_first = self.revalidate(cx, key, settings);
            let note = if is_first {
                ", stale, and revalidated in the background"
            } else {
                ", stale, and being revalidated"
            };
            return CachePlan::Respond(hit(cx, &cached, CacheOutcome::Stale, note));
        }
        let may_be_used = age < ttl.saturating_add(settings.stale_if_error);
        CachePlan::fetch(key, settings, may_be_used.then_some(cached))
    }

    /// Returns the result of a call that means the same, or makes the call.
    async fn find_or_fetch(&self, cx: &mut CallContext, mut fetch: Fetch) -> Result<Outcome, ToolError> {
        if let Some(semantics) = cx.tool().settings().get::<SemanticCacheSettings>().cloned() {
            match self.find(cx, &fetch, &semantics).await {
                Ok(reply) => return Ok(reply.into()),
                Err(request) => fetch.request = request,
            }
        }
        self.fetch_or_stale(cx, fetch).await
    }

    /// Finds the result of a call that means the same.
    ///
    /// # Errors
    /// The meaning of the call, if it could be compared.
    async fn find(
        &self,
        cx: &mut CallContext,
        fetch: &Fetch,
        semantics: &SemanticCacheSettings,
    ) -> Result<Reply, Option<Request>> {
        let CacheLayer { shared } = &self.settings;
        let request = match shared.semantic.request(cx, &fetch.key, semantics).await {
            Ok(request) => request,
            Err(reason) => {
                cx.explain(CacheLayer::NAME, || format!("not compared by meaning: {reason}"));
                return Err(None);
            }
        };
        let (now, ttl) = (
            cx.clock.now(),
            fetch.settings.ttl_of(&cx.tool().descriptor().metadata),
        );
        let fresh = |key: &CacheKey| shared.responses.get(key).filter(|cached| cached.age(now) < ttl);
        match shared.semantic.nearest(&request, semantics, fresh) {
            Nearest::Found { call, cosine } => Ok(semantic_hit(cx, &call, 1.0 - cosine)),
            Nearest::TooFar {
                cosine,
                has_other_words,
            } => {
                cx.explain(CacheLayer::NAME, || {
                    let distance = 1.0 - cosine;
                    match has_other_words {
                        true => format!("no earlier call means the same: the nearest, at {distance:.3}, has other words or no fresh result"),
                        false => format!("no earlier call means the same: the nearest is at {distance:.3}"),
                    }
                });
                Err(Some(request))
            }
            Nearest::Nothing => Err(Some(request)),
        }
    }

    /// Makes the call once for all identical ones, or returns the stale reply if that fails.
    async fn fetch_or_stale(&self, cx: &mut CallContext, fetch: Fetch) -> Result<Outcome, ToolError> {
        let Fetch {
            key,
            settings,
            stale,
            request,
        } = fetch;
        // A tenth of the time is reserved, so that the stale reply is sent before the deadline.
        let limit = stale.as_ref().and_then(|_| cx.remaining());
        let mut fetched = Box::pin(self.fetch(cx, key, settings, request));
        let (outcome, result) = match limit.map(|left| left - left / 10) {
            Some(limit) => within(limit, None, fetched.as_mut()).await.unwrap_or_else(|| {
                let message = format!("no answer within {}", format_duration(limit));
                (
                    CacheOutcome::Miss,
                    Err(ToolError::new(ErrorKind::Timeout, message)),
                )
            }),
            None => fetched.as_mut().await,
        };
        drop(fetched);
        // An attempt without a waiter may still have an effect.
        let result = result.map_err(|error| match error.kind() {
            ErrorKind::Timeout => cx.unanswered(ErrorKind::Timeout, error.message()),
            _ => cx.mark(error),
        });
        if let (Err(error), Some(cached)) = (&result, stale)
            && matches!(error.kind().category(), Category::Transient | Category::RateLimit)
            && !error.may_have_run()
        {
            return Ok(stale_if_error(cx, &cached, error.kind()).into());
        }
        emit_use(cx, outcome);
        result
    }

    /// Joins the single flight of the call, or leads a new one.
    async fn fetch(
        &self,
        cx: &mut CallContext,
        key: CacheKey,
        settings: CacheSettings,
        request: Option<Request>,
    ) -> (CacheOutcome, Result<Outcome, ToolError>) {
        let Shared {
            responses, flights, ..
        } = &*self.settings.shared;
        let join = flights.join(&key, cx.origin.progress.as_ref(), || {
            let ttl = settings.ttl_of(&cx.tool().descriptor().metadata);
            let cached = responses.get(&key)?;
            (cached.age(cx.clock.now()) < ttl).then_some(cached)
        });
        match join {
            Join::Cached(cached) => {
                let age = cached.age(cx.clock.now());
                cx.explain(CacheLayer::NAME, || "hit: cached just now".to_owned());
                let reply = with_cache_meta(cached.reply(), CacheOutcome::Hit, age, "");
                (CacheOutcome::Hit, Ok(reply.into()))
            }
            Join::Follower(_waiter, result, history) => {
                cx.follow(history);
                cx.explain(CacheLayer::NAME, || {
                    "joins the same call, which is in flight".to_owned()
                });
                match wait_for_result(result).await {
                    FlightResult::Shared(result) => {
                        let result = result.map(|reply| {
                            with_cache_meta(reply, CacheOutcome::Shared, Duration::ZERO, "").into()
                        });
                        (CacheOutcome::Shared, result)
                    }
                    FlightResult::NotShareable => (CacheOutcome::Bypassed, self.inner.invoke(cx).await),
                }
            }
            Join::Leader(_waiter, leader) => {
                cx.follow(leader.history.clone());
                cx.explain(CacheLayer::NAME, || "miss".to_owned());
                let (sender, finished) = oneshot::channel();
                self.spawn(cx, (key, request), settings, leader, Some(sender));
                let result = match finished.await {
                    Ok((work, result)) => {
                        cx.merge_fork(work);
                        result
                    }
                    Err(_) => Err(lost_result()),
                };
                (CacheOutcome::Miss, result)
            }
        }
    }

    /// Fetches the result in the background. Returns `false` if it is being fetched already.
    fn revalidate(&self, cx: &CallContext, key: CacheKey, settings: CacheSettings) -> bool {
        match self.settings.shared.flights.lead_detached(&key) {
            Some(leader) => {
                self.spawn(cx, (key, None), settings, leader, None);
                true
            }
            None => false,
        }
    }

    /// Spawns the shared work in a task of its own, in the trace of the call that starts it.
    fn spawn(
        &self,
        cx: &CallContext,
        (key, request): (CacheKey, Option<Request>),
        settings: CacheSettings,
        leader: Leader,
        sender: Option<oneshot::Sender<Finished>>,
    ) {
        let (inner, shared) = (self.inner.clone(), self.settings.shared.clone());
        let mut work = detached_context(cx, leader.history.clone());
        let wants_progress = sender.is_some() && cx.origin.progress.is_some();
        leader.spawn(|completion, listeners| {
            work.origin.progress = wants_progress.then_some(listeners as _);
            let run = async move {
                let result = run(&*inner, &mut work).await;
                if let Ok(Outcome::Reply(reply)) = &result
                    && store(&shared.responses, &key, settings, reply, &mut work)
                    && let Some(request) = request
                {
                    shared.semantic.add(&request, key);
                }
                completion.complete(match &result {
                    Ok(Outcome::Reply(reply)) => FlightResult::Shared(Ok(reply.clone())),
                    Ok(_) => FlightResult::NotShareable,
                    Err(error) => FlightResult::Shared(Err(error.clone())),
                });
                if let Some(sender) = sender {
                    // The first caller may have left.
                    let _ = sender.send((work, result));
                }
            };
            run.in_current_span()
        });
    }
}

impl CachePlan {
    fn fetch(key: CacheKey, settings: CacheSettings, stale: Option<Arc<CachedReply>>) -> Self {
        Self::Fetch(Box::new(Fetch {
            key,
            settings,
            stale,
            request: None,
        }))
    }
}

/// Returns the settings of the tool's cache, unless it has none or its cache is disabled.
fn enabled(cx: &CallContext) -> Option<CacheSettings> {
    let settings = cx.tool().settings().get::<CacheSettings>().copied();
    settings.filter(|settings| !settings.disabled)
}

fn emit_use(cx: &CallContext, outcome: CacheOutcome) {
    cx.observers.emit(&Event::cache_used(cx, outcome));
}

/// Returns a cached reply for a call.
fn hit(cx: &mut CallContext, cached: &CachedReply, outcome: CacheOutcome, note: &str) -> Reply {
    let age = cached.age(cx.clock.now());
    cx.explain(CacheLayer::NAME, || {
        format!("hit: {} old{note}", format_duration(age))
    });
    emit_use(cx, outcome);
    with_cache_meta(cached.reply(), outcome, age, "")
}

/// Returns the cached reply of a call that means the same.
fn semantic_hit(cx: &mut CallContext, cached: &CachedReply, distance: f32) -> Reply {
    // Sums of products may exceed 1 by rounding.
    let distance = distance.max(0.0);
    let age = cached.age(cx.clock.now());
    cx.explain(CacheLayer::NAME, || {
        let age = format_duration(age);
        format!("semantic hit: {age} old, of a call that means the same, at the distance {distance:.3}")
    });
    emit_use(cx, CacheOutcome::Semantic);
    with_cache_meta(
        cached.reply(),
        CacheOutcome::Semantic,
        age,
        &format!(r#","distance":{distance:.4}"#),
    )
}

/// Returns a stale reply after a failed fetch, marked as degraded.
fn stale_if_error(cx: &mut CallContext, cached: &CachedReply, kind: ErrorKind) -> Reply {
    let age = cached.age(cx.clock.now());
    cx.explain(CacheLayer::NAME, || {
        format!("stale reply, {} old, after `{kind}`", format_duration(age))
    });
    emit_use(cx, CacheOutcome::Stale);
    let mut reply = with_cache_meta(
        cached.reply(),
        CacheOutcome::Stale,
        age,
        &format!(r#","error":"{kind}""#),
    );
    let mut degraded = Degraded::new(DegradedStep::Stale, "cache");
    degraded.age = age;
    degraded.errors = vec![FailedStep::new(Some(cx.tool().name().clone()), kind)];
    mark_degraded(cx, &mut reply, &degraded);
    reply
}

/// Runs shared work within the tool's own time limit.
async fn run(inner: &impl Invoke, work: &mut CallContext) -> Result<Outcome, ToolError> {
    let limit = work.tighten_deadline(work.tool().settings().call_timeout);
    let result = {
        let running = pin!(inner.invoke(work));
        within(limit, None, running).await
    };
    result.unwrap_or_else(|| {
        let message = format!("no answer within the call's {}", format_duration(limit));
        Err(work.unanswered(ErrorKind::Timeout, message))
    })
}

/// Returns the maximum age of a stale result that the tool's fallback steps allow.
fn longest_stale(cx: &CallContext) -> Option<Duration> {
    cx.tool().settings().get::<FallbackLadder>()?.longest_stale()
}

/// Stores a reply, unless it must not be cached or would never be used. Returns `true` if it was stored.
fn store(
    responses: &ResponseCache,
    key: &CacheKey,
    settings: CacheSettings,
    reply: &Reply,
    work: &mut CallContext,
) -> bool {
    let ttl = settings.ttl_of(&work.tool().descriptor().metadata);
    let longest = ttl
        .max(settings.stale_while_revalidate)
        .max(settings.stale_if_error)
        .max(longest_stale(work).unwrap_or_default());
    let n_bytes = reply.raw().len();
    if reply.is_error {
        work.explain(CacheLayer::NAME, || {
            "not stored: the tool reports a failure".to_owned()
        });
    } else if reply.is_partial() {
        work.explain(CacheLayer::NAME, || {
            "not stored: the result is incomplete".to_owned()
        });
    } else if n_bytes > settings.max_bytes {
        work.explain(CacheLayer::NAME, || {
            format!("not stored: {n_bytes} bytes are more than {}", settings.max_bytes)
        });
    } else if !longest.is_zero() {
        work.explain(CacheLayer::NAME, || {
            format!("stored, fresh for {}", format_duration(ttl))
        });
        responses.insert(key.clone(), reply, work.clock.now());
        return true;
    }
    false
}

/// Waits for the result of an execution in flight.
async fn wait_for_result(mut result: watch::Receiver<Option<FlightResult>>) -> FlightResult {
    let result = result.wait_for(Option::is_some).await;
    match result.as_deref() {
        Ok(Some(result)) => result.clone(),
        // It ended without a result: by a panic, or with the runtime.
        _ => FlightResult::Shared(Err(lost_result())),
    }
}

fn lost_result() -> ToolError {
    ToolError::new(ErrorKind::Internal, "the shared call ended without a result")
}

/// Adds the cache's record to the `_meta` of a reply, with further members.
fn with_cache_meta(mut reply: Reply, outcome: CacheOutcome, age: Duration, members: &str) -> Reply {
    let (status, age) = (outcome.as_str(), age.as_millis());
    let text = format!(r#"{{"status":"{status}","age_ms":{age}{members}}}"#);
    reply.add_meta(
        CacheLayer::META_KEY,
        RawJson::parse(text).expect("the text is JSON"),
    );
    reply
}

impl fmt::Debug for CacheLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheLayer")
            .field("shared", &self.shared)
            .finish()
    }
}
