//! One tool under several names: rules and approvals are about the tool.

use mcp_mock::{MockHttp, MockReply, MockServer, MockTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{Caller, ErrorKind, Outcome, ToolError},
    manifest::{LoadOptions, Loaded, Syntax, load},
    policy::ApprovalVerdict,
};

async fn server() -> MockHttp {
    let tool = |name| MockTool::new(name).reply(MockReply::text("done"));
    let mock = MockServer::builder()
        .tool(tool("delete_file"))
        .tool(tool("read_file"));
    mock.build().http().await.expect("it listens")
}

/// A server whose tool is renamed, and which a tool of the operator's calls as well.
fn loaded(url: &str, settings: &str, policy: &str) -> Loaded {
    let yaml = format!(
        "servers: {{s: {{url: '{url}', rename: {{delete_file: cleanup}}{settings}}}}}
tools:
  wipe: {{description: Deletes., executor: {{kind: mcp, server: s, tool: delete_file}}}}
policy: {{{policy}}}"
    );
    load(&LoadOptions::new().text("c", Syntax::Yaml, &yaml)).expect("usable")
}

async fn listed(plane: &Toolplane) -> Vec<String> {
    let view = plane.view(&Caller::local()).await;
    view.tools().iter().map(|tool| tool.name().to_string()).collect()
}

async fn call(plane: &Toolplane, tool: &str) -> Result<Outcome, ToolError> {
    plane.call(CallRequest::new(tool)).await
}

#[tokio::test]
async fn a_rule_about_any_of_its_names_is_about_the_tool() {
    let server = server().await;
    for (policy, expected) in [
        ("", "called, called, called"),
        ("blocklist: [s__delete_file]", "denied, denied, called"),
        ("blocklist: [s__cleanup]", "denied, denied, called"),
        ("blocklist: [wipe]", "called, denied, called"),
        ("allowlist: [s__cleanup]", "called, denied, denied"),
        ("allowlist: [s__delete_file]", "denied, denied, denied"),
        (
            "required_permissions: {s__delete_file: [files.delete]}",
            "denied, denied, called",
        ),
    ] {
        let loaded = loaded(&server.url(), "", policy);
        let plane = Toolplane::builder().loaded(&loaded).build().expect("usable");
        let list = listed(&plane).await;
        let mut found = Vec::new();
        for tool in ["s__cleanup", "wipe", "s__read_file"] {
            let is_listed = list.iter().any(|name| name == tool);
            let word = match call(&plane, tool).await {
                Ok(_) => "called",
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Denied, "{policy} {tool}: {error}");
                    "denied"
                }
            };
            assert_eq!(
                is_listed,
                word == "called",
                "{policy} {tool}: lists are as calls are"
            );
            found.push(word);
        }
        assert_eq!(found.join(", "), expected, "{policy}");
        plane.shutdown().await;
    }
}

#[tokio::test]
async fn a_servers_own_tool_can_be_left_out_in_favour_of_the_operators() {
    let server = server().await;
    let loaded = loaded(&server.url(), ", exclude: [delete_file]", "");
    let plane = Toolplane::builder().loaded(&loaded).build().expect("usable");
    assert_eq!(listed(&plane).await, ["s__read_file", "wipe"]);
    call(&plane, "wipe").await.expect("it is called");
    plane.shutdown().await;
}

#[tokio::test]
async fn approval_is_asked_for_whatever_the_tool_is_called() {
    let server = server().await;
    let loaded = loaded(&server.url(), "", "approval: {required: [s__delete_file]}");
    let plane = Toolplane::builder().loaded(&loaded).build().expect("usable");
    for tool in ["s__cleanup", "wipe"] {
        let outcome = call(&plane, tool).await;
        assert!(matches!(outcome, Ok(Outcome::Pending(_))), "{tool}: {outcome:?}");
    }
    plane.shutdown().await;
}

/// Tests that an approval of a payment on one server does not apply to another.
#[tokio::test]
async fn an_approval_is_for_the_server_as_it_was_set_up() {
    let (staging, production) = (server().await, server().await);
    let approval = "approval: {required: ['*']}";
    let here = loaded(&staging.url(), "", approval);
    let plane = Toolplane::builder().loaded(&here).build().expect("usable");
    for (reload, expected) in [
        (&here, None),
        (&loaded(&staging.url(), ", timeout_ms: 5000", approval), None),
        (
            &loaded(&production.url(), "", approval),
            Some(ErrorKind::ToolChanged),
        ),
    ] {
        plane.reload(&here).expect("usable");
        let Ok(Outcome::Pending(pending)) = call(&plane, "wipe").await else {
            panic!("it must be approved");
        };
        let handle = pending.handle;
        let desk = plane.approvals();
        desk.decide(&handle, ApprovalVerdict::Approve, "ann")
            .await
            .expect("it waits");
        plane.reload(reload).expect("usable");
        let result = plane.call(CallRequest::new("wipe").approval(&handle)).await;
        assert_eq!(result.err().map(|error| error.kind()), expected);
    }
    plane.shutdown().await;
}
