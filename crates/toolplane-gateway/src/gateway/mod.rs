//! The gateway: how it is set up, and how it serves clients.

mod embedded;
mod options;
mod service;
mod state;

use std::{fmt, future::Future, io, sync::Arc, time::Duration};

use mcp_server::{
    HttpServerOptions, HttpService, Notifier, ServeOptions, SharedAllowList, StdioOptions, serve_http,
    serve_stdio,
};
use mcp_wire::{Era, method};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    time::sleep,
};
use toolplane::{Toolplane, core::Feature, observe::Gauge};

pub(crate) use self::state::GatewayState;
pub use self::{embedded::EmbeddedGateway, options::GatewayOptions};
use crate::{
    client::PlaneAuthentication,
    lists::{FirstAnswers, ListRequest},
    pages::{CALLBACKS_PATH, MetricsPage, Routes},
};

/// An MCP server that offers the tools, prompts and resources of a [`Toolplane`]. Clones share one gateway.
///
/// # Examples
/// ```
/// use toolplane::Toolplane;
/// use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plane = Toolplane::builder().build()?;
/// let gateway = Gateway::new(plane, GatewayOptions::default().page_size(100));
/// // A service for a route of another HTTP server.
/// let embedded = gateway.embed(HttpServerOptions::default());
/// assert_eq!(embedded.service().n_sessions(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway(Arc<GatewayState>);

/// Time for which changes of lists are coalesced into one notification (debounce).
const DEBOUNCE: Duration = Duration::from_millis(100);

impl Gateway {
    /// Makes a gateway in front of a toolplane.
    #[must_use]
    pub fn new(plane: Toolplane, options: GatewayOptions) -> Self {
        Self(Arc::new(GatewayState::new(plane, options)))
    }

    /// Returns the toolplane behind the gateway.
    #[must_use]
    pub fn plane(&self) -> &Toolplane {
        &self.0.plane
    }

    /// Returns the first answers to a principal of this name, to be kept for the next run: see [`FirstAnswers`]. `None` as long as
    /// the list of a server is missing, and where the principal alone does not decide what its callers see: with authentication by
    /// the toolplane, and with a [`caller_resolver`](GatewayOptions#structfield.caller_resolver).
    #[must_use]
    pub fn first_answers(&self, principal: &str) -> Option<FirstAnswers> {
        let state = self.state();
        let plane = &state.plane;
        if plane.requires_authentication() || state.options.caller_resolver.is_some() {
            return None;
        }
        if !plane.has_recalled() || !plane.missing().is_empty() {
            return None;
        }
        let caller = plane.caller(principal);
        let view = plane.cached_view(&caller);
        let wanted = ListRequest {
            feature: Feature::Tool,
            view: &view,
            items: &state.offer.listed(&view),
            caller: &caller,
            params: None,
            era: Era::Legacy,
        };
        let page = state.lists.page(plane, &wanted).ok()?;
        let instructions = plane.instructions(state.options.info.instructions.as_deref());
        Some(FirstAnswers::new(principal, instructions, page))
    }

    /// Returns what all requests of this gateway share.
    pub(crate) fn state(&self) -> &GatewayState {
        &self.0
    }

    /// Serves one client over a pair of pipes, such as stdin and stdout: see [`serve_stdio`].
    ///
    /// # Cancellation
    /// When the future is dropped, the connection ends and the requests in flight are cancelled. `shutdown` lets them finish.
    ///
    /// # Errors
    /// When the input cannot be read or the output cannot be written.
    pub async fn serve_stdio<R, W>(
        &self,
        reader: R,
        writer: W,
        options: StdioOptions,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let notices = options.notifier.clone();
        tokio::select! {
            served = serve_stdio(self.clone(), reader, writer, options, shutdown) => served,
            () = self.announce(&notices) => Ok(()),
        }
    }

    /// Serves clients over HTTP until `shutdown` completes.
    ///
    /// - MCP at the path of the options, by default `/mcp`
    /// - `/healthz`: the process is alive
    /// - `/readyz`: the gateway is ready
    /// - `/health`: health of tools and servers
    ///
    /// The address that the listener is bound to is one of the host names that the server accepts.
    ///
    /// # Cancellation
    /// When the future is dropped, the listener is closed and all connections are cut off, with the requests in flight.
    /// `shutdown` lets them finish.
    ///
    /// # Errors
    /// As [`serve_http`], and if the public URL is none.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        mut options: HttpServerOptions,
        serve: ServeOptions,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        options.path.get_or_insert_with(|| "/mcp".to_owned());
        options.own_host = Some(host_of(&listener)?);
        let notices = options.notifier.clone();
        let page = self.metrics_page(&options.allowed);
        let service = Arc::new(self.http_service(options));
        self.add_session_gauge(&service);
        let routes = Routes::new(HttpService::clone(&service), page);
        let _callbacks = self.receive_callbacks()?;
        let stop = async {
            shutdown.await;
            routes.drain();
        };
        tokio::select! {
            served = serve_http(listener, serve, |_| routes.clone(), stop) => served,
            () = self.announce(&notices) => Ok(()),
        }
    }

    /// Receives callbacks below the public URL for as long as the guard exists.
    fn receive_callbacks(&self) -> io::Result<Option<ReceivingCallbacks>> {
        let Some(url) = &self.0.options.public_url else {
            return Ok(None);
        };
        let base = format!("{}{CALLBACKS_PATH}", url.trim_end_matches('/'));
        let plane = self.plane().clone();
        plane
            .receive_callbacks(Some(&base))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Some(ReceivingCallbacks(plane)))
    }

    fn metrics_page(&self, allowed: &SharedAllowList) -> Option<MetricsPage> {
        let options = &self.0.options;
        let metrics = options.metrics.as_ref().filter(|_| options.serves_metrics)?;
        Some(MetricsPage {
            metrics: metrics.clone(),
            allowed: allowed.clone(),
        })
    }

    fn add_session_gauge(&self, service: &Arc<HttpService<Self>>) {
        let Some(metrics) = &self.0.options.metrics else {
            return;
        };
        // Weak, since the service owns the gateway, and the gateway owns the metrics.
        let service = Arc::downgrade(service);
        metrics.add_gauge(Gauge {
            name: "toolplane_sessions",
            help: "Legacy sessions of clients over HTTP.",
            label: None,
            read: Box::new(move || {
                let number = service.upgrade().map_or(0, |service| service.n_sessions());
                vec![(String::new(), number as f64)]
            }),
        });
    }

    /// Returns the gateway as a service for a router of your own, and nothing besides: [`Gateway::embed`] also notifies clients
    /// and prepares the shutdown.
    ///
    /// Clients receive notifications of changes only while [`Gateway::announce`] runs with the notifier of these options, and a
    /// graceful shutdown of the server waits for open streams until [`HttpService::end_streams`] is called.
    ///
    /// If the toolplane [requires authentication](Toolplane::requires_authentication), every request needs credentials that
    /// it accepts, unless the options identify principals otherwise: a program with a login of its own decides alone.
    #[must_use]
    pub fn http_service(&self, mut options: HttpServerOptions) -> HttpService<Self> {
        let has_login = options.authenticate.is_some() || options.identify.is_some();
        if self.plane().requires_authentication() && !has_login {
            options = options.authenticate(PlaneAuthentication(self.plane().clone()));
        }
        HttpService::new(self.clone(), options)
    }

    /// Notifies listening clients of changed lists, and of changed resources and tasks that they subscribed to. Never
    /// completes.
    ///
    /// # Cancellation
    /// When the future is dropped, clients are no longer notified. Changes in between are lost to clients that listened.
    pub async fn announce(&self, notices: &Notifier) {
        let state = &*self.0;
        let _attached = state.notifiers.attach(notices);
        tokio::join!(
            self.announce_lists(notices),
            state
                .subscriptions
                .run_cleanup(&state.plane, &state.notifiers, &state.identities),
        );
    }

    async fn announce_lists(&self, notices: &Notifier) {
        let mut changes = self.0.plane.changes();
        if let Some(early) = &self.0.options.first_answers {
            self.correct(early, notices).await;
        }
        while changes.changed().await.is_ok() {
            sleep(DEBOUNCE).await;
            changes.mark_unchanged();
            let view = self.0.plane.cached_view(&self.0.plane.local_caller());
            for notification in self.0.lists.take_changes(&view) {
                notices.send(notification, None);
            }
        }
        // The toolplane has ended. Serving goes on without notifications.
        std::future::pending::<()>().await;
    }

    /// Waits until the lists are known, and notifies clients if the tools are others than those of an earlier run, which they were
    /// answered.
    async fn correct(&self, early: &FirstAnswers, notices: &Notifier) {
        self.0.plane.recalled().await;
        let now = self.first_answers(early.principal());
        if now.is_none_or(|now| now.page(Era::Legacy) != early.page(Era::Legacy)) {
            tracing::info!("the tools are others than at the end of the earlier start");
            notices.send(method::TOOLS_LIST_CHANGED, None);
        }
    }

    /// Cancels the parked calls, which wait for an answer of their clients, and returns when they have ended.
    ///
    /// To be called after serving has ended and before the toolplane is shut down. Otherwise the servers would end in the
    /// middle of these calls.
    ///
    /// # Cancellation
    /// Once the future was polled, all parked calls are cancelled even if it is dropped; nobody waits for their end then.
    pub async fn cancel_parked(&self) {
        self.0.parked.cancel_all().await;
    }
}

impl From<Toolplane> for Gateway {
    /// Makes a gateway with the default options.
    fn from(plane: Toolplane) -> Self {
        Self::new(plane, GatewayOptions::default())
    }
}

/// Returns the host name of the address that a listener is bound to.
fn host_of(listener: &TcpListener) -> io::Result<String> {
    let mut address = listener.local_addr()?;
    address.set_port(0);
    let host = address.to_string();
    Ok(host.strip_suffix(":0").unwrap_or(&host).to_owned())
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("plane", &self.0.plane)
            .finish_non_exhaustive()
    }
}

/// Callbacks are received while this exists.
struct ReceivingCallbacks(Toolplane);

impl Drop for ReceivingCallbacks {
    fn drop(&mut self) {
        // Fails only for a URL.
        let _ = self.0.receive_callbacks(None);
    }
}
