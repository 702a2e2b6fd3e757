use std::{fmt, pin::pin, sync::Arc, time::Duration};

use crate::{CacheSettings, FallbackLadder};
use raw_json::RawJson;
use tokio::sync::{oneshot, watch};
use tool_core::{
    CacheOutcome, CallContext, Category, Degraded, DegradedStep, DispatchHistory, ErrorKind, Event,
    FailedStep, Invoke, Layer, Outcome, Reply, Target, TaskMode, ToolError, format_duration,
};
use tracing::Instrument;

use super::{
    response_cache::{Answer, Answers, Key},
    single_flight::{Boarding, Flights, Landed, Takeoff},
};
use crate::{RetryLayer, fallback::mark_degraded, within::within};

/// Keeps the answers of tools for later calls, and makes identical calls at the same time once, where the tool's
/// [`CacheSettings`] say so.
///
/// # Which calls are the same
/// Those of one tenant and principal, to one tool of one version with one executor and its settings and credentials,
/// with arguments that mean the same. The principal does not count where the tool's
/// [`CacheScope`](crate::CacheScope) is shared.
///
/// # What is made once belongs to no caller
/// Its answer is for others as well, so it cannot depend on what one caller has beside the arguments. It is made without
/// the caller's client: it can ask nobody, tells no one its log, and becomes no task. Of the caller's `_meta` it has the
/// trace and [`RetryLayer::META_KEY`] alone. Its time is the tool's, not that of the caller who came first. Progress goes to
/// all who wait, if the first of them wanted any.
///
/// A call that needs more than that is made for itself: another round of a call, one that wants to be a task, one
/// with an idempotency key, and one that says so in its `_meta` under [`CacheLayer::META_KEY`].
///
/// # What is kept
/// Answers, and nothing else: no errors, nothing in which the tool reports a failure, no part, nothing unfinished. A reply that was
/// not made for its call says so under [`CacheLayer::META_KEY`], with its age. For how long answers are of use depends also on
/// the tool's ladder, of which [`FallbackLayer`](crate::Degrade) takes the steps.
///
/// # Cancellation
/// The work runs in a task of its own. A caller who goes takes nothing away from those who wait with it; when the last one
/// goes, the work is cancelled.
///
/// # Order
/// Inside admission, or a refused caller would read another's answer; outside retries, so that all who wait for a result
/// share its attempts.
#[derive(Clone)]
pub struct CacheLayer {
    desk: Arc<Desk>,
}

/// The layer of [`CacheLayer`].
#[derive(Debug)]
pub struct Cache<S> {
    settings: CacheLayer,
    /// Shared with the work that goes on without its caller.
    inner: Arc<S>,
}

/// What is known of earlier calls, and of those that run.
#[derive(Debug)]
struct Desk {
    answers: Answers,
    flights: Arc<Flights>,
}

/// What is done about a call.
enum Plan {
    /// It is made for itself.
    Alone,
    /// It is answered with this.
    Kept(Reply),
    /// It is made once for all who want the same.
    Once(Box<Wanted>),
}

/// A call that is made once.
struct Wanted {
    key: Key,
    settings: CacheSettings,
    /// What is given if nothing better can be had.
    spare: Option<Arc<Answer>>,
}

impl CacheLayer {
    /// Where a reply says that it was not made for its call, and where a caller says that it wants none of those.
    pub const META_KEY: &'static str = "dev.toolplane/cache";
    /// What a caller says there.
    pub const BYPASS: &'static str = "bypass";

    /// A layer that keeps answers in this many bytes.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        let desk = Desk {
            answers: Answers::new(max_bytes),
            flights: Arc::default(),
        };
        Self { desk: Arc::new(desk) }
    }

    /// The answer that is kept for a call, with its age, however long ago it was fresh.
    ///
    /// # Errors
    /// Why there is none: nothing is kept, it is older than `max_age`, or the call wants an answer of its own.
    pub(crate) fn stale(
        &self,
        cx: &CallContext,
        max_age: Duration,
    ) -> Result<(Reply, Duration), &'static str> {
        let settings = cx.tool().settings().get::<CacheSettings>();
        let settings = settings.ok_or("the tool has no cache")?;
        if let Some(why) = alone(cx) {
            return Err(why);
        }
        let key = Key::of(cx, settings.scope);
        let answer = self.desk.answers.find(&key).ok_or("nothing is kept")?;
        let age = answer.age(cx.clock.now());
        if age > max_age {
            return Err("what is kept is too old");
        }
        Ok((answer.reply(), age))
    }

    /// How many bytes the answers take that are kept, about.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        self.desk.answers.n_bytes()
    }

    /// How many calls are running that others may join.
    #[must_use]
    pub fn n_running(&self) -> usize {
        self.desk.flights.n_aloft()
    }
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
            Plan::Alone => self.inner.invoke(cx).await,
            Plan::Kept(reply) => Ok(reply.into()),
            // Boxed, so that calls which are answered at once do not carry the room for this.
            Plan::Once(wanted) => Box::pin(self.once(cx, *wanted)).await,
        }
    }
}

impl<S: Invoke + 'static> Cache<S> {
    fn plan(&self, cx: &mut CallContext) -> Plan {
        let Some(settings) = cx.tool().settings().get::<CacheSettings>().copied() else {
            return Plan::Alone;
        };
        let CacheLayer { desk } = &self.settings;
        if !matches!(cx.target, Target::Tool(_)) {
            return Plan::Alone;
        }
        if cx.is_dry_run() {
            cx.explain("cache", || "nothing is kept or given in a dry run".to_owned());
            return Plan::Alone;
        }
        if let Some(why) = alone(cx) {
            cx.explain("cache", || format!("not looked at: {why}"));
            tell(cx, CacheOutcome::Bypassed);
            return Plan::Alone;
        }
        let key = Key::of(cx, settings.scope);
        let Some(answer) = desk.answers.find(&key) else {
            return Plan::once(key, settings, None);
        };
        let age = answer.age(cx.clock.now());
        let ttl = settings.ttl_of(&cx.tool().descriptor().metadata);
        if age < ttl {
            return Plan::Kept(kept(cx, &answer, CacheOutcome::Hit, ""));
        }
        if age < ttl.saturating_add(settings.stale_while_revalidate) {
            let is_first = self.refresh(cx, key, settings);
            let why = if is_first {
                ", and asked again in the background"
            } else {
                ", and being asked again"
            };
            return Plan::Kept(kept(cx, &answer, CacheOutcome::Stale, why));
        }
        let is_spare = age < ttl.saturating_add(settings.stale_if_error);
        Plan::once(key, settings, is_spare.then_some(answer))
    }

    /// Makes the call once for all who want the same now, or gives what is left if that fails.
    async fn once(&self, cx: &mut CallContext, wanted: Wanted) -> Result<Outcome, ToolError> {
        let Wanted { key, settings, spare } = wanted;
        // What is left is given in time: a part of the time goes unused.
        let patience = spare.as_ref().and_then(|_| cx.remaining());
        let mut made = Box::pin(self.made(cx, key, settings));
        let (outcome, result) = match patience.map(|left| left - left / 10) {
            Some(limit) => within(limit, None, made.as_mut()).await.unwrap_or_else(|| {
                let message = format!("no answer within {}", format_duration(limit));
                (
                    CacheOutcome::Miss,
                    Err(ToolError::new(ErrorKind::Timeout, message)),
                )
            }),
            None => made.as_mut().await,
        };
        drop(made);
        // An attempt that nobody waits for may still come to something.
        let result = result.map_err(|error| match error.kind() {
            ErrorKind::Timeout => cx.unanswered(ErrorKind::Timeout, error.message()),
            _ => cx.mark(error),
        });
        if let (Err(error), Some(answer)) = (&result, spare)
            && matches!(error.kind().category(), Category::Transient | Category::RateLimit)
            && !error.may_have_run()
        {
            let (kind, age) = (error.kind(), answer.age(cx.clock.now()));
            cx.explain("cache", || {
                format!("answered {} ago, after `{kind}`", format_duration(age))
            });
            tell(cx, CacheOutcome::Stale);
            let mut reply = marked(answer.reply(), CacheOutcome::Stale, age, Some(kind));
            let mut degraded = Degraded::new(DegradedStep::Stale, "cache");
            degraded.age = age;
            degraded.errors = vec![FailedStep {
                tool: Some(cx.tool().name().clone()),
                kind,
            }];
            mark_degraded(cx, &mut reply, &degraded);
            return Ok(reply.into());
        }
        tell(cx, outcome);
        result
    }

    async fn made(
        &self,
        cx: &mut CallContext,
        key: Key,
        settings: CacheSettings,
    ) -> (CacheOutcome, Result<Outcome, ToolError>) {
        let Desk { answers, flights } = &*self.settings.desk;
        let boarding = flights.board(&key, cx.origin.progress.as_ref(), || {
            let ttl = settings.ttl_of(&cx.tool().descriptor().metadata);
            let answer = answers.find(&key)?;
            (answer.age(cx.clock.now()) < ttl).then_some(answer)
        });
        match boarding {
            Boarding::Kept(answer) => {
                let age = answer.age(cx.clock.now());
                cx.explain("cache", || "answered just now".to_owned());
                let reply = marked(answer.reply(), CacheOutcome::Hit, age, None);
                (CacheOutcome::Hit, Ok(reply.into()))
            }
            Boarding::Joined(_seat, landed, history) => {
                cx.follow(history);
                cx.explain("cache", || {
                    "waits for the same call, which runs already".to_owned()
                });
                match joined(landed).await {
                    Landed::Result(result) => {
                        let result = result
                            .map(|reply| marked(reply, CacheOutcome::Shared, Duration::ZERO, None).into());
                        (CacheOutcome::Shared, result)
                    }
                    Landed::Apart => (CacheOutcome::Bypassed, self.inner.invoke(cx).await),
                }
            }
            Boarding::New(_seat, takeoff) => {
                cx.follow(takeoff.history.clone());
                cx.explain("cache", || "nothing is kept".to_owned());
                let (sender, own) = oneshot::channel();
                self.begin(cx, key, settings, takeoff, Some(sender));
                let result = match own.await {
                    Ok((work, result)) => {
                        cx.merge_fork(work);
                        result
                    }
                    Err(_) => Err(lost()),
                };
                (CacheOutcome::Miss, result)
            }
        }
    }

    /// Has the answer fetched in the background; false if it is being fetched already.
    fn refresh(&self, cx: &CallContext, key: Key, settings: CacheSettings) -> bool {
        match self.settings.desk.flights.keep_up(&key) {
            Some(takeoff) => {
                self.begin(cx, key, settings, takeoff, None);
                true
            }
            None => false,
        }
    }

    /// Begins the work in a task of its own, in the trace of the call that it is begun for.
    fn begin(
        &self,
        cx: &CallContext,
        key: Key,
        settings: CacheSettings,
        takeoff: Takeoff,
        own: Option<oneshot::Sender<Worked>>,
    ) {
        let (inner, desk) = (self.inner.clone(), self.settings.desk.clone());
        let mut work = of_nobody(cx, takeoff.history.clone());
        let is_followed = own.is_some() && cx.origin.progress.is_some();
        takeoff.begin(|landing, listeners| {
            work.origin.progress = is_followed.then_some(listeners as _);
            let run = async move {
                let result = run(&*inner, &mut work).await;
                if let Ok(Outcome::Reply(reply)) = &result {
                    keep(&desk.answers, key, settings, reply, &mut work);
                }
                landing.land(match &result {
                    Ok(Outcome::Reply(reply)) => Landed::Result(Ok(reply.clone())),
                    Ok(_) => Landed::Apart,
                    Err(error) => Landed::Result(Err(error.clone())),
                });
                if let Some(own) = own {
                    // Nobody may wait any more.
                    let _ = own.send((work, result));
                }
            };
            run.in_current_span()
        });
    }
}

fn tell(cx: &CallContext, outcome: CacheOutcome) {
    cx.observers.tell(&Event::CacheUsed { cx, outcome });
}

/// The work of a call, with how it ended.
type Worked = (CallContext, Result<Outcome, ToolError>);

/// The reply out of what is kept.
fn kept(cx: &mut CallContext, answer: &Answer, outcome: CacheOutcome, why: &str) -> Reply {
    let age = answer.age(cx.clock.now());
    cx.explain("cache", || format!("answered {} ago{why}", format_duration(age)));
    tell(cx, outcome);
    marked(answer.reply(), outcome, age, None)
}

/// Why a call must be made for itself, if it must.
fn alone(cx: &CallContext) -> Option<&'static str> {
    if cx.extras.resume.is_some() {
        return Some("this is another round of a call");
    }
    if matches!(cx.extras.task, Some(TaskMode::Requested(_))) {
        return Some("the call is to be a task");
    }
    if cx.extras.idempotency_key.is_some() {
        return Some("the call has a key of its own");
    }
    if cx.extras.extra_params.is_some() {
        return Some("the call says more than its arguments");
    }
    let said = cx
        .extras
        .meta
        .as_ref()
        .and_then(|meta| meta.get(CacheLayer::META_KEY))?;
    (said.string().as_deref() == Some(CacheLayer::BYPASS)).then_some("the caller wants an answer of its own")
}

/// The same call without what only its caller has.
fn of_nobody(cx: &CallContext, history: Arc<DispatchHistory>) -> CallContext {
    let mut work = cx.fork_detached(history);
    work.extras.meta = cx.extras.meta.as_ref().and_then(common);
    work.deadline = None;
    work.origin.client = None;
    work.origin.ask = None;
    work.extras.task = None;
    work
}

/// What of the caller's `_meta` does not change an answer.
const COMMON: [&str; 3] = ["traceparent", "tracestate", RetryLayer::META_KEY];

fn common(meta: &RawJson) -> Option<RawJson> {
    let members = meta.members().filter(|(key, _)| COMMON.contains(&&**key));
    let members: Vec<_> = members.collect();
    let members: Vec<_> = members
        .iter()
        .map(|(key, value)| (&**key, value.clone()))
        .collect();
    let meta = RawJson::object().with_members(&members);
    (!members.is_empty()).then(|| meta.expect("an empty object is an object"))
}

/// Runs the work within the tool's own time.
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

/// The largest age of a kept result that the tool's ladder may give.
fn longest_stale(cx: &CallContext) -> Option<Duration> {
    cx.tool().settings().get::<FallbackLadder>()?.longest_stale()
}

fn keep(answers: &Answers, key: Key, settings: CacheSettings, reply: &Reply, work: &mut CallContext) {
    let ttl = settings.ttl_of(&work.tool().descriptor().metadata);
    let longest = ttl
        .max(settings.stale_while_revalidate)
        .max(settings.stale_if_error)
        .max(longest_stale(work).unwrap_or_default());
    let n_bytes = reply.raw().len();
    if reply.is_error {
        work.explain("cache", || "not kept: the tool reports a failure".to_owned());
    } else if reply.is_partial() {
        work.explain("cache", || "not kept: it is not all of the answer".to_owned());
    } else if n_bytes > settings.max_bytes {
        work.explain("cache", || {
            format!("not kept: {n_bytes} bytes are more than {}", settings.max_bytes)
        });
    } else if !longest.is_zero() {
        work.explain("cache", || {
            format!("kept, and fresh for {}", format_duration(ttl))
        });
        answers.keep(key, reply, work.clock.now());
    }
}

/// What the flight came to.
async fn joined(mut landed: watch::Receiver<Option<Landed>>) -> Landed {
    let landed = landed.wait_for(Option::is_some).await;
    match landed.as_deref() {
        Ok(Some(landed)) => landed.clone(),
        // It ended without a result: with a fault, or with the runtime.
        _ => Landed::Result(Err(lost())),
    }
}

fn lost() -> ToolError {
    ToolError::new(
        ErrorKind::Internal,
        "the call that others waited for has ended without a result",
    )
}

/// The reply with where it came from.
fn marked(mut reply: Reply, outcome: CacheOutcome, age: Duration, error: Option<ErrorKind>) -> Reply {
    let (status, age) = (outcome.as_str(), age.as_millis());
    let text = match error {
        Some(error) => format!(r#"{{"status":"{status}","age_ms":{age},"error":"{error}"}}"#),
        None => format!(r#"{{"status":"{status}","age_ms":{age}}}"#),
    };
    reply.add_meta(
        CacheLayer::META_KEY,
        RawJson::parse(text).expect("the text is JSON"),
    );
    reply
}

impl Plan {
    fn once(key: Key, settings: CacheSettings, spare: Option<Arc<Answer>>) -> Self {
        Self::Once(Box::new(Wanted { key, settings, spare }))
    }
}

impl fmt::Debug for CacheLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share")
            .field("desk", &self.desk)
            .finish_non_exhaustive()
    }
}
