use std::{future::pending, time::Duration};

use raw_json::RawJson;
use serde_json::json;
use tokio::net::TcpListener;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, executor};
use toolplane::{
    Toolplane,
    core::{CallContext, ErrorKind, Invoke, Outcome, Reply, ToolError},
};
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions, ServeOptions};

use crate::support::{Client, Http, MODERN, plane, raw};

/// Returns the result of one call whose tool performs this step.
async fn rendered(step: ScriptStep, meta: &str) -> String {
    let mut client = Client::new(plane(&ScriptedExecutor::new([step]), [TestTool::new("t")]));
    client.result("tools/call", &format!(r#""name":"t"{meta}"#)).await
}

#[tokio::test]
async fn a_value_is_text_for_the_model_and_structured_for_programs() {
    let modern = format!(",{MODERN}");
    for (value, legacy, now) in [
        (
            r#"{"b": 1e2, "a":12345678901234567890123}"#,
            r#"{"content":[{"type":"text","text":"{\"b\": 1e2, \"a\":12345678901234567890123}"}],"structuredContent":{"b": 1e2, "a":12345678901234567890123}}"#,
            r#"{"resultType":"complete","content":[{"type":"text","text":"{\"b\": 1e2, \"a\":12345678901234567890123}"}],"structuredContent":{"b": 1e2, "a":12345678901234567890123}}"#,
        ),
        (
            r#""two\nlines \u00e9""#,
            r#"{"content":[{"type":"text","text":"two\nlines é"}]}"#,
            r#"{"resultType":"complete","content":[{"type":"text","text":"two\nlines é"}]}"#,
        ),
        (
            "[1,2]",
            r#"{"content":[{"type":"text","text":"[1,2]"}]}"#,
            r#"{"resultType":"complete","content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]}"#,
        ),
        (
            "null",
            r#"{"content":[{"type":"text","text":"null"}]}"#,
            r#"{"resultType":"complete","content":[{"type":"text","text":"null"}],"structuredContent":null}"#,
        ),
    ] {
        let step = || ScriptStep::Reply(Reply::value(raw(value)));
        assert_eq!(rendered(step(), "").await, legacy);
        assert_eq!(rendered(step(), &modern).await, now);
    }
}

#[tokio::test]
async fn results_of_a_server_keep_their_bytes() {
    let result = r#"{ "content": [{"type":"hologram","x":1e2}],"vendor":{"b":1,"a":2},"structuredContent":{"n":12345678901234567890123},"_meta":{"v":1} }"#;
    let step = || ScriptStep::Reply(Reply::result(raw(result), false));
    assert_eq!(rendered(step(), "").await, result);
    let modern = rendered(step(), &format!(",{MODERN}")).await;
    assert_eq!(modern, result.replacen('{', r#"{"resultType":"complete","#, 1));
    // The gateway adds members to `_meta` and changes nothing else.
    let mut noted = Reply::result(raw(result), false);
    noted.add_meta("dev.toolplane/stale", RawJson::from(true));
    let expected = result.replace(r#"{"v":1}"#, r#"{"v":1,"dev.toolplane/stale":true}"#);
    assert_eq!(rendered(ScriptStep::Reply(noted), "").await, expected);
    let mut value = Reply::value(raw("{}"));
    value.add_meta("dev.toolplane/stale", RawJson::from(true));
    assert_eq!(
        rendered(ScriptStep::Reply(value), "").await,
        r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{},"_meta":{"dev.toolplane/stale":true}}"#
    );
}

#[tokio::test]
async fn a_result_of_a_modern_server_keeps_its_result_type() {
    let result = r#"{"resultType":"complete","content":[]}"#;
    let step = ScriptStep::Reply(Reply::result(raw(result), false));
    assert_eq!(rendered(step, &format!(",{MODERN}")).await, result);
}

/// A legacy server may use `resultType` for anything. A modern client would take it for questions, or for an unknown type.
#[tokio::test]
async fn the_result_type_of_a_legacy_server_is_not_taken_for_a_question() {
    for kind in [r#""input_required""#, r#""vendor""#, "7"] {
        let result = format!(
            r#"{{"content":[],"resultType":{kind},"inputRequests":{{"a":{{"method":"elicitation/create"}}}}}}"#
        );
        let step = || ScriptStep::Reply(Reply::result(raw(&result), false));
        assert_eq!(rendered(step(), "").await, result);
        assert_eq!(
            rendered(step(), &format!(",{MODERN}")).await,
            result.replace(kind, r#""complete""#)
        );
    }
}

#[tokio::test]
async fn a_failure_of_a_tool_is_an_error_result() {
    let error = ToolError::new(ErrorKind::RateLimited, "100 calls a minute are reached")
        .with_retry_after(Duration::from_millis(1500))
        .with_detail(raw(r#"{"limit": 1e2}"#));
    assert_eq!(
        rendered(ScriptStep::Fail(error), "").await,
        r#"{"content":[{"type":"text","text":"rate_limited: 100 calls a minute are reached; wait before calling again"}],"isError":true,"_meta":{"dev.toolplane/error":{"kind":"rate_limited","message":"100 calls a minute are reached","retryable":true,"retry_after_ms":1500,"detail":{"limit": 1e2}}}}"#
    );
    let long =
        ToolError::new(ErrorKind::UpstreamError, "no").with_detail(RawJson::from(&*"x".repeat(20_000)));
    assert!(!rendered(ScriptStep::Fail(long), "").await.contains("detail"));
}

#[tokio::test]
async fn a_call_that_policy_or_schema_refuses_is_a_result() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let script = ScriptedExecutor::new([]);
    let mut client = Client::new(plane(&script, [TestTool::new("t").input(schema)]));
    for (params, kind) in [
        (r#""name":"t","arguments":{"n":"x"}"#, "invalid_arguments"),
        (r#""name":"t","arguments":[]"#, "invalid_arguments"),
        (r#""name":"t","arguments":"x""#, "invalid_arguments"),
    ] {
        let answer = client.value("tools/call", params).await;
        assert_eq!(answer["result"]["isError"], json!(true), "{params}: {answer}");
        assert_eq!(
            answer["result"]["_meta"]["dev.toolplane/error"]["kind"],
            json!(kind),
            "{params}"
        );
    }
    assert_eq!(script.n_calls(), 0);
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_is_an_error_of_the_protocol() {
    let mut client = Client::new(plane(&ScriptedExecutor::new([]), [TestTool::new("weather")]));
    for (params, message) in [
        (r#""name":"wether""#, "did you mean `weather`?"),
        (r#""name":"xyz","arguments":{}"#, "there is no tool `xyz`"),
        (r#""name":7"#, "`name` must be a string"),
        (r#""arguments":{}"#, "`name` must be a string"),
        ("", "`name` must be a string"),
    ] {
        let answer = client.value("tools/call", params).await;
        assert_eq!(answer["error"]["code"], json!(-32602), "{params}: {answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap_or_default()
                .contains(message),
            "{answer}"
        );
    }
    for method in ["tools/none", "resources/none", "tasks/list"] {
        assert_eq!(
            client.value(method, "").await["error"]["code"],
            json!(-32601),
            "{method}"
        );
    }
}

#[tokio::test]
async fn arguments_reach_the_tool_with_their_own_bytes() {
    let mut client = Client::new(plane(
        &ScriptedExecutor::new([ScriptStep::Echo]),
        [TestTool::new("t")],
    ));
    let arguments = r#"{"n": 123456789012345678901234567890, "f":1.10,"a":{}}"#;
    let result = client
        .result("tools/call", &format!(r#""name":"t","arguments":{arguments}"#))
        .await;
    assert_eq!(raw(&result).get("structuredContent"), Some(raw(arguments)));
    for none in ["", r#","arguments":null"#, r#","arguments":{}"#] {
        let result = client.result("tools/call", &format!(r#""name":"t"{none}"#)).await;
        assert_eq!(raw(&result).get("structuredContent"), Some(raw("{}")), "{none}");
    }
}

#[tokio::test]
async fn cancelling_reaches_the_tool() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(true), ScriptStep::Echo]);
    let mut client = Client::new(plane(&script, [TestTool::new("t")]));
    client
        .send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}"#)
        .await;
    client.ask("ping", "").await;
    assert_eq!(script.n_running(), 1);
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#)
        .await;
    client.ask("ping", "").await;
    // The cancellation is processed before any message that follows.
    client.result("tools/call", r#""name":"t""#).await;
    assert_eq!(script.n_running(), 0);
}

/// Reports its progress, and returns the trace of the call.
struct Reporter;

impl Invoke for Reporter {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if let Some(progress) = &cx.origin.progress {
            progress.report(raw(r#"{"progressToken":3,"progress":1,"message":"half"}"#));
            progress.report(raw(r#"{"progressToken":3,"progress":2}"#));
        }
        let trace = cx
            .trace
            .as_ref()
            .map(|trace| (trace.to_string(), trace.tracestate.as_deref()));
        let value = json!({"caller": &*cx.origin.caller.principal, "trace": trace});
        Ok(Reply::value(RawJson::from(value)).into())
    }
}

#[tokio::test]
async fn progress_trace_and_caller_pass_through() {
    let mut tool = TestTool::new("t").descriptor;
    tool.executor.kind = "reporter".to_owned();
    let builder = Toolplane::builder()
        .executor(executor("reporter", Reporter))
        .tool(tool);
    let mut client = Client::new(builder.build().expect("it can be set up"));
    let first = client
        .ask(
            "tools/call",
            concat!(
                r#""name":"t","_meta":{"progressToken":"p","tracestate":"s=1","#,
                r#""traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#
            ),
        )
        .await;
    assert_eq!(
        first,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"message":"half"}}"#
    );
    assert!(
        client
            .receive()
            .await
            .contains(r#""progressToken":"p","progress":2"#)
    );
    let result = client.receive().await;
    assert!(
        result.contains(concat!(
            r#""structuredContent":{"caller":"local","#,
            r#""trace":["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","s=1"]}"#
        )),
        "{result}"
    );
    // Without a progress token, nothing is reported.
    let result = client.result("tools/call", r#""name":"t""#).await;
    assert!(result.contains(r#"{"caller":"local","trace":null}"#), "{result}");
}

#[tokio::test]
async fn arguments_that_headers_mirror_are_checked() {
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let tools = [TestTool::new("mirrored").input(schema), TestTool::new("plain")];
    let http = Http::new(plane(&script, tools));
    let arguments = r#","arguments":{"region":"eu"}"#;
    for (tool, headers, code) in [
        ("mirrored", &[("mcp-param-region", "eu")][..], json!(null)),
        ("mirrored", &[("mcp-param-region", "us")], json!(-32020)),
        ("mirrored", &[], json!(-32020)),
        ("plain", &[], json!(null)),
    ] {
        let answer = http.call_with(headers, tool, arguments).await;
        assert_eq!(answer["error"]["code"], code, "{tool} {headers:?}: {answer}");
    }
    assert_eq!(script.n_calls(), 2);
}

/// The first request to a gateway whose server was not needed before.
#[tokio::test]
async fn arguments_that_headers_mirror_are_checked_before_their_server_was_ever_listed() {
    let schema =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let upstream = plane(&script, [TestTool::new("mirrored").input(schema)]);
    let upstream = Gateway::new(upstream, GatewayOptions::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (http, serve) = (HttpServerOptions::default(), ServeOptions::default());
        upstream.serve_http(listener, http, serve, pending()).await
    });
    let mut n_calls = 0;
    for (tool, headers, code) in [
        ("u__mirrored", &[("mcp-param-region", "us")][..], json!(-32020)),
        ("u__mirrored", &[], json!(-32020)),
        ("u__mirrored", &[("mcp-param-region", "eu")], json!(null)),
        ("u__nothing", &[], json!(-32602)),
    ] {
        let servers = format!("servers: {{u: {{url: \"http://{address}/mcp\"}}}}");
        let fresh = Http::new(Toolplane::from_yaml(servers).expect("it can be set up"));
        n_calls += usize::from(code == json!(null));
        let answer = fresh
            .call_with(headers, tool, r#","arguments":{"region":"eu"}"#)
            .await;
        assert_eq!(answer["error"]["code"], code, "{tool} {headers:?}: {answer}");
        assert_eq!(script.n_calls(), n_calls, "{tool} {headers:?}: {answer}");
    }
}

#[tokio::test]
async fn an_idempotency_key_runs_a_call_once_and_an_unknown_outcome_has_a_ledger_id() {
    let unknown = ToolError::new(ErrorKind::OutcomeUnknown, "lost");
    let script = ScriptedExecutor::new([
        ScriptStep::Value(json!(1)),
        ScriptStep::FailSent(unknown),
        ScriptStep::Value(json!(2)),
    ]);
    let mut client = Client::new(plane(&script, [TestTool::new("t")]));
    let with = |key: &str| format!(r#""name":"t","_meta":{{"dev.toolplane/idempotency-key":{key}}}"#);
    let first = client.result("tools/call", &with(r#""a""#)).await;
    let again = client.result("tools/call", &with(r#""a""#)).await;
    assert!(!first.contains("dev.toolplane/replayed"), "{first}");
    assert!(
        again.contains(r#""text":"1""#) && again.contains("dev.toolplane/replayed"),
        "{again}"
    );
    let lost = client.result("tools/call", &with(r#""b""#)).await;
    assert!(
        lost.contains(r#""kind":"outcome_unknown""#) && lost.contains(r#""ledger_id":""#),
        "{lost}"
    );
    assert_eq!(client.result("tools/call", &with(r#""b""#)).await, lost);
    for (key, reason) in [
        ("7", "must be a string"),
        (r#""a b""#, "visible ASCII"),
        (r#""""#, "is empty"),
    ] {
        let refused = client.result("tools/call", &with(key)).await;
        let is_refused = refused.contains(r#""kind":"invalid_arguments""#) && refused.contains(reason);
        assert!(is_refused, "{key}: {refused}");
    }
    assert_eq!(script.n_calls(), 2);
}
