use std::time::Duration;

use parking_lot::Mutex;
use tool_core::{AccessDecision, CallContext, Event, Instant, Observe};

use crate::{
    AttributeValue,
    conventions::{ERROR_TYPE, events},
};

/// Event of a span: something that a layer did while a call ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanEvent {
    /// Name of the event, one of a fixed set.
    pub name: &'static str,
    /// Time since the span's start.
    pub after: Duration,
    attributes: [Option<Attribute>; 2],
}

/// Name and value of an attribute. The value is a word from the source code or a number, never text of a caller or tool.
type Attribute = (&'static str, AttributeValue<'static>);

/// Maximum number of events recorded for one call; further events are counted.
const MAX_EVENTS: usize = 32;

/// Records the events of one call until the call ends. Exists only for a call whose span is recorded, and allocates
/// nothing before the first event.
#[derive(Debug)]
pub(super) struct SpanEventRecorder {
    start: Instant,
    /// `None` once the call has ended, since shared work may continue after it.
    recorded: Mutex<Option<RecordedEvents>>,
}

#[derive(Debug, Default)]
struct RecordedEvents {
    events: Vec<SpanEvent>,
    n_more: u32,
}

impl SpanEvent {
    /// Returns the attributes of the event.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, AttributeValue<'static>)> {
        self.attributes.into_iter().flatten()
    }
}

impl SpanEventRecorder {
    /// Creates a recorder for a call that begins at `start`.
    pub(super) fn new(start: Instant) -> Self {
        Self {
            start,
            recorded: Mutex::new(Some(RecordedEvents::default())),
        }
    }

    /// Returns the recorded events and the number of dropped ones. Later events are ignored.
    pub(super) fn close(&self) -> (Vec<SpanEvent>, u32) {
        let recorded = self.recorded.lock().take();
        let RecordedEvents { events, n_more } = recorded.unwrap_or_default();
        (events, n_more)
    }
}

impl Observe for SpanEventRecorder {
    fn observe(&self, event: &Event<'_>) {
        let (at, name, attributes) = match event {
            Event::AccessDecided { access, .. } => (access.at, events::ACCESS, access_attributes(access)),
            _ => {
                let Some((cx, name, attributes)) = to_span_event(event) else {
                    return;
                };
                (cx.clock.now(), name, attributes)
            }
        };
        let mut recorded = self.recorded.lock();
        let Some(recorded) = recorded.as_mut() else { return };
        if recorded.events.len() < MAX_EVENTS {
            let after = at.since(self.start);
            recorded.events.push(SpanEvent {
                name,
                after,
                attributes,
            });
        } else {
            recorded.n_more = recorded.n_more.saturating_add(1);
        }
    }
}

/// Returns the attributes of an access. Its resource is text of a program, and stands in the log alone.
fn access_attributes(access: &AccessDecision) -> [Option<Attribute>; 2] {
    let text = |key, value| Some((key, AttributeValue::Static(value)));
    [
        text(events::VERDICT, access.verdict.as_str()),
        text(events::RESOURCE_KIND, access.resource.kind()),
    ]
}

/// Returns the call, name and attributes of an event. Returns `None` if the span's own attributes tell the same, or if
/// the event is not about a call.
fn to_span_event<'a>(event: &Event<'a>) -> Option<(&'a CallContext, &'static str, [Option<Attribute>; 2])> {
    let text = |key, value| Some((key, AttributeValue::Static(value)));
    let of = |scope: tool_core::Scope| text(events::SCOPE, scope.as_str());
    let time = |key, time: Duration| {
        let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Some((key, AttributeValue::Number(milliseconds)))
    };
    Some(match *event {
        Event::Adapted { cx, adapted, .. } => {
            let n_changes = i64::try_from(adapted.changes.len()).unwrap_or(i64::MAX);
            let changes = Some((events::CHANGES, AttributeValue::Number(n_changes)));
            (cx, events::ARGUMENTS_CHANGED, [changes, None])
        }
        Event::CacheUsed { cx, outcome, .. } => {
            let outcome = text(events::CACHE_OUTCOME, outcome.as_str());
            (cx, events::CACHE, [outcome, None])
        }
        Event::Refused {
            cx, layer, reason, ..
        } => {
            let layer = text(events::LAYER, layer);
            (cx, events::REFUSED, [layer, text(events::REASON, reason)])
        }
        Event::Replayed { cx, .. } => (cx, events::REPLAYED, [None, None]),
        Event::RateLimited { cx, scope, .. } => (cx, events::RATE_LIMITED, [of(scope), None]),
        Event::Queued { cx, waited, .. } => (cx, events::QUEUED, [time(events::WAITED, waited), None]),
        Event::Shed { cx, scope, .. } => (cx, events::SHED, [of(scope), None]),
        Event::BreakerRejected { cx, scope, .. } => (cx, events::HELD_BACK, [of(scope), None]),
        Event::BreakerChanged {
            cx, scope, change, ..
        } => {
            let state = text(events::BREAKER_STATE, change.to.as_str());
            (cx, events::BREAKER, [of(scope), state])
        }
        Event::Retried { cx, error, pause, .. } => {
            let kind = text(ERROR_TYPE, error.kind().as_str());
            (cx, events::RETRY, [kind, time(events::PAUSE, pause)])
        }
        Event::Hedged { cx, after, .. } => (cx, events::HEDGE, [time(events::AFTER, after), None]),
        Event::HedgeWon { cx, .. } => (cx, events::HEDGE_WON, [None, None]),
        Event::Degraded { cx, degraded, .. } => {
            let step = text(events::STEP, degraded.step.as_str());
            (cx, events::DEGRADED, [step, None])
        }
        _ => return None,
    })
}
