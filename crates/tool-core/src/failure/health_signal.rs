use std::time::Duration;

use crate::{CallContext, ErrorKind, Outcome, ToolError};

/// What an attempt says of something: of its tool, or of what runs it.
///
/// Breakers and [health](crate::Health) count apart, and both go by this, so that they cannot disagree about what an attempt
/// was.
///
/// | | health | breakers |
/// |---|---|---|
/// | [`Answered`](Sign::Answered), [`Reported`](Sign::Reported) | a success | a success |
/// | [`Ill`](Sign::Ill) | a failure | a failure |
/// | [`Locked`](Sign::Locked) | a failure | nothing, but it is there |
/// | [`Apart`](Sign::Apart) | a success | nothing, but it is there |
/// | [`Unrelated`](Sign::Unrelated) | nothing | nothing, but it is there |
/// | [`Nothing`](Sign::Nothing) | nothing | nothing |
///
/// That it is there is enough for a breaker's probe, if an answer came at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthSignal {
    /// It was answered.
    Answered,
    /// It was answered, and the tool reports a failure in its own words: the fault may be the arguments'.
    Reported,
    /// It failed, as it does when something is ill.
    Failure,
    /// It failed, and waiting does not help: credentials were refused.
    AuthFailure,
    /// The tool failed, and what runs it did its part.
    ToolFailure,
    /// It failed for what it was, or by our own doing.
    Neutral,
    /// It was not tried, or not waited for.
    NotObserved,
}

/// What an attempt says of its tool and of what runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HealthSignals {
    /// Of the tool.
    pub tool: HealthSignal,
    /// Of what runs it.
    pub upstream: HealthSignal,
}

impl HealthSignals {
    /// What an attempt says that ended so after this time; that has no result of which nobody waited for the end.
    #[must_use]
    pub fn of(cx: &CallContext, result: Option<&Result<Outcome, ToolError>>, elapsed: Duration) -> Self {
        match result {
            Some(Ok(Outcome::Reply(reply))) if reply.is_error => Self::both(HealthSignal::Reported),
            // What waits for a person, or runs dry, was not tried.
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
        // One broken tool of a server does not take the others with it.
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
