use std::time::Duration;

use parking_lot::Mutex;
use tool_core::{CallContext, Event, Instant, Observe};

use crate::{
    AttributeValue,
    conventions::{ERROR_TYPE, events},
};

/// Something that a layer did while a call ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanEvent {
    /// What: one of few names.
    pub name: &'static str,
    /// How long after the span's start.
    pub after: Duration,
    attributes: [Option<Attribute>; 2],
}

/// The name of an attribute, and its value: a word of ours or a number, nothing of a caller's or a tool's.
type Attribute = (&'static str, AttributeValue<'static>);

/// How many events of a call are kept; the others are counted.
const MAX_EVENTS: usize = 32;

/// What happens to one call, until it ends. There is one only for a call whose span is recorded, and it takes no room
/// before there is something to keep.
#[derive(Debug)]
pub(crate) struct Journal {
    start: Instant,
    /// Nothing once the call has ended: work that is shared may go on.
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<SpanEvent>,
    n_more: u32,
}

impl SpanEvent {
    /// What is said of it.
    pub fn attributes(&self) -> impl Iterator<Item = (&'static str, AttributeValue<'static>)> {
        self.attributes.into_iter().flatten()
    }
}

impl Journal {
    /// The journal of a call that begins now.
    pub(crate) fn new(start: Instant) -> Self {
        Self {
            start,
            kept: Mutex::new(Some(Kept::default())),
        }
    }

    /// What has happened, and how much of it was not kept; nothing is kept any more from now on.
    pub(crate) fn close(&self) -> (Vec<SpanEvent>, u32) {
        let kept = self.kept.lock().take();
        let Kept { events, n_more } = kept.unwrap_or_default();
        (events, n_more)
    }
}

impl Observe for Journal {
    fn observe(&self, event: &Event<'_>) {
        let Some((cx, name, attributes)) = described(event) else {
            return;
        };
        let mut kept = self.kept.lock();
        let Some(kept) = kept.as_mut() else { return };
        if kept.events.len() < MAX_EVENTS {
            let after = cx.clock.now().since(self.start);
            kept.events.push(SpanEvent {
                name,
                after,
                attributes,
            });
        } else {
            kept.n_more = kept.n_more.saturating_add(1);
        }
    }
}

/// What is kept of an event; nothing if the span says it anyway, or it is of no call.
fn described<'a>(event: &Event<'a>) -> Option<(&'a CallContext, &'static str, [Option<Attribute>; 2])> {
    let text = |key, value| Some((key, AttributeValue::Static(value)));
    let of = |scope: tool_core::Scope| text(events::SCOPE, scope.as_str());
    let time = |key, time: Duration| {
        let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Some((key, AttributeValue::Number(milliseconds)))
    };
    Some(match *event {
        Event::Adapted { cx, adapted } => {
            let n_changes = i64::try_from(adapted.changes.len()).unwrap_or(i64::MAX);
            let changes = Some((events::CHANGES, AttributeValue::Number(n_changes)));
            (cx, events::ARGUMENTS_CHANGED, [changes, None])
        }
        Event::CacheUsed { cx, outcome } => {
            let outcome = text(events::CACHE_OUTCOME, outcome.as_str());
            (cx, events::CACHE, [outcome, None])
        }
        Event::Refused { cx, layer, reason } => {
            let layer = text(events::LAYER, layer);
            (cx, events::REFUSED, [layer, text(events::REASON, reason)])
        }
        Event::Replayed { cx } => (cx, events::REPLAYED, [None, None]),
        Event::RateLimited { cx, scope } => (cx, events::RATE_LIMITED, [of(scope), None]),
        Event::Queued { cx, waited } => (cx, events::QUEUED, [time(events::WAITED, waited), None]),
        Event::Shed { cx, scope } => (cx, events::SHED, [of(scope), None]),
        Event::BreakerRejected { cx, scope } => (cx, events::HELD_BACK, [of(scope), None]),
        Event::BreakerChanged { cx, scope, change } => {
            let state = text(events::BREAKER_STATE, change.to.as_str());
            (cx, events::BREAKER, [of(scope), state])
        }
        Event::Retried { cx, error, pause } => {
            let kind = text(ERROR_TYPE, error.kind().as_str());
            (cx, events::RETRY, [kind, time(events::PAUSE, pause)])
        }
        Event::Hedged { cx, after } => (cx, events::HEDGE, [time(events::AFTER, after), None]),
        Event::HedgeWon { cx } => (cx, events::HEDGE_WON, [None, None]),
        Event::Degraded { cx, degraded } => {
            let step = text(events::STEP, degraded.step.as_str());
            (cx, events::DEGRADED, [step, None])
        }
        _ => return None,
    })
}
