//! Servers that nobody uses are stopped in order, and started again when they are needed.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use serde_json::json;
use tool_core::SourceState;
use tool_exec_mcp::{ListCache, McpServer, MemoryListCache, StartLimit};

use crate::{
    fixture::{Call, Fixture, LIMIT, NoSecrets, load, tool},
    lifecycle::{ended, runs},
};

const IDLE: Duration = Duration::from_secs(60);

fn server(fixture: &Fixture, idle_timeout: Duration) -> Arc<McpServer> {
    let mut settings = fixture.settings("");
    settings.idle_timeout = Some(idle_timeout);
    McpServer::new(settings, Arc::new(NoSecrets))
}

/// Lets time pass for those who wait for it, and not for what the server needs.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn state(server: &Arc<McpServer>) -> SourceState {
    server.source().status().state
}

async fn until_stopped(server: &Arc<McpServer>) {
    let stopped = async {
        while state(server) != SourceState::NotStarted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, stopped).await.expect("it is stopped");
}

#[tokio::test]
async fn a_server_that_nobody_uses_is_stopped_and_started_again_when_needed() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = server(&fixture, IDLE);
    for n in 1..=3 {
        Call::new(&server, "echo", json!({})).make().await.unwrap();
        let starts = fixture.notes("starts");
        assert_eq!(starts.len(), n, "each call needs it anew");
        pass(IDLE / 2).await;
        Call::new(&server, "echo", json!({})).make().await.unwrap();
        pass(IDLE * 3 / 4).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(state(&server), SourceState::Ready, "somebody has used it since");
        pass(IDLE).await;
        until_stopped(&server).await;
        ended(starts.last().unwrap()).await;
        // Neither is it started to be asked how it is.
        assert!(server.source().check().await.is_none());
    }
    let status = server.source().status();
    assert_eq!(
        (status.n_restarts, status.last_error),
        (0, None),
        "it did not fail"
    );
    server.shutdown().await;
    assert_eq!(fixture.notes("starts").len(), 3);
}

#[tokio::test]
async fn its_tools_stay_on_the_list_while_it_is_stopped() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = server(&fixture, IDLE);
    load(&server).await;
    pass(2 * IDLE).await;
    until_stopped(&server).await;
    assert_eq!(load(&server).await.tools.len(), 1);
    assert_eq!(fixture.notes("starts").len(), 1, "a list needs no start");
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_is_not_stopped_while_a_call_is_open() {
    let fixture = Fixture::new(&[tool("echo")]);
    // Shorter than what a call may take.
    let idle = Duration::from_secs(2);
    let server = server(&fixture, idle);
    Call::new(&server, "echo", json!({})).make().await.unwrap();
    let pid = fixture.notes("starts").remove(0);
    let mut call = Call::new(&server, "never", json!({}));
    let open = tokio::spawn(async move { call.make().await });
    while server.n_requests() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..5 {
        pass(idle).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(state(&server) == SourceState::Ready && runs(&pid));
    }
    open.abort();
    pass(2 * idle).await;
    until_stopped(&server).await;
    server.shutdown().await;
}

/// A call that begins while the server is being stopped has another process, and never the one that ends.
#[tokio::test]
async fn a_call_never_meets_a_server_that_is_being_stopped() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = server(&fixture, IDLE);
    for _ in 0..20 {
        Call::new(&server, "echo", json!({})).make().await.unwrap();
        pass(IDLE - Duration::from_millis(1)).await;
        // At about the time at which it is stopped.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.shutdown().await;
}

#[tokio::test]
async fn servers_share_a_limit_of_starts_and_one_that_is_called_goes_first() {
    let fixtures = [(); 3].map(|()| Fixture::new(&[tool("echo")]));
    let limit = StartLimit::new(NonZeroUsize::new(1).unwrap());
    let servers: Vec<_> = fixtures
        .iter()
        .zip(["never-opens", "", ""])
        .map(|(fixture, mode)| {
            let mut settings = fixture.settings(mode);
            settings.start_timeout = Duration::from_secs(10);
            let server = McpServer::new(settings, Arc::new(NoSecrets));
            server.limit_starts(&limit);
            server
        })
        .collect();
    let background = |server: &Arc<McpServer>| {
        let source = server.source();
        tokio::spawn(async move { source.load_in_background().await })
    };
    let hanging = background(&servers[0]);
    let started = async {
        while fixtures[0].notes("starts").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, started).await.unwrap();
    let waiting = background(&servers[1]);
    let called = tokio::spawn({
        let server = servers[2].clone();
        async move {
            Call::new(&server, "echo", json!({})).make().await.unwrap();
        }
    });
    let all_wait = async {
        while servers
            .iter()
            .any(|server| state(server) != SourceState::Starting)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, all_wait).await.unwrap();
    assert!(fixtures[1].notes("starts").is_empty() && fixtures[2].notes("starts").is_empty());
    // The first one has had its time; that of the others counts from their turns.
    pass(Duration::from_secs(11)).await;
    hanging.await.unwrap();
    called.await.unwrap();
    waiting.await.unwrap();
    for server in &servers[1..] {
        assert_eq!(state(server), SourceState::Ready);
    }
    for server in servers {
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_was_started_for_something_else_confirms_its_kept_lists() {
    let fixture = Fixture::new(&[tool("old")]);
    let store: Arc<dyn ListCache> = Arc::new(MemoryListCache::default());
    let keeping = || {
        let server = McpServer::new(fixture.settings(""), Arc::new(NoSecrets));
        McpServer::cache_lists(std::slice::from_ref(&server), &store);
        server
    };
    let before = keeping();
    load(&before).await;
    before.shutdown().await;
    fixture.lists(&[tool("new")]);
    let server = keeping();
    let source = server.source();
    source.recall().await;
    assert_eq!(&*source.snapshot().tools[0].name, "box__old");
    assert_eq!(fixture.notes("starts").len(), 1);
    // A tool that the operator wrote down needs no list.
    Call::new(&server, "echo", json!({})).make().await.unwrap();
    tokio::time::timeout(LIMIT, source.changed(1)).await.unwrap();
    let now = source.snapshot();
    assert_eq!(
        (&*now.tools[0].name, now.tools.len(), now.is_kept),
        ("box__new", 1, false)
    );
    server.shutdown().await;
}
