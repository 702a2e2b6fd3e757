//! Tests of supervised servers: their status, and their health checks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_client::{ClientErrorKind, HealthCheck, RequestOptions, ServerState, Upstream, UpstreamOptions};
use tokio::time::{sleep, timeout};

use crate::support::{
    fixture,
    peer::{raw, says_each_thing_once, within},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Records every reported state.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<ServerState>>>);

impl Told {
    fn options(&self) -> UpstreamOptions {
        let told = self.0.clone();
        UpstreamOptions::default().on_status(move |status| {
            told.lock().unwrap().push(status.state);
        })
    }

    fn states(&self) -> Vec<ServerState> {
        self.0.lock().unwrap().clone()
    }

    async fn come_to(&self, states: &[ServerState]) {
        let there = async {
            while self.states() != states {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let done = timeout(PATIENCE, there).await;
        assert!(done.is_ok(), "{:?}, not {states:?}", self.states());
    }
}

#[tokio::test]
async fn every_state_is_told_in_its_turn_and_an_end_without_being_asked() {
    let told = Told::default();
    let upstream = Upstream::new(fixture::command("exit-mid-call"), told.options());
    assert!(told.states().is_empty());
    upstream.connection().await.unwrap();
    assert_eq!(told.states(), [ServerState::Starting, ServerState::Ready]);
    upstream
        .request("tools/call", None, within(20))
        .await
        .unwrap_err();
    // Nobody uses the server any more.
    let ended = [ServerState::Starting, ServerState::Ready, ServerState::Backoff];
    told.come_to(&ended).await;
    timeout(PATIENCE, upstream.shutdown()).await.unwrap();
    let stopped = [&ended[..], &[ServerState::Stopped]].concat();
    assert_eq!(told.states(), stopped);
}

#[tokio::test]
async fn whoever_is_told_does_not_keep_the_server() {
    let told = Told::default();
    let upstream = Upstream::new(fixture::command("echo"), told.options());
    let connection = upstream.connection().await.unwrap();
    drop(upstream);
    assert!(!connection.is_closed(), "a clone of the connection keeps it");
    let watched = Arc::downgrade(&told.0);
    drop((connection, told));
    let gone = async {
        while watched.strong_count() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("nothing is left of it");
}

#[tokio::test]
async fn a_server_that_is_not_well_has_not_started() {
    for (arguments, is_well) in [(r#"{"well":true}"#, true), ("{}", false)] {
        let told = Told::default();
        let options = told.options().check(HealthCheck::tool("status", raw(arguments)));
        let upstream = Upstream::new(fixture::command("unwell"), options);
        let connection = upstream.connection().await;
        assert_eq!(connection.is_ok(), is_well);
        let Err(error) = connection else {
            assert_eq!(told.states(), [ServerState::Starting, ServerState::Ready]);
            continue;
        };
        assert!(
            matches!(error.kind(), ClientErrorKind::StartFailed { .. }),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            "the server did not start: its health check failed: `status` says: the database is away"
        );
        says_each_thing_once(&error);
        assert_eq!(told.states(), [ServerState::Starting, ServerState::Backoff]);
        let again = upstream.connection().await.unwrap_err();
        assert!(
            matches!(again.kind(), ClientErrorKind::Unavailable { .. }),
            "it rests: {again}"
        );
        says_each_thing_once(&again);
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_its_health_check_has_not_started() {
    let mut options = UpstreamOptions::default().check(HealthCheck::tool("status", raw("{}")));
    options.connection.start_timeout = Duration::from_secs(2);
    // It opens the connection, and sleeps from the first call on.
    let upstream = Upstream::new(fixture::command("deaf"), options);
    let error = timeout(PATIENCE, upstream.connection())
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        error.to_string().contains("its health check failed: no answer"),
        "{error}"
    );
}

#[tokio::test]
async fn a_health_check_without_a_tool_asks_whether_the_server_is_there() {
    let options = UpstreamOptions::default().check(HealthCheck::Ping);
    let upstream = Upstream::new(fixture::command("unwell"), options);
    let connection = upstream.connection().await.unwrap();
    let ask = |check: HealthCheck| {
        let connection = connection.clone();
        async move {
            check
                .run(&connection, RequestOptions::with_timeout(PATIENCE))
                .await
        }
    };
    ask(HealthCheck::Ping).await.unwrap();
    let by_tool = HealthCheck::tool("status", raw("{}"));
    let error = ask(by_tool).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Unhealthy(_)), "{error:?}");
}
