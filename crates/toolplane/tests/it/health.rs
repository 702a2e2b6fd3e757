//! Health of tools and servers in the standard stack: figures, alerts and checks.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{task::AbortHandle, time::sleep};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{
        BoxFuture, Catalogue, Descriptor, ErrorKind, Event, Feature, Health, HealthStatus, Observe,
        Overrides, Source, SourceState, SourceStatus, ToolError,
    },
    manifest::{LoadOptions, Syntax, load},
    runtime::RetrySettings,
};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn fails() -> ScriptStep {
    ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
}

/// Writes alerts down in words.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<String>>);

impl Observe for Told {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Alert { alert, .. } = event {
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
    tool.descriptor.overrides = Overrides::default().with(RetrySettings::default());
    let script = ScriptedExecutor::new([fails(), ScriptStep::Echo]);
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
    let steps = [
        ScriptStep::Echo,
        fails(),
        ScriptStep::Echo,
        fails(),
        fails(),
        ScriptStep::Echo,
    ];
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .executor(Arc::new(ScriptedExecutor::new(steps)))
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
pub(crate) struct Server {
    n_checks: AtomicUsize,
    /// Nothing when there is nothing to ask.
    is_well: Mutex<Option<bool>>,
    state: SourceState,
    tools: Vec<Arc<Descriptor>>,
}

impl Server {
    pub(crate) fn new(tools: Vec<Arc<Descriptor>>) -> Self {
        Self {
            n_checks: AtomicUsize::new(0),
            is_well: Mutex::new(Some(true)),
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
        Arc::new({
            let mut catalogue = Catalogue::default();
            catalogue.revision = 1;
            catalogue.tools = self.tools.clone();
            catalogue
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
            Some(if is_well? { Ok(()) } else { Err(error()) })
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
    *server.is_well.lock().unwrap() = Some(false);
    sleep(31 * SECOND).await;
    assert_eq!(plane.health().upstream("files").status, HealthStatus::Degraded);
    sleep(70 * SECOND).await;
    assert_eq!(plane.health().upstream("files").status, HealthStatus::Unhealthy);
    assert_eq!(told.take(), ["upstream `files` health_check firing"]);
    *server.is_well.lock().unwrap() = Some(true);
    sleep(40 * SECOND).await;
    assert_eq!(told.take(), ["upstream `files` health_check resolved"]);
    assert_eq!(plane.health().upstream("files").status, HealthStatus::Healthy);
}

/// Tests that a server that replaces a failed one is not checked before its first use.
#[tokio::test(start_paused = true)]
async fn what_a_check_found_is_forgotten_when_there_is_nothing_to_ask() {
    let (server, told) = (Arc::new(Server::new(Vec::new())), Arc::new(Told::default()));
    let plane = Toolplane::builder()
        .source(server.clone())
        .observer(told.clone())
        .build()
        .expect("usable");
    let _watched = Watched::begin(&plane);
    *server.is_well.lock().unwrap() = Some(false);
    sleep(120 * SECOND).await;
    assert_eq!(told.take(), ["upstream `files` health_check firing"]);
    *server.is_well.lock().unwrap() = None;
    sleep(40 * SECOND).await;
    assert_eq!(told.take(), ["upstream `files` health_check resolved"]);
    assert_eq!(plane.health().upstream("files").status, HealthStatus::Unknown);
}

#[cfg(all(feature = "exec-http", feature = "outbound"))]
#[tokio::test(start_paused = true)]
async fn what_a_check_found_is_forgotten_when_it_is_not_checked_any_more() {
    // Nothing listens there.
    let tool = |check: &str| {
        format!(
            "tools: {{a: {{description: d{check}, executor: {{kind: http, url: 'http://127.0.0.1:1/', allow_private: true}}}}}}"
        )
    };
    let loaded = |yaml: &str| load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable");
    let told = Arc::new(Told::default());
    let plane = Toolplane::builder()
        .loaded(&loaded(&tool(
            ", health_check_endpoint: 'http://127.0.0.1:1/health'",
        )))
        .observer(told.clone())
        .build()
        .expect("usable");
    let _watched = Watched::begin(&plane);
    sleep(200 * SECOND).await;
    assert_eq!(told.take(), ["tool `a` health_check firing"]);
    assert_eq!(plane.health().tool("a").status, HealthStatus::Unhealthy);
    plane.reload(&loaded(&tool(""))).expect("usable");
    sleep(6 * SECOND).await;
    assert_eq!(told.take(), ["tool `a` health_check resolved"]);
    assert_eq!(plane.health().tool("a").status, HealthStatus::Unknown);
    // A host without tools disappears from the page.
    let n_hosts = || {
        let page = plane.health_page(&plane.local_caller()).to::<serde_json::Value>();
        page.expect("JSON")["servers"].as_array().expect("a list").len()
    };
    let _ = plane.call(CallRequest::new("a")).await;
    assert_eq!(n_hosts(), 1);
    plane.reload(&loaded("tools: {}")).expect("usable");
    assert_eq!(n_hosts(), 0);
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
