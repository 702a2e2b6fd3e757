use crate::RateLimits;
use std::{fmt, sync::Arc, time::Duration};

use tool_core::{
    CallContext, ErrorKind, Event, Invoke, Layer, NamedLayer, Outcome, RateLimitSettings as Limit, Scope,
    ToolError, format_duration,
};

use super::limiter::{LimitScope, LimiterCell};

/// Refuses attempts that exceed a rate limit, with the time until the next one is allowed (GCRA, the generic cell rate algorithm,
/// ITU-T I.371).
///
/// Does nothing for a tool until its `Settings` contain [`RateLimits`](crate::RateLimits). All calls must use the same clock.
///
/// An attempt counts in up to four limits: of its principal, of the tool, of the tool's upstream and of all tools. The layer
/// checks them in this order, the narrowest first, so that a principal with too many attempts takes nothing from the others. An
/// attempt that a wider limit refuses has counted in the narrower ones. Nothing waits in this layer.
///
/// The counters of a tool and of an upstream are part of their state. They outlive a reload as long as the limit stays the
/// same. Clones share the other counters.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tool_core::{Arguments, CallContext, ErrorKind, Invoke, Layer, RateLimitSettings, TargetBackend, Tool, ToolError};
/// use tool_core::{invoke_fn, serde_json::json};
/// use tool_policy::{RateLimitLayer, RateLimits};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let once = RateLimitSettings::new(1, Duration::from_secs(3600));
/// let search = Tool::builder("search")
///     .setting(RateLimits::for_tool(once))
///     .run(invoke_fn(|_| async { Ok::<_, ToolError>(json!("found")) }));
/// let stack = RateLimitLayer::new().layer(TargetBackend);
/// stack.invoke(&mut CallContext::local(&search, Arguments::none())).await?;
/// let second = stack.invoke(&mut CallContext::local(&search, Arguments::none())).await;
/// assert_eq!(second.unwrap_err().kind(), ErrorKind::RateLimited);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct RateLimitLayer {
    shared: Arc<Shared>,
}

/// Service of [`RateLimitLayer`].
#[derive(Debug, Clone)]
pub struct RateLimit<S> {
    settings: RateLimitLayer,
    inner: S,
}

/// Limiters that belong to no tool.
#[derive(Default)]
struct Shared {
    principals: LimiterCell,
    total: LimiterCell,
}

impl RateLimitLayer {
    /// Creates a layer that has counted no attempts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an attempt in all of its limits.
    fn count(&self, cx: &CallContext) -> Result<(), ToolError> {
        let tool = cx.tool();
        let RateLimits(limits) = tool.settings().get::<RateLimits>().copied().unwrap_or_default();
        if let Some(limit) = limits.principal {
            let limiter = self
                .shared
                .principals
                .limiter(limit, LimitScope::PerPrincipal, &cx.clock);
            let counted = limiter.count(&cx.origin.caller);
            counted.map_err(|wait| refuse(cx, Scope::Principal, &limit, wait))?;
        }
        if let Some(limit) = limits.tool {
            let cell = tool.state().get_or_init(LimiterCell::default);
            let counted = cell
                .limiter(limit, LimitScope::Shared, &cx.clock)
                .count(&cx.origin.caller);
            counted.map_err(|wait| refuse(cx, Scope::Tool, &limit, wait))?;
        }
        if let (Some(limit), Some(upstream)) = (limits.upstream, tool.state().upstream()) {
            let cell = upstream.get_or_init(LimiterCell::default);
            let counted = cell
                .limiter(limit, LimitScope::Shared, &cx.clock)
                .count(&cx.origin.caller);
            counted.map_err(|wait| refuse(cx, Scope::Upstream, &limit, wait))?;
        }
        if let Some(limit) = limits.total {
            let limiter = self.shared.total.limiter(limit, LimitScope::Shared, &cx.clock);
            let counted = limiter.count(&cx.origin.caller);
            counted.map_err(|wait| refuse(cx, Scope::Total, &limit, wait))?;
        }
        Ok(())
    }
}

fn refuse(cx: &CallContext, scope: Scope, limit: &Limit, wait: Duration) -> ToolError {
    cx.observers.emit(&Event::rate_limited(cx, scope));
    let owner = match scope {
        Scope::Principal => "the caller".to_owned(),
        Scope::Tool => format!("`{}`", cx.tool().name()),
        // Not the upstream's name, which may be an internal address.
        Scope::Upstream => format!("the backend of `{}`", cx.tool().name()),
        Scope::Total => "all tools together".to_owned(),
    };
    let message = format!(
        "the rate limit of {owner} is reached, which is {} calls in {}: wait {}",
        limit.requests,
        format_duration(limit.period),
        format_duration(wait)
    );
    ToolError::new(ErrorKind::RateLimited, message).with_retry_after(wait)
}

impl NamedLayer for RateLimitLayer {
    const NAME: &'static str = "rate limit";
}

impl<S> Layer<S> for RateLimitLayer {
    type Invoke = RateLimit<S>;

    fn layer(self, inner: S) -> RateLimit<S> {
        RateLimit {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for RateLimit<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.tool().settings().get::<RateLimits>().is_none() {
            return self.inner.invoke(cx).await;
        }
        if cx.is_dry_run() {
            cx.explain(RateLimitLayer::NAME, || "not counted in a dry run".to_owned());
        } else if let Err(error) = self.settings.count(cx) {
            cx.explain(RateLimitLayer::NAME, || format!("refused: {error}"));
            return Err(error);
        } else {
            cx.explain(RateLimitLayer::NAME, || "not reached".to_owned());
        }
        self.inner.invoke(cx).await
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").finish_non_exhaustive()
    }
}
