//! States of a server as a source of tools, and their notification.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::time::{self, sleep, timeout};
use tool_core::{
    BoxFuture, Reference, Secret, SecretError, Secrets, SourceChange, SourceState, Template, Update,
};
use tool_exec_mcp::{HealthCheck, McpServer, ServerSettings, StdioTarget};

use crate::fixture::{Call, Fixture, LIMIT, NoSecrets, load, tool};

/// Records every change of a server's state.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<SourceChange>>>);

impl Told {
    fn new(server: &Arc<McpServer>) -> Self {
        let told = Self::default();
        let changes = told.0.clone();
        server.source().on_update(Arc::new(move |update| {
            if let Update::State(change) = update {
                changes.lock().unwrap().push(change.clone());
            }
        }));
        told
    }

    fn words(&self) -> Vec<&'static str> {
        let changes = self.0.lock().unwrap();
        changes.iter().map(|change| change.to.as_str()).collect()
    }

    /// Waits until exactly these changes were recorded.
    async fn come_to(&self, words: &[&str]) {
        let told = async {
            while self.words().len() < words.len() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = timeout(LIMIT, told).await;
        assert_eq!(self.words(), words);
    }
}

/// Waits until the backoff of the server is over.
async fn rested(server: &Arc<McpServer>) {
    let rested = async {
        while server.source().status().retry_in.is_some() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, rested).await.expect("it rests for ever");
}

#[tokio::test]
async fn every_state_is_reported_once_and_in_order() {
    let fixture = Fixture::new(&[tool("exit"), tool("echo")]);
    let server = fixture.server("");
    let told = Told::new(&server);
    let before = server.source().status();
    assert_eq!((before.state, before.n_attempts), (SourceState::NotStarted, 0));
    load(&server).await;
    let ready = server.source().status();
    assert_eq!((ready.state, ready.n_attempts), (SourceState::Ready, 1));
    assert!(ready.in_state.is_some() && ready.last_error.is_none());
    told.come_to(&["starting", "ready"]).await;

    Call::new(&server, "exit", json!({})).make().await.unwrap_err();
    // Without any request.
    told.come_to(&["starting", "ready", "failed"]).await;
    let failed = server.source().status();
    assert!(matches!(failed.state, SourceState::Failed(_)), "{failed:?}");
    assert!(failed.last_error.is_some());
    rested(&server).await;
    assert_eq!(told.words().len(), 3, "the end of the pause is no change");

    Call::new(&server, "echo", json!({})).make().await.unwrap();
    let all = ["starting", "ready", "failed", "starting", "ready"];
    told.come_to(&all).await;
    let again = server.source().status();
    assert_eq!(
        (again.state, again.n_attempts, again.n_restarts),
        (SourceState::Ready, 1, 1)
    );
    assert_eq!(again.last_error, failed.last_error);
    server.shutdown().await;
    told.come_to(&[&all[..], &["stopped"]].concat()).await;
    assert_eq!(&*told.0.lock().unwrap()[0].source, "box");
}

#[tokio::test]
async fn a_call_that_needs_no_list_makes_it_ready_as_well() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = fixture.server("");
    let told = Told::new(&server);
    Call::new(&server, "echo", json!({})).make().await.unwrap();
    assert_eq!(server.source().status().state, SourceState::Ready);
    assert_eq!(load(&server).await.tools.len(), 1);
    // It answers all the time.
    told.come_to(&["starting", "ready"]).await;
    server.shutdown().await;
}

/// After this time, the longest backoff is over.
const PAUSE: Duration = Duration::from_secs(76);

#[tokio::test]
async fn failed_starts_are_counted_and_back_off() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("fails");
    let told = Told::new(&server);
    for n in 1..=3 {
        load(&server).await;
        // The clock stands still, so that the backoff is not over before the check.
        time::pause();
        // These do not count: nothing is tried.
        server.source().load().await;
        server.source().load().await;
        let status = server.source().status();
        assert!(matches!(status.state, SourceState::Failed(_)), "{status:?}");
        assert_eq!(status.n_attempts, n);
        assert!(status.retry_in.is_some(), "{status:?}");
        assert_eq!(fixture.notes("starts").len(), usize::try_from(n).unwrap());
        time::advance(PAUSE).await;
        assert_eq!(server.source().status().retry_in, None);
        time::resume();
    }
    told.come_to(&["starting", "failed"].repeat(3)).await;
    let changes = told.0.lock().unwrap().clone();
    assert_eq!(changes[5].n_attempts, 3);
    server.shutdown().await;
}

#[tokio::test]
async fn lists_that_cannot_be_read_back_off() {
    let fixture = Fixture::new(&[]);
    fs::remove_file(fixture.path("tools.json")).unwrap();
    let server = fixture.server("");
    for n in 1..=3 {
        load(&server).await;
        time::pause();
        server.source().load().await;
        let status = server.source().status();
        let SourceState::Failed(reason) = &status.state else {
            panic!("{status:?}")
        };
        assert!(reason.contains("it did not list its tools"), "{reason}");
        assert_eq!(status.n_attempts, n);
        assert!(status.retry_in.is_some(), "{status:?}");
        assert_eq!(fixture.notes("lists").len(), usize::try_from(n).unwrap());
        time::advance(PAUSE).await;
        time::resume();
    }
    assert_eq!(fixture.notes("starts").len(), 1, "it runs all the time");
    fixture.lists(&[tool("echo")]);
    assert_eq!(load(&server).await.tools.len(), 1);
    let status = server.source().status();
    assert_eq!((status.state, status.n_attempts), (SourceState::Ready, 4));
    server.shutdown().await;
}

/// Every reference is `pw`. Literal values are recorded.
#[derive(Default)]
struct Written(Mutex<Vec<String>>);

impl Secrets for Written {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async { Ok(Some(Secret::new("pw"))) })
    }

    fn learn_written(&self, name: &str, value: &str) {
        self.0
            .lock()
            .expect("no test panics with it")
            .push(format!("{name}={value}"));
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(true)
    }
}

#[tokio::test]
async fn literal_environment_values_can_be_learned_as_secrets() {
    let text = |text: &str| Template::parse(text).expect("it is a text");
    let env = [
        ("HTTPS_PROXY", "http://ada:literal@proxy"),
        ("npm_config_proxy", "http://ada:${env:PART}@proxy"),
        ("API_TOKEN", "${env:PART}"),
    ];
    let mut target = StdioTarget::new(text("/nonexistent/command"));
    target.env = env.map(|(name, value)| (name.to_owned(), text(value))).into();
    let secrets = Arc::new(Written::default());
    let server = McpServer::new(ServerSettings::new("box", target), secrets.clone());
    load(&server).await;
    let mut written = secrets.0.lock().expect("no test panics with it").clone();
    written.sort();
    written.dedup();
    assert_eq!(
        written,
        [
            "API_TOKEN=pw",
            "HTTPS_PROXY=http://ada:literal@proxy",
            "npm_config_proxy=http://ada:pw@proxy",
        ]
    );
}

#[tokio::test]
async fn a_missing_reference_fails_the_start() {
    let target = StdioTarget::new(Template::parse("${env:UNSET_COMMAND}").unwrap());
    let server = McpServer::new(ServerSettings::new("box", target), Arc::new(NoSecrets));
    let told = Told::new(&server);
    load(&server).await;
    told.come_to(&["starting", "failed"]).await;
    let status = server.source().status();
    assert_eq!(status.n_attempts, 1);
    assert!(status.last_error.unwrap().contains("UNSET_COMMAND"));
}

#[tokio::test]
async fn a_server_that_fails_its_health_check_at_the_start_has_failed() {
    let fixture = Fixture::new(&[tool("echo"), tool("is-error")]);
    let mut settings = fixture.settings("");
    settings.check_at_start = true;
    settings.health_check = HealthCheck::tool("is-error", raw_json::RawJson::object());
    let server = McpServer::new(settings.clone(), Arc::new(NoSecrets));
    assert!(load(&server).await.tools.is_empty());
    let status = server.source().status();
    let SourceState::Failed(reason) = &status.state else {
        panic!("{status:?}")
    };
    assert!(
        reason.contains("its health check failed: `is-error` says: no such city"),
        "{reason}"
    );
    assert!(fixture.notes("lists").is_empty(), "it is asked for nothing else");
    let error = Call::new(&server, "echo", json!({})).make().await.unwrap_err();
    assert_eq!(error.kind(), tool_core::ErrorKind::Unavailable);
    server.shutdown().await;

    settings.health_check = HealthCheck::tool("echo", raw_json::RawJson::object());
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    assert_eq!(load(&server).await.tools.len(), 2);
    let source = server.source();
    source.check().await.expect("it is asked").expect("it is well");
    server.shutdown().await;
}
