use std::{fmt, future::pending, io};

use tokio::net::{TcpListener, ToSocketAddrs};

use crate::{HttpServerOptions, HttpService, Service, StdioOptions, serve_stdio};

/// Place where a program serves: its own stdin and stdout, or an address over HTTP.
///
/// It is shown as `stdio`, or as the URL for clients. A server on stdio must write nothing else to stdout.
///
/// # Examples
///
/// Without an argument the client starts the program and talks to it on stdio; with an address, any client reaches it:
///
/// ```no_run
/// use std::{env, io};
///
/// use mcp_server::{ServerIdentity, ServerListener, Tools};
///
/// #[tokio::main]
/// async fn main() -> io::Result<()> {
///     let tools = Tools::new(ServerIdentity::new("desk", "1.0.0"));
///     let listener = ServerListener::bind(env::args().nth(1)).await?;
///     eprintln!("listening: {listener}");
///     listener.serve(tools).await
/// }
/// ```
#[derive(Debug)]
pub struct ServerListener(Option<TcpListener>);

/// Path of the endpoint over HTTP.
const PATH: &str = "/mcp";

impl ServerListener {
    /// Serves on stdin and stdout.
    #[must_use]
    pub fn stdio() -> Self {
        Self(None)
    }

    /// Binds an address, such as `127.0.0.1:7080`. Without one, it serves on stdin and stdout.
    ///
    /// # Cancellation
    /// When the future is dropped, nothing is bound.
    ///
    /// # Errors
    /// Fails if the address is unknown, taken, or not of this machine.
    pub async fn bind(address: Option<impl ToSocketAddrs>) -> io::Result<Self> {
        let Some(address) = address else {
            return Ok(Self::stdio());
        };
        TcpListener::bind(address).await.map(Some).map(Self)
    }

    /// Serves with the default options: on stdio until stdin ends, over HTTP at `/mcp` until the future is dropped.
    ///
    /// [`serve_stdio`] and [`HttpService`] take options, other streams, and a signal to stop.
    ///
    /// # Cancellation
    /// When the future is dropped, all connections are cut off, with the requests in flight.
    ///
    /// # Errors
    /// As [`serve_stdio`] and [`HttpService::serve`].
    pub async fn serve(self, service: impl Service) -> io::Result<()> {
        match self.0 {
            None => {
                let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
                serve_stdio(service, stdin, stdout, StdioOptions::default(), pending()).await
            }
            Some(listener) => {
                let service = HttpService::new(service, HttpServerOptions::default().path(PATH));
                service.serve(listener, pending()).await
            }
        }
    }
}

impl fmt::Display for ServerListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref().map(TcpListener::local_addr) {
            None => f.write_str("stdio"),
            Some(Ok(address)) => write!(f, "http://{address}{PATH}"),
            Some(Err(_)) => f.write_str("http"),
        }
    }
}
