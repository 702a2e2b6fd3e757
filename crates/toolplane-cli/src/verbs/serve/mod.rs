mod file_states;
mod itself;
mod kept_answers;
pub(super) mod pipes;
mod reload;

use std::{
    future::{Future, pending},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::Notify,
    task::JoinHandle,
    time::{sleep, timeout},
};
use toolplane::{
    Toolplane,
    core::SourceState,
    manifest::{GatewayMode, GatewaySpec, Loaded, may_need_approval},
    observe::Metrics,
};
use toolplane_gateway::{
    AllowList, AllowedHosts, FirstAnswers, Gateway, GatewayOptions, HttpServerOptions, ServeOptions,
    StateKey, StdioOptions, serve_metrics,
};

use self::kept_answers::KeptAnswers;
use super::recording::Recorder;
use crate::{
    command::{Format, Mode, Options, Serve},
    config,
    error::CliError,
    exit::Exit,
    gateways::sockets::{self, GatewaySocket},
    lock,
    output::Console,
    process::{
        memory,
        runtime::{Signals, block_on_all_cores},
    },
    store::OpenStore,
    telemetry::Telemetry,
};

/// Time limit for the last export of spans.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(options: &Options, serve: &Serve, console: Console) -> Result<Exit, CliError> {
    block_on_all_cores(async {
        let mut signals = Signals::listen()?;
        let chaos = super::chaos(serve.chaos.as_deref(), console)?;
        let begun = SystemTime::now();
        let files = config::files(options)?;
        let mut kept = None;
        let prepare = async |loaded: &Loaded, store: Option<&mut OpenStore>| {
            kept = KeptAnswers::look(loaded, store.as_deref(), serve, begun).await;
            begin_reading(loaded, store, !has_answers(kept.as_ref()));
        };
        let (mut loaded, store) = config::read_with_store(files.clone(), console, prepare).await?;
        let is_answered = has_answers(kept.as_ref());
        config::add_endpoint(&mut loaded)?;
        itself::refuse(&mut loaded.configuration, serve, console);
        let telemetry = Telemetry::start(console);
        let metrics = MetricsEndpoint::new(serve, &loaded.configuration.gateway, &telemetry);
        let builder = config::builder(&loaded, store.clone(), console)
            .await
            .chaos(chaos);
        let builder = match serve.locked {
            true => lock::with_locked_pins(builder, &loaded, console)?,
            false => lock::with_pins(builder, &loaded, store.as_ref(), console).await?,
        };
        let recorder = Recorder::open(&serve.recording, console)?;
        let builder = recorder.add_to(builder)?;
        let builder = match is_answered {
            true => builder,
            false => builder.recall_while_building(),
        };
        let plane = telemetry.instrument(builder, metrics.registry.clone()).build()?;
        let lists = Lists::new(&plane, store.clone(), kept).await?;
        config::warn(&loaded, &plane, console);
        let http = http_options(&loaded.configuration.gateway);
        let state_key = state_key(&loaded, store.as_ref()).await?;
        let reloads = reload::watch(
            &loaded,
            &plane,
            store,
            http.allowed.clone(),
            files,
            serve,
            console,
        )?;
        // A reload would bring back the servers that a recording replaces.
        let reloads = (!recorder.replays()).then(|| AbortOnDrop(tokio::spawn(reloads)));
        let stop = Arc::new(Notify::new());
        let served = async {
            tokio::select! {
                served = serve_until(&loaded, (&plane, lists), serve, (http, state_key), metrics, console, stop.clone()) => served,
                // These futures never end.
                () = plane.watch_health() => Ok(()),
                () = plane.watch_rules() => Ok(()),
                () = memory::return_free_memory() => Ok(()),
            }
        };
        let mut served = std::pin::pin!(served);
        let result = tokio::select! {
            result = &mut served => result,
            _ = signals.next() => {
                drop(reloads);
                console.say("ending: waiting for calls that are running; another signal ends at once");
                stop.notify_one();
                tokio::select! {
                    result = &mut served => result,
                    exit = signals.next() => return Err(CliError::silent(exit)),
                }
            }
        };
        recorder.report_unused();
        let ended = async {
            plane.shutdown().await;
            telemetry.shutdown(EXPORT_TIMEOUT).await;
        };
        tokio::select! {
            () = ended => result.map(|()| Exit::Done),
            exit = signals.next() => Err(CliError::silent(exit)),
        }
    })
}

/// Reads the accepted definitions in a store in the background, unless there is a lock file, which may be read instead.
fn begin_reading(loaded: &Loaded, store: Option<&mut OpenStore>, at_once: bool) {
    if let Some(store) = store.filter(|_| !lock::exists(loaded)) {
        store.read_pins_in_background(at_once);
    }
}

fn has_answers(kept: Option<&KeptAnswers>) -> bool {
    kept.is_some_and(|kept| kept.found().is_some())
}

/// Lists of an earlier run, which are read beside the rest of the start.
///
/// If the first answers of an earlier start still hold, clients are served at once, and the lists are read a moment later.
struct Lists {
    plane: Toolplane,
    store: Option<OpenStore>,
    kept: Option<KeptAnswers>,
    /// Reads the lists, unless that is done later.
    recall: Option<AbortOnDrop>,
    /// First answers of this start, to be kept.
    now: Option<FirstAnswers>,
}

/// Time in which a client gets the first answers of an earlier start, before the lists take all cores.
const PAUSE: Duration = Duration::from_millis(20);

impl Lists {
    /// Begins to read the lists, unless clients have answers without them.
    ///
    /// # Errors
    /// If the accepted definitions cannot be read, unless they are read later.
    async fn new(
        plane: &Toolplane,
        store: Option<OpenStore>,
        kept: Option<KeptAnswers>,
    ) -> Result<Self, CliError> {
        let mut lists = Self {
            plane: plane.clone(),
            store,
            kept,
            recall: None,
            now: None,
        };
        if lists.answers().is_none() {
            lists.check_pins().await?;
            let plane = plane.clone();
            lists.recall = Some(AbortOnDrop(tokio::spawn(async move { plane.recall().await })));
        }
        Ok(lists)
    }

    /// Returns the first answers of an earlier start that still hold.
    fn answers(&self) -> Option<&FirstAnswers> {
        self.kept.as_ref()?.found()
    }

    async fn check_pins(&self) -> Result<(), CliError> {
        match &self.store {
            Some(store) => store.check_pins().await,
            None => Ok(()),
        }
    }

    /// Waits until clients can be served.
    async fn ready(&mut self, gateway: &Gateway) {
        let Some(recall) = &mut self.recall else {
            return;
        };
        // The first answer contains the instructions of all servers, those of kept lists included.
        match timeout(RECALL_LIMIT, &mut recall.0).await {
            Ok(_) => self.now = self.kept.as_ref().and_then(|kept| kept.now(gateway)),
            Err(_) => {
                tracing::warn!(
                    "the lists of an earlier run take long to read: clients are served without them"
                );
            }
        }
    }

    /// Reads the lists if that was left for later, keeps or checks the first answers, and starts the servers, so that the first list
    /// does not wait for them.
    ///
    /// # Errors
    /// If the accepted definitions cannot be read: nothing is offered then whose definition may have changed.
    async fn complete(self, gateway: Gateway, console: Console) -> Result<(), CliError> {
        if self.recall.is_none() {
            sleep(PAUSE).await;
        }
        let (checked, ()) = tokio::join!(self.check_pins(), self.plane.recall());
        checked?;
        match (self.kept, self.now) {
            (Some(kept), Some(now)) => kept.keep(now).await,
            (Some(kept), None) if kept.found().is_some() => kept.check(&gateway).await,
            _ => {}
        }
        start_servers(self.plane, console).await;
        Ok(())
    }
}

/// Metrics of the gateway, and where they are served.
struct MetricsEndpoint {
    registry: Option<Arc<Metrics>>,
    /// `true` if they are served at the gateway's own address.
    at_gateway: bool,
    /// Separate address of the metrics.
    listen: Option<SocketAddr>,
}

impl MetricsEndpoint {
    fn new(serve: &Serve, spec: &GatewaySpec, telemetry: &Telemetry) -> Self {
        let listen = serve.metrics.or(spec.metrics_listen);
        let at_gateway = spec.metrics && !serve.stdio;
        let is_read = at_gateway || listen.is_some() || telemetry.exports_metrics();
        Self {
            registry: is_read.then(Arc::default),
            at_gateway,
            listen,
        }
    }

    /// Serves the metrics at their separate address, if they have one, until the returned task is dropped.
    async fn serve(&self, console: Console) -> Result<Option<AbortOnDrop>, CliError> {
        let (Some(metrics), Some(address)) = (&self.registry, self.listen) else {
            return Ok(None);
        };
        let listener = listen(address).await?;
        if let Ok(address) = listener.local_addr() {
            console.say(&format!("metrics at http://{address}/metrics"));
        }
        let served = serve_metrics(listener, metrics.clone(), std::future::pending());
        let task = tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::warn!(%error, "metrics are not served any more");
            }
        });
        Ok(Some(AbortOnDrop(task)))
    }
}

/// Task that is aborted when this is dropped.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Time limit for reading the lists of an earlier run before serving.
const RECALL_LIMIT: Duration = Duration::from_secs(1);

/// Returns the key that seals the states which clients give back, if they must outlive this process: others share the store, or
/// calls may wait for an approval.
async fn state_key(loaded: &Loaded, store: Option<&OpenStore>) -> Result<Option<StateKey>, CliError> {
    match store.filter(|store| store.is_named || may_need_approval(&loaded.configuration)) {
        Some(store) => Ok(Some(StateKey::new(store.state_key().await?))),
        None => Ok(None),
    }
}

async fn serve_until(
    loaded: &Loaded,
    (plane, mut lists): (&Toolplane, Lists),
    serve: &Serve,
    (http, state_key): (HttpServerOptions, Option<StateKey>),
    metrics: MetricsEndpoint,
    console: Console,
    stop: Arc<Notify>,
) -> Result<(), CliError> {
    let mut gateway_options = GatewayOptions::default();
    gateway_options.state_key = state_key;
    gateway_options.serves_metrics = metrics.at_gateway;
    gateway_options.info.instructions = loaded.configuration.gateway.instructions.clone();
    let _metrics = metrics.serve(console).await?;
    gateway_options.metrics = metrics.registry;
    gateway_options.mode = mode(loaded, serve)?;
    let authoring = &loaded.configuration.authoring;
    gateway_options.execute = authoring.enabled && authoring.execute;
    gateway_options
        .pinned
        .clone_from(&loaded.configuration.gateway.pinned);
    gateway_options
        .public_url
        .clone_from(&loaded.configuration.gateway.public_url);
    gateway_options.list_wait = loaded.configuration.gateway.list_wait;
    gateway_options.first_answers = lists.answers().cloned();
    let gateway = Gateway::new(plane.clone(), gateway_options);
    let _operator = serve_operator(loaded, &gateway, console);
    let stopped = async move { stop.notified().await };
    lists.ready(&gateway).await;
    if serve.stdio {
        let rest = tokio::spawn(lists.complete(gateway.clone(), console));
        let served = unless_failed(rest, serve_stdio(&gateway, serve, stopped)).await;
        gateway.cancel_parked().await;
        return served;
    }
    // Bound before the servers start: an address in use must not cost their start.
    let address = serve.http.unwrap_or(loaded.configuration.gateway.listen);
    if !plane.requires_authentication() {
        check_loopback(address, HINT_OF_GATEWAY)?;
    } else if !is_loopback(address.ip()) {
        console.warn(&format!(
            "tokens and answers travel unencrypted to `{address}`: let clients connect through a proxy with TLS"
        ));
    }
    let listener = bind(address).await?;
    announce(&listener, console)?;
    let rest = tokio::spawn(lists.complete(gateway.clone(), console));
    let served = unless_failed(rest, serve_http(&gateway, listener, http, serve, stopped)).await;
    gateway.cancel_parked().await;
    served
}

/// Serves until that ends, or the rest of the start has failed.
async fn unless_failed(
    rest: JoinHandle<Result<(), CliError>>,
    serve: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    let failed = async {
        match rest.await {
            Ok(Err(error)) => error,
            // Started, or a panic, which was reported.
            _ => pending().await,
        }
    };
    tokio::select! {
        served = serve => served,
        error = failed => Err(error),
    }
}

/// Returns the tools that clients are listed. The loader has checked the names of tools for the configured mode, not for that of
/// the command line.
fn mode(loaded: &Loaded, serve: &Serve) -> Result<GatewayMode, CliError> {
    let mode = match serve.mode {
        None => return Ok(loaded.configuration.gateway.mode),
        Some(Mode::List) => return Ok(GatewayMode::List),
        Some(Mode::Search) => GatewayMode::Search,
        Some(Mode::Auto) => GatewayMode::Auto,
    };
    let mut tools = loaded.configuration.tools.iter();
    match tools.find(|tool| GatewayMode::META_TOOLS.contains(&&*tool.name)) {
        Some(tool) => Err(CliError::configuration(format!(
            "the tool `{}` of {} has the name of a meta-tool, which `--mode {}` adds",
            tool.name,
            tool.origin.place,
            mode.as_str()
        ))
        .with_hint("give the tool another name, or serve with `--mode list`")),
        None => Ok(mode),
    }
}

/// Serves operators, who approve calls and look at servers. The socket exists as long as the returned value. It is
/// needed even if no call needs approval yet, because a reload may change that.
fn serve_operator(loaded: &Loaded, gateway: &Gateway, console: Console) -> Option<GatewaySocket> {
    match sockets::bind() {
        Ok(mut socket) => {
            let listener = socket.listener.take()?;
            let gateway = gateway.clone();
            tokio::spawn(async move { gateway.serve_operator(listener, pending()).await });
            Some(socket)
        }
        // Approval by the client works without the socket; all other calls stay unapproved.
        Err(error) if may_need_approval(&loaded.configuration) => {
            console.warn(&format!(
                "`toolplane approvals` cannot reach this gateway: {error}"
            ));
            None
        }
        Err(error) => {
            tracing::info!(%error, "`toolplane approvals` cannot reach this gateway");
            None
        }
    }
}

/// Starts the servers in the background, so that the first list does not wait for them.
async fn start_servers(plane: Toolplane, console: Console) {
    plane.start_servers().await;
    for (name, status) in plane.sources() {
        if let SourceState::Failed(reason) = &status.state {
            super::servers::warn_of_failure(&name, reason, status.detail.as_deref(), console);
        }
    }
    let n_tools = plane.cached_view(&plane.local_caller()).tools().len();
    tracing::info!(n_tools, "servers have been started");
}

async fn serve_stdio(
    gateway: &Gateway,
    serve: &Serve,
    stopped: impl Future<Output = ()>,
) -> Result<(), CliError> {
    let options = StdioOptions::default().drain(serve.drain);
    let (reader, writer) = (pipes::stdin(), pipes::stdout());
    let served = gateway.serve_stdio(reader, writer, options, stopped).await;
    served.map_err(|error| CliError::failed("the connection over stdin and stdout broke").with_source(&error))
}

async fn serve_http(
    gateway: &Gateway,
    listener: TcpListener,
    options: HttpServerOptions,
    serve: &Serve,
    stopped: impl Future<Output = ()>,
) -> Result<(), CliError> {
    let connections = ServeOptions::default().drain(serve.drain);
    let served = gateway.serve_http(listener, options, connections, stopped).await;
    served.map_err(|error| CliError::failed("serving over HTTP failed").with_source(&error))
}

fn http_options(spec: &GatewaySpec) -> HttpServerOptions {
    let mut options = HttpServerOptions::default()
        .allowed(allowed(spec))
        .setting_names("gateway.allowed_hosts", "gateway.allowed_origins");
    options.sse_path.clone_from(&spec.sse_path);
    options
}

/// Returns the hosts and origins that may connect over HTTP.
fn allowed(spec: &GatewaySpec) -> AllowList {
    let mut allowed = AllowList::default();
    allowed.hosts = AllowedHosts::Loopback(spec.allowed_hosts.clone());
    allowed.origins.clone_from(&spec.allowed_origins);
    allowed
}

/// Advice on serving MCP to other machines.
const HINT_OF_GATEWAY: &str = "set `gateway.auth: tokens` and give each client a token by `toolplane tokens create`; or listen \
                               at `127.0.0.1` or `[::1]`, behind a proxy that authenticates";

/// Binds a loopback address. Others are refused: nobody is authenticated there.
pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    check_loopback(
        address,
        "listen at `127.0.0.1` or `[::1]`, behind a proxy that authenticates if others are to use it",
    )?;
    bind(address).await
}

fn check_loopback(address: SocketAddr, hint: &str) -> Result<(), CliError> {
    if is_loopback(address.ip()) {
        return Ok(());
    }
    Err(CliError::configuration(format!(
        "refusing to listen at `{address}`: others could use it, since clients are not authenticated"
    ))
    .with_hint(hint))
}

async fn bind(address: SocketAddr) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|error| {
        CliError::failed(format!("cannot listen at `{address}`"))
            .with_source(&error)
            .with_hint("another gateway may be running; `--http 127.0.0.1:0` takes any free port")
    })
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Announces the URL: on stderr for people, as data for programs.
pub(super) fn announce(listener: &TcpListener, console: Console) -> Result<(), CliError> {
    let address = listener
        .local_addr()
        .map_err(|error| CliError::failed("the address is not known").with_source(&error))?;
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
