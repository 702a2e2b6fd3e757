//! Errors of a build as people see them, and builds outside of a runtime.

use std::{error::Error, fs, sync::Arc};

use serde_json::json;
use tokio::runtime;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    BuildError, CallRequest, Toolplane,
    manifest::{LoadOptions, Syntax, load},
};

const TWO_PROBLEMS: &str =
    "tools:\n  a:\n    descripton: x\n  b:\n    description: x\n    timeout_ms: soon\n";

#[test]
fn an_error_shows_every_problem_with_its_line_once() {
    let error = Toolplane::from_yaml(TWO_PROBLEMS).expect_err("two typing errors");
    let text = error.to_string();
    for expected in [
        "descripton",
        "did you mean `description`",
        "timeout_ms",
        "configuration:3:5",
        "configuration:6:17",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("more error") && !text.contains('\u{1b}'), "{text}");
    // `main` prints this one.
    assert_eq!(format!("{error:?}"), text);
    assert!(error.source().is_none(), "a chain says it once");
    let BuildError::Configuration(problems) = error else {
        panic!("{error}")
    };
    let n_problems = problems.iter().count();
    assert!(
        text.ends_with(&problems.render(false)) && n_problems >= 2,
        "{text}"
    );
}

#[test]
fn a_file_gives_a_builder() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("toolplane.yaml");
    fs::write(&path, TWO_PROBLEMS).expect("written");
    let error = Toolplane::builder().file(&path).expect_err("two typing errors");
    assert!(error.to_string().contains("toolplane.yaml:3:5"), "{error}");
    let missing = Toolplane::from_file(directory.path().join("none.yaml")).expect_err("no file");
    assert!(missing.to_string().contains("none.yaml"), "{missing}");
    fs::write(&path, "policy: {blocklist: [x]}").expect("written");
    let builder = Toolplane::builder().file(&path).expect("usable");
    assert!(builder.build().is_ok());
}

/// Tests that a toolplane can be built, used and reloaded without entering a runtime before its first call.
#[test]
fn a_toolplane_is_built_outside_of_a_runtime() {
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("done"))]);
    let servers = if cfg!(feature = "exec-mcp") {
        "servers: {s: {url: 'http://127.0.0.1:9/mcp'}}"
    } else {
        "policy: {blocklist: [x]}"
    };
    let plane = Toolplane::builder()
        .yaml(servers)
        .expect("usable")
        .executor(Arc::new(script))
        .tool(TestTool::new("t").descriptor)
        .build()
        .expect("usable");
    let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, servers)).expect("usable");
    plane.reload(&loaded).expect("usable");
    assert_eq!(plane.cached_view(&plane.local_caller()).tools().len(), 1);
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    // The arguments of `block_on` are made outside of the runtime.
    let outcome = runtime.block_on(plane.call(CallRequest::new("t")));
    let reply = outcome.expect("answered").into_reply().expect("a reply");
    assert_eq!(reply.text(), "done");
    plane
        .reload(&loaded)
        .expect("usable outside of the runtime that runs");
    runtime.block_on(plane.shutdown());
}

/// Tests that alerts reach a webhook of a toolplane that was built before its runtime.
#[cfg(all(feature = "outbound", feature = "exec-mock"))]
#[test]
fn webhooks_start_with_the_first_use() {
    use std::time::Duration;

    use crate::outbound::endpoint;

    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (url, mut posts) = runtime.block_on(endpoint("204 No Content"));
    let plane = Toolplane::from_yaml(format!(
        "tools: {{pay: {{description: d, executor: {{kind: mock, result: 1}}}}}}\n\
         policy: {{approval: {{required: [pay], callback: {{url: '{url}'}}}}}}"
    ))
    .expect("usable");
    runtime.block_on(async {
        plane.call(CallRequest::new("pay")).await.expect("it waits");
        let posted = tokio::time::timeout(Duration::from_secs(30), posts.recv()).await;
        assert!(posted.expect("it is posted").is_some());
    });
}
