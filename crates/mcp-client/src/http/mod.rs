//! Streamable HTTP transport: each request is one POST, sent and read in the caller's own future.

mod answer;
mod call;
mod client;
mod deadlines;
mod endpoint;
mod listener;
mod mirrored_headers;
mod session;
mod shared;
mod sse;
#[cfg(feature = "websocket")]
mod websocket;
#[cfg(not(feature = "websocket"))]
#[path = "websocket/unsupported.rs"]
mod websocket;

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use mcp_wire::{Era, Params, cancelled_params, method};
use raw_json::RawJson;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::timeout,
};

pub use self::endpoint::HttpEndpoint;
use self::{call::OutgoingRequest, client::HttpClient, shared::HttpShared};
pub(crate) use self::{sse::open as open_sse, websocket::open as open_websocket};
use crate::{
    ClientError, ClientErrorKind, ConnectionOptions, ConnectionStats, ServerInfo,
    exchange::Exchange,
    notifications::{MessageRouter, Notifier},
};

/// Connection over Streamable HTTP.
pub(crate) struct HttpLink {
    shared: Arc<HttpShared>,
    pending: AtomicUsize,
}

/// Capacity of the queue of messages without a response.
const POST_QUEUE: usize = 256;

impl HttpLink {
    pub(crate) fn new(
        endpoint: &HttpEndpoint,
        options: &ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        let client = HttpClient::new(&endpoint.url, endpoint.headers.clone())?;
        let (post_queue, messages) = mpsc::channel(POST_QUEUE);
        let router = MessageRouter::new(options.handlers.clone(), notifier);
        let shared = Arc::new(HttpShared::new(client, options.max_message, router, post_queue));
        let own = Arc::clone(&shared);
        tokio::spawn(async move {
            tokio::select! {
                () = run_post_queue(&own, messages) => {}
                () = own.deadlines.watch() => {}
            }
        });
        Ok(Self {
            shared,
            pending: AtomicUsize::new(0),
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.shared.next_id()
    }

    pub(crate) async fn request(
        &self,
        id: u64,
        method: &str,
        params: &Params,
        exchange: &Exchange,
    ) -> Result<RawJson, ClientError> {
        if self.is_closed() {
            return Err(ClientError::shut_down());
        }
        let outgoing = OutgoingRequest {
            id,
            method,
            params,
            exchange,
        };
        self.pending.fetch_add(1, Ordering::Relaxed);
        let mut guard = CancelGuard {
            link: self,
            outgoing: &outgoing,
            is_active: true,
        };
        let call = pin!(self.shared.call(&outgoing));
        let done = self.shared.deadlines.run(exchange, call).await;
        guard.is_active = matches!(&done, Err(error) if matches!(error.kind(), ClientErrorKind::Timeout(_)));
        drop(guard);
        done
    }

    pub(crate) async fn notify(&self, method: &str, params: Option<&RawJson>) -> Result<(), ClientError> {
        self.shared
            .notify(mcp_wire::notification(method, params).into(), method)
            .await
    }

    pub(crate) fn opened(&self, server: &ServerInfo, initialize: RawJson) {
        self.shared.opened(server, initialize);
    }

    /// Starts to listen for notifications. A legacy server may send requests on this stream during a call, and those
    /// sent before the stream is open are lost: a client with handlers waits for the stream, up to one second.
    pub(crate) async fn listen(&self, era: Era, has_handlers: bool) {
        const LIMIT: Duration = Duration::from_secs(1);
        if era == Era::Modern {
            tokio::spawn(listener::listen_modern(Arc::clone(&self.shared)));
            return;
        }
        let (sender, answered) = oneshot::channel();
        tokio::spawn(listener::listen_legacy(Arc::clone(&self.shared), sender));
        if has_handlers {
            let _ = timeout(LIMIT, answered).await;
        }
    }

    /// Replaces the subscription at a modern server.
    pub(crate) fn set_subscription(&self, params: Option<RawJson>) {
        self.shared.subscription.send_replace(params);
    }

    /// Records which arguments of tools are mirrored as headers. Returns the tools that can be called.
    pub(crate) fn register_tools(&self, tools: Vec<RawJson>) -> Vec<RawJson> {
        self.shared.mirrored.update(tools)
    }

    pub(crate) fn stats(&self) -> ConnectionStats {
        self.shared.router.stats.snapshot()
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.shared.closed.borrow()
    }

    pub(crate) async fn closed(&self) -> ClientError {
        // The sender lives as long as `self`.
        let _ = self.shared.closed.subscribe().wait_for(|closed| *closed).await;
        ClientError::shut_down()
    }

    pub(crate) fn closed_signal(&self) -> watch::Receiver<bool> {
        self.shared.closed.subscribe()
    }

    /// Fails requests in progress and ends the session at the server.
    pub(crate) async fn shutdown(&self) {
        const LIMIT: Duration = Duration::from_secs(2);
        self.shared.router.stop();
        if self.shared.close() {
            return;
        }
        let session = self.shared.session();
        if session.id.is_some() {
            let headers = session.headers("", &Params::default());
            // A server may refuse or never respond: its session will expire.
            let _ = timeout(LIMIT, self.shared.client.delete(headers)).await;
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.shared.router.stop();
        self.shared.close();
    }
}

/// Maximum number of concurrent posts of messages without a response. Each belongs to another call and should not wait
/// for a slow server.
const CONCURRENT_POSTS: usize = 4;

/// Posts messages without a response until the connection closes.
async fn run_post_queue(shared: &Arc<HttpShared>, mut messages: mpsc::Receiver<Bytes>) {
    let mut closed = shared.closed.subscribe();
    let mut posts = JoinSet::new();
    loop {
        if posts.len() >= CONCURRENT_POSTS {
            posts.join_next().await;
        }
        let message = tokio::select! {
            biased;
            Some(message) = messages.recv() => message,
            Some(_) = posts.join_next() => continue,
            _ = closed.wait_for(|closed| *closed) => break,
        };
        let shared = Arc::clone(shared);
        posts.spawn(async move {
            if let Err(error) = shared.notify(message, method::CANCELLED).await {
                tracing::debug!(%error, "failed to post a message to the server");
            }
        });
    }
    // Each post has a timeout of its own.
    while posts.join_next().await.is_some() {}
}

/// Notifies a legacy server if a caller leaves a request that may run. A modern server detects it by the closed stream.
struct CancelGuard<'a> {
    link: &'a HttpLink,
    outgoing: &'a OutgoingRequest<'a>,
    is_active: bool,
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        let Self {
            link,
            outgoing,
            is_active,
        } = self;
        link.pending.fetch_sub(1, Ordering::Relaxed);
        let is_call = outgoing.method != method::INITIALIZE && outgoing.method != method::DISCOVER;
        if *is_active && is_call && outgoing.exchange.was_sent() && link.shared.era() == Era::Legacy {
            let params = cancelled_params(&RawJson::from(outgoing.id), None);
            link.shared
                .post_later(mcp_wire::notification(method::CANCELLED, Some(&params)).into());
        }
    }
}
