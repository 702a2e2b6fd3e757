//! Start, listing and end of servers.

use std::{fs, sync::Arc, time::Duration};

use serde_json::json;
use tool_core::{ErrorKind, Feature, SourceState, Template};
use tool_exec_mcp::{HttpTarget, HttpTransport, McpServer, ServerSettings, ServerTarget, StdioTarget};

use crate::fixture::{Call, Fixture, LIMIT, NoSecrets, load, tool};

/// Returns `true` if a process exists.
pub(crate) fn runs(pid: &str) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

/// Waits until a process is gone.
pub(crate) async fn ended(pid: &str) {
    let gone = async {
        while runs(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, gone)
        .await
        .expect("its process was left behind");
}

#[tokio::test]
async fn nothing_is_started_before_it_is_needed() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = fixture.server("");
    let source = server.source();
    assert!(source.snapshot().tools.is_empty());
    assert!(source.may_hold(Feature::Tool, "box__echo"));
    assert_eq!(source.status().state, SourceState::NotStarted);
    assert!(server.status().is_none());
    // Preparing a tool does not call it.
    let mut call = Call::new(&server, "echo", json!({}));
    assert!(fixture.notes("starts").is_empty());
    call.make().await.unwrap();
    assert_eq!(fixture.notes("starts").len(), 1);
    assert!(fixture.notes("lists").is_empty(), "a call needs no list");
    server.shutdown().await;
}

#[tokio::test]
async fn many_first_calls_are_one_start() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = fixture.server("");
    let calls: Vec<_> = (0..100)
        .map(|n| {
            let server = server.clone();
            tokio::spawn(async move {
                if n % 10 == 0 {
                    assert_eq!(load(&server).await.tools.len(), 1);
                } else {
                    let reply = Call::new(&server, "echo", json!({"n": n})).make().await.unwrap();
                    assert_eq!(
                        reply.raw().get("arguments").unwrap().as_str(),
                        format!(r#"{{"n":{n}}}"#)
                    );
                }
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(fixture.notes("starts").len(), 1);
    assert_eq!(fixture.notes("lists").len(), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_storm_of_changes_is_one_new_list() {
    let fixture = Fixture::new(&[tool("storm"), tool("old")]);
    let server = fixture.server("");
    let before = load(&server).await;
    assert_eq!(before.revision, 1);
    fixture.lists(&[tool("storm"), tool("new")]);
    Call::new(&server, "storm", json!({})).make().await.unwrap();
    let source = server.source();
    tokio::time::timeout(LIMIT, source.changed(1)).await.unwrap();
    let after = source.snapshot();
    let names: Vec<_> = after.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["box__storm", "box__new"]);
    assert_eq!(after.revision, 2);
    assert!(
        Arc::ptr_eq(&before.tools[0], &after.tools[0]),
        "what did not change stays the same"
    );
    // One list for all changes before it was read, and at most one for those meanwhile.
    let n_lists = fixture.notes("lists").len();
    assert!((2..=3).contains(&n_lists), "{n_lists} lists for 100 changes");
    server.shutdown().await;
}

#[tokio::test]
async fn an_equal_list_is_no_change() {
    let fixture = Fixture::new(&[tool("storm")]);
    let server = fixture.server("");
    load(&server).await;
    Call::new(&server, "storm", json!({})).make().await.unwrap();
    let listed_again = async {
        while fixture.notes("lists").len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, listed_again).await.unwrap();
    // The answer to a later call is read after the answer to the list.
    Call::new(&server, "echo", json!({})).make().await.unwrap();
    assert_eq!(server.source().snapshot().revision, 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_list_that_could_not_be_read_is_read_again() {
    let fixture = Fixture::new(&[tool("storm")]);
    let server = fixture.server("");
    load(&server).await;
    fs::remove_file(fixture.path("tools.json")).unwrap();
    Call::new(&server, "storm", json!({})).make().await.unwrap();
    let tried = async {
        while fixture.notes("lists").len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, tried).await.unwrap();
    fixture.lists(&[tool("storm"), tool("late")]);
    let source = server.source();
    tokio::time::timeout(LIMIT, source.changed(1)).await.unwrap();
    assert_eq!(source.snapshot().tools.len(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_fails_says_why() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = fixture.server("fails");
    assert!(load(&server).await.tools.is_empty());
    let status = server.source().status();
    let SourceState::Failed(reason) = &status.state else {
        panic!("{status:?}")
    };
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert_eq!(
        status.detail.as_deref(),
        Some("no license found\nin no place"),
        "the end of its stderr"
    );
    let error = Call::new(&server, "echo", json!({})).make().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.retry_after().is_some(),
        "it rests before it is started again"
    );
    assert_eq!(fixture.notes("starts").len(), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_started_says_why() {
    let text = |text: &str| Template::parse(text).unwrap();
    let stdio = |command: &str| ServerTarget::from(StdioTarget::new(text(command)));
    let http =
        |url: &str| ServerTarget::from(HttpTarget::new(text(url)).transport(HttpTransport::Streamable));
    let cases = [
        (stdio("/there/is/no/such/program"), "/there/is/no/such/program"),
        (stdio("${env:UNSET_COMMAND}"), "UNSET_COMMAND"),
        (
            http("ftp://localhost/"),
            "must begin with `http://` or `https://`",
        ),
        // Nothing listens on the discard port.
        (http("http://127.0.0.1:9/mcp"), "cannot be reached"),
    ];
    for (target, expected) in cases {
        let server = McpServer::new(ServerSettings::new("box", target), Arc::new(NoSecrets));
        load(&server).await;
        let state = server.source().status().state;
        let SourceState::Failed(reason) = &state else {
            panic!("{expected}: {state:?}")
        };
        assert!(reason.contains(expected), "{reason}");
        let error = Call::new(&server, "echo", json!({})).make().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        server.shutdown().await;
    }
}

#[tokio::test]
async fn internal_details_are_in_the_source_only() {
    let target = StdioTarget::new(Template::parse("/there/is/no/such/program").unwrap());
    let server = McpServer::new(ServerSettings::new("box", target), Arc::new(NoSecrets));
    let error = Call::new(&server, "echo", json!({})).make().await.unwrap_err();
    assert_eq!(error.message(), "the server `box` did not start");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("/there/is/no/such/program"), "{cause}");
}

#[tokio::test]
async fn a_server_that_never_starts_times_out() {
    let fixture = Fixture::new(&[]);
    let mut settings = fixture.settings("never-opens");
    settings.start_timeout = Duration::from_millis(300);
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    load(&server).await;
    assert!(matches!(server.source().status().state, SourceState::Failed(_)));
    ended(&fixture.notes("starts")[0]).await;
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_ended_is_started_again_with_the_same_tools() {
    let fixture = Fixture::new(&[tool("echo"), tool("exit")]);
    let server = fixture.server("");
    load(&server).await;
    Call::new(&server, "exit", json!({})).make().await.unwrap_err();
    assert_eq!(
        server.source().snapshot().tools.len(),
        2,
        "its tools stay on the list"
    );
    let answers = async {
        while Call::new(&server, "echo", json!({})).make().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, answers).await.unwrap();
    let status = server.source().status();
    assert_eq!((status.state, status.n_restarts), (SourceState::Ready, 1));
    assert_eq!(fixture.notes("starts").len(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn shutdown_leaves_no_process() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = fixture.server("");
    load(&server).await;
    let status = server.source().status();
    assert_eq!(status.state, SourceState::Ready);
    assert_eq!(status.detail.as_deref(), Some("fixture 1.2, MCP 2025-11-25"));
    let pid = fixture.notes("starts").remove(0);
    assert!(runs(&pid));
    server.shutdown().await;
    assert!(!runs(&pid));
    assert_eq!(server.source().status().state, SourceState::Stopped);
    let error = Call::new(&server, "echo", json!({})).make().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(fixture.notes("starts").len(), 1, "it is not started again");
}

#[tokio::test]
async fn shutdown_during_the_start_leaves_no_process() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("never-opens");
    let starting = tokio::spawn({
        let server = server.clone();
        async move { load(&server).await }
    });
    let started = async {
        while fixture.notes("starts").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, started).await.unwrap();
    server.shutdown().await;
    starting.await.unwrap();
    ended(&fixture.notes("starts")[0]).await;
}

#[tokio::test]
async fn shutdown_before_the_start_starts_nothing() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = fixture.server("");
    server.shutdown().await;
    load(&server).await;
    Call::new(&server, "echo", json!({})).make().await.unwrap_err();
    assert!(fixture.notes("starts").is_empty());
}

#[tokio::test]
async fn a_check_asks_a_server_of_either_era_and_starts_none() {
    for mode in ["", "modern"] {
        let fixture = Fixture::new(&[tool("echo")]);
        let server = fixture.server(mode);
        let source = server.source();
        assert!(source.check().await.is_none(), "nobody has needed it yet");
        assert!(fixture.notes("starts").is_empty());
        load(&server).await;
        source.check().await.expect("it is asked").expect("it is there");
        server.shutdown().await;
        source
            .check()
            .await
            .expect("it is asked")
            .expect_err("it was shut down");
    }
}

#[tokio::test]
async fn a_check_starts_a_server_again_that_has_ended() {
    let fixture = Fixture::new(&[tool("exit")]);
    let server = fixture.server("");
    load(&server).await;
    Call::new(&server, "exit", json!({})).make().await.unwrap_err();
    let source = server.source();
    let checked = async {
        // It is not started at once, since it might fail again and again.
        while source.check().await.expect("it is asked").is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LIMIT, checked)
        .await
        .expect("it is started again");
    assert_eq!(fixture.notes("starts").len(), 2);
    server.shutdown().await;
}

/// Advances the clock for those who wait for it, and not for the server's own work.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn lists(fixture: &Fixture, n: usize) {
    let listed = async {
        while fixture.notes("lists").len() < n {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, listed).await.unwrap();
}

#[tokio::test]
async fn lists_are_read_again_when_their_time_is_over() {
    // The server's time to live and announcements, and the maximum time until it is asked again.
    for (mode, ttl, is_told, wait) in [
        ("", None, false, 330),
        ("modern", None, false, 330),
        ("modern", Some("0"), false, 330),
        ("modern", Some("1"), false, 11),
        ("modern", Some("20000"), false, 22),
        ("modern", Some("1"), true, 66),
    ] {
        let fixture = Fixture::new(&[tool("old")]);
        fixture.offers(&json!({"tools": {"listChanged": is_told}}));
        if let Some(ttl) = ttl {
            fixture.has("ttl", ttl);
        }
        let server = fixture.server(mode);
        load(&server).await;
        // Much earlier nobody asks. An equal list is no change.
        pass(Duration::from_secs(wait * 8 / 10)).await;
        Call::new(&server, "echo", json!({})).make().await.unwrap();
        assert_eq!(fixture.notes("lists").len(), 1, "{mode} {ttl:?} {is_told}");
        pass(Duration::from_secs(wait * 2 / 10 + 1)).await;
        lists(&fixture, 2).await;
        Call::new(&server, "echo", json!({})).make().await.unwrap();
        assert_eq!(server.source().snapshot().revision, 1);
        fixture.lists(&[tool("new")]);
        pass(Duration::from_secs(wait + 1)).await;
        let source = server.source();
        tokio::time::timeout(LIMIT, source.changed(1)).await.unwrap();
        assert_eq!(&*source.snapshot().tools[0].name, "box__new");
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_list_whose_changes_are_announced_is_not_polled() {
    let fixture = Fixture::new(&[tool("old")]);
    let server = fixture.server("");
    load(&server).await;
    for _ in 0..3 {
        pass(Duration::from_secs(400)).await;
        Call::new(&server, "echo", json!({})).make().await.unwrap();
    }
    assert_eq!(fixture.notes("lists").len(), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn no_server_is_started_to_list_again() {
    let fixture = Fixture::new(&[tool("old")]);
    fixture.offers(&json!({"tools": {}}));
    let server = fixture.server("");
    load(&server).await;
    Call::new(&server, "exit", json!({})).make().await.unwrap_err();
    pass(Duration::from_secs(400)).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(fixture.notes("starts").len(), 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_list_that_cannot_be_read_again_stays_as_it_was() {
    let fixture = Fixture::new(&[tool("old")]);
    fixture.offers(&json!({"tools": {}}));
    let server = fixture.server("");
    load(&server).await;
    fs::remove_file(fixture.path("tools.json")).unwrap();
    pass(Duration::from_secs(331)).await;
    lists(&fixture, 2).await;
    Call::new(&server, "echo", json!({})).make().await.unwrap();
    let source = server.source();
    assert_eq!(&*source.snapshot().tools[0].name, "box__old");
    fixture.lists(&[tool("new")]);
    tokio::time::timeout(LIMIT, source.changed(1)).await.unwrap();
    server.shutdown().await;
}
