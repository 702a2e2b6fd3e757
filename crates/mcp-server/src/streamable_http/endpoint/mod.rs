//! Requests over Streamable HTTP, from their heads to their responses.
//!
//! A request passes these states:
//!
//! 1. [`Admitted`]: its head has passed all checks, and its principal is known;
//! 2. `Opened`: its body is read, and its revision, session and headers are checked;
//! 3. [`Exchange`]: the service answers it.

mod admission;
mod batch;
mod body;
mod detached;
mod exchange;
mod listen;
mod post;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{Method, Response, StatusCode, request::Parts};
use hyper::body::Body;

use self::detached::DetachedCalls;
pub(super) use self::{
    admission::Admitted,
    body::{BodyError, read_body},
    exchange::{Exchange, Step},
};
use super::{HttpServerOptions, ResponseBody, head::Cors, response, session::Sessions, sse::SseClients};
use crate::{Principal, Service, limits::StreamPermits, notifications::Subscriptions, protocol::Core};

/// State that the clones of an [`HttpService`](super::HttpService) share.
pub(super) struct Endpoint<S> {
    pub(super) core: Arc<Core<S>>,
    pub(super) options: HttpServerOptions,
    anonymous: Principal,
    pub(super) sessions: Arc<Sessions>,
    pub(super) stream_permits: Arc<StreamPermits>,
    subscriptions: Arc<Subscriptions>,
    pub(super) sse_clients: Arc<SseClients>,
    detached: Arc<DetachedCalls>,
    is_draining: AtomicBool,
}

pub(super) type HttpResponse = Response<ResponseBody>;

impl<S: Service> Endpoint<S> {
    pub(super) fn new(service: S, options: HttpServerOptions) -> Self {
        Self {
            core: Arc::new(Core::new(service)),
            anonymous: Principal::new("anonymous"),
            sessions: Arc::new(Sessions::new(
                options.max_sessions,
                options.session_idle,
                options.notifier.clone(),
            )),
            stream_permits: Arc::new(StreamPermits::new(options.max_streams, options.max_streams_each)),
            subscriptions: Arc::default(),
            sse_clients: Arc::new(SseClients::new(options.max_sessions)),
            detached: Arc::new(DetachedCalls::new(options.max_detached)),
            is_draining: AtomicBool::new(false),
            options,
        }
    }

    pub(super) fn service(&self) -> &S {
        &self.core.service
    }

    pub(super) fn end_streams(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.detached.close();
        self.sessions.end_streams();
        self.subscriptions.end();
        self.sse_clients.end();
    }

    /// Answers one HTTP request.
    pub(super) fn respond<B: Body<Data = Bytes>>(
        self: Arc<Self>,
        request: http::Request<B>,
    ) -> impl Future<Output = HttpResponse> + use<S, B> {
        let (parts, body) = request.into_parts();
        let cors = Cors::from_headers(&parts.headers, &self.options.allowed.load());
        // Shared, the head takes little room in the futures that it passes through.
        let routed = self.route(Arc::new(parts), body, cors.clone());
        async move {
            let mut response = routed.await;
            cors.apply(&mut response);
            response
        }
    }

    async fn route<B: Body<Data = Bytes>>(
        self: Arc<Self>,
        parts: Arc<Parts>,
        body: B,
        cors: Cors,
    ) -> HttpResponse {
        if let Some(headers) = cors.preflight(&parts) {
            return self.preflight(&parts, headers);
        }
        let admitted = match self.admit(parts).await {
            Ok(admitted) => admitted,
            Err(refused) => return *refused,
        };
        if self.is_sse_path(&admitted.parts) {
            return Box::pin(self.respond_sse(admitted, body)).await;
        }
        match admitted.parts.method {
            Method::POST => self.post(admitted, body).await,
            Method::GET => self.listen(&admitted),
            Method::DELETE => self.end_session(&admitted),
            _ => response::method_not_allowed(),
        }
    }

    fn preflight(&self, parts: &Parts, headers: http::HeaderMap) -> HttpResponse {
        if let Err(refused) = self.check_head(parts) {
            return *refused;
        }
        let mut response = response::empty(StatusCode::NO_CONTENT);
        *response.headers_mut() = headers;
        response
    }
}
