use std::{fmt, sync::Arc};

use raw_json::RawJson;
use serde_json::json;
use tool_core::{
    CallContext, ClientKey, Degraded, DegradedStep, DispatchState, ErrorKind, Invoke, Layer, Outcome, Reply,
    Target, ToolError, Trust,
};

use super::usage_counters::{Call, Key, Ledger};
use crate::SharedRules;

/// How many calls of tools an agent may make in a turn and in a conversation, and what they may cost. Nothing is limited
/// that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CallLimits {
    /// Calls in one turn, which is one answer of a model.
    pub calls_per_turn: Option<u32>,
    /// Calls in one conversation.
    pub calls_per_conversation: Option<u32>,
    /// Calls of the same tool with the same arguments in one conversation, among the last 64 different ones.
    pub identical_calls: Option<u32>,
    /// What the calls of one turn may cost.
    pub cost_per_turn: Option<Micros>,
    /// What the calls of one conversation may cost.
    pub cost_per_conversation: Option<Micros>,
}

/// An amount of money in millionths of a US dollar: whole numbers, whose sums are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(pub u64);

/// Refuses calls of tools beyond the [`CallLimits`] that the rules set for turns and conversations.
///
/// # Turns and conversations
/// The protocol knows neither, so who calls says them in `_meta`, under [`QuotaLayer::TURN`] and
/// [`QuotaLayer::CONVERSATION`]: any value that is another for another. Without a conversation, all calls of a session are
/// one, and without a session all calls of a principal. Calls without a turn count in their conversation alone. A
/// caller's conversations are its own: others that say the same have another.
///
/// # What counts
/// A call that was made, also if it failed or was withdrawn, and one that was answered with what is kept. What fails before
/// an attempt began (it is refused, held back, or its time is over while it waits its turn), waits for approval or needs
/// something from the caller first does not count until it is made. Where a fallback answers before that, the fallback counts.
/// However many arrive at once, no more are made than the limit says.
///
/// # Memory
/// A conversation that nobody goes on with is forgotten after a day, and then begins anew. There is room for 16,384
/// conversations, and for 1,024 of one principal; when there is no more, the one that was idle for the longest time makes
/// room, if that was five minutes at least. Otherwise a new one is refused: a budget that is being used is never reset. Of the
/// turns of a conversation the last 16 are kept, and those with a call in the last two minutes, up to 512; one more at once is
/// refused as well.
#[derive(Debug, Clone)]
pub struct QuotaLayer {
    rules: SharedRules,
    ledger: Arc<Ledger>,
}

/// The layer of [`QuotaLayer`].
#[derive(Debug, Clone)]
pub struct Quota<S> {
    settings: QuotaLayer,
    inner: S,
}

impl Micros {
    /// So many dollars, to the nearest millionth; what is not free costs at least one.
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Self {
        if !dollars.is_finite() || dollars <= 0.0 {
            return Self(0);
        }
        // A number beyond the largest becomes the largest.
        Self(((dollars * 1e6).round() as u64).max(1))
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let digits = format!("{rest:06}");
        let cents = digits.trim_end_matches('0');
        write!(f, "{whole}.{cents:0<2}")
    }
}

impl CallLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something is limited in turns.
    pub(crate) fn are_of_turns(&self) -> bool {
        self.calls_per_turn.is_some() || self.cost_per_turn.is_some()
    }
}

impl QuotaLayer {
    /// Where in `_meta` a caller says which turn a call belongs to.
    pub const TURN: &str = "dev.toolplane/turn";
    /// Where in `_meta` a caller says which conversation a call belongs to.
    pub const CONVERSATION: &str = "dev.toolplane/conversation";

    /// A layer in which no calls were made yet, which goes by these rules and by others as soon as they are put in their
    /// place. What was used stays used.
    #[must_use]
    pub fn new(rules: impl Into<SharedRules>) -> Self {
        Self {
            rules: rules.into(),
            ledger: Arc::default(),
        }
    }
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
        let QuotaLayer { rules, ledger } = &self.settings;
        let limits = rules.load().limits;
        if limits.is_empty() || !matches!(cx.target, Target::Tool(_)) {
            return self.inner.invoke(cx).await;
        }
        let (key, call) = (key(cx), call(cx));
        let taken = if cx.is_dry_run() {
            ledger.look(&key, &call, &limits)
        } else {
            ledger.take(&key, &call, &limits)
        };
        if let Err(refusal) = taken {
            cx.explain("allowance", || format!("refused: {refusal}"));
            cx.emit_refused("allowance", refusal.word());
            return Err(refusal.into());
        }
        cx.explain("allowance", || "within the limits of its conversation".to_owned());
        if cx.is_dry_run() {
            return self.inner.invoke(cx).await;
        }
        let mut taken = Taken {
            cx,
            ledger,
            key,
            call,
            was_made: None,
        };
        let result = self.inner.invoke(taken.cx).await;
        taken.was_made = Some(was_made(taken.cx, &result));
        result
    }
}

/// What a call took from its limits, which is given back if it was not made, also when its future is dropped.
struct Taken<'a> {
    cx: &'a mut CallContext,
    ledger: &'a Ledger,
    key: Key,
    call: Call,
    /// Not known of one that nobody waits for any more.
    was_made: Option<bool>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.was_made.unwrap_or_else(|| may_have_begun(self.cx)) {
            self.ledger.give_back(&self.key, &self.call);
            self.cx
                .explain("allowance", || "not counted: the call was not made".to_owned());
        }
    }
}

/// Whose conversation a call belongs to.
fn key(cx: &CallContext) -> Key {
    let said = |key| cx.extras.meta.as_ref().and_then(|meta| meta.get(key));
    let conversation = match (said(QuotaLayer::CONVERSATION), &cx.origin.client) {
        (Some(said), _) => raw_json::digest(&RawJson::from(json!(["said", said.as_str()]))),
        (None, Some(ClientKey::Session(session))) => {
            raw_json::digest(&RawJson::from(json!(["session", &**session])))
        }
        _ => [0; 32],
    };
    Key {
        owner: (
            cx.origin.caller.tenant.clone(),
            cx.origin.caller.principal.clone(),
        ),
        conversation,
        turn: said(QuotaLayer::TURN).map(|turn| raw_json::digest(&turn)),
    }
}

fn call(cx: &CallContext) -> Call {
    let tool = cx.tool();
    let descriptor = tool.descriptor();
    // What a server says of its own tools counts for nothing.
    let cost = descriptor
        .metadata
        .cost_per_call
        .filter(|_| descriptor.origin.trust == Trust::Operator);
    Call {
        now: cx.clock.now(),
        cost: Micros::from_dollars(cost.unwrap_or_default()),
        identity: raw_json::digest(&RawJson::from(json!([&**tool.name(), cx.arguments.digest()]))),
    }
}

/// Whether a call was made, however it ended.
fn was_made(cx: &CallContext, result: &Result<Outcome, ToolError>) -> bool {
    // Shared work counts as its first caller's.
    let is_begun = cx.attempt > 0 && cx.n_begun() > 0;
    let error = match result {
        Ok(Outcome::NeedsInput(_) | Outcome::Pending(_)) => return false,
        // A fallback that answered in its place counts as a call of its own.
        Ok(Outcome::Reply(reply)) if !is_begun => return !is_of_fallback(reply),
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

fn is_of_fallback(reply: &Reply) -> bool {
    let said = reply.meta().iter().find(|(key, _)| *key == Degraded::META_KEY);
    let step = said.and_then(|(_, said)| said.get("step")?.string());
    step.as_deref() == Some(DegradedStep::Fallback.as_str())
}

/// Whether an attempt may have begun of a call that was given up. One that is shared or hedged has attempts of which its own
/// context does not know yet.
fn may_have_begun(cx: &CallContext) -> bool {
    cx.n_begun() > 0 || cx.tool().settings().fork_calls()
}
