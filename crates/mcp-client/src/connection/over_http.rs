//! Connections and requests over HTTP: Streamable HTTP, HTTP+SSE and WebSocket.

use mcp_wire::{Params, code, method};
use tokio::{io::split, time::timeout_at};

use super::{Connection, Link, request::with_progress_token};
use crate::{
    ClientError, ClientErrorKind, ConnectionOptions, EraChoice, HttpEndpoint, RawJson, RequestOptions,
    exchange::Exchange,
    http::{self, HttpLink},
    notifications::Notifier,
    stream::StreamLink,
};

impl Connection {
    /// Opens a connection over Streamable HTTP.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::Unreachable`], [`ClientErrorKind::Auth`], [`ClientErrorKind::HttpStatus`] or
    /// [`ClientErrorKind::StartFailed`], depending on the server's response.
    ///
    /// # Cancellation
    /// Dropping the future ends the attempt. A session that the server has opened meanwhile is left to expire there.
    pub async fn http(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::http_with(endpoint, options, Notifier::default()).await
    }

    pub(crate) async fn http_with(
        endpoint: &HttpEndpoint,
        options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        let link = HttpLink::new(endpoint, &options, notifier.clone())?;
        let done = Self::open(Link::Http(link), options.clone(), notifier.clone()).await;
        match done {
            Err(error)
                if endpoint.sse_fallback
                    && options.era != EraChoice::Modern
                    && error.indicates_other_transport() =>
            {
                // If both transports fail, the error of the first is returned: most servers speak Streamable HTTP.
                Self::sse_with(endpoint, options, notifier)
                    .await
                    .map_err(|_| error)
            }
            done => done,
        }
    }

    /// Opens a connection over HTTP+SSE, the transport of 2024-11-05, for servers that speak no other.
    ///
    /// # Errors
    /// Returns the errors of [`http`](Self::http), and [`ClientErrorKind::Invalid`] if the options require a modern
    /// server, which never speaks this transport.
    ///
    /// # Cancellation
    /// Dropping the future closes the event stream.
    pub async fn sse(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::sse_with(endpoint, options, Notifier::default()).await
    }

    pub(crate) async fn sse_with(
        endpoint: &HttpEndpoint,
        mut options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        if options.era == EraChoice::Modern {
            let detail = "modern servers do not speak HTTP+SSE";
            return Err(ClientError::new(ClientErrorKind::Invalid(detail.to_owned())));
        }
        options.era = EraChoice::Legacy;
        let opened = http::open_sse(endpoint, &options).await?;
        let (reader, writer) = split(opened.lines);
        let link = StreamLink::open(reader, writer, None, &options, notifier.clone());
        link.fail_requests_from(opened.failures);
        Self::open(Link::Stream(link), options, notifier).await
    }

    /// Opens a connection over WebSocket, with the subprotocol `mcp` and one message in each text frame. The endpoint
    /// must be created by [`HttpEndpoint::websocket`].
    ///
    /// # Errors
    /// Returns the errors of [`http`](Self::http), and [`ClientErrorKind::Invalid`] if the feature `websocket` is
    /// disabled.
    ///
    /// # Cancellation
    /// Dropping the future closes the WebSocket.
    pub async fn websocket(endpoint: &HttpEndpoint, options: ConnectionOptions) -> Result<Self, ClientError> {
        Self::websocket_with(endpoint, options, Notifier::default()).await
    }

    pub(crate) async fn websocket_with(
        endpoint: &HttpEndpoint,
        options: ConnectionOptions,
        notifier: Notifier,
    ) -> Result<Self, ClientError> {
        let (lines, bridge) = http::open_websocket(endpoint, &options).await?;
        let (reader, writer) = split(lines);
        let link = StreamLink::open(reader, writer, None, &options, notifier.clone());
        tokio::spawn(bridge.run(link.closed_signal(), link.end_of_stream()));
        Self::open(Link::Stream(link), options, notifier).await
    }

    /// Sends a request over HTTP. Modern servers require headers that mirror arguments of a tool, as declared by the
    /// list of tools. A server that misses one has not run the tool, so the list is read again and the call is sent
    /// once more.
    pub(super) async fn request_over_http(
        &self,
        link: &HttpLink,
        method: &str,
        params: Params,
        is_modern: bool,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        let exchange = Exchange::new(options);
        match post(link, method, &params, &exchange).await {
            Err(error) if is_modern && method == method::TOOLS_CALL && is_header_mismatch(&error) => {
                // Boxed: rare, and the future of every call would have to reserve room for it.
                let again = async {
                    // The server has examined the headers only.
                    exchange.mark_unsent();
                    match timeout_at(exchange.deadline(), self.list_tools()).await {
                        Ok(Ok(_)) => {}
                        Ok(Err(_)) => return Err(error),
                        Err(_) => return Err(exchange.timed_out()),
                    }
                    post(link, method, &params, &exchange).await
                };
                Box::pin(again).await
            }
            done => done,
        }
    }
}

async fn post(
    link: &HttpLink,
    method: &str,
    params: &Params,
    exchange: &Exchange,
) -> Result<RawJson, ClientError> {
    let id = link.next_id();
    let params = with_progress_token(id, params, exchange.options());
    link.request(id, method, &params, exchange).await
}

/// `true` if a modern server missed a header that mirrors an argument.
fn is_header_mismatch(error: &ClientError) -> bool {
    error
        .as_rpc()
        .is_some_and(|error| error.code == code::HEADER_MISMATCH)
}
