use std::time::Duration;

use crate::{CallContext, ErrorKind, Outcome, ToolError};

/// Signal of one attempt about the health of its tool or of its upstream.
///
/// Breakers and [health](crate::Health) count separately and use the same signals, so they never disagree about an
/// attempt.
///
/// | | health | breakers |
/// |---|---|---|
/// | [`Answered`](HealthSignal::Answered), [`Reported`](HealthSignal::Reported) | a success | a success |
/// | [`Failure`](HealthSignal::Failure) | a failure | a failure |
/// | [`AuthFailure`](HealthSignal::AuthFailure) | a failure | not counted, but reachable |
/// | [`ToolFailure`](HealthSignal::ToolFailure) | a success | not counted, but reachable |
/// | [`Neutral`](HealthSignal::Neutral) | not counted | not counted, but reachable |
/// | [`NotObserved`](HealthSignal::NotObserved) | not counted | not counted |
///
/// Being reachable is enough for a breaker's probe, if an answer came at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthSignal {
    /// The attempt was answered.
    Answered,
    /// The attempt was answered with a failure that the tool itself reports. The arguments may be at fault.
    Reported,
    /// The attempt failed in a way that indicates poor health.
    Failure,
    /// The attempt failed because credentials were rejected. Waiting does not help.
    AuthFailure,
    /// The tool failed; its upstream worked.
    ToolFailure,
    /// The attempt failed because of the call or of toolplane itself.
    Neutral,
    /// The attempt was not made, or was abandoned.
    NotObserved,
}

/// Signals of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HealthSignals {
    /// Signal about the tool.
    pub tool: HealthSignal,
    /// Signal about its upstream.
    pub upstream: HealthSignal,
}

impl HealthSignals {
    /// Derives the signals of an attempt from its result and duration. `result` is `None` if the attempt was
    /// abandoned.
    #[must_use]
    pub fn from_result(
        cx: &CallContext,
        result: Option<&Result<Outcome, ToolError>>,
        elapsed: Duration,
    ) -> Self {
        match result {
            Some(Ok(Outcome::Reply(reply))) if reply.is_error => Self::both(HealthSignal::Reported),
            // A call that waits for a person, and a dry run, made no attempt.
            Some(Ok(Outcome::Pending(_))) => Self::both(HealthSignal::NotObserved),
            Some(Ok(_)) => Self::both(HealthSignal::Answered),
            Some(Err(error)) => Self::of_failure(error),
            None if cx.ran_until_timeout(elapsed) => Self::both(HealthSignal::Failure),
            None => Self::both(HealthSignal::NotObserved),
        }
    }

    fn of_failure(error: &ToolError) -> Self {
        if !error.counts_for_health() {
            return Self::both(HealthSignal::Neutral);
        }
        let kind = error.kind();
        let tool = match (kind.counts_for_breaker(), kind.counts_for_health()) {
            (true, _) => HealthSignal::Failure,
            (false, true) => HealthSignal::AuthFailure,
            (false, false) => HealthSignal::Neutral,
        };
        // A broken tool does not affect the other tools of its server.
        let is_tools_own = matches!(kind, ErrorKind::UpstreamError | ErrorKind::ResultInvalid);
        Self {
            tool,
            upstream: if is_tools_own {
                HealthSignal::ToolFailure
            } else {
                tool
            },
        }
    }

    const fn both(sign: HealthSignal) -> Self {
        Self {
            tool: sign,
            upstream: sign,
        }
    }
}
