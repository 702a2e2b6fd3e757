//! What both transports do alike with messages that a server sends unasked.

use mcp_wire::{Notification, Request, RpcError, code, integer, method};
use raw_json::RawJson;

use crate::{changes::ChangeSink, counters::Counting};

/// The answer to a request of the server. No capability is declared, so only `ping` has an answer.
pub(crate) fn answer(request: &Request, counting: &Counting) -> Vec<u8> {
    if request.method == method::PING {
        return mcp_wire::result(&request.id, &RawJson::object());
    }
    counting.refused.add();
    tracing::debug!(method = request.method, "refused a request of the server");
    let error = RpcError::new(code::METHOD_NOT_FOUND, "this client offers no such method");
    mcp_wire::error(Some(request.id.as_raw()), &error)
}

/// The id of the request that a progress notification is about: our tokens are our ids.
pub(crate) fn progress_of(notification: &Notification) -> Option<(u64, &RawJson)> {
    if notification.method != method::PROGRESS {
        return None;
    }
    let params = notification.params.as_ref()?;
    Some((integer(&params.get("progressToken")?)?, params))
}

/// Takes a notification that is about no single request.
pub(crate) fn note(notification: &Notification, changes: &ChangeSink, counting: &Counting) {
    match notification.method.as_str() {
        method::TOOLS_LIST_CHANGED => changes.tools(),
        method::RESOURCES_LIST_CHANGED => changes.resources(),
        method::PROMPTS_LIST_CHANGED => changes.prompts(),
        _ => counting.notifications.add(),
    }
}
