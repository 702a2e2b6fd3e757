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
pub enum Sign {
    /// It was answered.
    Answered,
    /// It was answered, and the tool reports a failure in its own words: the fault may be the arguments'.
    Reported,
    /// It failed, as it does when something is ill.
    Ill,
    /// It failed, and waiting does not help: credentials were refused.
    Locked,
    /// The tool failed, and what runs it did its part.
    Apart,
    /// It failed for what it was, or by our own doing.
    Unrelated,
    /// It was not tried, or not waited for.
    Nothing,
}

/// What an attempt says of its tool and of what runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signs {
    /// Of the tool.
    pub tool: Sign,
    /// Of what runs it.
    pub upstream: Sign,
}

impl Signs {
    /// What an attempt says that ended so after this time; that has no result of which nobody waited for the end.
    #[must_use]
    pub fn of(cx: &CallContext, result: Option<&Result<Outcome, ToolError>>, elapsed: Duration) -> Self {
        match result {
            Some(Ok(Outcome::Reply(reply))) if reply.is_error => Self::both(Sign::Reported),
            // What waits for a person, or runs dry, was not tried.
            Some(Ok(Outcome::Pending(_))) => Self::both(Sign::Nothing),
            Some(Ok(_)) => Self::both(Sign::Answered),
            Some(Err(error)) => Self::of_failure(error),
            None if cx.had_its_time(elapsed) => Self::both(Sign::Ill),
            None => Self::both(Sign::Nothing),
        }
    }

    fn of_failure(error: &ToolError) -> Self {
        if !error.is_sign() {
            return Self::both(Sign::Unrelated);
        }
        let kind = error.kind();
        let tool = match (kind.counts_for_breaker(), kind.counts_for_health()) {
            (true, _) => Sign::Ill,
            (false, true) => Sign::Locked,
            (false, false) => Sign::Unrelated,
        };
        // One broken tool of a server does not take the others with it.
        let is_tools_own = matches!(kind, ErrorKind::UpstreamError | ErrorKind::ResultInvalid);
        Self {
            tool,
            upstream: if is_tools_own { Sign::Apart } else { tool },
        }
    }

    const fn both(sign: Sign) -> Self {
        Self {
            tool: sign,
            upstream: sign,
        }
    }
}
