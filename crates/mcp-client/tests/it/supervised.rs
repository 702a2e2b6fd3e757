//! Servers under supervision: what is told of them, and what they have to answer when they are started.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_client::{
    ClientErrorKind, Command, Endpoint, HealthCheck, OnStatus, RequestOptions, State, Upstream,
    UpstreamOptions,
};
use tokio::time::{sleep, timeout};

use crate::peer::{raw, within};

const PATIENCE: Duration = Duration::from_secs(60);

fn fixture(mode: &str) -> Endpoint {
    Endpoint::Stdio(Command::new(env!("CARGO_BIN_EXE_mcp-client-fixture")).args([mode]))
}

/// Keeps every state that it is told of.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<State>>>);

impl Told {
    fn options(&self) -> UpstreamOptions {
        let told = self.0.clone();
        UpstreamOptions {
            on_status: Some(OnStatus::new(move |status| {
                told.lock().unwrap().push(status.state);
            })),
            ..UpstreamOptions::default()
        }
    }

    fn states(&self) -> Vec<State> {
        self.0.lock().unwrap().clone()
    }

    async fn come_to(&self, states: &[State]) {
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
    let upstream = Upstream::new(fixture("exit-mid-call"), told.options());
    assert!(told.states().is_empty());
    upstream.connection().await.unwrap();
    assert_eq!(told.states(), [State::Starting, State::Ready]);
    upstream
        .request("tools/call", None, within(20))
        .await
        .unwrap_err();
    // Nobody looks after the server any more.
    let ended = [State::Starting, State::Ready, State::Backoff];
    told.come_to(&ended).await;
    timeout(PATIENCE, upstream.shutdown()).await.unwrap();
    let stopped = [&ended[..], &[State::Stopped]].concat();
    assert_eq!(told.states(), stopped);
}

#[tokio::test]
async fn whoever_is_told_does_not_keep_the_server() {
    let told = Told::default();
    let upstream = Upstream::new(fixture("echo"), told.options());
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
        let options = UpstreamOptions {
            check: Some(HealthCheck::Tool {
                name: "status".to_owned(),
                arguments: raw(arguments),
            }),
            ..told.options()
        };
        let upstream = Upstream::new(fixture("unwell"), options);
        let connection = upstream.connection().await;
        assert_eq!(connection.is_ok(), is_well);
        let Err(error) = connection else {
            assert_eq!(told.states(), [State::Starting, State::Ready]);
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
        assert_eq!(told.states(), [State::Starting, State::Backoff]);
        let again = upstream.connection().await.unwrap_err();
        assert!(
            matches!(again.kind(), ClientErrorKind::Unavailable { .. }),
            "it rests: {again}"
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_its_health_check_has_not_started() {
    let mut options = UpstreamOptions {
        check: Some(HealthCheck::Tool {
            name: "status".to_owned(),
            arguments: raw("{}"),
        }),
        ..UpstreamOptions::default()
    };
    options.connection.start_timeout = Duration::from_secs(2);
    // It opens the connection, and sleeps from the first call on.
    let upstream = Upstream::new(fixture("deaf"), options);
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
    let options = UpstreamOptions {
        check: Some(HealthCheck::Ping),
        ..UpstreamOptions::default()
    };
    let upstream = Upstream::new(fixture("unwell"), options);
    let connection = upstream.connection().await.unwrap();
    let ask = |check: HealthCheck| {
        let connection = connection.clone();
        async move { check.ask(&connection, RequestOptions::with_timeout(PATIENCE)).await }
    };
    ask(HealthCheck::Ping).await.unwrap();
    let by_tool = HealthCheck::Tool {
        name: "status".to_owned(),
        arguments: raw("{}"),
    };
    let error = ask(by_tool).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Unhealthy(_)), "{error:?}");
}
