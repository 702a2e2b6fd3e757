//! Degraded replies: replies from a fallback or a stale cache entry instead of the tool.

use tool_core::{CallContext, Degraded, Event, Reply};

/// Marks a reply that replaces the tool's own: in its `_meta`, in the log as a warning, and as an event for observers.
pub(crate) fn mark_degraded(cx: &CallContext, reply: &mut Reply, degraded: &Degraded) {
    let Degraded {
        step, source, age, ..
    } = degraded;
    let errors: Vec<_> = degraded.errors.iter().map(ToString::to_string).collect();
    tracing::warn!(
        tool = %cx.tool().name(),
        correlation_id = %cx.correlation_id,
        step = step.as_str(),
        source = %source,
        age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        "answered in another way, after {}",
        errors.join(", ")
    );
    cx.observers.emit(&Event::degraded(cx, degraded));
    reply.add_meta(Degraded::META_KEY, degraded.record());
}
