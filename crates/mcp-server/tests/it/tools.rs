//! Services made of closures, in both eras and over both transports.

use std::{
    error::Error,
    future::pending,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use mcp_server::{
    AddToolError, HttpServerOptions, HttpService, InputRequired, ServerIdentity, StdioOptions, ToolCall,
    ToolDefinition, ToolOutput, Tools, serde_json::json, serve_stdio,
};
use mcp_wire::{Era, RpcError, method};
use raw_json::RawJson;
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex, split},
    net::TcpListener,
    sync::{Notify, oneshot},
};
use tool_schema::Schema;

use crate::support::{Connection, Head, META, raw, soon};

type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Deserialize)]
struct Add {
    a: f64,
    b: f64,
}

const ADD_SCHEMA: &str = r#"{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number", "maximum": 100}}, "required": ["a", "b"]}"#;

fn identity() -> ServerIdentity {
    ServerIdentity::new("closures", "1.0.0").instructions("Add numbers.")
}

fn add() -> ToolDefinition {
    ToolDefinition::new("add").title("Add").input_schema(ADD_SCHEMA)
}

async fn run_add(call: ToolCall) -> Result<ToolOutput, BoxError> {
    let Add { a, b } = call.arguments()?;
    ToolOutput::json(&json!({"sum": a + b}))
}

/// Creates a server with a tool for each way in which a closure can end.
fn tools() -> Tools {
    let image = r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/gif"}],"_meta":{"n": 1e2}}"#;
    Tools::new(identity())
        .tool(add(), run_add)
        .unwrap()
        .tool(ToolDefinition::new("text"), async |_| Ok("sunny"))
        .unwrap()
        .tool(ToolDefinition::new("list"), async |_| Ok(json!([1, 2])))
        .unwrap()
        .tool(ToolDefinition::new("whole"), async move |_| {
            Ok(mcp_server::Answer::untyped(raw(image)))
        })
        .unwrap()
        .tool(ToolDefinition::new("fail"), async |_| -> Result<String, _> {
            let cause = io::Error::other("the cable is cut");
            Err(Box::new(Station(cause)) as BoxError)
        })
        .unwrap()
        .tool(ToolDefinition::new("refuse"), async |_| -> Result<String, _> {
            Err(RpcError::new(-32050, "not today"))?
        })
        .unwrap()
        .tool(ToolDefinition::new("raw"), async |call: ToolCall| {
            Ok(format!("{} {}", call.name(), call.raw_arguments()))
        })
        .unwrap()
        .tool(ToolDefinition::new("progress"), async |call: ToolCall| {
            for step in 1..=3 {
                call.progress(step, 3);
            }
            Ok("done")
        })
        .unwrap()
        .tool(ToolDefinition::new("one"), async |call: ToolCall| {
            let (city, days): (String, Option<u8>) = (call.argument("city")?, call.argument("days")?);
            Ok(format!("{city} {days:?}"))
        })
        .unwrap()
        .tool(ToolDefinition::new("ask"), ask)
        .unwrap()
}

#[derive(Debug, thiserror::Error)]
#[error("the station does not answer")]
struct Station(#[source] io::Error);

/// Asks for roots: during the call in the legacy era, with its answer in the modern era.
async fn ask(call: ToolCall) -> Result<ToolOutput, BoxError> {
    let cx = call.context();
    let roots = match (cx.era(), cx.input_response("roots")) {
        (Era::Legacy, _) => cx.ask(method::ROOTS_LIST, None).await?,
        (Era::Modern, Some(roots)) => roots,
        (Era::Modern, None) => {
            let question = InputRequired::new().ask("roots", method::ROOTS_LIST, None);
            return Ok(question.answer(call.request(), cx)?.into());
        }
    };
    Ok(ToolOutput::text(format!("given {roots}")))
}

/// Sends lines over stdio, and returns the answers.
async fn stdio(tools: Tools, lines: &[&str]) -> Vec<String> {
    let (input, mut output) = (lines.join("\n") + "\n", Vec::new());
    let serving = serve_stdio(
        tools,
        input.as_bytes(),
        &mut output,
        StdioOptions::default(),
        pending(),
    );
    soon(serving).await.unwrap();
    let output = String::from_utf8(output).unwrap();
    output.lines().map(str::to_owned).collect()
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
}

/// Sends a request in each way: both eras, over stdio and over HTTP. Returns the answers as one, which they must be except
/// for the marks of the modern era.
async fn everywhere(make: impl Fn() -> Tools, method: &str, params: &str) -> String {
    let legacy = request(method, params);
    let separator = if params.is_empty() { "" } else { "," };
    let modern = request(method, &format!("{params}{separator}{META}"));
    let over_stdio = stdio(make(), &[&legacy]).await.pop().unwrap();
    assert_eq!(http(make(), &legacy).await.1, over_stdio);
    let modern_over_stdio = stdio(make(), &[&modern]).await.pop().unwrap();
    assert_eq!(http(make(), &modern).await.1, modern_over_stdio);
    let unmarked = modern_over_stdio
        .replace(r#""resultType":"complete","#, "")
        .replace(r#","ttlMs":60000,"cacheScope":"public""#, "");
    assert_eq!(unmarked, over_stdio);
    over_stdio
}

/// Sends a request over HTTP, with the headers that its era demands. Returns the status and the message.
async fn http(tools: Tools, body: &str) -> (u16, String) {
    let service = HttpService::new(tools, HttpServerOptions::default());
    let message = raw(body);
    let params = message.get("params").unwrap();
    let mut request = http::Request::post("http://localhost/")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if body.contains("io.modelcontextprotocol/protocolVersion") {
        request = request
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", message.get("method").unwrap().string().unwrap());
        if let Some(name) = params.get("name").and_then(|name| name.string()) {
            request = request.header("mcp-name", name);
        }
    }
    let body = Full::new(Bytes::from(body.to_owned()));
    let response = soon(service.respond(request.body(body).unwrap())).await;
    let status = response.status().as_u16();
    let bytes = soon(response.into_body().collect()).await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

fn call(name: &str, arguments: &str) -> String {
    format!(r#""name":"{name}","arguments":{arguments}"#)
}

async fn called(name: &str, arguments: &str) -> String {
    everywhere(tools, method::TOOLS_CALL, &call(name, arguments)).await
}

fn result(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{{members}}}}}"#)
}

fn text(text: &str) -> String {
    let text = RawJson::from(text);
    format!(r#""content":[{{"type":"text","text":{text}}}]"#)
}

fn failed(message: &str) -> String {
    result(&format!(r#"{},"isError":true"#, text(message)))
}

fn error(code: i64, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"{message}"}}}}"#)
}

#[tokio::test]
async fn tools_are_listed_as_they_were_defined() {
    let two = || {
        let hint = json!({"readOnlyHint": true});
        Tools::new(identity())
            .tool(add().description("Adds.").annotations(hint), run_add)
            .unwrap()
            .tool(ToolDefinition::new("text"), async |_| Ok("sunny"))
            .unwrap()
    };
    let expected = format!(
        r#""tools":[{{"name":"add","title":"Add","inputSchema":{ADD_SCHEMA},"description":"Adds.","annotations":{{"readOnlyHint":true}}}},{{"name":"text","inputSchema":{{"type":"object"}}}}]"#
    );
    assert_eq!(everywhere(two, method::TOOLS_LIST, "").await, result(&expected));
}

#[tokio::test]
async fn a_server_says_who_it_is() {
    let answer = stdio(tools(), &[&request(method::DISCOVER, META)]).await;
    let expected = r#""capabilities":{"tools":{},"logging":{}},"instructions":"Add numbers.""#;
    assert!(answer[0].contains(expected), "{}", answer[0]);
}

#[tokio::test]
async fn results_are_texts_values_or_whole() {
    let sum = format!(r#"{},"structuredContent":{{"sum":3.5}}"#, text(r#"{"sum":3.5}"#));
    assert_eq!(called("add", r#"{"a":1,"b":2.5}"#).await, result(&sum));
    assert_eq!(called("text", "{}").await, result(&text("sunny")));
    let image = r#""content":[{"type":"image","data":"AA==","mimeType":"image/gif"}],"_meta":{"n": 1e2}"#;
    assert_eq!(called("whole", "null").await, result(image));
    // Arguments are the client's bytes.
    let arguments = r#"{"b": 1e2, "a":12345678901234567890123}"#;
    assert_eq!(
        called("raw", arguments).await,
        result(&text(&format!("raw {arguments}")))
    );
    let without_arguments = everywhere(tools, method::TOOLS_CALL, r#""name":"raw""#).await;
    assert_eq!(without_arguments, result(&text("raw {}")));
}

#[tokio::test]
async fn structured_content_of_the_legacy_era_is_an_object() {
    let legacy = stdio(tools(), &[&request(method::TOOLS_CALL, r#""name":"list""#)]).await;
    assert_eq!(legacy[0], result(&text("[1,2]")));
    let modern = request(method::TOOLS_CALL, &format!(r#""name":"list",{META}"#));
    let expected = format!(
        r#""resultType":"complete",{},"structuredContent":[1,2]"#,
        text("[1,2]")
    );
    assert_eq!(stdio(tools(), &[&modern]).await[0], result(&expected));
}

#[tokio::test]
async fn an_error_of_a_closure_is_read_by_the_model() {
    let expected = failed("the station does not answer: the cable is cut");
    assert_eq!(called("fail", "{}").await, expected);
    // An error of the protocol stays one.
    assert_eq!(called("refuse", "{}").await, error(-32050, "not today"));
}

#[tokio::test]
async fn a_wrong_argument_is_named() {
    assert_eq!(
        called("add", r#"{"a":1,"b":"two"}"#).await,
        failed(r#"invalid arguments: `/b`: invalid type: string "two", expected f64"#)
    );
    assert_eq!(
        called("add", r#"{"a":1}"#).await,
        failed("invalid arguments: missing field `b`")
    );
    let no_object = error(-32602, "`arguments` must be an object");
    assert_eq!(called("add", "[1]").await, no_object);
}

#[tokio::test]
async fn arguments_are_read_one_by_one() {
    for (arguments, expected) in [
        (r#"{"city":"Riga","days":2}"#, result(&text("Riga Some(2)"))),
        (r#"{"city":"Riga"}"#, result(&text("Riga None"))),
        ("{}", failed("invalid arguments: missing field `city`")),
        (
            r#"{"city":"Riga","days":300}"#,
            failed("invalid arguments: `/days`: invalid value: integer `300`, expected u8"),
        ),
    ] {
        assert_eq!(called("one", arguments).await, expected);
    }
}

#[tokio::test]
async fn a_key_cannot_be_there_twice() {
    let answer = called("add", r#"{"a":1,"b":2,"a":3}"#).await;
    assert!(answer.contains("the message has the key `a` twice"), "{answer}");
    assert!(answer.contains(r#""error""#), "{answer}");
}

#[tokio::test]
async fn unknown_tools_and_methods_are_errors() {
    assert_eq!(
        called("subtract", "{}").await,
        error(-32602, "unknown tool `subtract`")
    );
    let no_name = everywhere(tools, method::TOOLS_CALL, r#""name":7"#);
    assert_eq!(no_name.await, error(-32602, "`name` must be a string"));
    let prompts = everywhere(tools, method::PROMPTS_LIST, "").await;
    assert_eq!(prompts, error(-32601, "method `prompts/list` is not offered"));
    let modern = http(tools(), &request(method::PROMPTS_LIST, META)).await;
    assert_eq!(modern, (404, prompts));
}

/// Makes the check of a schema with `tool-schema`.
fn compile(schema: &RawJson) -> Result<impl Fn(&RawJson) -> Result<(), BoxError> + use<>, BoxError> {
    let schema = Schema::compile(schema)?;
    Ok(move |arguments: &RawJson| Ok(schema.check_text(arguments.as_str())?))
}

#[tokio::test]
async fn a_validator_checks_the_arguments_of_all_tools() {
    let checked = || {
        Tools::new(identity())
            .tool(add(), run_add)
            .unwrap()
            .validator(compile)
            .unwrap()
            .tool(ToolDefinition::new("later").input_schema(ADD_SCHEMA), run_add)
            .unwrap()
    };
    for tool in ["add", "later"] {
        let params = call(tool, r#"{"a":1,"b":101}"#);
        let answer = everywhere(checked, method::TOOLS_CALL, &params).await;
        assert_eq!(
            answer,
            failed("invalid arguments: `/b` must be a number of at most 100, not 101"),
            "{tool}"
        );
    }
    let params = call("later", r#"{"a":1,"b":100}"#);
    let answer = everywhere(checked, method::TOOLS_CALL, &params).await;
    assert!(
        answer.contains(r#""structuredContent":{"sum":101.0}"#),
        "{answer}"
    );
}

#[test]
fn a_tool_that_cannot_work_is_refused() {
    let add_one = |definition: ToolDefinition| {
        Tools::new(identity())
            .tool(definition, async |_| Ok(""))
            .map(drop)
    };
    let check = |added: Result<(), AddToolError>, expected: &str| {
        assert_eq!(added.unwrap_err().to_string(), expected);
    };
    let twice = Tools::new(identity())
        .tool(add(), run_add)
        .and_then(|tools| tools.tool(add(), run_add));
    check(
        twice.map(drop),
        "there is a tool `add` already: each needs a name of its own",
    );
    check(add_one(ToolDefinition::new("")), "a tool needs a name");
    check(
        add_one(add().input_schema("{\"type\": ")),
        "`inputSchema` of the tool `add` cannot be used: invalid JSON: unexpected end of text, expected a value at byte 9",
    );
    for schema in [json!({}), json!([]), json!({"type": "array"}), json!(true)] {
        check(
            add_one(add().input_schema(schema)),
            "`inputSchema` of the tool `add` must be an object whose `type` is `object`",
        );
    }
    let header = json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}});
    let refused = add_one(add().input_schema(header)).unwrap_err().to_string();
    assert!(
        refused.starts_with("`inputSchema` of the tool `add` has an invalid annotation: "),
        "{refused}"
    );
    // A schema that the validator cannot use, before and after it is set.
    let broken = || add().input_schema(json!({"type": "object", "required": 7}));
    let before = Tools::new(identity())
        .tool(broken(), run_add)
        .and_then(|tools| tools.validator(compile));
    let after = Tools::new(identity())
        .validator(compile)
        .and_then(|tools| tools.tool(broken(), run_add));
    for refused in [before, after] {
        let refused = refused.map(drop).unwrap_err();
        let expected = "the input schema of the tool `add` cannot be used";
        assert_eq!(refused.to_string(), expected);
        assert!(refused.source().unwrap().to_string().contains("required"));
    }
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let many = || {
        let names = (0..5).map(|number| ToolDefinition::new(format!("tool-{number}")));
        names.fold(Tools::new(identity()).page_size(2), |tools, definition| {
            tools.tool(definition, async |_| Ok("")).unwrap()
        })
    };
    let (mut names, mut cursor) = (Vec::new(), String::new());
    for _ in 0..3 {
        let page = raw(&everywhere(many, method::TOOLS_LIST, &cursor).await);
        let page = page.get("result").unwrap();
        let listed: Vec<_> = page.get("tools").unwrap().items().collect();
        assert!(listed.len() <= 2);
        names.extend(
            listed
                .iter()
                .map(|tool| tool.get("name").unwrap().string().unwrap()),
        );
        let next = page.get("nextCursor");
        cursor = next.map_or(String::new(), |next| format!(r#""cursor":{next}"#));
    }
    assert_eq!(names, ["tool-0", "tool-1", "tool-2", "tool-3", "tool-4"]);
    assert_eq!(cursor, "", "the third page is the last one");
    for unknown in [r#""cursor":"after.tool-9""#, r#""cursor":"2""#, r#""cursor":2"#] {
        let answer = everywhere(many, method::TOOLS_LIST, unknown).await;
        assert_eq!(answer, error(-32602, "unknown `cursor`"));
    }
}

#[tokio::test]
async fn progress_comes_before_the_result() {
    let params = r#""name":"progress","_meta":{"progressToken":"t"}"#;
    let lines = stdio(tools(), &[&request(method::TOOLS_CALL, params)]).await;
    let reports = (1..=3).map(|step| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":{step},"total":3,"progressToken":"t"}}}}"#
        )
    });
    let mut expected: Vec<_> = reports.collect();
    expected.push(result(&text("done")));
    assert_eq!(lines, expected);
    // Over HTTP they are the events of one stream.
    let (status, stream) = http(tools(), &request(method::TOOLS_CALL, params)).await;
    let events: Vec<_> = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    assert_eq!(
        (status, events),
        (200, expected.iter().map(String::as_str).collect())
    );
}

#[tokio::test]
async fn a_tool_asks_the_client_in_both_eras() {
    const ROOTS: &str = r#""io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#;
    let meta = META.replace(r#""io.modelcontextprotocol/clientCapabilities":{}"#, ROOTS);
    let first = request(method::TOOLS_CALL, &format!(r#""name":"ask",{meta}"#));
    let asked = r#""resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}"#;
    assert_eq!(http(tools(), &first).await.1, result(asked));
    let answers = r#""inputResponses":{"roots":{"roots":[]}}"#;
    let second = request(method::TOOLS_CALL, &format!(r#""name":"ask",{answers},{meta}"#));
    let given = text(r#"given {"roots":[]}"#);
    let complete = format!(r#""resultType":"complete",{given}"#);
    assert_eq!(http(tools(), &second).await.1, result(&complete));
    // A client that did not declare that it can be asked: an error of the protocol.
    let (status, refused) = http(
        tools(),
        &request(method::TOOLS_CALL, &format!(r#""name":"ask",{META}"#)),
    )
    .await;
    assert_eq!(status, 400);
    assert!(refused.contains(r#""code":-32021"#), "{refused}");

    let mut client = StdioClient::start(tools());
    client
        .send(&request(
            method::INITIALIZE,
            r#""protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"0"}"#,
        ))
        .await;
    client.receive().await;
    client.send(&request(method::TOOLS_CALL, r#""name":"ask""#)).await;
    let question = client.receive().await;
    assert_eq!(question, r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    client.send(&result(r#""roots":[]"#)).await;
    assert_eq!(client.receive().await, result(&given));
}

/// Client that waits for answers before it goes on.
struct StdioClient {
    input: tokio::io::WriteHalf<tokio::io::DuplexStream>,
    output: tokio::io::Lines<BufReader<tokio::io::ReadHalf<tokio::io::DuplexStream>>>,
}

impl StdioClient {
    fn start(tools: Tools) -> Self {
        let (ours, theirs) = duplex(1 << 16);
        let (reader, writer) = split(theirs);
        tokio::spawn(serve_stdio(
            tools,
            reader,
            writer,
            StdioOptions::default(),
            pending(),
        ));
        let (output, input) = split(ours);
        Self {
            input,
            output: BufReader::new(output).lines(),
        }
    }

    async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        soon(self.input.write_all(line.as_bytes())).await.unwrap();
    }

    async fn receive(&mut self) -> String {
        soon(self.output.next_line()).await.unwrap().expect("a line")
    }
}

/// Notes that a future was dropped.
struct OnDrop(Arc<AtomicBool>, Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.notify_one();
    }
}

#[tokio::test]
async fn cancelling_drops_the_future_of_the_closure() {
    let (dropped, running) = (Arc::<AtomicBool>::default(), Arc::new(Notify::new()));
    let tools = {
        let (dropped, running) = (Arc::clone(&dropped), Arc::clone(&running));
        Tools::new(identity())
            .tool(ToolDefinition::new("hang"), move |_| {
                let (dropped, running) = (Arc::clone(&dropped), Arc::clone(&running));
                async move {
                    let _on_drop = OnDrop(dropped, Arc::clone(&running));
                    running.notify_one();
                    pending::<()>().await;
                    Ok("")
                }
            })
            .unwrap()
    };
    let mut client = StdioClient::start(tools);
    client
        .send(&request(method::TOOLS_CALL, r#""name":"hang""#))
        .await;
    soon(running.notified()).await;
    assert!(!dropped.load(Ordering::SeqCst));
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    soon(running.notified()).await;
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_panic_of_a_closure_fails_its_call_only() {
    let tools = || {
        Tools::new(identity())
            .tool(ToolDefinition::new("panic"), async |_| -> Result<String, _> {
                panic!("as asked")
            })
            .unwrap()
            .tool(ToolDefinition::new("text"), async |_| Ok("sunny"))
            .unwrap()
    };
    let second = request(method::TOOLS_CALL, r#""name":"text""#).replace(r#""id":1"#, r#""id":2"#);
    let lines = [request(method::TOOLS_CALL, r#""name":"panic""#), second];
    let answers = stdio(tools(), &[&lines[0], &lines[1]]).await;
    assert!(answers.contains(&error(-32603, "internal error")), "{answers:?}");
    let sunny = result(&text("sunny")).replace(r#""id":1"#, r#""id":2"#);
    assert!(answers.contains(&sunny), "{answers:?}");
}

#[tokio::test]
async fn mirrored_arguments_are_checked() {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tools = Tools::new(identity())
        .tool(ToolDefinition::new("where").input_schema(schema), async |_| {
            Ok("")
        })
        .unwrap();
    // The request mirrors nothing.
    let params = format!(r#"{},{META}"#, call("where", r#"{"region":"eu"}"#));
    let (status, answer) = http(tools, &request(method::TOOLS_CALL, &params)).await;
    assert_eq!(status, 400, "{answer}");
    assert!(answer.contains(r#""code":-32020"#), "{answer}");
}

#[tokio::test]
async fn a_stopped_server_ends_its_streams() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(tools().serve_http(listener, async { drop(stopped.await) }));
    let mut connection = Connection::open(address).await;
    let initialize = request(
        method::INITIALIZE,
        r#""protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}"#,
    );
    connection.send(&Head::post(), &initialize).await;
    let opened = connection.receive().await;
    let session = opened.header("mcp-session-id").unwrap();
    let listen = Head::post().method("GET").with("Mcp-Session-Id", session);
    connection.send(&listen, "").await;
    assert_eq!(connection.head().await.status, 200);
    stop.send(()).unwrap();
    connection.closed().await;
    soon(served).await.unwrap().unwrap();
}
