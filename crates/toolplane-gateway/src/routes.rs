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
use http::{Request, Response};
use http_body_util::{Either, Full};
use hyper::{body::Incoming, service::Service};
use mcp_server::{HttpService, ResponseBody};

use crate::{
    Gateway, health,
    metrics::{self, MetricsPage},
};

/// What is served at which path: MCP, and whether the process is well.
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

    /// Begins to shut down: no new work is wanted.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.mcp.end_streams();
    }
}

impl Service<Request<Incoming>> for Routes {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (head, body) = request.into_parts();
        let health = health::answer(&self.mcp, &head, self.is_draining.load(Ordering::Relaxed));
        let request = Request::from_parts(head, body);
        let page = self
            .metrics
            .as_ref()
            .filter(|_| request.uri().path() == metrics::PATH);
        let page = health.or_else(|| Some(page?.answer(&request)));
        if let Some(page) = page {
            return Box::pin(ready(Ok(page.map(Either::Right))));
        }
        let answer = self.mcp.respond(request);
        Box::pin(answer.map(|answer| Ok(answer.map(Either::Left))))
    }
}
