//! The Streamable HTTP transport: each request is one POST, made and read in the caller's own future.

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
use self::{call::Posting, client::HttpClient, shared::HttpShared};
pub(crate) use self::{sse::open as open_sse, websocket::open as open_websocket};
use crate::{
    ClientError, ClientErrorKind, ConnectionOptions, Counters, ServerInfo,
    connection::Exchange,
    notifications::{ChangeSink, Incoming},
};

/// A connection over Streamable HTTP.
pub(crate) struct HttpLink {
    shared: Arc<HttpShared>,
    pending: AtomicUsize,
}

/// How many messages without an answer may wait to be posted.
const QUEUE: usize = 256;

impl HttpLink {
    pub(crate) fn new(
        endpoint: &HttpEndpoint,
        options: &ConnectionOptions,
        changes: ChangeSink,
    ) -> Result<Self, ClientError> {
        let client = HttpClient::new(&endpoint.url, endpoint.headers.clone())?;
        let (postman, letters) = mpsc::channel(QUEUE);
        let incoming = Incoming::new(options.handlers.clone(), changes);
        let shared = Arc::new(HttpShared::new(client, options.max_message, incoming, postman));
        let own = Arc::clone(&shared);
        tokio::spawn(async move {
            tokio::select! {
                () = post_letters(&own, letters) => {}
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
        let posting = Posting {
            id,
            method,
            params,
            exchange,
        };
        self.pending.fetch_add(1, Ordering::Relaxed);
        let mut guard = CancelGuard {
            link: self,
            posting: &posting,
            armed: true,
        };
        let call = pin!(self.shared.call(&posting));
        let done = self.shared.deadlines.keep(exchange, call).await;
        guard.armed = matches!(&done, Err(error) if matches!(error.kind(), ClientErrorKind::Timeout(_)));
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

    /// Begins to listen for what a server says by itself. A legacy server may ask on this stream in the middle of a
    /// call, and what it asks before the stream is open is lost: who has answers waits until it is, but not for long.
    pub(crate) async fn listen(&self, era: Era, has_answers: bool) {
        const LIMIT: Duration = Duration::from_secs(1);
        if era == Era::Modern {
            tokio::spawn(listener::modern(Arc::clone(&self.shared)));
            return;
        }
        let (sender, answered) = oneshot::channel();
        tokio::spawn(listener::legacy(Arc::clone(&self.shared), sender));
        if has_answers {
            let _ = timeout(LIMIT, answered).await;
        }
    }

    /// Says what a modern server is to tell.
    pub(crate) fn want(&self, params: Option<RawJson>) {
        self.shared.wanted.send_replace(params);
    }

    /// Learns which arguments of tools are sent as headers too; returns the tools that can be called.
    pub(crate) fn learn_tools(&self, tools: Vec<RawJson>) -> Vec<RawJson> {
        self.shared.mirrored.learn(tools)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.shared.incoming.counting.snapshot()
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

    pub(crate) fn end_signal(&self) -> watch::Receiver<bool> {
        self.shared.closed.subscribe()
    }

    /// Fails what is under way and tells the server that the session is over.
    pub(crate) async fn shutdown(&self) {
        const LIMIT: Duration = Duration::from_secs(2);
        self.shared.incoming.stop();
        if self.shared.close() {
            return;
        }
        let session = self.shared.session();
        if session.id.is_some() {
            let headers = session.headers("", &Params::default());
            // A server may refuse or never answer: it will forget the session by itself.
            let _ = timeout(LIMIT, self.shared.client.delete(headers)).await;
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.shared.incoming.stop();
        self.shared.close();
    }
}

/// How many messages without an answer are posted at a time: each belongs to another call, and should not wait for a server
/// that takes long over one.
const LETTERS_AT_A_TIME: usize = 4;

/// Posts what has no answer, until the connection closes.
async fn post_letters(shared: &Arc<HttpShared>, mut letters: mpsc::Receiver<Bytes>) {
    let mut closed = shared.closed.subscribe();
    let mut posts = JoinSet::new();
    loop {
        if posts.len() >= LETTERS_AT_A_TIME {
            posts.join_next().await;
        }
        let letter = tokio::select! {
            biased;
            Some(letter) = letters.recv() => letter,
            Some(_) = posts.join_next() => continue,
            _ = closed.wait_for(|closed| *closed) => break,
        };
        let shared = Arc::clone(shared);
        posts.spawn(async move {
            if let Err(error) = shared.notify(letter, method::CANCELLED).await {
                tracing::debug!(%error, "a message to the server was lost");
            }
        });
    }
    // Each has a limit of its own.
    while posts.join_next().await.is_some() {}
}

/// Tells the server when a caller leaves a request that may run. A modern server knows by the stream that closes.
struct CancelGuard<'a> {
    link: &'a HttpLink,
    posting: &'a Posting<'a>,
    armed: bool,
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        let Self { link, posting, armed } = self;
        link.pending.fetch_sub(1, Ordering::Relaxed);
        let is_call = posting.method != method::INITIALIZE && posting.method != method::DISCOVER;
        if *armed && is_call && posting.exchange.was_sent() && link.shared.era() == Era::Legacy {
            let params = cancelled_params(&RawJson::from(posting.id), None);
            link.shared
                .post_later(mcp_wire::notification(method::CANCELLED, Some(&params)).into());
        }
    }
}
