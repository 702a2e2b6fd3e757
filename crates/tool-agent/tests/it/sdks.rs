//! Formats as the providers' own SDKs see them: an SDK sends what we write to a provider on this machine, and reads what we read.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use tool_agent::{
    AssistantTurn, CallOutput, DefinitionOptions, ModelToolChoice, NoteKind, ProviderFormat, RawJson,
    ToolDefinitions, ToolSpec,
    serde_json::{self, Value, json},
    tool_core::Reply,
};
use tool_testkit::Peers;

use crate::{
    calls::response,
    json as raw,
    streams::{events, read},
    value,
};

/// A provider on this machine, which answers every request in the same way and keeps it.
struct Provider {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    fn start(format: ProviderFormat) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let kept = requests.clone();
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                // The SDK notices if it fails.
                let _ = answer(format, connection, &kept);
            }
        });
        Self { url, requests }
    }

    /// Returns the request that came last.
    fn last(&self) -> Value {
        let requests = self.requests.lock().expect("nothing panics with it");
        requests.last().cloned().expect("there is one")
    }
}

/// Answers one request, whole or as a stream.
fn answer(format: ProviderFormat, connection: TcpStream, kept: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(n_bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n_bytes.trim().parse().unwrap_or_default();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body)?;
    let is_stream = match format {
        ProviderFormat::Gemini => head.contains(":streamGenerateContent"),
        _ => request["stream"] == true,
    };
    kept.lock().expect("nothing panics with it").push(request);
    let whole = response(format);
    let (kind, body) = match (format, is_stream) {
        (_, false) => ("application/json", whole.to_string()),
        (ProviderFormat::Ollama, true) => {
            let lines = events(format, &whole, &[0.5]);
            let lines = lines.iter().map(|line| format!("{line}\n"));
            ("application/x-ndjson", lines.collect())
        }
        (_, true) => {
            let events = events(format, &whole, &[0.5]).into_iter();
            let lines = events.map(|event| match event["type"].as_str() {
                Some(name) => format!("event: {name}\ndata: {event}\n\n"),
                None => format!("data: {event}\n\n"),
            });
            let mut body: String = lines.collect();
            if format == ProviderFormat::OpenAiChat {
                body.push_str("data: [DONE]\n\n");
            }
            ("text/event-stream", body)
        }
    };
    let mut connection = connection;
    write!(
        connection,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The script that calls SDKs.
struct Sdks {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Sdks {
    fn start() -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/providers.py");
        let command = match Peers::from_env().and_then(|peers| peers.provider_script(&script)) {
            Ok(command) => command,
            Err(skip) => {
                skip.report();
                return None;
            }
        };
        let mut command = command.to_command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python runs");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Some(Self {
            child,
            input: input.expect("it is piped"),
            output: BufReader::new(output.expect("it is piped")),
        })
    }

    fn call(&mut self, request: &Value) -> Value {
        writeln!(self.input, "{request}").expect("the script reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the script writes");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the SDK failed on {request}"))
    }
}

impl Drop for Sdks {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the definitions of two tools, one of them with a name that no provider but Gemini takes.
fn tools(format: ProviderFormat) -> ToolDefinitions {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["n"],
    });
    let spec = |name: &str| ToolSpec::new(name, "A tool.", raw(&schema.to_string()));
    ToolDefinitions::new(
        format,
        &[spec("files.read"), spec("web_search")],
        DefinitionOptions::default().with_strict(true),
    )
}

/// Returns a history: a question, a turn with calls, and their results.
fn history(format: ProviderFormat, definitions: &ToolDefinitions) -> Vec<RawJson> {
    let question = match format {
        ProviderFormat::Gemini => json!({"role": "user", "parts": [{"text": "What is there?"}]}),
        _ => json!({"role": "user", "content": "What is there?"}),
    };
    let turn = AssistantTurn::read(definitions, &raw(&response(format).to_string())).expect("it is read");
    let image = json!({"content": [
        {"type": "text", "text": "Look:"},
        {"type": "image", "mimeType": "image/png", "data": "aW1hZ2U="},
    ]});
    let results: Vec<_> = turn
        .calls
        .iter()
        .zip([
            Reply::result(RawJson::from(image), false),
            Reply::from(json!({"n": 1})),
        ])
        .map(|(call, reply)| CallOutput::of_reply(call, &reply))
        .collect();
    let results = CallOutput::write(format, &results);
    let question = RawJson::from(question);
    [question]
        .into_iter()
        .chain(turn.messages)
        .chain(results.messages)
        .collect()
}

/// Writes names as Google documents them. Its SDK writes some in the other spelling that the API takes.
fn in_camel_case(value: Value) -> Value {
    let other = |key: String| match key.as_str() {
        "inline_data" => "inlineData".to_owned(),
        "mime_type" => "mimeType".to_owned(),
        "parameters_json_schema" => "parametersJsonSchema".to_owned(),
        _ => key,
    };
    match value {
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(key, value)| (other(key), in_camel_case(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.into_iter().map(in_camel_case).collect(),
        leaf => leaf,
    }
}

#[test]
fn sdks_send_what_we_write_and_read_what_we_read() {
    let Some(mut sdks) = Sdks::start() else { return };
    for &format in ProviderFormat::ALL {
        let definitions = tools(format);
        let history = history(format, &definitions);
        let choice = ModelToolChoice::Required.to_provider(format, definitions.names());
        let choice: serde_json::Map<_, _> = choice
            .into_iter()
            .map(|(key, choice)| (key.to_owned(), value(&choice)))
            .collect();
        let provider = Provider::start(format);
        for is_stream in [false, true] {
            let messages: Vec<_> = history.iter().map(value).collect();
            let request = json!({
                "format": format.as_str(),
                "url": provider.url,
                "stream": is_stream,
                "tools": value(definitions.tools()),
                "messages": messages,
                "choice": choice,
            });
            let seen = sdks.call(&request);
            let whole = response(format);
            let (_, turn) = match is_stream {
                true => read(&definitions, &events(format, &whole, &[0.5])),
                false => {
                    let turn = AssistantTurn::read(&definitions, &raw(&whole.to_string()));
                    (String::new(), turn.expect("it is read"))
                }
            };
            assert_eq!(seen["text"], turn.text, "{format:?}");
            let calls = seen["calls"].as_array().expect("a list");
            assert_eq!(calls.len(), turn.calls.len(), "{format:?}");
            for (seen, call) in calls.iter().zip(&turn.calls) {
                assert_eq!(seen[1], call.name, "{format:?}");
                let arguments = seen[2].as_str().expect("a text");
                let arguments = if arguments.is_empty() { "{}" } else { arguments };
                assert_eq!(value(&raw(arguments)), value(&call.arguments), "{format:?}");
                if let Some(id) = seen[0].as_str() {
                    assert_eq!(id, call.id, "{format:?}");
                }
            }
            // What the SDK sent is what we wrote.
            let sent = in_camel_case(provider.last());
            let mut tools = request["tools"].clone();
            if format == ProviderFormat::Ollama {
                // As a note says, it ignores this keyword; its SDK does not even send it.
                let ignored = definitions
                    .notes()
                    .iter()
                    .filter(|note| note.kind == NoteKind::Ignored);
                assert_eq!(ignored.count(), 2);
                for tool in tools.as_array_mut().expect("a list") {
                    let property = tool.pointer_mut("/function/parameters/properties/n");
                    property
                        .and_then(Value::as_object_mut)
                        .expect("it is there")
                        .remove("minimum");
                }
            }
            assert_eq!(sent["tools"], tools, "{format:?}");
            let messages = match format {
                ProviderFormat::OpenAiResponses => "input",
                ProviderFormat::Gemini => "contents",
                _ => "messages",
            };
            assert_eq!(sent[messages], request["messages"], "{format:?}");
            for (key, choice) in &choice {
                assert_eq!(sent[key], *choice, "{format:?}");
            }
        }
    }
}
