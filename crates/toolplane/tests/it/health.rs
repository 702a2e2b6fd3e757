//! Health of tools and servers in the standard stack: figures, alerts, checks, and who is told.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::AbortHandle,
    time::sleep,
};
use tool_testkit::{Script, Step, TestTool};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{
        Alert, AlertKind, AlertPhase, AlertSubject, BoxFuture, CallContext, Catalogue, Descriptor, DynInvoke,
        ErrorKind, Event, Executor, Feature, Health, HealthStatus, Invoke, Observe, Outcome, Overrides,
        PrepareError, Reply, RetrySettings, Source, SourceState, SourceStatus, ToolError, Trust,
    },
    manifest::{LoadOptions, Syntax, load},
};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn fails() -> Step {
    Step::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
}

/// Writes alerts down in words.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<String>>);

impl Observe for Told {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Alert { alert } = event {
            let (kind, phase) = (alert.kind.as_str(), alert.phase.as_str());
            let told = format!("{} {kind} {phase}", alert.subject);
            self.0.lock().expect("no test panics with it").push(told);
        }
    }
}

impl Told {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no test panics with it"))
    }
}

/// A watch over a toolplane that ends with the test.
pub(crate) struct Watched(AbortHandle);

impl Watched {
    pub(crate) fn begin(plane: &Toolplane) -> Self {
        let plane = plane.clone();
        Self(tokio::spawn(async move { plane.watch_health().await }).abort_handle())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_hides_a_failure_from_the_caller_and_not_from_the_operator() {
    let mut tool = TestTool::new("weather");
    tool.descriptor.overrides = Overrides {
        retry: Some(RetrySettings::default()),
        ..Overrides::default()
    };
    let script = Script::new([fails(), Step::Echo]);
    let plane = Toolplane::builder()
        .executor(Arc::new(script))
        .tool(tool.descriptor)
        .build()
        .expect("usable");
    assert_eq!(plane.health().tool("weather").status, HealthStatus::Unknown);
    plane
        .call(CallRequest::new("weather"))
        .await
        .expect("the second attempt");
    let report = plane.health().tool("weather");
    assert_eq!((report.n_calls, report.n_failures), (2, 1));
    // A dry run and a call that never got there say nothing.
    plane
        .dry_run(CallRequest::new("weather"))
        .await
        .result
        .expect("dry");
    plane
        .call(CallRequest::new("wether"))
        .await
        .expect_err("no such tool");
    assert_eq!(plane.health().tool("weather").n_calls, 2);
    assert_eq!(plane.health().reports().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_alert_is_raised_as_configured_and_only_while_watched() {
    let text = "alerts: {success_rate: 60%, min_calls: 4, cooldown: 1m}\n";
    let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect("usable");
    let told = Arc::new(Told::default());
    let steps = [Step::Echo, fails(), Step::Echo, fails(), fails(), Step::Echo];
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .executor(Arc::new(Script::new(steps)))
        .tool(TestTool::new("weather").descriptor)
        .observer(told.clone())
        .build()
        .expect("usable");
    for _ in 0..4 {
        let _ = plane.call(CallRequest::new("weather")).await;
    }
    sleep(60 * SECOND).await;
    assert_eq!(told.take(), [""; 0], "nobody watches");
    let _watched = Watched::begin(&plane);
    sleep(6 * SECOND).await;
    assert_eq!(told.take(), ["tool `weather` success_rate firing"]);
    let _ = plane.call(CallRequest::new("weather")).await;
    sleep(6 * SECOND).await;
    assert_eq!(told.take(), [""; 0], "it fires once");
    for _ in 0..10 {
        plane.call(CallRequest::new("weather")).await.expect("well again");
    }
    sleep(6 * SECOND).await;
    assert_eq!(told.take(), ["tool `weather` success_rate resolved"]);
}

/// A server that can be asked how it is.
struct Server {
    n_checks: AtomicUsize,
    is_well: Mutex<bool>,
    state: SourceState,
    tools: Vec<Arc<Descriptor>>,
}

impl Server {
    fn new(tools: Vec<Arc<Descriptor>>) -> Self {
        Self {
            n_checks: AtomicUsize::new(0),
            is_well: Mutex::new(true),
            state: SourceState::Ready,
            tools,
        }
    }
}

impl Source for Server {
    fn name(&self) -> &'static str {
        "files"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        Arc::new(Catalogue {
            revision: 1,
            tools: self.tools.clone(),
            ..Catalogue::default()
        })
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn changed(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn may_hold(&self, _: Feature, _: &str) -> bool {
        false
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(self.state.clone())
    }

    fn check_interval(&self) -> Option<Duration> {
        Some(30 * SECOND)
    }

    fn check(&self) -> BoxFuture<'_, Option<Result<(), ToolError>>> {
        Box::pin(async {
            self.n_checks.fetch_add(1, Ordering::SeqCst);
            let is_well = *self.is_well.lock().expect("no test panics with it");
            let error = || ToolError::new(ErrorKind::Unavailable, "it is gone");
            Some(if is_well { Ok(()) } else { Err(error()) })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_as_often_as_configured_and_its_failure_shows() {
    let (server, told) = (Arc::new(Server::new(Vec::new())), Arc::new(Told::default()));
    let plane = Toolplane::builder()
        .source(server.clone())
        .observer(told.clone())
        .build()
        .expect("usable");
    let _watched = Watched::begin(&plane);
    sleep(301 * SECOND).await;
    let n_checks = server.n_checks.load(Ordering::SeqCst);
    assert!((11..=13).contains(&n_checks), "{n_checks} in five minutes");
    assert_eq!(plane.health().upstream("files").status, HealthStatus::Healthy);
    *server.is_well.lock().unwrap() = false;
    sleep(31 * SECOND).await;
    assert_eq!(plane.health().upstream("files").status, HealthStatus::Degraded);
    sleep(70 * SECOND).await;
    assert_eq!(plane.health().upstream("files").status, HealthStatus::Unhealthy);
    assert_eq!(told.take(), ["upstream `files` health_check firing"]);
    *server.is_well.lock().unwrap() = true;
    sleep(40 * SECOND).await;
    assert_eq!(told.take(), ["upstream `files` health_check resolved"]);
    assert_eq!(plane.health().upstream("files").status, HealthStatus::Healthy);
}

/// An HTTP server that answers every request with this status, and tells what it got.
pub(crate) async fn endpoint(status: &'static str) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = request(&mut stream).await;
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
            if tell.send(request).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/health"), told)
}

/// Reads a request with its body.
async fn request(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let n_read = stream.read(&mut buffer).await.unwrap_or_default();
        text.push_str(std::str::from_utf8(&buffer[..n_read]).expect("tests send text"));
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            body.len() >= length.map_or(0, |length| length.parse().expect("a number"))
        });
        if whole || n_read == 0 {
            return text;
        }
    }
}

pub(crate) fn with_endpoint(name: &str, endpoint: &str, trust: Trust) -> Descriptor {
    let mut tool = TestTool::new(name).descriptor;
    tool.metadata.health_check_endpoint = Some(endpoint.to_owned());
    tool.origin.trust = trust;
    tool
}

#[cfg(feature = "outbound")]
#[tokio::test]
async fn endpoints_of_tools_are_asked_if_the_operator_wrote_them() {
    let (well, mut asked) = endpoint("204 No Content").await;
    let (ill, _ill) = endpoint("503 Service Unavailable").await;
    let (other, mut never_asked) = endpoint("200 OK").await;
    let moved: &'static str = format!("302 Found\r\nlocation: {other}").leak();
    let (moved, _moved) = endpoint(moved).await;
    let server = Server::new(vec![Arc::new(with_endpoint("foreign", &other, Trust::Upstream))]);
    let plane = Toolplane::builder()
        .executor(Arc::new(Script::new([])))
        .source(Arc::new(server))
        .tool(with_endpoint("well", &well, Trust::Operator))
        .tool(with_endpoint("ill", &ill, Trust::Operator))
        .tool(with_endpoint("moved", &moved, Trust::Operator))
        .tool(with_endpoint("gone", "http://127.0.0.1:1/", Trust::Operator))
        .build()
        .expect("usable");
    let mut found: Vec<_> = plane
        .check_health()
        .await
        .into_iter()
        .map(|checked| {
            let result = checked
                .result
                .map_or_else(|error| error.message().to_owned(), |()| "well".to_owned());
            format!("{}: {result}", checked.subject)
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "tool `gone`: it cannot be reached",
            "tool `ill`: its health check endpoint answered 503 Service Unavailable",
            "tool `moved`: its health check endpoint answered 302 Found",
            "tool `well`: well",
            "upstream `files`: well",
        ]
    );
    assert!(
        asked
            .recv()
            .await
            .expect("it was asked")
            .starts_with("GET /health HTTP/1.1")
    );
    assert!(never_asked.try_recv().is_err(), "by nobody");
    assert_eq!(plane.health().tool("ill").status, HealthStatus::Degraded);
    assert_eq!(plane.health().tool("well").status, HealthStatus::Healthy);
}

/// An executor that raises an alert.
#[derive(Clone)]
pub(crate) struct Raises;

impl Invoke for Raises {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let subject = AlertSubject::Tool(cx.tool().name().clone());
        let (kind, phase) = (AlertKind::Disabled, AlertPhase::Firing);
        let alert = Alert::new(
            kind,
            phase,
            subject,
            "its credentials are refused",
            cx.clock.wall(),
        );
        cx.observers.tell(&Event::Alert { alert: &alert });
        Ok(Reply::value(RawJson::object()).into())
    }
}

impl Executor for Raises {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    fn prepare(&self, _: &Descriptor) -> Result<Arc<dyn DynInvoke>, Vec<PrepareError>> {
        Ok(Arc::new(self.clone()))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::object()
    }
}

#[cfg(feature = "outbound")]
#[tokio::test]
async fn alerts_reach_the_webhook_signed_and_hold_no_call_up() {
    let (url, mut received) = endpoint("200 OK").await;
    let text = format!(
        "secrets: {{key: '${{NO_SUCH_VARIABLE:-whsec_c2VjcmV0}}'}}
alerts: {{webhook: {{url: '{url}', secret: '${{secret:key}}', headers: {{X-Team: tools}}}}}}"
    );
    let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect("usable");
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .executor(Arc::new(Raises))
        .tool(TestTool::new("weather").descriptor)
        .build()
        .expect("usable");
    plane.call(CallRequest::new("weather")).await.expect("answered");
    let received = tokio::time::timeout(30 * SECOND, received.recv()).await;
    let request = received
        .expect("the alert was sent")
        .expect("the endpoint is there");
    let (head, body) = request.split_once("\r\n\r\n").expect("a request");
    assert!(head.starts_with("POST /health HTTP/1.1"), "{head}");
    for header in [
        "webhook-id: msg_",
        "webhook-timestamp: ",
        "webhook-signature: v1,",
        "x-team: tools",
    ] {
        assert!(head.contains(header), "{head}");
    }
    assert!(!request.contains("c2VjcmV0"), "{request}");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["type"], "toolplane.alert");
    assert_eq!(
        body["data"],
        json!({
            "alert": "disabled",
            "phase": "firing",
            "subject": {"kind": "tool", "name": "weather"},
            "message": "its credentials are refused"
        })
    );
}

#[cfg(feature = "exec-mcp")]
#[tokio::test]
async fn it_is_ready_when_every_required_server_is() {
    let text = "servers:\n  needed: {command: x, required: true}\n  other: {command: x}\n";
    let plane = Toolplane::from_yaml(text).expect("usable");
    let readiness = plane.readiness();
    assert!(!readiness.is_ready());
    assert_eq!(
        readiness.reasons,
        ["the server `needed` is required and not started"]
    );
    let names: Vec<_> = readiness.servers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["needed", "other"]);
    let plane = Toolplane::from_yaml("servers:\n  other: {command: x}\n").expect("usable");
    assert!(plane.readiness().is_ready());
}
