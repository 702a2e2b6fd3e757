use std::{
    convert::Infallible,
    future::{Future, ready},
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
    health,
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

type Body = Either<ResponseBody, Full<Bytes>>;

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
        let (request, page) = self.page(request);
        if let Some(page) = page {
            return Box::pin(ready(Ok(page.map(Either::Right))));
        }
        let answer = self.mcp.respond(request);
        Box::pin(answer.map(|answer| Ok(answer.map(Either::Left))))
    }
}

impl Routes {
    /// Returns the page that a request asks for, or `None` if the request is for MCP.
    fn page(&self, request: Request<RequestBody>) -> (Request<RequestBody>, Option<Response<Full<Bytes>>>) {
        if let Some(metrics) = &self.metrics
            && request.uri().path() == metrics::PATH
        {
            let page = metrics.answer(&request);
            return (request, Some(page));
        }
        // Fast path: calls are POST requests, and no page besides the metrics answers POST.
        if request.method() == Method::POST {
            return (request, None);
        }
        let (head, body) = request.into_parts();
        let health = health::answer(&self.mcp, &head, self.is_draining.load(Ordering::Relaxed));
        (Request::from_parts(head, body), health)
    }
}
