//! Servers as the facade sees them: states and observers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use mcp_mock::{MockPrompt, MockReply, MockServer, MockTool};
use raw_json::RawJson;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};
use tool_testkit::ScriptedExecutor;
use toolplane::{
    CallRequest, Toolplane,
    core::{
        BoxFuture, Caller, Catalogue, DisabledTool, ErrorKind, Event, Feature, InProcess, Instant, Observe,
        OnUpdate, Reference, Secret, SecretError, Secrets, Source, SourceState, SourceStatus, Task, Update,
    },
    manifest::{LoadOptions, Syntax, load},
    observe::Metrics,
    policy::{Breakers, Redactor},
    search::SearchRequest,
};

/// Time after which a hanging test fails.
const LONG: Duration = Duration::from_secs(30);
const TOKEN: &str = "hunter2-hunter2";

/// Records changes of sources in words.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Observe for Told {
    fn observe(&self, event: &Event<'_>) {
        if let Event::SourceChanged { change, .. } = event {
            let line = match &change.to {
                SourceState::Failed(reason) => format!("{} failed: {reason}", change.source),
                state => format!("{} {state}", change.source),
            };
            self.0.lock().expect("no test panics with it").push(line);
        }
    }
}

impl Told {
    /// Returns the records once there are this many.
    async fn come_to(&self, count: usize) -> Vec<String> {
        let lines = || self.0.lock().expect("no test panics with it").clone();
        let told = async {
            while lines().len() < count {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, told).await.expect("it is told");
        lines()
    }
}

/// Gives one token for everything.
struct Kept;

impl Secrets for Kept {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async { Ok(Some(Secret::new(TOKEN))) })
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(true)
    }
}

fn plane(yaml: &str) -> (Toolplane, Arc<Told>, Arc<Metrics>) {
    let (told, metrics) = (Arc::new(Told::default()), Arc::new(Metrics::new()));
    let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable");
    let builder = Toolplane::builder()
        .loaded(&loaded)
        .secrets(Arc::new(Kept))
        .observer(told.clone())
        .observer(metrics.clone());
    (builder.build().expect("usable"), told, metrics)
}

fn lines(metrics: &Metrics, prefix: &str) -> Vec<String> {
    let page = metrics.render();
    let lines = page.lines().filter(|line| line.starts_with(prefix));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn observers_are_told_where_a_server_stands() {
    let server = MockServer::builder()
        .tool(MockTool::new("echo").reply(MockReply::text("there")))
        .build();
    let http = server.http().await.expect("it listens");
    let (plane, told, metrics) = plane(&format!("servers: {{s: {{url: '{}'}}}}", http.url()));
    let state = |plane: &Toolplane| plane.server_records()[0]["state"].clone();
    assert_eq!(state(&plane), "not started");
    plane.call(CallRequest::new("s__echo")).await.expect("answered");
    assert_eq!(told.come_to(2).await, ["s starting", "s ready"]);
    assert_eq!(state(&plane), "ready");
    plane.shutdown().await;
    let last = told.come_to(3).await.pop();
    assert_eq!(last.as_deref(), Some("s stopped"));
    let gone = plane.call(CallRequest::new("s__other")).await;
    assert_eq!(
        gone.expect_err("it is not started again").kind(),
        ErrorKind::Unavailable
    );
    assert_eq!(
        lines(&metrics, "toolplane_source_changes_total{"),
        [
            r#"toolplane_source_changes_total{source="s",state="starting"} 1"#,
            r#"toolplane_source_changes_total{source="s",state="ready"} 1"#,
            r#"toolplane_source_changes_total{source="s",state="stopped"} 1"#,
        ]
    );
    assert_eq!(
        lines(&metrics, "toolplane_source_start_seconds_count"),
        [r#"toolplane_source_start_seconds_count{source="s"} 1"#]
    );
}

#[tokio::test]
async fn a_reason_is_told_without_its_secrets() {
    let (plane, told, _) = plane("servers: {s: {command: '/no/such/${secret:token}'}}");
    plane.view(&Caller::local()).await;
    let lines = told.come_to(2).await;
    assert_eq!(lines[0], "s starting");
    assert!(lines[1].contains("cannot run `/no/such/"), "{lines:?}");
    let record = plane.server_records().remove(0).to_string();
    for text in [lines[1].as_str(), record.as_str()] {
        assert!(!text.contains(TOKEN), "{text}");
    }
    assert!(record.contains(r#""reason":"#), "{record}");
    let call = plane.call(CallRequest::new("s__any")).await;
    let error = call.expect_err("it did not start");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let cause = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(cause.contains("cannot run") && !cause.contains(TOKEN), "{cause}");
    // A public page contains no reason.
    let page = plane.health_page(&Caller::local()).to_string();
    assert!(
        page.contains(r#""attempts":1"#) && !page.contains("cannot run"),
        "{page}"
    );
}

/// Tests that a start whose health check fails is reported like any failed start.
#[tokio::test]
async fn a_health_check_is_a_part_of_the_start() {
    let server = MockServer::builder()
        .tool(
            MockTool::new("status")
                .reply(MockReply::failure("the database is away"))
                .reply(MockReply::text("well")),
        )
        .build();
    let http = server.http().await.expect("it listens");
    let yaml = format!(
        "servers: {{s: {{url: '{}', required: true, health_check_at_start: true, health_check_tool: status, health_check_arguments: {{deep: true}}}}}}",
        http.url()
    );
    let (plane, told, _) = plane(&yaml);
    assert!(plane.view(&Caller::local()).await.tools().is_empty());
    let reason = told.come_to(2).await.pop().expect("two were told");
    assert!(reason.contains("`status` says: the database is away"), "{reason}");
    assert!(!plane.readiness().is_ready());
    assert_eq!(server.calls("status")[0].arguments().as_str(), r#"{"deep":true}"#);
    let rested = async {
        while plane.server_records()[0].get("retry_in_ms").is_some() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, rested).await.expect("it may be tried again");
    assert_eq!(plane.view(&Caller::local()).await.tools().len(), 1);
    assert!(plane.readiness().is_ready());
    plane.shutdown().await;
}

#[tokio::test]
async fn what_runs_on_a_connection_is_counted() {
    let server = MockServer::builder()
        .tool(MockTool::new("slow").reply(MockReply::never()))
        .build();
    let http = server.http().await.expect("it listens");
    let (plane, ..) = plane(&format!(
        "servers: {{s: {{url: '{}', max_connections: 3}}}}",
        http.url()
    ));
    let of_server = |plane: &Toolplane| plane.connection_use().pop().expect("there is one").1;
    assert_eq!((of_server(&plane).n_requests, of_server(&plane).max_own), (0, 3));
    let running = tokio::spawn({
        let plane = plane.clone();
        async move { plane.call(CallRequest::new("s__slow")).await }
    });
    server.wait_for_calls("slow", 1).await;
    assert_eq!(of_server(&plane).n_requests, 1);
    running.abort();
    let over = async {
        while of_server(&plane).n_requests > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, over).await.expect("nobody waits any more");
    plane.shutdown().await;
}

#[tokio::test]
async fn a_call_that_waited_for_its_server_says_so_when_it_is_explained() {
    let server = MockServer::builder()
        .tool(MockTool::new("echo").reply(MockReply::text("there")))
        .build();
    let http = server.http().await.expect("it listens");
    let (plane, ..) = plane(&format!("servers: {{s: {{url: '{}'}}}}", http.url()));
    for n_waits in [1, 0] {
        let explained = plane.call_explained(CallRequest::new("s__echo")).await;
        explained.result.expect("answered");
        let waits = explained.decisions.iter().filter(|note| note.layer == "find");
        assert_eq!(waits.count(), n_waits);
    }
    plane.shutdown().await;
}

/// One upstream has one breaker, which no tool sets.
#[tokio::test]
async fn the_breaker_of_a_server_has_the_servers_settings_or_those_of_the_defaults() {
    let server = MockServer::builder().tool(MockTool::new("echo")).build();
    let http = server.http().await.expect("it listens");
    for (of_defaults, of_server, expected) in [
        ("{}", "", (5, false)),
        ("{breaker: {max_failures: 7}}", "", (7, false)),
        (
            "{breaker: {max_failures: 7}}",
            ", breaker: {max_failures: 3}",
            (3, false),
        ),
        ("{breaker: {disabled: true}}", "", (5, true)),
        ("{}", ", breaker: {disabled: true}", (5, true)),
    ] {
        let yaml = format!(
            "defaults: {of_defaults}\n\
             servers: {{s: {{url: '{}'{of_server}}}}}\n\
             tools: {{own: {{description: d, breaker: {{max_failures: 1}}, executor: {{kind: mcp, server: s, tool: echo}}}}}}",
            http.url()
        );
        let (plane, ..) = plane(&yaml);
        let tool = plane
            .tool("own", &plane.local_caller())
            .await
            .expect("it is there");
        let breakers = tool.settings().get::<Breakers>().expect("it has some");
        assert_eq!(breakers.tool.max_failures, 1);
        let upstream = breakers.upstream;
        assert_eq!(
            (upstream.max_failures, upstream.disabled),
            expected,
            "{of_defaults}{of_server}"
        );
    }
}

/// Whatever is listed as switched off can be switched on, by the name that it is listed with.
#[tokio::test]
async fn a_prompt_that_is_off_is_switched_on_again() {
    let mock = MockServer::builder()
        .tool(MockTool::new("both"))
        .prompt(MockPrompt::new("both"))
        .prompt(MockPrompt::new("prompt"))
        .build();
    let http = mock.http().await.expect("it listens");
    let yaml = format!("servers: {{s: {{url: '{}'}}}}", http.url());
    let (plane, ..) = plane(&yaml);
    let view = plane.view(&plane.local_caller()).await;
    for prompt in view.list(Feature::Prompt) {
        prompt.state().disable(DisabledTool::new(
            "its credentials are refused".to_owned(),
            SystemTime::UNIX_EPOCH,
            Instant::default(),
        ));
    }
    for name in ["s__both", "s__prompt"] {
        assert!(plane.enable(name) && !plane.enable(name), "{name}");
    }
    assert!(plane.disabled().is_empty());
    plane.shutdown().await;
}

/// Sends the updates of a task that a test gives it.
#[derive(Default)]
struct Working(Mutex<Option<OnUpdate>>);

impl Source for Working {
    fn name(&self) -> &'static str {
        "works"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        Arc::default()
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
        SourceStatus::new(SourceState::Ready)
    }

    fn on_update(&self, tell: OnUpdate) {
        *self.0.lock().expect("no test panics with it") = Some(tell);
    }
}

#[tokio::test]
async fn what_a_server_says_of_a_task_is_without_secrets() {
    let (working, redactor) = (Arc::new(Working::default()), Redactor::default());
    redactor.learn(TOKEN);
    let builder = Toolplane::builder().source(working.clone()).redactor(redactor);
    let plane = builder.build().expect("usable");
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    plane.on_update(
        &(Arc::new(move |update: &Update| {
            if let Update::Task { state, .. } = update {
                heard
                    .lock()
                    .expect("no test panics with it")
                    .push(state.to_string());
            }
        }) as OnUpdate),
    );
    let tell = working.0.lock().expect("no test panics with it").clone();
    let tell = tell.expect("somebody listens");
    let task = Task::new("1", Arc::new(InProcess(ScriptedExecutor::new([]))));
    let plain = r#"{"status":"working","n":1e2}"#;
    for state in [plain.to_owned(), format!(r#"{{"statusMessage":"with {TOKEN}"}}"#)] {
        tell(&Update::Task {
            task: task.clone(),
            state: RawJson::parse(state).expect("JSON"),
        });
    }
    let expected = [plain, r#"{"statusMessage":"with [redacted]"}"#];
    assert_eq!(*told.lock().expect("no test panics with it"), expected);
}

#[tokio::test]
async fn a_missing_server_is_named_to_those_who_may_use_it() {
    let absent = "{command: /does/not/exist, prefix: ";
    let plane = Toolplane::builder()
        .yaml(format!(
            "servers:\n  open: {absent}'o_'}}\n  vault: {absent}'v_'}}\n  part: {absent}'p_'}}\n  gone: {absent}'g_'}}\n  files: {absent}'f_'}}\npolicy:\n  \
             blocklist: ['g_*']\n  required_permissions: {{'v_*': [vault.open], 'p_secret*': [vault.open], 'f_*': [filesystem.read]}}\n"
        ))
        .expect("usable")
        .build()
        .expect("usable");
    let mut keeper = Caller::new("keeper");
    // `filesystem` stands for `filesystem.read` as well.
    keeper
        .permissions
        .extend(["vault.open", "filesystem"].map(Arc::from));
    for (caller, expected) in [
        (Caller::new("guest"), vec!["open", "part"]),
        (keeper, vec!["files", "open", "part", "vault"]),
    ] {
        let listing = plane.list_within(&caller, Duration::from_secs(30)).await;
        let found = plane.search(&SearchRequest::new("anything"), &caller).await;
        for missing in [listing.missing, found.missing] {
            let mut servers: Vec<_> = missing.into_iter().map(|missing| missing.server).collect();
            servers.sort();
            assert_eq!(servers, expected, "{}", caller.principal);
        }
    }
    assert_eq!(plane.missing().len(), 5, "operators see all of them");
    plane.shutdown().await;
}

/// Server that is ready to be loaded anew, which waits for a permit.
struct KeptServer {
    name: String,
    catalogue: Arc<Catalogue>,
    n_loads: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Source for KeptServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.catalogue.clone()
    }

    fn changed(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn may_hold(&self, _: Feature, _: &str) -> bool {
        true
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(SourceState::Ready)
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.n_loads.fetch_add(1, Ordering::SeqCst);
            let _permit = self.gate.acquire().await;
        })
    }
}

/// Clients that ask for lists do not compete with the starts of all servers.
#[tokio::test(start_paused = true)]
async fn servers_with_kept_lists_start_a_few_at_a_time() {
    const SERVERS: usize = 20;
    let (n_loads, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let builder = (0..SERVERS).fold(Toolplane::builder(), |builder, number| {
        let mut catalogue = Catalogue::default();
        (catalogue.revision, catalogue.is_kept) = (1, true);
        builder.source(Arc::new(KeptServer {
            name: format!("s{number}"),
            catalogue: Arc::new(catalogue),
            n_loads: n_loads.clone(),
            gate: gate.clone(),
        }))
    });
    let plane = builder.build().expect("usable");
    let mut starts = std::pin::pin!(plane.start_servers());
    let waiting = timeout(Duration::from_millis(20), starts.as_mut()).await;
    assert!(waiting.is_err(), "they wait for permits");
    assert_eq!(n_loads.load(Ordering::SeqCst), 8);
    gate.add_permits(SERVERS);
    timeout(LONG, starts).await.expect("all are started");
    assert_eq!(n_loads.load(Ordering::SeqCst), SERVERS);
}
