//! HTTP/2 connection, which a task drives for all requests.

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::http2::{SendRequest, handshake},
};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::byte_stream::{ByteStream, RequestBody};

/// Sends requests on an HTTP/2 connection. Cloning shares the connection.
#[derive(Clone)]
pub(super) struct Http2Sender(SendRequest<RequestBody>);

/// Failed exchange.
pub(super) struct Http2Error {
    pub(super) error: hyper::Error,
    /// Set if the request was not sent.
    pub(super) unsent: bool,
}

impl Http2Sender {
    /// Starts HTTP/2 on a stream, and the task that drives it.
    pub(super) async fn start(stream: impl ByteStream + 'static) -> Result<Self, hyper::Error> {
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "HTTP/2 connection failed");
            }
        });
        Ok(Self(sender))
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Http2Error> {
        self.0
            .try_send_request(request)
            .await
            .map_err(|error| Http2Error {
                unsent: error.message().is_some(),
                error: error.into_error(),
            })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
