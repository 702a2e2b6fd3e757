use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Method, Request, Response};
use http_body_util::{Either, Full};
use hyper::service::Service;
use mcp_server::{HttpService, RequestBody, ResponseBody};

use super::{
    callbacks, health,
    metrics::{self, MetricsPage},
};
use crate::Gateway;

/// HTTP service of the gateway: pages at fixed paths, and MCP.
#[derive(Clone)]
pub(crate) struct Routes {
    mcp: HttpService<Gateway>,
    metrics: Option<MetricsPage>,
    is_draining: Arc<AtomicBool>,
}

pub(super) type Body = Either<ResponseBody, Full<Bytes>>;

impl Routes {
    pub(crate) fn new(mcp: HttpService<Gateway>, metrics: Option<MetricsPage>) -> Self {
        Self {
            mcp,
            metrics,
            is_draining: Arc::default(),
        }
    }

    /// Starts to drain: reports that the gateway is not ready, and ends open streams.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.mcp.end_streams();
    }
}

impl Service<Request<RequestBody>> for Routes {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<RequestBody>) -> Self::Future {
        // Fast path: calls are POST requests, and only metrics and callbacks answer POST as well.
        let is_page = self.is_for_metrics(&request) || request.uri().path().starts_with(callbacks::PATH);
        if request.method() == Method::POST && !is_page {
            let answer = self.mcp.respond(request);
            return Box::pin(answer.map(|answer| Ok(answer.map(Either::Left))));
        }
        let routes = self.clone();
        Box::pin(async move { Ok(routes.page_or_mcp(request).await) })
    }
}

impl Routes {
    fn is_for_metrics(&self, request: &Request<RequestBody>) -> bool {
        self.metrics.is_some() && request.uri().path() == metrics::PATH
    }

    /// Answers with the page that a request asks for, or else as MCP does.
    async fn page_or_mcp(&self, request: Request<RequestBody>) -> Response<Body> {
        if let Some(metrics) = self.metrics.as_ref().filter(|_| self.is_for_metrics(&request)) {
            let page = metrics.answer(&request);
            // Without authentication, only the checks of the page itself.
            if page.status().is_success() && self.mcp.service().plane().requires_authentication() {
                let (head, _) = request.into_parts();
                if let Err(refusal) = self.mcp.admit(&head).await {
                    return refusal.map(Either::Left);
                }
            }
            return page.map(Either::Right);
        }
        if request.uri().path().starts_with(callbacks::PATH) {
            let plane = self.mcp.service().plane();
            return callbacks::answer(plane, request).await.map(Either::Right);
        }
        let (head, body) = request.into_parts();
        let is_draining = self.is_draining.load(Ordering::Relaxed);
        match health::answer(&self.mcp, &head, is_draining).await {
            Some(page) => page,
            None => self
                .mcp
                .respond(Request::from_parts(head, body))
                .await
                .map(Either::Left),
        }
    }
}
