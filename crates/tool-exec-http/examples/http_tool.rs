//! One HTTP tool without the rest of toolplane: a local server, a tool that calls it, and the result.
//!
//! `cargo run -p tool-exec-http --example http_tool`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{
    error::Error,
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    thread,
    time::SystemTime,
};

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    Arguments, BoxFuture, CallContext, Caller, CheckError, CheckJson, Clock, Descriptor, Executor,
    ExecutorSpec, Feature, Instant, Metadata, Origin, Outcome, Overrides, Provenance, Reference, Secret,
    SecretError, Secrets, Settings, Target, Tool, ToolParts, Trust,
};
use tool_exec_http::{HttpExecutor, HttpExecutorOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = serve()?;
    // Only public addresses may be reached unless the operator allows others.
    let options = HttpExecutorOptions {
        allow_private_networks: vec!["127.0.0.1".parse()?],
        ..HttpExecutorOptions::default()
    };
    let executor = HttpExecutor::new(options, Arc::new(OneKey));
    let descriptor = descriptor(json!({
        "url": format!("http://{address}/v1/weather/{{city}}?days={{days}}"),
        "headers": {"Authorization": "Bearer ${secret:weather}"},
        "response_path": "$.forecast[*].temperature",
    }));
    let prepared = executor.prepare(&descriptor).map_err(|problems| {
        let messages = problems
            .iter()
            .map(|problem| format!("{}: {problem}", problem.pointer));
        messages.collect::<Vec<_>>().join("\n")
    })?;
    let mut parts = ToolParts::new(Arc::new(descriptor), prepared);
    parts.input = Arc::new(Anything);
    parts.state = Arc::default();
    let tool = Tool::new(parts);
    let mut cx = CallContext::new(
        Target::Tool(Arc::new(tool)),
        Arc::new(Arguments::parse(
            r#"{"city": "Bad Homburg/v. d. Höhe", "days": 2}"#,
        )?),
        Arc::new(Caller::local()),
        Arc::new(Stopped),
    );
    let prepared = cx.tool().executor().clone();
    if let Outcome::Reply(reply) = prepared.invoke_boxed(&mut cx).await? {
        println!("{}", reply.raw());
    }
    Ok(())
}

fn descriptor(config: Value) -> Descriptor {
    let mut descriptor = Descriptor::new("weather", ExecutorSpec::new("http").with_config(config));
    descriptor.description = "The weather of the next days.".to_owned();
    descriptor.input_schema = RawJson::from(json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    }));
    descriptor.origin = Origin::operator("example");
    descriptor
}

/// Starts an upstream that answers one request, and prints the request line.
fn serve() -> Result<std::net::SocketAddr, std::io::Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || -> Result<(), std::io::Error> {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer)?;
        let head = String::from_utf8_lossy(&buffer[..length]).into_owned();
        println!("{}", head.lines().next().unwrap_or_default());
        let body = r#"{"forecast": [{"temperature": 21.50}, {"temperature": 19}]}"#;
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    });
    Ok(address)
}

/// Secret store with one secret.
struct OneKey;

impl Secrets for OneKey {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let known = reference.name == "weather";
        Box::pin(async move { Ok(known.then(|| Secret::new("a-key-for-the-weather"))) })
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        Ok(reference.name == "weather")
    }
}

struct Anything;

impl CheckJson for Anything {
    fn check(&self, _: &Value) -> Result<(), CheckError> {
        Ok(())
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Instant {
        Instant::default()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}
