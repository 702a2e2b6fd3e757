use std::{fmt, sync::Arc};

use raw_json::RawJson;
use serde_json::json;
use tool_core::{
    CallContext, ClientKey, Degraded, DegradedStep, DispatchState, ErrorKind, Invoke, Layer, NamedLayer,
    Outcome, Reply, Target, ToolError,
};

use super::usage_counters::{CountedCall, UsageCounters, UsageKey};
use crate::SharedRules;

/// Limits on the number and the cost of an agent's tool calls in a turn and in a conversation. A field that is `None` sets no
/// limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QuotaLimits {
    /// Maximum number of calls in one turn, which is one answer of a model.
    pub calls_per_turn: Option<u32>,
    /// Maximum number of calls in one conversation.
    pub calls_per_conversation: Option<u32>,
    /// Maximum number of calls of the same tool with the same arguments in one conversation. Only the last 64 different calls
    /// are counted.
    pub identical_calls: Option<u32>,
    /// Maximum cost of the calls of one turn.
    pub cost_per_turn: Option<MicroDollars>,
    /// Maximum cost of the calls of one conversation.
    pub cost_per_conversation: Option<MicroDollars>,
}

/// An amount of money in millionths of a US dollar. As an integer, it has exact sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MicroDollars(pub u64);

/// Refuses calls of tools that exceed the [`QuotaLimits`] of their turn or conversation.
///
/// Does nothing until the [`Rules`](crate::Rules) that it was created with have limits.
///
/// # Turns and conversations
/// The protocol knows neither, so the caller names them in `_meta`, under [`QuotaLayer::TURN`] and
/// [`QuotaLayer::CONVERSATION`], by any values: different values are different turns or conversations. Without a
/// conversation, all calls of a session form one; without a session, all calls of a principal do. Calls without a turn count
/// only in their conversation. Conversations belong to a caller: another caller who uses the same value has another one.
///
/// # Counted calls
/// A call counts if it was made, even if it failed or was cancelled, and if it was answered from the cache. A call does not
/// count if it fails before an attempt began (refused, blocked by a breaker, or timed out in a queue). A call that waits for
/// approval or for input of the caller counts only once it is made. If a fallback answers before an attempt began, the
/// fallback counts instead. However many calls arrive at once, no more run than the limit allows.
///
/// An attempt has begun when its request was sent. Where calls share their work, as in a cache, the beginning of an attempt that
/// then fails is known only if a layer marks it ([`CallContext::begin_attempt`]), as `WatchAttemptLayer` of `tool-observe` does.
///
/// # Memory
/// A conversation without calls for a day is forgotten; then it begins anew. There is room for 16,384 conversations, and for
/// 1,024 of one principal. If there is no more room, the one that has been idle longest is evicted, provided that it has been
/// idle for five minutes. Otherwise a new one is refused: a quota in use is never reset. A conversation retains its last 16
/// turns, and those with a call in the last two minutes, up to 512. One more turn at the same time is refused as well.
///
/// # Examples
/// ```
/// use tool_core::Layer;
/// use tool_policy::{QuotaLayer, QuotaLimits, Rules};
///
/// # fn stack<S>(executor: S) {
/// let limits = QuotaLimits::default().with_calls_per_turn(20);
/// let quota = QuotaLayer::new(Rules::default().with_limits(limits)).layer(executor);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct QuotaLayer {
    rules: SharedRules,
    counters: Arc<UsageCounters>,
}

/// Service of [`QuotaLayer`].
#[derive(Debug, Clone)]
pub struct Quota<S> {
    settings: QuotaLayer,
    inner: S,
}

impl MicroDollars {
    /// Converts an amount in dollars, rounded to the nearest millionth. A positive amount becomes at least one millionth.
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Self {
        if !dollars.is_finite() || dollars <= 0.0 {
            return Self(0);
        }
        // The conversion saturates: a larger number becomes the largest one.
        Self(((dollars * 1e6).round() as u64).max(1))
    }
}

impl fmt::Display for MicroDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let digits = format!("{rest:06}");
        let cents = digits.trim_end_matches('0');
        write!(f, "{whole}.{cents:0<2}")
    }
}

impl QuotaLimits {
    /// Sets the maximum number of calls in one turn.
    #[must_use]
    pub fn with_calls_per_turn(mut self, calls_per_turn: u32) -> Self {
        self.calls_per_turn = Some(calls_per_turn);
        self
    }

    /// Sets the maximum number of calls in one conversation.
    #[must_use]
    pub fn with_calls_per_conversation(mut self, calls_per_conversation: u32) -> Self {
        self.calls_per_conversation = Some(calls_per_conversation);
        self
    }

    /// Sets the maximum number of identical calls in one conversation.
    #[must_use]
    pub fn with_identical_calls(mut self, identical_calls: u32) -> Self {
        self.identical_calls = Some(identical_calls);
        self
    }

    /// Sets the maximum cost of one turn.
    #[must_use]
    pub fn with_cost_per_turn(mut self, cost_per_turn: MicroDollars) -> Self {
        self.cost_per_turn = Some(cost_per_turn);
        self
    }

    /// Sets the maximum cost of one conversation.
    #[must_use]
    pub fn with_cost_per_conversation(mut self, cost_per_conversation: MicroDollars) -> Self {
        self.cost_per_conversation = Some(cost_per_conversation);
        self
    }

    /// Returns `true` if nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns `true` if turns are limited.
    pub(crate) fn has_turn_limits(&self) -> bool {
        self.calls_per_turn.is_some() || self.cost_per_turn.is_some()
    }
}

impl QuotaLayer {
    /// Name of the layer in events and metrics of refused calls.
    pub const REFUSED_AS: &'static str = "allowance";
    /// Key in `_meta` under which a caller names the turn of a call.
    pub const TURN: &'static str = "dev.toolplane/turn";
    /// Key in `_meta` under which a caller names the conversation of a call.
    pub const CONVERSATION: &'static str = "dev.toolplane/conversation";

    /// Creates a layer that has counted no calls and applies the limits of these rules. Limits that [`SharedRules::store`]
    /// puts in later apply at once; the counters stay.
    #[must_use]
    pub fn new(rules: impl Into<SharedRules>) -> Self {
        Self {
            rules: rules.into(),
            counters: Arc::default(),
        }
    }
}

impl NamedLayer for QuotaLayer {
    const NAME: &'static str = "quota";
}

impl<S> Layer<S> for QuotaLayer {
    type Invoke = Quota<S>;

    fn layer(self, inner: S) -> Quota<S> {
        Quota {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Quota<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let QuotaLayer { rules, counters } = &self.settings;
        let limits = rules.load().limits;
        if limits.is_empty() || !matches!(cx.target, Target::Tool(_)) {
            return self.inner.invoke(cx).await;
        }
        let (key, call) = (usage_key(cx), counted_call(cx));
        let counted = if cx.is_dry_run() {
            counters.check(&key, &call, &limits)
        } else {
            counters.count(&key, &call, &limits)
        };
        if let Err(exceeded) = counted {
            cx.explain(QuotaLayer::NAME, || format!("refused: {exceeded}"));
            cx.emit_refused(QuotaLayer::REFUSED_AS, exceeded.limit_name());
            return Err(exceeded.into());
        }
        cx.explain(QuotaLayer::NAME, || {
            "within the limits of its conversation".to_owned()
        });
        if cx.is_dry_run() {
            return self.inner.invoke(cx).await;
        }
        let mut guard = CountGuard {
            cx,
            counters,
            key,
            call,
            was_made: None,
        };
        let result = self.inner.invoke(guard.cx).await;
        guard.was_made = Some(was_made(guard.cx, &result));
        result
    }
}

/// Uncounts a call on drop if the call was not made, also when its future is dropped.
struct CountGuard<'a> {
    cx: &'a mut CallContext,
    counters: &'a UsageCounters,
    key: UsageKey,
    call: CountedCall,
    /// `None` if the call's future was dropped before it ended.
    was_made: Option<bool>,
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        if !self.was_made.unwrap_or_else(|| may_have_begun(self.cx)) {
            self.counters.uncount(&self.key, &self.call);
            self.cx.explain(QuotaLayer::NAME, || {
                "not counted: the call was not made".to_owned()
            });
        }
    }
}

/// Returns the conversation and turn of a call.
fn usage_key(cx: &CallContext) -> UsageKey {
    let member = |key| cx.extras.meta.as_ref().and_then(|meta| meta.get(key));
    let conversation = match (member(QuotaLayer::CONVERSATION), &cx.origin.client) {
        (Some(name), _) => raw_json::digest(&RawJson::from(json!(["said", name.as_str()]))),
        (None, Some(ClientKey::Session(session))) => {
            raw_json::digest(&RawJson::from(json!(["session", &**session])))
        }
        _ => [0; 32],
    };
    UsageKey {
        owner: (
            cx.origin.caller.tenant.clone(),
            cx.origin.caller.principal.clone(),
        ),
        conversation,
        turn: member(QuotaLayer::TURN).map(|turn| raw_json::digest(&turn)),
    }
}

fn counted_call(cx: &CallContext) -> CountedCall {
    let tool = cx.tool();
    let descriptor = tool.descriptor();
    // Costs that a server declares for its own tools are ignored.
    let cost = descriptor
        .metadata
        .cost_per_call
        .filter(|_| descriptor.origin.declarations_count());
    CountedCall {
        now: cx.clock.now(),
        cost: MicroDollars::from_dollars(cost.unwrap_or_default()),
        identity: raw_json::digest(&RawJson::from(json!([&**tool.name(), cx.arguments.digest()]))),
    }
}

/// Returns `true` if a call was made, however it ended.
fn was_made(cx: &CallContext, result: &Result<Outcome, ToolError>) -> bool {
    // Shared work counts as its first caller's.
    let is_begun = cx.n_begun() > 0;
    let error = match result {
        Ok(Outcome::NeedsInput(_) | Outcome::Pending(_)) => return false,
        // A fallback that answered instead counts as a call of its own.
        Ok(Outcome::Reply(reply)) if !is_begun => return !is_from_fallback(reply),
        Ok(_) => return true,
        Err(error) => error,
    };
    if !is_begun {
        return false;
    }
    let was_begun = cx.n_begun() > 1 || cx.dispatch().state() != DispatchState::NotSent;
    let is_refusal = matches!(
        error.kind(),
        ErrorKind::Denied | ErrorKind::ToolChanged | ErrorKind::RateLimited | ErrorKind::Overloaded
    );
    was_begun || !is_refusal
}

fn is_from_fallback(reply: &Reply) -> bool {
    let degraded = reply.meta().iter().find(|(key, _)| *key == Degraded::META_KEY);
    let step = degraded.and_then(|(_, degraded)| degraded.get("step")?.string());
    step.as_deref() == Some(DegradedStep::Fallback.as_str())
}

/// Returns `true` if an attempt of a cancelled call may have begun. A shared or hedged call has attempts that its own context
/// does not know yet.
fn may_have_begun(cx: &CallContext) -> bool {
    cx.n_begun() > 0 || cx.tool().settings().fork_calls()
}
