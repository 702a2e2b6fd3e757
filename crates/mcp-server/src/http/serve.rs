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
    repoll::Repoll,
    watch::{Patience, Phase, RequestBody, TICK, WatchedBody, WatchedIo},
};

/// How connections are served.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// How many connections are served at a time: 1,024. More wait to be accepted.
    pub max_connections: usize,
    /// How long a client may take to send the head of a request: 10 s. Counted in seconds.
    pub header_timeout: Duration,
    /// How long a connection may idle between two requests: 2 min. Counted in seconds.
    pub idle_timeout: Duration,
    /// How long a client may take no byte of what it is sent: 60 s. Counted in seconds.
    pub write_timeout: Duration,
    /// How long connections may take to finish after the server is shut down: 30 s.
    pub drain: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            write_timeout: Duration::from_secs(60),
            drain: Duration::from_secs(30),
        }
    }
}

/// Serves HTTP/1.1 on a listener until `shutdown` comes, and then until what is in flight is answered.
///
/// `make` gives the service of a connection, by the address of its peer; [`HttpService`](crate::HttpService) is one,
/// and so is anything that puts routes around it.
///
/// # Errors
/// None for now: connections that cannot be accepted are retried, since they free what was lacking when others end.
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
    let room = Arc::new(Semaphore::new(options.max_connections));
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepting = async {
            let place = Arc::clone(&room)
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            (place, listener.accept().await)
        };
        tokio::select! {
            () = &mut shutdown => break,
            (place, accepted) = accepting => match accepted {
                Ok((stream, peer)) => {
                    let connection = serve_connection(stream, make(peer), Arc::clone(&options), stopped.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(place);
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

/// How much of a request is read at once; a head that has not ended then is too long. A connection has room for as much
/// while its request is worked on, which 64 large calls at a time feel; hyper's own limit is 400 KiB.
const BUFFER: usize = 32 * 1024;

/// How long to wait for file handles and the like to become free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves one connection until it ends, or until the server stops and what it has begun is answered.
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
    // Small answers must not wait for the acknowledgement of earlier ones.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a socket keeps its delay");
    }
    let phase = Phase::new();
    let io = TokioIo::new(WatchedIo {
        io: stream,
        phase: Arc::clone(&phase),
    });
    let entered = Arc::clone(&phase);
    let service = service_fn(move |request: Request<Incoming>| {
        let busy = entered.busy();
        let request = request.map(|body| RequestBody::new(body, Arc::clone(&entered)));
        let answer = service.call(request);
        async move {
            let answer = answer.await?;
            Ok::<_, S::Error>(answer.map(|body| WatchedBody { body, _busy: busy }))
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(BUFFER)
        .serve_connection(io, service);
    let connection = pin!(connection);
    let mut connection = Repoll::new(connection);
    let patience = Patience {
        head: options.header_timeout,
        idle: options.idle_timeout,
        write: options.write_timeout,
    };
    let mut stop = pin!(async {
        // It changes once, or its sender is dropped: either way the server stops.
        let _ = stopped.changed().await;
    });
    let mut overdue = pin!(async {
        let mut ticks = interval(TICK);
        // The first tick comes at once.
        ticks.reset();
        loop {
            ticks.tick().await;
            if phase.is_overdue(patience) {
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
