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
use http::{HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{Either, Full};
use hyper::{body::Incoming, service::Service};
use mcp_server::{HttpService, ResponseBody};

use crate::{
    Gateway,
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
        // These two tell nothing about what is served, so they need none of the checks of the other.
        let health = match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/healthz") => Some((StatusCode::OK, r#"{"status":"ok"}"#)),
            (&Method::GET | &Method::HEAD, "/readyz") => Some(if self.is_draining.load(Ordering::Relaxed) {
                (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"draining"}"#)
            } else {
                (StatusCode::OK, r#"{"status":"ready"}"#)
            }),
            _ => None,
        };
        let page = self
            .metrics
            .as_ref()
            .filter(|_| request.uri().path() == metrics::PATH);
        let page = page.map(|page| page.answer(&request));
        let mcp = self.mcp.clone();
        Box::pin(async move {
            Ok(match (health, page) {
                (Some((status, text)), _) => health_answer(status, text),
                (None, Some(page)) => page.map(Either::Right),
                (None, None) => mcp.respond(request).await.map(Either::Left),
            })
        })
    }
}

fn health_answer(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
