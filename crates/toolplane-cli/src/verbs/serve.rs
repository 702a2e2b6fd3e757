pub(super) mod pipes;
mod reload;

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use serde_json::json;
use tokio::{net::TcpListener, sync::Notify};
use toolplane::{
    Toolplane,
    core::SourceState,
    manifest::{GatewaySpec, Loaded},
};
use toolplane_gateway::{AllowedHosts, Gateway, GatewayOptions, HttpOptions, ServeOptions, StdioOptions};

use crate::{
    command::{Format, Options, Serve},
    config,
    exit::Exit,
    failure::Failure,
    output::Console,
    runtime::{Signals, block_on_all_cores},
};

pub(crate) fn run(options: &Options, serve: &Serve, console: Console) -> Result<Exit, Failure> {
    block_on_all_cores(async {
        let mut signals = Signals::listen()?;
        let (loaded, plane) = config::open(options, console)?;
        let files = config::files(options)?;
        let reloads = reload::follow(&loaded, &plane, files, !serve.no_reload, console)?;
        let reloads = AbortOnDrop(tokio::spawn(reloads));
        let stop = Arc::new(Notify::new());
        let served = serve_until(&loaded, &plane, serve, console, stop.clone());
        let mut served = std::pin::pin!(served);
        let result = tokio::select! {
            result = &mut served => result,
            _ = signals.next() => {
                drop(reloads);
                console.say("ending: waiting for calls that are running; another signal ends at once");
                stop.notify_one();
                tokio::select! {
                    result = &mut served => result,
                    exit = signals.next() => return Err(Failure::silent(exit)),
                }
            }
        };
        tokio::select! {
            () = plane.shutdown() => result.map(|()| Exit::Done),
            exit = signals.next() => Err(Failure::silent(exit)),
        }
    })
}

/// A task that ends with whoever started it.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve_until(
    loaded: &Loaded,
    plane: &Toolplane,
    serve: &Serve,
    console: Console,
    stop: Arc<Notify>,
) -> Result<(), Failure> {
    let gateway = Gateway::new(plane.clone(), GatewayOptions::default());
    let stopped = async move { stop.notified().await };
    if serve.stdio {
        tokio::spawn(start_servers(plane.clone(), console));
        return serve_stdio(&gateway, serve, stopped).await;
    }
    let spec = &loaded.configuration.gateway;
    // Bound before anything is started: an address in use must not cost a start of every server.
    let listener = listen(serve.http.unwrap_or(spec.listen)).await?;
    announce(&listener, console)?;
    tokio::spawn(start_servers(plane.clone(), console));
    serve_http(&gateway, listener, spec, serve, stopped).await
}

/// Starts every server now, so that the first list need not wait for more than the slowest of them.
async fn start_servers(plane: Toolplane, console: Console) {
    let view = plane.list(&plane.local_caller()).await;
    for (name, status) in plane.sources() {
        if let SourceState::Failed(reason) = &status.state {
            super::servers::warn_of_failure(&name, reason, status.detail.as_deref(), console);
        }
    }
    tracing::info!(n_tools = view.tools().len(), "every server has been started");
}

async fn serve_stdio(
    gateway: &Gateway,
    serve: &Serve,
    stopped: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let options = StdioOptions {
        drain: serve.drain,
        ..StdioOptions::default()
    };
    let (reader, writer) = (pipes::stdin(), pipes::stdout());
    let served = gateway.serve_stdio(reader, writer, options, stopped).await;
    served.map_err(|error| Failure::failed("the connection over stdin and stdout broke").with_source(&error))
}

async fn serve_http(
    gateway: &Gateway,
    listener: TcpListener,
    spec: &GatewaySpec,
    serve: &Serve,
    stopped: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let options = HttpOptions {
        allowed_hosts: AllowedHosts::Loopback(spec.allowed_hosts.clone()),
        allowed_origins: spec.allowed_origins.clone(),
        old_clients: spec.sse_path.clone(),
        ..HttpOptions::default()
    };
    let connections = ServeOptions {
        drain: serve.drain,
        ..ServeOptions::default()
    };
    let served = gateway.serve_http(listener, options, connections, stopped).await;
    served.map_err(|error| Failure::failed("serving over HTTP failed").with_source(&error))
}

/// Binds the address. Only this machine may reach it: there is no authentication yet.
pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    if !is_loopback(address.ip()) {
        return Err(Failure::configuration(format!(
            "refusing to listen at `{address}`: others could call every tool, since there is no authentication yet"
        ))
        .with_hint("listen at `127.0.0.1` or `[::1]`, behind a proxy that authenticates if others are to use it"));
    }
    TcpListener::bind(address).await.map_err(|error| {
        Failure::failed(format!("cannot listen at `{address}`"))
            .with_source(&error)
            .with_hint("another gateway may be running; `--http 127.0.0.1:0` takes any free port")
    })
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Says where the server is: for people on stderr, as data for programs.
pub(super) fn announce(listener: &TcpListener, console: Console) -> Result<(), Failure> {
    let address = listener
        .local_addr()
        .map_err(|error| Failure::failed("the address is not known").with_source(&error))?;
    let url = format!("http://{address}/mcp");
    if console.format == Format::Table {
        console.say(&format!("serving at {url}"));
        return Ok(());
    }
    match console.format {
        Format::Json => console.data(&json!({ "url": url }).to_string()),
        _ => console.data(&format!("url: {url}")),
    }
}
