use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Response, request::Parts};
use hyper::body::Body;

use super::{
    HttpServerOptions, ResponseBody,
    endpoint::{Answered, Endpoint},
};
use crate::{Principal, Service};

/// A [`Service`] behind the Streamable HTTP transport, both eras on one endpoint.
///
/// It is a service of `tower` and of `hyper`: mount it in a router, or serve it with [`serve_http`](super::serve_http).
/// A request is answered with JSON, or with a stream of events if something is to be told before the answer. A clone
/// serves the same sessions.
///
/// # Checks
/// The name that the server is called by and the origin of the page that calls are checked before anything is read,
/// so that no web page gets at a server on loopback.
pub struct HttpService<S>(Arc<Endpoint<S>>);

impl<S: Service> HttpService<S> {
    /// Puts the transport in front of a service.
    #[must_use]
    pub fn new(service: S, options: HttpServerOptions) -> Self {
        Self(Arc::new(Endpoint::new(service, options)))
    }

    /// The service behind the transport.
    #[must_use]
    pub fn service(&self) -> &S {
        self.0.service()
    }

    /// How many legacy sessions are open, those of old clients not counted.
    #[must_use]
    pub fn n_sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Checks a request for something that is served beside MCP as one for MCP is checked: the name that the server is
    /// called by, the origin of the page that asks, and whose request it is.
    ///
    /// # Errors
    /// The answer of a request that is refused.
    pub fn admit(&self, head: &Parts) -> Result<Principal, Box<Response<ResponseBody>>> {
        self.0.admit_beside(head)
    }

    /// Prepares for the end of the server: ends the streams on which clients listen and opens no more, so that
    /// connections can close, and takes the loss of a connection for the end of its requests.
    pub fn end_streams(&self) {
        self.0.end_streams();
    }

    /// Answers one HTTP request. Any failure is an answer, too.
    pub fn respond<B>(
        &self,
        request: http::Request<B>,
    ) -> impl Future<Output = Response<ResponseBody>> + use<S, B>
    where
        B: Body<Data = Bytes>,
    {
        Arc::clone(&self.0).respond(request)
    }
}

impl<S> Clone for HttpService<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for HttpService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}

type Responding = Pin<Box<dyn Future<Output = Result<Answered, Infallible>> + Send>>;

impl<S, B> hyper::service::Service<http::Request<B>> for HttpService<S>
where
    S: Service,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
{
    type Response = Answered;
    type Error = Infallible;
    type Future = Responding;

    fn call(&self, request: http::Request<B>) -> Responding {
        Box::pin(self.respond(request).map(Ok))
    }
}

impl<S, B> tower_service::Service<http::Request<B>> for HttpService<S>
where
    S: Service,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
{
    type Response = Answered;
    type Error = Infallible;
    type Future = Responding;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Responding {
        hyper::service::Service::call(self, request)
    }
}
