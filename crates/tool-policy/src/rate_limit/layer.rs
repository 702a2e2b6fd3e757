use crate::RateLimits;
use std::{fmt, sync::Arc, time::Duration};

use tool_core::{
    CallContext, ErrorKind, Event, Invoke, Layer, Outcome, RateLimitSettings as Limit, Scope, ToolError,
    format_duration,
};

use super::limiter::{Counts, Used};

/// Refuses attempts that come more often than the tool's [`RateLimits`] allow, with the time after which
/// there is room again.
///
/// An attempt counts in up to four limits: of its principal, of the tool, of the tool's upstream and of all tools. They
/// are asked in this order, the narrowest first, so that a principal that comes too often takes nothing away from the
/// others; an attempt that a wider limit refuses has counted in the narrower ones. Nothing waits here.
///
/// What was used of the limits of a tool and an upstream is part of their state and outlives a reload, as long as the
/// limit itself stays the same. Clones share the rest.
#[derive(Clone, Default)]
pub struct RateLimitLayer {
    shared: Arc<Shared>,
}

/// The layer of [`RateLimitLayer`].
#[derive(Debug, Clone)]
pub struct RateLimit<S> {
    settings: RateLimitLayer,
    inner: S,
}

/// What belongs to no tool.
#[derive(Default)]
struct Shared {
    principals: Used,
    total: Used,
}

impl RateLimitLayer {
    /// A layer of which nothing is used yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an attempt in all of its limits.
    fn take(&self, cx: &CallContext) -> Result<(), ToolError> {
        let tool = cx.tool();
        let RateLimits(limits) = tool.settings().get::<RateLimits>().copied().unwrap_or_default();
        if let Some(limit) = limits.principal {
            let used = self.shared.principals.of(limit, Counts::Each, &cx.clock);
            let taken = used.take(&cx.origin.caller);
            taken.map_err(|wait| refuse(cx, Scope::Principal, &limit, wait))?;
        }
        if let Some(limit) = limits.tool {
            let used = tool.state().get_or_init(Used::default);
            let taken = used
                .of(limit, Counts::Together, &cx.clock)
                .take(&cx.origin.caller);
            taken.map_err(|wait| refuse(cx, Scope::Tool, &limit, wait))?;
        }
        if let (Some(limit), Some(upstream)) = (limits.upstream, tool.state().upstream()) {
            let used = upstream.get_or_init(Used::default);
            let taken = used
                .of(limit, Counts::Together, &cx.clock)
                .take(&cx.origin.caller);
            taken.map_err(|wait| refuse(cx, Scope::Upstream, &limit, wait))?;
        }
        if let Some(limit) = limits.total {
            let used = self.shared.total.of(limit, Counts::Together, &cx.clock);
            let taken = used.take(&cx.origin.caller);
            taken.map_err(|wait| refuse(cx, Scope::Total, &limit, wait))?;
        }
        Ok(())
    }
}

fn refuse(cx: &CallContext, scope: Scope, limit: &Limit, wait: Duration) -> ToolError {
    cx.observers.tell(&Event::RateLimited { cx, scope });
    let whose = match scope {
        Scope::Principal => "the caller".to_owned(),
        Scope::Tool => format!("`{}`", cx.tool().name()),
        // Not by its name, which may be an internal address.
        Scope::Upstream => format!("what runs `{}`", cx.tool().name()),
        Scope::Total => "all tools together".to_owned(),
    };
    let message = format!(
        "the rate limit of {whose} is reached, which is {} calls in {}: wait {}",
        limit.requests,
        format_duration(limit.period),
        format_duration(wait)
    );
    ToolError::new(ErrorKind::RateLimited, message).with_retry_after(wait)
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
            cx.explain("rate limit", || "not counted in a dry run".to_owned());
        } else if let Err(error) = self.settings.take(cx) {
            cx.explain("rate limit", || format!("refused: {error}"));
            return Err(error);
        } else {
            cx.explain("rate limit", || "not reached".to_owned());
        }
        self.inner.invoke(cx).await
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").finish_non_exhaustive()
    }
}
