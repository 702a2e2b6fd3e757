use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use hyper::{
    body::{Body, Incoming},
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{interval, sleep, timeout},
};

use super::{
    options::ServeOptions,
    self_wake::SelfWake,
    watchdog::{ClientTimeouts, RequestBody, TICK, Watchdog, WatchedBody, WatchedIo},
};

/// Serves HTTP/1.1 on a listener until `shutdown` completes. Requests in flight are answered before the server ends.
///
/// `make` returns the service of a connection, by the address of its peer: an [`HttpService`](crate::HttpService), or one that
/// adds routes to it.
///
/// # Examples
///
/// ```no_run
/// # use mcp_server::{Answer, RequestContext, ServerIdentity, Service, unknown_method};
/// # use mcp_wire::{Request, Revision, RpcError};
/// # use raw_json::RawJson;
/// # struct Empty;
/// # impl Service for Empty {
/// #     fn info(&self) -> ServerIdentity { ServerIdentity::new("empty", "1") }
/// #     fn capabilities(&self, _: Revision) -> RawJson { RawJson::object() }
/// #     async fn call(&self, request: Request, _: &RequestContext) -> Result<Answer, RpcError> {
/// #         Err(unknown_method(&request.method))
/// #     }
/// # }
/// use mcp_server::{HttpServerOptions, HttpService, ServeOptions, serve_http};
/// use tokio::net::TcpListener;
///
/// # async fn run() -> std::io::Result<()> {
/// let listener = TcpListener::bind("127.0.0.1:8080").await?;
/// let service = HttpService::new(Empty, HttpServerOptions::default());
/// serve_http(listener, ServeOptions::default(), |_| service.clone(), std::future::pending()).await
/// # }
/// ```
///
/// # Cancellation
/// When the future is dropped, the listener is closed and all connections are cut off, with the requests in flight.
///
/// # Errors
/// Never fails at present: a connection that cannot be accepted is retried, since file handles become free when other
/// connections end.
pub async fn serve_http<M, S, B>(
    listener: TcpListener,
    options: ServeOptions,
    make: M,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    M: Fn(SocketAddr) -> S,
    S: Service<Request<RequestBody>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let options = Arc::new(options);
    let permits = Arc::new(Semaphore::new(options.max_connections));
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepting = async {
            let permit = Arc::clone(&permits)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            (permit, listener.accept().await)
        };
        tokio::select! {
            () = &mut shutdown => break,
            (permit, accepted) = accepting => match accepted {
                Ok((stream, peer)) => {
                    let connection = serve_connection(stream, make(peer), Arc::clone(&options), stopped.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop((listener, stop));
    let finish = async { while connections.join_next().await.is_some() {} };
    if timeout(options.drain, finish).await.is_err() {
        tracing::warn!(
            left = connections.len(),
            "connections were cut off at the end of the drain time"
        );
    }
    Ok(())
}

/// Size of the read buffer of a connection, in bytes, and so the maximum length of a head. A connection keeps it while its
/// request runs, which counts with 64 large calls at a time; hyper's default is 400 KiB.
const BUFFER: usize = 32 * 1024;

/// Pause before another try to accept a connection, for file handles and the like to become free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves one connection until it ends, or until the server stops and its requests are answered.
async fn serve_connection<S, B>(
    stream: TcpStream,
    service: S,
    options: Arc<ServeOptions>,
    mut stopped: watch::Receiver<()>,
) where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // Small responses must not wait for the acknowledgement of earlier ones (Nagle's algorithm).
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a socket keeps its delay");
    }
    let watchdog = Watchdog::new();
    let io = TokioIo::new(WatchedIo {
        io: stream,
        watchdog: Arc::clone(&watchdog),
    });
    let reporter = Arc::clone(&watchdog);
    let service = service_fn(move |request: Request<Incoming>| {
        let busy = reporter.begin_request();
        let request = request.map(|body| RequestBody::new(body, Arc::clone(&reporter)));
        let response = service.call(request);
        async move {
            let response = response.await?;
            Ok::<_, S::Error>(response.map(|body| WatchedBody { body, _busy: busy }))
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(BUFFER)
        .serve_connection(io, service);
    let connection = pin!(connection);
    let mut connection = SelfWake::new(connection);
    let timeouts = ClientTimeouts {
        head: options.header_timeout,
        idle: options.idle_timeout,
        write: options.write_timeout,
    };
    let mut stop = pin!(async {
        // The channel changes once, or its sender is dropped: in both cases the server stops.
        let _ = stopped.changed().await;
    });
    let mut overdue = pin!(async {
        let mut ticks = interval(TICK);
        // The first tick would come at once.
        ticks.reset();
        loop {
            ticks.tick().await;
            if watchdog.tick(timeouts) {
                return;
            }
        }
    });
    let mut is_stopping = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut connection => break ended,
            () = &mut stop, if !is_stopping => {
                is_stopping = true;
                connection.get_mut().as_mut().graceful_shutdown();
            }
            () = &mut overdue => return,
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
