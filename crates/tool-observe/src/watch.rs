use tool_core::{CallContext, Event, Instant, Observers, Outcome, ToolError};

/// What is watched: a whole call, or one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Call,
    Attempt,
}

/// Tells how it ended, also when nobody waits for the end: dropping it without [`Watched::end`] tells of a call that
/// was cancelled.
pub(crate) struct Watched<'a> {
    pub(crate) cx: &'a mut CallContext,
    observers: &'a Observers,
    scope: Scope,
    start: Instant,
    over: bool,
}

impl<'a> Watched<'a> {
    pub(crate) fn begin(cx: &'a mut CallContext, observers: &'a Observers, scope: Scope) -> Self {
        let start = cx.clock.now();
        Self {
            cx,
            observers,
            scope,
            start,
            over: false,
        }
    }

    pub(crate) fn end(mut self, result: &Result<Outcome, ToolError>) {
        self.over = true;
        self.tell(Some(result));
    }

    fn tell(&self, result: Option<&Result<Outcome, ToolError>>) {
        // Looking at the clock is a good part of what watching costs: not for an end that nobody asks about.
        let is_logged = self.scope == Scope::Call && crate::call::logs_end(result);
        if self.observers.is_empty() && !is_logged {
            return;
        }
        let elapsed = self.cx.clock.now().since(self.start);
        let cx = &*self.cx;
        self.observers.tell(&match self.scope {
            Scope::Call => {
                if is_logged {
                    crate::call::log_end(cx, result, elapsed);
                }
                Event::CallFinished { cx, result, elapsed }
            }
            Scope::Attempt => Event::AttemptFinished { cx, result, elapsed },
        });
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.tell(None);
        }
    }
}
