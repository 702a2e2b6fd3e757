use std::{future::Future, io};

use tokio::net::TcpListener;

use super::Tools;
use crate::{HttpServerOptions, HttpService, StdioOptions, serve_stdio};

impl Tools {
    /// Serves the client that has started this process, over its stdin and stdout, until the client closes stdin. Nothing else may
    /// be written to stdout.
    ///
    /// Other streams and options: [`serve_stdio`].
    ///
    /// # Cancellation
    /// When the future is dropped, the requests in flight are cancelled.
    ///
    /// # Errors
    /// As [`serve_stdio`].
    pub async fn serve_stdio(self) -> io::Result<()> {
        let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
        let never = std::future::pending();
        serve_stdio(self, stdin, stdout, StdioOptions::default(), never).await
    }

    /// Serves clients over Streamable HTTP at `/mcp` of a listener until `shutdown` completes. Then the streams on which clients
    /// listen are ended, and requests in flight are answered.
    ///
    /// Only requests to a name of loopback are served. Other options, such as more names and a login: [`HttpService`].
    ///
    /// # Cancellation
    /// When the future is dropped, the listener is closed and all connections are cut off, with the requests in flight.
    ///
    /// # Errors
    /// As [`serve_http`](crate::serve_http).
    pub async fn serve_http(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let options = HttpServerOptions::default().path("/mcp");
        HttpService::new(self, options).serve(listener, shutdown).await
    }
}
