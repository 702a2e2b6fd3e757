//! Keys of `params` that the protocol defines, and the methods that they belong to.
//!
//! Every reader of a request uses these lists: a key that one of them knows and another forwards as unknown would reach
//! the server twice, or not at all.

use crate::method;

/// Metadata of the message; its own keys are in [`meta_key`](crate::meta_key).
pub const META: &str = "_meta";
/// Name of a tool or prompt.
pub const NAME: &str = "name";
/// Arguments of a tool or prompt.
pub const ARGUMENTS: &str = "arguments";
/// URI of a resource.
pub const URI: &str = "uri";
/// Prompt or resource template that a completion belongs to.
pub const REF: &str = "ref";
/// Argument that is completed.
pub const ARGUMENT: &str = "argument";
/// Arguments that are already filled in, for a completion.
pub const CONTEXT: &str = "context";
/// Settings of the task that a tool call is to become (2025-11-25).
pub const TASK: &str = "task";
/// Id of a task.
pub const TASK_ID: &str = "taskId";
/// Client's answers to the questions of the round before (2026-07-28).
pub const INPUT_RESPONSES: &str = "inputResponses";
/// State that the client returns from the round before (2026-07-28).
pub const REQUEST_STATE: &str = "requestState";

/// Members of every request that makes a call: they may differ from round to round of one call.
pub const PER_ROUND: &[&str] = &[META, INPUT_RESPONSES, REQUEST_STATE];

/// Members of all requests that make a call, see [`known_to`].
pub const OF_CALLS: &[&str] = &[
    NAME,
    ARGUMENTS,
    URI,
    REF,
    ARGUMENT,
    CONTEXT,
    TASK,
    META,
    INPUT_RESPONSES,
    REQUEST_STATE,
];

/// Returns the members of a request that makes a call, by its method. For any other method, those of [`PER_ROUND`].
#[must_use]
pub fn known_to(method: &str) -> &'static [&'static str] {
    match method {
        method::TOOLS_CALL => &[NAME, ARGUMENTS, TASK, META, INPUT_RESPONSES, REQUEST_STATE],
        method::PROMPTS_GET => &[NAME, ARGUMENTS, META, INPUT_RESPONSES, REQUEST_STATE],
        method::RESOURCES_READ => &[URI, META, INPUT_RESPONSES, REQUEST_STATE],
        method::COMPLETION_COMPLETE => &[REF, ARGUMENT, CONTEXT, META, INPUT_RESPONSES, REQUEST_STATE],
        _ => PER_ROUND,
    }
}

/// Members that the protocol defines for any request or notification.
#[cfg(any(feature = "strict", test))]
pub(crate) const ALL: &[&str] = &[
    META,
    ARGUMENT,
    ARGUMENTS,
    "capabilities",
    "clientInfo",
    CONTEXT,
    "cursor",
    "data",
    "elicitationId",
    INPUT_RESPONSES,
    "level",
    "logger",
    "message",
    NAME,
    "notifications",
    "progress",
    "progressToken",
    "protocolVersion",
    "reason",
    REF,
    "requestId",
    REQUEST_STATE,
    "status",
    "statusMessage",
    TASK,
    TASK_ID,
    "total",
    URI,
    "ttl",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_lists_agree() {
        let calls = [
            method::TOOLS_CALL,
            method::PROMPTS_GET,
            method::RESOURCES_READ,
            method::COMPLETION_COMPLETE,
        ];
        let by_method: BTreeSet<&str> = calls.into_iter().flat_map(known_to).copied().collect();
        assert_eq!(by_method, OF_CALLS.iter().copied().collect());
        assert!(by_method.is_subset(&ALL.iter().copied().collect()));
        for method in calls {
            assert!(
                PER_ROUND.iter().all(|key| known_to(method).contains(key)),
                "{method}"
            );
        }
    }
}
