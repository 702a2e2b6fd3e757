use std::{
    convert::Infallible,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Response, request::Parts};
use hyper::body::Body;
use tokio::net::TcpListener;

use super::{
    HttpServerOptions, ResponseBody, ServeOptions,
    endpoint::{Endpoint, HttpResponse},
    serve_http,
};
use crate::{Principal, Service};

/// [`Service`] behind the Streamable HTTP transport, both eras on one endpoint.
///
/// It is a service of `tower` and of `hyper`: mount it in a router, or serve it with [`serve_http`](super::serve_http). A
/// request is answered with JSON, or with a stream if events precede the response. A clone serves the same sessions.
///
/// # Checks
/// The host name and the origin of a request are checked before its body is read, so that no web page can use a server on
/// loopback.
pub struct HttpService<S>(Arc<Endpoint<S>>);

impl<S: Service> HttpService<S> {
    /// Creates the transport in front of a service.
    #[must_use]
    pub fn new(service: S, options: HttpServerOptions) -> Self {
        Self(Arc::new(Endpoint::new(service, options)))
    }

    /// Returns the service behind the transport.
    #[must_use]
    pub fn service(&self) -> &S {
        self.0.service()
    }

    /// Returns the number of open legacy sessions, without the clients of HTTP+SSE.
    #[must_use]
    pub fn n_sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Makes the checks of MCP for a request to another route: the host name, the origin, and the principal.
    ///
    /// # Errors
    /// Returns the response to a request that is refused.
    ///
    /// # Cancellation
    /// Dropping the future has no effect, except that of the authentication.
    pub async fn admit(&self, head: &Parts) -> Result<Principal, Box<Response<ResponseBody>>> {
        self.0.admit_elsewhere(head).await
    }

    /// Prepares for the end of the server: ends the streams on which clients listen, and opens no more, so that connections can
    /// close. From now on, a lost connection cancels its requests.
    pub fn end_streams(&self) {
        self.0.end_streams();
    }

    /// Serves HTTP/1.1 on a listener with the default [`ServeOptions`] until `shutdown` completes. Then the streams on which
    /// clients listen are ended, and requests in flight are answered.
    ///
    /// This is [`serve_http`] with [`end_streams`](Self::end_streams) at the right time.
    ///
    /// # Cancellation
    /// When the future is dropped, the listener is closed and all connections are cut off, with the requests in flight.
    ///
    /// # Errors
    /// As [`serve_http`].
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let stop = async {
            shutdown.await;
            self.end_streams();
        };
        serve_http(listener, ServeOptions::default(), |_| self.clone(), stop).await
    }

    /// Answers one HTTP request. Failures are responses, too.
    ///
    /// # Cancellation
    /// When the future is dropped, a modern request is cancelled. A legacy request goes on without its connection, since in
    /// that era only a notification cancels: see [`HttpServerOptions::max_detached`].
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

type ResponseFuture = Pin<Box<dyn Future<Output = Result<HttpResponse, Infallible>> + Send>>;

impl<S, B> hyper::service::Service<http::Request<B>> for HttpService<S>
where
    S: Service,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, request: http::Request<B>) -> ResponseFuture {
        Box::pin(self.respond(request).map(Ok))
    }
}

impl<S, B> tower_service::Service<http::Request<B>> for HttpService<S>
where
    S: Service,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> ResponseFuture {
        hyper::service::Service::call(self, request)
    }
}
