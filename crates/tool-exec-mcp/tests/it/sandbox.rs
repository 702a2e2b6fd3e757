//! Sandboxes of servers that cannot be had. Those that can are tested with the whole program.

use std::sync::Arc;

use tool_core::{NoSecrets, SourceState, Template};
use tool_exec_mcp::{McpServer, ServerSandbox, ServerSettings, StdioTarget};

/// Loads a server whose program notes its start in `started`, and returns its failure.
async fn failure(sandbox: ServerSandbox) -> String {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let text = |text: &str| Template::parse(text).unwrap();
    let script = format!("touch {}", started.display());
    let target = StdioTarget::new(text("sh"))
        .args([text("-c"), text(&script)])
        .sandbox(sandbox);
    let server = McpServer::new(ServerSettings::new("boxed", target), Arc::new(NoSecrets));
    let source = server.source();
    source.load().await;
    let status = source.status();
    assert!(!started.exists(), "the program was started");
    assert_eq!(status.sandbox, None);
    server.shutdown().await;
    match status.state {
        SourceState::Failed(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
#[cfg(not(feature = "sandbox"))]
async fn a_build_without_sandboxes_starts_no_server_that_asks_for_one() {
    let reason = failure(ServerSandbox::default()).await;
    assert!(reason.contains("it needs the feature `sandbox`"), "{reason}");
}

#[tokio::test]
#[cfg(feature = "sandbox")]
async fn paths_that_no_sandbox_shows_are_refused() {
    for path in ["/", "/proc/self", "/nowhere/at/all"] {
        let mut sandbox = ServerSandbox::default();
        sandbox.reads.push(Template::parse(path).unwrap());
        let reason = failure(sandbox).await;
        assert!(reason.contains(path) && reason.contains("sandbox"), "{reason}");
    }
}
