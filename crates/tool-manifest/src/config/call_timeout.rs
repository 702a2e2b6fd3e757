//! Time limits of calls, which can be given by default, for a server and for a tool.

use std::time::Duration;

use tool_core::format_duration;
use tool_settings::{Field, NodeId, Period, positive};

use crate::document::place::Cx;

/// Reads the time limit of a call.
pub(crate) fn call_timeout(cx: Cx<'_>, field: Field<Period>) -> Option<Duration> {
    positive(cx.words(), field).filter(|timeout| !timeout.is_zero())
}

/// Warns of a time limit of attempts that is longer than that of the call, and so never has an effect.
pub(crate) fn outlasted(cx: Cx<'_>, at: Option<NodeId>, attempt: Option<Duration>, call: Option<Duration>) {
    if let (Some(at), Some(attempt), Some(call)) = (at, attempt, call)
        && attempt > call
    {
        let message = format!(
            "an attempt may take {} ms, but a call is over after {}: this never has an effect",
            attempt.as_millis(),
            format_duration(call)
        );
        cx.warning(at, message, "raise `call_timeout` as well, or shorten this");
    }
}
