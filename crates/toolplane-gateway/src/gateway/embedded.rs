use std::{fmt, future::Future, sync::Arc};

use mcp_server::{HttpServerOptions, HttpService};

use super::Gateway;
use crate::abort_on_drop::AbortOnDrop;

/// A [`Gateway`] at a route of another HTTP server: the service for the route, and everything that has to happen besides.
///
/// As long as this value lives, clients are notified of changed tools. A server that stops gracefully waits for its open
/// connections, and clients keep streams open to listen: [`stop_on`](Self::stop_on) ends them when it is time.
///
/// # Examples
///
/// In a router of axum, behind a login of the program's own:
///
/// ```no_run
/// use axum::{Router, extract::Request, middleware::map_request};
/// use tokio::{net::TcpListener, signal::ctrl_c};
/// use toolplane_gateway::{Gateway, HttpServerOptions, Principal, toolplane::Toolplane};
///
/// async fn login(mut request: Request) -> Request {
///     // .. finds out who sent the request ..
///     request.extensions_mut().insert(Principal::new("ada"));
///     request
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options = HttpServerOptions::default()
///     .allow_host("tools.example.com")
///     .require_principal();
/// let plane = Toolplane::from_file("toolplane.yaml")?;
/// let mcp = Gateway::from(plane).embed(options);
/// let router = Router::new()
///     .route_service("/mcp", mcp.service())
///     .layer(map_request(login));
/// let listener = TcpListener::bind("127.0.0.1:7080").await?;
/// axum::serve(listener, router).with_graceful_shutdown(mcp.stop_on(ctrl_c())).await?;
/// mcp.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "clients are notified of changes only as long as this value lives"]
pub struct EmbeddedGateway {
    service: Arc<HttpService<Gateway>>,
    _announcing: AbortOnDrop<()>,
}

impl Gateway {
    /// Prepares the gateway for a route of another HTTP server, such as one of axum or hyper, and starts to notify clients of
    /// changes.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn embed(&self, options: HttpServerOptions) -> EmbeddedGateway {
        let (gateway, notifier) = (self.clone(), options.notifier.clone());
        let announcing = tokio::spawn(async move { gateway.announce(&notifier).await });
        let service = Arc::new(self.http_service(options));
        self.add_session_gauge(&service);
        EmbeddedGateway {
            service,
            _announcing: AbortOnDrop(announcing),
        }
    }
}

impl EmbeddedGateway {
    /// Returns the service for the route, for example for `axum::Router::route_service`. Its clones share their sessions.
    #[must_use]
    pub fn service(&self) -> HttpService<Gateway> {
        HttpService::clone(&self.service)
    }

    /// Returns the gateway.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        self.service.service()
    }

    /// Waits for a signal, such as `tokio::signal::ctrl_c()`, and then ends the streams on which clients listen: for the
    /// graceful shutdown of the server.
    ///
    /// # Cancellation
    /// When the future is dropped before the signal, nothing has happened. The server's own shutdown would then wait for the
    /// streams.
    pub fn stop_on<F>(&self, signal: F) -> impl Future<Output = ()> + Send + use<F>
    where
        F: Future + Send,
    {
        let service = self.service();
        async move {
            drop(signal.await);
            service.end_streams();
        }
    }

    /// Stops the gateway and its toolplane, after the server has ended: cancels the calls that wait for an answer of their
    /// clients, and stops every MCP server.
    ///
    /// A program that goes on to use the toolplane calls [`Gateway::cancel_parked`] instead and drops this value.
    ///
    /// # Cancellation
    /// Once the future was polled, all of those calls are cancelled even if it is dropped. For the servers see
    /// [`Toolplane::shutdown`](toolplane::Toolplane::shutdown).
    pub async fn shutdown(self) {
        self.service.end_streams();
        let gateway = self.gateway().clone();
        gateway.cancel_parked().await;
        gateway.plane().shutdown().await;
    }
}

impl fmt::Debug for EmbeddedGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedGateway")
            .field("gateway", self.gateway())
            .finish_non_exhaustive()
    }
}
