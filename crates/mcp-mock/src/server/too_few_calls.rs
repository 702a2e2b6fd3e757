use std::time::Duration;

use mcp_wire::method;

use super::message_log::{ReceivedMessage, is_call};

/// Error of a tool that was not called as often as a test waits for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{tool}` was called {} within {limit:?}, not {expected}; received: {received}", times(*.n_calls))]
pub struct TooFewCalls {
    tool: String,
    expected: usize,
    n_calls: usize,
    limit: Duration,
    received: String,
}

impl TooFewCalls {
    pub(crate) fn new(tool: &str, expected: usize, limit: Duration, received: &[ReceivedMessage]) -> Self {
        let n_calls = received.iter().filter(|message| is_call(message, tool));
        Self {
            tool: tool.to_owned(),
            expected,
            n_calls: n_calls.count(),
            limit,
            received: summary(received),
        }
    }

    /// Returns the number of calls that came in time.
    #[must_use]
    pub fn n_calls(&self) -> usize {
        self.n_calls
    }
}

/// Maximum number of messages in a summary, the latest ones.
const MAX_LISTED: usize = 50;

/// Lists received messages in the order in which they came: calls with their tool and arguments, others by their method.
pub(crate) fn summary(received: &[ReceivedMessage]) -> String {
    if received.is_empty() {
        return "nothing".to_owned();
    }
    let (older, listed) = received.split_at(received.len().saturating_sub(MAX_LISTED));
    let mut text = match older.len() {
        0 => String::new(),
        n_older => format!("{n_older} older messages"),
    };
    for message in listed {
        text.push_str("\n  ");
        text.push_str(&line(message));
    }
    text
}

pub(crate) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

fn line(message: &ReceivedMessage) -> String {
    match (&*message.method, message.name()) {
        (method::TOOLS_CALL, Some(name)) => format!("{} {name} {}", message.method, message.arguments()),
        (_, Some(name)) => format!("{} {name}", message.method),
        _ => message.method.clone(),
    }
}
