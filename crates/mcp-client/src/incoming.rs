//! What both transports do alike with messages that a server sends unasked.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    thread,
};

use mcp_wire::{
    Id, Notification, Request, RpcError, code, id_in_head, integer_id, meta, meta_key, method, with_meta,
};
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::task::AbortHandle;

use crate::{Handlers, changes::ChangeSink, counters::Counting, handlers::ServerRequest};

/// Takes what a server sends that is no answer.
pub(crate) struct Incoming {
    handlers: Handlers,
    pub(crate) changes: ChangeSink,
    pub(crate) counting: Counting,
    /// The requests of the server that are being answered.
    running: Mutex<HashMap<Id, AbortHandle>>,
}

/// How many requests of the server are answered at once.
const AT_ONCE: usize = 64;

impl Incoming {
    pub(crate) fn new(handlers: Handlers, changes: ChangeSink) -> Arc<Self> {
        Arc::new(Self {
            handlers,
            changes,
            counting: Counting::default(),
            running: Mutex::default(),
        })
    }

    /// Answers a request of the server without waiting: `send` queues the frame, and says whether there was room.
    /// `tag` is that of our own request in whose answer it came.
    pub(crate) fn request(
        self: &Arc<Self>,
        request: Request,
        tag: Option<u64>,
        send: impl FnOnce(Vec<u8>) -> bool + Send + 'static,
    ) {
        let Request { id, method, params } = request;
        if method == method::PING {
            return self.sent(send(mcp_wire::result(&id, &RawJson::object())));
        }
        let mut running = self.running();
        let refusal = if !self.handlers.handles(&method) {
            RpcError::new(code::METHOD_NOT_FOUND, "this client offers no such method")
        } else if running.len() >= AT_ONCE {
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
                incoming: Arc::downgrade(self),
            };
            let handlers = self.handlers.clone();
            let related = params.as_ref().and_then(meta);
            let related = related.and_then(|meta| meta.get(meta_key::RELATED_TASK));
            let task = tokio::spawn(async move {
                let answer = handlers.answer(ServerRequest { method, params, tag });
                let answer = answer.expect("there is a handler").await;
                reply.send(match answer {
                    Ok(result) => mcp_wire::result(&reply.id, &in_task(result, related)),
                    Err(error) => mcp_wire::error(Some(reply.id.as_raw()), &error),
                });
            });
            // The task takes itself out again, which waits until this lock is free.
            running.insert(id, task.abort_handle());
            return;
        };
        drop(running);
        self.counting.refused.add();
        tracing::debug!(method, "refused a request of the server");
        self.sent(send(mcp_wire::error(Some(id.as_raw()), &refusal)));
    }

    /// Takes a notification that is about no request that is under way.
    pub(crate) fn note(&self, note: Notification) {
        match note.method.as_str() {
            method::TOOLS_LIST_CHANGED => self.changes.tools(),
            method::RESOURCES_LIST_CHANGED => self.changes.resources(),
            method::PROMPTS_LIST_CHANGED => self.changes.prompts(),
            method::CANCELLED => return self.take_back(&note),
            // The subscription is ours, and what it brings is heard of anyway.
            method::SUBSCRIPTIONS_ACKNOWLEDGED => return,
            _ => {
                let is_taken = self.handlers.tell(&note);
                if !self.changes.events.send(note) && !is_taken {
                    self.counting.notifications.add();
                }
                return;
            }
        }
        self.handlers.tell(&note);
        self.changes.events.send(note);
    }

    /// The server no longer wants the answer to one of its requests.
    fn take_back(&self, note: &Notification) {
        let id = note.params.as_ref().and_then(|params| params.get("requestId"));
        let task = id
            .and_then(|id| Id::new(&id))
            .and_then(|id| self.running().remove(&id));
        match task {
            Some(task) => task.abort(),
            None => self.counting.notifications.add(),
        }
    }

    /// Stops answering: the connection is closed.
    pub(crate) fn stop(&self) {
        for (_, task) in self.running().drain() {
            task.abort();
        }
    }

    fn sent(&self, sent: bool) {
        if !sent {
            self.counting.dropped.add();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.running.lock()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The answer to a request of the server that is larger than it may be, of which this is the head; nothing if it names no id
/// that can be told, or is a notification.
pub(crate) fn oversize(head: &[u8], limit: usize) -> Option<Vec<u8>> {
    let id = RawJson::from(id_in_head(head)?);
    let message = format!("the request is larger than {limit} bytes");
    let error = RpcError::new(code::INVALID_REQUEST, message);
    Some(mcp_wire::error(Some(&id), &error))
}

/// The answer to a question that belongs to a task, which says so as the protocol asks.
fn in_task(result: RawJson, task: Option<RawJson>) -> RawJson {
    match task {
        Some(task) => with_meta(Some(&result), &[(meta_key::RELATED_TASK, task)]),
        None => result,
    }
}

/// The answer that a handler owes.
struct Reply<S: FnOnce(Vec<u8>) -> bool> {
    id: Id,
    send: Option<S>,
    incoming: Weak<Incoming>,
}

impl<S: FnOnce(Vec<u8>) -> bool> Reply<S> {
    fn send(&mut self, frame: Vec<u8>) {
        let sent = self.send.take().is_some_and(|send| send(frame));
        if let Some(incoming) = self.incoming.upgrade() {
            incoming.sent(sent);
        }
    }
}

impl<S: FnOnce(Vec<u8>) -> bool> Drop for Reply<S> {
    fn drop(&mut self) {
        if self.send.is_some() && thread::panicking() {
            // The server would wait for ever.
            let error = RpcError::new(code::INTERNAL_ERROR, "a fault of this client");
            self.send(mcp_wire::error(Some(self.id.as_raw()), &error));
        }
        if let Some(incoming) = self.incoming.upgrade() {
            incoming.running().remove(&self.id);
        }
    }
}

/// The id of the request that a progress notification is about: our tokens are our ids.
pub(crate) fn progress_of(notification: &Notification) -> Option<(u64, &RawJson)> {
    if notification.method != method::PROGRESS {
        return None;
    }
    let params = notification.params.as_ref()?;
    Some((integer_id(&params.get("progressToken")?)?, params))
}
