use std::{
    sync::{Arc, Weak},
    thread,
};

use mcp_wire::{Id, Request, RpcError, code, id_in_head, meta, meta_key, method, with_meta};
use raw_json::RawJson;

use super::ServerRequest;
use crate::notifications::MessageRouter;

/// Maximum number of requests of the server that are handled at once.
const MAX_CONCURRENT: usize = 64;

impl MessageRouter {
    /// Handles a request of the server without waiting. `send` queues the response, and returns `false` if there is no
    /// room. `tag` is that of the client's request whose response contained it.
    pub(crate) fn request(
        self: &Arc<Self>,
        request: Request,
        tag: Option<u64>,
        send: impl FnOnce(Vec<u8>) -> bool + Send + 'static,
    ) {
        let Request { id, method, params } = request;
        if method == method::PING {
            return self.count_dropped(send(mcp_wire::result(&id, &RawJson::object())));
        }
        let mut running = self.running();
        let refusal = if !self.handlers.handles(&method) {
            RpcError::new(code::METHOD_NOT_FOUND, "this client offers no such method")
        } else if running.len() >= MAX_CONCURRENT {
            RpcError::new(
                code::INTERNAL_ERROR,
                "this client answers too many requests already",
            )
        } else if running.contains_key(&id) {
            RpcError::new(code::INVALID_REQUEST, "a request with this id is under way")
        } else {
            let mut reply = Reply {
                id: id.clone(),
                send: Some(send),
                router: Arc::downgrade(self),
            };
            let handlers = self.handlers.clone();
            let related = params.as_ref().and_then(meta);
            let related = related.and_then(|meta| meta.get(meta_key::RELATED_TASK));
            let task = tokio::spawn(async move {
                let answer = handlers.answer(ServerRequest { method, params, tag });
                let answer = answer.expect("there is a handler").await;
                reply.send(match answer {
                    Ok(result) => mcp_wire::result(&reply.id, &with_related_task(result, related)),
                    Err(error) => mcp_wire::error(Some(reply.id.as_raw()), &error),
                });
            });
            // The task removes itself from the map, which waits for this lock.
            running.insert(id, task.abort_handle());
            return;
        };
        drop(running);
        self.stats.refused.add();
        tracing::debug!(method, "refused a request of the server");
        self.count_dropped(send(mcp_wire::error(Some(id.as_raw()), &refusal)));
    }
}

/// Builds the error response to a request of the server that exceeds the limit, given its beginning. Returns `None` if
/// it has no readable id or is a notification.
pub(crate) fn oversize_response(head: &[u8], limit: usize) -> Option<Vec<u8>> {
    let id = RawJson::from(id_in_head(head)?);
    let message = format!("the request is larger than {limit} bytes");
    let error = RpcError::new(code::INVALID_REQUEST, message);
    Some(mcp_wire::error(Some(&id), &error))
}

/// Adds the related task to a result, as the protocol requires.
fn with_related_task(result: RawJson, task: Option<RawJson>) -> RawJson {
    match task {
        Some(task) => with_meta(Some(&result), &[(meta_key::RELATED_TASK, task)]),
        None => result,
    }
}

/// Pending response of a handler. Sends an internal error if the handler panics.
struct Reply<S: FnOnce(Vec<u8>) -> bool> {
    id: Id,
    send: Option<S>,
    router: Weak<MessageRouter>,
}

impl<S: FnOnce(Vec<u8>) -> bool> Reply<S> {
    fn send(&mut self, frame: Vec<u8>) {
        let sent = self.send.take().is_some_and(|send| send(frame));
        if let Some(router) = self.router.upgrade() {
            router.count_dropped(sent);
        }
    }
}

impl<S: FnOnce(Vec<u8>) -> bool> Drop for Reply<S> {
    fn drop(&mut self) {
        if self.send.is_some() && thread::panicking() {
            // Without a response the server would wait forever.
            let error = RpcError::new(code::INTERNAL_ERROR, "a fault of this client");
            self.send(mcp_wire::error(Some(self.id.as_raw()), &error));
        }
        if let Some(router) = self.router.upgrade() {
            router.running().remove(&self.id);
        }
    }
}
